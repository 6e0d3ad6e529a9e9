//! Lines that are captured again and again. Each time is one capture, which triage looks through like any other.
//!
//! Reads: lines whose time has come. Claims: nothing; the time that was read excludes a second hand. Writes, all or nothing: the
//! capture, and the next time. Does nothing where no time has come. Of times that passed while nobody looked, one is made up for.

use super::captures::{self, NewCapture};
use crate::door;
use crate::error::StoreResult;
use crate::pipeline::acts::{Actor, Answer, Asked, Refusal, fields};
use crate::pipeline::importing::put;
use crate::pipeline::{Cell, Row, Sql, Stage, azollas};
use fernery_core::artifact::{AzollaId, CaptureBuffer, CaptureId, RecordId};
use fernery_core::calendar::Zone;
use fernery_core::canonical::{self, Digest};
use fernery_core::inbox::recurring;
pub use fernery_core::inbox::recurring::Recurrence;
use fernery_core::journal::Act;
use fernery_core::{Timestamp, limits};
use serde_json::json;

/// Where such captures come from, as they say it themselves.
const SOURCE: &str = "recurring";
/// Characters of the digest in the id of such a capture.
const DIGEST_CHARS: usize = 24;

fn view(row: &Row) -> StoreResult<Recurrence> {
    Ok(Recurrence {
        recurrence_id: row.word("recurrence_id")?,
        azolla_id: row.word("azolla_id")?,
        every: row.text("every")?.to_string(),
        text: row.text("text")?.to_string(),
        schedule: row.json("schedule")?,
        next_at: row.at("next_at")?,
        created_at: row.at("created_at")?,
        stopped_at: row.maybe_at("stopped_at")?,
        held: row.flag("held")?,
    })
}

/// Keeps what comes again of a new capture.
pub(super) fn read_from(sql: &mut dyn Sql, capture: &CaptureBuffer, zone: &Zone) -> StoreResult<()> {
    let Some(found) = recurring::of(&capture.raw_content, capture.created_at, zone) else { return Ok(()) };
    let schedule = canonical::text_of(&found.schedule);
    let cells: [Cell<'_>; 7] = [
        capture.capture_id.as_str().into(),
        capture.azolla_id.as_str().into(),
        (&found.every.said).into(),
        (&found.text).into(),
        (&schedule).into(),
        found.next_at.into(),
        capture.created_at.into(),
    ];
    sql.write_new(include_str!("../sql/recurrence_insert.sql"), &cells)
}

/// Captures every line whose time has come, up to `limit`; answers how many.
pub fn fire(sql: &mut dyn Sql, azolla_id: &AzollaId, limit: i64) -> StoreResult<usize> {
    let now = sql.calendar();
    let cells = [azolla_id.as_str().into(), now.into(), limit.into()];
    let due = sql.query(include_str!("../sql/recurrences_due.sql"), &cells)?;
    let mut fired = 0;
    for row in &due {
        let line = view(row)?;
        let before = Timestamp::from_millis(line.next_at.as_millis() - 1);
        let at = line.schedule.due(before, now).unwrap_or(line.next_at);
        let Some(next_at) = line.schedule.next_after(now) else { continue };
        let cells = [line.recurrence_id.as_str().into(), line.next_at.into(), next_at.into()];
        if sql.touched(include_str!("../sql/recurrence_advance.sql"), &cells)? == 0 {
            continue;
        }
        door::failpoint("recurrence-advanced");
        let timed = !line.schedule.cron.starts_with("0 0 ");
        let text = recurring::captured(&line.text, timed, at, &line.schedule.zone);
        let of = Digest::of_bytes(line.recurrence_id.as_str().as_bytes()).to_string();
        let new = NewCapture {
            capture_id: CaptureId::stored(&format!("every-{}-{}", &of[..DIGEST_CHARS], at.as_millis())),
            raw: text.into_bytes(),
            source_label: format!("{SOURCE}: {}", line.every)
                .chars()
                .take(limits::SOURCE_LABEL_CHARS_MAX)
                .collect(),
            captured_at: Some(at),
        };
        captures::store(sql, azolla_id, &new)?;
        door::failpoint("recurrence-captured");
        fired += 1;
    }
    if fired > 0 {
        sql.wakes(Stage::Captures);
    }
    Ok(fired)
}

/// The lines of an inbox that come again, the next first.
pub fn all(sql: &mut dyn Sql, azolla_id: &AzollaId, limit: i64) -> StoreResult<Vec<Recurrence>> {
    let cells = [azolla_id.as_str().into(), limit.into()];
    sql.query(include_str!("../sql/recurrences_all.sql"), &cells)?.iter().map(view).collect()
}

/// All lines of all inboxes, stopped or not, below an id.
pub(crate) fn page(sql: &mut dyn Sql, below: &str, limit: i64) -> StoreResult<Vec<Recurrence>> {
    let cells = [below.into(), limit.into()];
    sql.query(include_str!("../sql/recurrences_page.sql"), &cells)?.iter().map(view).collect()
}

/// A line of another instance, as it was there.
pub(crate) fn arrives(sql: &mut dyn Sql, line: &Recurrence) -> StoreResult<()> {
    let (id, schedule) = (line.recurrence_id.as_str(), canonical::text_of(&line.schedule));
    let cells: [Cell<'_>; 9] = [
        id.into(),
        line.azolla_id.as_str().into(),
        (&line.every).into(),
        (&line.text).into(),
        (&schedule).into(),
        line.next_at.into(),
        line.created_at.into(),
        line.stopped_at.into(),
        line.held.into(),
    ];
    put(sql, include_str!("../sql/recurrence_arrives.sql"), &cells, &format!("recurrence {id}"))
}

/// How many lines are held, in one inbox or in all, counted up to a limit in each.
pub fn held(sql: &mut dyn Sql, azolla_id: Option<&AzollaId>) -> StoreResult<u64> {
    let inboxes = azolla_id.map_or_else(|| azollas::ids(sql), |one| Ok(vec![one.clone()]))?;
    let mut count = 0;
    for inbox in inboxes {
        let cells = [inbox.as_str().into(), super::tracks::COUNTED_MAX.into()];
        let row = sql.one(include_str!("../sql/recurrences_held.sql"), &cells)?;
        count += row.map_or(Ok(0), |row| row.count::<u64>(0))?;
    }
    Ok(count)
}

/// Lets the held lines of an inbox come again; answers how many.
pub(super) fn release(sql: &mut dyn Sql, azolla_id: &AzollaId) -> StoreResult<u64> {
    let released =
        sql.touched(include_str!("../sql/recurrences_release.sql"), &[azolla_id.as_str().into()])?;
    Ok(released as u64)
}

/// Stops a line. What it brought so far stays.
pub fn stop(
    sql: &mut dyn Sql,
    actor: &Actor,
    (id, record_id): (&CaptureId, &RecordId),
) -> Answer<Recurrence> {
    let asked = Asked { actor, act: Act::RecurrenceStopped, id: id.as_str(), record_id, what: fields([]) };
    let row = sql.one(include_str!("../sql/recurrence_lock.sql"), &[id.as_str().into()])?;
    let Some(mut line) = row.map(|row| view(&row)).transpose()? else { return Ok(Err(Refusal::Unknown)) };
    if accepted!(asked.is_repeat(sql)?) || line.stopped_at.is_some() {
        return Ok(Ok(line));
    }
    let now = sql.now();
    let cells = [id.as_str().into(), now.into()];
    sql.write(id.as_str(), include_str!("../sql/recurrence_stop.sql"), &cells)?;
    asked.done(sql, json!({"every": line.every}))?;
    line.stopped_at = Some(now);
    Ok(Ok(line))
}

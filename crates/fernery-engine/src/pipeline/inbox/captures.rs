//! Captures, stored unchanged. A capture never becomes work by itself (invariant 15).

use super::recurrences;
use crate::error::{StoreError, StoreResult};
use crate::pipeline::acts::{self, Actor, Answer, Asked, Refusal, fields};
use crate::pipeline::{Cell, Row, Sql, Stage, azollas, journal};
use fernery_core::artifact::{AzollaId, CaptureBuffer, CaptureId, CaptureStatus, RecordId, WorkorderId};
use fernery_core::journal::Act;
use fernery_core::names::is_unprintable;
use fernery_core::pipeline::Violation;
use fernery_core::{Timestamp, hex, inbox, limits};
use serde::Serialize;
use serde_json::json;

/// The inbox that is used if there are several and the caller names none.
const DEFAULT: &str = "task_management";

#[derive(Clone, Debug, PartialEq)]
pub struct NewCapture {
    /// Its id. The caller chooses it: the same capture again under the same id changes nothing.
    pub capture_id: CaptureId,
    pub raw: Vec<u8>,
    /// Where it came from.
    pub source_label: String,
    /// When it was captured, if that was earlier: it may have waited in a spool.
    pub captured_at: Option<Timestamp>,
}

impl NewCapture {
    /// What is wrong with it. A content is never refused for its meaning.
    pub fn violations(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        let mut flaw = |path: &str, message: String| found.push(Violation { path: path.into(), message });
        if self.raw.len() > limits::CAPTURE_BYTES_MAX {
            let (has, most) = (self.raw.len(), limits::CAPTURE_BYTES_MAX);
            flaw("/raw_content", format!("a capture can have at most {most} bytes; this one has {has}"));
        }
        if self.source_label.chars().count() > limits::SOURCE_LABEL_CHARS_MAX
            || self.source_label.chars().any(is_unprintable)
        {
            let most = limits::SOURCE_LABEL_CHARS_MAX;
            flaw("/source_label", format!("must be one line of at most {most} printable characters"));
        }
        found
    }
}

/// A capture with what the control plane keeps beside it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CaptureView {
    #[serde(flatten)]
    pub capture: CaptureBuffer,
    /// The bytes as hexadecimal, where they are no plain text.
    pub raw_hex: Option<String>,
    /// When triage may take it.
    pub ready_at: Timestamp,
    /// Triages that made no candidate of it.
    pub tries: u32,
    /// The workorder of its triage, running or finished.
    pub work_order_id: Option<WorkorderId>,
    /// It was imported, and no person has released it to triage yet.
    pub held: bool,
}

pub(crate) fn view(row: &Row) -> StoreResult<CaptureView> {
    Ok(CaptureView {
        capture: CaptureBuffer {
            capture_id: row.word("capture_id")?,
            azolla_id: row.word("azolla_id")?,
            raw_content: row.text("raw_content")?.to_string(),
            source_label: row.text("source_label")?.to_string(),
            status: row.word::<CaptureStatus>("status")?,
            created_at: row.at("created_at")?,
            updated_at: row.at("updated_at")?,
        },
        raw_hex: row.maybe_text("raw_hex")?.map(str::to_string),
        ready_at: row.at("ready_at")?,
        tries: row.count("tries")?,
        work_order_id: row.maybe_word("work_order_id")?,
        held: row.flag("held")?,
    })
}

/// The azolla with an inbox: the one that is named, the only one there is, or `task_management`.
pub fn inbox_of(sql: &mut dyn Sql, named: Option<&AzollaId>) -> Answer<AzollaId> {
    the_one(sql, named, "inbox", |blueprint| blueprint.triage.is_some())
}

/// The azolla of this sort: the one that is named, or the only one there is.
pub(crate) fn the_one(
    sql: &mut dyn Sql,
    named: Option<&AzollaId>,
    sort: &str,
    is_it: fn(&fernery_core::blueprint::Blueprint) -> bool,
) -> Answer<AzollaId> {
    let all = azollas::all(sql)?;
    let of_sort: Vec<AzollaId> = all
        .iter()
        .filter(|known| is_it(&known.blueprint))
        .map(|known| known.blueprint.azolla_id.clone())
        .collect();
    let known = || all.iter().map(|known| known.blueprint.azolla_id.clone()).collect();
    let listed = || of_sort.iter().map(AzollaId::to_string).collect::<Vec<_>>().join(", ");
    Ok(match (named, of_sort.as_slice()) {
        (Some(named), _) if of_sort.contains(named) => Ok(named.clone()),
        (Some(named), _) if all.iter().any(|known| known.blueprint.azolla_id == *named) => {
            let those = if of_sort.is_empty() { "none has one".into() } else { format!("use {}", listed()) };
            Err(Refusal::Conflict(format!("azolla {named} has no {sort}; {those}")))
        }
        (Some(named), _) => Err(Refusal::UnknownAzolla { named: named.clone(), known: known() }),
        (None, [only]) => Ok(only.clone()),
        (None, several) if several.iter().any(|known| known.as_str() == DEFAULT) => {
            Ok(AzollaId::stored(DEFAULT))
        }
        (None, []) => {
            Err(Refusal::Nobody(format!("no azolla of this server has an {sort}: host task_management")))
        }
        (None, _) => {
            Err(Refusal::Conflict(format!("several azollas have an {sort}: name one of {}", listed())))
        }
    })
}

/// What became of a capture.
#[derive(Clone, Debug, PartialEq)]
pub enum Stored {
    /// It is there now.
    New(CaptureView),
    /// It was there before.
    Before(CaptureView),
    /// Its id belongs to another one.
    Taken(CaptureId),
}

/// Stores captures; one answer for each. If one of them is invalid, nothing is stored; a capture whose id is taken does
/// not affect the others.
pub fn capture(
    sql: &mut dyn Sql,
    azolla_id: Option<&AzollaId>,
    captures: &[NewCapture],
) -> Answer<Vec<Stored>> {
    for new in captures {
        let violations = new.violations();
        if !violations.is_empty() {
            return Ok(Err(Refusal::Unfit(violations)));
        }
    }
    let azolla_id = accepted!(inbox_of(sql, azolla_id)?);
    let zone =
        azollas::in_force(sql, &azolla_id)?.map(|known| known.blueprint.zone.clone()).unwrap_or_default();
    let mut done = Vec::with_capacity(captures.len());
    for new in captures {
        let stored = store(sql, &azolla_id, new)?;
        if let Stored::New(stored) = &stored {
            recurrences::read_from(sql, &stored.capture, &zone)?;
        }
        done.push(stored);
    }
    sql.wakes(Stage::Captures);
    Ok(Ok(done))
}

/// Stores one capture in this inbox.
pub(super) fn store(sql: &mut dyn Sql, azolla_id: &AzollaId, new: &NewCapture) -> StoreResult<Stored> {
    let now = sql.now();
    let shown = inbox::shown(&new.raw);
    let hex = (shown.as_bytes() != new.raw).then(|| hex(&new.raw));
    let today = sql.calendar();
    let created_at = new.captured_at.map_or(today, |at| at.min(today));
    let cells: [Cell<'_>; 7] = [
        new.capture_id.as_str().into(),
        azolla_id.as_str().into(),
        (&shown).into(),
        hex.as_deref().into(),
        (&new.source_label).into(),
        created_at.into(),
        now.into(),
    ];
    let is_new = sql.touched(include_str!("../sql/capture_insert.sql"), &cells)? == 1;
    let gone = || StoreError::Corrupt(format!("capture {} is gone", new.capture_id));
    let stored = by_id(sql, &new.capture_id)?.ok_or_else(gone)?;
    let same = stored.capture.raw_content == shown
        && stored.raw_hex == hex
        && stored.capture.source_label == new.source_label
        && stored.capture.azolla_id == *azolla_id;
    Ok(match (is_new, same) {
        (true, _) => Stored::New(stored),
        (false, true) => Stored::Before(stored),
        (false, false) => Stored::Taken(new.capture_id.clone()),
    })
}

pub fn by_id(sql: &mut dyn Sql, id: &CaptureId) -> StoreResult<Option<CaptureView>> {
    let row = sql.one(include_str!("../sql/capture_by_id.sql"), &[id.as_str().into()])?;
    row.map(|row| view(&row)).transpose()
}

/// Captures, newest first, below a place.
pub fn page(
    sql: &mut dyn Sql,
    below: &crate::pipeline::reading::Below,
    limit: i64,
) -> StoreResult<Vec<CaptureView>> {
    let cells = [below.at.into(), (&below.id).into(), limit.into()];
    sql.query(include_str!("../sql/captures_page.sql"), &cells)?.iter().map(view).collect()
}

/// How many wait for triage, and how many are held, each counted up to `limit`.
pub fn pending(sql: &mut dyn Sql, azolla_id: &AzollaId, limit: i64) -> StoreResult<(u64, u64)> {
    let cells = [azolla_id.as_str().into(), limit.into()];
    let row = sql.one(include_str!("../sql/captures_pending.sql"), &cells)?;
    row.map_or(Ok((0, 0)), |row| Ok((row.count(0)?, row.count(1)?)))
}

/// How many triage has still to look through, in one inbox or in all: those that wait, and those that it has in hand. Counted up
/// to a limit.
pub fn unsorted(sql: &mut dyn Sql, azolla_id: Option<&AzollaId>) -> StoreResult<u64> {
    let limit = super::tracks::COUNTED_MAX;
    let inboxes = match azolla_id {
        Some(azolla_id) => vec![azolla_id.clone()],
        None => azollas::ids(sql)?,
    };
    let mut count = 0;
    for inbox in inboxes {
        count += pending(sql, &inbox, limit)?.0;
    }
    let in_hand = sql.one(include_str!("../sql/captures_underway.sql"), &[limit.into()])?;
    Ok(count + in_hand.map_or(Ok(0), |row| row.count::<u64>(0))?)
}

/// How many are held, in one inbox or in all.
pub fn held(sql: &mut dyn Sql, azolla_id: Option<&AzollaId>) -> StoreResult<u64> {
    match azolla_id {
        Some(azolla_id) => Ok(pending(sql, azolla_id, super::tracks::COUNTED_MAX)?.1),
        None => {
            let cells = [super::tracks::COUNTED_MAX.into()];
            sql.one(include_str!("../sql/captures_held.sql"), &cells)?.map_or(Ok(0), |row| row.count(0))
        }
    }
}

/// What an operator released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Released {
    /// Captures, to triage.
    pub captures: u64,
    /// Lines that come again from now on.
    pub recurrences: u64,
}

/// Releases what was imported into an inbox: captures to triage, and lines that come again. The same request again releases
/// nothing and answers the same numbers.
pub fn release(
    sql: &mut dyn Sql,
    actor: &Actor,
    (azolla_id, record_id): (&AzollaId, &RecordId),
    note: Option<&str>,
) -> Answer<Released> {
    accepted!(acts::check_note(note));
    accepted!(inbox_of(sql, Some(azolla_id))?);
    let what = fields([("note", json!(note))]);
    let asked = Asked { actor, act: Act::CapturesReleased, id: azolla_id.as_str(), record_id, what };
    sql.query(include_str!("../sql/azolla_lock.sql"), &[azolla_id.as_str().into()])?;
    if let Some(before) = journal::by_id(sql, record_id.as_str())? {
        let said = |key: &str| before.why[key].as_u64().unwrap_or(0);
        let released = Released { captures: said("released"), recurrences: said("recurrences") };
        return Ok(asked.is_repeat_of(Some(before)).map(|_| released));
    }
    let captures =
        sql.touched(include_str!("../sql/captures_release.sql"), &[azolla_id.as_str().into()])? as u64;
    let recurrences = recurrences::release(sql, azolla_id)?;
    let released = Released { captures, recurrences };
    asked.done(sql, json!({"released": captures, "recurrences": recurrences}))?;
    sql.wakes(Stage::Captures);
    Ok(Ok(released))
}

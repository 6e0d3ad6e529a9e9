//! Track C: overdue objectives, as pauses of this azolla.
//!
//! Reads: changed objectives, of this server and of others, as their azollas answer. Claims: nothing; a unique key excludes a
//! second pause for one objective and deadline. Writes: since when an urgency counts, and pauses of this azolla; nothing in
//! other azollas. Does nothing where nothing is due.

use crate::error::StoreResult;
use crate::pipeline::pauses::write_pause;
use crate::pipeline::reading::{self, Below, Paused};
use crate::pipeline::{Cell, Sql, azollas};
use fernery_core::artifact::{AzollaId, Objective, ObjectiveId};
use fernery_core::inbox::deadline::{self, Clock};
use fernery_core::pipeline::happened::PauseKind;
use fernery_core::{Timestamp, canonical};
use std::collections::BTreeMap;
use std::time::Duration;

/// Records objectives as an azolla answered them. Only a change of urgency or `due_at` changes their clocks.
pub fn watch(
    sql: &mut dyn Sql,
    by: &AzollaId,
    (source, server): (&AzollaId, Option<&str>),
    objectives: &[Objective],
) -> StoreResult<()> {
    let Some(registered) = azollas::in_force(sql, by)? else { return Ok(()) };
    let now = sql.calendar();
    for objective in objectives {
        let key: [Cell<'_>; 3] =
            [by.as_str().into(), source.as_str().into(), objective.objective_id.as_str().into()];
        if !deadline::is_open(objective) {
            sql.query(include_str!("../sql/deadline_drop.sql"), &key)?;
            continue;
        }
        let known = sql.one(include_str!("../sql/deadline_by_key.sql"), &key)?;
        let was = match &known {
            Some(row) => Some((
                Clock { urgency: row.count(0)?, due_at: row.maybe_at(1)?, since: row.at(2)? },
                row.maybe_at(3)?,
                row.flag(4)?,
            )),
            None => None,
        };
        let clock = deadline::clock(objective, was.as_ref().map(|(clock, ..)| clock), now);
        let due = deadline::deadline(&clock, &registered.blueprint.urgency);
        if was.as_ref().is_some_and(|(known, before, _)| *known == clock && *before == due) {
            continue;
        }
        let told = was.as_ref().is_some_and(|(_, before, told)| *told && *before == due);
        let document = canonical::text_of(objective);
        let cells: [Cell<'_>; 10] = [
            by.as_str().into(),
            source.as_str().into(),
            objective.objective_id.as_str().into(),
            i64::from(clock.urgency).into(),
            clock.due_at.into(),
            clock.since.into(),
            due.into(),
            told.into(),
            (&document).into(),
            server.into(),
        ];
        sql.query(include_str!("../sql/deadline_put.sql"), &cells)?;
    }
    Ok(())
}

/// Since when the urgencies of these objectives count; only of those that are watched, and that would be late if they counted from
/// their beginning: for the others it makes no difference.
pub(crate) fn clocks(
    sql: &mut dyn Sql,
    (by, urgency): (&AzollaId, &[Option<Duration>; 5]),
    source: &AzollaId,
    objectives: &[Objective],
) -> StoreResult<BTreeMap<ObjectiveId, Clock>> {
    let now = sql.calendar();
    let matters = |objective: &&Objective| {
        let clock = deadline::clock(objective, None, now);
        clock.due_at.is_none() && deadline::deadline(&clock, urgency).is_some_and(|late| late <= now)
    };
    let objectives: Vec<&Objective> = objectives.iter().filter(matters).collect();
    let asked = objectives.iter().map(|objective| {
        let key = vec![by.as_str().into(), source.as_str().into(), objective.objective_id.as_str().into()];
        (include_str!("../sql/deadline_clock.sql"), key)
    });
    let rows = sql.query_all(&asked.collect::<Vec<_>>())?;
    let mut clocks = BTreeMap::new();
    for (objective, found) in objectives.iter().zip(&rows) {
        if let Some(row) = found.first() {
            let clock = Clock { urgency: row.count(0)?, due_at: row.maybe_at(1)?, since: row.at(2)? };
            clocks.insert(objective.objective_id.clone(), clock);
        }
    }
    Ok(clocks)
}

/// Forgets the objectives of all azollas but these: no other azolla is read any more.
pub fn watch_only(sql: &mut dyn Sql, by: &AzollaId, sources: &[AzollaId]) -> StoreResult<()> {
    let watched = sql.query(include_str!("../sql/deadline_sources.sql"), &[by.as_str().into()])?;
    for row in &watched {
        if !sources.contains(&row.word(0)?) {
            sql.query(
                include_str!("../sql/deadlines_forget.sql"),
                &[by.as_str().into(), row.text(0)?.into()],
            )?;
        }
    }
    Ok(())
}

fn key(by: &AzollaId, (source, objective_id): (&str, &str), deadline: Timestamp) -> String {
    PauseKind::Overdue.key(format_args!("{by}:{source}/{objective_id}:{}", deadline.as_millis()))
}

/// The pauses of objectives that are overdue now and are still watched, and that do not ask a person by a pause of their own.
pub(in crate::pipeline) fn unanswered(
    sql: &mut dyn Sql,
    by: &AzollaId,
    below: &Below,
    limit: i64,
) -> StoreResult<Vec<Paused>> {
    let cells =
        [by.as_str().into(), limit.into(), sql.calendar().into(), below.at.into(), (&below.id).into()];
    sql.query(include_str!("../sql/deadlines_told.sql"), &cells)?.iter().map(reading::paused).collect()
}

/// Writes the pauses of overdue objectives, up to `limit`; answers how many it found.
pub fn tell(sql: &mut dyn Sql, by: &AzollaId, limit: i64) -> StoreResult<usize> {
    let now: Timestamp = sql.calendar();
    let cells = [by.as_str().into(), now.into(), limit.into()];
    let due = sql.query(include_str!("../sql/deadlines_due.sql"), &cells)?;
    for row in &due {
        let (source, objective_id, deadline) = (row.text(0)?, row.text(1)?, row.at(2)?);
        let pause = deadline::overdue_pause(&row.json(3)?, by, row.maybe_text(4)?, deadline, now);
        write_pause(sql, &key(by, (source, objective_id), deadline), &pause)?;
        let cells = [by.as_str().into(), source.into(), objective_id.into(), deadline.into()];
        sql.touched(include_str!("../sql/deadline_told.sql"), &cells)?;
    }
    Ok(due.len())
}

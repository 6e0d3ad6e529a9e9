//! Pauses: where an objective stopped, and what a person can do next. Each is also a notice where the azolla sends them.

use super::inbox::{deadlines, notices};
use super::reading::{self, Below, Paused};
use super::{Cell, Sql, azollas};
use crate::error::StoreResult;
use fernery_core::artifact::{Objective, PauseReason, PauseState, WorkorderId};
use fernery_core::canonical;
use fernery_core::pipeline::happened::PauseKind;

/// Writes the pause of an objective.
pub(super) fn pause(
    sql: &mut dyn Sql,
    key: &str,
    objective: &Objective,
    reason: PauseReason,
    actions: Vec<String>,
) -> StoreResult<()> {
    let (id, azolla_id) = (objective.objective_id.clone(), objective.azolla_id.clone());
    let pause = PauseState::new(id, azolla_id, reason, actions, sql.now());
    write_pause(sql, key, &pause)
}

/// Writes a pause under a key; there is one pause for each key.
pub(super) fn write_pause(sql: &mut dyn Sql, key: &str, pause: &PauseState) -> StoreResult<()> {
    let document = canonical::text_of(pause);
    let cells: [Cell<'_>; 5] = [
        key.into(),
        pause.objective_id.as_str().into(),
        pause.azolla_id.as_str().into(),
        pause.created_at.into(),
        (&document).into(),
    ];
    sql.write_new(include_str!("sql/pause_insert.sql"), &cells)?;
    notices::of_pause(sql, key)
}

/// The pauses that wait for a person, newest first: of each ticket the last one of its own, or the one that it is overdue.
pub fn unanswered(sql: &mut dyn Sql, below: &Below, limit: i64) -> StoreResult<Vec<Paused>> {
    let mut all: Vec<Paused> = Vec::new();
    for azolla in azollas::ids(sql)? {
        let cells = [
            azolla.as_str().into(),
            limit.into(),
            sql.calendar().into(),
            below.at.into(),
            (&below.id).into(),
        ];
        for row in &sql.query(include_str!("sql/pauses_unanswered.sql"), &cells)? {
            all.push(reading::paused(row)?);
        }
        all.extend(deadlines::unanswered(sql, &azolla, below, limit)?);
    }
    all.sort_by(|a, b| (b.pause.created_at, &b.key).cmp(&(a.pause.created_at, &a.key)));
    all.truncate(usize::try_from(limit).unwrap_or(0));
    Ok(all)
}

/// Whether a run was judged in this instance. Such a run has a pause under the key of its workorder, for ever; imported
/// pauses have other keys.
pub(super) fn is_judged_here(sql: &mut dyn Sql, work: &WorkorderId) -> StoreResult<bool> {
    let key = pause_key_of_run(work);
    Ok(sql.one(include_str!("sql/pause_by_key.sql"), &[(&key).into()])?.is_some())
}

/// The key of the pause of a run.
pub(super) fn pause_key_of_run(work: &WorkorderId) -> String {
    PauseKind::Run.key(work)
}

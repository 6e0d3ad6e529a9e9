//! Tickets that wait for another ticket: a blocker DEPENDENCY_CHANGE that resolves by itself when the other is confirmed or has
//! landed, in the same transaction.
//!
//! A ticket can only be written down to wait for one that exists, and for no more later. So no two can wait for each other.

use super::acts::{Answer, Refusal};
use super::landing;
use super::objectives::{self, ObjectiveRow};
use super::pauses::pause;
use super::{Row, Sql, Stage, Statement, blockers, journal};
use crate::error::StoreResult;
use fernery_core::artifact::{
    BlockerId, BlockerKind, Objective, ObjectiveId, ObjectiveStatus, ObjectiveType, PauseReason,
};
use fernery_core::exported::DependencyRecord;
use fernery_core::inbox::deadline::is_cancelled;
use fernery_core::journal::Act;
use fernery_core::limits;
use fernery_core::pipeline::Violation;
use fernery_core::pipeline::dependency::{Dependency, Stands};
use fernery_core::pipeline::happened::PauseKind;
use fernery_core::pipeline::landing::LandingState;
use serde_json::json;
use std::collections::BTreeMap;

/// Whom a new ticket waits for. Locks each, so that none is confirmed unseen.
pub(super) fn check(
    sql: &mut dyn Sql,
    id: &ObjectiveId,
    after: &[ObjectiveId],
    held: usize,
) -> Answer<Vec<ObjectiveRow>> {
    let unfit =
        |n: usize, message: String| Refusal::Unfit(vec![Violation { path: format!("/after/{n}"), message }]);
    let mut waits = Vec::new();
    if held + after.len() > limits::BLOCKERS_MAX {
        return Ok(Err(unfit(0, format!("a ticket has at most {} blockers", limits::BLOCKERS_MAX))));
    }
    for (n, other) in after.iter().enumerate() {
        if other == id {
            return Ok(Err(unfit(n, format!("{id} cannot wait for itself"))));
        }
        if after[..n].contains(other) {
            return Ok(Err(unfit(n, format!("{other} is named twice"))));
        }
        let row = objectives::lock(sql, other)?;
        let Some(row) = row.filter(|row| row.objective.objective_type == ObjectiveType::Ticket) else {
            return Ok(Err(unfit(n, format!("there is no ticket {other}"))));
        };
        if is_cancelled(&row.objective) {
            return Ok(Err(unfit(n, format!("{other} is cancelled: it will never be confirmed"))));
        }
        if !is_done(sql, &row)? {
            waits.push(row);
        }
    }
    Ok(Ok(waits))
}

/// Whether nobody has to wait for it any more.
fn is_done(sql: &mut dyn Sql, row: &ObjectiveRow) -> StoreResult<bool> {
    let landing = landing::of(sql, &row.objective.objective_id)?;
    let on_its_way = landing.is_some_and(|landing| landing.is_wanted());
    Ok(row.objective.status == ObjectiveStatus::Done && !row.unconfirmed && !on_its_way)
}

/// Adds the blockers of a new ticket that waits for these.
pub(super) fn wait(sql: &mut dyn Sql, row: &mut ObjectiveRow, others: &[ObjectiveRow]) -> StoreResult<()> {
    for other in others {
        let other = &other.objective;
        let description =
            format!("waits until {} is confirmed or has landed: {}", other.objective_id, other.title);
        let blocker_id = objectives::block_on(sql, row, None, BlockerKind::DependencyChange, &description)?;
        let (objective_id, after_id) = (row.objective.objective_id.clone(), other.objective_id.clone());
        link(sql, &DependencyRecord { objective_id, blocker_id, after_id })?;
    }
    Ok(())
}

/// Who waits for an objective, and by which blocker.
fn waiting(sql: &mut dyn Sql, id: &ObjectiveId) -> StoreResult<Vec<(ObjectiveId, BlockerId)>> {
    let rows = sql.query(include_str!("sql/dependencies_of.sql"), &[id.as_str().into()])?;
    rows.iter().map(|row| Ok((row.word(0)?, row.word(1)?))).collect()
}

/// Who waits for whom, below the place of one.
pub(super) fn page(sql: &mut dyn Sql, below: (&str, &str), limit: i64) -> StoreResult<Vec<DependencyRecord>> {
    let cells = [below.0.into(), below.1.into(), limit.into()];
    let rows = sql.query(include_str!("sql/dependencies_page.sql"), &cells)?;
    rows.iter()
        .map(|row| {
            Ok(DependencyRecord {
                objective_id: row.word(0)?,
                blocker_id: row.word(1)?,
                after_id: row.word(2)?,
            })
        })
        .collect()
}

/// Writes down that one waits for another.
pub(super) fn link(sql: &mut dyn Sql, link: &DependencyRecord) -> StoreResult<()> {
    let cells =
        [link.objective_id.as_str().into(), link.blocker_id.as_str().into(), link.after_id.as_str().into()];
    sql.write(link.blocker_id.as_str(), include_str!("sql/dependency_insert.sql"), &cells)
}

/// The open blockers of each of these objectives that wait for another ticket. One round, and none where no blocker can be such.
pub fn waits_for(
    sql: &mut dyn Sql,
    of: &[&Objective],
) -> StoreResult<BTreeMap<ObjectiveId, Vec<Dependency>>> {
    let may_wait =
        |o: &&&Objective| o.blocked_on.iter().any(|b| !b.resolved && b.kind == BlockerKind::DependencyChange);
    let of: Vec<&Objective> = of.iter().filter(may_wait).copied().collect();
    let mut found = BTreeMap::new();
    if of.is_empty() {
        return Ok(found);
    }
    let all = include_str!("sql/dependencies_open.sql");
    let asked: Vec<Statement<'_>> =
        of.iter().map(|objective| (all, vec![objective.objective_id.as_str().into()])).collect();
    for (waits, rows) in of.iter().zip(sql.query_all(&asked)?) {
        let dependencies = rows.iter().map(dependency).collect::<StoreResult<Vec<_>>>()?;
        if !dependencies.is_empty() {
            found.insert(waits.objective_id.clone(), dependencies);
        }
    }
    Ok(found)
}

fn dependency(row: &Row) -> StoreResult<Dependency> {
    let (status, reason) = (row.word("status")?, row.maybe_text("blocked_reason")?);
    let landing: Option<LandingState> = row.maybe_word("state")?;
    let stands = Stands::of(status, reason, row.flag("unconfirmed")?, landing);
    Ok(Dependency { blocker_id: row.word("blocker_id")?, on: row.word("after_id")?, stands })
}

/// As [`waits_for`], of one objective.
pub fn waits_of(sql: &mut dyn Sql, objective: &Objective) -> StoreResult<Vec<Dependency>> {
    Ok(waits_for(sql, &[objective])?.into_values().next().unwrap_or_default())
}

/// The objective is confirmed, or its patch has landed: whoever waits for it goes on.
pub(super) fn done(sql: &mut dyn Sql, id: &ObjectiveId) -> StoreResult<()> {
    let waiting = waiting(sql, id)?;
    if waiting.is_empty() {
        return Ok(());
    }
    for (waits, blocker_id) in &waiting {
        let Some(mut row) = objectives::lock(sql, waits)? else { continue };
        if !row.objective.blocked_on.iter().any(|b| b.blocker_id == *blocker_id && !b.resolved) {
            continue;
        }
        let by = format!("{id}:{blocker_id}");
        let continues = (!is_cancelled(&row.objective)).then_some(by.as_str());
        let spent = blockers::resolve(sql, &mut row, std::slice::from_ref(blocker_id), continues)?;
        let why = json!({"resolved": [blocker_id], "after": id, "status": row.objective.status, "envelope_spent": spent});
        journal::note(sql, "fernery", Act::Unblocked, waits.as_str(), &why)?;
    }
    sql.touched(include_str!("sql/dependencies_delete.sql"), &[id.as_str().into()])?;
    sql.wakes(Stage::Readiness);
    Ok(())
}

/// The objective is cancelled: whoever waits for it stays blocked, and is told.
pub(super) fn cancelled(sql: &mut dyn Sql, id: &ObjectiveId, record_id: &str) -> StoreResult<()> {
    for (waits, blocker_id) in waiting(sql, id)? {
        let Some(row) = objectives::load(sql, &waits)? else { continue };
        let open = row.objective.blocked_on.iter().any(|b| b.blocker_id == blocker_id && !b.resolved);
        if !open || is_cancelled(&row.objective) {
            continue;
        }
        let actions = vec![format!(
            "{id}, which it waits for, was cancelled. To go on without it: fernery ticket unblock {waits} --blocker \
                 {blocker_id}"
        )];
        let why = json!({"after": id, "blocker_id": blocker_id});
        journal::note(sql, "fernery", Act::AfterCancelled, waits.as_str(), &why)?;
        let key = PauseKind::After.key(format_args!("{waits}:{record_id}"));
        pause(sql, &key, &row.objective, PauseReason::GateFailed, actions)?;
    }
    Ok(())
}

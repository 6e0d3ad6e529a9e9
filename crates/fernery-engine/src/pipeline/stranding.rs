//! Finds what would wait for ever: workorders for executors that their azolla no longer has, and cancelled runs of
//! azollas whose gates no process runs.

use super::claims::{self, Claimer, HeldClaim};
use super::{Cell, Sql, Stage, azollas, gate_input, judging, objectives, reading, scheduling};
use crate::error::StoreResult;
use fernery_core::artifact::{
    AzollaId, ObjectiveStatus, ObjectiveType, ResourceType, WorkorderId, WorkorderStatus,
};
use fernery_core::blueprint::Blueprint;
use fernery_core::pipeline::evidence::{Evidence, plain_evidence};
use fernery_core::pipeline::scheduling::unexecuted;

/// Workorders above `after` whose kind of executor is not the one that the blueprint in force names.
pub fn of_other_types(
    sql: &mut dyn Sql,
    azolla_id: &AzollaId,
    after: &str,
    limit: i64,
) -> StoreResult<Vec<WorkorderId>> {
    let Some(registered) = azollas::in_force(sql, azolla_id)? else { return Ok(Vec::new()) };
    let of = &registered.blueprint.diazotroph_type;
    let cells: [Cell<'_>; 4] = [
        azolla_id.as_str().into(),
        // An azolla with tracks has at most one workorder, so that one is always checked.
        if registered.blueprint.standing.is_some() { "" } else { of.as_str() }.into(),
        after.into(),
        limit.into(),
    ];
    let rows = sql.query(include_str!("sql/workorders_of_other_types.sql"), &cells)?;
    rows.iter().map(|row| row.word(0)).collect()
}

/// Blocks the objective of such a workorder with a blocker that says why, and cancels the workorder. `false`: the workorder
/// is no longer stranded.
pub fn strand(sql: &mut dyn Sql, id: &WorkorderId) -> StoreResult<bool> {
    let Some(known) = reading::workorder_by_id(sql, id)? else { return Ok(false) };
    let Some(mut row) = objectives::lock(sql, &known.workorder.objective_id)? else {
        return Ok(false);
    };
    let locked = sql.one(include_str!("sql/workorder_lock.sql"), &[id.as_str().into()])?;
    let Some(work) = locked.map(|row| reading::workorder(&row)).transpose()? else { return Ok(false) };
    let Some(in_force) = azollas::in_force(sql, &work.azolla_id)? else { return Ok(false) };
    let wanted = &work.workorder.diazotroph_type;
    let made_under = azollas::by_digest(sql, &work.blueprint)?;
    let kind = |of: &Blueprint| of.executor_of(wanted).map(|executor| executor.kind);
    let same_kind = made_under.is_some_and(|made| kind(&made.blueprint) == kind(&in_force.blueprint));
    // A standing objective's workorder that stayed unclaimed for its whole budget blocks both tracks: treat it as
    // stranded.
    let budget = std::time::Duration::from_millis(work.workorder.budget_ms);
    let overtime = row.objective.objective_type == ObjectiveType::Standing
        && sql.now() > work.workorder.created_at.after(budget);
    if work.cancelled
        || work.workorder.status != WorkorderStatus::Created
        || row.objective.status != ObjectiveStatus::InProgress
        || (in_force.blueprint.workorders_for().contains(wanted) && same_kind && !overtime)
    {
        return Ok(false);
    }
    // A standing objective never moves: its captures or its manifest come again.
    if row.objective.objective_type == ObjectiveType::Ticket {
        let stop = unexecuted(&row.objective, wanted, &in_force.blueprint.diazotroph_type);
        scheduling::block(sql, &mut row, &stop, id.as_str())?;
    }
    sql.touched(include_str!("sql/workorder_cancel.sql"), &[row.objective.objective_id.as_str().into()])?;
    sql.wakes(Stage::Canceller);
    Ok(true)
}

/// Takes up to `limit` cancelled and executed workorders of an azolla whose gates no process runs.
pub fn take_unwanted(
    sql: &mut dyn Sql,
    azolla_id: &AzollaId,
    by: &Claimer,
    limit: i64,
) -> StoreResult<Vec<HeldClaim>> {
    let cells = [azolla_id.as_str().into(), sql.now().into(), limit.into()];
    let rows = sql.query(include_str!("sql/workorders_to_close.sql"), &cells)?;
    let seen: Vec<(&str, i64)> =
        rows.iter().map(|row| Ok((row.text(0)?, row.int(1)?))).collect::<StoreResult<_>>()?;
    Ok(claims::take(sql, ResourceType::Workorder, &seen, by)?.into_iter().flatten().collect())
}

/// Writes the verdict over such a workorder. Gates that run a program run only where the azolla is hosted; they do not run
/// here, and the verdict says so.
pub fn close(sql: &mut dyn Sql, held: &HeldClaim) -> StoreResult<judging::Judged> {
    let Some(gate_input) = gate_input::gate_input(sql, &WorkorderId::stored(&held.resource_id))? else {
        claims::release(sql, held)?;
        return Ok(judging::Judged::Before);
    };
    let gates = &gate_input.blueprint.gates;
    let evidence: Vec<Evidence> = gates
        .iter()
        .map_while(|gate| plain_evidence(gate, &gate_input.bundle, gate_input.snapshot.as_ref()))
        .collect();
    judging::conclude(sql, held, &evidence)
}

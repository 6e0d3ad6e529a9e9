//! The work that is under way: who has it since when, what it has used of its time, and which gate judges it.

use crate::http::problem::Refused;
use crate::http::wire::answer::Call;
use fernery_client::wire::WorkView;
use fernery_core::artifact::{AzollaId, ObjectiveId, ObjectiveStatus, WorkorderStatus};
use fernery_core::blueprint::{Blueprint, ExecutorKind};
use fernery_core::{JobId, Progress};
use fernery_engine::pipeline::azollas::Registered;
use fernery_engine::pipeline::objectives::ObjectiveRow;
use fernery_engine::pipeline::reading::{self, WorkorderView};
use fernery_engine::store::Holder;
use serde_json::json;
use std::collections::HashMap;

/// Where the work on an objective stands.
#[derive(Default)]
pub(super) struct Stand {
    /// What its executor says; none if nobody works on it.
    pub(super) progress: Option<Progress>,
    /// It has a workorder for an executor, and none works on it.
    pub(super) unclaimed: bool,
    pub(super) work: Option<WorkView>,
}

/// Where those objectives stand that are IN_PROGRESS. However long the page is, this takes one snapshot and one read of the
/// leases.
pub(super) async fn under_way<'r>(
    call: &Call,
    found: &[ObjectiveRow],
    in_force: impl IntoIterator<Item = &'r Registered>,
) -> Result<HashMap<ObjectiveId, Stand>, Refused> {
    let busy = found.iter().filter(|row| row.objective.status == ObjectiveStatus::InProgress);
    let ids: Vec<ObjectiveId> = busy.map(|row| row.objective.objective_id.clone()).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let blueprints: HashMap<&AzollaId, &Blueprint> =
        in_force.into_iter().map(|of| (&of.blueprint.azolla_id, &*of.blueprint)).collect();
    let engine = call.server.engine();
    let active = engine.substrate().read(move |sql| reading::active_workorders(sql, &ids)).await?;
    let with_jobs =
        active.into_iter().filter_map(|work| Some((work.workorder.work_order_id.job_id()?, work)));
    let (jobs, active): (Vec<JobId>, Vec<WorkorderView>) = with_jobs.unzip();
    let holders = engine.store().holders_of(jobs).await?;
    let stand = |(work, holder): (WorkorderView, Option<Holder>)| {
        let open = work.workorder.status == WorkorderStatus::Created;
        let blueprint = blueprints.get(&work.azolla_id).copied();
        let stand = Stand {
            work: Some(shown(call, &work, holder.as_ref(), blueprint)),
            unclaimed: open && holder.is_none(),
            progress: holder.and_then(|holder| holder.progress),
        };
        (work.workorder.objective_id, stand)
    };
    Ok(active.into_iter().zip(holders).map(stand).collect())
}

fn shown(
    call: &Call,
    work: &WorkorderView,
    holder: Option<&Holder>,
    blueprint: Option<&Blueprint>,
) -> WorkView {
    let workorder = &work.workorder;
    let judging = workorder.status == WorkorderStatus::Executed;
    let now = call.server.engine().store().lease_time();
    let this_attempt = holder.map_or(0, |holder| now.since(holder.started_at).as_millis());
    let used_ms = work.spent_ms.saturating_add(u64::try_from(this_attempt).unwrap_or(u64::MAX));
    let executor = blueprint.and_then(|of| of.executor_of(&workorder.diazotroph_type));
    let live = call.server.settings.pipeline.live().filter(|_| judging);
    let gate = live.and_then(|live| live.gate_at_work(&workorder.work_order_id));
    WorkView {
        work_order_id: workorder.work_order_id.clone(),
        budget_ms: workorder.budget_ms,
        used_ms: used_ms.min(workorder.budget_ms),
        worker_id: holder.map(|holder| holder.worker_id.clone()),
        started_at: holder.map(|holder| holder.started_at),
        judging,
        gate,
        own_progress: executor.is_none_or(|executor| executor.kind == ExecutorKind::Remote),
        envelope: blueprint.map_or_else(|| json!({}), |of| json!(of.envelope)),
    }
}

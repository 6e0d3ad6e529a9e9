//! A workorder with its snapshot and its job, written together.

use super::azollas::Registered;
use super::{Cell, Sql};
use crate::error::{StoreError, StoreResult};
use crate::store::NewJob;
use fernery_core::artifact::{
    ContextSnapshot, DiazotrophType, Event, Workorder, WorkorderId, WorkorderStatus,
};
use fernery_core::blueprint::Blueprint;
use fernery_core::calendar::duration::millis;
use fernery_core::{JobId, canonical};
use serde_json::json;
use serde_json::value::RawValue;
use std::time::Duration;

/// What a workorder is made of.
pub(super) struct Issue<'a> {
    /// The event that it is made for.
    pub(super) event: &'a Event,
    pub(super) registered: &'a Registered,
    /// Its id, and its job's.
    pub(super) job_id: JobId,
    pub(super) diazotroph_type: &'a DiazotrophType,
    pub(super) snapshot: ContextSnapshot,
    pub(super) branch_name: Option<String>,
    pub(super) budget: Duration,
    /// The repository that it is about.
    pub(super) repo_ref: Option<&'a str>,
    /// Whether the built-in rules carry it out instead of the azolla's executor.
    pub(super) stands_in: bool,
}

/// Writes a workorder. Its executor can claim it after the commit.
pub(super) fn issue(sql: &mut dyn Sql, issue: Issue<'_>) -> StoreResult<WorkorderId> {
    let Issue { event, registered, snapshot, .. } = issue;
    let blueprint = &registered.blueprint;
    let budget_ms = millis(issue.budget).max(1);
    let workorder = Workorder {
        work_order_id: issue.job_id.into(),
        objective_id: snapshot.objective_id.clone(),
        diazotroph_type: issue.diazotroph_type.clone(),
        context_snapshot_id: snapshot.snapshot_id.clone(),
        branch_name: issue.branch_name,
        budget_ms,
        created_at: snapshot.created_at,
        status: WorkorderStatus::Created,
    };
    let document = canonical::text_of(&snapshot);
    let cells: [Cell<'_>; 4] = [
        snapshot.snapshot_id.as_str().into(),
        snapshot.objective_id.as_str().into(),
        snapshot.created_at.into(),
        (&document).into(),
    ];
    sql.write_new(include_str!("sql/snapshot_insert.sql"), &cells)?;
    let digest = registered.digest.to_string();
    let cells: [Cell<'_>; 10] = [
        workorder.work_order_id.as_str().into(),
        workorder.objective_id.as_str().into(),
        event.azolla_id.as_str().into(),
        event.event_id.as_str().into(),
        workorder.diazotroph_type.as_str().into(),
        workorder.context_snapshot_id.as_str().into(),
        workorder.branch_name.as_deref().into(),
        i64::try_from(workorder.budget_ms).unwrap_or(i64::MAX).into(),
        workorder.created_at.into(),
        (&digest).into(),
    ];
    sql.write(workorder.work_order_id.as_str(), include_str!("sql/workorder_insert.sql"), &cells)?;
    let payload = json!({"workorder": workorder, "context_snapshot": snapshot});
    let payload =
        RawValue::from_string(payload.to_string()).map_err(|e| StoreError::Corrupt(e.to_string()))?;
    let stream = match issue.stands_in {
        true => Blueprint::stand_in_stream(issue.diazotroph_type),
        false => blueprint.stream_of(issue.diazotroph_type, issue.repo_ref),
    };
    sql.enqueue(NewJob {
        job_id: Some(issue.job_id),
        max_attempts: blueprint.retry.infrastructure.max(1),
        timeout: Some(Duration::from_millis(budget_ms)),
        ..NewJob::new(stream, payload)
    })?;
    Ok(workorder.work_order_id)
}

//! The attempts of a ticket's workorders, the one under way included.

use super::export;
use fernery_core::artifact::WorkorderId;
use fernery_engine::{Engine, StoreError};
use serde_json::{Value, json};

/// Workorders of a ticket whose attempts are told: the newest.
const WORKORDERS: usize = 10;

/// Attempts of the newest of these workorders, in their order.
pub(super) async fn of_ticket(engine: &Engine, all: &[WorkorderId]) -> Result<Vec<Value>, StoreError> {
    let newest = &all[all.len().saturating_sub(WORKORDERS)..];
    let jobs = newest.iter().filter_map(WorkorderId::job_id).collect();
    let mut holders = engine.store().holders_of(jobs).await?.into_iter();
    let mut told = Vec::new();
    for id in newest {
        let ended = export::attempts(engine, id).await?;
        told.extend(ended.iter().map(|attempt| json!(attempt)));
        let holder = id.job_id().and_then(|_| holders.next().flatten());
        told.extend(holder.map(|holder| {
            json!({ "work_order_id": id, "attempt_no": holder.attempt_no, "worker_id": holder.worker_id,
                    "started_at": holder.started_at, "finished_at": null, "outcome": null, "error": null })
        }));
    }
    Ok(told)
}

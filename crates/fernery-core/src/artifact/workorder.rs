//! One bounded piece of work.

use super::{DiazotrophType, ObjectiveId, SnapshotId, WorkorderId};
use crate::Timestamp;
use crate::words;
use serde::{Deserialize, Serialize};

words!(
    /// How far a workorder is.
    WorkorderStatus {
        /// It waits for an executor, or one is at it.
        Created = "CREATED",
        /// It has its output bundle, whatever that says.
        Executed = "EXECUTED",
    }
);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workorder {
    /// Its id, and its job's.
    pub work_order_id: WorkorderId,
    pub objective_id: ObjectiveId,
    /// For which kind of executor.
    pub diazotroph_type: DiazotrophType,
    /// What the executor is told.
    pub context_snapshot_id: SnapshotId,
    /// Where a patch goes, if it makes one.
    pub branch_name: Option<String>,
    /// Wall time for all its attempts together.
    pub budget_ms: u64,
    pub created_at: Timestamp,
    /// How far it is.
    pub status: WorkorderStatus,
}

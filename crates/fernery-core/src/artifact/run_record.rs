//! What the gates said.

use super::{ObjectiveId, OutputId, RunId, WorkorderId};
use crate::Timestamp;
use crate::words;
use serde::{Deserialize, Serialize};

words!(
    GateResult {
        /// Every gate ran and passed.
        Pass = "PASS",
        Fail = "FAIL",
    }
);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    pub run_id: RunId,
    /// Of which workorder. One workorder has one.
    pub work_order_id: WorkorderId,
    pub objective_id: ObjectiveId,
    pub output_id: OutputId,
    pub gate_result: GateResult,
    pub gate_reason: String,
    pub created_at: Timestamp,
}

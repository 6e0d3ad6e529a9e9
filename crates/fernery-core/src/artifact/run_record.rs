//! What the gates said.

use super::{ObjectiveId, OutputId, RunId, WorkorderId, words};
use crate::Timestamp;
use serde::{Deserialize, Serialize};

words!(
    /// The verdict.
    GateResult {
        /// Every gate ran and passed.
        Pass = "PASS",
        /// Not that.
        Fail = "FAIL",
    }
);

/// A run record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    /// Its id.
    pub run_id: RunId,
    /// Of which workorder. One workorder has one.
    pub work_order_id: WorkorderId,
    /// For which objective.
    pub objective_id: ObjectiveId,
    /// Which output was judged.
    pub output_id: OutputId,
    /// The verdict.
    pub gate_result: GateResult,
    /// Why, in words.
    pub gate_reason: String,
    /// When it was judged.
    pub created_at: Timestamp,
}

//! Where everything stops, and what a person may do next.

use super::{AzollaId, ObjectiveId, words};
use crate::Timestamp;
use serde::{Deserialize, Serialize};

words!(
    /// Why it stopped.
    PauseReason {
        /// The run passed, or a deadline did.
        RunComplete = "RUN_COMPLETE",
        /// A gate failed, something is in the way, or it was cancelled.
        GateFailed = "GATE_FAILED",
        /// Time, attempts, tokens or money are spent.
        BudgetExhausted = "BUDGET_EXHAUSTED",
    }
);

/// A pause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PauseState {
    /// Of which objective.
    pub objective_id: ObjectiveId,
    /// Where.
    pub azolla_id: AzollaId,
    /// Why it stopped.
    pub reason: PauseReason,
    /// One to three things to do, the first first.
    pub prioritized_actions: Vec<String>,
    /// When it stopped.
    pub created_at: Timestamp,
}

//! Where everything stops, and what a person may do next.

use super::{AzollaId, ObjectiveId};
use crate::Timestamp;
use crate::words;
use serde::{Deserialize, Serialize};

words!(
    PauseReason {
        /// The run passed, or a deadline did.
        RunComplete = "RUN_COMPLETE",
        /// A gate failed, something is in the way, or it was cancelled.
        GateFailed = "GATE_FAILED",
        /// Time, attempts, tokens or money are spent.
        BudgetExhausted = "BUDGET_EXHAUSTED",
    }
);

/// Most actions that a pause offers: a longer list is a list to read, not a choice.
const ACTIONS_MAX: usize = 3;

/// A pause. Made by [`PauseState::new`] alone, so that every pause has one to three actions (invariant 16).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PauseState {
    pub objective_id: ObjectiveId,
    pub azolla_id: AzollaId,
    pub reason: PauseReason,
    /// One to three things to do, the first first.
    pub prioritized_actions: Vec<String>,
    pub created_at: Timestamp,
}

impl PauseState {
    /// Where an objective stops. The first three actions are kept; where there is none, a person is told where to look.
    pub fn new(
        objective_id: ObjectiveId,
        azolla_id: AzollaId,
        reason: PauseReason,
        actions: impl IntoIterator<Item = String>,
        created_at: Timestamp,
    ) -> Self {
        let said = actions.into_iter().filter(|action| !action.is_empty());
        let mut prioritized_actions: Vec<String> = said.take(ACTIONS_MAX).collect();
        if prioritized_actions.is_empty() {
            prioritized_actions.push(format!("See where it stands: fernery ticket show {objective_id}"));
        }
        Self { objective_id, azolla_id, reason, prioritized_actions, created_at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_has_one_to_three_actions_whatever_it_is_made_of() {
        let made = |actions: &[&str]| {
            let (id, azolla) = (ObjectiveId::stored("WEB-1"), AzollaId::stored("mec"));
            let actions = actions.iter().map(|action| action.to_string());
            let at = Timestamp::from_millis(0);
            PauseState::new(id, azolla, PauseReason::GateFailed, actions, at).prioritized_actions
        };
        assert_eq!(made(&["a", "b"]), ["a", "b"]);
        assert_eq!(made(&["a", "", "b", "c", "d"]), ["a", "b", "c"]);
        for nothing in [&[][..], &[""]] {
            assert_eq!(made(nothing), ["See where it stands: fernery ticket show WEB-1"]);
        }
    }
}

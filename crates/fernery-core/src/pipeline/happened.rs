//! What really happened at a pause, in words for people. The artifact has one of three reasons, and GATE_FAILED stands for all that
//! went wrong; people are told which it was. These words are said everywhere: in lists, in a ticket's history and in the demo.

use super::membrane::Outcome;
use super::scheduling::first_line;
use crate::artifact::{GateResult, PauseReason};

/// The run that a pause is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    pub result: GateResult,
    /// The reason of its verdict.
    pub reason: String,
    /// The outcome of its output.
    pub outcome: Outcome,
}

/// Why a pause was written, if not for a run. The key of a pause begins with its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseKind {
    Run,
    /// An operator added a blocker.
    Block,
    /// Some of its blockers are resolved, and others are not.
    Unblock,
    Cancel,
    /// It was DONE when it was cancelled, and is so again.
    TakenUp,
    /// The ticket that it waits for was cancelled.
    After,
    /// Its patch did not land.
    Land,
    Overdue,
    /// The scheduler could not go on with it.
    Event,
    /// The scheduler found that it waits for another ticket, and for nothing else.
    Waits,
    /// Nobody can carry out its workorder any more.
    Workorder,
}

impl PauseKind {
    const ALL: [Self; 11] = [
        Self::Run,
        Self::Block,
        Self::Unblock,
        Self::Cancel,
        Self::TakenUp,
        Self::After,
        Self::Land,
        Self::Overdue,
        Self::Event,
        Self::Waits,
        Self::Workorder,
    ];

    const fn word(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Block => "block",
            Self::Unblock => "unblock",
            Self::TakenUp => "taken_up",
            Self::Cancel => "cancel",
            Self::After => "after",
            Self::Land => "land",
            Self::Overdue => "overdue",
            Self::Event => "event",
            Self::Waits => "waits",
            Self::Workorder => "workorder",
        }
    }

    /// The key of such a pause; `of` makes it the only one.
    pub fn key(self, of: impl std::fmt::Display) -> String {
        format!("{}:{of}", self.word())
    }

    /// The kind of the pause with this key; `None`: it was imported.
    pub fn of(key: &str) -> Option<Self> {
        let (word, _) = key.split_once(':')?;
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

/// What happened, in a few words.
pub fn happened(reason: PauseReason, kind: Option<PauseKind>, ran: Option<&Ran>) -> String {
    let said = match (kind, ran) {
        (Some(PauseKind::Run), Some(ran)) => return ended(reason, ran),
        (Some(PauseKind::Block), _) => "a person blocked it",
        (Some(PauseKind::Unblock), _) => "something else is still in its way",
        (Some(PauseKind::Cancel), _) => "cancelled",
        (Some(PauseKind::TakenUp), _) => "taken up again, with its result to confirm",
        (Some(PauseKind::After), _) => "the ticket that it waits for was cancelled",
        (Some(PauseKind::Land), _) => "its patch did not land",
        (Some(PauseKind::Overdue), _) => "overdue",
        (Some(PauseKind::Event), _) if reason == PauseReason::BudgetExhausted => "its envelope is used up",
        (Some(PauseKind::Event), _) => "something is in its way",
        (Some(PauseKind::Waits), _) => "it waits for another ticket",
        (Some(PauseKind::Workorder), _) => "nobody can carry it out any more",
        (Some(PauseKind::Run) | None, _) => match reason {
            PauseReason::RunComplete => "it stopped",
            PauseReason::GateFailed => "a run did not pass, or something was in its way",
            PauseReason::BudgetExhausted => "its budget is spent",
        },
    };
    said.to_string()
}

/// How a run ended.
fn ended(reason: PauseReason, ran: &Ran) -> String {
    let said = match ran.outcome {
        Outcome::NoChange => "the executor changed nothing",
        Outcome::Failed => "the executor failed",
        Outcome::Budget => "its budget is spent",
        Outcome::Blocked => "the executor asks a question",
        Outcome::Infra => "it could not be executed",
        Outcome::Protocol => "the executor did not keep to the protocol",
        Outcome::Cancelled => "cancelled",
        Outcome::Output | Outcome::Patch if ran.result == GateResult::Pass => "passed its gates",
        Outcome::Output | Outcome::Patch => {
            let last = if reason == PauseReason::BudgetExhausted { ", and no attempt is left" } else { "" };
            return format!("did not pass{last}: {}", first_line(&ran.reason));
        }
    };
    said.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_is_blamed_only_if_one_failed() {
        for outcome in Outcome::ALL {
            for result in [GateResult::Pass, GateResult::Fail] {
                let ran = Ran { result, reason: "gate tests (exit 1): no".into(), outcome: *outcome };
                let said = happened(PauseReason::GateFailed, Some(PauseKind::Run), Some(&ran));
                let gate_failed = outcome.is_success() && result == GateResult::Fail;
                assert_eq!(said.contains("gate tests"), gate_failed, "{outcome} {result}: {said}");
                assert!(!said.contains("GATE_FAILED"), "{said}");
            }
        }
        for kind in PauseKind::ALL {
            let said = happened(PauseReason::GateFailed, Some(kind), None);
            assert!(!said.contains("gate"), "{kind:?}: {said}");
        }
    }

    #[test]
    fn an_attempt_too_many_is_said_with_what_the_gate_found() {
        let ran = Ran { result: GateResult::Fail, reason: "gate tests: no".into(), outcome: Outcome::Patch };
        let said = happened(PauseReason::BudgetExhausted, Some(PauseKind::Run), Some(&ran));
        assert_eq!(said, "did not pass, and no attempt is left: gate tests: no");
    }

    #[test]
    fn the_kind_of_a_pause_is_read_from_the_key_that_it_made() {
        for kind in PauseKind::ALL {
            assert_eq!(PauseKind::of(&kind.key("T-1:r")), Some(kind));
        }
        assert_eq!(PauseKind::of("imported:T-1:000001"), None);
        assert_eq!(PauseKind::of("run"), None);
    }
}

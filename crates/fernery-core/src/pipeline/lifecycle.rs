//! The state machine of an objective: all transitions there are.
//!
//! NEW → TODO happens only by an operator's approval (invariant 10): apart from retries, rework and unblocking of approved
//! work, only [`Step::Approve`] and [`Step::Reopen`] lead to TODO, and no worker takes either.

use crate::artifact::{ObjectiveStatus, ObjectiveType};

/// What moves an objective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// An operator approves exactly what was shown.
    Approve,
    /// An operator changes what approval covers.
    Edit,
    /// The scheduler finds that the approval does not cover the current content.
    ApprovalLapsed,
    /// The scheduler makes a workorder.
    Schedule,
    /// An operator or the scheduler adds a blocker.
    Block,
    /// An operator resolves the blockers.
    Unblock {
        /// Whether the approval still covers the content.
        approved: bool,
    },
    Pass,
    /// The gates failed, and the policy allows another attempt.
    TryAgain,
    /// The gates failed or could not run, and a person must look.
    GiveUp,
    /// An operator wants a finished objective done again.
    Reopen,
    /// An operator keeps an earlier run that passed, where what came after it did not.
    Keep,
    /// Its patch conflicts with its base branch, and the approved blueprint lets it be worked on again.
    Rework,
    /// An operator takes up again what was DONE when it was cancelled: the run that passed counts again, and is to be confirmed.
    TakeUp,
    /// An operator cancels it. What is confirmed and has no patch on its way has nothing to cancel.
    Cancel,
}

/// Where `step` leads from `status`; `None` if it is not allowed there.
pub const fn after(
    objective_type: ObjectiveType,
    status: ObjectiveStatus,
    step: Step,
) -> Option<ObjectiveStatus> {
    use ObjectiveStatus::{Blocked, Done, InProgress, New, Todo};
    // A standing objective never moves.
    if matches!(objective_type, ObjectiveType::Standing) {
        return None;
    }
    match (status, step) {
        (New, Step::Approve) => Some(Todo),
        (New | Todo | Blocked, Step::Edit) => Some(match status {
            Blocked => Blocked,
            _ => New,
        }),
        (Todo, Step::ApprovalLapsed) => Some(New),
        (Todo, Step::Schedule) => Some(InProgress),
        (New | Todo, Step::Block) => Some(Blocked),
        (Blocked, Step::Unblock { approved: true }) => Some(Todo),
        (Blocked, Step::Unblock { approved: false }) => Some(New),
        (InProgress, Step::Pass) => Some(Done),
        (InProgress, Step::TryAgain) => Some(Todo),
        (InProgress, Step::GiveUp) => Some(Blocked),
        (Done, Step::Reopen | Step::Rework) => Some(Todo),
        (Blocked, Step::Keep | Step::TakeUp) => Some(Done),
        (_, Step::Cancel) => Some(Blocked),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ObjectiveStatus::{Blocked, Done, InProgress, New, Todo};

    const STEPS: [Step; 15] = [
        Step::Approve,
        Step::Edit,
        Step::ApprovalLapsed,
        Step::Schedule,
        Step::Block,
        Step::Unblock { approved: true },
        Step::Unblock { approved: false },
        Step::Pass,
        Step::TryAgain,
        Step::GiveUp,
        Step::Reopen,
        Step::Keep,
        Step::Rework,
        Step::TakeUp,
        Step::Cancel,
    ];

    #[test]
    fn a_ticket_moves_by_these_steps_and_no_others() {
        let mut seen = Vec::new();
        for status in ObjectiveStatus::ALL {
            for step in STEPS {
                if let Some(next) = after(ObjectiveType::Ticket, *status, step) {
                    seen.push((*status, step, next));
                }
            }
        }
        let wanted = [
            (New, Step::Approve, Todo),
            (New, Step::Edit, New),
            (New, Step::Block, Blocked),
            (New, Step::Cancel, Blocked),
            (Todo, Step::Edit, New),
            (Todo, Step::ApprovalLapsed, New),
            (Todo, Step::Schedule, InProgress),
            (Todo, Step::Block, Blocked),
            (Todo, Step::Cancel, Blocked),
            (InProgress, Step::Pass, Done),
            (InProgress, Step::TryAgain, Todo),
            (InProgress, Step::GiveUp, Blocked),
            (InProgress, Step::Cancel, Blocked),
            (Blocked, Step::Edit, Blocked),
            (Blocked, Step::Unblock { approved: true }, Todo),
            (Blocked, Step::Unblock { approved: false }, New),
            (Blocked, Step::Keep, Done),
            (Blocked, Step::TakeUp, Done),
            (Blocked, Step::Cancel, Blocked),
            (Done, Step::Reopen, Todo),
            (Done, Step::Rework, Todo),
            (Done, Step::Cancel, Blocked),
        ];
        assert_eq!(seen, wanted);
    }

    #[test]
    fn a_standing_objective_never_moves() {
        for status in ObjectiveStatus::ALL {
            assert!(STEPS.iter().all(|step| after(ObjectiveType::Standing, *status, *step).is_none()));
        }
    }

    #[test]
    fn nothing_new_is_worked_on_without_an_approval() {
        let from_new: Vec<_> =
            STEPS.iter().filter(|s| after(ObjectiveType::Ticket, New, **s) == Some(Todo)).collect();
        assert_eq!(from_new, [&Step::Approve]);
    }
}

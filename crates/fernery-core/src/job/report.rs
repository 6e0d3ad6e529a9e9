//! What to answer to a worker that reports the end of an attempt.
//!
//! The store first tries the write under the fence (job, attempt, token). Where that matched nothing, what it finds instead
//! decides the answer, here: idempotent by attempt, guarded by token.

use crate::job::lease::TokenHash;
use crate::job::{AttemptOutcome, JobStatus};

/// Which end a worker reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reported {
    Success,
    Failure,
    Release,
}

impl Reported {
    const fn outcome(self) -> AttemptOutcome {
        match self {
            Self::Success => AttemptOutcome::Succeeded,
            Self::Failure => AttemptOutcome::Failed,
            Self::Release => AttemptOutcome::Released,
        }
    }
}

/// What the database holds of the attempt that a report names, where the fence did not match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// No such attempt of this job.
    Nothing,
    /// It is open, under another token.
    Open,
    Closed {
        /// The token it was held under.
        token_hash: TokenHash,
        outcome: AttemptOutcome,
        /// Where that left the job.
        status: JobStatus,
    },
}

/// The answer to a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Written now; the job went to `status`.
    Accepted {
        /// The status that this end gave the job.
        status: JobStatus,
    },
    /// Written before by this very report; nothing changed.
    Duplicate {
        /// The status that this end gave the job.
        status: JobStatus,
    },
    /// This holder already reported another end.
    AttemptClosed,
    /// Not, or no longer, the holder.
    LeaseLost {
        /// Whether the attempt is closed in the database.
        closed: bool,
    },
    /// There is no such attempt.
    Unknown,
    /// The result is not an output bundle; the attempt stays open, and the holder may hand in another.
    Unfit,
}

impl Answer {
    /// Whether the worker may forget the message: the attempt it named is closed in the database.
    pub const fn ack(self) -> bool {
        match self {
            Self::Accepted { .. } | Self::Duplicate { .. } | Self::AttemptClosed => true,
            Self::LeaseLost { closed } => closed,
            Self::Unknown | Self::Unfit => false,
        }
    }
}

/// Answers a report whose fenced write matched nothing.
pub fn answer(reported: Reported, token_hash: TokenHash, found: Found) -> Answer {
    match found {
        Found::Nothing => Answer::Unknown,
        Found::Open => Answer::LeaseLost { closed: false },
        Found::Closed { token_hash: held, outcome, status } if held == token_hash => match outcome {
            _ if outcome == reported.outcome() => Answer::Duplicate { status },
            AttemptOutcome::Succeeded | AttemptOutcome::Failed => Answer::AttemptClosed,
            _ => Answer::LeaseLost { closed: true },
        },
        Found::Closed { .. } => Answer::LeaseLost { closed: true },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_report_against_every_closed_attempt_is_answered_exactly_so() {
        let mine = TokenHash([1; 16]);
        let mut table = String::new();
        for reported in [Reported::Success, Reported::Failure, Reported::Release] {
            for outcome in AttemptOutcome::ALL {
                let found = Found::Closed { token_hash: mine, outcome: *outcome, status: JobStatus::Queued };
                let word = match answer(reported, mine, found) {
                    Answer::Duplicate { .. } => "duplicate",
                    Answer::AttemptClosed => "attempt_closed",
                    Answer::LeaseLost { closed: true } => "lease_lost",
                    other => panic!("{other:?}"),
                };
                table.push_str(&format!("{reported:?} after {outcome}: {word}\n"));
                let other = answer(reported, TokenHash([2; 16]), found);
                assert_eq!(other, Answer::LeaseLost { closed: true }, "another token never learns more");
            }
        }
        let expected = "\
Success after SUCCEEDED: duplicate
Success after FAILED: attempt_closed
Success after LOST: lease_lost
Success after TIMED_OUT: lease_lost
Success after CANCELLED: lease_lost
Success after RELEASED: lease_lost
Failure after SUCCEEDED: attempt_closed
Failure after FAILED: duplicate
Failure after LOST: lease_lost
Failure after TIMED_OUT: lease_lost
Failure after CANCELLED: lease_lost
Failure after RELEASED: lease_lost
Release after SUCCEEDED: attempt_closed
Release after FAILED: attempt_closed
Release after LOST: lease_lost
Release after TIMED_OUT: lease_lost
Release after CANCELLED: lease_lost
Release after RELEASED: duplicate
";
        assert_eq!(table, expected);
    }

    #[test]
    fn ack_is_true_exactly_where_the_attempt_is_closed() {
        let mine = TokenHash([1; 16]);
        assert!(!answer(Reported::Success, mine, Found::Nothing).ack());
        assert!(!answer(Reported::Success, mine, Found::Open).ack());
        let found =
            Found::Closed { token_hash: mine, outcome: AttemptOutcome::Lost, status: JobStatus::Dead };
        assert!(answer(Reported::Success, mine, found).ack());
    }
}

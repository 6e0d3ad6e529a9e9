//! What the end of an attempt means for its job. [`settle`] decides over every end: a report, a reap, a time-out, a cancel.
//! There is one short cut. A success ends the job whatever else the lease row says, so on PostgreSQL `complete.sql` writes it
//! in the statement that proves the holder, without asking [`settle`]. The conformance tests hold both to the same answers.

use crate::Timestamp;
use crate::job::lease::{Holding, Tally};
use crate::job::retry::RetryPolicy;
use crate::job::{AttemptOutcome, JobStatus};
use crate::limits;
use crate::words;

/// How an attempt came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The holder reported success.
    Completed,
    /// The holder reported an error.
    Failed {
        /// Whether trying again may help.
        retryable: bool,
    },
    /// The reaper or a claim found the lease expired.
    Expired,
    /// The holder gave it back.
    Released,
    /// An operator ended it now.
    ForceCancelled,
}

/// What becomes of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It waits for its next attempt.
    Queue {
        /// Not before this; `None` is at once.
        due_at: Option<Timestamp>,
    },
    Finish(JobStatus),
}

words!(
    /// Why a job that could not be finished was given up, as stored and shown.
    BuryReason {
        /// The worker said that trying again cannot help.
        NotRetryable = "not_retryable",
        /// As many failures as allowed.
        AttemptsExhausted = "attempts_exhausted",
        /// As many lost leases as allowed: it may be killing its workers.
        LostTooOften = "lost_too_often",
        /// Handed back too often.
        ReleasedTooOften = "released_too_often",
        /// A workorder whose budget is spent.
        BudgetSpent = "budget_spent",
    }
);

/// The decision over one ended attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// How the attempt is closed.
    pub outcome: AttemptOutcome,
    /// What becomes of the job.
    pub next: Next,
    /// The counts, this end included.
    pub tally: Tally,
    /// Set where `next` is DEAD.
    pub buried: Option<BuryReason>,
}

impl Settlement {
    /// The status of the job afterwards.
    pub const fn status(&self) -> JobStatus {
        match self.next {
            Next::Queue { .. } => JobStatus::Queued,
            Next::Finish(status) => status,
        }
    }
}

/// Decides what the end of the attempt under `held` means. `fraction` in 0..1 is the jitter of a retry.
///
/// FAILED and TIMED_OUT count against `max_attempts`; LOST counts apart against the same number; RELEASED against
/// [`limits::RELEASES_MAX`]. A cancel that was asked for takes effect at every end but a success: work that is done is kept.
pub fn settle(
    held: &Holding,
    ending: Ending,
    now: Timestamp,
    policy: &RetryPolicy,
    fraction: f64,
) -> Settlement {
    let outcome = match ending {
        Ending::Completed => AttemptOutcome::Succeeded,
        Ending::Failed { .. } => AttemptOutcome::Failed,
        Ending::Expired => held.expiry_outcome(),
        Ending::Released => AttemptOutcome::Released,
        Ending::ForceCancelled => AttemptOutcome::Cancelled,
    };
    let mut tally = held.tally;
    let (spent, reason) = match outcome {
        AttemptOutcome::Succeeded | AttemptOutcome::Cancelled => (false, BuryReason::AttemptsExhausted),
        AttemptOutcome::Failed | AttemptOutcome::TimedOut => {
            tally.failed += 1;
            (tally.failed >= held.max_attempts, BuryReason::AttemptsExhausted)
        }
        AttemptOutcome::Lost => {
            tally.lost += 1;
            (tally.lost >= held.max_attempts, BuryReason::LostTooOften)
        }
        AttemptOutcome::Released => {
            tally.released += 1;
            (tally.released >= limits::RELEASES_MAX, BuryReason::ReleasedTooOften)
        }
    };
    let finish = |status| Settlement { outcome, next: Next::Finish(status), tally, buried: None };
    let bury = |reason| Settlement { buried: Some(reason), ..finish(JobStatus::Dead) };
    match outcome {
        AttemptOutcome::Succeeded => return finish(JobStatus::Succeeded),
        AttemptOutcome::Cancelled => return finish(JobStatus::Cancelled),
        _ if held.cancel_requested => return finish(JobStatus::Cancelled),
        _ if ending == (Ending::Failed { retryable: false }) => return bury(BuryReason::NotRetryable),
        // The time-out of a workorder is its budget, and that is for all its attempts.
        AttemptOutcome::TimedOut if held.stream.is_workorders() => return bury(BuryReason::BudgetSpent),
        _ if spent => return bury(reason),
        _ => {}
    }
    let due_at = match outcome {
        AttemptOutcome::Failed | AttemptOutcome::TimedOut => {
            Some(now.after(policy.wait(tally.failed, fraction)))
        }
        _ => None,
    };
    // A wait of nothing is no schedule.
    let due_at = due_at.filter(|due_at| *due_at > now);
    Settlement { outcome, next: Next::Queue { due_at }, tally, buried: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::lease::{LeaseToken, Message};
    use crate::names::{AttemptId, JobId, StreamName};
    use uuid::Uuid;

    const NOW: Timestamp = Timestamp::from_millis(100_000);

    fn held() -> Holding {
        Holding {
            job_id: JobId::from_uuid(Uuid::from_u128(1)),
            attempt_id: AttemptId::from_uuid(Uuid::from_u128(2)),
            token_hash: LeaseToken::from_random(Uuid::from_u128(3)).hash(),
            worker_id: "w".into(),
            stream: StreamName::stored("s"),
            message: Message { seq: 1, ready_at: Timestamp::from_millis(0) },
            claim_version: 1,
            attempt_no: 1,
            tally: Tally::default(),
            max_attempts: 2,
            started_at: Timestamp::from_millis(0),
            heartbeat_at: Timestamp::from_millis(0),
            expires_at: Timestamp::from_millis(60_000),
            timeout_at: None,
            cancel_requested: false,
            unique_key: None,
        }
    }

    const ENDINGS: &[Ending] = &[
        Ending::Completed,
        Ending::Failed { retryable: true },
        Ending::Failed { retryable: false },
        Ending::Expired,
        Ending::Released,
        Ending::ForceCancelled,
    ];

    #[test]
    fn every_ending_of_every_kind_of_holding_leads_exactly_here() {
        let timed = Holding { timeout_at: Some(Timestamp::from_millis(60_000)), ..held() };
        let last = Holding { tally: Tally { failed: 1, lost: 1, released: 19 }, ..held() };
        let cancelled = Holding { cancel_requested: true, ..held() };
        let mut table = String::new();
        for (name, held) in [("fresh", held()), ("timed", timed), ("last", last), ("cancelled", cancelled)] {
            for ending in ENDINGS {
                let s = settle(&held, *ending, NOW, &RetryPolicy::default(), 0.5);
                let wait = match s.next {
                    Next::Queue { due_at: Some(t) } => format!(" in {}ms", t.since(NOW).as_millis()),
                    _ => String::new(),
                };
                let why = s.buried.map_or(String::new(), |r| format!(" {}", r.as_str()));
                table.push_str(&format!("{name} {ending:?} => {} {}{wait}{why}\n", s.outcome, s.status()));
            }
        }
        let expected = "\
fresh Completed => SUCCEEDED SUCCEEDED
fresh Failed { retryable: true } => FAILED QUEUED in 500ms
fresh Failed { retryable: false } => FAILED DEAD not_retryable
fresh Expired => LOST QUEUED
fresh Released => RELEASED QUEUED
fresh ForceCancelled => CANCELLED CANCELLED
timed Completed => SUCCEEDED SUCCEEDED
timed Failed { retryable: true } => FAILED QUEUED in 500ms
timed Failed { retryable: false } => FAILED DEAD not_retryable
timed Expired => TIMED_OUT QUEUED in 500ms
timed Released => RELEASED QUEUED
timed ForceCancelled => CANCELLED CANCELLED
last Completed => SUCCEEDED SUCCEEDED
last Failed { retryable: true } => FAILED DEAD attempts_exhausted
last Failed { retryable: false } => FAILED DEAD not_retryable
last Expired => LOST DEAD lost_too_often
last Released => RELEASED DEAD released_too_often
last ForceCancelled => CANCELLED CANCELLED
cancelled Completed => SUCCEEDED SUCCEEDED
cancelled Failed { retryable: true } => FAILED CANCELLED
cancelled Failed { retryable: false } => FAILED CANCELLED
cancelled Expired => LOST CANCELLED
cancelled Released => RELEASED CANCELLED
cancelled ForceCancelled => CANCELLED CANCELLED
";
        assert_eq!(table, expected);
    }

    #[test]
    fn a_deploy_does_not_eat_the_last_attempt() {
        let mut held = Holding { max_attempts: 1, ..held() };
        for _ in 1..limits::RELEASES_MAX {
            let s = settle(&held, Ending::Released, NOW, &RetryPolicy::default(), 0.5);
            assert_eq!(s.status(), JobStatus::Queued);
            held.tally = s.tally;
        }
        let s = settle(&held, Ending::Released, NOW, &RetryPolicy::default(), 0.5);
        assert_eq!(s.buried, Some(BuryReason::ReleasedTooOften));
    }

    #[test]
    fn one_lost_lease_buries_a_job_that_may_run_once() {
        let held = Holding { max_attempts: 1, ..held() };
        let s = settle(&held, Ending::Expired, NOW, &RetryPolicy::default(), 0.5);
        assert_eq!((s.outcome, s.status()), (AttemptOutcome::Lost, JobStatus::Dead));
    }
}

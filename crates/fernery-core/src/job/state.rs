//! The states of a job and of an attempt. What becomes of a job when an attempt ends is decided in `settle.rs`.

use crate::words;

words!(
    JobStatus {
        /// Waits for a worker, now or from a later instant on.
        Queued = "QUEUED",
        /// Held under a lease.
        Running = "RUNNING",
        /// Finished with a result.
        Succeeded = "SUCCEEDED",
        /// Out of attempts, or failed for good: in the dead-letter queue.
        Dead = "DEAD",
        /// Ended by an operator.
        Cancelled = "CANCELLED",
    }
);

words!(
    AttemptOutcome {
        /// The worker completed it.
        Succeeded = "SUCCEEDED",
        /// The worker reported an error.
        Failed = "FAILED",
        /// The lease ran out and the reaper took it.
        Lost = "LOST",
        /// It took longer than the job's time-out.
        TimedOut = "TIMED_OUT",
        /// An operator ended it by force.
        Cancelled = "CANCELLED",
        /// The worker handed it back unfinished.
        Released = "RELEASED",
    }
);

impl JobStatus {
    /// Whether no worker will touch it again unless an operator says so.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Dead | Self::Cancelled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_the_wire() {
        for status in JobStatus::ALL {
            assert_eq!(status.as_str().parse(), Ok(*status));
        }
        for outcome in AttemptOutcome::ALL {
            assert_eq!(outcome.as_str().parse(), Ok(*outcome));
        }
        assert!("running".parse::<JobStatus>().is_err());
    }
}

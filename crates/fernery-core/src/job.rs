//! The states of a job and of an attempt, and the only transitions there are.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

macro_rules! wire_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $wire:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $wire)] $variant,)+
        }

        impl $name {
            /// All of them, in the order of the type.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// As the wire and the database spell it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $wire,)+
                }
            }
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                Self::ALL.iter().copied().find(|v| v.as_str() == text).ok_or_else(|| {
                    let known: Vec<_> = Self::ALL.iter().map(|v| v.as_str()).collect();
                    format!("expected one of {}", known.join(", "))
                })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

wire_enum!(
    /// Where a job stands.
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

wire_enum!(
    /// How an attempt ended.
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

/// What can move a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// A worker takes a lease.
    Claim,
    /// An attempt ends and the job waits again: a retry, a reap, a release.
    Requeue,
    /// An attempt ends with a result.
    Succeed,
    /// An attempt ends and there is no further one.
    Bury,
    /// An operator's cancel takes effect.
    Cancel,
    /// An operator starts it over.
    Redrive,
}

impl Move {
    /// All of them.
    pub const ALL: &[Self] =
        &[Self::Claim, Self::Requeue, Self::Succeed, Self::Bury, Self::Cancel, Self::Redrive];
}

impl JobStatus {
    /// Whether no worker will touch it again unless an operator says so.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Dead | Self::Cancelled)
    }

    /// Where `by` leads from here, or `None` where it leads nowhere.
    pub const fn next(self, by: Move) -> Option<Self> {
        match (self, by) {
            (Self::Queued, Move::Claim) => Some(Self::Running),
            (Self::Running, Move::Requeue) => Some(Self::Queued),
            (Self::Running, Move::Succeed) => Some(Self::Succeeded),
            (Self::Running, Move::Bury) => Some(Self::Dead),
            (Self::Queued | Self::Running, Move::Cancel) => Some(Self::Cancelled),
            (Self::Dead | Self::Cancelled, Move::Redrive) => Some(Self::Queued),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transition_table_is_exactly_this() {
        let mut table = String::new();
        for from in JobStatus::ALL {
            for by in Move::ALL {
                let to = from.next(*by).map_or("-", JobStatus::as_str);
                table.push_str(&format!("{from} {by:?} {to}\n"));
            }
        }
        let expected = "\
QUEUED Claim RUNNING\nQUEUED Requeue -\nQUEUED Succeed -\nQUEUED Bury -\nQUEUED Cancel CANCELLED\nQUEUED Redrive -
RUNNING Claim -\nRUNNING Requeue QUEUED\nRUNNING Succeed SUCCEEDED\nRUNNING Bury DEAD\nRUNNING Cancel CANCELLED\nRUNNING Redrive -
SUCCEEDED Claim -\nSUCCEEDED Requeue -\nSUCCEEDED Succeed -\nSUCCEEDED Bury -\nSUCCEEDED Cancel -\nSUCCEEDED Redrive -
DEAD Claim -\nDEAD Requeue -\nDEAD Succeed -\nDEAD Bury -\nDEAD Cancel -\nDEAD Redrive QUEUED
CANCELLED Claim -\nCANCELLED Requeue -\nCANCELLED Succeed -\nCANCELLED Bury -\nCANCELLED Cancel -\nCANCELLED Redrive QUEUED
";
        assert_eq!(table, expected);
    }

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

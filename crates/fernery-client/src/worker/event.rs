//! The events of a worker while it runs, and its summary at the end.

use super::job::{Job, StopReason};
use crate::client::ClientError;
use crate::wire::{ItemAnswer, ItemOutcome};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Something that happened. Events of one job come in order; the worker does not wait for the observer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum WorkerEvent {
    /// Reports that an earlier run left in the spool are sent first.
    LeftoversFound {
        /// How many.
        reports: usize,
    },
    /// Entries of the spool could not be read. They are kept aside.
    SpoolDamaged {
        /// How many.
        entries: usize,
        /// Where they are now.
        path: PathBuf,
    },
    /// Reports cannot be written to the spool. They are still sent; no job is claimed meanwhile.
    SpoolFailed {
        /// Why.
        why: String,
    },
    /// Reports can be written to the spool again.
    SpoolMended,
    /// A job was claimed and its handler starts.
    Claimed {
        /// The job.
        job: Job,
    },
    /// A running job was told to stop.
    Stopping {
        /// The job.
        job: Job,
        /// Why.
        reason: StopReason,
    },
    /// A handler ended, or was ended.
    Finished {
        /// The job.
        job: Job,
        /// How.
        ending: JobEnding,
        /// How long it ran.
        took: Duration,
    },
    /// The server answered a report.
    Reported {
        /// What it said.
        answer: ItemAnswer,
    },
    /// The server has given the job to somebody else, or it has ended. Nothing more is reported of it.
    LeaseLost {
        /// The job.
        job: Job,
    },
    /// The server refused a report, and a retry would not help. The lease will expire.
    ReportRefused {
        /// The job.
        job_id: fernery_core::JobId,
        /// Why.
        error: ClientError,
    },
    /// A call failed and will be sent again.
    Reconnecting {
        /// `claim`, `heartbeat` or `report`.
        call: &'static str,
        /// Why it failed.
        error: ClientError,
        /// When it will be sent again.
        after: Duration,
    },
    /// Such a call went through again.
    Reconnected {
        /// `claim`, `heartbeat` or `report`.
        call: &'static str,
    },
    /// No job is claimed any more; what runs may finish.
    Draining {
        /// How many run.
        running: usize,
    },
}

impl fmt::Display for WorkerEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeftoversFound { reports } => {
                write!(f, "sending {reports} reports of an earlier run first")
            }
            Self::SpoolDamaged { entries, path } => {
                write!(
                    f,
                    "{entries} entries of the spool are unreadable; they are kept in {}",
                    path.display()
                )
            }
            Self::SpoolFailed { why } => {
                write!(f, "cannot write to the spool ({why}); claiming no jobs until it works again")
            }
            Self::SpoolMended => f.write_str("the spool is writable again"),
            Self::Claimed { job } => {
                write!(f, "{} of {}: attempt {} starts", job.id(), job.stream(), job.attempt_no())
            }
            Self::Stopping { job, reason } => write!(f, "{} must stop: {reason}", job.id()),
            Self::Finished { job, ending, took } => {
                write!(f, "{} {ending} after {:.3} s", job.id(), took.as_secs_f64())
            }
            Self::Reported { answer } => {
                let word = match answer.outcome {
                    ItemOutcome::Accepted => "is reported",
                    ItemOutcome::Duplicate => "was already reported",
                    ItemOutcome::Stale => "was reported too late: the lease was lost",
                    ItemOutcome::Conflict => "was already reported with another outcome",
                    ItemOutcome::Unknown => "is unknown to the server",
                    ItemOutcome::Unfit => "has a result that is not an output bundle",
                };
                write!(f, "{} {word}", answer.job_id)
            }
            Self::LeaseLost { job } => write!(f, "{}: the lease was lost; its work is dropped", job.id()),
            Self::ReportRefused { job_id, error } => {
                write!(f, "{job_id}: the server refused the report: {error}")
            }
            Self::Reconnecting { call, error, after } => {
                write!(f, "{call} failed ({error}); retrying in {:.1} s", after.as_secs_f64())
            }
            Self::Reconnected { call } => write!(f, "{call} works again"),
            Self::Draining { running } => {
                write!(f, "draining: no more claims; {running} running jobs may finish")
            }
        }
    }
}

/// How a handler ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobEnding {
    /// With a result.
    Succeeded,
    /// With a failure.
    Failed {
        /// Its code.
        code: String,
        /// Its message.
        message: String,
    },
    /// It handed the job back.
    Released,
    /// It did not end within the grace after it was told to stop, or its lease was lost: its answer was dropped.
    Dropped(StopReason),
}

impl fmt::Display for JobEnding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Succeeded => f.write_str("succeeded"),
            Self::Failed { code, message } => write!(f, "failed ({code}: {message})"),
            Self::Released => f.write_str("was returned unfinished"),
            Self::Dropped(reason) => write!(f, "was dropped ({reason})"),
        }
    }
}

/// What a worker did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Jobs claimed.
    pub claimed: u64,
    /// Successes that the server has.
    pub succeeded: u64,
    /// Failures that the server has.
    pub failed: u64,
    /// Jobs handed back.
    pub released: u64,
    /// Jobs whose lease was lost: nothing was reported, or the report came too late.
    pub lost: u64,
    /// Reports that the server has not answered. With a spool they are in it, and the next run sends them first.
    pub unreported: u64,
    /// How many of these the spool could not keep: their results are lost.
    pub unkept: u64,
    /// Handlers that did not yield and still run. Their leases will expire.
    pub abandoned: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { claimed, succeeded, failed, released, lost, unreported, unkept, abandoned } = self;
        write!(f, "{claimed} claimed, {succeeded} succeeded, {failed} failed, {released} released")?;
        let rest = [
            (lost, "lost"),
            (unreported, "not reported"),
            (unkept, "not kept either"),
            (abandoned, "abandoned"),
        ];
        for (count, what) in rest {
            if *count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        Ok(())
    }
}

/// Why a worker ended by itself.
#[derive(Debug)]
#[non_exhaustive]
pub enum WorkerError {
    /// It was set up in a way that cannot work.
    Setup(String),
    /// The spool cannot be used.
    Spool {
        /// Its directory.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The server refuses to give this worker jobs: its token, or its streams.
    Refused {
        /// What the server said.
        error: ClientError,
        /// What was done until then.
        summary: Box<Summary>,
    },
}

impl fmt::Display for WorkerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setup(why) => f.write_str(why),
            Self::Spool { path, why } => write!(f, "cannot use the spool {}: {why}", path.display()),
            Self::Refused { error, .. } => write!(f, "the server refused the claim: {error}"),
        }
    }
}

impl std::error::Error for WorkerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Refused { error, .. } => Some(error),
            _ => None,
        }
    }
}

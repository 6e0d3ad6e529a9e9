//! What operators ask for and are answered.

use fernery_core::{JobId, JobStatus, StreamName, Timestamp};

/// What became of a wish to cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelAnswer {
    /// It has ended now.
    Cancelled,
    /// The holder is told with its next heartbeat.
    Requested,
    /// It had ended before.
    Ended(JobStatus),
    /// There is no such job.
    Unknown,
}

/// What became of a wish to start over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAnswer {
    /// It waits again, counters from zero.
    Requeued,
    /// Only DEAD and CANCELLED jobs can start over.
    NotEnded(JobStatus),
    /// Its unique key is taken by another unfinished job.
    KeyTaken,
    /// There is no such job.
    Unknown,
}

/// Which dead letters are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadFilter {
    /// These jobs only; empty is all.
    pub job_ids: Vec<JobId>,
    /// Only from this stream.
    pub stream: Option<StreamName>,
    /// Only with this error code.
    pub code: Option<String>,
    /// Buried before this instant only.
    pub before: Option<Timestamp>,
}

/// A DEAD job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The job.
    pub job_id: JobId,
    /// Where it came from.
    pub stream: StreamName,
    /// When it was given up.
    pub buried_at: Timestamp,
    /// Why, in the engine's words.
    pub reason: String,
    /// Why, in the last error's code.
    pub code: String,
    /// The error of its last attempt, a JSON document.
    pub error: Option<String>,
}

/// Dead jobs of one stream with one error code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadGroup {
    /// The one that died last.
    pub newest: DeadLetter,
    /// When the first of them died.
    pub oldest_at: Timestamp,
    /// How many they are.
    pub jobs: u64,
    /// When each of them died, oldest first.
    pub died_at: Vec<Timestamp>,
}

/// Dead jobs by what they died of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadGroups {
    /// The group with the newest death first.
    pub groups: Vec<DeadGroup>,
    /// How many of the newest deaths were looked at.
    pub looked_at: u64,
    /// When the first of these was: what died before is not in the groups.
    pub looked_from: Option<Timestamp>,
}

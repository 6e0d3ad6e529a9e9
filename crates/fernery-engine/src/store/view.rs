//! What readers see: jobs with their attempts, lists, streams.

use fernery_core::{
    AttemptId, AttemptOutcome, Holding, JobId, JobStatus, Progress, StreamName, Timestamp, limits,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::time::Duration;

/// What most readers need of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobBrief {
    /// The job.
    pub job_id: JobId,
    /// Where it waits or waited.
    pub stream: StreamName,
    /// Where it stands.
    pub status: JobStatus,
    /// How often it may fail.
    pub max_attempts: u32,
    /// When it was stored.
    pub created_at: Timestamp,
    /// From when on it may start; the next attempt's time while it waits for a retry.
    pub run_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// Whose it is, where that limits who may read it.
    pub producer: Option<String>,
}

/// One attempt, open or closed.
#[derive(Clone, Debug)]
pub struct AttemptView {
    /// The attempt.
    pub attempt_id: AttemptId,
    /// Counts every claim.
    pub attempt_no: u32,
    /// Who held it.
    pub worker_id: String,
    /// When it was claimed.
    pub started_at: Timestamp,
    /// When it ended; `None` while it runs.
    pub finished_at: Option<Timestamp>,
    /// How it ended; `None` while it runs.
    pub outcome: Option<AttemptOutcome>,
    /// Why it did not succeed.
    pub error: Option<Box<RawValue>>,
    /// What it made.
    pub result: Option<Box<RawValue>>,
    /// When the holder was last heard, while it runs.
    pub heartbeat_at: Option<Timestamp>,
    /// Until when it holds, while it runs.
    pub expires_at: Option<Timestamp>,
    /// How far the holder says it is, while it runs.
    pub progress: Option<Progress>,
    /// The order of its last write.
    pub claim_version: i64,
}

/// Who works on a job now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The worker.
    pub worker_id: String,
    /// Counts every claim.
    pub attempt_no: u32,
    /// When it claimed the job.
    pub started_at: Timestamp,
    /// How far it says it is, if it said so.
    pub progress: Option<Progress>,
}

impl AttemptView {
    /// An open attempt, as its lease has it.
    pub fn open(held: Holding, progress: Option<Progress>) -> Self {
        Self {
            attempt_id: held.attempt_id,
            attempt_no: held.attempt_no,
            worker_id: held.worker_id,
            started_at: held.started_at,
            finished_at: None,
            outcome: None,
            error: None,
            result: None,
            heartbeat_at: Some(held.heartbeat_at),
            expires_at: Some(held.expires_at),
            progress,
            claim_version: held.claim_version,
        }
    }
}

/// Everything about one job.
#[derive(Clone, Debug)]
pub struct JobView {
    /// The short form.
    pub brief: JobBrief,
    /// What the worker gets.
    pub payload: Box<RawValue>,
    /// At most one unfinished job has this key.
    pub unique_key: Option<String>,
    /// How long one attempt may take.
    pub timeout: Option<Duration>,
    /// An operator wants it ended.
    pub cancel_requested: bool,
    /// All attempts, oldest first, the open one last.
    pub attempts: Vec<AttemptView>,
}

/// Which jobs to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// In this state only.
    pub status: Option<JobStatus>,
    /// In this stream only.
    pub stream: Option<StreamName>,
    /// Only jobs of this producer.
    pub producer: Option<String>,
}

impl JobFilter {
    pub(super) fn matches(&self, job: &JobBrief) -> bool {
        self.status.is_none_or(|status| status == job.status)
            && self.stream.as_ref().is_none_or(|stream| *stream == job.stream)
            && self.producer.as_ref().is_none_or(|producer| Some(producer) == job.producer.as_ref())
    }
}

/// Which ids of jobs are searched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdsLike {
    /// From this one on.
    pub from: JobId,
    /// Up to this one, inclusive.
    pub to: JobId,
    /// What their text ends with.
    pub tail: String,
    /// Only jobs of this producer.
    pub producer: Option<String>,
    /// How many are looked at.
    pub looked_at_max: i64,
}

/// Ids of jobs that were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdsFound {
    /// In order.
    pub ids: Vec<JobId>,
    /// More were between the bounds than are looked at: there may be others.
    pub beyond: bool,
}

impl IdsFound {
    /// Of `looked` ids; where there are as many as were asked for, the others do not matter.
    pub(crate) fn new(ids: Vec<JobId>, looked: i64, (part, limit): (&IdsLike, usize)) -> Self {
        let beyond = looked > part.looked_at_max && ids.len() < limit;
        Self { ids, beyond }
    }
}

/// Where the next page starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cursor {
    /// Below this job, newest first.
    Below(JobId),
    /// After this place among the ready jobs.
    Ready {
        /// The stream.
        stream: StreamName,
        /// The place in it.
        seq: i64,
    },
    /// After this job among the scheduled ones; `None` is their start.
    Scheduled(Option<JobId>),
    /// Below this dead job, newest death first.
    Buried {
        /// When it died.
        at: Timestamp,
        /// The job.
        job_id: JobId,
    },
}

/// One page of a list.
#[derive(Clone, Debug)]
pub struct Page<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// Where the next page starts; `None` at the end. A page may be short and still have a next one.
    pub next: Option<Cursor>,
}

/// The counts of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamCounts {
    /// Claimable now.
    pub ready: i64,
    /// Waiting for their time.
    pub scheduled: i64,
    /// Under a lease.
    pub running: i64,
    /// Ended so, ever.
    pub succeeded: i64,
    /// In the dead-letter queue.
    pub dead: i64,
    /// Ended so, ever, and not started over.
    pub cancelled: i64,
}

impl StreamCounts {
    /// Adds those of another stream.
    pub fn add(&mut self, other: &Self) {
        self.ready += other.ready;
        self.scheduled += other.scheduled;
        self.running += other.running;
        self.succeeded += other.succeeded;
        self.dead += other.dead;
        self.cancelled += other.cancelled;
    }
}

/// One stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamView {
    /// Its name.
    pub name: StreamName,
    /// Its counts.
    pub counts: StreamCounts,
    /// Since when its oldest claimable job has waited.
    pub oldest_ready_at: Option<Timestamp>,
    /// Whether nobody may claim from it.
    pub paused: bool,
    /// Whether viewers do not see what its jobs hold.
    pub redact: bool,
}

/// What is to be set for a stream; what is `None` stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamChange {
    /// Whether viewers do not see what its jobs hold.
    pub redact: Option<bool>,
}

/// How many streams there may be before another one can be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// In all.
    pub in_all: usize,
    /// Opened by one token.
    pub of_token: usize,
}

impl Default for StreamLimits {
    fn default() -> Self {
        Self { in_all: limits::STREAMS_MAX, of_token: limits::STREAMS_OF_TOKEN_MAX }
    }
}

/// Whether streams were opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamsOpened {
    /// All of them are there.
    Yes,
    /// There would be too many in all; with one that is new.
    TooManyInAll(StreamName),
    /// There would be too many of this token; with one that is new.
    TooManyOfToken(StreamName),
}

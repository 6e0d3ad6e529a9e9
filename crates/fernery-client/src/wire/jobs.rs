//! What producers ask for and readers get.

use super::schema;
use fernery_core::{AttemptId, AttemptOutcome, JobId, JobStatus, Progress, StreamName, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A short name of one of four streams: `jobs:stream:<priority>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// Before everything else.
    Emergency,
    /// Before normal jobs.
    High,
    /// The default.
    Normal,
    /// When there is time.
    Low,
}

impl Priority {
    /// The stream of this priority.
    pub const fn stream(self) -> &'static str {
        match self {
            Self::Emergency => "jobs:stream:emergency",
            Self::High => "jobs:stream:high",
            Self::Normal => "jobs:stream:normal",
            Self::Low => "jobs:stream:low",
        }
    }
}

/// A job to enqueue. Exactly one of `stream` and `priority`; at most one of `delay_ms` and `run_at`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EnqueueRequest {
    /// The stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Stream>")]
    pub stream: Option<StreamName>,
    /// The stream, by priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// The payload for the worker.
    #[schemars(with = "schema::Object")]
    pub payload: Box<RawValue>,
    /// The job's id, chosen by the producer: a repeated request with the same content returns the same job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Id>")]
    pub job_id: Option<JobId>,
    /// How often the job may fail: 1 to 1000; 5 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000))]
    pub max_attempts: Option<u64>,
    /// Start after this delay at the earliest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// Start at this time at the earliest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Instant>")]
    pub run_at: Option<Timestamp>,
    /// Only one unfinished job may have this key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub unique_key: Option<String>,
    /// How long one attempt may take: 1 to 604800.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 604_800))]
    pub timeout_seconds: Option<u64>,
}

impl EnqueueRequest {
    /// A job with the defaults.
    pub fn new(stream: StreamName, payload: Box<RawValue>) -> Self {
        Self {
            stream: Some(stream),
            priority: None,
            payload,
            job_id: None,
            max_attempts: None,
            delay_ms: None,
            run_at: None,
            unique_key: None,
            timeout_seconds: None,
        }
    }
}

/// A job that was enqueued, now or before.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EnqueuedJob {
    /// The job.
    #[schemars(with = "schema::Id")]
    pub job_id: JobId,
    /// The stream.
    #[schemars(with = "schema::Stream")]
    pub stream: StreamName,
    /// The status.
    #[schemars(with = "schema::Status")]
    pub status: JobStatus,
    /// How often the job may fail.
    pub max_attempts: u32,
    /// When it was stored.
    #[schemars(with = "schema::Instant")]
    pub created_at: Timestamp,
    /// The earliest start.
    #[schemars(with = "schema::Instant")]
    pub run_at: Timestamp,
    /// It was there before: under this id, or with this unique key.
    pub duplicate: bool,
}

/// What became of one job of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EnqueueOutcome {
    /// Stored now.
    Created,
    /// The same job was stored before under this id.
    Exists,
    /// Its unique key belongs to an unfinished job, which is the one shown.
    Duplicate,
    /// Its id or key belongs to another job; nothing was stored.
    Conflict,
}

/// One job of an array. A conflict has no more than its `job_id`, if the item named one.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EnqueuedItem {
    /// The outcome.
    pub outcome: EnqueueOutcome,
    /// The job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Id>")]
    pub job_id: Option<JobId>,
    /// The stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Stream>")]
    pub stream: Option<StreamName>,
    /// The status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Status>")]
    pub status: Option<JobStatus>,
    /// How often the job may fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// When it was stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Instant>")]
    pub created_at: Option<Timestamp>,
    /// The earliest start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Instant>")]
    pub run_at: Option<Timestamp>,
    /// It already existed.
    #[serde(default)]
    pub duplicate: bool,
}

/// One answer per job of an array, in order.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EnqueueManyResponse {
    /// The answers.
    pub jobs: Vec<EnqueuedItem>,
}

/// A job as a list shows it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct JobSummary {
    /// The job.
    #[schemars(with = "schema::Id")]
    pub job_id: JobId,
    /// The stream.
    #[schemars(with = "schema::Stream")]
    pub stream: StreamName,
    /// The status.
    #[schemars(with = "schema::Status")]
    pub status: JobStatus,
    /// How often the job may fail.
    pub max_attempts: u32,
    /// When it was stored.
    #[schemars(with = "schema::Instant")]
    pub created_at: Timestamp,
    /// The earliest start.
    #[schemars(with = "schema::Instant")]
    pub run_at: Timestamp,
    /// When it ended.
    #[schemars(with = "Option<schema::Instant>")]
    pub finished_at: Option<Timestamp>,
}

/// One page of jobs.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct JobPage {
    /// The jobs.
    pub jobs: Vec<JobSummary>,
    /// The cursor of the next page; `null` on the last page. A page with few rows may still have a next one.
    pub next_cursor: Option<String>,
}

/// One attempt, open or closed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AttemptDetail {
    /// The attempt.
    #[schemars(with = "schema::Id")]
    pub attempt_id: AttemptId,
    /// Counts every claim.
    pub attempt_no: u32,
    /// Who held it.
    pub worker_id: String,
    /// When it was claimed.
    #[schemars(with = "schema::Instant")]
    pub started_at: Timestamp,
    /// When it ended; `null` while it runs.
    #[schemars(with = "Option<schema::Instant>")]
    pub finished_at: Option<Timestamp>,
    /// How it ended; `null` while it runs.
    #[schemars(with = "Option<schema::Outcome>")]
    pub outcome: Option<AttemptOutcome>,
    /// Why it did not succeed.
    #[schemars(with = "Option<schema::Anything>")]
    pub error: Option<Box<RawValue>>,
    /// The last heartbeat, while it runs.
    #[schemars(with = "Option<schema::Instant>")]
    pub heartbeat_at: Option<Timestamp>,
    /// The end of the lease, while it runs.
    #[schemars(with = "Option<schema::Instant>")]
    pub lease_expires_at: Option<Timestamp>,
    /// The progress, while it runs, if the holder reported some.
    #[schemars(with = "Option<schema::Progress>")]
    pub progress: Option<Progress>,
}

/// Everything about one job.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct JobDetail {
    /// The job.
    #[schemars(with = "schema::Id")]
    pub job_id: JobId,
    /// The stream.
    #[schemars(with = "schema::Stream")]
    pub stream: StreamName,
    /// The status.
    #[schemars(with = "schema::Status")]
    pub status: JobStatus,
    /// The payload for the worker.
    #[schemars(with = "schema::Object")]
    pub payload: Box<RawValue>,
    /// The output.
    #[schemars(with = "Option<schema::Anything>")]
    pub result: Option<Box<RawValue>>,
    /// The error of the last attempt that did not succeed.
    #[schemars(with = "Option<schema::Anything>")]
    pub error: Option<Box<RawValue>>,
    /// All attempts, oldest first, the open one last.
    pub attempts: Vec<AttemptDetail>,
    /// How often the job may fail.
    pub max_attempts: u32,
    /// The earliest start; while it waits for a retry, the time of the next attempt.
    #[schemars(with = "schema::Instant")]
    pub run_at: Timestamp,
    /// When it was stored.
    #[schemars(with = "schema::Instant")]
    pub created_at: Timestamp,
    /// When it ended.
    #[schemars(with = "Option<schema::Instant>")]
    pub finished_at: Option<Timestamp>,
    /// Only one unfinished job may have this key.
    pub unique_key: Option<String>,
    /// How long one attempt may take.
    pub timeout_seconds: Option<u64>,
    /// It is to be cancelled.
    pub cancel_requested: bool,
    /// What the job holds is hidden from you: an operator has set `redact` for its stream. Payload, result, what errors say and notes
    /// of progress are replaced.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
}

/// A job that a worker holds now.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HeldJob {
    /// The job.
    #[schemars(with = "schema::Id")]
    pub job_id: JobId,
    /// The stream.
    #[schemars(with = "schema::Stream")]
    pub stream: StreamName,
    /// Who holds it.
    pub worker_id: String,
    /// Counts every claim.
    pub attempt_no: u32,
    /// When it was claimed.
    #[schemars(with = "schema::Instant")]
    pub started_at: Timestamp,
    /// The last heartbeat.
    #[schemars(with = "schema::Instant")]
    pub heartbeat_at: Timestamp,
    /// The end of the lease.
    #[schemars(with = "schema::Instant")]
    pub lease_expires_at: Timestamp,
    /// It is to be cancelled.
    pub cancel_requested: bool,
}

/// One page of the jobs that workers hold, oldest job first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HeldJobPage {
    /// The jobs.
    pub held: Vec<HeldJob>,
    /// The cursor of the next page; `null` on the last page.
    pub next_cursor: Option<String>,
}

/// Why a job is not running, or what its state is.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExplainResponse {
    /// The job.
    #[schemars(with = "schema::Id")]
    pub job_id: JobId,
    /// The stream.
    #[schemars(with = "schema::Stream")]
    pub stream: StreamName,
    /// The status.
    #[schemars(with = "schema::Status")]
    pub status: JobStatus,
    /// `ended`, `held`, `scheduled`, `stream_paused`, `no_worker` or `waiting`.
    pub code: String,
    /// The same for people.
    pub sentence: String,
    /// held: by whom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// held, scheduled: until when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Instant>")]
    pub until: Option<Timestamp>,
    /// held: whether the holder was asked to cancel it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_requested: Option<bool>,
    /// no_worker: when a worker last polled the stream, as far as the server knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Instant>")]
    pub last_polled_at: Option<Timestamp>,
    /// waiting: how many jobs of its stream can be claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<i64>,
}

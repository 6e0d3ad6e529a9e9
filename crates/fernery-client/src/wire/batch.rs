//! The worker calls for many jobs at once. Every item is answered by itself, in order.

use super::contract::{ErrorReport, LeasedJob};
use super::{FieldProblem, schema};
use fernery_core::{AttemptId, JobId, LeaseToken, Progress, StreamName, Timestamp, WorkerId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Asks for up to `max` jobs.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimManyRequest {
    /// The worker's name. It is recorded; it proves nothing.
    #[schemars(with = "schema::Worker")]
    pub worker_id: WorkerId,
    /// The streams to claim from, in this order.
    #[schemars(with = "schema::Streams")]
    pub streams: Vec<StreamName>,
    /// The maximum number of jobs: 1 to 1000.
    #[schemars(range(min = 1, max = 1_000))]
    pub max: u64,
    /// How long to wait for the first job: 0 to 30000, 5000 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 30_000))]
    pub max_wait_ms: Option<u64>,
}

/// The jobs that were claimed; none if none came in time.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ClaimManyResponse {
    /// The jobs.
    pub jobs: Vec<LeasedJob>,
}

/// Items of one worker.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkerBatch<T> {
    /// The worker's name.
    #[schemars(with = "schema::Worker")]
    pub worker_id: WorkerId,
    /// One to 1000 items.
    #[schemars(length(min = 1, max = 1_000))]
    pub items: Vec<T>,
}

/// One heartbeat.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeartbeatItem {
    /// The job.
    #[schemars(with = "schema::Id")]
    pub job_id: JobId,
    /// The secret from the claim; it proves that the caller holds the lease.
    #[schemars(with = "schema::Id")]
    pub lease_token: LeaseToken,
    /// The progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Progress>")]
    pub progress: Option<Progress>,
}

/// One success.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteItem {
    /// The job.
    #[schemars(with = "schema::Id")]
    pub job_id: JobId,
    /// The attempt.
    #[schemars(with = "schema::Id")]
    pub attempt_id: AttemptId,
    /// The secret from the claim; it proves that the caller holds the lease.
    #[schemars(with = "schema::Id")]
    pub lease_token: LeaseToken,
    /// As in the claim's answer. The server uses the value that it recorded itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// As in the claim's answer. The server uses the value that it recorded itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The output.
    #[schemars(with = "schema::Anything")]
    pub result: Box<RawValue>,
}

/// One failure.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FailItem {
    /// The job.
    #[schemars(with = "schema::Id")]
    pub job_id: JobId,
    /// The attempt.
    #[schemars(with = "schema::Id")]
    pub attempt_id: AttemptId,
    /// The secret from the claim; it proves that the caller holds the lease.
    #[schemars(with = "schema::Id")]
    pub lease_token: LeaseToken,
    /// As in the claim's answer. The server uses the value that it recorded itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// As in the claim's answer. The server uses the value that it recorded itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The error.
    pub error: ErrorReport,
}

/// One job that is returned unfinished.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseItem {
    /// The job.
    #[schemars(with = "schema::Id")]
    pub job_id: JobId,
    /// The attempt.
    #[schemars(with = "schema::Id")]
    pub attempt_id: AttemptId,
    /// The secret from the claim; it proves that the caller holds the lease.
    #[schemars(with = "schema::Id")]
    pub lease_token: LeaseToken,
}

/// The outcome of one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ItemOutcome {
    /// The report was stored.
    Accepted,
    /// The same report was stored before; nothing changed.
    Duplicate,
    /// The caller does not hold the lease, or no longer holds it.
    Stale,
    /// This holder already reported another outcome. For a heartbeat: the lease was extended, but the progress
    /// decreased and was not stored.
    Conflict,
    /// There is no such job or attempt.
    Unknown,
    /// complete of a workorder: the result is not an output bundle. The attempt stays open; send another result.
    Unfit,
}

/// The answer to one item.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ItemAnswer {
    /// The job that the item named.
    #[schemars(with = "schema::Id")]
    pub job_id: JobId,
    /// The attempt that the item named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Id>")]
    pub attempt_id: Option<AttemptId>,
    /// The outcome.
    pub outcome: ItemOutcome,
    /// The attempt is closed in the database; its message may be acknowledged.
    pub ack: bool,
    /// fail and release: the job is queued for another attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requeued: Option<bool>,
    /// fail and release: the job is in the dead-letter queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dlq: Option<bool>,
    /// heartbeat: the new end of the lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Instant>")]
    pub lease_expires_at: Option<Timestamp>,
    /// heartbeat: the server's current time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Instant>")]
    pub server_time: Option<Timestamp>,
    /// heartbeat: the job is to be cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_requested: Option<bool>,
    /// unfit: which parts of the result are wrong, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldProblem>,
}

/// One answer per item, in order.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BatchResponse {
    /// The answers.
    pub items: Vec<ItemAnswer>,
}

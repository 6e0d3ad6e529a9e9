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
    /// What the worker calls itself; recorded, it guards nothing.
    #[schemars(with = "schema::Worker")]
    pub worker_id: WorkerId,
    /// Where to look, in this order.
    #[schemars(with = "schema::Streams")]
    pub streams: Vec<StreamName>,
    /// How many jobs at most: 1 to 1000.
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
    /// What the worker calls itself.
    #[schemars(with = "schema::Worker")]
    pub worker_id: WorkerId,
    /// One to 1000 items.
    #[schemars(length(min = 1, max = 1_000))]
    pub items: Vec<T>,
}

/// One sign of life.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeartbeatItem {
    /// The job.
    #[schemars(with = "schema::Id")]
    pub job_id: JobId,
    /// Proves the holder.
    #[schemars(with = "schema::Id")]
    pub lease_token: LeaseToken,
    /// How far it is.
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
    /// Proves the holder.
    #[schemars(with = "schema::Id")]
    pub lease_token: LeaseToken,
    /// As the claim said; the server goes by what it recorded itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// As the claim said; the server goes by what it recorded itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// What came out.
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
    /// Proves the holder.
    #[schemars(with = "schema::Id")]
    pub lease_token: LeaseToken,
    /// As the claim said; the server goes by what it recorded itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// As the claim said; the server goes by what it recorded itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// What went wrong.
    pub error: ErrorReport,
}

/// One job handed back unfinished.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseItem {
    /// The job.
    #[schemars(with = "schema::Id")]
    pub job_id: JobId,
    /// The attempt.
    #[schemars(with = "schema::Id")]
    pub attempt_id: AttemptId,
    /// Proves the holder.
    #[schemars(with = "schema::Id")]
    pub lease_token: LeaseToken,
}

/// What became of one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ItemOutcome {
    /// Written now.
    Accepted,
    /// Written before by the same report; nothing changed.
    Duplicate,
    /// Not, or no longer, the holder.
    Stale,
    /// This holder already reported another end; for a heartbeat: extended, but its progress went back and is not kept.
    Conflict,
    /// There is no such job or attempt.
    Unknown,
    /// complete of a workorder: the result is no output bundle. The attempt is open still; hand in another.
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
    /// What became of it.
    pub outcome: ItemOutcome,
    /// The attempt is closed in the database; its message may be forgotten.
    pub ack: bool,
    /// fail and release: the job waits for another attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requeued: Option<bool>,
    /// fail and release: the job is in the dead-letter queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dlq: Option<bool>,
    /// heartbeat: until when the lease holds now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Instant>")]
    pub lease_expires_at: Option<Timestamp>,
    /// heartbeat: the server's clock now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Instant>")]
    pub server_time: Option<Timestamp>,
    /// heartbeat: somebody wants the job ended.
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

//! What operators ask for: cancel, retry, the dead-letter queue, streams and tokens.

use super::schema;
use fernery_core::artifact::AzollaId;
use fernery_core::job::stats::StatsRange;
use fernery_core::{JobId, JobStatus, StreamName, Timestamp, words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Cancels a job. The body may be empty.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelRequest {
    /// End it now, even if a worker holds it; the worker's report will be refused.
    #[serde(default)]
    pub force: bool,
}

/// The outcome of a cancellation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CancelOutcome {
    /// It has ended.
    Cancelled,
    /// The holder is told with its next heartbeat.
    Requested,
}

/// The job is cancelled, or will be.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CancelResponse {
    /// The job.
    #[schemars(with = "schema::Id")]
    pub job_id: JobId,
    /// The outcome.
    pub outcome: CancelOutcome,
    /// The status of the job.
    #[schemars(with = "schema::Status")]
    pub status: JobStatus,
}

/// The job is queued again, with counters at zero.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RetryResponse {
    /// The job.
    #[schemars(with = "schema::Id")]
    pub job_id: JobId,
    /// The status of the job.
    #[schemars(with = "schema::Status")]
    pub status: JobStatus,
}

/// A DEAD job.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeadLetterInfo {
    /// The job.
    #[schemars(with = "schema::Id")]
    pub job_id: JobId,
    /// Where it came from.
    #[schemars(with = "schema::Stream")]
    pub stream: StreamName,
    /// When it died.
    #[schemars(with = "schema::Instant")]
    pub buried_at: Timestamp,
    /// The reason: `not_retryable`, `attempts_exhausted`, `lost_too_often` or `released_too_often`.
    pub reason: String,
    /// The code of the last error.
    pub code: String,
    /// What the last error says, shortened to 200 characters; absent where it says nothing, `redacted` where its stream hides it
    /// from you.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// One page of dead letters, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeadLetterPage {
    /// The dead letters.
    pub dead_letters: Vec<DeadLetterInfo>,
    /// The cursor of the next page; `null` on the last page.
    pub next_cursor: Option<String>,
}

/// DEAD jobs of one stream with one error code.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeadLetterGroup {
    /// How many they are, of those that were looked at.
    pub count: u64,
    /// When the first of them died.
    #[schemars(with = "schema::Instant")]
    pub oldest_at: Timestamp,
    /// The one that died last.
    pub newest: DeadLetterInfo,
    /// When they died, if a `range` was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deaths: Option<DeathStats>,
}

/// When the jobs of a group died, within a range of time that ends now. Only jobs that are dead still are counted.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeathStats {
    /// The range.
    #[schemars(with = "schema::Range")]
    pub range: StatsRange,
    /// How long one point is.
    #[schemars(with = "schema::Number")]
    pub point_ms: u64,
    /// Its beginning.
    #[schemars(with = "schema::Instant")]
    pub since: Timestamp,
    /// How many died within it.
    pub total: u64,
    /// The points in which any died, oldest first.
    pub points: Vec<DeathPoint>,
}

/// How many jobs died within a span of time.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeathPoint {
    /// Its beginning.
    #[schemars(with = "schema::Instant")]
    pub at: Timestamp,
    /// How many they are.
    pub dead: u64,
}

/// DEAD jobs by stream and error code, the group with the newest death first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeadLetterGroups {
    /// The groups; at most 200.
    pub groups: Vec<DeadLetterGroup>,
    /// How many of the newest deaths were looked at: at most 2000.
    pub looked_at: u64,
    /// When the first of these was: what died before is not counted. Absent where all were looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Instant>")]
    pub looked_from: Option<Timestamp>,
    /// Whether there are more dead jobs, or more groups.
    pub more: bool,
}

/// A filter for dead jobs; all given conditions must hold.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeadLetterFilter {
    /// Only jobs of this stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Stream>")]
    pub stream: Option<StreamName>,
    /// With this error code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Died before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Instant>")]
    pub before: Option<Timestamp>,
    /// One of these; at most 1000.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Id>", length(max = 1_000))]
    pub job_ids: Vec<JobId>,
}

/// Redrives or purges dead jobs; every dead job only with `all`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeadLetterRequest {
    /// Which ones.
    #[serde(default)]
    pub filter: DeadLetterFilter,
    /// Confirms that an empty filter means every dead job.
    #[serde(default)]
    pub all: bool,
    /// Only count.
    #[serde(default)]
    pub dry_run: bool,
    /// At most this many: 1 to 1000000; without it, all that match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub limit: Option<u64>,
}

/// What was done, or what would be done with `dry_run`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeadLetterResponse {
    /// dry_run: how many match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched: Option<u64>,
    /// How many were redriven or purged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<u64>,
    /// Whether it stopped at the limit.
    pub more: bool,
}

/// One stream.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StreamDetail {
    /// Its name.
    #[schemars(with = "schema::Stream")]
    pub stream: StreamName,
    /// It is paused: nobody can claim from it.
    pub paused: bool,
    /// Viewers do not see what its jobs hold.
    #[serde(default)]
    pub redact: bool,
    /// Queued jobs: ready and scheduled.
    pub depth: i64,
    /// Claimable now.
    pub ready: i64,
    /// Scheduled for later.
    pub scheduled: i64,
    /// Under a lease.
    pub running: i64,
    /// Total number of succeeded jobs.
    pub succeeded: i64,
    /// In the dead-letter queue.
    pub dead: i64,
    /// Total number of cancelled jobs that were not retried.
    pub cancelled: i64,
    /// Since when its oldest claimable job has waited.
    #[schemars(with = "Option<schema::Instant>")]
    pub oldest_ready_at: Option<Timestamp>,
    /// The age of its oldest claimable job.
    #[schemars(with = "Option<schema::Number>")]
    pub oldest_age_ms: Option<u64>,
    /// What happened in it within a `range`, if one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stats: Option<StreamStats>,
}

/// Sets a stream. Absent fields stay unchanged.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamSettings {
    /// Hide from viewers what its jobs hold: payloads, results, what errors say and notes of progress. Operators and the producer of a
    /// job still see them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redact: Option<bool>,
}

/// What happened in a stream within a range of time that ends now. What happened in the last seconds may be missing.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StreamStats {
    /// The range.
    #[schemars(with = "schema::Range")]
    pub range: StatsRange,
    /// How long one point is.
    #[schemars(with = "schema::Number")]
    pub point_ms: u64,
    /// All of the range; `at` is its beginning.
    pub total: StatsPoint,
    /// The points in which anything happened, oldest first.
    pub points: Vec<StatsPoint>,
}

/// What happened in a stream within a span of time. Times are at most a quarter above the true ones, and never below.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StatsPoint {
    /// When it begins.
    #[schemars(with = "schema::Instant")]
    pub at: Timestamp,
    /// Jobs that were enqueued.
    #[schemars(with = "schema::Number")]
    pub enqueued: u64,
    /// Jobs that succeeded.
    #[schemars(with = "schema::Number")]
    pub completed: u64,
    /// Attempts that failed, were lost or timed out.
    #[schemars(with = "schema::Number")]
    pub failed: u64,
    /// Jobs that went to the dead-letter queue.
    #[schemars(with = "schema::Number")]
    pub dead: u64,
    /// Half of the claimed jobs waited at most so long; absent if none was claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Number>")]
    pub wait_p50_ms: Option<u64>,
    /// 95 % of the claimed jobs waited at most so long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Number>")]
    pub wait_p95_ms: Option<u64>,
    /// Half of the attempts took at most so long; absent if none ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Number>")]
    pub run_p50_ms: Option<u64>,
    /// 95 % of the attempts took at most so long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Number>")]
    pub run_p95_ms: Option<u64>,
}

/// One page of streams, sorted by name.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StreamList {
    /// The streams.
    pub streams: Vec<StreamDetail>,
    /// The cursor of the next page; `null` on the last page.
    #[serde(default)]
    pub next_cursor: Option<String>,
}

words!(
    /// What a token may do.
    #[derive(JsonSchema)]
    Role {
        /// Everything.
        Operator = "operator",
        /// The worker endpoints.
        Worker = "worker",
        /// Enqueue, and read its own jobs.
        Producer = "producer",
        /// Read everything.
        Viewer = "viewer",
        /// Query azollas for what their membranes let through, and nothing else.
        Visitor = "visitor",
    }
);

/// Makes a token.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTokenRequest {
    /// What it may do.
    pub role: Role,
    /// A name for people: 1 to 200 printable characters.
    #[schemars(length(min = 1, max = 200))]
    pub name: String,
    /// worker only: the streams it is limited to, as names or as prefixes that end in `*`; empty is all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub streams: Vec<String>,
    /// visitor only, and required there: the azolla of the other server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub azolla_id: Option<AzollaId>,
    /// When it expires; give at most one of this and `expires_in_seconds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Instant>")]
    pub expires_at: Option<Timestamp>,
    /// After how many seconds it expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub expires_in_seconds: Option<u64>,
    /// Its public part, chosen by the caller: 12 hexadecimal digits. A second request with the same one is refused, so that
    /// a request that is sent again makes no second token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[0-9a-f]{12}$"))]
    pub token_id: Option<String>,
}

/// A token as lists show it: never the secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenInfo {
    /// Its public part.
    pub token_id: String,
    /// A name for people.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// The streams it is limited to; empty is all.
    pub streams: Vec<String>,
    /// visitor only: the azolla of the other server.
    #[serde(default)]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub azolla_id: Option<AzollaId>,
    /// When it was made.
    #[schemars(with = "schema::Instant")]
    pub created_at: Timestamp,
    /// When it expires.
    #[schemars(with = "Option<schema::Instant>")]
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    #[schemars(with = "Option<schema::Instant>")]
    pub revoked_at: Option<Timestamp>,
}

/// A new token. The secret is shown here and never again.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NewTokenResponse {
    /// The whole token, to be sent as `Authorization: Bearer …`.
    pub token: String,
    /// The token's entry in the list.
    pub info: TokenInfo,
}

/// All tokens.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TokenList {
    /// The tokens.
    pub tokens: Vec<TokenInfo>,
}

/// The caller's token.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WhoAmI {
    /// The token's public part.
    pub token_id: String,
    /// A name for people.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// The streams it is limited to; empty is all.
    pub streams: Vec<String>,
    /// When it expires.
    #[schemars(with = "Option<schema::Instant>")]
    pub expires_at: Option<Timestamp>,
}

/// The kinds of things that have ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IdKind {
    /// An objective.
    Ticket,
    /// A candidate.
    Candidate,
    /// A capture.
    Capture,
    /// A workorder.
    Workorder,
    /// A run record.
    Run,
    /// A job.
    Job,
}

/// One id that a part of an id means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MeantId {
    /// What it is the id of.
    pub kind: IdKind,
    /// The whole id.
    pub id: String,
}

/// What a part of an id means.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MeantIds {
    /// At most ten of each kind. Where a whole id is given, only what has it.
    pub ids: Vec<MeantId>,
}

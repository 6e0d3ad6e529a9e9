//! What operators ask for: cancel, retry, the dead-letter queue, streams and tokens.

use super::schema;
use fernery_core::{JobId, JobStatus, StreamName, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Ends a job. The body may be empty.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelRequest {
    /// End it now even if a worker holds it; the holder's report is then refused.
    #[serde(default)]
    pub force: bool,
}

/// What became of a wish to cancel.
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
    /// What became of the wish.
    pub outcome: CancelOutcome,
    /// Where the job stands.
    #[schemars(with = "schema::Status")]
    pub status: JobStatus,
}

/// The job waits again, counters from zero.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RetryResponse {
    /// The job.
    #[schemars(with = "schema::Id")]
    pub job_id: JobId,
    /// Where the job stands.
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
    /// When it was given up.
    #[schemars(with = "schema::Instant")]
    pub buried_at: Timestamp,
    /// Why, in the engine's words: `not_retryable`, `attempts_exhausted`, `lost_too_often`, `released_too_often`.
    pub reason: String,
    /// Why, in the last error's code.
    pub code: String,
}

/// One page of dead letters, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeadLetterPage {
    /// The dead letters.
    pub dead_letters: Vec<DeadLetterInfo>,
    /// Where the next page starts; `null` at the end.
    pub next_cursor: Option<String>,
}

/// Which dead letters are meant; all that is given must hold.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeadLetterFilter {
    /// Of this stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Stream>")]
    pub stream: Option<StreamName>,
    /// With this error code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Buried before this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Instant>")]
    pub before: Option<Timestamp>,
    /// One of these; at most 1000.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Id>", length(max = 1_000))]
    pub job_ids: Vec<JobId>,
}

/// Redrives or purges dead letters. All of them only if `all` says so.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeadLetterRequest {
    /// Which ones.
    #[serde(default)]
    pub filter: DeadLetterFilter,
    /// Confirms that an empty filter means every dead letter.
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

/// What was done, or with `dry_run` would be.
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
    /// Nobody may claim from it.
    pub paused: bool,
    /// Jobs that wait: ready and scheduled.
    pub depth: i64,
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
    /// Since when its oldest claimable job has waited.
    #[schemars(with = "Option<schema::Instant>")]
    pub oldest_ready_at: Option<Timestamp>,
    /// How long that is.
    #[schemars(with = "Option<schema::Number>")]
    pub oldest_age_ms: Option<u64>,
}

/// All streams that were ever used.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StreamList {
    /// The streams.
    pub streams: Vec<StreamDetail>,
}

/// What a token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Everything.
    Operator,
    /// The worker endpoints.
    Worker,
    /// Enqueue, and read its own jobs.
    Producer,
    /// Read everything.
    Viewer,
}

impl Role {
    /// All of them.
    pub const ALL: &[Self] = &[Self::Operator, Self::Worker, Self::Producer, Self::Viewer];

    /// As the wire and the database spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Worker => "worker",
            Self::Producer => "producer",
            Self::Viewer => "viewer",
        }
    }
}

impl std::str::FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().copied().find(|role| role.as_str() == text);
        found.ok_or_else(|| "expected one of operator, worker, producer, viewer".to_string())
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Makes a token.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTokenRequest {
    /// What it may do.
    pub role: Role,
    /// What a person calls it: 1 to 200 printable characters.
    #[schemars(length(min = 1, max = 200))]
    pub name: String,
    /// worker only: the streams it is limited to, as names or as prefixes that end in `*`; empty is all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub streams: Vec<String>,
    /// From when on it is refused; at most one of this and `expires_in_seconds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Instant>")]
    pub expires_at: Option<Timestamp>,
    /// After how long it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub expires_in_seconds: Option<u64>,
}

/// A token as lists show it: never the secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenInfo {
    /// Its public part.
    pub token_id: String,
    /// What a person calls it.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// The streams it is limited to; empty is all.
    pub streams: Vec<String>,
    /// When it was made.
    #[schemars(with = "schema::Instant")]
    pub created_at: Timestamp,
    /// From when on it is refused.
    #[schemars(with = "Option<schema::Instant>")]
    pub expires_at: Option<Timestamp>,
    /// When it was taken back.
    #[schemars(with = "Option<schema::Instant>")]
    pub revoked_at: Option<Timestamp>,
}

/// A new token. The secret is shown here and never again.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NewTokenResponse {
    /// The whole token, to be sent as `Authorization: Bearer …`.
    pub token: String,
    /// What is kept of it.
    pub info: TokenInfo,
}

/// All tokens.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TokenList {
    /// The tokens.
    pub tokens: Vec<TokenInfo>,
}

/// Who the server takes the caller for.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WhoAmI {
    /// The token's public part.
    pub token_id: String,
    /// What a person calls it.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// The streams it is limited to; empty is all.
    pub streams: Vec<String>,
    /// From when on it is refused.
    #[schemars(with = "Option<schema::Instant>")]
    pub expires_at: Option<Timestamp>,
}

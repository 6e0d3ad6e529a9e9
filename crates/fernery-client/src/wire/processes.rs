//! The processes that serve one database.

use super::schema;
use fernery_core::{StreamName, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A live process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessInfo {
    /// The id of this process.
    #[schemars(with = "schema::Id")]
    pub process_id: String,
    /// The machine it runs on.
    pub host: String,
    /// Its process id (PID).
    #[schemars(with = "schema::Number")]
    pub pid: u32,
    /// Where it listens.
    pub url: String,
    /// The version of the program.
    pub version: String,
    /// The schema version of the program.
    #[schemars(with = "schema::Number")]
    pub schema_version: i32,
    /// How long a lease from this process lasts.
    #[schemars(with = "schema::Number")]
    pub lease_ttl_ms: u64,
    /// How often its workers must send a heartbeat.
    #[schemars(with = "schema::Number")]
    pub heartbeat_interval_ms: u64,
    /// How often its reaper looks for expired leases.
    #[schemars(with = "schema::Number")]
    pub reap_interval_ms: u64,
    /// The transport of its messages: `none`, or `redis` with host, port, database, group and who acknowledges.
    pub transport: String,
    /// When it started.
    #[schemars(with = "schema::Instant")]
    pub started_at: Timestamp,
    /// When it last reported that it is alive.
    #[schemars(with = "schema::Instant")]
    pub seen_at: Timestamp,
}

/// The live processes, oldest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProcessList {
    /// The processes.
    pub processes: Vec<ProcessInfo>,
}

/// A worker that asked this process for jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PollerInfo {
    /// The worker.
    pub worker_id: String,
    /// The streams that it asked for last, in its order.
    #[schemars(with = "Vec<schema::Stream>")]
    pub streams: Vec<StreamName>,
    /// When this process last heard a claim of it begin or end.
    #[schemars(with = "schema::Instant")]
    pub heard_at: Timestamp,
    /// Whether a claim of it waits for a job now.
    pub waiting: bool,
}

/// The workers that asked this process for jobs in the last 10 minutes, by name. Other processes have others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PollerList {
    /// The workers; at most 1000: of more, those that were silent for longest are forgotten.
    pub pollers: Vec<PollerInfo>,
}

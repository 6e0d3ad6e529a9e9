//! The processes that serve one database.

use super::schema;
use fernery_core::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A process that is alive, as it tells of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessInfo {
    /// Of this run of it.
    #[schemars(with = "schema::Id")]
    pub process_id: String,
    /// The machine it runs on.
    pub host: String,
    /// Its number there.
    #[schemars(with = "schema::Number")]
    pub pid: u32,
    /// Where it listens.
    pub url: String,
    /// The version of the program.
    pub version: String,
    /// The version of the schema that the program knows.
    #[schemars(with = "schema::Number")]
    pub schema_version: i32,
    /// How long a claim or a heartbeat at this process holds.
    #[schemars(with = "schema::Number")]
    pub lease_ttl_ms: u64,
    /// How often it tells workers to heartbeat.
    #[schemars(with = "schema::Number")]
    pub heartbeat_interval_ms: u64,
    /// How often it looks for expired leases.
    #[schemars(with = "schema::Number")]
    pub reap_interval_ms: u64,
    /// Who carries its messages: `none`, or `redis` with host, port, database, group and who acknowledges.
    pub transport: String,
    /// When it started.
    #[schemars(with = "schema::Instant")]
    pub started_at: Timestamp,
    /// When it last said that it is there.
    #[schemars(with = "schema::Instant")]
    pub seen_at: Timestamp,
}

/// The processes that are alive, oldest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProcessList {
    /// The processes.
    pub processes: Vec<ProcessInfo>,
}

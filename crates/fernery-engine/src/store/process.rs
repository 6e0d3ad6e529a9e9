//! The processes that serve one database, by their own reports. Only for information: the lease protects a job, not
//! this list.

use fernery_core::Timestamp;
use std::time::Duration;
use uuid::Uuid;

/// What a process says of itself. It stays the same for as long as the process runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// The id of this run; the next run has another.
    pub process_id: Uuid,
    /// The machine it runs on.
    pub host: String,
    /// Its number there.
    pub pid: u32,
    /// Where it listens.
    pub url: String,
    /// The version of the program.
    pub version: String,
    /// The version of the schema that the program knows.
    pub schema_version: i32,
    /// How long a claim or a heartbeat at this process holds.
    pub lease_ttl: Duration,
    /// How often it tells workers to heartbeat.
    pub heartbeat_interval: Duration,
    /// How often it looks for expired leases.
    pub reap_interval: Duration,
    /// Who carries its messages: `none`, or `redis` with host, port, database, group and who acknowledges.
    pub transport: String,
    /// When it started, by the clock that decides expiry.
    pub started_at: Timestamp,
}

impl Process {
    /// What a person finds it by.
    pub fn name(&self) -> String {
        format!("{}:{}", self.host, self.pid)
    }
}

/// A process that is alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivingProcess {
    /// What it says of itself.
    pub process: Process,
    /// When it last said so.
    pub seen_at: Timestamp,
}

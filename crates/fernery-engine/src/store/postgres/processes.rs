//! The processes that serve this database, by its own clock.

use super::PostgresStore;
use super::rows::{At, Param, cell, count, instant, millis};
use crate::error::{StoreError, StoreResult};
use crate::store::{LivingProcess, Process, Processes};
use async_trait::async_trait;
use fernery_core::limits;
use std::time::Duration;
use tokio_postgres::Row;
use uuid::Uuid;

/// The version of the schema from which on there is a table of processes.
pub(super) const SINCE_SCHEMA: i32 = 5;

/// Its parameter is [`alive_ms`].
pub(super) const ALIVE: &str = include_str!("sql/processes_alive.sql");

pub(super) fn alive_ms() -> i64 {
    millis(limits::PROCESS_ALIVE)
}

#[async_trait]
impl Processes for PostgresStore {
    async fn attend(&self, process: Process) -> StoreResult<()> {
        let pid = i32::try_from(process.pid).unwrap_or(i32::MAX);
        let (ttl, heartbeat, reap) =
            (millis(process.lease_ttl), millis(process.heartbeat_interval), millis(process.reap_interval));
        let (started_at, forgotten_ms) = (At(process.started_at), millis(limits::PROCESS_FORGOTTEN));
        let params: [Param<'_>; 12] = [
            &process.process_id,
            &process.host,
            &pid,
            &process.url,
            &process.version,
            &process.schema_version,
            &ttl,
            &heartbeat,
            &reap,
            &process.transport,
            &started_at,
            &forgotten_ms,
        ];
        // The write is idempotent, so it is retried after a lost answer.
        self.read(include_str!("sql/process_attend.sql"), &params).await.map(drop)
    }

    async fn leave(&self, process_id: Uuid) -> StoreResult<()> {
        self.read(include_str!("sql/process_leave.sql"), &[&process_id]).await.map(drop)
    }

    async fn processes(&self) -> StoreResult<Vec<LivingProcess>> {
        self.read(ALIVE, &[&alive_ms()]).await?.iter().map(living).collect()
    }
}

/// A row of [`ALIVE`].
pub(super) fn living(row: &Row) -> StoreResult<LivingProcess> {
    Ok(LivingProcess {
        process: Process {
            process_id: cell(row, "process_id")?,
            host: cell(row, "host")?,
            pid: count(row, "pid")?,
            url: cell(row, "url")?,
            version: cell(row, "version")?,
            schema_version: cell(row, "schema_version")?,
            lease_ttl: span(row, "lease_ttl_ms")?,
            heartbeat_interval: span(row, "heartbeat_interval_ms")?,
            reap_interval: span(row, "reap_interval_ms")?,
            transport: cell(row, "transport")?,
            started_at: instant(row, "started_at")?,
        },
        seen_at: instant(row, "seen_at")?,
    })
}

fn span(row: &Row, column: &str) -> StoreResult<Duration> {
    let ms: i64 = cell(row, column)?;
    let negative = |_| StoreError::Corrupt(format!("a process row has an invalid duration of {ms} ms"));
    u64::try_from(ms).map(Duration::from_millis).map_err(negative)
}

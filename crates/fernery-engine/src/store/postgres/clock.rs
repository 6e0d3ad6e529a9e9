//! Whether the database's clock can be trusted. Every process checks it and saves the newest plausible time.

use super::PostgresStore;
use super::rows::{At, cell, instant, maybe_instant};
use crate::clock_step::{Between, Doubt, Reading, judge};
use crate::door::Boot;
use crate::error::{StoreError, StoreResult};
use crate::store::Clock;
use async_trait::async_trait;
use fernery_core::Timestamp;
use std::time::Duration;
use tokio_postgres::Row;

/// How often a process keeps the instant that is current.
pub(super) const KEPT_EVERY: Duration = Duration::from_secs(60);
/// The version of the schema from which on there is a kept instant.
pub(super) const SINCE_SCHEMA: i32 = 9;
/// A row of it is what [`judged`] reads.
pub(super) const KEPT: &str = include_str!("sql/clock_kept.sql");

/// What the database's clock says, and why it cannot be believed. The machine of this process may not be the one that the
/// instant was kept by: then nothing is known about the time in between.
pub(super) fn judged(row: &Row) -> StoreResult<(Reading, Option<Doubt>)> {
    let now = Reading { at: instant(row, "now_at")?, boot: Boot::system() };
    let Some(at) = maybe_instant(row, "newest_at")? else { return Ok((now, None)) };
    let kept = Reading { at, boot: Boot { id: cell(row, "boot")?, up_ms: cell(row, "up_ms")? } };
    Ok((now, judge(&kept, &now, Between::default())))
}

#[async_trait]
impl Clock for PostgresStore {
    async fn now(&self) -> StoreResult<Timestamp> {
        let rows = self.read(include_str!("sql/now.sql"), &[]).await?;
        let row = rows.first().ok_or_else(|| StoreError::Corrupt("the database returned no time".into()))?;
        instant(row, 0)
    }

    fn lease_time(&self) -> Timestamp {
        self.shared.expiries.now().unwrap_or_else(crate::door::wall_clock)
    }

    async fn try_write(&self) -> StoreResult<()> {
        self.write_once(include_str!("sql/clock_try.sql"), &[]).await.map(drop)
    }

    async fn clock_doubt(&self) -> StoreResult<Option<Doubt>> {
        Ok(self.clock_judged().await?.1)
    }

    async fn confirm_clock(&self) -> StoreResult<()> {
        let (now, _) = self.clock_judged().await?;
        self.keep_reading(now).await
    }
}

impl PostgresStore {
    pub(super) async fn clock_judged(&self) -> StoreResult<(Reading, Option<Doubt>)> {
        let rows = self.read(KEPT, &[]).await?;
        let none = || StoreError::Corrupt("the table fernery.clock has no row".into());
        judged(rows.first().ok_or_else(none)?)
    }

    /// Keeps what the clock says, unless it is in doubt.
    pub(super) async fn keep_clock(&self) -> StoreResult<()> {
        match self.clock_judged().await? {
            (now, None) => self.keep_reading(now).await,
            (_, Some(_)) => Ok(()),
        }
    }

    pub(super) async fn keep_reading(&self, now: Reading) -> StoreResult<()> {
        let (at, Boot { id, up_ms }) = (At(now.at), now.boot);
        // The write is idempotent, so it is retried after a lost answer.
        self.read(include_str!("sql/clock_keep.sql"), &[&at, &id, &up_ms]).await.map(drop)
    }
}

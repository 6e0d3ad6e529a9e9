//! Ends attempts that nobody reports, because their leases ran out or a restore fences them. The reaper comes for all of them,
//! a claim for those of its own streams; both settle by the same code.

use super::connection::retry::{Tries, Trouble};
use super::rows::{At, LEASE_COLUMNS, cell, holding, instant, maybe_instant, millis, rows_limit};
use super::settle::{Decided, HolderReport, apply_and_commit};
use super::{PostgresStore, Shared};
use crate::error::{StoreError, StoreResult};
use crate::store::expiry::{Bound, Found, Look, OfStream, Settled};
use crate::store::reaping::{Step, go_through};
use crate::store::{Pass, Reap};
use async_trait::async_trait;
use fernery_core::job::settle::Ending;
use fernery_core::{StreamName, Timestamp, limits};
use std::time::Duration;
use uuid::Uuid;

#[async_trait]
impl Reap for PostgresStore {
    async fn reap(&self, limit: usize) -> StoreResult<Pass> {
        let look = self.shared.expiries.look().await;
        let pass = self.shared.end_unreported(Which::Expired, limit).await?;
        let settled = if pass.full { Settled::Unfinished } else { Settled::All };
        if let Err(trouble) = self.shared.look_for_expiries(look, settled).await {
            // The settled leases stay settled; only the time of the next expiry is unknown now.
            pass.tell_reaped();
            return Err(trouble.into_error());
        }
        Ok(pass)
    }

    fn next_expiry(&self) -> Option<Duration> {
        Some(self.shared.expiries.wait())
    }
}

/// Which leases are ended without a report.
#[derive(Clone, Copy)]
pub(super) enum Which<'a> {
    Expired,
    ExpiredOf(&'a [StreamName]),
    All,
}

impl Shared {
    pub(super) async fn end_unreported(&self, which: Which<'_>, limit: usize) -> StoreResult<Pass> {
        go_through(limit, limit, |after, size| self.end_some(which, after, size)).await
    }

    /// Settles expired leases of streams that a claim asks for, unless another claim has done so since `bound`.
    pub(super) async fn take_expired(&self, streams: &[StreamName], bound: Bound) -> Result<(), Trouble> {
        let Some(look) = self.expiries.look_after(bound).await else { return Ok(()) };
        let pass = self.end_unreported(Which::ExpiredOf(streams), limits::REAP_BATCH).await?;
        pass.tell_reaped();
        self.look_for_expiries(look, if pass.full { Settled::Unfinished } else { Settled::Of(streams) }).await
    }

    async fn look_for_expiries(&self, look: Look<'_>, settled: Settled<'_>) -> Result<(), Trouble> {
        let session = self.pool.session().await?;
        let took_ms = millis(look.since.elapsed());
        let rows = session.query(include_str!("sql/leases_next.sql"), &[&took_ms]).await?;
        drop(session);
        let now = rows.first().map_or(Ok(Timestamp::default()), |row| instant(row, 0))?;
        let mut leases = Vec::with_capacity(rows.len());
        for row in &rows {
            if let Some(name) = cell::<Option<&str>>(row, 1)? {
                let (next, overdue) = (maybe_instant(row, 2)?, maybe_instant(row, 3)?);
                leases.push(OfStream { stream: StreamName::stored(name), next, overdue });
            }
        }
        look.ended(Found { now, leases, settled, others: Some(self.settings.lease_ttl) });
        Ok(())
    }

    async fn end_some(&self, which: Which<'_>, after: Option<Uuid>, size: usize) -> StoreResult<Step<Uuid>> {
        let mut tries = Tries::new(self.settings.chance);
        loop {
            match self.end_next(which, after, size).await {
                Ok(step) => return Ok(step),
                Err(trouble) => tries.again_if_undone(trouble).await?,
            }
        }
    }

    /// Ends the attempts of up to `size` leases after this one.
    async fn end_next(
        &self,
        which: Which<'_>,
        after: Option<Uuid>,
        size: usize,
    ) -> Result<Step<Uuid>, Trouble> {
        let (all, ending, streams) = match which {
            Which::Expired => (false, Ending::Expired, None),
            Which::ExpiredOf(streams) => (false, Ending::Expired, Some(streams)),
            Which::All => (true, Ending::Released, None),
        };
        let names: Option<Vec<&str>> = streams.map(|names| names.iter().map(StreamName::as_str).collect());
        let session = self.pool.session().await?;
        let sql = include_str!("sql/leases_expired.sql");
        let rows = session.begin_with("BEGIN", sql, &[&rows_limit(size), &all, &after, &names]).await?;
        let last = rows.last().map(|row| cell(row, 0)).transpose()?;
        let mut step = Step { last, seen: rows.len(), moved: 0, spoiled: None };
        let mut decided = Vec::with_capacity(rows.len());
        for row in &rows {
            let now: At = cell(row, LEASE_COLUMNS)?;
            match holding(row) {
                Ok(held) => {
                    decided.push(Decided::new(held, ending, HolderReport::NONE, now.0, &self.settings))
                }
                // The others must not wait for this one.
                Err(error) => tracing::error!(%error, "skipped a lease whose row is corrupt"),
            }
        }
        if decided.is_empty() {
            session.rollback().await?;
            return Ok(step);
        }
        crate::door::failpoint("reaping");
        match apply_and_commit(&session, &decided).await {
            Ok(after) => {
                crate::door::failpoint("reaped");
                drop(session);
                self.announce(after);
                step.moved = decided.len();
            }
            Err(Trouble::Final(error @ StoreError::Corrupt(_))) => step.spoiled = Some(error),
            Err(trouble) => return Err(trouble),
        }
        Ok(step)
    }
}

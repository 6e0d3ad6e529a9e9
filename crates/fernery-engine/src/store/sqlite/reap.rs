//! Ends attempts that nobody reports, because their leases ran out or a restore fences them. The reaper comes for all of them,
//! a claim for those of its own streams; both settle by the same code.

use super::rows;
use super::settle::HolderReport;
use super::tx::Tx;
use super::{SqliteStore, lock};
use crate::error::{StoreError, StoreResult};
use crate::store::expiry::{Bound, Found, Look, OfStream, Settled};
use crate::store::reaping::{Step, go_through};
use crate::store::{Pass, Reap};
use async_trait::async_trait;
use fernery_core::job::settle::Ending;
use fernery_core::{StreamName, Timestamp, limits};
use rusqlite::{Connection, Row, params};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use uuid::Uuid;

#[async_trait]
impl Reap for SqliteStore {
    async fn reap(&self, limit: usize) -> StoreResult<Pass> {
        let look = self.expiries.look().await;
        let pass = self.end_unreported(Which::Expired, limit, limit).await?;
        let settled = if pass.full { Settled::Unfinished } else { Settled::All };
        if let Err(error) = self.look_for_expiries(look, settled).await {
            // What was settled is settled. Whoever waits for the next expiry must know that it is not known.
            pass.tell_reaped();
            return Err(error);
        }
        Ok(pass)
    }

    fn next_expiry(&self) -> Option<Duration> {
        Some(self.expiries.wait())
    }
}

impl SqliteStore {
    /// Settles expired leases of streams that a claim asks for, unless another claim has done so since `bound`.
    pub(super) async fn take_expired(&self, streams: &Arc<[StreamName]>, bound: Bound) -> StoreResult<()> {
        let Some(look) = self.expiries.look_after(bound).await else { return Ok(()) };
        let which = Which::ExpiredOf(streams.clone());
        let pass = self.end_unreported(which, limits::REAP_BATCH, limits::REAP_BATCH).await?;
        pass.tell_reaped();
        self.look_for_expiries(look, if pass.full { Settled::Unfinished } else { Settled::Of(streams) }).await
    }

    async fn look_for_expiries(&self, look: Look<'_>, settled: Settled<'_>) -> StoreResult<()> {
        let now = self.clock.now();
        let began = now.before(look.since.elapsed());
        // By the writer: others wait for this look, and readers may all be busy for long.
        let leases = self.write(move |tx| expiries(tx.db, began)).await?;
        look.ended(Found { now, leases, settled, others: None });
        Ok(())
    }

    pub(super) async fn end_unreported(&self, which: Which, limit: usize, batch: usize) -> StoreResult<Pass> {
        go_through(limit, batch, |after, size| self.end_next(which.clone(), after, size)).await
    }

    async fn end_next(
        &self,
        which: Which,
        after: Option<LeasePlace>,
        size: usize,
    ) -> StoreResult<Step<LeasePlace>> {
        // Beside the transaction: if that is rolled back, it is known all the same what it met.
        let met = Arc::new(Mutex::new(Step::default()));
        let tell = met.clone();
        let ended = self.write(move |tx| tx.end_next(&which, after.as_ref(), size, &mut lock(&tell))).await;
        let mut step = std::mem::take(&mut *lock(&met));
        match ended {
            Ok(()) => {}
            Err(error @ StoreError::Corrupt(_)) => step.spoiled = Some(error),
            Err(error) => return Err(error),
        }
        Ok(step)
    }
}

impl Tx<'_> {
    /// Ends the attempts of up to `size` leases after a place. What was looked at is kept in `step` whatever comes of it.
    fn end_next(
        &mut self,
        which: &Which,
        after: Option<&LeasePlace>,
        size: usize,
        step: &mut Step<LeasePlace>,
    ) -> StoreResult<()> {
        let (until, ending) = match which {
            Which::Expired | Which::ExpiredOf(_) => (self.now, Ending::Expired),
            Which::All => (Timestamp::from_millis(i64::MAX), Ending::Released),
        };
        *step = Step::default();
        let mut due = Vec::new();
        let mut statement = self.db.prepare_cached(include_str!("sql/leases_expired.sql"))?;
        let after = after.map(|place| &place.0);
        let mut found = statement.query(params![until.as_millis(), size, after, which.streams()])?;
        while let Some(row) = found.next()? {
            step.last = Some(LeasePlace(row.get(0)?));
            step.seen += 1;
            match rows::holding(row) {
                Ok(held) => due.push(held),
                // The others must not wait for this one.
                Err(error) => tracing::error!(%error, "skipped a lease whose row is corrupt"),
            }
        }
        drop(found);
        drop(statement);
        for held in &due {
            self.take_lease_version(held)?;
            self.settle(held, ending, HolderReport::NONE)?;
        }
        step.moved = due.len();
        Ok(())
    }
}

/// When the leases of each stream run out.
fn expiries(db: &Connection, now: Timestamp) -> StoreResult<Vec<OfStream>> {
    let mut statement = db.prepare_cached(include_str!("sql/leases_next.sql"))?;
    let of_stream = |row: &Row<'_>| {
        let (next, overdue) = (rows::maybe_instant(row, 1)?, rows::maybe_instant(row, 2)?);
        Ok(OfStream { stream: rows::stream(row, 0)?, next, overdue })
    };
    Ok(statement.query_map([now.as_millis()], of_stream)?.collect::<Result<_, _>>()?)
}

/// Which leases are ended without a report.
#[derive(Clone)]
pub(super) enum Which {
    Expired,
    ExpiredOf(Arc<[StreamName]>),
    All,
}

impl Which {
    /// The streams as a JSON array, `None` for all of them.
    fn streams(&self) -> Option<String> {
        let Self::ExpiredOf(streams) = self else { return None };
        let names: Vec<&str> = streams.iter().map(StreamName::as_str).collect();
        Some(serde_json::json!(names).to_string())
    }
}

/// The id of a lease, as it is stored: a damaged one must be passed as well.
#[derive(Clone, PartialEq, PartialOrd)]
pub(super) struct LeasePlace(Vec<u8>);

impl fmt::Display for LeasePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Uuid::from_slice(&self.0) {
            Ok(id) => id.fmt(f),
            Err(_) => write!(f, "{:x?}", self.0),
        }
    }
}

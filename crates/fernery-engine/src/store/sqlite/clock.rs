//! The newest timestamp in the file, and whether the clock can be trusted when the file is opened.

use super::SqliteStore;
use super::open;
use super::tx::Tx;
use super::writer::Lane;
use crate::clock_step::{Between, Doubt, Reading, STEP_MAX, judge};
use crate::door::{Boot, LeaseClock};
use crate::error::{StoreError, StoreResult};
use crate::store::Clock;
use async_trait::async_trait;
use fernery_core::Timestamp;
use rusqlite::{Connection, params};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What the file says about the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) newest: Reading,
    /// The clock was in doubt at the last start: since then the file times prove nothing.
    pub(super) in_doubt: bool,
}

pub(super) fn kept(db: &Connection) -> StoreResult<Kept> {
    let newest: i64 = db.query_row(include_str!("sql/newest_instant.sql"), [], |row| row.get(0))?;
    Ok(db.query_row(include_str!("sql/clock_kept.sql"), [], |row| {
        let boot = Boot { id: row.get("boot")?, up_ms: row.get("up_ms")? };
        let newest = Reading { at: Timestamp::from_millis(newest), boot };
        Ok(Kept { newest, in_doubt: row.get("in_doubt")? })
    })?)
}

/// The newest modification or change time of the file; a restored backup is new. Must be read before the file is
/// opened.
pub(super) fn file_time(database: &Path) -> Option<Timestamp> {
    let newest = |path: &Path| {
        let meta = std::fs::metadata(path).ok()?;
        Some(Timestamp::from_millis(meta.mtime().max(meta.ctime()).saturating_mul(1_000)))
    };
    newest(database).max(newest(&open::beside(database, "-wal")))
}

/// Judges a clock against what the file says.
pub(super) fn doubted(kept: &Kept, now: Reading, file_time: Option<Timestamp>) -> Option<Doubt> {
    let at_least = Duration::from_millis(u64::try_from(now.boot.up_ms).unwrap_or(0));
    let between = Between { at_least, seen_at: file_time.filter(|_| !kept.in_doubt) };
    judge(&kept.newest, &now, between)
}

/// Lets the clock go on from the newest instant that the database has seen. One that is implausibly far ahead is held back to
/// where it can be, so that no instant of the future is stored.
pub(super) fn set(db: &Connection, clock: &LeaseClock, file_time: Option<Timestamp>) -> StoreResult<()> {
    let kept = kept(db)?;
    let now = Reading { at: clock.now(), boot: clock.boot() };
    let doubt = doubted(&kept, now, file_time);
    clock.hold_back(doubt.map_or(Duration::ZERO, |doubt| doubt.ahead()));
    clock.not_before(kept.newest.at);
    match keep(db, clock.now(), clock.boot(), doubt.is_some()) {
        // Reading must work on a full disk.
        Err(StoreError::Full(why)) => {
            tracing::warn!(%why, "could not save the newest timestamp: the disk is full");
            Ok(())
        }
        kept => kept,
    }
}

/// Keeps the instant that is current.
pub(super) fn keep(db: &Connection, now: Timestamp, boot: Boot, in_doubt: bool) -> StoreResult<()> {
    let mut statement = db.prepare_cached(include_str!("sql/clock_keep.sql"))?;
    statement.execute(params![now.as_millis(), boot.id, boot.up_ms, in_doubt])?;
    Ok(())
}

#[async_trait]
impl Clock for SqliteStore {
    async fn now(&self) -> StoreResult<Timestamp> {
        Ok(self.clock.now())
    }

    fn lease_time(&self) -> Timestamp {
        self.clock.now()
    }

    async fn calendar(&self) -> StoreResult<Timestamp> {
        Ok(self.clock.calendar())
    }

    async fn try_write(&self) -> StoreResult<()> {
        let writer = self.writer()?;
        self.wrote.store(false, Ordering::Relaxed);
        writer.call(Lane::Other { jobs: 0 }, |tx| tx.keep_clock()).await
    }

    async fn clock_doubt(&self) -> StoreResult<Option<Doubt>> {
        let doubt = Doubt { clock_at: self.clock.calendar(), expected_at: self.clock.now() };
        Ok(Some(doubt).filter(|doubt| self.clock.is_held_back() && doubt.ahead() > STEP_MAX))
    }

    async fn confirm_clock(&self) -> StoreResult<()> {
        self.write(|tx| tx.confirm_clock()).await?;
        self.clock.hold_back(Duration::ZERO);
        Ok(())
    }
}

impl Tx<'_> {
    fn keep_clock(&self) -> StoreResult<()> {
        keep(self.db, self.now, self.clock.boot(), self.clock.is_held_back())
    }

    /// What the calendar says has happened.
    fn confirm_clock(&self) -> StoreResult<()> {
        keep(self.db, self.clock.calendar().max(self.now), self.clock.boot(), false)
    }
}

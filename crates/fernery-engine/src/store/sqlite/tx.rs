//! The writer's transaction: its statements, counts and clock, and what is said to others once it is durable.
//!
//! The verbs lie beside it: `enqueue`, `claim`, `report`, `settle`, `operate`, `maintain`. They load, let `fernery-core` decide, and apply.

use super::enqueue::insert_many_sql;
use super::rows;
use crate::door::{LeaseClock, stop_watch};
use crate::error::{StoreError, StoreResult};
use crate::pipeline::Stage;
use crate::signals::Signals;
use crate::store::{StoreSettings, StreamCounts};
use fernery_core::job::lease::Tally;
use fernery_core::job::stats::Happening;
use fernery_core::{JobId, StreamName, Timestamp};
use rusqlite::{Connection, Statement, params};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Places are reserved in blocks: one write of the mark for this many.
const SEQ_BLOCK: i64 = 1 << 20;
/// How often the log says that the disk is full while it is: as long as it is, every write fails.
const FULL_TOLD_EVERY: Duration = Duration::from_secs(60);

/// The writer's transaction and what it needs between transactions.
pub(super) struct Tx<'c> {
    pub(super) db: &'c Connection,
    pub(super) hot: Hot<'c>,
    pub(super) settings: StoreSettings,
    pub(super) clock: LeaseClock,
    signals: Arc<Signals>,
    pub(super) paused: HashSet<StreamName>,
    next_seq: i64,
    reserved_seq: i64,
    /// Set by an error after which the file must not be trusted until it is opened anew.
    damage: Option<StoreError>,
    /// When the log last said that the disk is full.
    full_told: Option<Instant>,
    /// One instant for the whole transaction.
    pub(super) now: Timestamp,
    changes: HashMap<StreamName, StreamCounts>,
    pub(super) after: AfterCommit,
}

/// What is said to others, once the transaction is durable or, about claimable jobs, just before.
#[derive(Default)]
pub(super) struct AfterCommit {
    pub(super) claimable: HashMap<StreamName, usize>,
    pub(super) ended: Vec<JobId>,
    pub(super) scheduled: bool,
    pub(super) stages: HashSet<Stage>,
    pub(super) happened: Vec<(StreamName, Happening)>,
}

/// The statements of the hot path, prepared once.
pub(super) struct Hot<'c> {
    pub(super) begin: Statement<'c>,
    pub(super) job_insert: Statement<'c>,
    pub(super) jobs_insert_many: Statement<'c>,
    pub(super) ready_insert: Statement<'c>,
    pub(super) ready_insert_many: Statement<'c>,
    pub(super) ready_pick: Statement<'c>,
    pub(super) ready_remove_through: Statement<'c>,
    pub(super) lease_insert: Statement<'c>,
    pub(super) lease_proven: Statement<'c>,
    pub(super) lease_take: Statement<'c>,
    pub(super) lease_renew: Statement<'c>,
    pub(super) lease_renewed: Statement<'c>,
    pub(super) attempt_insert: Statement<'c>,
    stream_add: Statement<'c>,
}

/// A place in line, with what travels with the job.
#[derive(Clone, Copy)]
pub(super) struct Waiting {
    pub(super) claim_version: i64,
    pub(super) attempt_no: u32,
    pub(super) tally: Tally,
}

impl<'c> Tx<'c> {
    pub(super) fn new(
        db: &'c Connection,
        settings: StoreSettings,
        clock: LeaseClock,
        signals: Arc<Signals>,
    ) -> StoreResult<Self> {
        let (jobs_insert_many, ready_insert_many) = insert_many_sql();
        let hot = Hot {
            begin: db.prepare("BEGIN IMMEDIATE")?,
            job_insert: db.prepare(include_str!("sql/job_insert.sql"))?,
            jobs_insert_many: db.prepare(&jobs_insert_many)?,
            ready_insert_many: db.prepare(&ready_insert_many)?,
            ready_insert: db.prepare(include_str!("sql/ready_insert.sql"))?,
            ready_pick: db.prepare(include_str!("sql/ready_pick.sql"))?,
            ready_remove_through: db.prepare(include_str!("sql/ready_remove_through.sql"))?,
            lease_insert: db.prepare(include_str!("sql/lease_insert.sql"))?,
            lease_proven: db.prepare(include_str!("sql/lease_proven.sql"))?,
            lease_take: db.prepare(include_str!("sql/lease_take.sql"))?,
            lease_renew: db.prepare(include_str!("sql/lease_renew.sql"))?,
            lease_renewed: db.prepare(include_str!("sql/lease_renewed.sql"))?,
            attempt_insert: db.prepare(include_str!("sql/attempt_insert.sql"))?,
            stream_add: db.prepare(include_str!("sql/stream_add.sql"))?,
        };
        let paused = db
            .prepare(include_str!("sql/streams_paused.sql"))?
            .query_map([], |row| rows::stream(row, 0))?
            .collect::<Result<_, _>>()?;
        let next_seq = db.query_row(include_str!("sql/mark_get.sql"), ["seq"], |row| row.get(0))?;
        let now = clock.now();
        Ok(Self {
            db,
            hot,
            settings,
            clock,
            signals,
            paused,
            next_seq,
            reserved_seq: next_seq,
            damage: None,
            full_told: None,
            now,
            changes: HashMap::new(),
            after: AfterCommit::default(),
        })
    }

    pub(super) fn refuse_after_damage(&self) -> StoreResult<()> {
        self.damage.clone().map_or(Ok(()), Err)
    }

    pub(super) fn begin(&mut self) -> StoreResult<()> {
        self.now = self.clock.now();
        self.hot.begin.execute([])?;
        Ok(())
    }

    /// Wakes the claims that wait for what the batch has brought, and says how many. They ask this very thread, so they
    /// need not wait for the commit before they set out; should it fail, they find nothing and wait on.
    pub(super) fn wake(&mut self) -> usize {
        self.after.claimable.drain().map(|(stream, jobs)| self.signals.claimable(&stream, jobs)).sum()
    }

    /// Adds what the batch changed to the counts, one row a stream.
    pub(super) fn flush(&mut self) -> StoreResult<()> {
        for (stream, c) in self.changes.drain() {
            let (name, now) = (stream.as_str(), self.now.as_millis());
            let counts =
                params![name, c.ready, c.scheduled, c.running, c.succeeded, c.dead, c.cancelled, now];
            self.hot.stream_add.execute(counts)?;
        }
        Ok(())
    }

    pub(super) fn committed(&mut self) {
        let after = std::mem::take(&mut self.after);
        for job_id in after.ended {
            self.signals.endings.ended(job_id);
        }
        if after.scheduled {
            self.signals.scheduled.notify_one();
        }
        self.signals.nudge(after.stages);
        let now = self.now;
        self.signals
            .unwritten_stats
            .note(after.happened.into_iter().map(|(stream, what)| (stream, now, what)));
    }

    pub(super) fn rolled_back(&mut self, error: &StoreError) {
        self.changes.clear();
        self.after = AfterCommit::default();
        // Sequence numbers given out in a failed transaction are skipped; the mark that covers them may be rolled back
        // too.
        self.reserved_seq = self.next_seq;
        if let Ok(paused) = self.load_paused() {
            self.paused = paused;
        }
        // Told here and not only by callers: some go on without a word, and some are gone before they hear of it.
        if matches!(error, StoreError::Full(_))
            && self.full_told.is_none_or(|told| told.elapsed() >= FULL_TOLD_EVERY)
        {
            tracing::warn!(%error, "the disk is full; a transaction was rolled back");
            self.full_told = Some(stop_watch());
        }
        if matches!(error, StoreError::Broken(_)) {
            tracing::error!(
                %error,
                "the database failed; no write is accepted until the server is restarted"
            );
            self.damage = Some(error.clone());
            self.signals.fail(error.clone());
        }
    }

    fn load_paused(&self) -> StoreResult<HashSet<StreamName>> {
        let mut statement = self.db.prepare_cached(include_str!("sql/streams_paused.sql"))?;
        Ok(statement.query_map([], |row| rows::stream(row, 0))?.collect::<Result<_, _>>()?)
    }

    pub(super) fn count(&mut self, stream: &StreamName) -> &mut StreamCounts {
        self.changes.entry(stream.clone()).or_default()
    }

    pub(super) fn seq(&mut self) -> StoreResult<i64> {
        if self.next_seq >= self.reserved_seq {
            self.reserved_seq = self.next_seq + SEQ_BLOCK;
            let mut statement = self.db.prepare_cached(include_str!("sql/mark_set.sql"))?;
            statement.execute(params!["seq", self.reserved_seq])?;
        }
        self.next_seq += 1;
        Ok(self.next_seq - 1)
    }
}

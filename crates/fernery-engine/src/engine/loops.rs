//! The loops that keep a store moving: each looks for what is due, works until a short pass, and waits for a signal or its time.

use super::{BACKSTOP, Engine, EngineSettings};
use crate::clock_step;
use crate::door;
use crate::error::StoreResult;
use crate::pipeline::Stage;
use crate::pipeline::bulk::{self, BulkStep};
use crate::store::{Pass, Retention};
use fernery_core::limits;
use std::future::Future;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};
use tracing::{debug, info, warn};

/// Claims of one stream that the backstop wakes at once: thousands of them for one forgotten job would only queue up.
const BACKSTOP_NUDGES: usize = 256;
/// The least time between two passes of the reaper: the clock that decides may be behind what this process makes of it.
const REAP_PAUSE: Duration = Duration::from_millis(10);
/// How long a bulk act may wait that another process was asked for, and left behind when it ended.
const BULK_LOOK: Duration = Duration::from_secs(5);
/// How often stream statistics are written: what a process that is killed loses of them.
const STATS_EVERY: Duration = Duration::from_secs(5);

impl Engine {
    pub(super) fn start_loops(&self) -> Vec<JoinHandle<()>> {
        vec![
            self.supervised("reaper", Self::reaper),
            self.supervised("promoter", Self::promoter),
            self.supervised("backstop", Self::backstop),
            self.supervised("retention", Self::retention),
            self.supervised("tidy", Self::tidy),
            self.supervised("inbox", Self::intake),
            self.supervised("stats", Self::stats),
            self.supervised("bulk", Self::bulk),
        ]
    }

    fn supervised<F>(&self, name: &'static str, work: fn(Self) -> F) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let engine = self.clone();
        self.loops().run(name, move || work(engine.clone()))
    }

    async fn reaper(self) {
        let mut failed = false;
        loop {
            match failed {
                false => self.until_reaping().await,
                // The lease that ran out is still there: what is known of leases would say "at once", again and again.
                true => sleep(self.reap_interval()).await,
            }
            let ran = self.until_short("reap", || self.store().reap(limits::REAP_BATCH)).await;
            Pass { moved: ran.moved, full: false }.tell_reaped();
            failed = ran.failed;
        }
    }

    fn reap_interval(&self) -> Duration {
        self.inner.settings.store.chance.jittered(self.inner.settings.reap_interval)
    }

    /// Waits for the next pass: until the interval is over, or the first lease that is known of runs out.
    async fn until_reaping(&self) {
        let (soonest, latest) = (Instant::now() + REAP_PAUSE, Instant::now() + self.reap_interval());
        loop {
            let expiry = self.store().next_expiry().map(|wait| soonest.max(Instant::now() + wait));
            let next = expiry.map_or(latest, |at| at.min(latest));
            if timeout_at(next, self.inner.signals.leased.notified()).await.is_err() {
                return;
            }
        }
    }

    async fn promoter(self) {
        loop {
            let Ran { moved, .. } =
                self.until_short("promote", || self.store().promote(limits::PROMOTE_BATCH)).await;
            let wait = match (self.store().next_due().await, self.store().calendar().await) {
                (Ok(Some(due_at)), Ok(now)) => due_at.since(now).min(Duration::from_secs(5)),
                _ => Duration::from_secs(5),
            };
            // Two looks at a clock may differ: a job that seems due and is not must not make this spin.
            sleep(Duration::from_millis(if moved == 0 && wait.is_zero() { 50 } else { 1 })).await;
            let _ = tokio::time::timeout(wait, self.inner.signals.scheduled.notified()).await;
        }
    }

    async fn intake(self) {
        loop {
            self.until_short("drain fernery.inbox", || self.store().drain_intake(limits::INBOX_BATCH)).await;
            let wait = self.inner.settings.store.chance.jittered(BACKSTOP);
            let _ = tokio::time::timeout(wait, self.inner.signals.intake.notified()).await;
        }
    }

    async fn backstop(self) {
        loop {
            sleep(self.inner.settings.store.chance.jittered(BACKSTOP)).await;
            let streams = self.inner.signals.parking.streams();
            if streams.is_empty() {
                continue;
            }
            match self.store().claimable(streams).await {
                Ok(found) => {
                    for stream in &found {
                        self.inner.signals.claimable(stream, BACKSTOP_NUDGES);
                    }
                }
                Err(error) => debug!(%error, "backstop poll failed; will retry"),
            }
        }
    }

    async fn retention(self) {
        let mut said = false;
        loop {
            // Told at the start, not only when the first pass is due.
            match self.store().clock_doubt().await {
                Ok(None) if said => {
                    info!("the clock is trusted again; retention resumes");
                    said = false;
                }
                Ok(Some(doubt)) if !said => {
                    warn!(
                        %doubt, remedy = clock_step::REMEDY,
                        "the clock may be wrong; retention is suspended"
                    );
                    said = true;
                }
                Ok(_) => {}
                Err(error) => debug!(%error, "could not check the clock; will retry"),
            }
            sleep(self.inner.settings.store.chance.jittered(Duration::from_secs(30))).await;
            if let Err(error) = self.retain().await {
                warn!(%error, "retention failed; will retry in the next pass");
            }
        }
    }

    /// Drops what has ended and is past its retention, unless the clock is in doubt. Says how many jobs that were.
    pub async fn retain(&self) -> StoreResult<usize> {
        let EngineSettings { retention: finished, dead_letter_retention: dead, .. } = self.inner.settings;
        let retention = Retention { finished, dead };
        let mut dropped = 0;
        loop {
            // Each time: on PostgreSQL the clock may step between two batches.
            if self.store().clock_doubt().await?.is_some() {
                return Ok(dropped);
            }
            let Pass { moved, full } = self.store().retain(retention, limits::RETENTION_BATCH).await?;
            dropped += moved;
            if moved > 0 {
                info!(jobs = moved, "deleted finished jobs that are older than the retention period");
            }
            if !full {
                self.forget_streams().await;
                let pass = || self.store().forget_stats(limits::STATS_FORGET_BATCH);
                self.until_short("delete old stream statistics", pass).await;
                let age = self.inner.settings.retention;
                let pass = || bulk::forget(self.store(), age, limits::FORGET_BATCH);
                self.until_short("delete old bulk acts", pass).await;
                return Ok(dropped);
            }
            // Claims go first: retention takes at most a part of the writer's time.
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Forgets streams that were not used since before all jobs that are kept.
    async fn forget_streams(&self) {
        let age = self.inner.settings.retention.saturating_add(limits::STREAM_FORGOTTEN);
        let pass = || self.store().forget_streams(age, limits::FORGET_BATCH);
        let Ran { moved: gone, .. } = self.until_short("remove empty streams", pass).await;
        if gone > 0 {
            info!(streams = gone, "removed streams that have been empty for a long time");
        }
    }

    async fn tidy(self) {
        loop {
            sleep(self.inner.settings.store.chance.jittered(Duration::from_secs(1))).await;
            if let Err(error) = self.store().tidy().await {
                debug!(%error, "tidying failed; will retry in the next pass");
            }
        }
    }

    async fn stats(self) {
        loop {
            sleep(self.inner.settings.store.chance.jittered(STATS_EVERY)).await;
            if let Err(error) = self.keep_stats().await {
                debug!(%error, "could not write stream statistics; will retry in the next pass");
            }
        }
    }

    /// Writes what happened in streams since the last time. What could not be written is written the next time, and counted once.
    pub async fn keep_stats(&self) -> StoreResult<()> {
        let unwritten = &self.inner.signals.unwritten_stats;
        let mut written = unwritten.written.lock().await;
        // Other calls note more meanwhile, the one that writes this among them: that waits for the next pass.
        let mut batches = unwritten.batches();
        loop {
            if written.is_none() && batches > 0 {
                batches -= 1;
                *written = unwritten.take(door::artifact_id());
            }
            let Some(batch) = written.clone() else { return Ok(()) };
            self.store().add_stats(batch).await?;
            *written = None;
        }
    }

    async fn bulk(self) {
        loop {
            let began = Instant::now();
            match self.bulk_step().await {
                // Claims go first: bulk acts take at most half of the writer's time.
                Ok(Some(_)) => sleep(began.elapsed()).await,
                Ok(None) => {
                    let wait = self.inner.settings.store.chance.jittered(BULK_LOOK);
                    let asked_for = &self.inner.signals.stages[Stage::Bulk as usize];
                    let _ = tokio::time::timeout(wait, asked_for.notified()).await;
                }
                Err(error) => {
                    warn!(%error, "a step of a bulk act failed; will retry");
                    sleep(self.inner.settings.store.chance.jittered(BACKSTOP)).await;
                }
            }
        }
    }

    /// Takes the next step of a bulk act, if one is under way.
    pub async fn bulk_step(&self) -> StoreResult<Option<BulkStep>> {
        if !bulk::is_under_way(self.store()).await? {
            return Ok(None);
        }
        let step = bulk::next_step(self.store()).await?;
        door::failpoint("bulk-step-durable");
        Ok(step)
    }

    async fn until_short<F>(&self, what: &'static str, mut pass: impl FnMut() -> F) -> Ran
    where
        F: Future<Output = StoreResult<Pass>>,
    {
        let mut moved = 0;
        loop {
            match pass().await {
                Ok(done) => {
                    moved += done.moved;
                    if !done.full {
                        return Ran { moved, failed: false };
                    }
                }
                Err(error) => {
                    warn!(%error, what, "pass failed; will retry in the next pass");
                    return Ran { moved, failed: true };
                }
            }
        }
    }
}

/// What came of passes until a short one.
struct Ran {
    moved: usize,
    /// The last one failed.
    failed: bool,
}

//! The engine: one store, the claims that wait in front of it, and the loops that keep it moving.

use crate::door;
use crate::error::{StoreError, StoreResult};
use crate::explanation::Explanation;
use crate::signals::Signals;
use crate::store::postgres::PostgresStore;
use crate::store::sqlite::SqliteStore;
use crate::store::{Ask, Claimed, JobView, Pass, Store, StoreSettings};
use crate::substrate::Substrate;

use fernery_core::{JobId, JobStatus, limits};
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};
use tracing::{debug, info, warn};

/// Where the truth is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Database {
    /// A file, for one process.
    Sqlite(PathBuf),
    /// A server, for many.
    Postgres(String),
}

/// Opens a database without the loops that keep it moving.
pub async fn open_store(
    database: &Database,
    settings: StoreSettings,
    signals: Arc<Signals>,
) -> StoreResult<Arc<dyn Store>> {
    Ok(match database {
        Database::Sqlite(path) => {
            Arc::new(SqliteStore::open(path, settings, door::LeaseClock::system(), signals)?)
        }
        Database::Postgres(url) => Arc::new(PostgresStore::open(url, settings, signals).await?),
    })
}

/// How an engine behaves.
#[derive(Clone, Debug)]
pub struct EngineSettings {
    /// Lease and retry.
    pub store: StoreSettings,
    /// How often expired leases are looked for.
    pub reap_interval: Duration,
    /// How long finished jobs are kept.
    pub retention: Duration,
}

impl Default for EngineSettings {
    fn default() -> Self {
        let store = StoreSettings::default();
        Self {
            reap_interval: Self::default_reap_interval(store.lease_ttl),
            store,
            retention: Duration::from_secs(7 * 24 * 3600),
        }
    }
}

impl EngineSettings {
    /// Half the lease, and no more than five seconds.
    pub fn default_reap_interval(lease_ttl: Duration) -> Duration {
        (lease_ttl / 2).min(Duration::from_secs(5))
    }
}

/// A job engine. Cheap to clone; all clones are the same engine.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn Store>,
    signals: Arc<Signals>,
    settings: EngineSettings,
    draining: AtomicBool,
    loops: std::sync::Mutex<Vec<JoinHandle<()>>>,
}

/// How long a claim may go without asking the database, should every nudge be lost.
const BACKSTOP: Duration = Duration::from_secs(1);
/// Claims of one stream that the backstop wakes at once: thousands of them for one forgotten job would only queue up.
const BACKSTOP_NUDGES: usize = 256;
/// A stream that nobody asked for this long has no worker.
const UNPOLLED: Duration = Duration::from_secs(60);

impl Engine {
    /// Opens a database and starts the loops.
    pub async fn open(database: &Database, settings: EngineSettings) -> StoreResult<Self> {
        let signals = Arc::new(Signals::default());
        let store = open_store(database, settings.store.clone(), signals.clone()).await?;
        Ok(Self::start(store, signals, settings))
    }

    /// Starts the loops over a store that is open.
    pub fn start(store: Arc<dyn Store>, signals: Arc<Signals>, settings: EngineSettings) -> Self {
        let engine = Self {
            inner: Arc::new(Inner {
                store,
                signals,
                settings,
                draining: AtomicBool::new(false),
                loops: std::sync::Mutex::default(),
            }),
        };
        let loops = vec![
            tokio::spawn(engine.clone().reaper()),
            tokio::spawn(engine.clone().promoter()),
            tokio::spawn(engine.clone().backstop()),
            tokio::spawn(engine.clone().retention()),
            tokio::spawn(engine.clone().tidy()),
            tokio::spawn(engine.clone().inbox()),
        ];
        *engine.inner.loops.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = loops;
        engine
    }

    /// The store itself, for everything that needs no waiting.
    pub fn store(&self) -> &dyn Store {
        &*self.inner.store
    }

    /// The pipeline's part of the database.
    pub fn substrate(&self) -> Substrate {
        Substrate::new(self.inner.store.clone(), self.inner.signals.clone())
    }

    /// How it was set up.
    pub fn settings(&self) -> &EngineSettings {
        &self.inner.settings
    }

    /// Claims that wait now.
    pub fn waiting_claims(&self) -> usize {
        self.inner.signals.parking.waiting()
    }

    /// Takes up to `ask.max` jobs, waiting up to `wait` for the first. Dropping the future costs no job.
    pub async fn claim(&self, ask: Ask, wait: Duration) -> StoreResult<Vec<Claimed>> {
        let parking = &self.inner.signals.parking;
        if self.is_draining() {
            return Ok(Vec::new());
        }
        parking.polled(&ask.streams, door::wall_clock());
        let deadline = Instant::now() + wait;
        let claimed = self.store().claim(ask.clone()).await?;
        if !claimed.is_empty() || wait.is_zero() {
            return Ok(claimed);
        }
        let streams = ask.streams.clone();
        let parked = parking.park(&streams);
        loop {
            let claimed = self.store().claim(ask.clone()).await?;
            parked.answered(claimed.first().map(|job| &job.stream));
            if !claimed.is_empty() || self.is_draining() {
                return Ok(claimed);
            }
            if timeout_at(deadline, parked.nudged()).await.is_err() {
                return Ok(Vec::new());
            }
        }
    }

    /// Reads a job, waiting up to `wait` for its end.
    pub async fn job(&self, job_id: JobId, wait: Duration) -> StoreResult<Option<JobView>> {
        let deadline = Instant::now() + wait;
        let done = |view: &Option<JobView>| view.as_ref().is_none_or(|v| v.brief.status.is_final());
        let view = self.store().job(job_id).await?;
        if wait.is_zero() || done(&view) {
            return Ok(view);
        }
        let mut ending = self.inner.signals.endings.watch(job_id);
        loop {
            let view = self.store().job(job_id).await?;
            if done(&view) || self.is_draining() {
                return Ok(view);
            }
            // The end may be written by another process, whose signal does not reach this one.
            let look = deadline.min(Instant::now() + BACKSTOP);
            if timeout_at(look, ending.signalled()).await.is_err() && Instant::now() >= deadline {
                return self.store().job(job_id).await;
            }
        }
    }

    /// Says why a job does not run, or where it stands.
    pub async fn explain(&self, job_id: JobId) -> StoreResult<Option<(JobView, Explanation)>> {
        let Some(view) = self.store().job(job_id).await? else { return Ok(None) };
        let now = self.store().now().await?;
        let brief = &view.brief;
        let explanation = match brief.status {
            JobStatus::Succeeded | JobStatus::Dead | JobStatus::Cancelled => Explanation::Ended(brief.status),
            JobStatus::Running => {
                let open = view.attempts.last().filter(|a| a.outcome.is_none());
                match open {
                    Some(attempt) => Explanation::Held {
                        worker_id: attempt.worker_id.clone(),
                        until: attempt.expires_at.unwrap_or(now),
                        expired: attempt.expires_at.is_some_and(|t| t <= now),
                        cancel_requested: view.cancel_requested,
                    },
                    None => Explanation::Ended(brief.status),
                }
            }
            JobStatus::Queued if brief.run_at > now => Explanation::Scheduled { until: brief.run_at },
            JobStatus::Queued => {
                let stream = self.store().stream(brief.stream.clone()).await?;
                let polled = self.inner.signals.parking.last_polled(&brief.stream);
                let nobody = polled.is_none_or(|at| door::wall_clock().since(at) > UNPOLLED);
                match stream {
                    Some(stream) if stream.paused => Explanation::StreamPaused,
                    _ if nobody => Explanation::NoWorker { last_polled_at: polled },
                    Some(stream) => Explanation::Waiting { ready: stream.counts.ready },
                    None => Explanation::Waiting { ready: 0 },
                }
            }
        };
        Ok(Some((view, explanation)))
    }

    /// Waits until the store has failed for good: the process must be started anew.
    pub async fn failed(&self) -> StoreError {
        self.inner.signals.failed().await
    }

    /// No new claims from here on; claims that wait return empty.
    pub fn drain(&self) {
        self.inner.draining.store(true, Ordering::Release);
        self.inner.signals.parking.nudge_all();
    }

    fn is_draining(&self) -> bool {
        self.inner.draining.load(Ordering::Acquire)
    }

    /// Ends the loops and closes the store.
    pub async fn close(&self) {
        self.drain();
        let loops: Vec<_> = {
            let mut loops = self.inner.loops.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            std::mem::take(&mut *loops)
        };
        for task in loops {
            task.abort();
        }
        self.inner.store.close().await;
    }

    async fn reaper(self) {
        loop {
            sleep(self.inner.settings.store.chance.jittered(self.inner.settings.reap_interval)).await;
            let moved = self.until_short("reap", || self.store().reap(limits::REAP_BATCH)).await;
            if moved > 0 {
                info!(leases = moved, "reaped expired leases");
            }
        }
    }

    async fn promoter(self) {
        loop {
            let moved = self.until_short("promote", || self.store().promote(limits::PROMOTE_BATCH)).await;
            let wait = match (self.store().next_due().await, self.store().now().await) {
                (Ok(Some(due_at)), Ok(now)) => due_at.since(now).min(Duration::from_secs(5)),
                _ => Duration::from_secs(5),
            };
            // The calendar and the clock of leases may differ: a job that seems due and is not must not make this spin.
            sleep(Duration::from_millis(if moved == 0 && wait.is_zero() { 50 } else { 1 })).await;
            let _ = tokio::time::timeout(wait, self.inner.signals.scheduled.notified()).await;
        }
    }

    async fn inbox(self) {
        loop {
            self.until_short("empty the inbox", || self.store().empty_inbox(limits::INBOX_BATCH)).await;
            let wait = self.inner.settings.store.chance.jittered(BACKSTOP);
            let _ = tokio::time::timeout(wait, self.inner.signals.inbox.notified()).await;
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
                Err(error) => debug!(%error, "backstop poll failed; the next one tries again"),
            }
        }
    }

    async fn retention(self) {
        loop {
            sleep(self.inner.settings.store.chance.jittered(Duration::from_secs(30))).await;
            loop {
                match self.store().retain(self.inner.settings.retention, limits::RETENTION_BATCH).await {
                    Ok(Pass { moved, full }) => {
                        if moved > 0 {
                            info!(jobs = moved, "dropped finished jobs past their retention");
                        }
                        if !full {
                            break;
                        }
                    }
                    Err(error) => {
                        warn!(%error, "retention failed; the next pass tries again");
                        break;
                    }
                }
                // Claims go first: retention takes at most a part of the writer's time.
                sleep(Duration::from_millis(100)).await;
            }
        }
    }

    async fn tidy(self) {
        loop {
            sleep(self.inner.settings.store.chance.jittered(Duration::from_secs(1))).await;
            if let Err(error) = self.store().tidy().await {
                debug!(%error, "tidying failed; the next pass tries again");
            }
        }
    }

    async fn until_short<F>(&self, what: &'static str, mut pass: impl FnMut() -> F) -> usize
    where
        F: Future<Output = StoreResult<Pass>>,
    {
        let mut moved = 0;
        loop {
            match pass().await {
                Ok(done) => {
                    moved += done.moved;
                    if !done.full {
                        return moved;
                    }
                }
                Err(error) => {
                    warn!(%error, what, "pass failed; the next one tries again");
                    return moved;
                }
            }
        }
    }
}

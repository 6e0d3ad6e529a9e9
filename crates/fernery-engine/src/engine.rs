//! The engine: one store, and the claims that wait in front of it. The loops that keep it moving are in `engine/loops.rs`.

mod loops;

use crate::door;
use crate::error::{StoreError, StoreResult};
use crate::explanation::Explanation;
use crate::pipeline::Substrate;
use crate::pollers::{Poller, Pollers};
use crate::signals::Signals;
use crate::store::postgres::PostgresStore;
use crate::store::sqlite::SqliteStore;
use crate::store::{Ask, Claimed, JobView, Store, StoreSettings};
use crate::supervise::{Loops, lock};
use fernery_core::{JobId, JobStatus, StreamName, Timestamp};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

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
    /// How long dead letters are kept; for good if `None`.
    pub dead_letter_retention: Option<Duration>,
}

impl Default for EngineSettings {
    fn default() -> Self {
        let store = StoreSettings::default();
        Self {
            reap_interval: Self::default_reap_interval(store.lease_ttl),
            store,
            retention: Duration::from_secs(7 * 24 * 3600),
            dead_letter_retention: None,
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
    pollers: Pollers,
    draining: AtomicBool,
    loops: std::sync::Mutex<Vec<JoinHandle<()>>>,
}

/// How long a claim may go without asking the database, should every nudge be lost.
const BACKSTOP: Duration = Duration::from_secs(1);
/// How long closing waits for the last stream statistics to be written.
const CLOSE_WAIT: Duration = Duration::from_secs(2);

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
                pollers: Pollers::default(),
                draining: AtomicBool::new(false),
                loops: std::sync::Mutex::default(),
            }),
        };
        *lock(&engine.inner.loops) = engine.start_loops();
        engine
    }

    /// The loops of this process, and how they are doing.
    pub fn loops(&self) -> &Arc<Loops> {
        &self.inner.signals.loops
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

    /// Claims that wait now, each counted once, however many streams it asks for.
    pub fn waiting_claims(&self) -> usize {
        self.inner.signals.parking.claims()
    }

    /// Takes up to `ask.max` jobs, waiting up to `wait` for the first. Dropping the future costs no job.
    pub async fn claim(&self, ask: Ask, wait: Duration) -> StoreResult<Vec<Claimed>> {
        let parking = &self.inner.signals.parking;
        if self.is_draining() {
            return Ok(Vec::new());
        }
        parking.polled(&ask.streams, door::wall_clock());
        let _asking = self.inner.pollers.asks(&ask);
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
            JobStatus::Queued if brief.run_at > self.store().calendar().await? => {
                Explanation::Scheduled { until: brief.run_at }
            }
            JobStatus::Queued => {
                let stream = self.store().stream(brief.stream.clone()).await?;
                // Who works on another job of it will come back for this one.
                let busy = stream.as_ref().is_some_and(|stream| stream.counts.running > 0);
                match stream {
                    Some(stream) if stream.paused => Explanation::StreamPaused,
                    _ if !busy && self.is_unpolled(&brief.stream) => {
                        Explanation::NoWorker { last_polled_at: self.last_polled(&brief.stream) }
                    }
                    Some(stream) => Explanation::Waiting { ready: stream.counts.ready },
                    None => Explanation::Waiting { ready: 0 },
                }
            }
        };
        Ok(Some((view, explanation)))
    }

    /// Whether nobody asks for jobs of a stream, as far as this process knows.
    pub fn is_unpolled(&self, stream: &StreamName) -> bool {
        self.inner.signals.parking.is_left(stream, door::wall_clock())
    }

    /// When somebody last asked for jobs of a stream, as far as this process knows.
    pub fn last_polled(&self, stream: &StreamName) -> Option<Timestamp> {
        self.inner.signals.parking.last_polled(stream, door::wall_clock())
    }

    /// The workers that asked this process for jobs a short while ago, by name.
    pub fn pollers(&self) -> Vec<Poller> {
        self.inner.pollers.heard(door::wall_clock())
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
            let mut loops = lock(&self.inner.loops);
            std::mem::take(&mut *loops)
        };
        for task in loops {
            task.abort();
        }
        // A database that is away must not hold up the end: then these statistics are lost.
        let _ = tokio::time::timeout(CLOSE_WAIT, self.keep_stats()).await;
        self.inner.store.close().await;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use fernery_core::{StreamName, WorkerId};
    use std::sync::atomic::AtomicUsize;
    use tokio::time::sleep;
    use tracing::{Event, Level, Metadata, Subscriber, span};

    /// Counts warnings.
    #[derive(Clone, Default)]
    pub(crate) struct Warnings(pub(crate) Arc<AtomicUsize>);

    impl Subscriber for Warnings {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            *metadata.level() == Level::WARN
        }
        fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
            span::Id::from_u64(1)
        }
        fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
        fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
        fn event(&self, _: &Event<'_>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        fn enter(&self, _: &span::Id) {}
        fn exit(&self, _: &span::Id) {}
    }

    /// A store in which everything fails, and of which nobody knows when leases run out.
    async fn failing(signals: &Arc<Signals>) -> Arc<dyn Store> {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::Sqlite(folder.path().join("fernery.db"));
        let store = open_store(&database, StoreSettings::default(), signals.clone()).await.unwrap();
        store.close().await;
        store
    }

    #[tokio::test]
    async fn only_the_reaper_warns_about_unsettled_leases() {
        let store = failing(&Arc::default()).await;
        let warnings = Warnings::default();
        let _heard = tracing::subscriber::set_default(warnings.clone());
        let streams = [StreamName::stored("a")];
        let ask = Ask { worker_id: WorkerId::new("w").unwrap(), streams: streams.into(), max: 1 };
        assert!(store.claim(ask).await.is_err());
        assert_eq!(warnings.0.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn a_reaper_whose_pass_failed_waits_for_its_interval() {
        let (signals, settings) = (Arc::new(Signals::default()), EngineSettings::default());
        let store = failing(&signals).await;
        let warnings = Warnings::default();
        let _heard = tracing::subscriber::set_default(warnings.clone());
        let engine = Engine::start(store, signals, settings);
        sleep(Duration::from_millis(300)).await;
        let said = warnings.0.load(Ordering::Relaxed);
        engine.close().await;
        assert!((1..=4).contains(&said), "{said} warnings: one of each loop are enough");
    }
}

//! The backends as a test sees them: opened empty, with a clock to step, to be killed and opened again.

use crate::support::model::{Disk, ModelStore};
pub(crate) use crate::support::postgres::Postgres;
use fernery_core::Timestamp;
use fernery_engine::door::{Chance, LeaseClock};
use fernery_engine::signals::Signals;
use fernery_engine::store::sqlite::SqliteStore;
use fernery_engine::store::{Store, StoreSettings};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// When the tests' clocks start. They move only by [`Backend::advance`].
pub(crate) const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);
/// The lease of the tests.
pub(crate) const TTL: Duration = Duration::from_secs(60);

/// Defaults, with the jitter of retries in the middle: the first wait is 500 ms, the second 1 s, then 2 s.
pub(crate) fn settings() -> StoreSettings {
    StoreSettings { lease_ttl: TTL, chance: Chance { fixed_fraction: Some(0.5) }, ..StoreSettings::default() }
}

/// A database of its own with one open store.
pub(crate) trait Backend: Sized + Send + Sync + 'static {
    /// A new, empty database.
    fn open(settings: StoreSettings) -> impl Future<Output = Self> + Send;
    /// As [`Backend::open`], with a clock that goes on by itself.
    fn open_running(settings: StoreSettings) -> impl Future<Output = Self> + Send;
    /// The store that is open now.
    fn store(&self) -> Arc<dyn Store>;
    /// What that store signals to.
    fn signals(&self) -> Arc<Signals>;
    /// The store as another process on this database has it; the same where there can be but one.
    fn of_another_process(&self) -> impl Future<Output = Arc<dyn Store>> + Send;
    /// Steps the clock that decides expiry, and the calendar with it.
    fn advance(&self, by: Duration) -> impl Future<Output = ()> + Send;
    /// Sets that clock back: it was wrong.
    fn set_back(&self, by: Duration) -> impl Future<Output = ()> + Send;
    /// Kills the process that has it open, and opens what that left.
    fn crash(&mut self) -> impl Future<Output = ()> + Send;
    /// Closes it in good order, and opens it again.
    fn restart(&mut self) -> impl Future<Output = ()> + Send;
    /// Closes it in good order, and opens it again on a machine that was booted with a clock this far ahead.
    fn restart_ahead(&mut self, by: Duration) -> impl Future<Output = ()> + Send {
        async move {
            self.advance(by).await;
            self.restart().await;
        }
    }
    /// Runs statements past the store, as anybody with access to the database can.
    fn raw(&self, _sql: &str) -> impl Future<Output = Result<(), String>> + Send {
        async { Err("nobody gets past this store".to_string()) }
    }
    /// The rows that statements answer with, as text.
    fn rows(&self, _statements: &[&str]) -> impl Future<Output = Vec<String>> + Send {
        async { Vec::new() }
    }
}

/// The model.
pub(crate) struct Model {
    disk: Disk,
    settings: StoreSettings,
    clock: LeaseClock,
    signals: Arc<Signals>,
    store: Arc<dyn Store>,
}

impl Model {
    fn open_on(disk: Disk, settings: StoreSettings, clock: LeaseClock) -> Self {
        let signals = Arc::new(Signals::default());
        let store = ModelStore::open(disk.clone(), settings.clone(), clock.clone(), signals.clone());
        Self { disk, settings, clock, signals, store: Arc::new(store) }
    }
}

impl Backend for Model {
    async fn open(settings: StoreSettings) -> Self {
        Self::open_on(Disk::default(), settings, LeaseClock::manual(START))
    }

    async fn open_running(settings: StoreSettings) -> Self {
        Self::open_on(Disk::default(), settings, LeaseClock::system())
    }

    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    fn signals(&self) -> Arc<Signals> {
        self.signals.clone()
    }

    async fn of_another_process(&self) -> Arc<dyn Store> {
        Self::open_on(self.disk.clone(), self.settings.clone(), self.clock.clone()).store
    }

    async fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    async fn set_back(&self, by: Duration) {
        self.clock.set_back(by);
    }

    async fn crash(&mut self) {
        *self = Self::open_on(self.disk.clone(), self.settings.clone(), self.clock.clone());
    }

    async fn restart(&mut self) {
        self.store.close().await;
        self.crash().await;
    }
}

/// SQLite, in a directory of its own.
pub(crate) struct Sqlite {
    dir: tempfile::TempDir,
    settings: StoreSettings,
    clock: LeaseClock,
    signals: Arc<Signals>,
    store: Arc<dyn Store>,
}

const DATABASE: &str = "fernery.db";
const WRITE_AHEAD_LOG: &str = "fernery.db-wal";

impl Sqlite {
    fn open_in(dir: tempfile::TempDir, settings: StoreSettings, clock: LeaseClock) -> Self {
        let signals = Arc::new(Signals::default());
        let path = dir.path().join(DATABASE);
        let store = SqliteStore::open(&path, settings.clone(), clock.clone(), signals.clone());
        let store = Arc::new(store.expect("the database opens"));
        Self { dir, settings, clock, signals, store }
    }

    /// A connection beside the store's.
    fn beside(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.dir.path().join(DATABASE)).expect("the database opens")
    }
}

fn shown(value: rusqlite::types::ValueRef<'_>) -> String {
    use rusqlite::types::ValueRef;
    match value {
        ValueRef::Null => "NULL".to_string(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
        other => format!("{other:?}"),
    }
}

fn new_dir() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

impl Backend for Sqlite {
    async fn open(settings: StoreSettings) -> Self {
        Self::open_in(new_dir(), settings, LeaseClock::manual(START))
    }

    async fn open_running(settings: StoreSettings) -> Self {
        Self::open_in(new_dir(), settings, LeaseClock::system())
    }

    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    fn signals(&self) -> Arc<Signals> {
        self.signals.clone()
    }

    async fn of_another_process(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    async fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    async fn set_back(&self, by: Duration) {
        self.clock.set_back(by);
    }

    /// What the disk holds at this moment is all that a killed process leaves, so a copy of it is taken while the store is
    /// open. The shared-memory file is left behind: its content does not outlive the last process.
    async fn crash(&mut self) {
        let dir = new_dir();
        for file in [DATABASE, WRITE_AHEAD_LOG] {
            let from = self.dir.path().join(file);
            if from.exists() {
                std::fs::copy(from, dir.path().join(file)).expect("a copy");
            }
        }
        *self = Self::open_in(dir, self.settings.clone(), self.clock.clone());
    }

    async fn raw(&self, sql: &str) -> Result<(), String> {
        self.beside().execute_batch(sql).map_err(|e| e.to_string())
    }

    async fn rows(&self, statements: &[&str]) -> Vec<String> {
        let (db, mut found) = (self.beside(), Vec::new());
        for sql in statements {
            let mut statement = db.prepare(sql).expect("a statement");
            let width = statement.column_count();
            let mut rows = statement.query([]).expect("rows");
            while let Some(row) = rows.next().expect("a row") {
                let cells: Vec<_> = (0..width).map(|n| shown(row.get_ref(n).expect("a cell"))).collect();
                found.push(cells.join("|"));
            }
        }
        found
    }

    async fn restart_ahead(&mut self, by: Duration) {
        self.store.close().await;
        self.clock = LeaseClock::manual(self.clock.calendar().after(by));
        self.restart().await;
    }

    async fn restart(&mut self) {
        self.store.close().await;
        let dir = std::mem::replace(&mut self.dir, new_dir());
        *self = Self::open_in(dir, self.settings.clone(), self.clock.clone());
    }
}

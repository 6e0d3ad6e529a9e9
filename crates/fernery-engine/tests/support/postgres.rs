//! PostgreSQL as the suites see it: in a database of its own, with a clock that stands still until it is stepped.

use crate::support::backend::{Backend, START};
pub(crate) use crate::support::fresh_database::{FreshDatabase, fresh_database};
use fernery_engine::signals::Signals;
use fernery_engine::store::postgres::PostgresStore;
use fernery_engine::store::{Store, StoreSettings};
use std::sync::Arc;
use std::time::Duration;

/// PostgreSQL, in a database of its own.
pub(crate) struct Postgres {
    settings: StoreSettings,
    signals: Arc<Signals>,
    store: Arc<dyn Store>,
    database: FreshDatabase,
}

/// Opens a store on a database, as a process does.
pub(crate) async fn open_store(url: &str, settings: &StoreSettings) -> (Arc<dyn Store>, Arc<Signals>) {
    let signals = Arc::new(Signals::default());
    let store = PostgresStore::open(url, settings.clone(), signals.clone()).await;
    (Arc::new(store.expect("the database opens")), signals)
}

impl Postgres {
    /// A connection beside the store's.
    async fn beside(&self) -> tokio_postgres::Client {
        let client = self.database.client().await;
        client.batch_execute("SET search_path TO fernery").await.expect("a schema");
        client
    }

    async fn reopen(&mut self) {
        (self.store, self.signals) = open_store(&self.database.url(), &self.settings).await;
    }
}

impl Backend for Postgres {
    async fn open(settings: StoreSettings) -> Self {
        let running = Self::open_running(settings).await;
        running.database.stop_clock(START).await;
        running
    }

    async fn open_running(settings: StoreSettings) -> Self {
        let database = fresh_database().await;
        let (store, signals) = open_store(&database.url(), &settings).await;
        Self { settings, signals, store, database }
    }

    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    fn signals(&self) -> Arc<Signals> {
        self.signals.clone()
    }

    async fn of_another_process(&self) -> Arc<dyn Store> {
        open_store(&self.database.url(), &self.settings).await.0
    }

    async fn advance(&self, by: Duration) {
        self.database.step_clock(by.as_millis() as i64).await;
    }

    async fn set_back(&self, by: Duration) {
        self.database.step_clock(-(by.as_millis() as i64)).await;
    }

    async fn crash(&mut self) {
        self.database.terminate_connections().await;
        self.store.close().await;
        self.reopen().await;
    }

    async fn raw(&self, sql: &str) -> Result<(), String> {
        let done = self.beside().await.batch_execute(sql).await;
        done.map_err(|e| e.as_db_error().map_or(e.to_string(), |e| e.message().to_string()))
    }

    async fn rows(&self, statements: &[&str]) -> Vec<String> {
        let answers = self.beside().await.simple_query(&statements.join(";")).await.expect("rows");
        let row = |row: &tokio_postgres::SimpleQueryRow| {
            let cells = (0..row.len()).map(|n| row.get(n).unwrap_or("NULL"));
            cells.collect::<Vec<_>>().join("|")
        };
        answers
            .iter()
            .filter_map(|answer| match answer {
                tokio_postgres::SimpleQueryMessage::Row(found) => Some(row(found)),
                _ => None,
            })
            .collect()
    }

    async fn restart(&mut self) {
        self.store.close().await;
        self.reopen().await;
    }
}

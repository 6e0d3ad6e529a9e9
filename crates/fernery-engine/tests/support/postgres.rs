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
    async fn reopen(&mut self) {
        (self.store, self.signals) = open_store(&self.database.url(), &self.settings).await;
    }
}

impl Backend for Postgres {
    async fn open(settings: StoreSettings) -> Self {
        let database = fresh_database().await;
        let (store, signals) = open_store(&database.url(), &settings).await;
        database.stop_clock(START).await;
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
        self.database.step_clock(by.as_millis() as u64).await;
    }

    async fn crash(&mut self) {
        self.database.terminate_connections().await;
        self.store.close().await;
        self.reopen().await;
    }

    async fn restart(&mut self) {
        self.store.close().await;
        self.reopen().await;
    }
}

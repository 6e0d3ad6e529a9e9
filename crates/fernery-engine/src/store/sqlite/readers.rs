//! Reading connections: few, kept, each call in one snapshot. They wait for no write.

use super::{SqliteStore, lock, open};
use crate::error::{StoreError, StoreResult};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;

/// Reads at once, and so reading connections: more would only compete for the same cores.
const READERS_MAX: usize = 8;

pub(super) struct Readers {
    path: PathBuf,
    idle: Arc<Mutex<Vec<Connection>>>,
    turns: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn of(path: &Path) -> Self {
        Self { path: path.to_owned(), idle: Arc::default(), turns: Arc::new(Semaphore::new(READERS_MAX)) }
    }

    /// Runs `work` on a reading connection, in one snapshot.
    pub(super) async fn read<T, F>(&self, work: F) -> StoreResult<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> StoreResult<T> + Send + 'static,
    {
        let closed = |_| StoreError::Unavailable("the store is closed".into());
        let turn = self.turns.clone().acquire_owned().await.map_err(closed)?;
        let (idle, path) = (self.idle.clone(), self.path.clone());
        let task = tokio::task::spawn_blocking(move || {
            let pooled = lock(&idle).pop();
            let db = match pooled {
                Some(db) => db,
                None => open::reader(&path)?,
            };
            let answer = (|| {
                let snapshot = db.unchecked_transaction()?;
                let answer = work(&db);
                drop(snapshot);
                answer
            })();
            lock(&idle).push(db);
            drop(turn);
            answer
        });
        // A connection that work panicked on is not kept.
        task.await.unwrap_or_else(|given_up| match given_up.is_panic() {
            true => Err(StoreError::Corrupt("the work panicked".into())),
            false => Err(StoreError::Unavailable("a read was stopped".into())),
        })
    }

    #[cfg(test)]
    pub(super) async fn occupied(&self) -> tokio::sync::OwnedSemaphorePermit {
        self.turns.clone().acquire_many_owned(READERS_MAX as u32).await.unwrap()
    }

    /// No further reads; those under way come to their end.
    pub(super) fn close(&self) {
        self.turns.close();
        lock(&self.idle).clear();
    }
}

impl SqliteStore {
    /// Runs `work` on a reading connection, in one snapshot.
    pub(super) async fn read<T, F>(&self, work: F) -> StoreResult<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> StoreResult<T> + Send + 'static,
    {
        self.readers.read(work).await
    }
}

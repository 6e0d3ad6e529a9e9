//! What the parts of one running worker share.

use super::event::{Summary, WorkerEvent};
use super::held::HeldJobs;
use crate::client::Client;
use fernery_core::WorkerId;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Whoever listens to a worker.
pub(crate) type Observer = Arc<dyn Fn(WorkerEvent) + Send + Sync>;

pub(crate) struct Shared {
    pub(crate) client: Client,
    pub(crate) worker_id: WorkerId,
    pub(crate) observer: Option<Observer>,
    pub(crate) grace: Duration,
    pub(crate) tally: Tally,
    held: Mutex<HeldJobs>,
    /// Notified when jobs are added to the held ones.
    pub(crate) held_changed: Notify,
}

impl Shared {
    pub(crate) fn new(
        client: Client,
        worker_id: WorkerId,
        observer: Option<Observer>,
        grace: Duration,
    ) -> Self {
        let (tally, held, held_changed) = Default::default();
        Self { client, worker_id, observer, grace, tally, held, held_changed }
    }

    /// The jobs held now. Never keep the lock across an await.
    pub(crate) fn held(&self) -> MutexGuard<'_, HeldJobs> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends an event to the observer; it is built only if there is one.
    pub(crate) fn tell(&self, event: impl FnOnce() -> WorkerEvent) {
        if let Some(observer) = &self.observer {
            observer(event());
        }
    }

    /// Sends and logs an event that should not happen.
    pub(crate) fn warn(&self, event: WorkerEvent) {
        tracing::warn!(worker_id = self.worker_id.as_str(), "{event}");
        self.tell(|| event);
    }
}

/// Counts of a [`Summary`], kept while the worker runs.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) claimed: Count,
    pub(crate) succeeded: Count,
    pub(crate) failed: Count,
    pub(crate) released: Count,
    pub(crate) lost: Count,
    pub(crate) unreported: Count,
    pub(crate) unkept: Count,
    pub(crate) abandoned: Count,
}

/// A number that grows.
#[derive(Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, more: usize) {
        self.0.fetch_add(more as u64, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Tally {
    pub(crate) fn summary(&self) -> Summary {
        Summary {
            claimed: self.claimed.get(),
            succeeded: self.succeeded.get(),
            failed: self.failed.get(),
            released: self.released.get(),
            lost: self.lost.get(),
            unreported: self.unreported.get(),
            unkept: self.unkept.get(),
            abandoned: self.abandoned.get(),
        }
    }
}

//! The one loop: a pass, then a wait for a nudge or the interval, whichever comes first. A pass takes no input and is not
//! tried again: the next pass is the retry.

use super::{Context, stop_watch};
use async_trait::async_trait;
use fernery_core::Timestamp;
use fernery_core::artifact::AzollaId;
use fernery_engine::substrate::Stage;
use fernery_engine::{StoreError, door};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;
use tracing::warn;

/// What one pass over one azolla came to.
#[derive(Debug, Default)]
pub(crate) struct Pass {
    /// How often each thing happened, refusals included: nothing is skipped silently.
    pub(crate) counts: BTreeMap<&'static str, u64>,
    /// There may be more: look again at once.
    pub(crate) again: bool,
}

impl Pass {
    pub(crate) fn count(&mut self, what: &'static str, times: u64) {
        *self.counts.entry(what).or_default() += times;
    }
}

/// A polling worker.
#[async_trait]
pub(crate) trait PollingWorker: Send + Sync + 'static {
    fn name(&self) -> &'static str;
    /// Looks once, for this azolla.
    async fn pass(&self, context: &Context, azolla: &AzollaId) -> Result<Pass, StoreError>;
    /// How long it rests after a pass, so that there is more to do at once.
    fn rest(&self) -> Duration {
        Duration::ZERO
    }
    /// Whether it looks for each azolla apart.
    fn is_per_azolla(&self) -> bool {
        true
    }
}

/// A worker's last pass.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PassView {
    /// The worker.
    pub worker: &'static str,
    /// When it began.
    pub at: Timestamp,
    /// How long it took.
    pub ms: u64,
    /// How often each thing happened.
    pub counts: BTreeMap<&'static str, u64>,
    /// Why it did not come to its end.
    pub error: Option<String>,
    /// Passes since this process started.
    pub passes: u64,
}

/// Runs every worker, and remembers their last passes.
pub(super) struct Driver {
    context: Arc<Context>,
    last: Mutex<BTreeMap<(AzollaId, &'static str), PassView>>,
}

impl Driver {
    pub(super) fn new(context: Arc<Context>) -> Self {
        Self { context, last: Mutex::default() }
    }

    /// The last pass of each worker over an azolla.
    pub(super) fn of(&self, azolla: &AzollaId) -> Vec<PassView> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.iter().filter(|((of, _), _)| of == azolla).map(|(_, view)| view.clone()).collect()
    }

    pub(super) fn run(
        self: Arc<Self>,
        stage: Stage,
        interval: Duration,
        worker: impl PollingWorker,
    ) -> JoinHandle<()> {
        tokio::spawn(async move {
            let substrate = self.context.engine.substrate();
            let chance = self.context.engine.settings().store.chance;
            loop {
                let mut again = false;
                let azollas: Vec<_> = self.context.azollas().cloned().collect();
                let apart = if worker.is_per_azolla() { azollas.len() } else { 1 };
                for azolla in azollas.iter().take(apart) {
                    again |= self.pass(&worker, azolla).await;
                }
                if !again {
                    tokio::time::sleep(worker.rest()).await;
                    let _ = tokio::time::timeout(chance.jittered(interval), substrate.nudged(stage)).await;
                }
            }
        })
    }

    async fn pass(&self, worker: &impl PollingWorker, azolla: &AzollaId) -> bool {
        let (at, since) = (door::wall_clock(), stop_watch());
        let done = worker.pass(&self.context, azolla).await;
        let (counts, again, error) = match done {
            Ok(pass) => (pass.counts, pass.again, None),
            Err(error) => {
                warn!(%error, worker = worker.name(), %azolla, "pass failed; the next one tries again");
                (BTreeMap::new(), false, Some(error.to_string()))
            }
        };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (azolla.clone(), worker.name());
        let passes = last.get(&key).map_or(0, |view| view.passes) + 1;
        let ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        last.insert(key, PassView { worker: worker.name(), at, ms, counts, error, passes });
        again
    }
}

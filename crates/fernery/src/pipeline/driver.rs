//! The one loop: a pass, then a wait for a nudge or the interval, whichever comes first. A pass takes no input and is not
//! tried again: the next pass is the retry.

use super::{Context, stop_watch};
use async_trait::async_trait;
use fernery_core::Timestamp;
use fernery_core::artifact::AzollaId;
use fernery_core::blueprint::Blueprint;
use fernery_engine::substrate::Stage;
use fernery_engine::{StoreError, door};
use serde::Serialize;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
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
    /// Whether it has anything to look for in such an azolla.
    fn serves(&self, _: &Blueprint) -> bool {
        true
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
    /// It looked at all azollas at once.
    pub over_all: bool,
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
    /// And how many of them did not come to their end.
    pub failed: u64,
}

/// Runs every worker, and remembers their last passes.
pub(super) struct Driver {
    context: Arc<Context>,
    /// Under no azolla: the pass was over all of them.
    last: Mutex<BTreeMap<(Option<AzollaId>, &'static str), PassView>>,
}

impl Driver {
    pub(super) fn new(context: Arc<Context>) -> Self {
        Self { context, last: Mutex::default() }
    }

    /// The last pass of each worker over an azolla, or over all.
    pub(super) fn of(&self, azolla: &AzollaId) -> Vec<PassView> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let concerns = |of: &Option<AzollaId>| of.as_ref().is_none_or(|of| of == azolla);
        last.iter().filter(|((of, _), _)| concerns(of)).map(|(_, view)| view.clone()).collect()
    }

    async fn pass(&self, worker: &impl PollingWorker, azolla: &AzollaId) -> bool {
        let (at, since) = (door::wall_clock(), stop_watch());
        let done = caught(worker.pass(&self.context, azolla)).await;
        let (counts, again, error) = match done {
            Ok(pass) => (pass.counts, pass.again, None),
            Err(error) => {
                warn!(%error, worker = worker.name(), %azolla, "pass failed; the next one tries again");
                (BTreeMap::new(), false, Some(error.to_string()))
            }
        };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (worker.is_per_azolla().then(|| azolla.clone()), worker.name());
        let (passes, failed) = last.get(&key).map_or((0, 0), |view| (view.passes, view.failed));
        let (passes, failed) = (passes + 1, failed + u64::from(error.is_some()));
        let ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let over_all = !worker.is_per_azolla();
        last.insert(key, PassView { worker: worker.name(), over_all, at, ms, counts, error, passes, failed });
        again
    }
}

/// When a worker has its turn: nudged at a stage, if it has one, and every so often.
pub(super) struct Turns {
    pub(super) driver: Arc<Driver>,
    pub(super) stage: Option<Stage>,
    pub(super) interval: Duration,
}

impl Turns {
    pub(super) fn of(self, worker: impl PollingWorker) -> JoinHandle<()> {
        let Self { driver, stage, interval } = self;
        tokio::spawn(async move {
            let substrate = driver.context.engine.substrate();
            let chance = driver.context.engine.settings().store.chance;
            loop {
                let mut again = false;
                let blueprints = driver.context.blueprints.iter();
                let served = blueprints.filter(|blueprint| worker.serves(blueprint));
                let azollas: Vec<_> = served.map(|blueprint| blueprint.azolla_id.clone()).collect();
                let apart = if worker.is_per_azolla() { azollas.len() } else { 1 };
                for azolla in azollas.iter().take(apart) {
                    again |= driver.pass(&worker, azolla).await;
                }
                if again {
                    continue;
                }
                tokio::time::sleep(worker.rest()).await;
                let wait = chance.jittered(interval);
                match stage {
                    Some(stage) => drop(tokio::time::timeout(wait, substrate.nudged(stage)).await),
                    None => tokio::time::sleep(wait).await,
                }
            }
        })
    }
}

/// Work that panics has failed, as any other: whoever does it goes on with what is next.
pub(super) async fn caught<T>(work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    let mut work = std::pin::pin!(work);
    std::future::poll_fn(|context| {
        let polled = std::panic::catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
        polled.unwrap_or_else(|panic| {
            let said = panic.downcast_ref::<&str>().map(ToString::to_string);
            let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            Poll::Ready(Err(StoreError::Unavailable(format!("it panicked: {said}"))))
        })
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_that_panics_has_failed_and_says_why() {
        let fine = caught(async { Ok(1) }).await;
        assert_eq!(fine, Ok(1));
        let failed = caught::<()>(async {
            tokio::task::yield_now().await;
            panic!("no {}", "luck")
        });
        assert_eq!(failed.await, Err(StoreError::Unavailable("it panicked: no luck".into())));
    }
}

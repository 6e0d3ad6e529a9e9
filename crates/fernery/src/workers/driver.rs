//! The one loop: a pass, then a wait for a nudge or the interval, whichever comes first. A pass takes no input and is not
//! tried again: the next pass is the retry.

use super::{Context, stop_watch};
use crate::config::duration::millis;
use async_trait::async_trait;
use fernery_core::Timestamp;
use fernery_core::artifact::AzollaId;
use fernery_core::blueprint::{Blueprint, WorkerKind};
use fernery_engine::pipeline::Stage;
use fernery_engine::supervise::{self, Panicked};
use fernery_engine::{StoreError, door};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;
use tracing::warn;

/// The result of one pass over one azolla.
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

#[async_trait]
pub(crate) trait PollingWorker: Send + Sync + 'static {
    fn name(&self) -> &'static str;
    /// One pass for this azolla.
    async fn pass(&self, context: &Context, azolla: &AzollaId) -> Result<Pass, StoreError>;
    /// How long it waits after a pass, so that the next pass has a larger batch.
    fn rest(&self) -> Duration {
        Duration::ZERO
    }
    /// Whether it has work in an azolla with this blueprint.
    fn serves(&self, _: &Blueprint) -> bool {
        true
    }
    /// Whether it makes a pass per azolla, or one over all.
    fn is_per_azolla(&self) -> bool {
        true
    }
}

/// A worker's last pass.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PassView {
    pub worker: &'static str,
    /// The pass was over all azollas.
    pub over_all: bool,
    pub at: Timestamp,
    pub ms: u64,
    /// How often each thing happened.
    pub counts: BTreeMap<&'static str, u64>,
    /// Why the pass failed.
    pub error: Option<String>,
    /// Passes since this process started.
    pub passes: u64,
    /// How many of them failed.
    pub failed: u64,
}

/// Runs every worker, and remembers their last passes.
pub(super) struct Driver {
    context: Arc<Context>,
    /// The key `None` is for passes over all azollas.
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

    /// Whether to start the next pass at once, or how long to wait first (after a panic).
    async fn pass(&self, worker: &impl PollingWorker, azolla: &AzollaId) -> (bool, Option<Duration>) {
        let (at, since) = (door::wall_clock(), stop_watch());
        let done = supervise::caught(worker.pass(&self.context, azolla)).await;
        let pause = done.as_ref().err();
        let pause = pause.map(|panicked| self.context.engine.loops().panicked(worker.name(), panicked));
        let done = done.unwrap_or_else(|panicked| Err(failed(&panicked)));
        let (counts, again, error) = match done {
            Ok(pass) => (pass.counts, pass.again, None),
            Err(error) => {
                warn!(%error, worker = worker.name(), %azolla, "pass failed; will retry in the next pass");
                (BTreeMap::new(), false, Some(error.to_string()))
            }
        };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (worker.is_per_azolla().then(|| azolla.clone()), worker.name());
        let (passes, failed) = last.get(&key).map_or((0, 0), |view| (view.passes, view.failed));
        let (passes, failed) = (passes + 1, failed + u64::from(error.is_some()));
        let ms = millis(since.elapsed());
        let over_all = !worker.is_per_azolla();
        last.insert(key, PassView { worker: worker.name(), over_all, at, ms, counts, error, passes, failed });
        (again, pause)
    }
}

/// When a worker makes a pass: at a nudge of its stage, if it has one, and at every interval.
pub(super) struct Turns {
    pub(super) driver: Arc<Driver>,
    pub(super) stage: Option<Stage>,
    pub(super) interval: Interval,
}

/// How often a worker looks by itself.
#[derive(Clone, Copy)]
pub(super) enum Interval {
    /// As the blueprints say.
    Of(WorkerKind),
    Fixed(Duration),
}

impl Turns {
    pub(super) fn of(self, worker: impl PollingWorker) -> JoinHandle<()> {
        let (loops, name) = (self.driver.context.engine.loops().clone(), worker.name());
        let (turns, worker) = (Arc::new(self), Arc::new(worker));
        loops.run(name, move || turns.clone().take(worker.clone()))
    }

    async fn take(self: Arc<Self>, worker: Arc<impl PollingWorker>) {
        let Self { driver, stage, interval } = &*self;
        let substrate = driver.context.engine.substrate();
        let chance = driver.context.engine.settings().store.chance;
        loop {
            let (mut again, mut pause) = (false, None);
            let blueprints = driver.context.blueprints();
            let served = blueprints.iter().filter(|blueprint| worker.serves(blueprint));
            let azollas: Vec<_> = served.map(|blueprint| blueprint.azolla_id.clone()).collect();
            let apart = if worker.is_per_azolla() { azollas.len() } else { 1 };
            for azolla in azollas.iter().take(apart) {
                let (more, panicked) = driver.pass(&*worker, azolla).await;
                again |= more;
                pause = pause.max(panicked);
            }
            if let Some(pause) = pause {
                tokio::time::sleep(pause).await;
                continue;
            }
            if again {
                continue;
            }
            tokio::time::sleep(worker.rest()).await;
            let interval = match *interval {
                Interval::Of(worker) => driver.context.interval(worker),
                Interval::Fixed(interval) => interval,
            };
            let wait = chance.jittered(interval);
            match stage {
                Some(stage) => drop(tokio::time::timeout(wait, substrate.nudged(*stage)).await),
                None => tokio::time::sleep(wait).await,
            }
        }
    }
}

/// A panic counts as a failure like any other; the worker goes on.
pub(super) async fn caught<T>(work: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    supervise::caught(work).await.unwrap_or_else(|panicked| Err(failed(&panicked)))
}

fn failed(panicked: &Panicked) -> StoreError {
    StoreError::Unavailable(panicked.to_string())
}

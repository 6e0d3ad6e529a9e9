//! The executors of this process. For each type of executor that is not remote, some loops claim a workorder, run its
//! program under a guard (or answer it themselves), send heartbeats and hand in the output. They use the same claim,
//! lease and membrane as a remote worker.

mod agent;
mod answering;
mod lease;
mod program;
pub(super) mod report;

use super::Context;
use super::driver::caught;
use fernery_core::artifact::{WorkorderId, WorkorderStatus};
use fernery_core::blueprint::Blueprint;
use fernery_core::{StreamName, WorkerId};
use fernery_engine::pipeline::{azollas, reading};
use fernery_engine::store::{Ask, Claimed};
use fernery_engine::{StoreError, door};
use fernery_exec::command::GRACE;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::warn;

/// How long a claim waits before it asks again.
const CLAIM_WAIT: Duration = Duration::from_secs(30);

/// The executors of this process.
pub(super) struct Runner {
    ending: watch::Sender<bool>,
    /// No more claims; what runs may finish.
    retired: watch::Sender<bool>,
    slots: JoinSet<()>,
}

impl Runner {
    pub(super) fn start(context: &Arc<Context>) -> Self {
        let (ending, retired) = (watch::channel(false).0, watch::channel(false).0);
        let mut slots = JoinSet::new();
        let mut parallel: BTreeMap<Vec<StreamName>, u32> = BTreeMap::new();
        let blueprints = context.blueprints();
        for blueprint in blueprints.iter() {
            for (of, executor) in blueprint.used_executors() {
                if executor.kind.runs_here() {
                    *parallel.entry(context.streams_of(blueprint, &of)).or_default() += executor.parallel;
                }
            }
        }
        // Where an azolla's executors fail, the built-in rules of this process stand in.
        for blueprint in blueprints.iter().filter(|blueprint| blueprint.standing.is_some()) {
            let streams = blueprint.workorders_for().iter().map(Blueprint::stand_in_stream).collect();
            parallel.insert(streams, 1);
        }
        for (streams, slots_of) in parallel.into_iter().filter(|(streams, _)| !streams.is_empty()) {
            for n in 0..slots_of {
                let slot = Slot {
                    context: context.clone(),
                    streams: streams.clone(),
                    worker_id: WorkerId::stored(&format!("{}-{n}", context.owner)),
                    ending: ending.subscribe(),
                    retired: retired.subscribe(),
                };
                let loops = context.engine.loops().clone();
                slots.spawn(loops.keep_running("executor", move || slot.clone().run()));
            }
        }
        Self { ending, retired, slots }
    }

    /// Claims nothing more. What runs goes on to its end.
    pub(super) fn retire(&self) {
        self.retired.send_replace(true);
    }

    /// Whether everything has ended since it was retired.
    pub(super) fn is_over(&mut self) -> bool {
        while self.slots.try_join_next().is_some() {}
        self.slots.is_empty()
    }

    /// Asks everything to end.
    pub(super) fn end(&self) {
        self.ending.send_replace(true);
    }

    /// Stops running programs and releases their jobs.
    pub(super) async fn stop(mut self) {
        self.end();
        let all = async { while self.slots.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(GRACE + Duration::from_secs(3), all).await;
    }
}

/// One program at a time.
#[derive(Clone)]
pub(super) struct Slot {
    pub(super) context: Arc<Context>,
    streams: Vec<StreamName>,
    worker_id: WorkerId,
    ending: watch::Receiver<bool>,
    retired: watch::Receiver<bool>,
}

impl Slot {
    async fn run(mut self) {
        let ask = Ask { worker_id: self.worker_id.clone(), streams: self.streams.clone().into(), max: 1 };
        loop {
            let claimed = tokio::select! {
                claimed = self.context.engine.claim(ask.clone(), CLAIM_WAIT) => claimed,
                () = ended(&mut self.ending) => return,
                () = ended(&mut self.retired) => return,
            };
            match claimed {
                // A server that drains gives nothing, at once.
                Ok(claimed) if claimed.is_empty() => tokio::task::yield_now().await,
                Ok(claimed) => {
                    for job in claimed {
                        door::failpoint("workorder-claimed");
                        if let Err(error) = caught(self.execute(&job)).await {
                            warn!(
                                %error, work_order_id = %job.job_id,
                                "could not report the end of a run; the workorder comes back when \
                                 its lease expires"
                            );
                        }
                    }
                }
                Err(error) => {
                    warn!(%error, "an executor cannot claim; will retry");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
            if *self.ending.borrow() || *self.retired.borrow() {
                return;
            }
        }
    }

    async fn execute(&mut self, job: &Claimed) -> Result<(), StoreError> {
        let id = WorkorderId::from(job.job_id);
        let found = self
            .context
            .engine
            .substrate()
            .read(move |sql| {
                let Some(work) = reading::workorder_by_id(sql, &id)? else { return Ok(None) };
                if work.cancelled || work.workorder.status != WorkorderStatus::Created {
                    return Ok(None);
                }
                let made_under = azollas::by_digest(sql, &work.blueprint)?;
                Ok(made_under.map(|made| (made.blueprint, work.workorder.diazotroph_type)))
            })
            .await?;
        // A job without a workorder is not the scheduler's.
        let Some((blueprint, of)) = found else {
            return self.fail(job, "no_workorder", "the workorder does not exist, or was cancelled").await;
        };
        if blueprint.is_stand_in(&job.stream, &of) {
            return self.answer(job, None).await;
        }
        let Some(executor) = blueprint.executor_of(&of).filter(|e| e.kind.runs_here()) else {
            return self.fail(job, "no_executor", "its blueprint uses a remote executor").await;
        };
        if !executor.kind.starts_program() {
            return self.answer(job, executor.endpoint.as_ref()).await;
        }
        if let Some(profile) = &executor.agent {
            return self.run_agent(job, executor, profile).await;
        }
        self.run_program(job, executor).await
    }
}

/// Waits for the shutdown.
async fn ended(ending: &mut watch::Receiver<bool>) {
    let _ = ending.wait_for(|ending| *ending).await;
}

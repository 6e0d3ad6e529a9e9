//! The pipeline at work: one loop that every polling worker runs in, and the executors of this process.
//!
//! | worker | reads | claims | writes | does nothing when |
//! |---|---|---|---|---|
//! | readiness | objectives that entered TODO | nothing: a unique key excludes | TICKET_READY | none entered |
//! | scheduler | unprocessed events | the event | snapshot, workorder, job, objective | no event, no room |
//! | runner | workorders of its executors' kinds | the workorder, as its job | the end of its job; the store writes bundle and EXECUTED with it | nothing waits |
//! | gate | executed workorders | the workorder | run record, objective, pause | nothing was executed |
//! | landing | patches that no branch has, and the tips of their branches | the workorder, after its verdict | how they fit; the branch, the landing, a pause | no branch moved, nothing is wanted |
//! | capture_readiness | captures that wait | nothing: a unique key excludes | CAPTURE_READY | none waits |
//! | triage_scheduler | CAPTURE_READY | the event | snapshot, workorder, job, captures | no event, tracks taken |
//! | manifest_scheduler | MANIFEST_REQUESTED, the schedule | the event | queries, snapshot, workorder, job | no event, tracks taken, captures wait |
//! | deadline_monitor | objectives that changed, here and elsewhere | nothing: a unique key excludes | pauses of its own azolla | nothing is due |
//! | notifier | what is to be told to the outside | nothing: a row is dispatched once | jobs of notices | nobody is told |
//! | sealer | journal entries | nothing: a unique place excludes | seals | all are sealed |
//! | canceller | cancelled workorders | those that nobody judges | the end of their jobs, verdicts | none is cancelled |
//! | cleanup | what nobody would come back to | nothing: under the objective's lock | hosting, blockers | nothing is left behind |
//!
//! Correctness depends neither on the interval nor on how many processes run these, nor on which one dies where.

mod batches;
pub mod blueprints;
mod canceller;
mod capture_readiness;
mod cleanup;
mod deadline_monitor;
mod differences;
mod driver;
mod gate;
mod landing;
mod leftovers;
mod manifest_scheduler;
pub(crate) mod manning;
mod notifier;
mod readiness;
pub(crate) mod reload;
mod runner;
mod scheduler;
mod sealer;
mod triage_scheduler;

use crate::config::{Registry, Repos};
use crate::http::PipelineView;
use crate::outgoing::notices::Allowed;
use crate::outgoing::queries::Asker;
use capture_readiness::CaptureReadiness;
use deadline_monitor::DeadlineMonitor;
use differences::Differences;
use driver::{Driver, Interval, Turns};
use fernery_core::StreamName;
use fernery_core::artifact::{AzollaId, DiazotrophType, SnapshotId, WorkorderId};
use fernery_core::blueprint::{Blueprint, WorkerKind};
use fernery_core::limits::CLAIM_STREAMS_MAX;
use fernery_core::pipeline::ground::Premises;
use fernery_core::pipeline::waiting::HOSTED_EVERY;
use fernery_engine::pipeline::claims::{self, Claimer};
use fernery_engine::pipeline::scheduling::Ids;
use fernery_engine::pipeline::{Stage, azollas, hosts};
use fernery_engine::store::StoreSettings;
use fernery_engine::{Engine, StoreError, door};
use fernery_exec::agent::trash::Trash;
use fernery_exec::sandbox::Probing;
use fernery_exec::sandbox::modes::Private;
use gate::AtWork;
use manifest_scheduler::ManifestScheduler;
use reload::{HostedNow, Live};
pub(crate) use sealer::HEAD_FILE;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tracing::{info, warn};
use triage_scheduler::TriageScheduler;

/// How often a worker looks by itself where its blueprint does not say.
const INTERVAL_DEFAULT: Duration = Duration::from_secs(2);

/// What every worker of this process shares.
pub(crate) struct Context {
    pub(crate) engine: Engine,
    hosted: HostedNow,
    /// Whose claims these are: one process.
    pub(crate) owner: String,
    pub(crate) lease_ttl: Duration,
    pub(crate) data: PathBuf,
    /// The folder where programs work. Each database has its own: others may share the data directory.
    pub(crate) work: PathBuf,
    /// Repositories that tickets may name.
    pub(crate) repos: Arc<Repos>,
    /// Azollas elsewhere that may be asked.
    pub(crate) registry: Registry,
    /// The addresses that webhooks may reach.
    pub(crate) allowed: Allowed,
    /// Takes the folders of finished runs.
    pub(crate) trash: Trash,
    /// The sandbox tiers of this machine.
    pub(crate) probing: Probing,
    /// The files of the data directory that no run may open to others.
    pub(crate) private: Private,
    /// The gates that are at work.
    at_work: Arc<AtWork>,
    /// Held while this process says what it hosts.
    saying: Mutex<()>,
}

impl Context {
    /// The blueprints that this process hosts now; a reload replaces them.
    pub(crate) fn blueprints(&self) -> Arc<Vec<Blueprint>> {
        self.hosted.now()
    }

    fn interval(&self, worker: WorkerKind) -> Duration {
        self.blueprints().iter().filter_map(|b| b.interval(worker)).min().unwrap_or(INTERVAL_DEFAULT)
    }

    /// Records that this process hosts its azollas.
    async fn host(&self) -> Result<(), StoreError> {
        // One at a time: whoever looked before a reload must not say so after it.
        let _saying = self.saying.lock().await;
        let (hosted, owner) = (self.azollas(), self.owner.clone());
        let repos: Vec<String> = self.repos.keys().cloned().collect();
        self.engine.substrate().transact(move |sql| hosts::say(sql, &owner, &hosted, &repos)).await
    }

    /// Records that this process hosts nothing.
    async fn leave(&self) -> Result<(), StoreError> {
        let (owner, alone) = (self.owner.clone(), self.engine.store().backend() == "sqlite");
        self.engine.substrate().transact(move |sql| hosts::leave(sql, &owner, alone)).await
    }

    /// The streams of its workorders in this process; for work on repositories only those of repositories that this
    /// process has.
    fn streams_of(&self, blueprint: &Blueprint, of: &DiazotrophType) -> Vec<StreamName> {
        match blueprint.needs_repository() {
            true => self
                .repos
                .keys()
                .take(CLAIM_STREAMS_MAX)
                .map(|repo| blueprint.stream_of(of, Some(repo)))
                .collect(),
            false => vec![blueprint.stream_of(of, None)],
        }
    }

    /// Claims for this process.
    fn claimer(&self) -> Claimer {
        Claimer { owner_id: self.owner.clone(), ttl: self.lease_ttl }
    }

    /// Ids for what a scheduler may make.
    fn new_ids(&self) -> Ids {
        let job_id = self.engine.settings().store.chance.job_id();
        Ids { job_id, snapshot_id: SnapshotId::stored(&door::artifact_id()) }
    }

    /// This azolla, as one that asks others.
    fn asker<'a>(&'a self, azolla_id: &'a AzollaId) -> Asker<'a> {
        let own = self.blueprints().iter().find(|own| own.azolla_id == *azolla_id).cloned();
        Asker {
            azolla_id,
            reads: own.map(|own| own.reads),
            engine: &self.engine,
            registry: &self.registry,
            lease_ttl: self.lease_ttl,
        }
    }

    pub(crate) fn azollas(&self) -> Vec<AzollaId> {
        self.blueprints().iter().map(|blueprint| blueprint.azolla_id.clone()).collect()
    }

    fn premises(&self) -> Premises {
        Premises { hosted: self.azollas(), repos: self.repos.keys().cloned().collect() }
    }
}

/// What the configuration says about the surroundings of this process.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The files of the blueprints, to be read again; `None`: they come from no files.
    pub azollas: Option<Vec<PathBuf>>,
    /// The configuration file, which only a start reads.
    pub config: Option<PathBuf>,
    /// Repositories that tickets may name.
    pub repos: Repos,
    /// Azollas elsewhere that may be asked.
    pub registry: Registry,
    /// The addresses that webhooks may reach.
    pub allowed: Allowed,
}

/// The running workers of this process.
pub struct Pipeline {
    driver: Arc<Driver>,
    tasks: Vec<JoinHandle<()>>,
    live: Arc<Live>,
    differences: Differences,
}

impl Pipeline {
    /// Puts the blueprints in force and starts the workers.
    pub async fn start(
        engine: Engine,
        blueprints: Vec<Blueprint>,
        data: PathBuf,
        around: Surroundings,
    ) -> Result<Self, StoreError> {
        // Programs are started in their own folders.
        let data = std::path::absolute(&data).unwrap_or(data);
        let StoreSettings { lease_ttl, chance, .. } = engine.settings().store.clone();
        let probing = Probing::default();
        let mistakes = blueprints::check_here(&engine, &blueprints, &probing, &around.registry).await?;
        if !mistakes.is_empty() {
            return Err(StoreError::Refused(mistakes.join("\n")));
        }
        let all = blueprints.clone();
        engine.substrate().transact(move |sql| azollas::register_all(sql, &all)).await?;
        let owner = format!("fernery-{}", chance.process_id());
        let work = leftovers::work_of(&data, &engine).await?;
        let Surroundings { azollas: files, config, repos, registry, allowed } = around;
        let (trash, repos, private) = (Trash::of(&data), Arc::new(repos), Private::of(&data));
        let context = Context {
            engine,
            hosted: HostedNow::new(blueprints),
            owner,
            lease_ttl,
            data,
            work,
            repos,
            registry,
            allowed,
            trash,
            probing,
            private,
            at_work: Arc::default(),
            saying: Mutex::default(),
        };
        let context = Arc::new(context);
        // No other process can serve a SQLite file: what an earlier one said there is forgotten.
        context.leave().await?;
        context.host().await?;
        // Before this process claims anything.
        let left = leftovers::Leftovers::of(&context.work, context.trash.clone());
        left.end_survivors().await;
        let driver = Arc::new(Driver::new(context.clone()));
        let interval = |worker| Interval::Of(worker);
        let run = |stage, interval| Turns { driver: driver.clone(), stage, interval };
        let gates = gate::Gates::new(&context);
        let landings = landing::Landings::new(&context, gates.judge());
        let mut tasks = vec![
            run(Some(Stage::Readiness), interval(WorkerKind::Readiness)).of(readiness::Readiness),
            run(Some(Stage::Scheduler), interval(WorkerKind::Scheduler)).of(scheduler::Scheduler),
            run(Some(Stage::Canceller), interval(WorkerKind::Runner)).of(canceller::Canceller::default()),
            run(Some(Stage::Gate), interval(WorkerKind::Gate)).of(gates),
            run(Some(Stage::Landing), interval(WorkerKind::Gate)).of(landings),
            run(Some(Stage::Captures), interval(WorkerKind::CaptureReadiness)).of(CaptureReadiness),
            run(Some(Stage::Triage), interval(WorkerKind::Scheduler)).of(TriageScheduler),
            run(Some(Stage::Manifest), interval(WorkerKind::ManifestScheduler)).of(ManifestScheduler),
            run(None, interval(WorkerKind::DeadlineMonitor)).of(DeadlineMonitor::default()),
            run(Some(Stage::Notices), Interval::Fixed(INTERVAL_DEFAULT)).of(notifier::Notifier),
            run(Some(Stage::Sealer), Interval::Fixed(INTERVAL_DEFAULT)).of(sealer::Sealer),
            run(None, Interval::Fixed(HOSTED_EVERY)).of(cleanup::Cleanup::new(left)),
        ];
        let differences = Differences::new(&context.work, &context.repos);
        let live = Arc::new(Live::start(context, files, config));
        tasks.push(live.clone().watch());
        Ok(Self { driver, tasks, live, differences })
    }

    /// The last pass of each worker, and where the logs of workorders are.
    pub fn view(&self) -> PipelineView {
        let (driver, work) = (self.driver.clone(), self.live.context.work.clone());
        let passes = move |azolla: &AzollaId| {
            driver.of(azolla).iter().filter_map(|pass| serde_json::to_value(pass).ok()).collect()
        };
        let logs = move |id: &WorkorderId, gate: Option<&str>| match gate {
            Some(gate) => leftovers::gate_log_file(&work, id.as_str(), gate),
            None => leftovers::log_file(&work, id.as_str()),
        };
        let differences = self.differences.clone();
        PipelineView::new(self.live.clone(), passes, logs)
            .with_differences(move |id, repo_ref, sides| differences.make(id, repo_ref, sides))
    }

    /// What reads the blueprints again.
    pub(crate) fn live(&self) -> Arc<Live> {
        self.live.clone()
    }

    /// Ends the workers. Running work is stopped, and all that this process holds is given back at once.
    pub async fn stop(self) {
        // Executors first: where the server drains, a claim returns at once.
        let Self { live, tasks, .. } = self;
        tokio::join!(live.stop(), give_back(&live.context, tasks));
        // A reload that was under way has ended by now, and says nothing any more.
        if let Err(error) = live.context.leave().await {
            warn!(%error, "could not deregister this process as a host; its entry expires in a minute");
        }
    }
}

/// Ends the polling workers, and gives back what they hold.
async fn give_back(context: &Context, tasks: Vec<JoinHandle<()>>) {
    for task in &tasks {
        task.abort();
    }
    for task in tasks {
        let _ = task.await;
    }
    let owner = context.owner.clone();
    match context.engine.substrate().transact(move |sql| claims::release_all(sql, &owner)).await {
        Ok(0) => {}
        Ok(claims) => info!(claims, "released the claims of gates in progress"),
        Err(error) => warn!(%error, "could not release the claims of gates; they expire"),
    }
}

pub(crate) fn stop_watch() -> std::time::Instant {
    door::stop_watch()
}

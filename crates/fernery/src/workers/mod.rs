//! The pipeline at work: one loop that every polling worker runs in, and the executors of this process.
//!
//! | worker | reads | claims | writes | does nothing when |
//! |---|---|---|---|---|
//! | readiness | objectives that entered TODO | nothing: a unique key excludes | TICKET_READY | none entered |
//! | scheduler | unprocessed events | the event | snapshot, workorder, job, objective | no event, no room |
//! | runner | workorders of its executors' kinds | the workorder, as its job | the end of its job; the store writes bundle and EXECUTED with it | nothing waits |
//! | gate | executed workorders | the workorder | run record, objective, pause | nothing was executed |
//! | capture_readiness | captures that wait | nothing: a unique key excludes | CAPTURE_READY | none waits |
//! | triage_scheduler | CAPTURE_READY | the event | snapshot, workorder, job, captures | no event, tracks taken |
//! | manifest_scheduler | MANIFEST_REQUESTED, the schedule | the event | queries, snapshot, workorder, job | no event, tracks taken, captures wait |
//! | deadline_monitor | objectives that changed, here and elsewhere | nothing: a unique key excludes | pauses of its own azolla | nothing is due |
//! | notifier | what is to be told to the outside | nothing: a row is dispatched once | jobs of notices | nobody is told |
//! | sealer | journal entries | nothing: a unique place excludes | seals | all are sealed |
//! | canceller | cancelled workorders | those that nobody judges | the end of their jobs, verdicts | none is cancelled |
//! | keeper | what nobody would come back to | nothing: under the objective's lock | hosting, blockers | nothing is left behind |
//!
//! Correctness depends neither on the interval nor on how many processes run these, nor on which one dies where.

mod batches;
mod canceller;
mod capture_readiness;
mod deadline_monitor;
mod driver;
mod gate;
mod keeper;
mod leftovers;
mod manifest_scheduler;
mod notifier;
mod readiness;
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
use driver::{Driver, Turns};
use fernery_core::StreamName;
use fernery_core::artifact::{AzollaId, DiazotrophType, SnapshotId};
use fernery_core::blueprint::{Blueprint, Gate, Neighbours, WorkerKind};
use fernery_core::limits::CLAIM_STREAMS_MAX;
use fernery_core::pipeline::ground::Premises;
use fernery_core::pipeline::waiting::HOSTED_EVERY;
use fernery_engine::pipeline::claims::Claimer;
use fernery_engine::pipeline::scheduling::Ids;
use fernery_engine::pipeline::{Stage, azollas};
use fernery_engine::store::StoreSettings;
use fernery_engine::{Engine, StoreError, door};
use fernery_exec::agent::trash::Trash;
use fernery_exec::profiles;
use fernery_exec::sandbox::Probing;
use fernery_exec::sandbox::modes::Private;
use manifest_scheduler::ManifestScheduler;
use runner::Runner;
pub(crate) use sealer::HEAD_FILE;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use triage_scheduler::TriageScheduler;

/// How often a worker looks by itself where its blueprint does not say.
const INTERVAL_DEFAULT: Duration = Duration::from_secs(2);

/// What every worker of this process shares.
pub(crate) struct Context {
    pub(crate) engine: Engine,
    pub(crate) blueprints: Vec<Blueprint>,
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
}

impl Context {
    fn interval(&self, worker: WorkerKind) -> Duration {
        self.blueprints.iter().filter_map(|b| b.interval(worker)).min().unwrap_or(INTERVAL_DEFAULT)
    }

    /// Records that this process hosts its azollas.
    async fn host(&self) -> Result<(), StoreError> {
        let hosted: Vec<AzollaId> = self.azollas().cloned().collect();
        self.engine.substrate().transact(move |sql| azollas::attend(sql, &hosted)).await
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
        let own = self.blueprints.iter().find(|own| own.azolla_id == *azolla_id);
        Asker {
            azolla_id,
            reads: own.map(|own| &own.reads),
            engine: &self.engine,
            registry: &self.registry,
            lease_ttl: self.lease_ttl,
        }
    }

    pub(crate) fn azollas(&self) -> impl Iterator<Item = &AzollaId> {
        self.blueprints.iter().map(|blueprint| &blueprint.azolla_id)
    }
}

/// What the configuration says about the surroundings of this process.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
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
    runner: Runner,
    work: PathBuf,
    premises: Premises,
}

/// Reads the given blueprints. Adds the embedded `mec`, unless a given file has that id or runs the executor here that
/// `mec` leaves to remote workers; and the embedded `task_management`, unless a given file has that id.
pub fn blueprints(files: &[PathBuf]) -> Result<Vec<Blueprint>, String> {
    let folder_of = |file: &Path| file.parent().map(Path::to_owned).unwrap_or_default();
    let mut read = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
        let folder = folder_of(file);
        let others = |name: &str| std::fs::read_to_string(folder.join(format!("{name}.toml"))).ok();
        let beside = Neighbours { blueprint: &others, profile: &|name| profiles::beside(&folder, name) };
        let parsed = Blueprint::parse_beside(&text, &beside).map_err(|flaws| {
            let each: Vec<String> = flaws.iter().map(|flaw| format!("{}: {flaw}", file.display())).collect();
            each.join("\n")
        })?;
        read.push(parsed);
    }
    let mec = Blueprint::mec();
    let instead = |own: &Blueprint| {
        let same_type = own.diazotroph_type == mec.diazotroph_type;
        own.azolla_id == mec.azolla_id
            || same_type && own.executor().map(|of| of.kind) != mec.executor().map(|of| of.kind)
    };
    let mut all = Vec::new();
    if !read.iter().any(instead) {
        all.push(mec);
    }
    let tasks = Blueprint::task_management();
    if !read.iter().any(|own| own.azolla_id == tasks.azolla_id) {
        all.push(tasks);
    }
    all.append(&mut read);
    let read = all;
    check_together(&read)?;
    Ok(read)
}

/// Rules over all blueprints together.
fn check_together(blueprints: &[Blueprint]) -> Result<(), String> {
    let mut seen = HashSet::new();
    let mut kinds = BTreeMap::new();
    for blueprint in blueprints {
        let id = &blueprint.azolla_id;
        if !seen.insert(id) {
            return Err(format!("two blueprints define azolla {id}"));
        }
        for of in blueprint.workorders_for() {
            let Some(executor) = blueprint.executor_of(&of) else {
                return Err(format!("azolla {id} has no executor for {of}"));
            };
            let other = kinds.entry(of.clone()).or_insert((executor.kind.runs_here(), id));
            if other.0 != executor.kind.runs_here() {
                return Err(format!(
                    "azollas {} and {id} both use {of}, one with a remote executor and one without: choose \
                    another type for one of them",
                    other.1
                ));
            }
        }
    }
    Ok(())
}

/// Whether the programs of these blueprints can be contained here as they demand. Probes nothing if no program needs
/// it.
async fn check_contained(blueprints: &[Blueprint], probing: &Probing) -> Result<(), String> {
    for blueprint in blueprints {
        let id = &blueprint.azolla_id;
        let used = blueprint.used_executors().into_iter();
        let started = used.filter(|(_, executor)| executor.kind.starts_program());
        let executors = started.map(|(of, found)| (format!("[executors.{of}]"), found.sandbox));
        let gates = blueprint.gates.iter().filter_map(|gate| match gate {
            Gate::Command { name, sandbox, .. } => Some((format!("gate {name}"), *sandbox)),
            _ => None,
        });
        for (program, wanted) in executors.chain(gates) {
            if let Err(why) = probing.choose(wanted).await {
                return Err(format!(
                    "azolla {id}: {program} needs a sandbox, and {why}. To run it without one, set sandbox \
                    = \"none\" there"
                ));
            }
        }
    }
    Ok(())
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
        // Azollas of other processes claim from the same streams. With SQLite there are no other processes.
        let (known, hosting) =
            engine.substrate().read(|sql| Ok((azollas::all(sql)?, azollas::hosting(sql)?))).await?;
        let is_others = |known: &Blueprint| {
            let ours = blueprints.iter().any(|own| own.azolla_id == known.azolla_id);
            !ours && hosting.is_hosted(&known.azolla_id) && engine.store().backend() != "sqlite"
        };
        let known = known.iter().map(|known| (*known.blueprint).clone());
        let all: Vec<Blueprint> = blueprints.iter().cloned().chain(known.filter(is_others)).collect();
        check_together(&all).map_err(StoreError::Refused)?;
        let probing = Probing::default();
        if let Some((of, why)) = blueprints.iter().find_map(|of| Some((of, of.unguarded()?))) {
            return Err(StoreError::Refused(format!("azolla {}: {why}", of.azolla_id)));
        }
        check_contained(&blueprints, &probing).await.map_err(StoreError::Refused)?;
        if let Some(own) = blueprints.iter().find(|own| around.registry.contains_key(&own.azolla_id)) {
            let why = format!(
                "azolla {} is hosted here and also named in registry: choose another name in registry",
                own.azolla_id
            );
            return Err(StoreError::Refused(why));
        }
        for blueprint in &blueprints {
            let blueprint = blueprint.clone();
            engine.substrate().transact(move |sql| azollas::register(sql, &blueprint)).await?;
        }
        let owner = format!("fernery-{}", chance.process_id());
        let work = leftovers::work_of(&data, &engine).await?;
        let Surroundings { repos, registry, allowed } = around;
        let (trash, repos, private) = (Trash::of(&data), Arc::new(repos), Private::of(&data));
        let context = Context {
            engine,
            blueprints,
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
        };
        let context = Arc::new(context);
        context.host().await?;
        // Before this process claims anything.
        let left = leftovers::Leftovers::of(&context.work, context.trash.clone());
        left.end_survivors().await;
        let driver = Arc::new(Driver::new(context.clone()));
        let interval = |worker| context.interval(worker);
        let run = |stage, interval| Turns { driver: driver.clone(), stage, interval };
        let mut tasks = vec![
            run(Some(Stage::Readiness), interval(WorkerKind::Readiness)).of(readiness::Readiness),
            run(Some(Stage::Scheduler), interval(WorkerKind::Scheduler)).of(scheduler::Scheduler),
            run(Some(Stage::Canceller), interval(WorkerKind::Runner)).of(canceller::Canceller::default()),
            run(Some(Stage::Gate), interval(WorkerKind::Gate)).of(gate::Gates::new(&context)),
            run(Some(Stage::Captures), interval(WorkerKind::CaptureReadiness)).of(CaptureReadiness),
            run(Some(Stage::Triage), interval(WorkerKind::Scheduler)).of(TriageScheduler),
            run(Some(Stage::Manifest), interval(WorkerKind::ManifestScheduler)).of(ManifestScheduler),
            run(None, interval(WorkerKind::DeadlineMonitor)).of(DeadlineMonitor::default()),
            run(Some(Stage::Notices), INTERVAL_DEFAULT).of(notifier::Notifier),
            run(Some(Stage::Sealer), INTERVAL_DEFAULT).of(sealer::Sealer),
            run(None, HOSTED_EVERY).of(keeper::Keeper::new(left)),
        ];
        tasks.extend(notifier::deliver(&context));
        let runner = Runner::start(&context);
        let premises = Premises {
            hosted: context.azollas().cloned().collect(),
            repos: context.repos.keys().cloned().collect(),
        };
        Ok(Self { driver, tasks, runner, work: context.work.clone(), premises })
    }

    /// The last pass of each worker, and where the logs of workorders are.
    pub fn view(&self) -> PipelineView {
        let (driver, work) = (self.driver.clone(), self.work.clone());
        let passes = move |azolla: &AzollaId| {
            driver.of(azolla).iter().filter_map(|pass| serde_json::to_value(pass).ok()).collect()
        };
        PipelineView::new(self.premises.clone(), passes, move |id| leftovers::log_file(&work, id.as_str()))
    }

    /// Ends the workers. Running work is stopped and released; held claims expire.
    pub async fn stop(self) {
        self.runner.stop().await;
        for task in self.tasks {
            task.abort();
        }
    }
}

pub(crate) fn stop_watch() -> std::time::Instant {
    door::stop_watch()
}

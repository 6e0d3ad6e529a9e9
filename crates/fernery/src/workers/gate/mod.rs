//! Reads executed workorders without a verdict, claims each, judges its bundle by the gates of the blueprint that it was
//! made under, and writes the run record, the objective's next state and the pause. Does nothing when none was executed.
//!
//! Commands run outside any transaction while the claim is renewed; a renewal that is refused stops them, and nothing is
//! written.

mod at_work;
mod command;
pub(super) mod trial;

use super::batches::alone_if_failed;
use super::driver::{Pass, PollingWorker};
use super::leftovers::{gate_folder, gate_log_file};
use super::{Context, stop_watch};
use crate::config::Repos;
use crate::config::duration::millis;
use async_trait::async_trait;
pub(crate) use at_work::AtWork;
use command::{Program, run_gate};
use fernery_core::artifact::{AzollaId, GateResult, Workorder, WorkorderId};
use fernery_core::blueprint::Gate;
use fernery_core::patch::protects::Relied;
use fernery_core::pipeline::evidence::{BRANCH, Evidence, plain_evidence};
use fernery_core::pipeline::protection::{Informing, Protected};
use fernery_engine::pipeline::claims::{self, Claimer, HeldClaim};
use fernery_engine::pipeline::gate_input::{self, Evaluated, GateInput};
use fernery_engine::pipeline::judging::{self, Judged};
use fernery_engine::pipeline::{Stage, reading};
use fernery_engine::{StoreError, Substrate, door};
use fernery_exec::agent::remove_all;
use fernery_exec::git::ticket_branch::EarlierBranch;
use fernery_exec::sandbox::Probing;
use fernery_exec::sandbox::modes::{Private, make_plain, settle};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, Semaphore, SemaphorePermit, mpsc};
use tokio::task::JoinSet;
use trial::{Trial, trouble};

/// Workorders claimed at once.
const BATCH: i64 = 64;
/// Workorders judged in one transaction, and so bundles in memory at once.
const TOGETHER_MAX: usize = 16;
/// Gate programs at once: they are builds and tests, each of which may use all cores.
const PROGRAMS_MAX: usize = 2;
/// How long a pass waits for gates that need no program.
const MOMENT: Duration = Duration::from_millis(50);

pub(super) struct Gates {
    judge: Arc<Judge>,
    /// Workorders that are being judged, of all azollas: a slow gate does not hold up the others.
    judging: Mutex<JoinSet<Result<Judged, StoreError>>>,
}

pub(super) struct Judge {
    substrate: Substrate,
    by: Claimer,
    work: PathBuf,
    probing: Probing,
    private: Private,
    repos: Arc<Repos>,
    programs: Semaphore,
    at_work: Arc<AtWork>,
}

impl Gates {
    pub(super) fn new(context: &Context) -> Self {
        let by = context.claimer();
        let (substrate, work) = (context.engine.substrate(), context.work.clone());
        let (probing, programs) = (context.probing.clone(), Semaphore::new(PROGRAMS_MAX));
        let (private, repos) = (context.private.clone(), context.repos.clone());
        let at_work = context.at_work.clone();
        let judge = Judge { substrate, by, work, probing, private, repos, programs, at_work };
        Self { judge: Arc::new(judge), judging: Mutex::default() }
    }

    /// Who judges: a landing lets the same gates judge once more.
    pub(super) fn judge(&self) -> Arc<Judge> {
        self.judge.clone()
    }
}

#[async_trait]
impl PollingWorker for Gates {
    fn name(&self) -> &'static str {
        "gate"
    }

    async fn pass(&self, _: &Context, azolla: &AzollaId) -> Result<Pass, StoreError> {
        let mut judging = self.judging.lock().await;
        let room = BATCH - judging.len() as i64;
        let (of, by) = (azolla.clone(), self.judge.by.clone());
        let taken =
            self.judge.substrate.transact(move |sql| gate_input::take_executed(sql, &of, &by, room)).await?;
        if !taken.is_empty() {
            door::failpoint("gate-claimed");
        }
        let mut pass = Pass { again: room > 0 && taken.len() as i64 == room, ..Pass::default() };
        let mut failed = None;
        let began = !taken.is_empty() || !judging.is_empty();
        for (id, held) in self.judge.plainly(taken, &mut pass, &mut failed).await {
            let judge = self.judge.clone();
            judging.spawn(async move {
                let judged = judge.judge(id, held).await;
                // Wakes a pass, which collects this result and so frees its place.
                judge.substrate.nudge(Stage::Gate);
                judged
            });
        }
        while let Ok(Some(done)) = tokio::time::timeout(MOMENT, judging.join_next()).await {
            match done {
                Ok(Ok(judged)) => tally(&judged, &mut pass),
                Ok(Err(error)) => failed = Some(error),
                Err(panicked) => failed = Some(StoreError::Unavailable(panicked.to_string())),
            }
        }
        if began && judging.is_empty() {
            door::failpoint("gate-judged");
        }
        failed.map_or(Ok(pass), Err)
    }
}

fn tally(judged: &Judged, pass: &mut Pass) {
    match judged {
        Judged::Recorded(run) => pass.count(run.gate_result.as_str(), 1),
        Judged::Before => pass.count("judged_before", 1),
        Judged::Later => pass.count("gate_could_not_run", 1),
        Judged::ClaimLost => pass.count("claim_lost", 1),
    }
}

impl Judge {
    /// Judges the workorders whose gates need no program, a few per transaction; answers the others.
    async fn plainly(
        &self,
        taken: Vec<(WorkorderId, HeldClaim)>,
        pass: &mut Pass,
        failed: &mut Option<StoreError>,
    ) -> Vec<(WorkorderId, HeldClaim)> {
        let mut others = Vec::new();
        for some in taken.chunks(TOGETHER_MAX) {
            let (done, error) = alone_if_failed(some.to_vec(), |some| self.judge_plainly(some)).await;
            for (judged, rest) in done {
                judged.iter().for_each(|judged| tally(judged, pass));
                others.extend(rest);
            }
            *failed = error.or(failed.take());
        }
        others
    }

    /// The verdicts on the workorders whose gates need no program, and the other workorders.
    async fn judge_plainly(
        &self,
        taken: Vec<(WorkorderId, HeldClaim)>,
    ) -> Result<(Vec<Judged>, Vec<(WorkorderId, HeldClaim)>), StoreError> {
        let ids: Vec<WorkorderId> = taken.iter().map(|(id, _)| id.clone()).collect();
        let gate_inputs = self.substrate.read(move |sql| gate_input::gate_inputs(sql, &ids)).await?;
        // Reading a patch takes time: do it neither in a transaction nor on a thread of the runtime.
        let hearing = tokio::task::spawn_blocking(move || {
            let (mut evaluated, mut others) = (Vec::new(), Vec::new());
            for ((id, held), gate_input) in taken.into_iter().zip(gate_inputs) {
                match gate_input.and_then(|gate_input| Evaluated::plainly(&held, gate_input)) {
                    Some(one) => evaluated.push(one),
                    None => others.push((id, held)),
                }
            }
            (evaluated, others)
        });
        let (evaluated, others) = hearing.await.map_err(|e| StoreError::Corrupt(format!("a gate: {e}")))?;
        let judged = match evaluated.is_empty() {
            true => Vec::new(),
            false => self.substrate.transact(move |sql| judging::conclude_all(sql, &evaluated)).await?,
        };
        Ok((judged, others))
    }

    async fn judge(&self, id: WorkorderId, held: HeldClaim) -> Result<Judged, StoreError> {
        let of = id.clone();
        let Some(gate_input) = self.substrate.read(move |sql| gate_input::gate_input(sql, &of)).await? else {
            self.substrate.transact(move |sql| claims::release(sql, &held)).await?;
            return Ok(Judged::Before);
        };
        let Some((evidence, held)) = self.evidence(&id, &gate_input, held).await? else {
            return Ok(Judged::ClaimLost);
        };
        door::failpoint("gate-evidence");
        self.substrate.transact(move |sql| judging::conclude(sql, &held, &evidence)).await
    }

    /// What each gate found, up to the first that did not pass; `None`: the claim was taken over.
    async fn evidence(
        &self,
        id: &WorkorderId,
        gate_input: &GateInput,
        held: HeldClaim,
    ) -> Result<Option<(Vec<Evidence>, HeldClaim)>, StoreError> {
        let trial = self.trial(id, gate_input, held.claim_version).await?;
        let workorder = &gate_input.workorder.workorder;
        let earlier = match &trial {
            Some(_) => self.earlier_branch(workorder).await?,
            None => None,
        };
        let Some((mut found, held, passed)) = self.all_gates(gate_input, trial.as_ref(), held).await? else {
            return Ok(None);
        };
        if !passed {
            // An earlier claimant that died may have left a branch after all gates had passed.
            if let Some(trial) = &trial {
                trial.withdraw((workorder, earlier.as_ref()), &gate_input.bundle).await;
            }
            return Ok(Some((found, held)));
        }
        let Some(trial) = trial else { return Ok(Some((found, held))) };
        // Without the claim, leave no branch.
        let (mine, ttl) = (held, self.by.ttl);
        let of = id.clone();
        let renewed = self.substrate.transact(move |sql| {
            let wanted = reading::workorder_by_id(sql, &of)?.is_some_and(|work| !work.cancelled);
            Ok(claims::renew(sql, &mine, ttl)?.map(|held| (held, wanted)))
        });
        let Some((held, wanted)) = renewed.await? else { return Ok(None) };
        door::failpoint("gate-passed");
        // A cancelled objective leaves nothing in the repository.
        if wanted {
            found.extend(trial.branch((workorder, earlier.as_ref()), &gate_input.bundle).await);
        }
        door::failpoint("gate-branched");
        Ok(Some((found, held)))
    }

    /// Where the last run of this objective that made a branch left it.
    async fn earlier_branch(&self, workorder: &Workorder) -> Result<Option<EarlierBranch>, StoreError> {
        let Some(of) = workorder.branch_name.clone() else { return Ok(None) };
        let id = workorder.objective_id.clone();
        let runs = self.substrate.read(move |sql| reading::runs_of(sql, &id)).await?;
        let said = runs.iter().rev().flat_map(|run| run.evidence.iter()).find_map(|found| {
            let made = found.gate == BRANCH && found.result == Some(GateResult::Pass);
            made.then(|| EarlierBranch::parse(&found.log_tail, &of)).flatten()
        });
        Ok(said)
    }

    /// What each gate found, up to the first that did not pass, and whether all did; `None`: the claim was taken over.
    pub(super) async fn all_gates(
        &self,
        gate_input: &GateInput,
        trial: Option<&Trial>,
        mut held: HeldClaim,
    ) -> Result<Option<(Vec<Evidence>, HeldClaim, bool)>, StoreError> {
        let mut found = Vec::new();
        for gate in &gate_input.blueprint.gates {
            let evidence = match plain_evidence(gate, &gate_input.bundle, gate_input.snapshot.as_ref()) {
                Some(evidence) => evidence,
                None => {
                    let _shown = self.at_work.enter(&gate_input.workorder.workorder.work_order_id, gate);
                    match self.run_renewing(gate_input, trial, gate, held).await? {
                        Some((evidence, renewed)) => {
                            held = renewed;
                            evidence
                        }
                        None => return Ok(None),
                    }
                }
            };
            let passed = evidence.result == Some(GateResult::Pass) && evidence.trouble.is_none();
            found.push(evidence);
            if !passed {
                return Ok(Some((found, held, false)));
            }
        }
        Ok(Some((found, held, true)))
    }

    /// Where the patch of a workorder is tried; `None`: it is not about a repository.
    async fn trial(
        &self,
        id: &WorkorderId,
        gate_input: &GateInput,
        version: i64,
    ) -> Result<Option<Trial>, StoreError> {
        if !gate_input.blueprint.gates.contains(&Gate::Applies) {
            return Ok(None);
        }
        let of = gate_input.workorder.workorder.context_snapshot_id.clone();
        let snapshot = self.substrate.read(move |sql| reading::snapshot(sql, &of)).await?;
        let dir = gate_folder(&self.work, id.as_str(), "patch.git", version);
        Ok(Some(Trial::new(snapshot.as_ref(), &self.repos, dir)))
    }

    async fn run_renewing(
        &self,
        gate_input: &GateInput,
        trial: Option<&Trial>,
        gate: &Gate,
        mut held: HeldClaim,
    ) -> Result<Option<(Evidence, HeldClaim)>, StoreError> {
        let (stop, stops) = mpsc::unbounded_channel();
        let running = self.run(gate_input, trial, (gate, held.claim_version), stops);
        tokio::pin!(running);
        let mut lost = false;
        loop {
            tokio::select! {
                evidence = &mut running => return Ok((!lost).then_some((evidence, held))),
                () = tokio::time::sleep(self.by.ttl / 3), if !lost => {
                    let (mine, ttl) = (held.clone(), self.by.ttl);
                    match self.substrate.transact(move |sql| claims::renew(sql, &mine, ttl)).await {
                        Ok(Some(renewed)) => held = renewed,
                        Ok(None) => {
                            lost = true;
                            let _ = stop.send(Duration::ZERO);
                        }
                        // The database is away. The claim is ours until somebody takes it over, and the last write is
                        // fenced.
                        Err(error) => tracing::warn!(%error, "could not renew a gate's claim; will retry"),
                    }
                }
            }
        }
    }

    async fn run(
        &self,
        gate_input: &GateInput,
        trial: Option<&Trial>,
        (gate, version): (&Gate, i64),
        mut stops: mpsc::UnboundedReceiver<Duration>,
    ) -> Evidence {
        let since = stop_watch();
        let (name, argv, timeout, env, sandbox, protects) = match (gate, trial) {
            (Gate::Command { name, argv, timeout, env, sandbox, protects }, _) => {
                (name, argv, timeout, env, sandbox, protects)
            }
            (Gate::Applies, Some(trial)) => {
                let evidence = trial.applies(&gate_input.bundle).await;
                return Evidence { ms: ms(since), ..evidence };
            }
            _ => return trouble(gate.name(), "this gate runs no program"),
        };
        let tier = match self.probing.choose(*sandbox).await {
            Ok(tier) => tier,
            Err(why) => return trouble(name, &why),
        };
        let Some(_turn) = turn(&self.programs, &mut stops).await else {
            return trouble(name, "it was stopped before it began");
        };
        let id = &gate_input.workorder.workorder.work_order_id;
        let mut run = async |kept: &[String], folder: &str, keeps_log: bool| {
            let since = stop_watch();
            let folder = gate_folder(&self.work, id.as_str(), folder, version);
            let log = keeps_log.then(|| gate_log_file(&self.work, id.as_str(), name));
            let program = Program { argv, env, tier, timeout: *timeout, kept, log };
            if let Err(error) = make_plain(&folder) {
                return trouble(name, &format!("no folder for it: {error}"));
            }
            let ran = run_gate(&folder, gate_input, trial, program, &mut stops).await;
            settle(&folder, &self.private).await;
            let _ = remove_all(&folder);
            Evidence { ms: ms(since), ..ran }
        };
        let relied = Relied { argv, protects: protects.as_deref() };
        let touched = trial.map(|trial| trial.touched(&gate_input.bundle, relied));
        let touched = touched.unwrap_or_default();
        let decides = run(&touched.kept, name, true).await;
        let mut informs = None;
        // After a stop, start nothing more.
        if !touched.kept.is_empty() && decides.trouble.is_none() {
            let Evidence { exit, ms, log_tail, result, trouble, .. } =
                run(&[], &format!("{name}.patched"), false).await;
            informs = Some(Informing { exit, ms, log_tail, result, trouble });
        }
        let protected = Protected::of(&touched, informs);
        let (command, sandbox) = (Some(argv.clone()), Some(tier));
        Evidence { gate: name.clone(), command, sandbox, protected, ..decides }
    }
}

fn ms(since: std::time::Instant) -> u64 {
    millis(since.elapsed())
}

/// Waits for a free slot for a program; `None`: it was told to stop first and must not start.
async fn turn<'a>(
    programs: &'a Semaphore,
    stops: &mut mpsc::UnboundedReceiver<Duration>,
) -> Option<SemaphorePermit<'a>> {
    tokio::select! {
        biased;
        _ = stops.recv() => None,
        turn = programs.acquire() => turn.ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_gate_that_is_stopped_while_it_queues_does_not_start() {
        let programs = Semaphore::new(1);
        let (stop, mut stops) = mpsc::unbounded_channel();
        let running = turn(&programs, &mut stops).await.expect("there is room");
        stop.send(Duration::ZERO).expect("it listens");
        assert!(turn(&programs, &mut stops).await.is_none(), "it queues no longer");
        drop(running);
        stop.send(Duration::ZERO).expect("it listens");
        assert!(turn(&programs, &mut stops).await.is_none(), "nor when there is room by now");
        assert!(turn(&programs, &mut stops).await.is_some());
    }
}

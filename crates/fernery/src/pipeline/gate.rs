//! Reads executed workorders without a verdict, claims each, judges its bundle by the gates of the blueprint that it was
//! made under, and writes the run record, the objective's next state and the pause. Does nothing when none was executed.
//!
//! Commands run outside any transaction while the claim is renewed; a renewal that is refused stops them, and nothing is
//! written.

use super::command::{Command, cell, exit_code};
use super::driver::{Pass, PollingWorker};
use super::leftovers::gate_folder;
use super::trial::{PatchedTree, Trial, trouble};
use super::{Context, stop_watch};
use crate::config::Repos;
use crate::diazotroph::{occupy, remove_all};
use crate::sandbox::{Probing, Tier};
use crate::worker::process::{ATTEMPT_VARIABLE, NotRun};
use async_trait::async_trait;
use fernery_core::artifact::{AzollaId, GateResult, WorkorderId};
use fernery_core::blueprint::Gate;
use fernery_core::pipeline::judging::{Evidence, plain_evidence};
use fernery_engine::substrate::claims::{self, Claimer, Held};
use fernery_engine::substrate::judging::{self, Docket, Heard, Judged};
use fernery_engine::substrate::{Stage, reading};
use fernery_engine::{StoreError, Substrate, door};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, Semaphore, SemaphorePermit, mpsc};
use tokio::task::JoinSet;

/// Workorders claimed at once.
const BATCH: i64 = 64;
/// Workorders judged in one transaction: as many bundles are in memory at once.
const TOGETHER_MAX: usize = 16;
/// Gate programs at once: they are builds and tests, and have the machine's cores to themselves.
const PROGRAMS_MAX: usize = 2;
/// How long a pass waits for gates that need no program.
const MOMENT: Duration = Duration::from_millis(50);
/// The end of a gate's output that is kept as evidence.
const LOG_TAIL_BYTES: usize = 4 << 10;

pub(super) struct Gates {
    judge: Arc<Judge>,
    /// What is being judged, of all azollas: a slow gate keeps no other from being looked at.
    judging: Mutex<JoinSet<Result<Judged, StoreError>>>,
}

struct Judge {
    substrate: Substrate,
    by: Claimer,
    work: PathBuf,
    probing: Probing,
    repos: Arc<Repos>,
    programs: Semaphore,
}

impl Gates {
    pub(super) fn new(context: &Context) -> Self {
        let by = Claimer { owner_id: context.owner.clone(), ttl: context.lease_ttl };
        let (substrate, work) = (context.engine.substrate(), context.work.clone());
        let (probing, programs) = (context.probing.clone(), Semaphore::new(PROGRAMS_MAX));
        let judge = Judge { substrate, by, work, probing, repos: context.repos.clone(), programs };
        Self { judge: Arc::new(judge), judging: Mutex::default() }
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
            self.judge.substrate.transact(move |sql| claims::take_executed(sql, &of, &by, room)).await?;
        door::failpoint("gate-claimed");
        let mut pass = Pass { again: room > 0 && taken.len() as i64 == room, ..Pass::default() };
        let mut failed = None;
        for (id, held) in self.judge.plainly(taken, &mut pass, &mut failed).await {
            let judge = self.judge.clone();
            judging.spawn(async move {
                let judged = judge.judge(id, held).await;
                // There is room again, and whoever counts finds it.
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
        door::failpoint("gate-judged");
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
    /// Judges those whose gates need no program, a few in one transaction; answers the others.
    async fn plainly(
        &self,
        taken: Vec<(WorkorderId, Held)>,
        pass: &mut Pass,
        failed: &mut Option<StoreError>,
    ) -> Vec<(WorkorderId, Held)> {
        let mut others = Vec::new();
        for some in taken.chunks(TOGETHER_MAX) {
            match self.judge_plainly(some, pass).await {
                Ok(rest) => others.extend(rest),
                // One of them may be to blame: each alone, so that it keeps nobody else waiting.
                Err(error) if some.len() > 1 && error.is_of_one_call() => {
                    for one in some {
                        match self.judge_plainly(std::slice::from_ref(one), pass).await {
                            Ok(rest) => others.extend(rest),
                            Err(error) => *failed = Some(error),
                        }
                    }
                }
                Err(error) => *failed = Some(error),
            }
        }
        others
    }

    async fn judge_plainly(
        &self,
        taken: &[(WorkorderId, Held)],
        pass: &mut Pass,
    ) -> Result<Vec<(WorkorderId, Held)>, StoreError> {
        let ids: Vec<WorkorderId> = taken.iter().map(|(id, _)| id.clone()).collect();
        let dockets = self.substrate.read(move |sql| judging::dockets(sql, &ids)).await?;
        let taken = taken.to_vec();
        // A patch takes a while to read: neither in a transaction nor where others wait for their turn.
        let hearing = tokio::task::spawn_blocking(move || {
            let (mut heard, mut others) = (Vec::new(), Vec::new());
            for ((id, held), docket) in taken.into_iter().zip(dockets) {
                match docket.and_then(|docket| Heard::plainly(&held, docket)) {
                    Some(one) => heard.push(one),
                    None => others.push((id, held)),
                }
            }
            (heard, others)
        });
        let (heard, others) = hearing.await.map_err(|e| StoreError::Corrupt(format!("a gate: {e}")))?;
        if !heard.is_empty() {
            let judged = self.substrate.transact(move |sql| judging::conclude_all(sql, &heard)).await?;
            judged.iter().for_each(|judged| tally(judged, pass));
        }
        Ok(others)
    }

    async fn judge(&self, id: WorkorderId, held: Held) -> Result<Judged, StoreError> {
        let of = id.clone();
        let Some(docket) = self.substrate.read(move |sql| judging::docket(sql, &of)).await? else {
            self.substrate.transact(move |sql| claims::release(sql, &held)).await?;
            return Ok(Judged::Before);
        };
        let Some((evidence, held)) = self.evidence(&id, &docket, held).await? else {
            return Ok(Judged::ClaimLost);
        };
        door::failpoint("gate-evidence");
        self.substrate.transact(move |sql| judging::conclude(sql, &held, &evidence)).await
    }

    /// What each gate found, up to the first that did not pass; `None`: the claim was taken over.
    async fn evidence(
        &self,
        id: &WorkorderId,
        docket: &Docket,
        mut held: Held,
    ) -> Result<Option<(Vec<Evidence>, Held)>, StoreError> {
        let mut found = Vec::new();
        let trial = self.trial(id, docket, held.claim_version).await?;
        for gate in &docket.blueprint.gates {
            let evidence = match plain_evidence(gate, &docket.bundle) {
                Some(evidence) => evidence,
                None => match self.run_renewing(docket, trial.as_ref(), gate, held).await? {
                    Some((evidence, renewed)) => {
                        held = renewed;
                        evidence
                    }
                    None => return Ok(None),
                },
            };
            let passed = evidence.result == Some(GateResult::Pass) && evidence.trouble.is_none();
            found.push(evidence);
            if !passed {
                // One that died may have left a branch when they all had passed.
                if let Some(trial) = &trial {
                    trial.withdraw(&docket.workorder.workorder, &docket.bundle).await;
                }
                return Ok(Some((found, held)));
            }
        }
        let Some(trial) = trial else { return Ok(Some((found, held))) };
        // Whoever has lost the claim leaves no branch.
        let (mine, ttl) = (held, self.by.ttl);
        let of = id.clone();
        let renewed = self.substrate.transact(move |sql| {
            let wanted = reading::workorder_by_id(sql, &of)?.is_some_and(|work| !work.cancelled);
            Ok(claims::renew(sql, &mine, ttl)?.map(|held| (held, wanted)))
        });
        let Some((held, wanted)) = renewed.await? else { return Ok(None) };
        door::failpoint("gate-passed");
        // Of what nobody wants any more nothing is left in the repository.
        if wanted {
            found.extend(trial.branch(&docket.workorder.workorder, &docket.bundle).await);
        }
        door::failpoint("gate-branched");
        Ok(Some((found, held)))
    }

    /// Where the patch of a workorder is tried; `None`: it is not about a repository.
    async fn trial(
        &self,
        id: &WorkorderId,
        docket: &Docket,
        version: i64,
    ) -> Result<Option<Trial>, StoreError> {
        if !docket.blueprint.gates.contains(&Gate::Applies) {
            return Ok(None);
        }
        let of = docket.workorder.workorder.context_snapshot_id.clone();
        let snapshot = self.substrate.read(move |sql| reading::snapshot(sql, &of)).await?;
        let dir = gate_folder(&self.work, id.as_str(), "candidate.git", version);
        Ok(Some(Trial::new(snapshot.as_ref(), &self.repos, dir)))
    }

    async fn run_renewing(
        &self,
        docket: &Docket,
        trial: Option<&Trial>,
        gate: &Gate,
        mut held: Held,
    ) -> Result<Option<(Evidence, Held)>, StoreError> {
        let (stop, stops) = mpsc::unbounded_channel();
        let running = self.run(docket, trial, (gate, held.claim_version), stops);
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
                        // The database is away: the claim is ours until somebody takes it over, and the last write is
                        // fenced.
                        Err(error) => tracing::warn!(%error, "a gate's claim was not renewed"),
                    }
                }
            }
        }
    }

    async fn run(
        &self,
        docket: &Docket,
        trial: Option<&Trial>,
        (gate, version): (&Gate, i64),
        mut stops: mpsc::UnboundedReceiver<Duration>,
    ) -> Evidence {
        let since = stop_watch();
        let ms = || u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (name, argv, timeout, env, sandbox) = match (gate, trial) {
            (Gate::Command { name, argv, timeout, env, sandbox }, _) => (name, argv, timeout, env, sandbox),
            (Gate::Applies, Some(trial)) => {
                let evidence = trial.applies(&docket.bundle).await;
                return Evidence { ms: ms(), ..evidence };
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
        let id = &docket.workorder.workorder.work_order_id;
        let folder = gate_folder(&self.work, id.as_str(), name, version);
        let program = Program { argv, env, tier, timeout: *timeout };
        let ran = run_gate(&folder, docket, trial, program, stops).await;
        let _ = remove_all(&folder);
        Evidence { ms: ms(), gate: name.clone(), command: Some(argv.clone()), sandbox: Some(tier), ..ran }
    }
}

/// Waits for room for a program; `None`: it was told to stop first, and is not to start at all.
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

/// What a gate runs.
struct Program<'a> {
    argv: &'a [String],
    env: &'a [String],
    tier: Tier,
    timeout: Duration,
}

async fn run_gate(
    place: &Path,
    docket: &Docket,
    trial: Option<&Trial>,
    Program { argv, env, tier, timeout }: Program<'_>,
    mut stops: mpsc::UnboundedReceiver<Duration>,
) -> Evidence {
    let mut cell = cell(place, &mark_of(place));
    let _occupied = match occupy(place) {
        Ok(occupied) => occupied,
        Err(error) => return trouble("", &format!("no folder for it: {error}")),
    };
    let (mut beside, mut ours) = (cell.folder.clone(), Vec::new());
    // What a patch makes is judged where it is: in a fresh tree, with the bundle out of its way.
    match trial {
        None => {}
        Some(trial) => match trial.tree(place).await {
            None => {}
            Some(Err(why)) => return trouble("", &why),
            Some(Ok(PatchedTree { tree, borrowed, brought })) => {
                beside = place.join("bundle");
                cell.folder = tree;
                cell.read.extend(borrowed.into_iter().chain([brought, beside.clone()]));
                ours = cell.read[cell.read.len() - 2..].to_vec();
            }
        },
    }
    let (bundle, content) = (beside.join("output_bundle.json"), beside.join("content"));
    let written = std::fs::create_dir_all(&beside)
        .and_then(|()| std::fs::write(&bundle, serde_json::to_vec_pretty(&docket.bundle)?))
        .and_then(|()| std::fs::write(&content, &docket.bundle.content));
    let written =
        written.and_then(|()| if tier == Tier::Unconfined { Ok(()) } else { cell.hand_over(&ours) });
    if let Err(error) = written {
        return trouble("", &format!("the bundle could not be written down: {error}"));
    }
    let command = match Command::new(argv, env, &cell, tier) {
        Ok(command) => command,
        Err(error) => return trouble("", &format!("no folder for it: {error}")),
    };
    let told = vec![
        (ATTEMPT_VARIABLE.to_string(), mark_of(place)),
        ("FERNERY_OUTPUT_BUNDLE".to_string(), bundle.display().to_string()),
        ("FERNERY_OUTPUT_CONTENT".to_string(), content.display().to_string()),
        ("FERNERY_OBJECTIVE_ID".to_string(), docket.bundle.objective_id.to_string()),
        ("FERNERY_WORK_ORDER_ID".to_string(), docket.workorder.workorder.work_order_id.to_string()),
    ];
    let (stop, orders) = mpsc::unbounded_channel();
    let run = command.run(b"", told, false, Duration::from_secs(60), orders);
    tokio::pin!(run);
    let deadline = tokio::time::sleep(timeout);
    tokio::pin!(deadline);
    let mut timed_out = false;
    let ran = loop {
        tokio::select! {
            ran = &mut run => break ran,
            Some(grace) = stops.recv() => drop(stop.send(grace)),
            () = &mut deadline, if !timed_out => {
                timed_out = true;
                let _ = stop.send(super::command::GRACE);
            }
        }
    };
    let evidence = match ran {
        Ok(ran) => {
            let exit = exit_code(&ran.seen.exit);
            let mut log = tail(&ran.seen.stdout_end.text(), LOG_TAIL_BYTES / 2);
            log.push_str(&tail(&ran.seen.stderr.text(), LOG_TAIL_BYTES / 2));
            if timed_out {
                log.push_str(&format!("\nended after {timeout:?}: its time-out"));
            }
            let passed = exit == Some(0) && ran.stopped.is_none();
            let result = Some(if passed { GateResult::Pass } else { GateResult::Fail });
            let ended_by_others = ran.stopped.is_some() && !timed_out;
            Evidence {
                gate: String::new(),
                command: None,
                sandbox: None,
                exit,
                ms: 0,
                log_tail: log,
                result: if ended_by_others { None } else { result },
                trouble: ended_by_others.then(|| "it was stopped".to_string()),
            }
        }
        Err(NotRun::NoCommand(why) | NotRun::NotStarted(why) | NotRun::NoGuard(why)) => trouble("", &why),
    };
    command.close().await;
    evidence
}

/// What processes of a gate are found by if this one dies.
fn mark_of(place: &Path) -> String {
    place.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The end of a log, as text that can be shown.
fn tail(log: &str, bytes: usize) -> String {
    let shown = fernery_core::names::showable(log);
    let mut from = shown.len().saturating_sub(bytes);
    while !shown.is_char_boundary(from) {
        from += 1;
    }
    shown[from..].to_string()
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

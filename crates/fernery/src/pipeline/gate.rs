//! Reads executed workorders without a verdict, claims each, judges its bundle by the gates of the blueprint that it was
//! made under, and writes the run record, the objective's next state and the pause. Does nothing when none was executed.
//!
//! Commands run outside any transaction while the claim is renewed; a renewal that is refused stops them, and nothing is
//! written.

use super::driver::{Pass, PollingWorker};
use super::gate_command::{Program, run_gate};
use super::leftovers::gate_folder;
use super::trial::{Trial, trouble};
use super::{Context, stop_watch};
use crate::config::Repos;
use crate::diazotroph::remove_all;
use crate::sandbox::Probing;
use async_trait::async_trait;
use fernery_core::artifact::{AzollaId, GateResult, WorkorderId};
use fernery_core::blueprint::Gate;
use fernery_core::pipeline::judging::{Evidence, plain_evidence};
use fernery_engine::substrate::claims::{self, Claimer, Held};
use fernery_engine::substrate::judging::{self, Docket, Heard, Judged};
use fernery_engine::substrate::{Stage, reading};
use fernery_engine::{StoreError, Substrate, door};
use std::path::PathBuf;
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
            let evidence = match plain_evidence(gate, &docket.bundle, docket.snapshot.as_ref()) {
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

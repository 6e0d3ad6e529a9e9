//! The executors of this process. For each type of executor that is not remote, some loops claim a workorder, run its
//! program under a guard (or answer it themselves), send heartbeats and hand in the output. They use the same claim,
//! lease and membrane as a remote worker.

mod agent;
mod answering;

use super::driver::caught;
use super::leftovers::run_folder;
use super::{Context, stop_watch};
use crate::config::duration::millis;
use fernery_core::artifact::{WorkorderId, WorkorderStatus};
use fernery_core::blueprint::{Blueprint, Executor};
use fernery_core::job::report::Answer;
use fernery_core::names::showable;
use fernery_core::pipeline::execution::notes_of_spent_budget;
use fernery_core::pipeline::membrane::{self, Outcome};
use fernery_core::{JobId, StreamName, WorkerId};
use fernery_engine::pipeline::{azollas, reading};
use fernery_engine::store::{Ask, Beat, BeatAnswer, Cause, Claimed, Completion, Failure, Proof};
use fernery_engine::{StoreError, door};
use fernery_exec::agent::{occupy, remove_all};
use fernery_exec::command::{Command, GRACE, cell};
use fernery_exec::guard::{ATTEMPT_VARIABLE, NotRun, Ran, Stopped};
use fernery_exec::sandbox::modes::settle;
use fernery_exec::sandbox::{Cell, Tier};
use fernery_exec::stop::StopReason;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tracing::{info, warn};

/// How long a claim waits before it asks again.
const CLAIM_WAIT: Duration = Duration::from_secs(30);
/// How much of a program's output is kept as content; all parts together have a limit.
const KEPT_BYTES_MAX: usize = 768 << 10;
/// At most this much of the budget is reserved for stopping the program and handing in.
const RESERVE_MAX: Duration = Duration::from_secs(2);
/// How often a running workorder is checked for cancellation.
const CANCEL_LOOK: Duration = Duration::from_millis(500);

/// The executors of this process.
pub(super) struct Runner {
    ending: watch::Sender<bool>,
    slots: JoinSet<()>,
}

impl Runner {
    pub(super) fn start(context: &Arc<Context>) -> Self {
        let ending = watch::channel(false).0;
        let mut slots = JoinSet::new();
        let mut parallel: BTreeMap<Vec<StreamName>, u32> = BTreeMap::new();
        for blueprint in &context.blueprints {
            for (of, executor) in blueprint.used_executors() {
                if executor.kind.runs_here() {
                    *parallel.entry(context.streams_of(blueprint, &of)).or_default() += executor.parallel;
                }
            }
        }
        // Where an azolla's executors fail, the built-in rules of this process stand in.
        for blueprint in context.blueprints.iter().filter(|blueprint| blueprint.standing.is_some()) {
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
                };
                let loops = context.engine.loops().clone();
                slots.spawn(loops.keep_running("executor", move || slot.clone().run()));
            }
        }
        Self { ending, slots }
    }

    /// Stops running programs and releases their jobs.
    pub(super) async fn stop(mut self) {
        self.ending.send_replace(true);
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
}

impl Slot {
    async fn run(mut self) {
        let ask = Ask { worker_id: self.worker_id.clone(), streams: self.streams.clone().into(), max: 1 };
        loop {
            let claimed = tokio::select! {
                claimed = self.context.engine.claim(ask.clone(), CLAIM_WAIT) => claimed,
                () = ended(&mut self.ending) => return,
            };
            match claimed {
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
            if *self.ending.borrow() {
                return;
            }
        }
    }

    async fn execute(&mut self, job: &Claimed) -> Result<(), StoreError> {
        let id = WorkorderId::from(job.job_id);
        let of = id.clone();
        let found = self
            .context
            .engine
            .substrate()
            .read(move |sql| {
                let Some(work) = reading::workorder_by_id(sql, &of)? else { return Ok(None) };
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
        let tier = match self.context.probing.choose(executor.sandbox).await {
            Ok(tier) => tier,
            Err(why) => return self.fail(job, "no_sandbox", &why).await,
        };
        let attempt = job.attempt_id.to_string();
        let folder = run_folder(&self.context.work, id.as_str(), &attempt);
        let _occupied = match occupy(&folder) {
            Ok(occupied) => occupied,
            Err(error) => return self.fail(job, "no_folder", &error.to_string()).await,
        };
        let cell = Cell { network: executor.network, ..cell(&folder, &attempt) };
        let command = match Command::new(&executor.argv, &executor.env, &cell, tier) {
            Ok(command) => command,
            Err(error) => return self.fail(job, "no_folder", &error.to_string()).await,
        };
        let since = stop_watch();
        let env = vec![
            (ATTEMPT_VARIABLE.to_string(), job.attempt_id.to_string()),
            ("FERNERY_WORK_ORDER_ID".to_string(), job.job_id.to_string()),
        ];
        let (stop, stops) = mpsc::unbounded_channel();
        let run = command.run(job.payload.get().as_bytes(), env, true, self.context.lease_ttl, stops);
        let tell = |_: StopReason, grace| {
            let _ = stop.send(grace);
        };
        let (ran, why) = self.attend(job, |budget| RESERVE_MAX.min(budget / 10), run, tell).await;
        door::failpoint("workorder-ran");
        let ms = millis(since.elapsed());
        command.close().await;
        settle(&folder, &self.context.private).await;
        let _ = remove_all(&folder);
        match (ran, why) {
            // The lease is lost: write nothing (invariant 11).
            (_, Some(StopReason::LeaseLost)) => Ok(()),
            // This process hung; that says nothing about the work.
            (Ok(ran), _) if ran.stopped == Some(Stopped::Silence) => {
                self.fail(job, "host_hung", "this process hung for longer than its lease").await
            }
            (Ok(ran), Some(StopReason::ShuttingDown)) if ran.stopped.is_some() => self.release(job).await,
            (Ok(ran), why) => self.hand_in(job, parts((executor, tier), ran, why, ms)).await.map(drop),
            (Err(NotRun::NoCommand(said)), _) => self.fail(job, "no_command", &said).await,
            (Err(NotRun::NotStarted(said)), _) => self.fail(job, "cannot_start", &said).await,
            (Err(NotRun::NoGuard(said)), _) => self.fail(job, "guard_died", &said).await,
        }
    }

    /// Runs a future while it renews the lease; answers why it had to stop, if it had to.
    pub(super) async fn attend<T>(
        &self,
        job: &Claimed,
        reserve: fn(Duration) -> Duration,
        work: impl Future<Output = T>,
        tell: impl Fn(StopReason, Duration),
    ) -> (T, Option<StopReason>) {
        let ttl = self.context.lease_ttl;
        tokio::pin!(work);
        let mut beats = Beats::start(self.context.clone(), job);
        let mut trusted = tokio::time::Instant::now() + ttl;
        let budget = job.timeout_at.map_or(Duration::MAX / 2, |at| at.since(job.claimed_at));
        let reserve = reserve(budget);
        let deadline = tokio::time::sleep(budget.saturating_sub(reserve));
        tokio::pin!(deadline);
        let mut why = None;
        let mut ending = self.ending.clone();
        loop {
            tokio::select! {
                done = &mut work => return (done, why),
                Some((asked_at, answer)) = beats.answers.recv() => match answer {
                    BeatAnswer::Extended { cancel_requested, .. } => {
                        trusted = asked_at + ttl;
                        if cancel_requested && why.is_none() {
                            why = Some(StopReason::Cancelled);
                            tell(StopReason::Cancelled, GRACE);
                        }
                    }
                    BeatAnswer::LeaseLost | BeatAnswer::Unknown => {
                        why = Some(StopReason::LeaseLost);
                        tell(StopReason::LeaseLost, Duration::ZERO);
                    }
                },
                // The holder is unknown now: another process may be working on it (invariant 20).
                () = tokio::time::sleep_until(trusted), if why != Some(StopReason::LeaseLost) => {
                    why = Some(StopReason::LeaseLost);
                    tell(StopReason::LeaseLost, Duration::ZERO);
                }
                () = &mut deadline, if why.is_none() => {
                    why = Some(StopReason::BudgetSpent);
                    tell(StopReason::BudgetSpent, reserve / 2);
                }
                () = ended(&mut ending), if why.is_none() => {
                    why = Some(StopReason::ShuttingDown);
                    tell(StopReason::ShuttingDown, GRACE);
                }
            }
        }
    }

    fn proof(job: &Claimed) -> Proof {
        Proof { job_id: job.job_id, attempt_id: job.attempt_id, token_hash: job.lease_token.hash() }
    }

    /// Hands in the output. If it is not an output bundle, that fact is handed in; answers whether the output was
    /// accepted, or why not.
    pub(super) async fn hand_in(
        &self,
        job: &Claimed,
        parts: Value,
    ) -> Result<Result<(), String>, StoreError> {
        let result = raw(&parts);
        let item = Completion { proof: Self::proof(job), result };
        let answers = self.context.engine.store().complete(vec![item]).await?;
        match answers.first() {
            Some(Answer::Unfit) => {
                let said = membrane::parts(&parts).err().unwrap_or_default();
                let said: Vec<String> =
                    said.iter().take(20).map(|v| format!("{}: {}", v.path, v.message)).collect();
                let said: String = showable(&said.join("\n")).chars().take(4_000).collect();
                let instead = json!({
                    "title": "The output is no output bundle",
                    "content": "",
                    "notes": said,
                    "metadata": {"outcome": Outcome::Protocol.as_str()},
                });
                let item = Completion { proof: Self::proof(job), result: raw(&instead) };
                self.context.engine.store().complete(vec![item]).await?;
                Ok(Err("what it handed in is no output bundle".into()))
            }
            Some(Answer::Accepted { .. } | Answer::Duplicate { .. }) => Ok(Ok(())),
            other => {
                info!(?other, work_order_id = %job.job_id, "the output of a run was not accepted");
                Ok(Err("its output came too late".into()))
            }
        }
    }

    pub(super) async fn fail(&self, job: &Claimed, code: &str, message: &str) -> Result<(), StoreError> {
        let cause =
            Cause { code: code.to_string(), message: message.to_string(), stack: None, retryable: true };
        self.context.engine.store().fail(vec![Failure::new(Self::proof(job), cause)]).await?;
        Ok(())
    }

    pub(super) async fn release(&self, job: &Claimed) -> Result<(), StoreError> {
        self.context.engine.store().release(vec![Self::proof(job)]).await?;
        Ok(())
    }
}

/// Renews a lease concurrently with the work under it, so that neither waits for the other.
struct Beats {
    answers: mpsc::UnboundedReceiver<(tokio::time::Instant, BeatAnswer)>,
    task: tokio::task::JoinHandle<()>,
}

impl Beats {
    fn start(context: Arc<Context>, job: &Claimed) -> Self {
        let beat = Beat { job_id: job.job_id, token_hash: job.lease_token.hash() };
        let (tell, answers) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            loop {
                until_due_or_cancelled(&context, beat.job_id).await;
                let asked_at = tokio::time::Instant::now();
                match context.engine.store().heartbeat(vec![beat]).await.as_deref() {
                    Ok([answer]) => drop(tell.send((asked_at, *answer))),
                    Ok(_) => {}
                    Err(error) => {
                        warn!(%error, work_order_id = %beat.job_id, "a heartbeat failed; will retry")
                    }
                }
            }
        });
        Self { answers, task }
    }
}

/// Waits until the next heartbeat is due or the workorder is cancelled: a cancel must not wait for a long lease.
async fn until_due_or_cancelled(context: &Context, job_id: JobId) {
    let due = tokio::time::Instant::now() + context.lease_ttl / 3;
    let (id, substrate) = (WorkorderId::from(job_id), context.engine.substrate());
    loop {
        let next = (tokio::time::Instant::now() + CANCEL_LOOK).min(due);
        tokio::time::sleep_until(next).await;
        if next == due {
            return;
        }
        let of = id.clone();
        let read = substrate.read(move |sql| reading::workorder_by_id(sql, &of)).await;
        // If the database is away, the heartbeat reports it.
        if read.is_ok_and(|work| work.is_some_and(|work| work.cancelled)) {
            return;
        }
    }
}

impl Drop for Beats {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Waits for the shutdown.
async fn ended(ending: &mut watch::Receiver<bool>) {
    let _ = ending.wait_for(|ending| *ending).await;
}

pub(super) fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// What a program that ran hands in: the parts that it wrote as JSON, or its text as content.
fn parts((executor, tier): (&Executor, Tier), ran: Ran, why: Option<StopReason>, ms: u64) -> Value {
    let exit = ran.seen.exit.code();
    let stopped = ran.stopped.is_some();
    let complaints = showable(&ran.seen.stderr.text());
    let (cut, bytes) = (ran.seen.stdout.is_cut(), ran.seen.stdout.kept());
    let facts = |outcome: Outcome| json!({"outcome": outcome.as_str(), "executor": executor.argv.first(), "sandbox": tier, "exit": exit, "wall_ms": ms});
    let plain = |outcome: Outcome, title: &str, content: &str, notes: &str| json!({"title": title, "content": content, "notes": notes, "metadata": facts(outcome)});
    let text = String::from_utf8_lossy(&bytes).replace('\0', "\u{fffd}");
    // Replacing bytes that are not UTF-8 makes the text longer.
    let text = &text[..text.floor_char_boundary(KEPT_BYTES_MAX)];
    match why {
        Some(StopReason::BudgetSpent) if stopped => {
            let captured = match text.len() {
                0 => "nothing, because it had written nothing".to_string(),
                bytes => format!("{bytes} bytes that it had written, as content"),
            };
            let notes = notes_of_spent_budget(Some(ms), &captured, &complaints);
            return plain(Outcome::Budget, "The budget is spent", text, &notes);
        }
        Some(StopReason::Cancelled) if stopped => {
            return plain(Outcome::Cancelled, "Cancelled", text, &complaints);
        }
        _ => {}
    }
    if cut {
        return plain(Outcome::Protocol, "More output than may be handed in", &text[..0], &complaints);
    }
    if exit != Some(0) {
        let title = exit
            .map_or("The program was killed".to_string(), |code| format!("The program exited with {code}"));
        return plain(Outcome::Failed, &title, text, &complaints);
    }
    if std::str::from_utf8(&bytes).is_err() {
        return plain(Outcome::Protocol, "The output is not UTF-8", "", &complaints);
    }
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(mut given)) if given.contains_key("title") && given.contains_key("content") => {
            if let Some(metadata) = given.entry("metadata").or_insert_with(|| json!({})).as_object_mut()
                && let Value::Object(facts) = facts(Outcome::Output)
            {
                for (name, value) in facts {
                    // The program decides about its outcome, but not about the facts of its run.
                    if name != "outcome" || !metadata.contains_key(&name) {
                        metadata.insert(name, value);
                    }
                }
            }
            Value::Object(given)
        }
        _ if text.trim().is_empty() => plain(Outcome::NoChange, "The program said nothing", "", &complaints),
        _ => plain(Outcome::Output, "Output of the program", text, &complaints),
    }
}

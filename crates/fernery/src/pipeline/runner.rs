//! Executors of this process: for each kind of workorder that its blueprint does not leave to others, so many loops that claim
//! one, run its program under a guard (or answer it themselves), heartbeat, and hand in what came out. They take the road of a worker elsewhere: the same
//! claim, the same lease, the same membrane.

use super::command::{Command, GRACE, cell, exit_code};
use super::driver::caught;
use super::leftovers::run_folder;
use super::{Context, stop_watch};
use crate::diazotroph::{occupy, remove_all};
use crate::sandbox::{Cell, Tier};
use crate::worker::link::Stopped;
use crate::worker::process::{ATTEMPT_VARIABLE, NotRun, Ran};
use fernery_core::artifact::{WorkorderId, WorkorderStatus};
use fernery_core::blueprint::Executor;
use fernery_core::names::showable;
use fernery_core::pipeline::membrane::{self, Outcome};
use fernery_core::report::Answer;
use fernery_core::{JobId, StreamName, WorkerId};
use fernery_engine::store::{Ask, Beat, BeatAnswer, Cause, Claimed, Completion, Failure, Proof};
use fernery_engine::substrate::{azollas, reading};
use fernery_engine::{StoreError, door};
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
/// Of what a program wrote that is kept as content: all parts together are bounded.
const KEPT_BYTES_MAX: usize = 768 << 10;
/// Kept of the budget for stopping the program and handing in what there is.
const RESERVE_MAX: Duration = Duration::from_secs(2);
/// How often a running workorder is looked at for whether it is still wanted.
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
        for (streams, slots_of) in parallel.into_iter().filter(|(streams, _)| !streams.is_empty()) {
            for n in 0..slots_of {
                let slot = Slot {
                    context: context.clone(),
                    streams: streams.clone(),
                    worker_id: WorkerId::stored(&format!("{}-{n}", context.owner)),
                    ending: ending.subscribe(),
                };
                slots.spawn(slot.run());
            }
        }
        Self { ending, slots }
    }

    /// Stops what runs and hands it back.
    pub(super) async fn stop(mut self) {
        self.ending.send_replace(true);
        let all = async { while self.slots.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(GRACE + Duration::from_secs(3), all).await;
    }
}

/// One program at a time.
pub(super) struct Slot {
    pub(super) context: Arc<Context>,
    streams: Vec<StreamName>,
    worker_id: WorkerId,
    ending: watch::Receiver<bool>,
}

/// Why a program was told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    Cancelled,
    Budget,
    ShuttingDown,
    LeaseLost,
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
                            warn!(%error, work_order_id = %job.job_id, "not reported; its lease runs out");
                        }
                    }
                }
                Err(error) => {
                    warn!(%error, "an executor cannot claim");
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
            return self
                .fail(job, "no_workorder", "there is no such workorder, or it is not wanted any more")
                .await;
        };
        let Some(executor) = blueprint.executor_of(&of).filter(|e| e.kind.runs_here()) else {
            return self.fail(job, "no_executor", "its blueprint has it executed elsewhere").await;
        };
        if !executor.kind.starts_program() {
            return self.answer(job, executor).await;
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
        let tell = |_: Why, grace| {
            let _ = stop.send(grace);
        };
        let (ran, why) = self.attend(job, |budget| RESERVE_MAX.min(budget / 10), run, tell).await;
        door::failpoint("workorder-ran");
        let ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        command.close().await;
        let _ = remove_all(&folder);
        match (ran, why) {
            // Not the holder any more: not one write (invariant 11).
            (_, Some(Why::LeaseLost)) => Ok(()),
            // This process hung, and says nothing about the work.
            (Ok(ran), _) if ran.stopped == Some(Stopped::Silence) => {
                self.fail(job, "host_hung", "this process hung for longer than its lease").await
            }
            (Ok(ran), Some(Why::ShuttingDown)) if ran.stopped.is_some() => self.release(job).await,
            (Ok(ran), why) => self.hand_in(job, parts((executor, tier), ran, why, ms)).await.map(drop),
            (Err(NotRun::NoCommand(said)), _) => self.fail(job, "no_command", &said).await,
            (Err(NotRun::NotStarted(said)), _) => self.fail(job, "cannot_start", &said).await,
            (Err(NotRun::NoGuard(said)), _) => self.fail(job, "guard_died", &said).await,
        }
    }

    /// Does something while renewing the lease; says why it was told to end, if it was.
    pub(super) async fn attend<T>(
        &self,
        job: &Claimed,
        reserve: fn(Duration) -> Duration,
        work: impl Future<Output = T>,
        tell: impl Fn(Why, Duration),
    ) -> (T, Option<Why>) {
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
                            why = Some(Why::Cancelled);
                            tell(Why::Cancelled, GRACE);
                        }
                    }
                    BeatAnswer::LeaseLost | BeatAnswer::Unknown => {
                        why = Some(Why::LeaseLost);
                        tell(Why::LeaseLost, Duration::ZERO);
                    }
                },
                // Nobody knows whose it is now: another may be at it (invariant 20).
                () = tokio::time::sleep_until(trusted), if why != Some(Why::LeaseLost) => {
                    why = Some(Why::LeaseLost);
                    tell(Why::LeaseLost, Duration::ZERO);
                }
                () = &mut deadline, if why.is_none() => {
                    why = Some(Why::Budget);
                    tell(Why::Budget, reserve / 2);
                }
                () = ended(&mut ending), if why.is_none() => {
                    why = Some(Why::ShuttingDown);
                    tell(Why::ShuttingDown, GRACE);
                }
            }
        }
    }

    fn proof(job: &Claimed) -> Proof {
        Proof { job_id: job.job_id, attempt_id: job.attempt_id, token_hash: job.lease_token.hash() }
    }

    /// Hands in what came of it. What is no output bundle is handed in as that; answers whether it was taken as it is, or why not.
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
                info!(?other, work_order_id = %job.job_id, "what came out was not accepted");
                Ok(Err("what it handed in was not taken any more".into()))
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

/// Renews a lease beside what is done under it, so that neither waits for the other.
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
                        warn!(%error, work_order_id = %beat.job_id, "a heartbeat did not get through")
                    }
                }
            }
        });
        Self { answers, task }
    }
}

/// Waits until the next heartbeat is due, or until the workorder is cancelled: whoever cancels does not wait for a long lease.
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
        // A database that is away is told of by the heartbeat.
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

/// Waits until everything has to end.
async fn ended(ending: &mut watch::Receiver<bool>) {
    let _ = ending.wait_for(|ending| *ending).await;
}

pub(super) fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// What a program that ran hands in: the parts that it wrote as JSON, or its text as content.
fn parts((executor, tier): (&Executor, Tier), ran: Ran, why: Option<Why>, ms: u64) -> Value {
    let exit = exit_code(&ran.seen.exit);
    let stopped = ran.stopped.is_some();
    let complaints = showable(&ran.seen.stderr.text());
    let (cut, bytes) = (ran.seen.stdout.is_cut(), ran.seen.stdout.kept());
    let facts = |outcome: Outcome| json!({"outcome": outcome.as_str(), "executor": executor.argv.first(), "sandbox": tier, "exit": exit, "wall_ms": ms});
    let plain = |outcome: Outcome, title: &str, content: &str, notes: &str| json!({"title": title, "content": content, "notes": notes, "metadata": facts(outcome)});
    let text = String::from_utf8_lossy(&bytes).replace('\0', "\u{fffd}");
    // Bytes that are no text grow when they are replaced.
    let text = &text[..text.floor_char_boundary(KEPT_BYTES_MAX)];
    match why {
        Some(Why::Budget) if stopped => {
            return plain(Outcome::Budget, "The budget is spent", text, &complaints);
        }
        Some(Why::Cancelled) if stopped => return plain(Outcome::Cancelled, "Cancelled", text, &complaints),
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
                    // What it came to is the program's to say; how it ran is not.
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

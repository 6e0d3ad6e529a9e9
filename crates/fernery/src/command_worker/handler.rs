//! One job from claim to answer: starts its process, stops it if the loop says so, and judges its end.
//!
//! | told to stop because | the process gets | reported |
//! |---|---|---|
//! | the job was cancelled | TERM, the grace, KILL | failure `cancelled`, which ends the job as CANCELLED |
//! | the worker shuts down | TERM, the grace, KILL | handed back |
//! | no heartbeat got through | the same, within what is left of the lease | handed back, if the server still listens |
//! | the attempt has reached its time-out | TERM, the grace, KILL | nothing: the server ends the attempt |
//! | the lease is lost | KILL | nothing |
//!
//! A command that ended by itself before it was told to stop is judged by its end, whatever the reason.

use super::outcome::{Failed, Rules, judge};
use fernery_client::worker::{Failure, Job, StopReason};
use fernery_exec::guard::{ATTEMPT_VARIABLE, Guards, Input, NotRun, Ran, Stopped};
use serde_json::value::RawValue;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Runs a command for each job.
pub struct Handler {
    /// They start the command.
    pub guards: Guards,
    /// The rules by which its end is judged.
    pub rules: Rules,
    /// How long a process may take to end on TERM.
    pub kill_grace: Duration,
    /// Becomes true when everything has to end at once.
    pub at_once: watch::Receiver<bool>,
    /// Why no job can be run here any more.
    pub broken: Broken,
    pub remarks: Remarks,
}

/// Called with remarks about a job's processes.
pub type Remarks = Box<dyn Fn(&Job, Remark) + Send + Sync>;

/// Set once no job can be run here any more; wakes those that wait for it.
#[derive(Clone, Debug, Default)]
pub struct Broken(Arc<(OnceLock<String>, tokio::sync::Notify)>);

impl Broken {
    fn set(&self, why: String) {
        let _ = self.0.0.set(why);
        self.0.1.notify_one();
    }

    /// Waits until it is set.
    pub async fn wait(&self) {
        while self.get().is_none() {
            self.0.1.notified().await;
        }
    }

    /// The reason, if it is set.
    pub fn get(&self) -> Option<&str> {
        self.0.0.get().map(String::as_str)
    }
}

/// Something about a job's processes that its outcome does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remark {
    /// The command left this many processes behind, which were ended.
    Leftovers(u32),
    /// These processes could not be ended, not even by KILL.
    Immortal(Vec<i32>),
}

impl Handler {
    /// Runs the command for this job.
    pub async fn run(&self, job: Job) -> Result<Box<RawValue>, Failure> {
        if job.stop_reason().is_some_and(|reason| reason > StopReason::CancelRequested) {
            return Err(Failure::release());
        }
        let (orders, stops) = mpsc::unbounded_channel();
        let stdin = job.raw_payload().get().as_bytes();
        let (env, hang_max) = (variables(&job), job.trusted_for());
        let input = Input { env, stdin, ends_when_full: true, listener: None, hang_max };
        let run = self.guards.run(input, stops);
        tokio::pin!(run);
        let mut at_once = self.at_once.clone();
        let (mut reason, mut hurried) = (None, false);
        let ran = loop {
            tokio::select! {
                biased;
                ran = &mut run => break ran,
                weightier = weightier(&job, reason) => {
                    reason = Some(weightier);
                    // The run may be over, and its receiver gone.
                    let _ = orders.send(self.grace(&job, weightier));
                }
                changed = at_once.wait_for(|at_once| *at_once), if !hurried => {
                    hurried = true;
                    if changed.is_ok() {
                        let _ = orders.send(Duration::ZERO);
                    }
                }
            }
        };
        self.answer(&job, ran, reason)
    }

    fn grace(&self, job: &Job, reason: StopReason) -> Duration {
        match reason {
            StopReason::CancelRequested | StopReason::ShuttingDown | StopReason::TimedOut => self.kill_grace,
            // A third of the lease is left when trust ends; half of that is kept for sending the report.
            StopReason::LeaseUnsure => self.kill_grace.min(job.lease_ttl() / 6),
            StopReason::LeaseLost => Duration::ZERO,
        }
    }

    fn answer(
        &self,
        job: &Job,
        ran: Result<Ran, NotRun>,
        reason: Option<StopReason>,
    ) -> Result<Box<RawValue>, Failure> {
        let ran = match ran {
            Ok(ran) => ran,
            Err(NotRun::NoCommand(why)) => {
                // The job is not at fault, and every other job would fail here too.
                self.broken.set(format!("the command does not start any more: {why}"));
                return Err(Failure::release());
            }
            Err(NotRun::NotStarted(why)) => return Err(Failure::new("cannot_start", why)),
            Err(NotRun::NoGuard(why)) => return Err(Failure::new("guard_died", why)),
        };
        if ran.leftovers > 0 {
            (self.remarks)(job, Remark::Leftovers(ran.leftovers));
        }
        if !ran.immortal.is_empty() {
            (self.remarks)(job, Remark::Immortal(ran.immortal));
        }
        match (ran.stopped, reason) {
            (Some(Stopped::Ordered), None) if ran.seen.stdout.is_cut() => {}
            (Some(_), Some(StopReason::CancelRequested)) => {
                return Err(Failure::new("cancelled", "the job was cancelled while it ran").permanent());
            }
            (Some(_), _) => return Err(Failure::release()),
            (None, _) => {}
        }
        judge(ran.seen, &self.rules).map_err(|Failed { code, message, stack, retryable }| {
            let failure = Failure::new(code, message).retryable(retryable);
            match stack {
                Some(stack) => failure.stack(stack),
                None => failure,
            }
        })
    }
}

/// Waits for a reason to stop that is more urgent than the known one.
pub(crate) async fn weightier(job: &Job, known: Option<StopReason>) -> StopReason {
    match known {
        None => job.cancelled().await,
        Some(StopReason::CancelRequested) => job.stopped_for(StopReason::ShuttingDown).await,
        Some(StopReason::ShuttingDown) => job.stopped_for(StopReason::LeaseUnsure).await,
        Some(StopReason::LeaseUnsure) => job.stopped_for(StopReason::TimedOut).await,
        Some(StopReason::TimedOut) => job.stopped_for(StopReason::LeaseLost).await,
        Some(StopReason::LeaseLost) => std::future::pending().await,
    }
}

/// The environment variables about the job.
fn variables(job: &Job) -> Vec<(String, String)> {
    let pair = |name: &str, value: String| (name.to_string(), value);
    vec![
        pair("FERNERY_JOB_ID", job.id().to_string()),
        pair(ATTEMPT_VARIABLE, job.attempt_id().to_string()),
        pair("FERNERY_JOB_ATTEMPT_NO", job.attempt_no().to_string()),
        pair("FERNERY_JOB_MAX_ATTEMPTS", job.max_attempts().to_string()),
        pair("FERNERY_JOB_STREAM", job.stream().to_string()),
    ]
}

//! Keeps the lease of a running workorder, and tells its work when to stop.
//!
//! The lease is trusted to its end, and not for two thirds of it as by a worker elsewhere: that worker needs the last third to end
//! its work gently, while here the program is killed at once and whoever takes the lease works in a folder of its own.

use super::{Slot, ended};
use crate::workers::Context;
use fernery_core::JobId;
use fernery_core::artifact::WorkorderId;
use fernery_engine::pipeline::reading;
use fernery_engine::store::{Beat, BeatAnswer, Claimed};
use fernery_exec::command::GRACE;
use fernery_exec::stop::StopReason;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tracing::warn;

/// How often a running workorder is checked for cancellation.
const CANCEL_LOOK: Duration = Duration::from_millis(500);

impl Slot {
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

//! Renews the leases of all held jobs with one array call per interval, and stops a job in time when its lease is no
//! longer certain.
//!
//! It reads and changes the table of held jobs and tells jobs to stop; it never reports. With nothing held it sleeps.

use super::event::WorkerEvent;
use super::held::{Beat, Renewal};
use super::job::StopReason;
use super::shared::Shared;
use crate::backoff::Backoff;
use crate::client::ClientError;
use crate::wire::{HeartbeatItem, WorkerBatch};
use fernery_core::limits;
use fernery_door as door;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Leases are checked at least this often, so that a machine notices soon after it wakes from sleep.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Minimum time for the answer to a heartbeat, however short the interval is.
const ANSWER_WITHIN_MIN: Duration = Duration::from_millis(250);

/// Runs until it is aborted.
pub(crate) async fn keep_leases(shared: Arc<Shared>) {
    let mut backoff = Backoff::default();
    loop {
        // Registered before looking, so that no job comes in between.
        let changed = shared.held_changed.notified();
        let Some(interval) = shared.held().interval() else {
            changed.await;
            continue;
        };
        let pause = if backoff.is_failing() { None } else { Some(interval) };
        let outcome = watching(&shared, interval, async {
            if let Some(pause) = pause {
                tokio::time::sleep(pause).await;
            }
            beat_all(&shared, interval).await
        });
        match outcome.await {
            Ok(()) => {
                if backoff.is_failing() {
                    backoff.reset();
                    shared.tell(|| WorkerEvent::Reconnected { call: "heartbeat" });
                }
            }
            Err(error) => {
                // A long back-off would cost the lease.
                let after = backoff.next(error.retry_after()).min(interval);
                shared.warn(WorkerEvent::Reconnecting { call: "heartbeat", error, after });
                watching(&shared, interval, tokio::time::sleep(after)).await;
            }
        }
    }
}

/// Awaits `what`. Meanwhile it stops jobs whose lease is no longer trusted and jobs that have reached their time-out.
async fn watching<T>(shared: &Shared, interval: Duration, what: impl Future<Output = T>) -> T {
    tokio::pin!(what);
    let look_every = LOOK_EVERY.min(interval / 2);
    loop {
        // Registered before looking, so that no job comes in between.
        let changed = shared.held_changed.notified();
        let (told, next) = shared.held().check(door::since_boot());
        for (job, reason) in told {
            shared.tell(|| WorkerEvent::Stopping { job, reason });
        }
        let look_at = Instant::now() + next.map_or(look_every, |next| next.min(look_every));
        tokio::select! {
            biased;
            done = &mut what => return done,
            () = tokio::time::sleep_until(look_at) => {}
            () = changed => {}
        }
    }
}

async fn beat_all(shared: &Shared, interval: Duration) -> Result<(), ClientError> {
    let mut beats = shared.held().beats(door::since_boot());
    while !beats.is_empty() {
        let rest = beats.split_off(beats.len().min(limits::WORKER_BATCH_MAX));
        let (call, items): (Vec<Beat>, Vec<HeartbeatItem>) = beats.into_iter().unzip();
        let sent_at = door::since_boot();
        let batch = WorkerBatch { worker_id: shared.worker_id.clone(), items };
        let within = interval.max(ANSWER_WITHIN_MIN);
        let reply = tokio::time::timeout(within, shared.client.heartbeat(&batch)).await;
        let reply = reply.unwrap_or_else(|_| {
            Err(ClientError::TimedOut { url: shared.client.url().to_string(), after: within })
        })?;
        let answers = reply.items_for(call.iter().map(|beat| beat.job.id()))?;
        for (beat, answer) in call.iter().zip(&answers) {
            let renewal = shared.held().answered(beat, sent_at, answer);
            let job = beat.job.clone();
            match renewal {
                Renewal::Good | Renewal::Moot => {}
                Renewal::Cancel => {
                    let reason = StopReason::CancelRequested;
                    shared.tell(|| WorkerEvent::Stopping { job, reason });
                }
                Renewal::Lost => {
                    shared.tally.lost.add(1);
                    shared.warn(WorkerEvent::LeaseLost { job });
                }
            }
        }
        beats = rest;
    }
    Ok(())
}

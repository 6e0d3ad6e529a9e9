//! Reads workorders of cancelled objectives, claims nothing (a cancel is idempotent), and cancels their jobs: a waiting
//! job ends at once, a running one is told by its heartbeat. If no process hosts the azolla, it also claims executed
//! workorders and writes their verdicts. Does nothing when none is cancelled.

use super::Context;
use super::driver::{Pass, PollingWorker};
use async_trait::async_trait;
use fernery_core::artifact::AzollaId;
use fernery_engine::pipeline::claims::Claimer;
use fernery_engine::pipeline::judging::Judged;
use fernery_engine::pipeline::{azollas, reading, stranding};
use fernery_engine::{StoreError, door};
use tokio::sync::Mutex;

const BATCH: i64 = 100;

#[derive(Default)]
pub(super) struct Canceller {
    /// The last workorder that was cancelled. The next pass starts after it, so that a workorder that does not end does
    /// not block the others.
    after: Mutex<String>,
}

#[async_trait]
impl PollingWorker for Canceller {
    fn name(&self) -> &'static str {
        "runner"
    }

    fn is_per_azolla(&self) -> bool {
        false
    }

    async fn pass(&self, context: &Context, _: &AzollaId) -> Result<Pass, StoreError> {
        let mut pass = Pass::default();
        let mut after = self.after.lock().await;
        let from = after.clone();
        let told = context.engine.substrate().read(move |sql| reading::to_cancel(sql, &from, BATCH)).await?;
        let full = told.len() as i64 == BATCH;
        *after = told.last().filter(|_| full).map_or_else(String::new, ToString::to_string);
        pass.again = full;
        if !told.is_empty() {
            door::failpoint("cancel-found");
        }
        let mut failed = None;
        for id in told {
            let Some(job_id) = id.job_id() else { continue };
            match context.engine.store().cancel(job_id, false).await {
                Ok(_) => pass.count("cancel_requested", 1),
                // A damaged workorder does not hold up the others.
                Err(error) => failed = Some(error),
            }
            door::failpoint("cancel-told");
        }
        close(context, &mut pass, &mut failed).await?;
        failed.map_or(Ok(pass), Err)
    }
}

/// Ends cancelled runs of azollas that no process hosts: no gate would ever judge them.
async fn close(
    context: &Context,
    pass: &mut Pass,
    failed: &mut Option<StoreError>,
) -> Result<(), StoreError> {
    let substrate = context.engine.substrate();
    let hosting = substrate.read(azollas::hosting).await?;
    for azolla in hosting.abandoned() {
        let by = Claimer { owner_id: context.owner.clone(), ttl: context.lease_ttl };
        let of = azolla.clone();
        let taken = substrate.transact(move |sql| stranding::take_unwanted(sql, &of, &by, BATCH)).await?;
        pass.again |= taken.len() as i64 == BATCH;
        for held in taken {
            match substrate.transact(move |sql| stranding::close(sql, &held)).await {
                Ok(Judged::Recorded(_)) => pass.count("closed", 1),
                Ok(_) => {}
                Err(error) => *failed = Some(error),
            }
        }
    }
    Ok(())
}

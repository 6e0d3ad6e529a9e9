//! Reads workorders of cancelled objectives, claims nothing (a cancel is idempotent), and cancels their jobs: one that
//! waits ends at once, one that runs is told by its heartbeat. Does nothing when none is cancelled.

use super::Context;
use super::driver::{Pass, PollingWorker};
use async_trait::async_trait;
use fernery_core::artifact::AzollaId;
use fernery_engine::StoreError;
use fernery_engine::substrate::reading;

const BATCH: i64 = 100;

pub(super) struct Canceller;

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
        let cancelled = context.engine.substrate().read(move |sql| reading::to_cancel(sql, BATCH)).await?;
        for id in cancelled {
            let Some(job_id) = id.job_id() else { continue };
            context.engine.store().cancel(job_id, false).await?;
            pass.count("cancel_requested", 1);
        }
        Ok(pass)
    }
}

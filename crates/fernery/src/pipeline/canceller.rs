//! Reads workorders of cancelled objectives, claims nothing (a cancel is idempotent), and cancels their jobs: one that
//! waits ends at once, one that runs is told by its heartbeat. Does nothing when none is cancelled.

use super::Context;
use super::driver::{Pass, PollingWorker};
use async_trait::async_trait;
use fernery_core::artifact::AzollaId;
use fernery_engine::substrate::reading;
use fernery_engine::{StoreError, door};
use tokio::sync::Mutex;

const BATCH: i64 = 100;

#[derive(Default)]
pub(super) struct Canceller {
    /// The last one that was told: what is told again and again until it has ended keeps nobody else waiting.
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
        door::failpoint("cancel-found");
        for id in told {
            let Some(job_id) = id.job_id() else { continue };
            context.engine.store().cancel(job_id, false).await?;
            door::failpoint("cancel-told");
            pass.count("cancel_requested", 1);
        }
        Ok(pass)
    }
}

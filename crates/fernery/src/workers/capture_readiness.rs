//! Captures lines that come again when their time has come; reads waiting captures, claims nothing (a unique key prevents duplicates), emits CAPTURE_READY for each that has no
//! unprocessed event. Does nothing when none waits.

use super::Context;
use super::driver::{Pass, PollingWorker};
use async_trait::async_trait;
use fernery_core::artifact::AzollaId;
use fernery_core::blueprint::Blueprint;
use fernery_engine::pipeline::inbox::{capture_readiness, recurrences};
use fernery_engine::{StoreError, door};

const BATCH: i64 = 200;

pub(super) struct CaptureReadiness;

#[async_trait]
impl PollingWorker for CaptureReadiness {
    fn name(&self) -> &'static str {
        "capture_readiness"
    }

    fn serves(&self, blueprint: &Blueprint) -> bool {
        blueprint.triage.is_some()
    }

    async fn pass(&self, context: &Context, azolla: &AzollaId) -> Result<Pass, StoreError> {
        let of = azolla.clone();
        let substrate = context.engine.substrate();
        let pass = substrate.transact(move |sql| {
            Ok((recurrences::fire(sql, &of, BATCH)?, capture_readiness::emit(sql, &of, BATCH)?))
        });
        let (fired, emitted) = pass.await?;
        if fired > 0 {
            door::failpoint("recurrence-durable");
        }
        if emitted > 0 {
            door::failpoint("captures-announced");
        }
        let mut pass = Pass { again: emitted as i64 == BATCH, ..Pass::default() };
        pass.again |= fired as i64 == BATCH;
        pass.count("recurred", fired as u64);
        pass.count("emitted", emitted as u64);
        Ok(pass)
    }
}

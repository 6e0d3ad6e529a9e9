//! Reads objectives that entered TODO, claims nothing (a unique key prevents duplicates), emits TICKET_READY for each.
//! Does nothing when none entered.

use super::Context;
use super::driver::{Pass, PollingWorker};
use async_trait::async_trait;
use fernery_core::artifact::AzollaId;
use fernery_core::blueprint::Blueprint;
use fernery_engine::pipeline::readiness;
use fernery_engine::{StoreError, door};

const BATCH: i64 = 100;

pub(super) struct Readiness;

#[async_trait]
impl PollingWorker for Readiness {
    fn name(&self) -> &'static str {
        "readiness"
    }

    fn serves(&self, blueprint: &Blueprint) -> bool {
        blueprint.standing.is_none()
    }

    async fn pass(&self, context: &Context, azolla: &AzollaId) -> Result<Pass, StoreError> {
        let of = azolla.clone();
        let emitted =
            context.engine.substrate().transact(move |sql| readiness::emit(sql, &of, BATCH)).await?;
        if emitted > 0 {
            door::failpoint("readiness-emitted");
        }
        let mut pass = Pass { again: emitted as i64 == BATCH, ..Pass::default() };
        pass.count("emitted", emitted as u64);
        Ok(pass)
    }
}

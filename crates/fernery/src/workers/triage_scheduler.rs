//! Reads CAPTURE_READY, oldest first, and whether the tracks are free; claims the events; makes one workorder for a
//! batch of waiting captures, or closes events whose captures no longer wait. Does nothing when there is no event or a
//! workorder is unfinished.

use super::Context;
use super::driver::{Pass, PollingWorker};
use async_trait::async_trait;
use fernery_core::artifact::{AzollaId, EventType};
use fernery_core::blueprint::Blueprint;
use fernery_engine::pipeline::inbox::tracks;
use fernery_engine::pipeline::room::{self, Room};
use fernery_engine::pipeline::scheduling::{ClaimedEvent, Scheduled};
use fernery_engine::pipeline::{azollas, claims};
use fernery_engine::{StoreError, door};

/// Events claimed at once: one of them leads to a workorder; those without a waiting capture are closed.
const BATCH: i64 = 200;

pub(super) struct TriageScheduler;

#[async_trait]
impl PollingWorker for TriageScheduler {
    fn name(&self) -> &'static str {
        "triage_scheduler"
    }

    fn serves(&self, blueprint: &Blueprint) -> bool {
        blueprint.triage.is_some()
    }

    async fn pass(&self, context: &Context, azolla: &AzollaId) -> Result<Pass, StoreError> {
        let substrate = context.engine.substrate();
        let mut pass = Pass::default();
        let of = azolla.clone();
        let (room, waits) = substrate
            .read(move |sql| match azollas::in_force(sql, &of)? {
                Some(registered) => {
                    let room = room::room_for_triage(sql, &registered)?;
                    Ok((room, room::captures_wait(sql, &of)?))
                }
                None => Ok((Room::Track, false)),
            })
            .await?;
        if !matches!(room, Room::Left(_)) {
            pass.count(room.name(), 1);
            return Ok(pass);
        }
        // Of the events with waiting captures one is enough; those without are closed together.
        let (of, limit) = (azolla.clone(), if waits { 1 } else { BATCH });
        let (by, ready) = (context.claimer(), EventType::CaptureReady);
        let taken = substrate.transact(move |sql| claims::take_events(sql, &of, ready, &by, limit)).await?;
        if taken.is_empty() {
            return Ok(pass);
        }
        door::failpoint("capture-event-claimed");
        let claimed: Vec<ClaimedEvent> = taken
            .into_iter()
            .map(|(event, held)| ClaimedEvent { event, held, ids: context.new_ids(), ground: None })
            .collect();
        let of = azolla.clone();
        let done = substrate.transact(move |sql| tracks::schedule_triage(sql, &of, &claimed)).await?;
        door::failpoint("triage-scheduled");
        pass.again = done.iter().any(|scheduled| matches!(scheduled, Scheduled::Closed(_)));
        done.iter().for_each(|scheduled| pass.count(scheduled.name(), 1));
        Ok(pass)
    }
}

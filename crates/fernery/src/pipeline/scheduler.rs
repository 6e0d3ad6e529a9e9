//! Reads unprocessed events, oldest first, and room in the azolla; claims each event; makes its workorder or closes it for
//! a named reason. Does nothing when there is no event or no room.

use super::Context;
use super::driver::{Pass, PollingWorker};
use async_trait::async_trait;
use fernery_core::artifact::{AzollaId, SnapshotId, TerminalReason};
use fernery_engine::substrate::azollas;
use fernery_engine::substrate::claims::{self, Claimer};
use fernery_engine::substrate::scheduling::{self, Claimed, Ids, Room, Scheduled};
use fernery_engine::{StoreError, Substrate, door};

/// Events claimed at once, and dealt with in one transaction.
const BATCH: i64 = 64;

pub(super) struct Scheduler;

#[async_trait]
impl PollingWorker for Scheduler {
    fn name(&self) -> &'static str {
        "scheduler"
    }

    async fn pass(&self, context: &Context, azolla: &AzollaId) -> Result<Pass, StoreError> {
        let substrate = context.engine.substrate();
        let mut pass = Pass::default();
        let of = azolla.clone();
        let room = substrate
            .read(move |sql| match azollas::in_force(sql, &of)? {
                Some(registered) => scheduling::room(sql, &registered),
                None => Ok(Room::Left(0)),
            })
            .await?;
        let Some(left) = left(room, &mut pass) else { return Ok(pass) };
        let by = Claimer { owner_id: context.owner.clone(), ttl: context.lease_ttl };
        let (of, limit) = (azolla.clone(), left.min(BATCH));
        let taken = substrate.transact(move |sql| claims::take_events(sql, &of, &by, limit)).await?;
        door::failpoint("event-claimed");
        pass.again = taken.len() as i64 == limit && limit > 0;
        let chance = context.engine.settings().store.chance;
        let ids = || Ids { job_id: chance.job_id(), snapshot_id: SnapshotId::stored(&door::artifact_id()) };
        let claimed: Vec<Claimed> =
            taken.into_iter().map(|(event, held)| Claimed { event, held, ids: ids() }).collect();
        let mut failed = None;
        match schedule(&substrate, azolla, claimed.clone()).await {
            Ok(done) => done.iter().for_each(|scheduled| tally(scheduled, &mut pass)),
            // One of them may be to blame: each alone, so that it keeps nobody else waiting.
            Err(error) if claimed.len() > 1 && error.is_of_one_call() => {
                for one in claimed {
                    match schedule(&substrate, azolla, vec![one]).await {
                        Ok(done) => done.iter().for_each(|scheduled| tally(scheduled, &mut pass)),
                        Err(error) => failed = Some(error),
                    }
                }
            }
            Err(error) => failed = Some(error),
        }
        door::failpoint("event-scheduled");
        failed.map_or(Ok(pass), Err)
    }
}

async fn schedule(
    substrate: &Substrate,
    azolla: &AzollaId,
    claimed: Vec<Claimed>,
) -> Result<Vec<Scheduled>, StoreError> {
    if claimed.is_empty() {
        return Ok(Vec::new());
    }
    let of = azolla.clone();
    substrate.transact(move |sql| scheduling::schedule_all(sql, &of, &claimed)).await
}

fn left(room: Room, pass: &mut Pass) -> Option<i64> {
    match room {
        Room::Left(left) => Some(left),
        Room::Concurrency => {
            pass.count("no_room_concurrency", 1);
            None
        }
        Room::Review => {
            pass.count("no_room_review", 1);
            None
        }
    }
}

fn tally(scheduled: &Scheduled, pass: &mut Pass) {
    match scheduled {
        Scheduled::Workorder(_) => pass.count("SCHEDULED", 1),
        Scheduled::Closed(reason) | Scheduled::Before(reason) => {
            pass.count(TerminalReason::as_str(*reason), 1)
        }
        Scheduled::NoRoom(room) => {
            pass.again = false;
            left(*room, pass);
        }
        Scheduled::ClaimLost => pass.count("claim_lost", 1),
    }
}

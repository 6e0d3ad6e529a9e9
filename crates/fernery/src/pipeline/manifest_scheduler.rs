//! Reads MANIFEST_REQUESTED and the schedule, and whether the tracks are free and no capture waits; claims the event; asks every
//! azolla that this one may read, here and elsewhere, while the claim is renewed; makes a workorder of what they answered, or closes
//! the event because nothing has changed. Does nothing when there is no event or the tracks are taken.

use super::Context;
use super::driver::{Pass, PollingWorker};
use super::scheduler::{left, tally};
use crate::membrane;
use async_trait::async_trait;
use fernery_core::artifact::{AzollaId, EventType, Metadata, QueryStatus, SnapshotId};
use fernery_core::blueprint::{Blueprint, ReadableArtifact};
use fernery_engine::substrate::claims::{self, Claimer, Held};
use fernery_engine::substrate::manifests::{self, Answered};
use fernery_engine::substrate::scheduling::{Claimed, Ids, Room, Scheduled};
use fernery_engine::substrate::{azollas, tracks};
use fernery_engine::{StoreError, door};

pub(super) struct ManifestScheduler;

#[async_trait]
impl PollingWorker for ManifestScheduler {
    fn name(&self) -> &'static str {
        "manifest_scheduler"
    }

    fn serves(&self, blueprint: &Blueprint) -> bool {
        blueprint.manifest.is_some()
    }

    async fn pass(&self, context: &Context, azolla: &AzollaId) -> Result<Pass, StoreError> {
        let substrate = context.engine.substrate();
        let mut pass = Pass::default();
        let of = azolla.clone();
        let fired = substrate.transact(move |sql| manifests::fire(sql, &of)).await?;
        pass.count("fired", u64::from(fired));
        let of = azolla.clone();
        let room = substrate
            .read(move |sql| match azollas::in_force(sql, &of)? {
                Some(registered) => tracks::room_for_manifest(sql, &registered),
                None => Ok(Room::Track),
            })
            .await?;
        if left(room, &mut pass).is_none() {
            return Ok(pass);
        }
        let by = Claimer { owner_id: context.owner.clone(), ttl: context.lease_ttl };
        let (of, wanted) = (azolla.clone(), EventType::ManifestRequested);
        let mut taken = substrate.transact(move |sql| claims::take_events(sql, &of, wanted, &by, 1)).await?;
        let Some((event, held)) = taken.pop() else { return Ok(pass) };
        door::failpoint("manifest-event-claimed");
        let Some((answered, held)) = ask_all(context, azolla, held).await? else {
            pass.count("claim_lost", 1);
            return Ok(pass);
        };
        door::failpoint("azollas-asked");
        let chance = context.engine.settings().store.chance;
        let ids = Ids { job_id: chance.job_id(), snapshot_id: SnapshotId::stored(&door::artifact_id()) };
        for one in &answered {
            pass.count(one.response.status.as_str(), 1);
        }
        let claimed = Claimed { event, held, ids, ground: None };
        let done = substrate.transact(move |sql| tracks::schedule_manifest(sql, &claimed, &answered)).await?;
        door::failpoint("manifest-scheduled");
        pass.again = matches!(done, Scheduled::Closed(_));
        let again = pass.again;
        tally(&done, &mut pass);
        pass.again = again;
        Ok(pass)
    }
}

/// Asks every azolla, one after the other, while the claim is renewed; `None`: somebody has taken over.
async fn ask_all(
    context: &Context,
    azolla: &AzollaId,
    mut held: Held,
) -> Result<Option<(Vec<Answered>, Held)>, StoreError> {
    let substrate = context.engine.substrate();
    let mut answered = Vec::new();
    let mut renewed_at = tokio::time::Instant::now();
    for target in membrane::targets(context, azolla).await? {
        for of in [ReadableArtifact::Objective, ReadableArtifact::PauseState] {
            if !membrane::declared(context, azolla, &target, of) {
                continue;
            }
            let answer = membrane::ask(context, azolla, &target, of, Metadata::new()).await?;
            let silent = answer.response.status != QueryStatus::Ok;
            answered.push(answer);
            if renewed_at.elapsed() < context.lease_ttl / 4 {
                // Who did not answer the first question is not waited for a second time.
                if silent {
                    break;
                }
                continue;
            }
            let (mine, ttl) = (held, context.lease_ttl);
            let renewed = substrate.transact(move |sql| claims::renew(sql, &mine, ttl)).await?;
            let Some(renewed) = renewed else { return Ok(None) };
            held = renewed;
            renewed_at = tokio::time::Instant::now();
            if silent {
                break;
            }
        }
    }
    Ok(Some((answered, held)))
}

//! Reads MANIFEST_REQUESTED and the schedule, and whether the tracks are free and no capture waits; claims the event;
//! asks every azolla that this one may read, on this server and on others, while it renews the claim; makes a workorder
//! from the answers, or closes the event if nothing has changed. Does nothing when there is no event or the tracks are
//! taken.

use super::Context;
use super::driver::{Pass, PollingWorker};
use crate::outgoing::queries::{Asker, Target, at_once};
use async_trait::async_trait;
use fernery_core::artifact::{AzollaId, EventType, Metadata, QueryStatus};
use fernery_core::blueprint::{Blueprint, ReadableArtifact};
use fernery_engine::pipeline::azollas;
use fernery_engine::pipeline::claims::{self, HeldClaim};
use fernery_engine::pipeline::inbox::answers::Answered;
use fernery_engine::pipeline::inbox::{manifests, tracks};
use fernery_engine::pipeline::room::{self, Room};
use fernery_engine::pipeline::scheduling::{ClaimedEvent, Scheduled};
use fernery_engine::{StoreError, door};
use std::pin::pin;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout_at};

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
                Some(registered) => room::room_for_manifest(sql, &registered),
                None => Ok(Room::Track),
            })
            .await?;
        if !matches!(room, Room::Left(_)) {
            pass.count(room.name(), 1);
            return Ok(pass);
        }
        let (of, by, wanted) = (azolla.clone(), context.claimer(), EventType::ManifestRequested);
        let mut taken = substrate.transact(move |sql| claims::take_events(sql, &of, wanted, &by, 1)).await?;
        let Some((event, held)) = taken.pop() else { return Ok(pass) };
        door::failpoint("manifest-event-claimed");
        let Some((answered, held)) = ask_all(context, azolla, held).await? else {
            pass.count("claim_lost", 1);
            return Ok(pass);
        };
        door::failpoint("azollas-asked");
        for one in &answered {
            pass.count(one.response.status.as_str(), 1);
        }
        let claimed = ClaimedEvent { event, held, ids: context.new_ids(), ground: None };
        let repos: Vec<String> = context.repos.keys().cloned().collect();
        let done = substrate
            .transact(move |sql| tracks::schedule_manifest(sql, &claimed, &answered, &repos))
            .await?;
        door::failpoint("manifest-scheduled");
        pass.again = matches!(done, Scheduled::Closed(_));
        pass.count(done.name(), 1);
        Ok(pass)
    }
}

/// How long all azollas together may take to answer. The manifest names those that did not answer in time.
const ASKED_WITHIN: Duration = Duration::from_secs(20);
/// What they are asked for, in this order.
const ASKED_FOR: [ReadableArtifact; 2] = [ReadableArtifact::Objective, ReadableArtifact::PauseState];

/// Asks all azollas concurrently while it renews the claim; `None`: another process has taken over.
async fn ask_all(
    context: &Context,
    azolla: &AzollaId,
    mut held: HeldClaim,
) -> Result<Option<(Vec<Answered>, HeldClaim)>, StoreError> {
    let substrate = context.engine.substrate();
    let until = Instant::now() + ASKED_WITHIN;
    let asker = context.asker(azolla);
    let targets = asker.targets().await?;
    let mut asking = pin!(at_once(targets.iter().map(|of| ask(&asker, of, until))));
    loop {
        let renewed = Instant::now() + context.lease_ttl / 4;
        tokio::select! {
            all = &mut asking => {
                let all: Vec<Vec<Answered>> = all.into_iter().collect::<Result<_, _>>()?;
                return Ok(Some((all.concat(), held)));
            }
            () = sleep_until(renewed) => {
                let (mine, ttl) = (held, context.lease_ttl);
                let renewed = substrate.transact(move |sql| claims::renew(sql, &mine, ttl)).await?;
                let Some(renewed) = renewed else { return Ok(None) };
                held = renewed;
            }
        }
    }
}

/// Asks one azolla. If it denies one kind of artifact, the other kind is still asked for; if it is away, it is not
/// asked again.
async fn ask(asker: &Asker<'_>, target: &Target, until: Instant) -> Result<Vec<Answered>, StoreError> {
    let mut answered = Vec::new();
    for of in ASKED_FOR.into_iter().filter(|of| asker.declares(target, *of)) {
        let asked = asker.ask(target, of, Metadata::new());
        let answer = match timeout_at(until, asked).await {
            Ok(answer) => answer?,
            Err(_) => asker.unanswered(target, of),
        };
        let away = answer.response.status == QueryStatus::TargetUnavailable;
        answered.push(answer);
        if away {
            break;
        }
    }
    Ok(answered)
}

//! Reads unprocessed events, oldest first, and room in the azolla; claims each event; makes its workorder or closes it for
//! a named reason. Does nothing when there is no event or no room.

use super::Context;
use super::driver::{Pass, PollingWorker};
use crate::config::Repos;
use crate::git::repository::Repository;
use async_trait::async_trait;
use fernery_core::artifact::{AzollaId, ObjectiveId, SnapshotId, TerminalReason};
use fernery_core::pipeline::scheduling::{Ground, repo_ref};
use fernery_engine::substrate::claims::{self, Claimer};
use fernery_engine::substrate::scheduling::{self, Ids, Room, Scheduled};
use fernery_engine::substrate::{Sql, azollas, objectives};
use fernery_engine::{StoreError, Substrate, door};
use tokio::task::JoinSet;

/// Events claimed at once: each is a transaction, and they share commits.
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
        let (room, on_repositories) = substrate
            .read(move |sql| match azollas::in_force(sql, &of)? {
                Some(registered) => {
                    Ok((scheduling::room(sql, &registered)?, registered.blueprint.needs_repository()))
                }
                None => Ok((Room::Left(0), false)),
            })
            .await?;
        let Some(left) = left(room, &mut pass) else { return Ok(pass) };
        let by = Claimer { owner_id: context.owner.clone(), ttl: context.lease_ttl };
        let (of, limit) = (azolla.clone(), left.min(BATCH));
        let taken = substrate.transact(move |sql| claims::take_events(sql, &of, &by, limit)).await?;
        door::failpoint("event-claimed");
        pass.again = taken.len() as i64 == limit && limit > 0;
        let mut scheduling = JoinSet::new();
        let chance = context.engine.settings().store.chance;
        for (event, held) in taken {
            let substrate = substrate.clone();
            let ids = Ids { job_id: chance.job_id(), snapshot_id: SnapshotId::stored(&door::artifact_id()) };
            let repos = on_repositories.then(|| context.repos.clone());
            scheduling.spawn(async move {
                let ground = match repos {
                    Some(repos) => ground(&substrate, &repos, &event.resource_id).await?,
                    None => None,
                };
                let schedule =
                    move |sql: &mut dyn Sql| scheduling::schedule(sql, &event, &held, &ids, ground.as_ref());
                substrate.transact(schedule).await
            });
        }
        let mut failed = None;
        while let Some(done) = scheduling.join_next().await {
            match done {
                Ok(Ok(scheduled)) => tally(&scheduled, &mut pass),
                Ok(Err(error)) => failed = Some(error),
                Err(panicked) => failed = Some(StoreError::Unavailable(panicked.to_string())),
            }
        }
        door::failpoint("event-scheduled");
        failed.map_or(Ok(pass), Err)
    }
}

/// Looks where the work of an objective starts; `None`: there is no such objective.
async fn ground(substrate: &Substrate, repos: &Repos, objective: &str) -> Result<Option<Ground>, StoreError> {
    let Ok(id) = objective.parse::<ObjectiveId>() else { return Ok(None) };
    let found = substrate.read(move |sql| objectives::load(sql, &id, false)).await?;
    let Some(standing) = found else { return Ok(None) };
    let name = repo_ref(&standing.objective).map(str::to_string);
    let base = base(repos, name.as_deref()).await;
    Ok(Some(Ground { repo_ref: name, base }))
}

async fn base(repos: &Repos, name: Option<&str>) -> Result<(String, String), String> {
    let Some(name) = name else {
        return Err("it names no repository: edit it, with --meta repo_ref=NAME".into());
    };
    let Some(repo) = repos.get(name) else {
        let known: Vec<&str> = repos.keys().map(String::as_str).collect();
        let known = if known.is_empty() { "none is".into() } else { format!("{} are", known.join(", ")) };
        return Err(format!("repository {name} is not in [repos] of the configuration; {known}"));
    };
    let repository = Repository::open(&repo.path)?;
    match repository.branch(&repo.base).await.map_err(|error| error.to_string())? {
        Some(commit) => Ok((repo.base.clone(), commit)),
        None => Err(format!("repository {name} has no branch {} with a commit", repo.base)),
    }
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
        Scheduled::Changed => pass.count("repository_changed", 1),
        Scheduled::ClaimLost => pass.count("claim_lost", 1),
    }
}

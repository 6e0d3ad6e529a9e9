//! Reads unprocessed events, oldest first, and room in the azolla; claims each event; makes its workorder or closes it for
//! a named reason. Does nothing when there is no event or no room.

use super::Context;
use super::batches::alone_if_failed;
use super::driver::{Pass, PollingWorker};
use crate::config::Repos;
use async_trait::async_trait;
use fernery_core::artifact::{AzollaId, EventType, ObjectiveId};
use fernery_core::blueprint::Blueprint;
use fernery_core::pipeline::ground::{Ground, repo_ref};
use fernery_engine::pipeline::room::{self, Room};
use fernery_engine::pipeline::scheduling::{self, ClaimedEvent, Scheduled};
use fernery_engine::pipeline::{azollas, claims, objectives};
use fernery_engine::{StoreError, Substrate, door};
use fernery_exec::git::repository::Repository;
use std::collections::HashMap;

/// Events claimed at once, and dealt with in one transaction.
const BATCH: i64 = 64;

pub(super) struct Scheduler;

#[async_trait]
impl PollingWorker for Scheduler {
    fn name(&self) -> &'static str {
        "scheduler"
    }

    fn serves(&self, blueprint: &Blueprint) -> bool {
        blueprint.standing.is_none()
    }

    async fn pass(&self, context: &Context, azolla: &AzollaId) -> Result<Pass, StoreError> {
        let substrate = context.engine.substrate();
        let mut pass = Pass::default();
        let of = azolla.clone();
        let (room, on_repositories) = substrate
            .read(move |sql| match azollas::in_force(sql, &of)? {
                Some(registered) => {
                    Ok((room::room(sql, &registered)?, registered.blueprint.needs_repository()))
                }
                None => Ok((Room::Left(0), false)),
            })
            .await?;
        let Room::Left(left) = room else {
            pass.count(room.name(), 1);
            return Ok(pass);
        };
        let (of, by, limit) = (azolla.clone(), context.claimer(), left.min(BATCH));
        let taken = substrate
            .transact(move |sql| claims::take_events(sql, &of, EventType::TicketReady, &by, limit))
            .await?;
        if !taken.is_empty() {
            door::failpoint("event-claimed");
        }
        pass.again = taken.len() as i64 == limit && limit > 0;
        let mut claimed = Vec::with_capacity(taken.len());
        let mut bases = HashMap::new();
        for (event, held) in taken {
            let ground = match on_repositories {
                true => ground(&substrate, &context.repos, &mut bases, &event.resource_id).await?,
                false => None,
            };
            claimed.push(ClaimedEvent { event, held, ids: context.new_ids(), ground });
        }
        if claimed.is_empty() {
            return Ok(pass);
        }
        let (done, failed) = alone_if_failed(claimed, |some| schedule(&substrate, azolla, some)).await;
        for scheduled in done.iter().flatten() {
            pass.count(scheduled.name(), 1);
            pass.again &= !matches!(scheduled, Scheduled::NoRoom(_));
        }
        door::failpoint("event-scheduled");
        failed.map_or(Ok(pass), Err)
    }
}

/// Base branches and their commits, by repository name.
type Bases = HashMap<Option<String>, Result<(String, String), String>>;

/// Finds the repository and commit that the work of an objective starts from; `None`: there is no such objective.
async fn ground(
    substrate: &Substrate,
    repos: &Repos,
    bases: &mut Bases,
    objective: &str,
) -> Result<Option<Ground>, StoreError> {
    let Ok(id) = objective.parse::<ObjectiveId>() else { return Ok(None) };
    let found = substrate.read(move |sql| objectives::load(sql, &id)).await?;
    let Some(row) = found else { return Ok(None) };
    let repo_ref = repo_ref(&row.objective).map(str::to_string);
    let base = match bases.get(&repo_ref) {
        Some(known) => known.clone(),
        None => base(repos, repo_ref.as_deref()).await,
    };
    bases.insert(repo_ref.clone(), base.clone());
    Ok(Some(Ground { repo_ref, base }))
}

async fn base(repos: &Repos, name: Option<&str>) -> Result<(String, String), String> {
    let Some(name) = name else {
        return Err("the ticket names no repository: edit it with --meta repo_ref=NAME".into());
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

async fn schedule(
    substrate: &Substrate,
    azolla: &AzollaId,
    claimed: Vec<ClaimedEvent>,
) -> Result<Vec<Scheduled>, StoreError> {
    let of = azolla.clone();
    substrate.transact(move |sql| scheduling::schedule_all(sql, &of, &claimed)).await
}

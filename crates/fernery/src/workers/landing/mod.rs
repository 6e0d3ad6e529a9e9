//! Lets patches come home. Reads patches that passed and that their base branch does not have, and the tips of those
//! branches; tries each patch on a tip that it was not tried on; claims those that an operator wants there, one at a time for
//! each branch, in their order, and lands them. Does nothing when no branch has moved and nothing is wanted.
//!
//! Correctness rests on git's compare-and-swap of the branch, not on the claim: two that land at once cannot lose a commit.

mod attempt;
mod candidate;
mod trying;

use super::Context;
use super::driver::{Pass, PollingWorker, caught};
use super::gate::Judge;
use crate::config::Repos;
use async_trait::async_trait;
use fernery_core::artifact::AzollaId;
use fernery_core::blueprint::Blueprint;
use fernery_engine::pipeline::Stage;
use fernery_engine::pipeline::claims::Claimer;
use fernery_engine::pipeline::landing::{self, Concluded, LandBranch, NextLanding};
use fernery_engine::{StoreError, Substrate, door};
use fernery_exec::git::repository::Repository;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

/// Patches that one pass tries on one branch.
const TRIED_MAX: i64 = 16;
/// How long a pass waits for a landing whose gates are quick.
const MOMENT: Duration = Duration::from_millis(50);

pub(super) struct Landings {
    lander: Arc<Lander>,
    under_way: Mutex<UnderWay>,
}

/// Landings on their way, of all azollas: one with slow gates does not hold up other branches.
#[derive(Default)]
struct UnderWay {
    landing: JoinSet<(LandBranch, Result<Concluded, StoreError>)>,
    on: BTreeSet<LandBranch>,
}

/// What a landing needs.
pub(super) struct Lander {
    substrate: Substrate,
    judge: Arc<Judge>,
    by: Claimer,
    work: PathBuf,
    repos: Arc<Repos>,
}

impl Landings {
    pub(super) fn new(context: &Context, judge: Arc<Judge>) -> Self {
        let (substrate, by) = (context.engine.substrate(), context.claimer());
        let (work, repos) = (context.work.clone(), context.repos.clone());
        Self { lander: Arc::new(Lander { substrate, judge, by, work, repos }), under_way: Mutex::default() }
    }
}

#[async_trait]
impl PollingWorker for Landings {
    fn name(&self) -> &'static str {
        "landing"
    }

    fn serves(&self, blueprint: &Blueprint) -> bool {
        blueprint.needs_repository()
    }

    async fn pass(&self, _: &Context, azolla: &AzollaId) -> Result<Pass, StoreError> {
        let (lander, mut pass) = (&self.lander, Pass::default());
        let of = azolla.clone();
        let branches = lander.substrate.read(move |sql| landing::branches(sql, &of)).await?;
        let mut under_way = self.under_way.lock().await;
        // Where one is landing, the tip will be another one in a moment.
        let free = |on: &LandBranch| !under_way.on.contains(on);
        // A repository that another process has is landed on by that one.
        let here = |on: &LandBranch| lander.repos.contains_key(&on.repo_ref);
        for on in branches.into_iter().filter(|on| free(on) && here(on)).collect::<Vec<_>>() {
            if let Some(next) = lander.next(&on).await? {
                door::failpoint("land-claimed");
                let lander = lander.clone();
                under_way.on.insert(on.clone());
                under_way.landing.spawn(async move {
                    let landed = caught(lander.land(next)).await;
                    // Wakes a pass, which lets the next one land.
                    lander.substrate.nudge(Stage::Landing);
                    (on, landed)
                });
            } else {
                lander.try_on_tip(&on, &mut pass).await?;
            }
        }
        let mut failed = None;
        while let Ok(Some(done)) = tokio::time::timeout(MOMENT, under_way.landing.join_next()).await {
            match done {
                Ok((on, concluded)) => {
                    under_way.on.remove(&on);
                    pass.again = true;
                    match concluded {
                        Ok(concluded) => pass.count(name(concluded), 1),
                        Err(error) => failed = Some(error),
                    }
                }
                Err(ended) => failed = Some(StoreError::Unavailable(ended.to_string())),
            }
        }
        failed.map_or(Ok(pass), Err)
    }
}

fn name(concluded: Concluded) -> &'static str {
    match concluded {
        Concluded::Landed => "landed",
        Concluded::Stopped => "stopped",
        Concluded::Reworked => "reworked",
        Concluded::Later => "could_not_be_tried",
        Concluded::ClaimLost => "claim_lost",
    }
}

impl Lander {
    async fn next(&self, on: &LandBranch) -> Result<Option<NextLanding>, StoreError> {
        let (on, by) = (on.clone(), self.by.clone());
        // Most of the time none is wanted, and looking takes no lock.
        let seen = on.clone();
        if !self.substrate.read(move |sql| landing::waits(sql, &seen)).await? {
            return Ok(None);
        }
        self.substrate.transact(move |sql| landing::take_next(sql, &on, &by)).await
    }

    /// The repository of this process that a landing is about.
    fn repository(&self, repo_ref: &str) -> Result<Repository, String> {
        match self.repos.get(repo_ref) {
            Some(repo) => Repository::open(&repo.path),
            None => Err(format!("repository {repo_ref} is not in [repos] of this process's configuration")),
        }
    }
}

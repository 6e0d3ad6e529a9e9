//! Tries candidates on the tip of their base branch, in a git directory of ours: nothing is written in the repository.

use super::candidate::make;
use super::{Lander, TRIED_MAX};
use crate::workers::driver::Pass;
use crate::workers::leftovers::gate_folder;
use fernery_core::names::showable;
use fernery_core::pipeline::landing::{Fit, no_branch};
use fernery_engine::StoreError;
use fernery_engine::pipeline::landing::{self, LandBranch, Landing, Tried};
use fernery_exec::git::applied_patch::NotApplied;
use fernery_exec::git::landing::has;
use fernery_exec::git::merging::{Candidate, Merged, merge, scratch};
use fernery_exec::git::repository::Repository;
use std::path::Path;

/// A candidate that fits so.
fn fits(fit: Fit) -> Tried {
    Tried { fit: Some(fit), ..Tried::default() }
}

/// A candidate that could not be tried.
fn untried(why: Option<String>) -> Tried {
    Tried { why, ..Tried::default() }
}

impl Lander {
    /// Tries those candidates on a branch that were not tried on its tip. One look at the branch, however many there are.
    pub(super) async fn try_on_tip(&self, on: &LandBranch, pass: &mut Pass) -> Result<(), StoreError> {
        let repository = match self.repository(&on.repo_ref) {
            Ok(repository) => repository,
            Err(why) => {
                pass.count("no_repository", 1);
                return self.tell(on, showable(&why), pass).await;
            }
        };
        let tip = match repository.branch(&on.base_branch).await {
            Ok(Some(tip)) => tip,
            Ok(None) => {
                pass.count("no_branch", 1);
                return self.tell(on, no_branch(&on.repo_ref, &on.base_branch), pass).await;
            }
            // Git itself had trouble, which says nothing of the branch: the next pass looks again.
            Err(_) => {
                pass.count("branch_not_read", 1);
                return Ok(());
            }
        };
        let (of, at) = (on.clone(), tip.clone());
        let untried = self.substrate.read(move |sql| landing::untried(sql, &of, &at, TRIED_MAX)).await?;
        pass.again |= untried.len() as i64 == TRIED_MAX;
        for landing in untried {
            let name = format!("try-{}.git", self.by.owner_id);
            let dir = gate_folder(&self.work, landing.work_order_id.as_str(), &name, 0);
            let mut found = self.fit(&dir, &repository, &landing, &tip).await?;
            // A try that an operator wanted, and that ended in trouble, may have moved the branch.
            if let Some(to) = &landing.moved_to {
                found.moved = has(&repository, &on.base_branch, to).await.unwrap_or(false);
            }
            let _ = std::fs::remove_dir_all(&dir);
            pass.count(found.fit.map_or("could_not_be_tried", Fit::as_str), 1);
            let (tip, id) = (tip.clone(), landing.objective_id.clone());
            self.substrate.act(&id, move |sql| landing::tried(sql, &landing, &tip, &found)).await?;
        }
        Ok(())
    }

    /// Writes on the landings of a branch why it cannot be looked at, before somebody tries to merge one; where another process
    /// has the repository, too, that one does.
    async fn tell(&self, on: &LandBranch, why: String, pass: &mut Pass) -> Result<(), StoreError> {
        let (of, reason, owner) = (on.clone(), why.clone(), self.by.owner_id.clone());
        let untold =
            self.substrate.read(move |sql| landing::untold(sql, &of, (&owner, &reason), TRIED_MAX)).await?;
        pass.again |= untold.len() as i64 == TRIED_MAX;
        for landing in untold {
            let (id, why) = (landing.objective_id.clone(), why.clone());
            self.substrate.act(&id, move |sql| landing::unreachable(sql, &landing, &why)).await?;
        }
        Ok(())
    }

    async fn fit(
        &self,
        dir: &Path,
        repository: &Repository,
        landing: &Landing,
        tip: &str,
    ) -> Result<Tried, StoreError> {
        if landing.base_commit == tip {
            return Ok(fits(Fit::Merges));
        }
        let left = match &landing.candidate {
            Some(commit) if repository.has_commit(commit).await.unwrap_or(false) => Some(commit.clone()),
            _ => None,
        };
        let made = match left {
            Some(commit) => {
                scratch(dir, repository).map(|git| (git, commit)).map_err(|error| error.to_string())
            }
            None => {
                let Some(reviewed) = self.reviewed(landing).await? else {
                    return Ok(untried(None));
                };
                match make(dir, repository, landing, &reviewed).await {
                    Ok(made) => Ok((made.applied.git(), made.commit)),
                    Err(NotApplied::Unfit(why)) => {
                        return Ok(Tried { why: Some(why), ..fits(Fit::Conflicts) });
                    }
                    Err(NotApplied::Trouble(why)) => Err(why),
                }
            }
        };
        let (git, commit) = match made {
            Ok(made) => made,
            Err(why) => return Ok(untried(Some(why))),
        };
        let (base, branch) = (landing.base_commit.as_str(), landing.base_branch.as_str());
        Ok(match merge(&git, Candidate { base, commit: &commit, branch, tip }).await {
            Ok(Merged::Clean(_)) => fits(Fit::Merges),
            Ok(Merged::Contained) => fits(Fit::Contained),
            Ok(Merged::Conflict { files, why }) => Tried { why: Some(why), files, ..fits(Fit::Conflicts) },
            Err(error) => untried(Some(error.to_string())),
        })
    }
}

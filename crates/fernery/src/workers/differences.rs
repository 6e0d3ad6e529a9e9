//! The difference between two attempts, for readers: made in a folder of its own, from the repositories of this process.

use super::leftovers::gate_folder;
use crate::config::Repos;
use crate::http::Differing;
use fernery_core::artifact::WorkorderId;
use fernery_engine::door;
use fernery_exec::agent::remove_all;
use fernery_exec::git::applied_patch::NotApplied;
use fernery_exec::git::difference::{PatchedBase, difference};
use fernery_exec::git::repository::Repository;
use fernery_exec::sandbox::modes::make_plain;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Differences made at once: readers must not take all cores.
const AT_ONCE_MAX: usize = 2;

#[derive(Clone)]
pub(super) struct Differences {
    work: PathBuf,
    repos: Arc<Repos>,
    turns: Arc<Semaphore>,
}

impl Differences {
    pub(super) fn new(work: &Path, repos: &Arc<Repos>) -> Self {
        Self { work: work.to_owned(), repos: repos.clone(), turns: Arc::new(Semaphore::new(AT_ONCE_MAX)) }
    }

    /// What changed from the first to the second.
    pub(super) fn make(
        &self,
        id: &WorkorderId,
        repo_ref: String,
        [before, after]: [PatchedBase; 2],
    ) -> Differing {
        let (of, id) = (self.clone(), id.clone());
        Box::pin(async move {
            let Some(repo) = of.repos.get(&repo_ref) else {
                return Err(format!(
                    "repository {repo_ref} is not in [repos] of this process's configuration"
                ));
            };
            let repository = Repository::open(&repo.path)?;
            let _turn = of.turns.acquire().await.map_err(|error| error.to_string())?;
            // Named as the folder of a gate: what a killed process leaves is removed with those.
            let folder = format!("diff-{}", door::artifact_id());
            let dir = gate_folder(&of.work, id.as_str(), &folder, 0);
            make_plain(&dir).map_err(|error| format!("no folder for it: {error}"))?;
            let made = difference(&dir, &repository, [&before, &after]).await;
            let _ = remove_all(&dir);
            made.map_err(|(NotApplied::Unfit(why) | NotApplied::Trouble(why))| why)
        })
    }
}

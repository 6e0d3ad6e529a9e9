//! Tries a patch: applies it to its base commit in a fresh clone, for the gates to judge. When all have passed, it
//! makes the one branch in the operator's repository.

use crate::config::Repos;
use fernery_core::artifact::{ContextSnapshot, GateResult, OutputBundle, Workorder};
use fernery_core::names::showable;
use fernery_core::patch;
use fernery_core::patch::protects::{Relied, Touched, allowed_by, touched};
use fernery_core::pipeline::evidence::{BRANCH, Evidence, STACKED, said};
use fernery_core::pipeline::membrane::outcome;
use fernery_core::pipeline::prompt::title_of;
use fernery_exec::git::applied_patch::{AppliedPatch, NotApplied, Saying};
use fernery_exec::git::clone::Clone as PrivateClone;
use fernery_exec::git::repository::{Repository, is_branch_name, is_object_id};
use fernery_exec::git::ticket_branch::{EarlierBranch, Published};
use serde_json::Value;
use std::path::{Path, PathBuf};
use tokio::sync::OnceCell;

/// Characters of the first line of a commit's message.
const SUBJECT_CHARS_MAX: usize = 100;

/// One patch and where it is tried.
pub(in crate::workers) struct Trial {
    repository: Result<Repository, String>,
    base: String,
    base_branch: String,
    subject: String,
    /// Protected files that the approved ticket lets its patch change.
    allow: Vec<String>,
    /// The folder for git objects of the patch, until the trial is over.
    dir: PathBuf,
    applied: OnceCell<AppliedPatch>,
}

/// A tree with a patch applied, and the folders of its git objects.
pub(super) struct PatchedTree {
    pub(super) tree: PathBuf,
    /// Object folders of the operator's repository.
    pub(super) borrowed: Vec<PathBuf>,
    /// Our folder with the objects that the patch adds.
    pub(super) brought: PathBuf,
}

impl Trial {
    /// The trial of a workorder with this snapshot.
    pub(super) fn new(snapshot: Option<&ContextSnapshot>, repos: &Repos, dir: PathBuf) -> Self {
        let said = |name: &str| {
            let value = snapshot.and_then(|snapshot| snapshot.metadata.get(name)).and_then(Value::as_str);
            value.unwrap_or_default().to_string()
        };
        let name = said("repo_ref");
        let repository = match repos.get(&name) {
            Some(repo) => Repository::open(&repo.path),
            None => Err(format!("repository {name} is not in [repos] of this process's configuration")),
        };
        let subject = snapshot.map(subject_of).unwrap_or_default();
        let (base, base_branch) = (said("commit_sha"), said("base_branch"));
        // The snapshot holds the metadata as they were when the approval was checked.
        let allow = snapshot.and_then(|snapshot| allowed_by(&snapshot.metadata).ok()).unwrap_or_default();
        Self { repository, base, base_branch, subject, allow, dir, applied: OnceCell::new() }
    }

    /// The trial of a merge: a tree on top of the tip of the base branch.
    pub(in crate::workers) fn of_merge(
        snapshot: &ContextSnapshot,
        repository: &Repository,
        (tip, merged): (&str, AppliedPatch),
        dir: PathBuf,
    ) -> Self {
        let said = |name: &str| snapshot.metadata.get(name).and_then(Value::as_str).unwrap_or_default();
        Self {
            repository: Ok(repository.clone()),
            base: tip.to_string(),
            base_branch: said("base_branch").to_string(),
            subject: subject_of(snapshot),
            allow: allowed_by(&snapshot.metadata).unwrap_or_default(),
            dir,
            applied: OnceCell::new_with(Some(merged)),
        }
    }

    /// The protected files of a command that the patch touches. If no patch applies, none.
    pub(super) fn touched(&self, bundle: &OutputBundle, relied: Relied<'_>) -> Touched {
        let patch = self.applied.get().and_then(|_| patch::read(&bundle.content).ok());
        patch.map(|patch| touched(&patch, relied, &self.allow)).unwrap_or_default()
    }

    /// Whether the patch applies.
    pub(super) async fn applies(&self, bundle: &OutputBundle) -> Evidence {
        let found = match self.applied(bundle).await {
            Ok(_) => Ok(self.moved().await.unwrap_or_default()),
            Err(NotApplied::Unfit(why)) => Err(why),
            Err(NotApplied::Trouble(why)) => return trouble("applies", &why),
        };
        let result = Some(if found.is_ok() { GateResult::Pass } else { GateResult::Fail });
        let log_tail = said(&found.unwrap_or_else(|why| why));
        Evidence { result, log_tail, ..blank("applies") }
    }

    async fn applied(&self, bundle: &OutputBundle) -> Result<&AppliedPatch, NotApplied> {
        self.applied.get_or_try_init(|| self.apply(bundle)).await
    }

    async fn apply(&self, bundle: &OutputBundle) -> Result<AppliedPatch, NotApplied> {
        let repository = self.repository.as_ref().map_err(|why| NotApplied::Trouble(why.clone()))?;
        if !is_object_id(&self.base) {
            return Err(NotApplied::Trouble("its workorder names no commit that it started from".into()));
        }
        match repository.has_commit(&self.base).await {
            Ok(true) => {}
            Ok(false) => {
                let why = format!("commit {}, which its work started from, is gone", self.base);
                return Err(NotApplied::Trouble(why));
            }
            Err(error) => return Err(NotApplied::Trouble(error.to_string())),
        }
        let read = patch::read(&bundle.content).map_err(|flaw| NotApplied::Unfit(flaw.to_string()))?;
        let applied = AppliedPatch::make(&self.dir, repository, &self.base, (&bundle.content, &read)).await?;
        match bundle.metadata.get("tree").and_then(Value::as_str) {
            Some(tree) if tree != applied.tree => {
                let why = format!("it makes the tree {}, and its executor captured {tree}", applied.tree);
                Err(NotApplied::Unfit(showable(&why)))
            }
            _ => Ok(applied),
        }
    }

    /// The remark for a base branch that has moved since.
    async fn moved(&self) -> Option<String> {
        let now = self.repository.as_ref().ok()?.branch(&self.base_branch).await.ok()??;
        (now != self.base).then(|| {
            format!("note: {} has moved on to {now}; the patch is for {}", self.base_branch, self.base)
        })
    }

    /// A fresh tree with the patch applied, except that the `kept` files are as in the base; `None`: no patch applies.
    pub(super) async fn tree(&self, place: &Path, kept: &[String]) -> Option<Result<PatchedTree, String>> {
        let (applied, repository) = (self.applied.get()?, self.repository.as_ref().ok()?);
        let objects = [applied.objects()];
        let tree = match kept {
            [] => applied.tree.clone(),
            kept => match applied.tree_keeping(kept).await {
                Ok(tree) => tree,
                Err(error) => return Some(Err(error.to_string())),
            },
        };
        let of = (self.base.as_str(), tree.as_str());
        let made = PrivateClone::make(place, repository, of, "candidate", &objects).await;
        let [brought] = objects;
        let borrowed = repository.objects.clone();
        Some(made.map_err(|why| why.to_string()).map(|clone| PatchedTree {
            tree: clone.tree,
            borrowed,
            brought,
        }))
    }

    /// Makes the branch of a patch that has passed every gate; `None`: it makes no branch.
    pub(super) async fn branch(
        &self,
        (workorder, earlier): (&Workorder, Option<&EarlierBranch>),
        bundle: &OutputBundle,
    ) -> Option<Evidence> {
        let applied = self.applied.get().filter(|_| outcome(&bundle.metadata).is_success())?;
        let name = workorder.branch_name.as_deref()?;
        Some(match self.publish(applied, (name, earlier), workorder, bundle).await {
            Ok(Published { branch, commit, on_earlier, why_new }) => {
                let stacked = on_earlier.map(|of| format!("\n{STACKED}{of}, of an earlier attempt"));
                let why_new = why_new.map(|why| format!("\nnote: {why}; this is a new branch"));
                let note = stacked.or(why_new).unwrap_or_default();
                let log_tail = format!("{branch} at {commit}{}", showable(&note));
                Evidence { result: Some(GateResult::Pass), log_tail, ..blank(BRANCH) }
            }
            Err(why) => trouble(BRANCH, &why),
        })
    }

    /// Takes back the branch that an earlier run of the gates made from this very patch, if there is one.
    pub(super) async fn withdraw(
        &self,
        (workorder, earlier): (&Workorder, Option<&EarlierBranch>),
        bundle: &OutputBundle,
    ) {
        let (Some(applied), Ok(repository)) = (self.applied.get(), &self.repository) else { return };
        let Some(name) = workorder.branch_name.as_deref().filter(|name| is_branch_name(name)) else { return };
        let (message, author) = (self.message(workorder, bundle), author_of(bundle));
        let saying = saying((&message, &author), workorder, bundle);
        if let Err(error) = applied.unpublish(repository, &saying, (name, earlier)).await {
            tracing::warn!(%error, branch = name, "could not take back the branch of a failed run");
        }
    }

    async fn publish(
        &self,
        applied: &AppliedPatch,
        (name, earlier): (&str, Option<&EarlierBranch>),
        workorder: &Workorder,
        bundle: &OutputBundle,
    ) -> Result<Published, String> {
        if !is_branch_name(name) {
            return Err(format!("{name} is no name of a branch"));
        }
        let repository = self.repository.as_ref().map_err(Clone::clone)?;
        let (message, author) = (self.message(workorder, bundle), author_of(bundle));
        let saying = saying((&message, &author), workorder, bundle);
        applied.publish(repository, &saying, (name, earlier)).await.map_err(|error| error.to_string())
    }

    fn message(&self, workorder: &Workorder, bundle: &OutputBundle) -> String {
        format!(
            "{}\n\nObjective: {}\nWorkorder: {}\nOutput: {}\n",
            self.subject, workorder.objective_id, workorder.work_order_id, bundle.output_id
        )
    }
}

/// The first line of a commit's message.
pub(in crate::workers) fn subject_of(snapshot: &ContextSnapshot) -> String {
    showable(&title_of(snapshot)).chars().take(SUBJECT_CHARS_MAX).collect()
}

/// Who wrote a patch, as a commit's author.
pub(in crate::workers) fn author_of(bundle: &OutputBundle) -> String {
    let author = bundle.metadata.get("executor").and_then(Value::as_str).unwrap_or_default();
    let plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let author: String = author.chars().filter(plain).take(64).collect();
    if author.is_empty() { "executor".to_string() } else { author }
}

/// What the commit of a bundle says; the same bundle always says the same.
fn saying<'a>(
    (message, author): (&'a str, &'a str),
    workorder: &Workorder,
    bundle: &OutputBundle,
) -> Saying<'a> {
    Saying { message, author, authored_at: workorder.created_at, committed_at: bundle.created_at }
}

impl Drop for Trial {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn blank(gate: &str) -> Evidence {
    Evidence { gate: gate.to_string(), ..Evidence::default() }
}

pub(super) fn trouble(gate: &str, why: &str) -> Evidence {
    let why = said(why);
    Evidence { log_tail: why.clone(), trouble: Some(why), ..blank(gate) }
}

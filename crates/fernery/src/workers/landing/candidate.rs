//! The candidate of a landing: the stored patch on its base commit, and the commit that the gates left, or the same again
//! where somebody deleted it.

use super::Lander;
use crate::workers::gate::trial::{author_of, subject_of};
use fernery_core::artifact::ContextSnapshot;
use fernery_core::canonical::Digest;
use fernery_core::patch;
use fernery_engine::StoreError;
use fernery_engine::pipeline::gate_input::{self, GateInput};
use fernery_engine::pipeline::landing::Landing;
use fernery_engine::pipeline::reading;
use fernery_exec::git::applied_patch::{AppliedPatch, NotApplied, Saying};
use fernery_exec::git::repository::Repository;
use std::path::Path;

/// What the landing of a run is about.
pub(super) struct Reviewed {
    pub(super) gate_input: GateInput,
    pub(super) snapshot: ContextSnapshot,
}

/// The patch, applied to its base, and its commit.
pub(super) struct Made {
    pub(super) applied: AppliedPatch,
    pub(super) commit: String,
}

impl Lander {
    /// The artifacts of a landing's run; `None`: they are gone.
    pub(super) async fn reviewed(&self, landing: &Landing) -> Result<Option<Reviewed>, StoreError> {
        let id = landing.work_order_id.clone();
        self.substrate
            .read(move |sql| {
                let Some(gate_input) = gate_input::gate_input(sql, &id)? else { return Ok(None) };
                let of = gate_input.workorder.workorder.context_snapshot_id.clone();
                let snapshot = reading::snapshot(sql, &of)?;
                Ok(snapshot.map(|snapshot| Reviewed { gate_input, snapshot }))
            })
            .await
    }
}

/// Makes the candidate in a git directory of ours.
pub(super) async fn make(
    dir: &Path,
    repository: &Repository,
    landing: &Landing,
    reviewed: &Reviewed,
) -> Result<Made, NotApplied> {
    let bundle = &reviewed.gate_input.bundle;
    let trouble = |error: &dyn std::fmt::Display| NotApplied::Trouble(error.to_string());
    if Digest::of_bytes(bundle.content.as_bytes()).to_string() != landing.patch_sha256 {
        return Err(NotApplied::Unfit("it is not the patch that was reviewed".into()));
    }
    if !repository.has_commit(&landing.base_commit).await.map_err(|error| trouble(&error))? {
        let why = format!("commit {}, which the patch was made for, is gone", landing.base_commit);
        return Err(NotApplied::Unfit(why));
    }
    let read = patch::read(&bundle.content).map_err(|flaw| NotApplied::Unfit(flaw.to_string()))?;
    let applied = AppliedPatch::make(dir, repository, &landing.base_commit, (&bundle.content, &read)).await?;
    if let Some(left) = &landing.candidate
        && repository.has_commit(left).await.map_err(|error| trouble(&error))?
    {
        let tree = applied.git().line(&["rev-parse", "--verify", &format!("{left}^{{tree}}")]).await;
        // One that came by rework has the commits of earlier attempts below it: nobody has reviewed those.
        let parents = applied.git().line(&["rev-parse", &format!("{left}^@")]).await;
        if tree.is_ok_and(|tree| tree == applied.tree) && parents.is_ok_and(|of| of == landing.base_commit) {
            return Ok(Made { applied, commit: left.clone() });
        }
    }
    let workorder = &reviewed.gate_input.workorder.workorder;
    let message = format!(
        "{}\n\nObjective: {}\nWorkorder: {}\nOutput: {}\n",
        subject_of(&reviewed.snapshot),
        workorder.objective_id,
        workorder.work_order_id,
        bundle.output_id
    );
    let saying = Saying {
        message: &message,
        author: &author_of(bundle),
        authored_at: workorder.created_at,
        committed_at: bundle.created_at,
    };
    let commit = applied.commit(&saying).await.map_err(|error| trouble(&error))?;
    Ok(Made { applied, commit })
}

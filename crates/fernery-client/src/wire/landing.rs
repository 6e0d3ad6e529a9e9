//! How the patch of a ticket comes to its base branch.

use super::{WaitingView, schema};
use fernery_core::artifact::{RecordId, RunId};
use fernery_core::blueprint::MergeAs;
use fernery_core::canonical::Digest;
use fernery_core::pipeline::landing::{Fit, LandingState};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Lands the patch of a confirmed run on its base branch.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LandRequest {
    /// The run that was checked; the request is refused if it is not the last one.
    #[schemars(with = "schema::ArtifactId")]
    pub run_id: RunId,
    /// The SHA-256 of its patch.
    #[schemars(with = "schema::Sha256")]
    pub patch_sha256: Digest,
    /// The tip of the base branch that was seen. The branch may have gone on since, but must still have this commit.
    #[schemars(with = "schema::Commit")]
    pub tip: String,
    /// A note for the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The id of this request, chosen by the caller: a repeated request with the same id gets the same answer and
    /// changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub record_id: Option<RecordId>,
}

/// Where the patch of a ticket stands on its way to the base branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LandingView {
    /// OPEN: nobody has asked for it. WANTED: it waits for its turn, or is on its way. MOVING: the branch is being moved.
    /// LANDED: the branch has it. REWORKED: it conflicted, and is worked on again.
    #[schemars(with = "schema::Landing")]
    pub state: LandingState,
    /// How it stands to the tip of its base branch: MERGES, CONFLICTS or CONTAINED; `null`: not tried yet.
    #[schemars(with = "Option<schema::Fitting>")]
    pub fit: Option<Fit>,
    /// Why it conflicts, or did not land.
    pub why: Option<String>,
    /// The files that conflict.
    pub files: Vec<String>,
    /// The run that passed.
    #[schemars(with = "schema::ArtifactId")]
    pub run_id: RunId,
    /// The SHA-256 of its patch.
    pub patch_sha256: String,
    /// The repository.
    pub repo_ref: String,
    /// The base branch.
    pub base_branch: String,
    /// The commit of the base branch that the patch was made for.
    pub base_commit: String,
    /// The tip of the base branch when the patch was last tried on it.
    pub tip: String,
    /// It is not tried on new tips by itself: of one branch only the newest 100 patches that have not landed are. A merge tries it.
    #[serde(default)]
    pub left_out: bool,
    /// Why it is wanted and nobody can land it now; `null`: somebody can, or it is not wanted.
    #[serde(default)]
    pub waiting: Option<WaitingView>,
    /// The branch with the patch, if one was left.
    pub branch: Option<String>,
    /// How it lands: `ff`, as one commit on top of the tip, or `commit`, with a merge commit.
    #[schemars(with = "schema::Merge")]
    pub merge: MergeAs,
    /// The commit that landed, or that the branch is being moved to.
    pub commit: Option<String>,
    /// What the working trees of the repository were left with.
    pub remarks: Vec<String>,
    /// What to type to merge it by hand; empty where it conflicts or does not land.
    pub by_hand: Vec<String>,
}

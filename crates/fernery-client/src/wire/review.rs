//! Review of a run: comments on its patch, files that were viewed, and which run a reviewer looked at last.

use super::schema;
use fernery_core::Timestamp;
use fernery_core::artifact::{CommentId, RecordId, RunId, WorkorderId};
use fernery_core::canonical::Digest;
use fernery_core::review::Side;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Comments on lines of a run's patch.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommentRequest {
    /// The path of the file in the patch.
    pub file: String,
    /// `new` if absent: the file after the patch. `old`: the file before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::DiffSide>")]
    pub side: Option<Side>,
    /// The first line that it is about.
    pub first_line: u64,
    /// The last one; the first if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_line: Option<u64>,
    /// What you say: up to 4096 bytes.
    pub text: String,
    /// The id of the comment, chosen by the caller: a repeated request with the same id gets the same answer and changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub comment_id: Option<CommentId>,
}

/// Gives a comment another text.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditCommentRequest {
    /// What you say instead: up to 4096 bytes.
    pub text: String,
    /// The id of this request, chosen by the caller: a repeated request with the same id gets the same answer and
    /// changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub record_id: Option<RecordId>,
}

/// A comment on lines of a run's patch.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CommentView {
    /// Its id.
    #[schemars(with = "schema::ArtifactId")]
    pub comment_id: CommentId,
    /// The run whose patch it is about.
    #[schemars(with = "schema::ArtifactId")]
    pub run_id: RunId,
    /// The path of the file in the patch.
    pub file: String,
    /// `new`: the file after the patch. `old`: the file before it.
    #[schemars(with = "schema::DiffSide")]
    pub side: Side,
    /// The first line that it is about.
    pub first_line: u64,
    /// The last one.
    pub last_line: u64,
    /// What it says.
    pub text: String,
    /// The token that wrote it.
    pub author: String,
    /// Whether it is the caller's, who alone can edit and delete it.
    pub own: bool,
    /// When it was written.
    #[schemars(with = "schema::Instant")]
    pub created_at: Timestamp,
    /// When its text was last changed.
    #[schemars(with = "schema::Instant")]
    pub updated_at: Timestamp,
}

/// The comments on a run, by file and line: at most 500.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CommentList {
    /// The comments.
    pub comments: Vec<CommentView>,
    /// Digest of all comments; it changes as soon as one is added, deleted or edited.
    #[schemars(with = "schema::Sha256")]
    pub digest: Digest,
    /// The note for the next attempt that they make; empty without comments.
    pub note: String,
    /// Comments that do not fit into the note, which says so at its end.
    pub left_out: usize,
}

/// Says whether the caller has viewed a file of a run's patch.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ViewedRequest {
    /// The path of the file in the patch.
    pub file: String,
    /// false: not viewed after all.
    pub viewed: bool,
}

/// How far the caller is with the review of a run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReviewView {
    /// The comments on the run, and the note that they make.
    #[serde(flatten)]
    pub comments: CommentList,
    /// Whether the run can be commented on: it is the last one, and the next attempt has not begun.
    pub open: bool,
    /// How many files the patch changes.
    pub files: usize,
    /// Paths of the files that the caller has viewed as this patch changes them.
    pub viewed: Vec<String>,
    /// Whether the caller has looked at this run before, or at a later one.
    pub looked: bool,
    /// The workorder of the run that the caller had looked at before this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub since: Option<WorkorderId>,
}

/// How long a person needs for what waits for them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewTime {
    /// Whole minutes, by the rule.
    pub minutes: u64,
    /// More waits than was counted: it is at least this.
    pub at_least: bool,
    /// Runs that passed their gates and wait to be confirmed.
    pub runs: u64,
    /// The files of their patches.
    pub files: u64,
    /// Lines that come or go in them.
    pub lines: u64,
    /// Tickets that wait for approval.
    pub approvals: u64,
    /// Candidates that wait for a decision.
    pub candidates: u64,
    /// The rule in words.
    pub rule: String,
}

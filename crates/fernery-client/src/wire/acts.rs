//! What operators ask of objectives.

use super::schema;
use fernery_core::artifact::{AzollaId, BlockerId, BlockerKind, Metadata, ObjectiveId, RecordId, RunId};
use fernery_core::canonical::Digest;
use fernery_core::pipeline::draft::{Draft, DraftEdit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Creates an objective with status NEW.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewObjectiveRequest {
    /// The objective's id; if absent, the server makes one. A repeated request with the same id and content returns the
    /// same objective.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub objective_id: Option<ObjectiveId>,
    /// The azolla; `mec` if absent.
    #[serde(default = "mec")]
    #[schemars(with = "schema::ArtifactId")]
    pub azolla_id: AzollaId,
    /// The title: what is wanted, in one line.
    #[schemars(length(min = 1, max = 500))]
    pub title: String,
    /// The acceptance criteria: how to see that it is done.
    #[serde(default)]
    pub acceptance_criteria: String,
    /// Importance: 0 (most) to 4 (least); 2 if absent.
    #[serde(default = "middle")]
    #[schemars(range(max = 4))]
    pub importance: u8,
    /// Urgency: 0 (now) to 4 (some day); 2 if absent.
    #[serde(default = "middle")]
    #[schemars(range(max = 4))]
    pub urgency: u8,
    /// Metadata: other facts for executors and gates.
    #[serde(default)]
    #[schemars(with = "schema::Fields")]
    pub metadata: Metadata,
    /// Blockers from the start. The objective can be approved; then it is BLOCKED until they are resolved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_on: Vec<NewBlockerRequest>,
    /// Tickets that this one waits for, each by a blocker that is resolved when that ticket is confirmed or has landed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::ArtifactId>")]
    pub after: Vec<ObjectiveId>,
}

impl NewObjectiveRequest {
    /// The parts that its author writes.
    pub fn draft(&self) -> Draft {
        Draft {
            title: self.title.clone(),
            acceptance_criteria: self.acceptance_criteria.clone(),
            importance: self.importance,
            urgency: self.urgency,
            metadata: self.metadata.clone(),
        }
    }
}

/// A blocker of a new objective.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewBlockerRequest {
    /// The blocker's id within the objective; if absent, the server makes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub blocker_id: Option<BlockerId>,
    /// The kind of blocker.
    #[schemars(with = "schema::Blocker")]
    pub kind: BlockerKind,
    /// The description.
    pub description: String,
}

fn mec() -> AzollaId {
    AzollaId::stored("mec")
}

const fn middle() -> u8 {
    2
}

/// Edits an objective. Absent fields stay unchanged; `metadata` is replaced as a whole.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditObjectiveRequest {
    /// The title: what is wanted, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 500))]
    pub title: Option<String>,
    /// The acceptance criteria: how to see that it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acceptance_criteria: Option<String>,
    /// Importance: 0 (most) to 4 (least).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 4))]
    pub importance: Option<u8>,
    /// Urgency: 0 (now) to 4 (some day).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 4))]
    pub urgency: Option<u8>,
    /// Metadata: other facts for executors and gates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Fields>")]
    pub metadata: Option<Metadata>,
}

impl From<EditObjectiveRequest> for DraftEdit {
    fn from(request: EditObjectiveRequest) -> Self {
        let EditObjectiveRequest { title, acceptance_criteria, importance, urgency, metadata } = request;
        Self { title, acceptance_criteria, importance, urgency, metadata }
    }
}

/// Approves an objective exactly as it was read: `digest` identifies that content.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApproveRequest {
    /// The digest of what was read; the request is refused if the content differs now.
    #[schemars(with = "schema::Sha256")]
    pub digest: Digest,
    /// Why, for the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The id of this request, chosen by the caller: a repeated request with the same id gets the same answer and
    /// changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub record_id: Option<RecordId>,
    /// true: the next attempt starts from the base commit; else from what the last attempt left, if there was one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_scratch: bool,
}

/// A note for the record. The body may be empty.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoteRequest {
    /// Why, for the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The id of this request, chosen by the caller: a repeated request with the same id gets the same answer and
    /// changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub record_id: Option<RecordId>,
}

/// Says that a person has done an objective. The body may be empty.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DoneRequest {
    /// What came of it; it becomes the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The digest of what was read, for an objective that is still NEW: if the content differs now, the request is refused. If
    /// absent, it holds for whatever is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Sha256>")]
    pub digest: Option<Digest>,
    /// The id of this request, chosen by the caller: a repeated request with the same id gets the same answer and
    /// changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub record_id: Option<RecordId>,
}

/// Keeps something out of lists and pages until a later time.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SnoozeRequest {
    /// Until when: an instant, a date, or words like `tomorrow`, `next monday`, `in 3 days`, `2h`; `null`: show it again now.
    pub until: Option<String>,
    /// The id of this request, chosen by the caller: a repeated request with the same id gets the same answer and
    /// changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub record_id: Option<RecordId>,
}

/// Confirms that a person has checked the result.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfirmRequest {
    /// The run that was checked; the request is refused if it is not the last one.
    #[schemars(with = "schema::ArtifactId")]
    pub run_id: RunId,
    /// A note for the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The id of this request, chosen by the caller: a repeated request with the same id gets the same answer and
    /// changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub record_id: Option<RecordId>,
}

/// Comments as they were read.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadComments {
    /// The run that they are about.
    #[schemars(with = "schema::ArtifactId")]
    pub run_id: RunId,
    /// `digest` of the list of comments.
    #[schemars(with = "schema::Sha256")]
    pub digest: Digest,
}

/// Reopens a finished objective.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReopenRequest {
    /// The digest of what was read, as in an approval: reopening is an approval.
    #[schemars(with = "schema::Sha256")]
    pub digest: Digest,
    /// What is missing: the next executor reads it.
    pub note: String,
    /// The id of this request, chosen by the caller: a repeated request with the same id gets the same answer and
    /// changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub record_id: Option<RecordId>,
    /// true: the next attempt starts from the base commit; else from what the last attempt left, if there was one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_scratch: bool,
    /// The comments that the note was made of. If they have changed since, the request is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comments: Option<ReadComments>,
}

/// Answers the question of an executor; the objective goes on.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerRequest {
    /// The digest of what was read, as in an approval: an answer approves the objective together with it.
    #[schemars(with = "schema::Sha256")]
    pub digest: Digest,
    /// The run whose question it is.
    #[schemars(with = "schema::ArtifactId")]
    pub run_id: RunId,
    /// The answer: the next executor reads it together with the question.
    pub answer: String,
    /// The id of this request, chosen by the caller: a repeated request with the same id gets the same answer and
    /// changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub record_id: Option<RecordId>,
}

/// Adds a blocker to an objective.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlockRequest {
    /// The blocker's id within the objective; if absent, the server makes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub blocker_id: Option<BlockerId>,
    /// The kind of blocker.
    #[schemars(with = "schema::Blocker")]
    pub kind: BlockerKind,
    /// The description.
    pub description: String,
    /// The id of this request, chosen by the caller: a repeated request with the same id gets the same answer and
    /// changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub record_id: Option<RecordId>,
}

/// Resolves blockers: the named ones, or all.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnblockRequest {
    /// The ids of the blockers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::ArtifactId>")]
    pub blockers: Vec<BlockerId>,
    /// All open blockers.
    #[serde(default)]
    pub all: bool,
    /// The id of this request, chosen by the caller: a repeated request with the same id gets the same answer and
    /// changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub record_id: Option<RecordId>,
}

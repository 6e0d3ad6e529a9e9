//! The inbox: captures, candidates, and manifests; and the questions of azollas to each other.

use super::ObjectiveView;
use super::schema;
use fernery_core::Timestamp;
use fernery_core::artifact::{
    AzollaId, CandidateId, CaptureBuffer, CaptureId, Event, Metadata, ObjectiveId, RecordId, SessionManifest,
    TerminalReason, WorkorderId,
};
use fernery_core::inbox::facts::Facts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Throws something into the inbox. It is stored as it is, and by itself it starts nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CaptureRequest {
    /// What, as text. Either this or `raw_base64`; 64 KiB at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_content: Option<String>,
    /// What, as bytes that need not be text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_base64: Option<String>,
    /// Its id, made by the caller: the same again under it is stored once. One is made if it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub capture_id: Option<CaptureId>,
    /// Whose inbox; if absent, the only one there is, or `task_management`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub azolla_id: Option<AzollaId>,
    /// Where it came from, in a line: `api` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_label: Option<String>,
    /// When it was captured, if that was before now: "tomorrow" counts from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Instant>")]
    pub captured_at: Option<Timestamp>,
}

/// A capture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaptureView {
    /// The artifact.
    #[serde(flatten)]
    #[schemars(with = "schema::Fields")]
    pub capture: CaptureBuffer,
    /// The bytes as hexadecimal, where they are no plain text.
    #[serde(default)]
    pub raw_hex: Option<String>,
    /// When it may be looked through.
    #[schemars(with = "schema::Instant")]
    pub ready_at: Timestamp,
    /// Triages that came to nothing.
    pub tries: u32,
    /// The triage that it is in, or came out of.
    #[serde(default)]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub work_order_id: Option<WorkorderId>,
}

/// What became of one of many captures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaptureResult {
    /// Its id.
    #[schemars(with = "schema::ArtifactId")]
    pub capture_id: CaptureId,
    /// `new`, `duplicate` (it was there before), or `conflict` (its id belongs to another one).
    pub result: String,
}

/// What became of many captures, in their order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaptureManyResponse {
    /// One for each.
    pub captures: Vec<CaptureResult>,
}

/// A page of captures, the newest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CapturePage {
    /// The rows.
    pub captures: Vec<CaptureView>,
    /// Where the next page begins; `null` on the last one.
    pub next_cursor: Option<String>,
}

/// What triage made of captures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CandidateView {
    /// Its id.
    #[schemars(with = "schema::ArtifactId")]
    pub candidate_id: CandidateId,
    /// In whose inbox.
    #[schemars(with = "schema::ArtifactId")]
    pub azolla_id: AzollaId,
    /// What is wanted, in a line.
    pub title: String,
    /// How to tell that it is done.
    pub acceptance_criteria: String,
    /// 0 (most) to 4 (least).
    pub importance: u8,
    /// 0 (now) to 4 (whenever).
    pub urgency: u8,
    /// `due_at`, `projects`, `contexts` and so on, where something was said.
    #[schemars(with = "schema::Fields")]
    pub metadata: Metadata,
    /// Who made it: `builtin`, `llm NAME`, `command`.
    pub made_by: String,
    /// `WAITING`, `PROMOTED`, `DISCARDED` or `MERGED`.
    pub status: String,
    /// What it became.
    #[serde(default)]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub objective_id: Option<ObjectiveId>,
    /// Which one it went into.
    #[serde(default)]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub merged_into: Option<CandidateId>,
    /// The triage that made it.
    #[serde(default)]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub work_order_id: Option<WorkorderId>,
    /// When it was made.
    #[schemars(with = "schema::Instant")]
    pub created_at: Timestamp,
    /// When it last changed.
    #[schemars(with = "schema::Instant")]
    pub updated_at: Timestamp,
    /// What was captured, as it came.
    #[serde(default)]
    pub captures: Vec<CaptureView>,
}

/// A page of candidates.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CandidatePage {
    /// The rows.
    pub candidates: Vec<CandidateView>,
    /// Where the next page begins; `null` on the last one.
    pub next_cursor: Option<String>,
}

/// Makes a NEW objective of a candidate.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromoteRequest {
    /// Where it is to belong.
    #[schemars(with = "schema::ArtifactId")]
    pub azolla_id: AzollaId,
    /// Its id as an objective; one is made if it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub objective_id: Option<ObjectiveId>,
    /// The id of this act, made by the caller: asked for again under it, it is answered as it was, and done once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub record_id: Option<RecordId>,
}

/// What a candidate became: an objective that waits for its approval like any other.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PromoteResponse {
    /// The candidate as it stands.
    pub candidate: CandidateView,
    /// The objective as it stands.
    #[serde(flatten)]
    pub standing: ObjectiveView,
}

/// Changes parts of a candidate; what is absent stays. `metadata` is replaced whole.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditCandidateRequest {
    /// What is wanted, in a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 500))]
    pub title: Option<String>,
    /// How to tell that it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acceptance_criteria: Option<String>,
    /// 0 (most) to 4 (least).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 4))]
    pub importance: Option<u8>,
    /// 0 (now) to 4 (whenever).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 4))]
    pub urgency: Option<u8>,
    /// Whatever else should be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Fields>")]
    pub metadata: Option<Metadata>,
    /// The id of this act, made by the caller: asked for again under it, it is answered as it was, and done once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub record_id: Option<RecordId>,
}

/// Puts other candidates into one.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MergeRequest {
    /// Those that go into it.
    #[schemars(with = "Vec<schema::ArtifactId>", length(min = 1, max = 100))]
    pub candidates: Vec<CandidateId>,
    /// The id of this act, made by the caller: asked for again under it, it is answered as it was, and done once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub record_id: Option<RecordId>,
}

/// Asks for a session manifest. The body may be empty.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ManifestRequest {
    /// The id of the request, made by the caller: the same again asks once. One is made if it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub request_id: Option<RecordId>,
}

/// A session manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ManifestView {
    /// The artifact.
    #[serde(flatten)]
    #[schemars(with = "schema::Fields")]
    pub manifest: SessionManifest,
    /// What it was made of: who was asked and answered, and every item with its score, term by term.
    #[schemars(with = "schema::Fields")]
    pub facts: Facts,
    /// Of what matters in them: unchanged facts make no new manifest.
    pub facts_digest: String,
    /// Who made it, and why the built-in one stood in, if it did.
    pub built_by: String,
    /// Its workorder.
    #[schemars(with = "schema::ArtifactId")]
    pub work_order_id: WorkorderId,
}

/// Where a request for a manifest stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ManifestRequestView {
    /// The event; its `resource_id` is the id of the request.
    #[serde(flatten)]
    #[schemars(with = "schema::Fields")]
    pub event: Event,
    /// `SCHEDULED`, or `UNCHANGED`: nothing has changed since the last manifest, which holds.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub reason: Option<TerminalReason>,
    /// The workorder that was made of it.
    #[serde(default)]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub work_order_id: Option<WorkorderId>,
    /// What came of it, or what still holds; `null` as long as it is under way.
    #[serde(default)]
    pub manifest: Option<ManifestView>,
}

/// A page of manifests, the newest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ManifestPage {
    /// The rows.
    pub manifests: Vec<ManifestView>,
    /// Where the next page begins; `null` on the last one.
    pub next_cursor: Option<String>,
}

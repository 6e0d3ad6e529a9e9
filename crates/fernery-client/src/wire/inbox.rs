//! The inbox: captures, candidates, and manifests; and the questions of azollas to each other.

use super::ObjectiveView;
use super::schema;
use fernery_core::Timestamp;
use fernery_core::artifact::{
    AzollaId, CandidateId, CaptureBuffer, CaptureId, Event, EventId, Metadata, ObjectiveId, RecordId,
    SessionManifest, SubstrateQuery, SubstrateQueryResponse, TerminalReason, WorkorderId,
};
use fernery_core::inbox::CandidateStatus;
use fernery_core::inbox::facts::Facts;
use fernery_core::pipeline::draft::DraftEdit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Puts a capture into the inbox. It is stored unchanged and starts no work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CaptureRequest {
    /// The content as text. Give this or `raw_base64`; at most 64 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_content: Option<String>,
    /// The content as bytes, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_base64: Option<String>,
    /// The capture's id, chosen by the caller: a repeated request with the same id stores it once. If absent, the
    /// server makes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub capture_id: Option<CaptureId>,
    /// The azolla with the inbox; if absent, the only one, or `task_management`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub azolla_id: Option<AzollaId>,
    /// Where it came from, in one line; `api` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_label: Option<String>,
    /// When it was captured, if that was earlier: "tomorrow" counts from this time.
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
    /// The bytes in hexadecimal, if they are not plain text.
    #[serde(default)]
    pub raw_hex: Option<String>,
    /// The earliest time of its triage.
    #[schemars(with = "schema::Instant")]
    pub ready_at: Timestamp,
    /// The number of failed triages.
    pub tries: u32,
    /// The workorder of its triage, running or finished.
    #[serde(default)]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub work_order_id: Option<WorkorderId>,
    /// It was imported, and waits until a person releases it to triage.
    #[serde(default)]
    pub held: bool,
}

/// How many captures were released to triage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReleaseResponse {
    /// The number of captures.
    pub released: u64,
    /// The number of lines that come again from now on.
    #[serde(default)]
    pub recurrences: u64,
}

/// The outcome of one capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CaptureOutcome {
    /// Stored now.
    New,
    /// The same was stored before under this id.
    Duplicate,
    /// Another capture has its id; it was not stored.
    Conflict,
}

/// One capture and its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaptureResult {
    /// Its id.
    #[schemars(with = "schema::ArtifactId")]
    pub capture_id: CaptureId,
    /// The outcome.
    pub result: CaptureOutcome,
}

/// The outcomes of captures, in their order.
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
    /// The cursor of the next page; `null` on the last page.
    pub next_cursor: Option<String>,
}

/// A candidate: a proposal for a ticket that triage made from captures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CandidateView {
    /// Its id.
    #[schemars(with = "schema::ArtifactId")]
    pub candidate_id: CandidateId,
    /// The azolla with the inbox.
    #[schemars(with = "schema::ArtifactId")]
    pub azolla_id: AzollaId,
    /// The title: what is wanted, in one line.
    pub title: String,
    /// The acceptance criteria: how to see that it is done.
    pub acceptance_criteria: String,
    /// Importance: 0 (most) to 4 (least).
    pub importance: u8,
    /// Urgency: 0 (now) to 4 (some day).
    pub urgency: u8,
    /// `due_at`, `projects`, `contexts` and so on, if the captures name them.
    #[schemars(with = "schema::Fields")]
    pub metadata: Metadata,
    /// Who made it: `builtin`, `llm NAME`, `command`.
    pub made_by: String,
    /// The status.
    #[schemars(with = "schema::CandidateStatus")]
    pub status: CandidateStatus,
    /// The objective that it became.
    #[serde(default)]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub objective_id: Option<ObjectiveId>,
    /// The candidate that it was merged into.
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
    /// Until when a person does not want to see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Instant>")]
    pub snoozed_until: Option<Timestamp>,
    /// The captures that it was made from.
    #[serde(default)]
    #[schemars(with = "Vec<schema::ArtifactId>")]
    pub capture_ids: Vec<CaptureId>,
    /// The captures, unchanged.
    #[serde(default)]
    pub captures: Vec<CaptureView>,
}

/// A page of candidates.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CandidatePage {
    /// The rows.
    pub candidates: Vec<CandidateView>,
    /// The cursor of the next page; `null` on the last page.
    pub next_cursor: Option<String>,
    /// The number of imported captures that wait until a person releases them to triage.
    #[serde(default)]
    pub held_captures: u64,
    /// The number of imported recurring lines that are not captured again until a person releases them.
    #[serde(default)]
    pub held_recurrences: u64,
    /// The number of captures that triage has still to look through.
    #[serde(default)]
    pub pending_captures: u64,
}

/// A line that is captured again and again.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RecurrenceView {
    /// Its id: that of the capture that it was read from.
    #[schemars(with = "schema::ArtifactId")]
    pub recurrence_id: CaptureId,
    /// The azolla with the inbox.
    #[schemars(with = "schema::ArtifactId")]
    pub azolla_id: AzollaId,
    /// How often, as it was said.
    pub every: String,
    /// What is captured each time.
    pub text: String,
    /// When it comes again.
    #[schemars(with = "schema::Instant")]
    pub next_at: Timestamp,
    /// When it was captured.
    #[schemars(with = "schema::Instant")]
    pub created_at: Timestamp,
    /// Since when it comes no more.
    #[serde(default)]
    #[schemars(with = "Option<schema::Instant>")]
    pub stopped_at: Option<Timestamp>,
    /// Whether it was imported and waits until an operator releases it: nothing is captured before.
    #[serde(default)]
    pub held: bool,
}

/// The lines of an inbox that come again, the next first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RecurrenceList {
    /// The lines.
    pub recurrences: Vec<RecurrenceView>,
}

/// Turns a candidate into a NEW objective.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromoteRequest {
    /// The azolla of the objective. If absent, the one that the candidate names; or, if it names a repository or an agent, the
    /// one that works with it; or else the one of what people do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub azolla_id: Option<AzollaId>,
    /// The id of the objective; if absent, the server makes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub objective_id: Option<ObjectiveId>,
    /// The id of this request, chosen by the caller: a repeated request with the same id gets the same answer and
    /// changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub record_id: Option<RecordId>,
}

/// A promoted candidate and its objective, which waits for approval like any other.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PromoteResponse {
    /// The candidate now.
    pub candidate: CandidateView,
    /// The objective now.
    #[serde(flatten)]
    pub view: ObjectiveView,
    /// A person does it, and says so with `done`.
    #[serde(default)]
    pub for_people: bool,
}

/// Edits a candidate. Absent fields stay unchanged; `metadata` is replaced as a whole.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditCandidateRequest {
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
    /// Other facts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Fields>")]
    pub metadata: Option<Metadata>,
    /// The id of this request, chosen by the caller: a repeated request with the same id gets the same answer and
    /// changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub record_id: Option<RecordId>,
}

impl From<EditCandidateRequest> for DraftEdit {
    fn from(request: EditCandidateRequest) -> Self {
        let EditCandidateRequest { title, acceptance_criteria, importance, urgency, metadata, record_id: _ } =
            request;
        Self { title, acceptance_criteria, importance, urgency, metadata }
    }
}

/// Merges other candidates into one.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MergeRequest {
    /// The candidates to merge into it.
    #[schemars(with = "Vec<schema::ArtifactId>", length(min = 1, max = 100))]
    pub candidates: Vec<CandidateId>,
    /// The id of this request, chosen by the caller: a repeated request with the same id gets the same answer and
    /// changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub record_id: Option<RecordId>,
}

/// Requests a session manifest. The body may be empty.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ManifestRequest {
    /// The id of the request, chosen by the caller: a repeated request with the same id counts once. If absent, the
    /// server makes one.
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
    /// The facts that it was made from: who was asked and who answered, and every item with its score, term by term.
    #[schemars(with = "schema::Fields")]
    pub facts: Facts,
    /// Digest of the facts; with an equal digest no new manifest is made.
    pub facts_digest: String,
    /// Who made it, and why the built-in rules replaced the configured executor, if they did.
    pub built_by: String,
    /// Its workorder.
    #[schemars(with = "schema::ArtifactId")]
    pub work_order_id: WorkorderId,
}

/// The state of a request for a manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ManifestRequestView {
    /// The id of the request.
    #[serde(default)]
    pub request_id: String,
    /// The event; its `resource_id` is the azolla.
    #[serde(flatten)]
    #[schemars(with = "schema::Fields")]
    pub event: Event,
    /// `SCHEDULED`; `UNCHANGED`: nothing has changed since the last manifest, which is still valid; or `NOBODY_TO_ASK`.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub reason: Option<TerminalReason>,
    /// The workorder that was made from it.
    #[serde(default)]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub work_order_id: Option<WorkorderId>,
    /// The new manifest, or the one that is still valid; `null` while the request is in progress.
    #[serde(default)]
    pub manifest: Option<ManifestView>,
    /// Why there will be no manifest: the run failed, and nothing replaces it.
    #[serde(default)]
    pub failed: Option<String>,
}

/// A query of one azolla to another, and its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueryView {
    /// The artifact `substrate_query`.
    #[schemars(with = "schema::Fields")]
    pub query: SubstrateQuery,
    /// The artifact `substrate_query_response`, with the first results, at most 64 KiB.
    #[schemars(with = "schema::Fields")]
    pub response: SubstrateQueryResponse,
    /// The event that caused the query.
    #[schemars(with = "schema::ArtifactId")]
    pub event_id: EventId,
    /// The number of results; `null` if an earlier version stored it, which kept none.
    pub results_told: Option<u64>,
}

/// A page of queries, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct QueryPage {
    /// The rows.
    pub queries: Vec<QueryView>,
    /// The cursor of the next page; `null` on the last page.
    pub next_cursor: Option<String>,
}

/// A page of manifests, the newest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ManifestPage {
    /// The rows.
    pub manifests: Vec<ManifestView>,
    /// The cursor of the next page; `null` on the last page.
    pub next_cursor: Option<String>,
}

//! What operators ask of objectives, and what readers of the pipeline get.
//!
//! Artifacts are passed on exactly as their schemas have them; what the control plane keeps beside them stands beside them.

use super::schema;
use fernery_core::artifact::{
    AzollaId, BlockerId, BlockerKind, ClaimRecord, Metadata, Objective, ObjectiveId, PauseState, RecordId,
    RunId,
};
use fernery_core::canonical::Digest;
use fernery_core::{Progress, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// Writes an objective down: NEW.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewObjectiveRequest {
    /// Its id; one is made if it is absent. The same content again under the same id finds the same objective.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub objective_id: Option<ObjectiveId>,
    /// Where it belongs: `mec` if absent.
    #[serde(default = "mec")]
    #[schemars(with = "schema::ArtifactId")]
    pub azolla_id: AzollaId,
    /// What is wanted, in a line.
    #[schemars(length(min = 1, max = 500))]
    pub title: String,
    /// How to tell that it is done.
    #[serde(default)]
    pub acceptance_criteria: String,
    /// 0 (most) to 4 (least); 2 if absent.
    #[serde(default = "middle")]
    #[schemars(range(max = 4))]
    pub importance: u8,
    /// 0 (now) to 4 (whenever); 2 if absent.
    #[serde(default = "middle")]
    #[schemars(range(max = 4))]
    pub urgency: u8,
    /// Whatever else an executor or a gate should know.
    #[serde(default)]
    #[schemars(with = "schema::Fields")]
    pub metadata: Metadata,
}

fn mec() -> AzollaId {
    AzollaId::stored("mec")
}

const fn middle() -> u8 {
    2
}

/// Changes parts of an objective; what is absent stays. `metadata` is replaced whole.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditObjectiveRequest {
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
    /// Whatever else an executor or a gate should know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Fields>")]
    pub metadata: Option<Metadata>,
}

/// Approves an objective. The body may be empty.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApproveRequest {
    /// Of what was read; refused if that is not what is there.
    #[schemars(with = "schema::Sha256")]
    pub digest: Digest,
    /// Why, for the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The id of this act, made by the caller: asked for again under it, it is answered as it was, and done once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub record_id: Option<RecordId>,
}

/// A word to the record. The body may be empty.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoteRequest {
    /// Why, for the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The id of this act, made by the caller: asked for again under it, it is answered as it was, and done once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub record_id: Option<RecordId>,
}

/// Says that a person has looked at what came out.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfirmRequest {
    /// The run that was looked at; refused if that is not the last one.
    #[schemars(with = "schema::ArtifactId")]
    pub run_id: RunId,
    /// What was found, for the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The id of this act, made by the caller: asked for again under it, it is answered as it was, and done once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub record_id: Option<RecordId>,
}

/// Wants a finished objective done again.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReopenRequest {
    /// Of what was read, as for an approval: it is one.
    #[schemars(with = "schema::Sha256")]
    pub digest: Digest,
    /// What is missing: the next executor reads it.
    pub note: String,
    /// The id of this act, made by the caller: asked for again under it, it is answered as it was, and done once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub record_id: Option<RecordId>,
}

/// Puts something in an objective's way.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlockRequest {
    /// Its id within the objective; one is made if it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub blocker_id: Option<BlockerId>,
    /// What kind of thing.
    #[schemars(with = "schema::Blocker")]
    pub kind: BlockerKind,
    /// What it is, in words.
    pub description: String,
    /// The id of this act, made by the caller: asked for again under it, it is answered as it was, and done once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub record_id: Option<RecordId>,
}

/// Takes blockers out of the way: those named, or all of them.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnblockRequest {
    /// These.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::ArtifactId>")]
    pub blockers: Vec<BlockerId>,
    /// All that are open.
    #[serde(default)]
    pub all: bool,
    /// The id of this act, made by the caller: asked for again under it, it is answered as it was, and done once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub record_id: Option<RecordId>,
}

/// An objective with what the control plane keeps beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectiveView {
    /// The artifact.
    #[schemars(with = "schema::Fields")]
    pub objective: Objective,
    /// DONE by the gate, and no person has looked.
    pub unconfirmed: bool,
    /// Gate failures since a person last said go.
    pub failures: u32,
    /// What its attempts have used of the envelope since a person last approved it: attempts, wall_ms, tokens,
    /// cost_usd_micros.
    #[schemars(with = "schema::Fields")]
    pub spent: Value,
    /// Why nothing happens to it; `null` where something does or nothing should. A list tells only what stands still.
    #[serde(default)]
    pub waiting: Option<WaitingView>,
    /// How far its executor says it is, while one works on it: of an agent, the percent of its budget that is spent and its
    /// last line.
    #[serde(default)]
    #[schemars(with = "Option<schema::Progress>")]
    pub progress: Option<Progress>,
}

/// What an objective waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitingView {
    /// A word for programs: azolla_not_hosted, concurrency_limit, review_limit, turn, gates, or as for a job.
    pub code: String,
    /// A sentence for people.
    pub why: String,
}

/// One page of objectives, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ObjectivePage {
    /// The objectives.
    pub objectives: Vec<ObjectiveView>,
    /// Where the next page starts; `null` at the end.
    pub next_cursor: Option<String>,
}

/// What an approval covers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalView {
    /// Of exactly what is shown: send it with the approval.
    #[schemars(with = "schema::Sha256")]
    pub digest: Digest,
    /// Title, criteria, metadata, and what of the blueprint decides what runs and how it is judged.
    #[schemars(with = "schema::Fields")]
    pub shown: Value,
}

/// Everything about an objective, and all that came of it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ObjectiveDetail {
    /// The objective as it stands.
    #[serde(flatten)]
    pub standing: ObjectiveView,
    /// What an approval would cover now; `null` if its azolla is no longer there.
    pub approval: Option<ApprovalView>,
    /// What its attempts may use by the blueprint in force, as `spent` counts it; what is absent has no bound.
    #[serde(default)]
    #[schemars(with = "Option<schema::Fields>")]
    pub envelope: Option<Value>,
    /// The decision that covers it.
    #[schemars(with = "Option<schema::Fields>")]
    pub decision: Option<Value>,
    /// What operators decided, oldest first.
    #[schemars(with = "Vec<schema::Fields>")]
    pub decisions: Vec<Value>,
    /// Its entries into TODO.
    #[schemars(with = "Vec<schema::Fields>")]
    pub events: Vec<Value>,
    /// What was made of them.
    #[schemars(with = "Vec<schema::Fields>")]
    pub workorders: Vec<Value>,
    /// What executors were told.
    #[schemars(with = "Vec<schema::Fields>")]
    pub context_snapshots: Vec<Value>,
    /// What came out.
    #[schemars(with = "Vec<schema::Fields>")]
    pub output_bundles: Vec<Value>,
    /// What the gates said, with their evidence.
    #[schemars(with = "Vec<schema::Fields>")]
    pub runs: Vec<Value>,
    /// Where it stopped.
    #[schemars(with = "Vec<schema::Fields>")]
    pub pauses: Vec<PauseState>,
}

/// What was decided, and where that left the objective.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DecisionResponse {
    /// The record.
    #[schemars(with = "schema::Fields")]
    pub decision: Value,
    /// The objective as it stands.
    #[serde(flatten)]
    pub standing: ObjectiveView,
}

macro_rules! pages {
    ($($(#[$doc:meta])* $name:ident.$rows:ident: $row:ty = $what:literal;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
        pub struct $name {
            #[doc = $what]
            #[schemars(with = "Vec<schema::Fields>")]
            pub $rows: Vec<$row>,
            /// Where the next page starts; `null` at the end.
            pub next_cursor: Option<String>,
        }
    )+};
}

pages!(
    /// One page of events, newest first.
    EventPage.events: Value = "The events, each with its terminal reason and its workorder.";
    /// One page of workorders, newest first.
    WorkorderPage.workorders: Value = "The workorders, each with what the control plane keeps beside it.";
    /// One page of run records, newest first.
    RunPage.runs: Value = "The run records, each with its evidence.";
    /// One page of pauses, newest first.
    PausePage.pauses: PauseState = "The pauses.";
    /// One page of the journal, newest first.
    JournalPage.entries: JournalEntry = "The entries.";
);

/// A workorder with what its executor was told and what came out.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WorkorderDetail {
    /// The workorder.
    #[schemars(with = "schema::Fields")]
    pub workorder: Value,
    /// What its executor was told.
    #[schemars(with = "Option<schema::Fields>")]
    pub context_snapshot: Option<Value>,
    /// What came out.
    #[schemars(with = "Option<schema::Fields>")]
    pub output_bundle: Option<Value>,
    /// What the gates said.
    #[schemars(with = "Option<schema::Fields>")]
    pub run: Option<Value>,
}

/// A part of what an executor wrote while it worked on a workorder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkorderLog {
    /// What it wrote, as text that can be shown: lines and tabs stay, every other control character is replaced.
    pub text: String,
    /// Where the next part starts: the bytes of the log up to here. Ask again `from` there.
    pub next: u64,
    /// Nothing comes after `text`: the run has ended, and this is the end of its log.
    pub ended: bool,
    /// Whether this process has a log of it. Another one may, a log may still come, and not every executor has one.
    pub here: bool,
}

/// A stored verdict beside the one that its artifacts give today.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReplayResponse {
    /// Whether both are the same.
    pub same: bool,
    /// As it was recorded.
    pub stored: VerdictView,
    /// As it comes out again.
    pub again: VerdictView,
}

/// A verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerdictView {
    /// PASS or FAIL.
    pub gate_result: String,
    /// Why, in words.
    pub gate_reason: String,
}

/// Who holds what: events in a scheduler's hands, workorders in an executor's or a gate's.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ClaimList {
    /// The claims.
    #[schemars(with = "Vec<schema::Fields>")]
    pub claims: Vec<ClaimRecord>,
}

/// What the journal's chain shows.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct JournalVerdict {
    /// Entries that were checked.
    pub entries: i64,
    /// The end of the chain.
    pub head: Option<JournalHead>,
    /// The first thing that is wrong; `null` if the chain is whole.
    pub fault: Option<String>,
    /// The seal at the place that was asked for; `null` if the chain does not reach it.
    #[serde(default)]
    pub at: Option<JournalHead>,
}

/// A seal of the journal's chain, or its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JournalHead {
    /// How many entries are sealed up to here.
    pub place: i64,
    /// The seal.
    #[schemars(with = "schema::Sha256")]
    pub hash: Digest,
}

/// One azolla.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AzollaSummary {
    /// Its id.
    #[schemars(with = "schema::ArtifactId")]
    pub azolla_id: AzollaId,
    /// What it is for.
    pub description: String,
    /// What kind of azolla it is.
    pub category: String,
    /// Of the blueprint in force.
    #[schemars(with = "schema::Sha256")]
    pub digest: Digest,
    /// Whether some process runs its workers.
    #[serde(default)]
    pub hosted: bool,
    /// When one last said so.
    #[serde(default)]
    #[schemars(with = "Option<schema::Instant>")]
    pub hosted_at: Option<Timestamp>,
}

/// All azollas.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AzollaList {
    /// The azollas.
    pub azollas: Vec<AzollaSummary>,
}

/// One azolla with its blueprint.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AzollaDetail {
    /// The azolla.
    #[serde(flatten)]
    pub summary: AzollaSummary,
    /// The blueprint in force.
    #[schemars(with = "schema::Fields")]
    pub blueprint: Value,
    /// The last pass of each of its workers in this process.
    #[schemars(with = "Vec<schema::Fields>")]
    pub workers: Vec<Value>,
}

/// A blueprint that is or was in force.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BlueprintDetail {
    /// Of the blueprint, to the byte.
    #[schemars(with = "schema::Sha256")]
    pub digest: Digest,
    /// The blueprint.
    #[schemars(with = "schema::Object")]
    pub blueprint: Box<RawValue>,
}

/// One entry of the journal.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct JournalEntry {
    /// Its id: time-ordered.
    pub entry_id: String,
    /// When.
    #[schemars(with = "schema::Instant")]
    pub created_at: Timestamp,
    /// Who.
    pub actor: String,
    /// What was done.
    pub act: String,
    /// To what.
    pub subject: String,
    /// Why, and what changed.
    #[schemars(with = "schema::Fields")]
    pub why: Value,
    /// Its seal in the chain; `null` for the moment that the sealer needs.
    #[serde(default)]
    pub seal: Option<JournalHead>,
}

//! What operators ask of objectives, and what readers of the pipeline get.
//!
//! Artifacts are passed on exactly as their schemas have them; what the control plane keeps beside them stands beside them.

use super::landing::LandingView;
use super::{Difference, schema};
use fernery_core::artifact::{
    AzollaId, BlockerId, BlockerKind, ClaimRecord, Metadata, Objective, ObjectiveId, PauseState, RecordId,
    RunId,
};
use fernery_core::canonical::Digest;
use fernery_core::pipeline::draft::{Draft, DraftEdit};
use fernery_core::{Progress, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

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

/// An objective with what the control plane keeps beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectiveView {
    /// The artifact.
    #[schemars(with = "schema::Fields")]
    pub objective: Objective,
    /// It is DONE, but no person has confirmed it.
    pub unconfirmed: bool,
    /// Gate failures since the last approval or unblocking by a person.
    pub failures: u32,
    /// What its attempts have used of the envelope since the last approval: attempts, wall_ms, tokens, cost_usd_micros.
    #[schemars(with = "schema::Fields")]
    pub spent: Value,
    /// Why no work happens; `null` if work is in progress or none is due. In a list, only for objectives that are
    /// stuck.
    #[serde(default)]
    pub waiting: Option<WaitingView>,
    /// The progress that its executor reports while it works. For an agent: the percentage of the budget that is spent,
    /// and its last line.
    #[serde(default)]
    #[schemars(with = "Option<schema::Progress>")]
    pub progress: Option<Progress>,
    /// Where its patch stands on its way to the base branch; `null` if it has none that passed.
    #[serde(default)]
    pub landing: Option<LandingView>,
    /// Until when a person does not want to see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Instant>")]
    pub snoozed_until: Option<Timestamp>,
}

/// What an objective waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitingView {
    /// A code for programs: azolla_not_hosted, no_worker, executor_unusable, concurrency_limit, review_limit, turn, gates,
    /// person, or a code as for jobs.
    pub code: String,
    /// A sentence for people.
    pub why: String,
}

/// One page of objectives, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ObjectivePage {
    /// The objectives.
    pub objectives: Vec<ObjectiveView>,
    /// The cursor of the next page; `null` on the last page.
    pub next_cursor: Option<String>,
}

/// What an approval covers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalView {
    /// The digest of exactly what is shown: send it with the approval.
    #[schemars(with = "schema::Sha256")]
    pub digest: Digest,
    /// Title, criteria, metadata, and the parts of the blueprint that decide what runs and how it is judged.
    #[schemars(with = "schema::Fields")]
    pub shown: Value,
    /// Why this server would refuse an approval now, and what to do; absent if it would accept it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Why nobody could carry it out now, so that it would wait after the approval; absent if somebody could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmanned: Option<WaitingView>,
}

/// An objective with its whole history.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ObjectiveDetail {
    /// The objective now.
    #[serde(flatten)]
    pub view: ObjectiveView,
    /// What an approval would cover now; `null` if its azolla does not exist any more.
    pub approval: Option<ApprovalView>,
    /// The envelope: what its attempts may use by the current blueprint, in the units of `spent`; absent fields have no
    /// limit.
    #[serde(default)]
    #[schemars(with = "Option<schema::Fields>")]
    pub envelope: Option<Value>,
    /// The decision that approves it.
    #[schemars(with = "Option<schema::Fields>")]
    pub decision: Option<Value>,
    /// The decisions of operators, oldest first.
    #[schemars(with = "Vec<schema::Fields>")]
    pub decisions: Vec<Value>,
    /// Its events, one per entry into TODO.
    #[schemars(with = "Vec<schema::Fields>")]
    pub events: Vec<Value>,
    /// The workorders that were made from them.
    #[schemars(with = "Vec<schema::Fields>")]
    pub workorders: Vec<Value>,
    /// The snapshots: what executors were told.
    #[schemars(with = "Vec<schema::Fields>")]
    pub context_snapshots: Vec<Value>,
    /// The output.
    #[schemars(with = "Vec<schema::Fields>")]
    pub output_bundles: Vec<Value>,
    /// The run records: the verdicts of the gates, with their evidence.
    #[schemars(with = "Vec<schema::Fields>")]
    pub runs: Vec<Value>,
    /// The pauses.
    #[schemars(with = "Vec<schema::Fields>")]
    pub pauses: Vec<PauseState>,
}

/// A decision, and the objective after it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DecisionResponse {
    /// The record.
    #[schemars(with = "schema::Fields")]
    pub decision: Value,
    /// The objective now.
    #[serde(flatten)]
    pub view: ObjectiveView,
}

macro_rules! pages {
    ($($(#[$doc:meta])* $name:ident.$rows:ident: $row:ty = $what:literal;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
        pub struct $name {
            #[doc = $what]
            #[schemars(with = "Vec<schema::Fields>")]
            pub $rows: Vec<$row>,
            /// The cursor of the next page; `null` on the last page.
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

/// A workorder with its snapshot, output and run record.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WorkorderDetail {
    /// The workorder.
    #[schemars(with = "schema::Fields")]
    pub workorder: Value,
    /// The snapshot: what its executor was told.
    #[schemars(with = "Option<schema::Fields>")]
    pub context_snapshot: Option<Value>,
    /// The output.
    #[schemars(with = "Option<schema::Fields>")]
    pub output_bundle: Option<Value>,
    /// The run record: the verdict of the gates.
    #[schemars(with = "Option<schema::Fields>")]
    pub run: Option<Value>,
    /// The ended attempts of its job, oldest first. They are deleted with the job, unless they were imported.
    #[serde(default)]
    #[schemars(with = "Vec<schema::Fields>")]
    pub attempts: Vec<Value>,
}

/// A part of the log of a workorder's executor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkorderLog {
    /// The text. Line ends and tabs stay; every other control character is replaced.
    pub text: String,
    /// The byte offset of the next part: use it as `from`.
    pub next: u64,
    /// The run has ended, and `text` is the end of its log.
    pub ended: bool,
    /// Whether this process has a log of the workorder. Another process may have it, the run may not have started, or
    /// the executor keeps no log.
    pub here: bool,
}

/// What changed from the result of one attempt to that of another.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WorkorderDifference {
    /// The later attempt.
    pub work_order_id: String,
    /// The earlier one.
    pub since: String,
    /// The commit that the later one was made for.
    pub base_sha: String,
    /// The commit that the earlier one was made for. If it is another one, the patch has what changed between them too.
    pub since_base_sha: String,
    /// The difference of the two resulting trees, as git writes it.
    pub patch: String,
}

/// A stored verdict and the one that its artifacts give now.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReplayResponse {
    /// Whether both are the same.
    pub same: bool,
    /// The stored verdict.
    pub stored: VerdictView,
    /// The verdict now.
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

/// The current claims: events held by schedulers, workorders held by executors or gates.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ClaimList {
    /// The claims.
    #[schemars(with = "Vec<schema::Fields>")]
    pub claims: Vec<ClaimRecord>,
}

/// The result of a check of the journal's chain.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct JournalVerdict {
    /// Entries that were checked.
    pub entries: i64,
    /// The end of the chain.
    pub head: Option<JournalHead>,
    /// The first fault; `null` if the chain is intact.
    pub fault: Option<String>,
    /// The requested seal; `null` if the chain is shorter.
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
    /// The digest of the current blueprint.
    #[schemars(with = "schema::Sha256")]
    pub digest: Digest,
    /// Whether a process runs its workers.
    #[serde(default)]
    pub hosted: bool,
    /// When a process last reported that.
    #[serde(default)]
    #[schemars(with = "Option<schema::Instant>")]
    pub hosted_at: Option<Timestamp>,
    /// Whether people write tickets for it.
    #[serde(default)]
    pub takes_tickets: bool,
    /// Whether it makes manifests: pages that say what needs a person.
    #[serde(default)]
    pub makes_manifests: bool,
    /// Whether its tickets must name a repository.
    #[serde(default)]
    pub needs_repository: bool,
}

/// All azollas.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AzollaList {
    /// The azollas.
    pub azollas: Vec<AzollaSummary>,
    /// The repositories of this process that tickets may name.
    #[serde(default)]
    pub repos: Vec<RepoView>,
}

/// A repository that tickets may name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RepoView {
    /// The `repo_ref` of tickets.
    pub name: String,
    /// The branch that work starts from.
    pub base: String,
    /// Its folder on the server's machine; only operators are told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// Reads the blueprint files again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReloadRequest {
    /// Only say what would change.
    #[serde(default)]
    pub dry_run: bool,
}

/// What a reload changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReloadResponse {
    /// Whether it is applied.
    pub applied: bool,
    /// The azollas whose blueprints change; none if the files are as they were.
    pub azollas: Vec<AzollaChange>,
}

/// The change of one azolla.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AzollaChange {
    /// The azolla.
    #[schemars(with = "schema::ArtifactId")]
    pub azolla_id: AzollaId,
    /// The digest of the blueprint in force; `null` if this process did not host it.
    #[schemars(with = "Option<schema::Sha256>")]
    pub before: Option<Digest>,
    /// The digest of the file's blueprint; `null` if no file has it any more.
    #[schemars(with = "Option<schema::Sha256>")]
    pub after: Option<Digest>,
    /// The parts that differ.
    pub difference: Vec<Difference>,
}

/// One azolla with its blueprint.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AzollaDetail {
    /// The azolla.
    #[serde(flatten)]
    pub summary: AzollaSummary,
    /// The current blueprint.
    #[schemars(with = "schema::Fields")]
    pub blueprint: Value,
    /// The last pass of each of its workers in this process.
    #[schemars(with = "Vec<schema::Fields>")]
    pub workers: Vec<Value>,
}

/// A current or former blueprint.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BlueprintDetail {
    /// The digest of the blueprint.
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
    /// Its seal in the chain; `null` until the sealer has written it.
    #[serde(default)]
    pub seal: Option<JournalHead>,
}

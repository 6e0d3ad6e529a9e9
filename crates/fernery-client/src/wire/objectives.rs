//! What readers of the pipeline get: objectives, their history, workorders, runs and the journal.
//!
//! Artifacts are passed on exactly as their schemas have them; what the control plane keeps beside them stands beside them.

use super::landing::LandingView;
use super::schema;
use fernery_core::artifact::{ClaimRecord, Objective, PauseState, RunId, WorkorderId};
use fernery_core::canonical::Digest;
use fernery_core::pipeline::dependency::Dependency;
use fernery_core::pipeline::possible::Verb;
use fernery_core::{Progress, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    /// The progress that its executor reports while it works. For an agent of this server: the percentage of the budget that is
    /// spent, and its last line.
    #[serde(default)]
    #[schemars(with = "Option<schema::Progress>")]
    pub progress: Option<Progress>,
    /// The work on it; absent if none is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<WorkView>,
    /// Where its patch stands on its way to the base branch; `null` if it has none that passed.
    #[serde(default)]
    pub landing: Option<LandingView>,
    /// Its open blockers that wait for another ticket, each with where that one stands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<schema::Fields>")]
    pub waits_for: Vec<Dependency>,
    /// Until when a person does not want to see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Instant>")]
    pub snoozed_until: Option<Timestamp>,
}

/// Work on an objective that is under way: its workorder is carried out, or its gates judge what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkView {
    /// The workorder.
    #[schemars(with = "schema::ArtifactId")]
    pub work_order_id: WorkorderId,
    /// The time that all attempts of the workorder may take together.
    pub budget_ms: u64,
    /// How much of it is used, that of the attempt under way included.
    pub used_ms: u64,
    /// Who works on it; absent if nobody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Instant>")]
    pub started_at: Option<Timestamp>,
    /// The output is there, and the gates judge it.
    pub judging: bool,
    /// The gate whose program ran last, if it runs in the process that answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<String>,
    /// The percentage of its progress is what the executor itself says about its work, and no part of a budget.
    pub own_progress: bool,
    /// What all runs may use since the approval: attempts, wall_time_ms, tokens, cost_usd_micros, where there is a limit. `spent` says
    /// what they have used.
    #[schemars(with = "schema::Fields")]
    pub envelope: Value,
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
    /// The attempts of its newest 10 workorders, in their order, the one under way included; none without documents. They are deleted
    /// with the job, unless they were imported.
    #[serde(default)]
    #[schemars(with = "Vec<schema::Fields>")]
    pub attempts: Vec<Value>,
    /// The pauses.
    #[schemars(with = "Vec<schema::Fields>")]
    pub pauses: Vec<PauseView>,
    /// The run of a BLOCKED ticket that passed before the ticket was reopened; confirming exactly this run keeps it. `null` if
    /// there is none.
    #[serde(default)]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub kept_run: Option<RunId>,
    /// Of a DONE ticket: the run that a confirmation confirms, which is the last that passed; `null` if there is none.
    #[serde(default)]
    #[schemars(with = "Option<schema::ArtifactId>")]
    pub confirms: Option<RunId>,
    /// What a merge would land where `landing` does not say it: the patch of a run that is kept, or that an earlier version judged.
    /// `null` if there is none, if its run was judged in another instance, or without documents.
    #[serde(default)]
    pub merges: Option<LandingView>,
    /// What was done to it besides decisions, oldest first: the journal's newest 200 entries edited, blocked, unblocked,
    /// cancelled, landed and not_landed, without the texts of an edit.
    #[serde(default)]
    #[schemars(with = "Vec<schema::Fields>")]
    pub acts: Vec<JournalEntry>,
    /// What can be done with it now: approve, answer, done, edit, block, unblock, confirm, keep (confirm an earlier run that
    /// passed), merge, reopen, cancel.
    #[serde(default)]
    pub possible: Vec<String>,
    /// What a person reads as the next things to do, the first first.
    #[serde(default)]
    pub next: Vec<String>,
}

impl ObjectiveDetail {
    /// Whether this can be done with it now.
    pub fn allows(&self, verb: Verb) -> bool {
        self.possible.iter().any(|word| word == verb.as_str())
    }

    /// Where it last stopped.
    pub fn last_pause(&self) -> Option<&PauseState> {
        self.pauses.iter().map(|of| &of.pause).max_by_key(|pause| pause.created_at)
    }
}

/// A pause, with what really happened beside its reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PauseView {
    /// The artifact.
    #[serde(flatten)]
    #[schemars(with = "schema::Fields")]
    pub pause: PauseState,
    /// What happened, in words for people.
    #[serde(default)]
    pub happened: String,
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
    PausePage.pauses: PauseView = "The pauses, each with what happened, in words.";
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
    /// The gates that judge it, as the blueprint has them that it was made under.
    #[serde(default)]
    #[schemars(with = "Vec<schema::Fields>")]
    pub gates: Vec<Value>,
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

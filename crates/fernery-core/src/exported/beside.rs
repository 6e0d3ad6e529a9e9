//! What the control plane keeps beside artifacts, and the records of its own that have no artifact of the protocol.

use crate::artifact::{
    AzollaId, BlockerId, CandidateId, CaptureId, EventId, Metadata, ObjectiveId, OutputId, RecordId,
    ResponseId, TerminalReason, WorkorderId,
};
use crate::canonical::Digest;
use crate::inbox::CandidateStatus;
use crate::inbox::facts::Facts;
use crate::pipeline::draft::Draft;
use crate::pipeline::envelope::Spent;
use crate::pipeline::evidence::Evidence;
use crate::{AttemptId, AttemptOutcome, Timestamp, words};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BesideObjective {
    /// The decision that covers it.
    pub approval: Option<RecordId>,
    /// DONE by the gate, and no person has looked.
    pub unconfirmed: bool,
    /// Gate failures since a person last said go.
    pub failures: u32,
    /// What its attempts have used since then.
    pub spent: Spent,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BesideEvent {
    /// Which entry of its objective into TODO it tells of.
    pub entry: i64,
    /// Why it needs no more looking at.
    pub reason: Option<TerminalReason>,
    /// The workorder that was made of it.
    pub work_order_id: Option<WorkorderId>,
    /// The request for a manifest that it tells of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The workorder whose run failed, where the built-in rules were asked in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stands_in_for: Option<WorkorderId>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BesideWorkorder {
    pub azolla_id: AzollaId,
    /// What it was made of.
    pub event_id: EventId,
    /// The blueprint that it was made under, and is judged by.
    pub blueprint: Digest,
    /// Wall time of its attempts.
    pub spent_ms: u64,
    pub executed_at: Option<Timestamp>,
    pub output_id: Option<OutputId>,
    /// Whether the gates have spoken.
    pub judged: bool,
    /// How often a gate could not run.
    pub gate_tries: u32,
    /// Whether an operator wanted it ended.
    pub cancelled: bool,
    /// Orders all writes to it.
    pub claim_version: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BesideRun {
    pub evidence: Vec<Evidence>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BesideCapture {
    /// The bytes as hexadecimal, where they are no plain text.
    pub raw_hex: Option<String>,
    /// When it may be looked through.
    pub ready_at: Timestamp,
    /// Triages that came to nothing.
    pub tries: u32,
    /// Came with an import, and no person has released it to triage yet.
    pub held: bool,
    /// The triage that it is in, or came out of.
    pub work_order_id: Option<WorkorderId>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BesideManifest {
    /// What it was made of.
    pub facts: Facts,
    /// Digest of the facts; an equal digest means no new manifest is needed.
    pub facts_digest: Digest,
    pub built_by: String,
    pub work_order_id: WorkorderId,
}

/// Beside a question to an azolla.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BesideQuery {
    pub azolla_id: AzollaId,
    /// For which event it was asked.
    pub event_id: EventId,
    pub response_id: ResponseId,
    /// How many artifacts the answer had, of which a bounded part is kept.
    #[serde(default)]
    pub results_told: Option<u64>,
}

/// Beside a pause that one azolla wrote about an objective of another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BesideOverdue {
    /// What it is about: there is one pause for it.
    pub pause_key: String,
}

/// What triage made of captures, and what a person decided about it. Its schema is `candidate`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CandidateRecord {
    pub candidate_id: CandidateId,
    /// In whose inbox.
    pub azolla_id: AzollaId,
    /// The triage that made it.
    pub work_order_id: Option<WorkorderId>,
    /// The captures that it was made of, or took over from those that were merged into it.
    pub capture_ids: Vec<CaptureId>,
    /// What is wanted, in a line.
    pub title: String,
    /// How to tell that it is done.
    pub acceptance_criteria: String,
    /// 0 to 4; 0 is the most.
    pub importance: u8,
    /// 0 to 4; 0 is now.
    pub urgency: u8,
    /// What else was said.
    pub metadata: Metadata,
    pub made_by: String,
    pub status: CandidateStatus,
    /// What it became.
    pub objective_id: Option<ObjectiveId>,
    /// Which one it went into.
    pub merged_into: Option<CandidateId>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl CandidateRecord {
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

/// One ended attempt of a workorder's job. What it handed in is the workorder's output bundle. Its schema is `attempt`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttemptRecord {
    pub attempt_id: AttemptId,
    /// The workorder, which is also the job.
    pub work_order_id: WorkorderId,
    /// Counts every claim of the job.
    pub attempt_no: u32,
    pub worker_id: String,
    pub started_at: Timestamp,
    pub finished_at: Timestamp,
    pub outcome: AttemptOutcome,
    /// Why it did not succeed.
    pub error: Option<Value>,
}

/// A ticket that waits for another one: this blocker of it resolves when the other is confirmed or has landed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DependencyRecord {
    pub objective_id: ObjectiveId,
    pub blocker_id: BlockerId,
    /// The other one.
    pub after_id: ObjectiveId,
}

impl DependencyRecord {
    /// The name of its file.
    pub fn name(&self) -> String {
        format!("{}.{}", self.objective_id, self.blocker_id)
    }
}

words!(
    /// What can be put out of sight.
    Snoozed {
        /// A ticket.
        Objective = "objective",
        /// A candidate.
        Candidate = "candidate",
    }
);

/// Until when a person does not want to see something.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnoozeRecord {
    pub kind: Snoozed,
    pub subject_id: String,
    pub until: Timestamp,
}

impl SnoozeRecord {
    /// The name of its file.
    pub fn name(&self) -> String {
        format!("{}.{}", self.kind, self.subject_id)
    }
}

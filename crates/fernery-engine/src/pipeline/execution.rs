//! The end of a workorder's job: its bundle and EXECUTED, in the transaction that ends the job.
//!
//! Both stores call this where they settle an attempt; each runs the statements in its own way.

use super::Cell;
use crate::door;
use fernery_core::artifact::{ContextSnapshot, ObjectiveId, OutputBundle, OutputId, WorkorderId};
use fernery_core::blueprint::{MANIFEST_BUILDER, TRIAGE};
use fernery_core::calendar::duration::millis_i64;
use fernery_core::inbox::Question;
use fernery_core::job::settle::{Next, Settlement};
use fernery_core::job::{AttemptOutcome, JobStatus};
use fernery_core::pipeline::Violation;
use fernery_core::pipeline::execution::{Ended, bundle};
use fernery_core::pipeline::membrane::{self, Parts};
use fernery_core::{Holding, JobId, Timestamp, canonical};
use serde_json::value::RawValue;

/// Lets a result through the membrane, or says what is wrong with it.
pub(crate) fn admit(result: &RawValue) -> Result<Parts, Vec<Violation>> {
    let value = serde_json::from_str(result.get()).unwrap_or_default();
    membrane::parts(&value)
}

/// What the end of an attempt means for its workorder.
pub(crate) struct Ending {
    pub(crate) work_order_id: WorkorderId,
    /// Wall time of the attempt: a lost one counts to the end of its lease.
    pub(crate) spent_ms: i64,
    pub(crate) claim_version: i64,
    pub(crate) now: Timestamp,
    /// `None`: it is queued again.
    pub(crate) ended: Option<Ended>,
}

impl Ending {
    pub(crate) fn of_attempt(
        held: &Holding,
        settlement: &Settlement,
        now: Timestamp,
        parts: Option<Parts>,
        error: Option<&RawValue>,
    ) -> Self {
        let until = if settlement.outcome == AttemptOutcome::Lost { held.expires_at.min(now) } else { now };
        let ended = match (settlement.next, parts) {
            (Next::Queue { .. }, _) => None,
            (Next::Finish(JobStatus::Succeeded), Some(parts)) => Some(Ended::Completed(parts)),
            (Next::Finish(status), _) => Some(Ended::Without {
                status,
                last: Some(settlement.outcome),
                error: error.and_then(|raw| serde_json::from_str(raw.get()).ok()),
            }),
        };
        Self {
            work_order_id: held.job_id.into(),
            spent_ms: millis_i64(until.since(held.started_at)),
            claim_version: held.claim_version + 1,
            now,
            ended,
        }
    }

    /// A job that was cancelled while it waited.
    pub(crate) fn of_waiting(job_id: JobId, claim_version: i64, now: Timestamp) -> Self {
        let ended = Ended::Without { status: JobStatus::Cancelled, last: None, error: None };
        Self { work_order_id: job_id.into(), spent_ms: 0, claim_version, now, ended: Some(ended) }
    }

    /// A job that waited until a person handed in its output. That took none of its budget.
    pub(crate) fn handed_in(job_id: JobId, claim_version: i64, now: Timestamp, output: &Parts) -> Self {
        let ended = Some(Ended::Completed(output.clone()));
        Self { work_order_id: job_id.into(), spent_ms: 0, claim_version, now, ended }
    }

    /// Its bundle, if it has ended. If its snapshot asks a question, the question completes the bundle.
    pub(crate) fn bundle(&self, objective_id: ObjectiveId, snapshot: Option<&str>) -> Option<OutputBundle> {
        let output_id = OutputId::stored(&door::artifact_id());
        let mut bundle = bundle(output_id, objective_id, self.ended.clone()?, self.now);
        let snapshot: Option<ContextSnapshot> = snapshot.and_then(|text| serde_json::from_str(text).ok());
        if let Some(question) = snapshot.as_ref().and_then(Question::of) {
            question.complete(&mut bundle);
        }
        Some(bundle)
    }

    /// Whether the bundle needs the snapshot: the workorder has ended, and its kind asks a question.
    pub(crate) fn needs_snapshot(&self, diazotroph_type: &str) -> bool {
        self.ended.is_some() && [TRIAGE, MANIFEST_BUILDER].contains(&diazotroph_type)
    }
}

pub(crate) const FIND: &str = include_str!("sql/workorder_lock.sql");
pub(crate) const SNAPSHOT: &str = include_str!("sql/snapshot_by_id.sql");
pub(crate) const REQUEUED: &str = include_str!("sql/workorder_requeued.sql");
pub(crate) const BUNDLE: &str = include_str!("sql/bundle_insert.sql");
pub(crate) const EXECUTED: &str = include_str!("sql/workorder_executed.sql");

/// The cells of [`BUNDLE`].
pub(crate) fn bundle_cells<'a>(
    ending: &'a Ending,
    bundle: &'a OutputBundle,
    document: &'a str,
) -> [Cell<'a>; 5] {
    [
        bundle.output_id.as_str().into(),
        ending.work_order_id.as_str().into(),
        bundle.objective_id.as_str().into(),
        bundle.created_at.into(),
        document.into(),
    ]
}

/// The cells of [`EXECUTED`].
pub(crate) fn executed_cells<'a>(ending: &'a Ending, bundle: &'a OutputBundle) -> [Cell<'a>; 5] {
    [
        ending.work_order_id.as_str().into(),
        ending.now.into(),
        bundle.output_id.as_str().into(),
        ending.spent_ms.into(),
        ending.claim_version.into(),
    ]
}

/// A bundle as it is stored.
pub(crate) fn document(bundle: &OutputBundle) -> String {
    canonical::text_of(bundle)
}

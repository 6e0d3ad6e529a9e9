//! What the attempt before left for the next one: how it failed or what it asked, and the patch to start from.

use super::Sql;
use super::pauses::is_judged_here;
use super::reading::{self, Decision, Run};
use crate::error::StoreResult;
use fernery_core::artifact::{GateResult, ObjectiveId, RunId};
use fernery_core::pipeline::prompt::EarlierRun;
use fernery_core::pipeline::question::{self, Answered};
use fernery_core::pipeline::rework::{EarlierPatch, LastAttempt};

#[derive(Debug, Default)]
pub(super) struct Earlier {
    /// The last run, if it failed.
    pub(super) failed: Option<EarlierRun>,
    /// What the next attempt starts from, if not from its base.
    pub(super) candidate: Option<EarlierPatch>,
    /// The last question that a person has answered, with the answer.
    pub(super) answered: Option<Answered>,
}

/// The answer that counts for an objective, whatever was approved since. A reopening ends it: its note says what counts then.
pub(super) fn answer_in_force(sql: &mut dyn Sql, id: &ObjectiveId) -> StoreResult<Option<Decision>> {
    let last = sql.one(include_str!("sql/answer_last.sql"), &[id.as_str().into()])?;
    let last = last.map(|row| reading::decision(&row)).transpose()?;
    Ok(last.filter(|decision| decision.terms().answered.is_some()))
}

impl Earlier {
    /// Reads it. What the gates of another instance said was imported: no approval of this instance was shown it, so no
    /// executor is told it.
    pub(super) fn read(sql: &mut dyn Sql, last: Option<Run>) -> StoreResult<Self> {
        let Some(Run { record: run, evidence }) = last else { return Ok(Self::default()) };
        if !is_judged_here(sql, &run.work_order_id)? {
            return Ok(Self::default());
        }
        let bundle = reading::bundle(sql, &run.work_order_id)?;
        let snapshot = match reading::workorder_by_id(sql, &run.work_order_id)? {
            Some(work) => reading::snapshot(sql, &work.workorder.context_snapshot_id)?,
            None => None,
        };
        let candidate = match (&bundle, &snapshot) {
            (Some(bundle), Some(snapshot)) => {
                EarlierPatch::after(&LastAttempt { run: &run, bundle, snapshot })
            }
            _ => None,
        };
        let failed = (run.gate_result == GateResult::Fail).then(|| EarlierRun {
            output_id: run.output_id.to_string(),
            gate_reason: run.gate_reason,
            evidence,
            asked: bundle.as_ref().and_then(question::asked),
        });
        let answered =
            answer_in_force(sql, &run.objective_id)?.and_then(|decision| decision.terms().answered);
        let answered = match answered {
            Some(answered) if answered_here(sql, &answered)? => Some(answered),
            _ => None,
        };
        Ok(Self { failed, candidate, answered })
    }

    /// The outputs that matter to the next attempt.
    pub(super) fn outputs(&self) -> Vec<String> {
        let mut outputs: Vec<String> = self.failed.iter().map(|run| run.output_id.clone()).collect();
        outputs.extend(self.candidate.iter().map(|candidate| candidate.output_id.clone()));
        outputs.dedup();
        outputs
    }
}

/// Whether the run that asked was judged in this instance, and so answered here.
fn answered_here(sql: &mut dyn Sql, answered: &Answered) -> StoreResult<bool> {
    let asker = reading::run_by_id(sql, &RunId::stored(&answered.run_id))?;
    asker.map_or(Ok(false), |run| is_judged_here(sql, &run.record.work_order_id))
}

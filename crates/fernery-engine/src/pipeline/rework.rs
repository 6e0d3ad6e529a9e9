//! What the attempt before left for the next one: how it failed or what it asked, and the patch to start from.

use super::Sql;
use super::pauses::is_judged_here;
use super::reading::{self, Run};
use crate::error::StoreResult;
use fernery_core::artifact::GateResult;
use fernery_core::pipeline::prompt::EarlierRun;
use fernery_core::pipeline::question;
use fernery_core::pipeline::rework::{EarlierPatch, LastAttempt};

#[derive(Debug, Default)]
pub(super) struct Earlier {
    /// The last run, if it failed.
    pub(super) failed: Option<EarlierRun>,
    /// What the next attempt starts from, if not from its base.
    pub(super) candidate: Option<EarlierPatch>,
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
        Ok(Self { failed, candidate })
    }

    /// The outputs that matter to the next attempt.
    pub(super) fn outputs(&self) -> Vec<String> {
        let mut outputs: Vec<String> = self.failed.iter().map(|run| run.output_id.clone()).collect();
        outputs.extend(self.candidate.iter().map(|candidate| candidate.output_id.clone()));
        outputs.dedup();
        outputs
    }
}

//! Ends one attempt: `fernery-core` decides, and the decision is written. Every end goes through here: a report, an expiry, a cancel.

use super::tx::{Tx, Waiting};
use crate::error::{StoreError, StoreResult};
use crate::pipeline::execution;
use crate::store::endings::unreported;
use fernery_core::job::settle::{Ending, Next, Settlement, settle};
use fernery_core::job::stats::Happening;
use fernery_core::pipeline::membrane::Parts;
use fernery_core::{Holding, JobId, JobStatus, StreamName};
use rusqlite::params;
use serde_json::value::RawValue;

/// What the holder says about the end.
#[derive(Clone, Copy)]
pub(super) struct HolderReport<'a> {
    pub(super) code: &'a str,
    pub(super) error: Option<&'a RawValue>,
    pub(super) result: Option<&'a RawValue>,
    /// The result of a workorder, let through the membrane.
    pub(super) parts: Option<&'a Parts>,
}

impl HolderReport<'_> {
    pub(super) const NONE: Self = Self { code: "", error: None, result: None, parts: None };
}

impl Tx<'_> {
    /// Ends the attempt whose lease was just taken.
    pub(super) fn settle(
        &mut self,
        held: &Holding,
        ending: Ending,
        report: HolderReport<'_>,
    ) -> StoreResult<Settlement> {
        let fraction = self.settings.chance.fraction();
        let s = settle(held, ending, self.clock.calendar(), &self.settings.retry, fraction);
        let unreported = unreported(s.outcome, held);
        let error = report.error.or(unreported.as_ref().map(|(_, error)| &**error));
        let code = unreported.as_ref().map_or(report.code, |(code, _)| code);
        let (job, attempt) = (held.job_id.uuid(), held.attempt_id.uuid());
        let claim_version = held.claim_version + 1;
        self.hot.attempt_insert.execute(params![
            job.as_bytes(),
            held.attempt_no,
            attempt.as_bytes(),
            held.token_hash.0,
            held.worker_id,
            held.started_at.as_millis(),
            self.now.as_millis(),
            s.outcome.as_str(),
            s.status().as_str(),
            claim_version,
            report.result.map(|raw| raw.get()),
            error.map(|raw| raw.get())
        ])?;
        if held.stream.is_workorders() {
            let ending = execution::Ending::of_attempt(held, &s, self.now, report.parts.cloned(), error);
            self.end_workorder(&ending)?;
        }
        self.count(&held.stream).running -= 1;
        let (took, buried) = (self.now.since(held.started_at), s.buried.is_some());
        let ended = Happening::Ended { outcome: s.outcome, took, buried };
        self.after.happened.push((held.stream.clone(), ended));
        match s.next {
            Next::Queue { due_at } => {
                let seq = self.take_place(held.job_id)?;
                let waiting = Waiting { claim_version, attempt_no: held.attempt_no, tally: s.tally };
                self.wait(held.job_id, &held.stream, seq, due_at, waiting)?;
            }
            Next::Finish(status) => {
                self.finish(held.job_id, &held.stream, status, claim_version, held.unique_key.as_deref())?;
                if let Some(reason) = s.buried {
                    let mut statement = self.db.prepare_cached(include_str!("sql/dead_letter_insert.sql"))?;
                    let (stream, at) = (held.stream.as_str(), self.now.as_millis());
                    statement.execute(params![job.as_bytes(), stream, at, reason.as_str(), code])?;
                }
            }
        }
        Ok(s)
    }

    /// Gives a job a new place, behind all that wait already.
    pub(super) fn take_place(&mut self, job_id: JobId) -> StoreResult<i64> {
        let seq = self.seq()?;
        let mut statement = self.db.prepare_cached(include_str!("sql/job_place.sql"))?;
        statement.execute(params![job_id.uuid().as_bytes(), seq])?;
        Ok(seq)
    }

    pub(super) fn finish(
        &mut self,
        job_id: JobId,
        stream: &StreamName,
        status: JobStatus,
        claim_version: i64,
        unique_key: Option<&str>,
    ) -> StoreResult<()> {
        match status {
            JobStatus::Dead => self.count(stream).dead += 1,
            JobStatus::Cancelled => self.count(stream).cancelled += 1,
            _ => self.count(stream).succeeded += 1,
        }
        if status != JobStatus::Succeeded {
            let mut statement = self.db.prepare_cached(include_str!("sql/job_end.sql"))?;
            let (id, at) = (job_id.uuid(), self.now.as_millis());
            statement.execute(params![id.as_bytes(), status.as_str(), at, claim_version])?;
        }
        self.free_key(unique_key, job_id)?;
        self.after.ended.push(job_id);
        Ok(())
    }

    pub(super) fn take_lease_version(&self, held: &Holding) -> StoreResult<()> {
        let mut statement = self.db.prepare_cached(include_str!("sql/lease_take_version.sql"))?;
        match statement.execute(params![held.job_id.uuid().as_bytes(), held.claim_version])? {
            1 => Ok(()),
            _ => Err(StoreError::Corrupt(format!(
                "the lease of {} changed although there is only one writer",
                held.job_id
            ))),
        }
    }
}

//! Attempts end: by a report, by expiry. Every end goes through `settle`.

use super::read;
use super::rows;
use super::write::{Tx, Waiting};
use crate::error::{StoreError, StoreResult};
use crate::store::endings::unreported;
use crate::store::reaping::Step;
use crate::store::{Completion, Failure, Proof};
use crate::substrate::execution;
use fernery_core::pipeline::membrane::Parts;
use fernery_core::report::{self, Answer, Found, Reported};
use fernery_core::settle::{Ending, Next, Settlement, settle};
use fernery_core::{Holding, JobId, JobStatus, StreamName, Timestamp};
use rusqlite::{OptionalExtension, params};
use serde_json::value::RawValue;
use std::fmt;
use uuid::Uuid;

impl Tx<'_> {
    pub(super) fn complete(&mut self, items: &[Completion]) -> StoreResult<Vec<Answer>> {
        let mut answers = Vec::with_capacity(items.len());
        for item in items {
            let result = Report { result: Some(&item.result), ..Report::NONE };
            answers.push(self.report(&item.proof, Reported::Success, Ending::Completed, result)?);
        }
        Ok(answers)
    }

    pub(super) fn fail(&mut self, items: &[Failure]) -> StoreResult<Vec<Answer>> {
        let mut answers = Vec::with_capacity(items.len());
        for item in items {
            let ending = Ending::Failed { retryable: item.retryable };
            let report = Report { code: &item.code, error: Some(&item.error), ..Report::NONE };
            answers.push(self.report(&item.proof, Reported::Failure, ending, report)?);
        }
        Ok(answers)
    }

    pub(super) fn release(&mut self, items: &[Proof]) -> StoreResult<Vec<Answer>> {
        let mut answers = Vec::with_capacity(items.len());
        for proof in items {
            answers.push(self.report(proof, Reported::Release, Ending::Released, Report::NONE)?);
        }
        Ok(answers)
    }

    fn report(
        &mut self,
        proof: &Proof,
        reported: Reported,
        ending: Ending,
        report: Report<'_>,
    ) -> StoreResult<Answer> {
        let Some(held) = self.proven(proof)? else {
            return Ok(report::answer(reported, proof.token_hash, self.find(proof)?));
        };
        let mut parts = None;
        if held.stream.is_workorders()
            && let Some(result) = report.result
        {
            match execution::admit(result) {
                Ok(admitted) => parts = Some(admitted),
                Err(_) => return Ok(Answer::Unfit),
            }
        }
        self.take_proven(proof)?;
        let settlement = self.settle(&held, ending, Report { parts: parts.as_ref(), ..report })?;
        Ok(Answer::Accepted { status: settlement.status() })
    }

    fn proven(&mut self, proof: &Proof) -> StoreResult<Option<Holding>> {
        let (job, attempt) = (proof.job_id.uuid(), proof.attempt_id.uuid());
        let key = params![job.as_bytes(), attempt.as_bytes(), proof.token_hash.0];
        Ok(self.hot.lease_proven.query_row(key, rows::holding).optional()?)
    }

    fn take_proven(&mut self, proof: &Proof) -> StoreResult<()> {
        let (job, attempt) = (proof.job_id.uuid(), proof.attempt_id.uuid());
        self.hot.lease_take.execute(params![job.as_bytes(), attempt.as_bytes(), proof.token_hash.0])?;
        Ok(())
    }

    pub(super) fn take_lease(&mut self, proof: &Proof) -> StoreResult<Option<Holding>> {
        let held = self.proven(proof)?;
        if held.is_some() {
            self.take_proven(proof)?;
        }
        Ok(held)
    }

    fn find(&self, proof: &Proof) -> StoreResult<Found> {
        if read::lease(self.db, proof.job_id)?.is_some_and(|held| held.attempt_id == proof.attempt_id) {
            return Ok(Found::Open);
        }
        let (job, attempt) = (proof.job_id.uuid(), proof.attempt_id.uuid());
        let mut statement = self.db.prepare_cached(include_str!("sql/attempt_find.sql"))?;
        let closed = statement
            .query_row(params![job.as_bytes(), attempt.as_bytes()], |row| {
                Ok(Found::Closed {
                    token_hash: rows::token_hash(row, 0)?,
                    outcome: rows::word(row, 1)?,
                    status: rows::word(row, 2)?,
                })
            })
            .optional()?;
        Ok(closed.unwrap_or(Found::Nothing))
    }

    /// Ends the attempt whose lease was just taken. Every end of a job goes through here.
    pub(super) fn settle(
        &mut self,
        held: &Holding,
        ending: Ending,
        report: Report<'_>,
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

    /// Ends the attempts of up to `size` leases after a place. What was looked at is kept in `step` whatever comes of it.
    pub(super) fn end_next(
        &mut self,
        which: Which,
        after: Option<&LeasePlace>,
        size: usize,
        step: &mut Step<LeasePlace>,
    ) -> StoreResult<()> {
        let (until, ending) = match which {
            Which::Expired => (self.now, Ending::Expired),
            Which::All => (Timestamp::from_millis(i64::MAX), Ending::Released),
        };
        *step = Step::default();
        let mut due = Vec::new();
        let mut statement = self.db.prepare_cached(include_str!("sql/leases_expired.sql"))?;
        let mut found = statement.query(params![until.as_millis(), size, after.map(|place| &place.0)])?;
        while let Some(row) = found.next()? {
            step.last = Some(LeasePlace(row.get(0)?));
            step.seen += 1;
            match rows::holding(row) {
                Ok(held) => due.push(held),
                // The others must not wait for this one.
                Err(error) => tracing::error!(%error, "a lease is damaged and left alone"),
            }
        }
        drop(found);
        drop(statement);
        for held in &due {
            self.take_lease_version(held)?;
            self.settle(held, ending, Report::NONE)?;
        }
        step.moved = due.len();
        Ok(())
    }

    pub(super) fn take_lease_version(&self, held: &Holding) -> StoreResult<()> {
        let mut statement = self.db.prepare_cached(include_str!("sql/lease_take_version.sql"))?;
        match statement.execute(params![held.job_id.uuid().as_bytes(), held.claim_version])? {
            1 => Ok(()),
            _ => {
                Err(StoreError::Corrupt(format!("the lease of {} changed under the one writer", held.job_id)))
            }
        }
    }
}

/// Which leases are ended without a report.
#[derive(Clone, Copy)]
pub(super) enum Which {
    Expired,
    All,
}

/// The id of a lease, as it is stored: a damaged one must be passed as well.
#[derive(Clone, PartialEq, PartialOrd)]
pub(super) struct LeasePlace(Vec<u8>);

impl fmt::Display for LeasePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Uuid::from_slice(&self.0) {
            Ok(id) => id.fmt(f),
            Err(_) => write!(f, "{:x?}", self.0),
        }
    }
}

/// What the holder says about the end.
#[derive(Clone, Copy)]
pub(super) struct Report<'a> {
    code: &'a str,
    error: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    /// Of a workorder: the result, let through the membrane.
    parts: Option<&'a Parts>,
}

impl Report<'_> {
    pub(super) const NONE: Self = Self { code: "", error: None, result: None, parts: None };
}

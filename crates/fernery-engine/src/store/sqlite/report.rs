//! Holders report: signs of life, success, failure, return.

use super::SqliteStore;
use super::read;
use super::rows;
use super::settle::HolderReport;
use super::tx::Tx;
use crate::error::StoreResult;
use crate::pipeline::execution;
use crate::store::{Beat, BeatAnswer, Completion, Failure, Proof, Report};
use async_trait::async_trait;
use fernery_core::job::report::{self, Answer, Found, Reported};
use fernery_core::job::settle::Ending;
use fernery_core::{Holding, Progress};
use rusqlite::{OptionalExtension, params};

#[async_trait]
impl Report for SqliteStore {
    async fn heartbeat(&self, beats: Vec<Beat>) -> StoreResult<Vec<BeatAnswer>> {
        self.write_report(move |tx| tx.heartbeat(&beats)).await
    }

    async fn progress(&self, items: Vec<(Beat, Progress)>) -> StoreResult<Vec<bool>> {
        self.write_report(move |tx| tx.progress(&items)).await
    }

    async fn complete(&self, items: Vec<Completion>) -> StoreResult<Vec<Answer>> {
        self.write_report(move |tx| tx.complete(&items)).await
    }

    async fn fail(&self, items: Vec<Failure>) -> StoreResult<Vec<Answer>> {
        self.write_report(move |tx| tx.fail(&items)).await
    }

    async fn release(&self, items: Vec<Proof>) -> StoreResult<Vec<Answer>> {
        self.write_report(move |tx| tx.release(&items)).await
    }
}

impl Tx<'_> {
    pub(super) fn heartbeat(&mut self, beats: &[Beat]) -> StoreResult<Vec<BeatAnswer>> {
        let until = self.now.after(self.settings.lease_ttl);
        let mut answers = Vec::with_capacity(beats.len());
        for beat in beats {
            let id = beat.job_id.uuid();
            let key = params![id.as_bytes(), beat.token_hash.0, self.now.as_millis(), until.as_millis()];
            let renewed = match self.hot.lease_renew.execute(key)? {
                0 => None,
                _ => {
                    let told = self.hot.lease_renewed.query_row(
                        params![id.as_bytes(), beat.token_hash.0],
                        |row| {
                            Ok(BeatAnswer::Extended {
                                expires_at: rows::instant(row, 0)?,
                                cancel_requested: row.get(1)?,
                            })
                        },
                    )?;
                    Some(told)
                }
            };
            answers.push(match renewed {
                Some(answer) => answer,
                None if read::brief(self.db, beat.job_id)?.is_some() => BeatAnswer::LeaseLost,
                None => BeatAnswer::Unknown,
            });
        }
        Ok(answers)
    }

    pub(super) fn progress(&mut self, items: &[(Beat, Progress)]) -> StoreResult<Vec<bool>> {
        let mut statement = self.db.prepare_cached(include_str!("sql/lease_progress.sql"))?;
        let mut kept = Vec::with_capacity(items.len());
        for (beat, progress) in items {
            let id = beat.job_id.uuid();
            let row = params![id.as_bytes(), beat.token_hash.0, progress.percent(), progress.note()];
            kept.push(statement.execute(row)? == 1);
        }
        Ok(kept)
    }

    pub(super) fn complete(&mut self, items: &[Completion]) -> StoreResult<Vec<Answer>> {
        let mut answers = Vec::with_capacity(items.len());
        for item in items {
            let result = HolderReport { result: Some(&item.result), ..HolderReport::NONE };
            answers.push(self.report(&item.proof, Reported::Success, Ending::Completed, result)?);
        }
        Ok(answers)
    }

    pub(super) fn fail(&mut self, items: &[Failure]) -> StoreResult<Vec<Answer>> {
        let mut answers = Vec::with_capacity(items.len());
        for item in items {
            let ending = Ending::Failed { retryable: item.retryable };
            let report = HolderReport { code: &item.code, error: Some(&item.error), ..HolderReport::NONE };
            answers.push(self.report(&item.proof, Reported::Failure, ending, report)?);
        }
        Ok(answers)
    }

    pub(super) fn release(&mut self, items: &[Proof]) -> StoreResult<Vec<Answer>> {
        let mut answers = Vec::with_capacity(items.len());
        for proof in items {
            answers.push(self.report(proof, Reported::Release, Ending::Released, HolderReport::NONE)?);
        }
        Ok(answers)
    }

    fn report(
        &mut self,
        proof: &Proof,
        reported: Reported,
        ending: Ending,
        report: HolderReport<'_>,
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
        let settlement = self.settle(&held, ending, HolderReport { parts: parts.as_ref(), ..report })?;
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
}

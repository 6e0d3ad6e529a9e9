//! What operators do to jobs.

use super::SqliteStore;
use super::read;
use super::rows;
use super::settle::HolderReport;
use super::tx::{Tx, Waiting};
use crate::error::{StoreError, StoreResult};
use crate::pipeline::bulk::{self, ActInHand, BulkStep};
use crate::pipeline::execution;
use crate::store::{CancelAnswer, DeadFilter, Operate, Pass, RetryAnswer};
use async_trait::async_trait;
use fernery_core::job::lease::Tally;
use fernery_core::job::settle::Ending;
use fernery_core::{JobId, JobStatus, StreamName};
use rusqlite::{OptionalExtension, params};
use std::sync::atomic::Ordering;

#[async_trait]
impl Operate for SqliteStore {
    async fn cancel(&self, job_id: JobId, force: bool) -> StoreResult<CancelAnswer> {
        self.write(move |tx| tx.cancel(job_id, force)).await
    }

    async fn retry(&self, job_id: JobId) -> StoreResult<RetryAnswer> {
        let answer = self.write(move |tx| tx.retry(job_id)).await;
        self.retain_anew.store(true, Ordering::Relaxed);
        answer
    }

    async fn redrive(&self, filter: DeadFilter, limit: usize) -> StoreResult<Pass> {
        let pass = self.write(move |tx| tx.redrive(&filter, limit)).await;
        self.retain_anew.store(true, Ordering::Relaxed);
        pass
    }

    async fn purge(&self, filter: DeadFilter, limit: usize) -> StoreResult<Pass> {
        let pass = self.write(move |tx| tx.purge(&filter, limit)).await;
        self.retain_anew.store(true, Ordering::Relaxed);
        pass
    }

    async fn bulk_step(&self, taken: ActInHand) -> StoreResult<Option<BulkStep>> {
        let step = self.write(move |tx| bulk::step(tx, &taken)).await;
        let of_dead = |step: &BulkStep| step.act.filter.status.is_final();
        if step.as_ref().map_or(true, |step| step.as_ref().is_some_and(of_dead)) {
            self.retain_anew.store(true, Ordering::Relaxed);
        }
        step
    }
}

impl Tx<'_> {
    pub(super) fn cancel(&mut self, job_id: JobId, force: bool) -> StoreResult<CancelAnswer> {
        let Some(brief) = read::brief(self.db, job_id)? else { return Ok(CancelAnswer::Unknown) };
        match brief.status {
            JobStatus::Queued => {
                let claim_version = self.take_waiting(job_id, &brief.stream)? + 1;
                let key: Option<String> = self
                    .db
                    .prepare_cached(include_str!("sql/job_details.sql"))?
                    .query_row([job_id.uuid().as_bytes()], |row| row.get("unique_key"))?;
                self.finish(job_id, &brief.stream, JobStatus::Cancelled, claim_version, key.as_deref())?;
                if brief.stream.is_workorders() {
                    self.end_workorder(&execution::Ending::of_waiting(job_id, claim_version, self.now))?;
                }
                Ok(CancelAnswer::Cancelled)
            }
            JobStatus::Running => {
                let held = read::lease(self.db, job_id)?
                    .ok_or_else(|| StoreError::Corrupt(format!("running job {job_id} has no attempt")))?;
                if force {
                    self.take_lease_version(&held)?;
                    self.settle(&held, Ending::ForceCancelled, HolderReport::NONE)?;
                    return Ok(CancelAnswer::Cancelled);
                }
                if !held.cancel_requested {
                    let mut statement =
                        self.db.prepare_cached(include_str!("sql/lease_request_cancel.sql"))?;
                    statement.execute(params![job_id.uuid().as_bytes(), held.claim_version])?;
                }
                Ok(CancelAnswer::Requested)
            }
            status => Ok(CancelAnswer::Ended(status)),
        }
    }

    /// Takes a job that waits out of line; answers its version.
    pub(super) fn take_waiting(&mut self, job_id: JobId, stream: &StreamName) -> StoreResult<i64> {
        let id = job_id.uuid();
        let ready: Option<i64> = self
            .db
            .prepare_cached(include_str!("sql/waiting_remove_ready.sql"))?
            .query_row([id.as_bytes()], |row| row.get(0))
            .optional()?;
        if let Some(claim_version) = ready {
            self.count(stream).ready -= 1;
            return Ok(claim_version);
        }
        let claim_version = self
            .db
            .prepare_cached(include_str!("sql/waiting_remove_scheduled.sql"))?
            .query_row([id.as_bytes()], |row| row.get(0))?;
        self.count(stream).scheduled -= 1;
        Ok(claim_version)
    }

    pub(super) fn retry(&mut self, job_id: JobId) -> StoreResult<RetryAnswer> {
        let Some(brief) = read::brief(self.db, job_id)? else { return Ok(RetryAnswer::Unknown) };
        if !matches!(brief.status, JobStatus::Dead | JobStatus::Cancelled) {
            return Ok(RetryAnswer::NotEnded(brief.status));
        }
        let id = job_id.uuid();
        let (key, claim_version, attempt_no): (Option<String>, i64, u32) = self
            .db
            .prepare_cached(include_str!("sql/job_restart_facts.sql"))?
            .query_row([id.as_bytes()], |row| {
                Ok((row.get("unique_key")?, row.get("claim_version")?, row.get("attempt_no")?))
            })?;
        if let Some(key) = &key {
            if self.key_holder(key)?.is_some() {
                return Ok(RetryAnswer::KeyTaken);
            }
            self.take_key(key, job_id)?;
        }
        match brief.status {
            JobStatus::Dead => {
                self.db
                    .prepare_cached(include_str!("sql/dead_letter_delete.sql"))?
                    .execute([id.as_bytes()])?;
                self.count(&brief.stream).dead -= 1;
            }
            _ => self.count(&brief.stream).cancelled -= 1,
        }
        let seq = self.seq()?;
        self.db.prepare_cached(include_str!("sql/job_restart.sql"))?.execute(params![id.as_bytes(), seq])?;
        let waiting = Waiting { claim_version: claim_version + 1, attempt_no, tally: Tally::default() };
        self.wait(job_id, &brief.stream, seq, None, waiting)?;
        Ok(RetryAnswer::Requeued)
    }

    pub(super) fn redrive(&mut self, filter: &DeadFilter, limit: usize) -> StoreResult<Pass> {
        let p = read::DeadParams::new(filter);
        let found: Vec<JobId> = self
            .db
            .prepare_cached(include_str!("sql/dead_letters_redrivable.sql"))?
            .query_map(params![p.stream, p.code, p.before, p.ids, limit], |row| rows::job_id(row, 0))?
            .collect::<Result<_, _>>()?;
        let mut moved = 0;
        for job_id in &found {
            // Of two with the same key the second stays.
            moved += usize::from(self.retry(*job_id)? == RetryAnswer::Requeued);
        }
        Ok(Pass { moved, full: found.len() == limit })
    }

    pub(super) fn purge(&mut self, filter: &DeadFilter, limit: usize) -> StoreResult<Pass> {
        let p = read::DeadParams::new(filter);
        let found: Vec<(JobId, StreamName)> = self
            .db
            .prepare_cached(include_str!("sql/dead_letters_oldest.sql"))?
            .query_map(params![p.stream, p.code, p.before, p.ids, limit], |row| {
                Ok((rows::job_id(row, 0)?, rows::stream(row, 1)?))
            })?
            .collect::<Result<_, _>>()?;
        for (job_id, stream) in &found {
            self.count(stream).dead -= 1;
            self.forget(*job_id)?;
        }
        Ok(Pass { moved: found.len(), full: found.len() == limit })
    }

    pub(super) fn forget(&self, job_id: JobId) -> StoreResult<()> {
        for sql in [
            include_str!("sql/dead_letter_delete.sql"),
            include_str!("sql/attempts_delete.sql"),
            include_str!("sql/job_delete.sql"),
        ] {
            self.db.prepare_cached(sql)?.execute([job_id.uuid().as_bytes()])?;
        }
        Ok(())
    }
}

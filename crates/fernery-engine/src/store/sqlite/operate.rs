//! What operators and housekeeping do.

use super::end::Report;
use super::read;
use super::rows;
use super::write::{Tx, Waiting};
use crate::error::{StoreError, StoreResult};
use crate::store::{CancelAnswer, DeadFilter, Pass, RetryAnswer, TokenRow};
use crate::substrate::execution;
use fernery_core::lease::{FENCE_STEP, Tally};
use fernery_core::settle::Ending;
use fernery_core::{JobId, JobStatus, StreamName, Timestamp};
use rusqlite::{OptionalExtension, params};

impl Tx<'_> {
    pub(super) fn promote(&mut self, limit: usize) -> StoreResult<Pass> {
        let due: Vec<_> = self
            .db
            .prepare_cached(include_str!("sql/scheduled_due.sql"))?
            .query_map(params![self.clock.calendar().as_millis(), limit], |row| {
                let waiting = Waiting {
                    claim_version: row.get(2)?,
                    attempt_no: row.get(3)?,
                    tally: rows::tally(row, 4)?,
                };
                Ok((rows::job_id(row, 0)?, rows::stream(row, 1)?, waiting))
            })?
            .collect::<Result<_, _>>()?;
        for (job_id, stream, waiting) in &due {
            self.db
                .prepare_cached(include_str!("sql/waiting_remove_scheduled.sql"))?
                .query_row([job_id.uuid().as_bytes()], |_| Ok(()))?;
            self.count(stream).scheduled -= 1;
            let seq = self.take_place(*job_id)?;
            self.wait(*job_id, stream, seq, None, *waiting)?;
        }
        Ok(Pass { moved: due.len(), full: due.len() == limit })
    }

    pub(super) fn cancel(&mut self, job_id: JobId, force: bool) -> StoreResult<CancelAnswer> {
        let Some(brief) = read::brief(self.db, job_id)? else { return Ok(CancelAnswer::Unknown) };
        match brief.status {
            JobStatus::Queued => {
                let claim_version = self.take_waiting(job_id, &brief.stream)? + 1;
                let key: Option<String> = self
                    .db
                    .prepare_cached(include_str!("sql/job_details.sql"))?
                    .query_row([job_id.uuid().as_bytes()], |row| row.get(1))?;
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
                    self.settle(&held, Ending::ForceCancelled, Report::NONE)?;
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
            .query_row([id.as_bytes()], |row| Ok((row.get(1)?, row.get(3)?, row.get(4)?)))?;
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

    /// Deletes jobs that finished before `cutoff`, if they still have.
    pub(super) fn retire(&mut self, job_ids: &[JobId], cutoff: Timestamp) -> StoreResult<usize> {
        let mut moved = 0;
        for job_id in job_ids {
            let Some(brief) = read::brief(self.db, *job_id)? else { continue };
            let kept = brief.stream.is_workorders();
            if !kept && brief.finished_at.is_some_and(|at| at < cutoff) {
                if brief.status == JobStatus::Dead {
                    self.count(&brief.stream).dead -= 1;
                }
                self.forget(*job_id)?;
                moved += 1;
            }
        }
        Ok(moved)
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

    pub(super) fn set_paused(&mut self, stream: &StreamName, paused: bool) -> StoreResult<bool> {
        let mut statement = self.db.prepare_cached(include_str!("sql/stream_pause.sql"))?;
        let known = statement.execute(params![stream.as_str(), paused])? == 1;
        if known && paused {
            self.paused.insert(stream.clone());
        } else if known {
            self.paused.remove(stream);
            self.after.claimable.insert(stream.clone(), usize::MAX);
        }
        Ok(known)
    }

    /// After a restore: no version that was given out since the backup can match.
    pub(super) fn raise_versions(&mut self) -> StoreResult<()> {
        for sql in [
            include_str!("sql/fence_ready.sql"),
            include_str!("sql/fence_scheduled.sql"),
            include_str!("sql/fence_leases.sql"),
            include_str!("sql/fence_jobs.sql"),
        ] {
            self.db.prepare_cached(sql)?.execute([FENCE_STEP])?;
        }
        Ok(())
    }

    pub(super) fn keep_clock(&self) -> StoreResult<()> {
        let mut statement = self.db.prepare_cached(include_str!("sql/mark_set.sql"))?;
        statement.execute(params!["clock", self.now.as_millis()])?;
        Ok(())
    }

    pub(super) fn add_token(&self, token: &TokenRow) -> StoreResult<bool> {
        let streams = serde_json::json!(token.streams).to_string();
        let mut statement = self.db.prepare_cached(include_str!("sql/token_insert.sql"))?;
        let added = statement.execute(params![
            token.token_id,
            token.name,
            token.role,
            streams,
            token.secret_hash,
            token.created_at.as_millis(),
            token.expires_at.map(Timestamp::as_millis),
            token.revoked_at.map(Timestamp::as_millis)
        ])?;
        Ok(added == 1)
    }

    pub(super) fn revoke_token(&self, token_id: &str) -> StoreResult<bool> {
        let mut statement = self.db.prepare_cached(include_str!("sql/token_revoke.sql"))?;
        Ok(statement.execute(params![token_id, self.now.as_millis()])? == 1)
    }
}

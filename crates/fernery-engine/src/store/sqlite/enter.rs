//! Jobs come in, and wait in line.

use super::read;
use super::rows::{self, millis};
use super::write::{Tx, Waiting};
use crate::error::{StoreError, StoreResult};
use crate::store::{Enqueued, JobBrief, NewJob, Start};
use fernery_core::lease::Tally;
use fernery_core::{JobId, JobStatus, StreamName, Timestamp};
use rusqlite::{OptionalExtension, params};

impl Tx<'_> {
    pub(super) fn enqueue(&mut self, jobs: &[NewJob]) -> StoreResult<Vec<Enqueued>> {
        jobs.iter().map(|job| self.enqueue_one(job)).collect()
    }

    fn enqueue_one(&mut self, job: &NewJob) -> StoreResult<Enqueued> {
        let mut content_hash = None;
        if let Some(job_id) = job.job_id {
            let hash = job.content_hash();
            let mut statement = self.db.prepare_cached(include_str!("sql/job_content.sql"))?;
            let stored: Option<Option<[u8; 16]>> =
                statement.query_row([job_id.uuid().as_bytes()], |row| row.get(0)).optional()?;
            match stored {
                Some(stored) if stored == Some(hash) => return Ok(Enqueued::Exists(self.brief(job_id)?)),
                Some(_) => return Ok(Enqueued::Conflict(job_id)),
                None => content_hash = Some(hash),
            }
        }
        if let Some(key) = &job.unique_key
            && let Some(holder) = self.key_holder(key)?
        {
            return Ok(Enqueued::DuplicateKey(self.brief(holder)?));
        }
        let job_id = job.job_id.unwrap_or_else(|| self.settings.chance.job_id());
        let id = job_id.uuid();
        let due_at = match job.start {
            Start::Now => None,
            Start::After(delay) => Some(self.clock.calendar().after(delay)).filter(|_| !delay.is_zero()),
            Start::At(at) => Some(at).filter(|at| *at > self.clock.calendar()),
        };
        let run_at = match job.start {
            Start::At(at) => at,
            _ => due_at.unwrap_or(self.now),
        };
        let seq = self.seq()?;
        self.hot.job_insert.execute(params![
            id.as_bytes(),
            job.stream.as_str(),
            job.payload.get(),
            job.max_attempts,
            job.timeout.map(millis),
            job.unique_key,
            job.producer,
            content_hash,
            self.now.as_millis(),
            run_at.as_millis(),
            seq
        ])?;
        if let Some(key) = &job.unique_key {
            self.take_key(key, job_id)?;
        }
        self.wait(
            job_id,
            &job.stream,
            seq,
            due_at,
            Waiting { claim_version: 0, attempt_no: 0, tally: Tally::default() },
        )?;
        Ok(Enqueued::Created(JobBrief {
            job_id,
            stream: job.stream.clone(),
            status: JobStatus::Queued,
            max_attempts: job.max_attempts,
            created_at: self.now,
            run_at,
            finished_at: None,
            producer: job.producer.clone(),
        }))
    }

    /// Puts a job in line, now or from `due_at` on.
    pub(super) fn wait(
        &mut self,
        job_id: JobId,
        stream: &StreamName,
        seq: i64,
        due_at: Option<Timestamp>,
        w: Waiting,
    ) -> StoreResult<()> {
        let id = job_id.uuid();
        let at = due_at.unwrap_or(self.now).as_millis();
        let row = params![
            stream.as_str(),
            seq,
            id.as_bytes(),
            at,
            w.claim_version,
            w.attempt_no,
            w.tally.failed,
            w.tally.lost,
            w.tally.released
        ];
        if due_at.is_some() {
            self.db.prepare_cached(include_str!("sql/scheduled_insert.sql"))?.execute(row)?;
            self.count(stream).scheduled += 1;
            self.after.scheduled = true;
        } else {
            self.hot.ready_insert.execute(row)?;
            self.count(stream).ready += 1;
            match self.after.claimable.get_mut(stream) {
                Some(jobs) => *jobs += 1,
                None => drop(self.after.claimable.insert(stream.clone(), 1)),
            }
        }
        Ok(())
    }

    pub(super) fn brief(&self, job_id: JobId) -> StoreResult<JobBrief> {
        read::brief(self.db, job_id)?
            .ok_or_else(|| StoreError::Corrupt(format!("job {job_id} is referred to and not there")))
    }

    pub(super) fn key_holder(&self, key: &str) -> StoreResult<Option<JobId>> {
        let mut statement = self.db.prepare_cached(include_str!("sql/unique_key_find.sql"))?;
        Ok(statement.query_row([key], |row| rows::job_id(row, 0)).optional()?)
    }

    pub(super) fn take_key(&self, key: &str, job_id: JobId) -> StoreResult<()> {
        let mut statement = self.db.prepare_cached(include_str!("sql/unique_key_insert.sql"))?;
        statement.execute(params![key, job_id.uuid().as_bytes()])?;
        Ok(())
    }

    pub(super) fn free_key(&self, key: Option<&str>, job_id: JobId) -> StoreResult<()> {
        if let Some(key) = key {
            let mut statement = self.db.prepare_cached(include_str!("sql/unique_key_delete.sql"))?;
            statement.execute(params![key, job_id.uuid().as_bytes()])?;
        }
        Ok(())
    }
}

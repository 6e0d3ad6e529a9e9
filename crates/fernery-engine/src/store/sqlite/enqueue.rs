//! Enqueues jobs.

use super::SqliteStore;
use super::read;
use super::rows::{self, millis};
use super::tx::{Tx, Waiting};
use super::writer::Lane;
use crate::error::{StoreError, StoreResult};
use crate::store::{Enqueue, Enqueued, JobBrief, NewJob, Start};
use async_trait::async_trait;
use fernery_core::job::lease::Tally;
use fernery_core::job::stats::Happening;
use fernery_core::{JobId, StreamName, Timestamp};
use rusqlite::{OptionalExtension, params};

/// Rows of one INSERT. A statement for many rows costs SQLite a third less than as many statements.
pub(super) const MANY: usize = 50;

/// `jobs` and `ready` for [`MANY`] plain jobs: built here, because how often the row is repeated is a number of ours.
/// A row that is refused leaves those before it (`OR FAIL`): the transaction is rolled back as a whole anyway, and SQLite
/// need not keep a copy of every page to undo one statement.
pub(super) fn insert_many_sql() -> (String, String) {
    let rows = |width: usize, row: &dyn Fn(usize) -> String| {
        (0..MANY).map(|n| row(2 + n * width)).collect::<Vec<_>>().join(",")
    };
    let jobs = rows(7, &|i| {
        let [stream, payload, attempts, timeout, producer, seq] = [1, 2, 3, 4, 5, 6].map(|n| i + n);
        format!("(?{i},?{stream},?{payload},?{attempts},?{timeout},?{producer},?1,?1,?{seq},0)")
    });
    let ready = rows(3, &|i| format!("(?{i},?{},?{},?1,0,0,0,0,0)", i + 1, i + 2));
    (
        format!(
            "INSERT OR FAIL INTO jobs (job_id, stream, payload, max_attempts, timeout_ms, producer, created_at, run_at, seq, \
             claim_version) VALUES {jobs}"
        ),
        format!(
            "INSERT OR FAIL INTO ready (stream, seq, job_id, ready_at, claim_version, attempt_no, failed, lost, released) \
             VALUES {ready}"
        ),
    )
}

/// A job that can meet no other: no id of its producer, no key, no wait.
fn is_plain(job: &NewJob) -> bool {
    job.job_id.is_none() && job.unique_key.is_none() && job.start == Start::Now
}

#[async_trait]
impl Enqueue for SqliteStore {
    async fn enqueue(&self, jobs: Vec<NewJob>) -> StoreResult<Vec<Enqueued>> {
        self.writer()?.call(Lane::Other { jobs: jobs.len() }, move |tx| tx.enqueue(&jobs)).await
    }
}

impl Tx<'_> {
    pub(super) fn enqueue(&mut self, jobs: &[NewJob]) -> StoreResult<Vec<Enqueued>> {
        let mut answers = Vec::with_capacity(jobs.len());
        let mut rest = jobs;
        while let Some(first) = rest.first() {
            let plain = rest.iter().take(MANY).take_while(|job| is_plain(job)).count();
            let (now, later) = rest.split_at(plain.max(1));
            match plain {
                MANY => self.enqueue_many(now, &mut answers)?,
                0 | 1 => answers.push(self.enqueue_one(first)?),
                _ => {
                    for job in now {
                        answers.push(self.enqueue_one(job)?);
                    }
                }
            }
            rest = later;
        }
        Ok(answers)
    }

    /// Exactly [`MANY`] jobs that can meet no other: two statements for all of them.
    fn enqueue_many(&mut self, jobs: &[NewJob], answers: &mut Vec<Enqueued>) -> StoreResult<()> {
        let now = self.now.as_millis();
        let mut rows = Vec::with_capacity(jobs.len());
        for job in jobs {
            rows.push((self.settings.chance.job_id(), self.seq()?, job));
        }
        for alike in jobs.chunk_by(|a, b| a.stream == b.stream) {
            self.count(&alike[0].stream).ready += alike.len() as i64;
            self.claimable(&alike[0].stream, alike.len());
            let came = Happening::Enqueued(alike.len() as u64);
            self.after.happened.push((alike[0].stream.clone(), came));
        }
        let (inserts, places) = (&mut self.hot.jobs_insert_many, &mut self.hot.ready_insert_many);
        inserts.raw_bind_parameter(1, now)?;
        places.raw_bind_parameter(1, now)?;
        let (mut i, mut p) = (2, 2);
        for (job_id, seq, job) in &rows {
            let id = job_id.uuid();
            inserts.raw_bind_parameter(i, id.as_bytes())?;
            inserts.raw_bind_parameter(i + 1, job.stream.as_str())?;
            inserts.raw_bind_parameter(i + 2, job.payload.get())?;
            inserts.raw_bind_parameter(i + 3, job.max_attempts)?;
            inserts.raw_bind_parameter(i + 4, job.timeout.map(millis))?;
            inserts.raw_bind_parameter(i + 5, job.producer.as_deref())?;
            inserts.raw_bind_parameter(i + 6, *seq)?;
            i += 7;
            places.raw_bind_parameter(p, job.stream.as_str())?;
            places.raw_bind_parameter(p + 1, *seq)?;
            places.raw_bind_parameter(p + 2, id.as_bytes())?;
            p += 3;
        }
        inserts.raw_execute()?;
        places.raw_execute()?;
        let created =
            |(job_id, _, job): (_, _, &NewJob)| Enqueued::Created(job.created(job_id, self.now, self.now));
        answers.extend(rows.into_iter().map(created));
        Ok(())
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
        self.after.happened.push((job.stream.clone(), Happening::Enqueued(1)));
        Ok(Enqueued::Created(job.created(job_id, self.now, run_at)))
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
            self.claimable(stream, 1);
        }
        Ok(())
    }

    fn claimable(&mut self, stream: &StreamName, jobs: usize) {
        match self.after.claimable.get_mut(stream) {
            Some(known) => *known += jobs,
            None => drop(self.after.claimable.insert(stream.clone(), jobs)),
        }
    }

    pub(super) fn brief(&self, job_id: JobId) -> StoreResult<JobBrief> {
        read::brief(self.db, job_id)?
            .ok_or_else(|| StoreError::Corrupt(format!("job {job_id} is referenced but missing")))
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

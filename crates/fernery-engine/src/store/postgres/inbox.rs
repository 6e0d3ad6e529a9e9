//! Jobs that other programs enqueue inside their own transactions: rows of `fernery.inbox`.
//!
//! A row carries its job's id from the start, so emptying is the ordinary enqueue followed by a delete: dying in between, or
//! two processes at once, finds the same job again and stores nothing twice. What cannot become a job is kept aside with
//! the reason, and never keeps the others waiting.

use super::PostgresStore;
use super::columns::{self, cell, count, job_id, json, maybe_instant, rows_limit};
use crate::error::{StoreError, StoreResult};
use crate::store::{Enqueued, NewJob, Pass, Start, Store};
use fernery_core::{StreamName, limits};
use std::time::Duration;
use tokio_postgres::Row;
use tracing::warn;

impl PostgresStore {
    pub(super) async fn empty_inbox_once(&self, limit: usize) -> StoreResult<Pass> {
        let bounds = (rows_limit(limit), rows_limit(limits::CLAIM_BYTES_MAX));
        let rows = self.read(include_str!("sql/inbox_read.sql"), &[&bounds.0, &bounds.1]).await?;
        let (mut ids, mut jobs) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
        let (mut refused, mut reasons) = (Vec::new(), Vec::new());
        let mut refuse = |inbox_id: i64, why: String| {
            refused.push(inbox_id);
            reasons.push(why);
        };
        for row in &rows {
            let inbox_id: i64 = cell(row, 0)?;
            match job(row) {
                Ok(job) => {
                    ids.push(inbox_id);
                    jobs.push(job);
                }
                Err(error) => refuse(inbox_id, error.to_string()),
            }
        }
        let mut taken = Vec::with_capacity(ids.len());
        for (inbox_id, answer) in ids.into_iter().zip(self.enqueue_each(jobs).await?) {
            match answer {
                Ok(Enqueued::Created(_) | Enqueued::Exists(_)) => taken.push(inbox_id),
                Ok(Enqueued::DuplicateKey(first)) => {
                    refuse(
                        inbox_id,
                        format!("its unique key belongs to job {}, which is unfinished", first.job_id),
                    );
                }
                Ok(Enqueued::Conflict(id)) => {
                    refuse(inbox_id, format!("job {id} is there already, with other content"));
                }
                Err(error) => refuse(inbox_id, error.to_string()),
            }
        }
        if !taken.is_empty() {
            self.read(include_str!("sql/inbox_forget.sql"), &[&taken]).await?;
        }
        if !refused.is_empty() {
            warn!(rows = refused.len(), "rows of the inbox became no jobs; see fernery.inbox_refused");
            self.read(include_str!("sql/inbox_refuse.sql"), &[&refused, &reasons]).await?;
        }
        Ok(Pass { moved: rows.len(), full: !rows.is_empty() })
    }

    /// Enqueues them together, and where one spoils the batch, each by itself.
    async fn enqueue_each(&self, jobs: Vec<NewJob>) -> StoreResult<Vec<StoreResult<Enqueued>>> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        match self.enqueue(jobs.clone()).await {
            Ok(answers) => return Ok(answers.into_iter().map(Ok).collect()),
            Err(StoreError::Refused(_) | StoreError::Corrupt(_)) => {}
            Err(error) => return Err(error),
        }
        let mut answers = Vec::with_capacity(jobs.len());
        for job in jobs {
            answers.push(match self.enqueue(vec![job]).await {
                Ok(mut one) => one.pop().ok_or_else(|| StoreError::Corrupt("a job without an answer".into())),
                Err(error @ (StoreError::Refused(_) | StoreError::Corrupt(_))) => Err(error),
                Err(error) => return Err(error),
            });
        }
        Ok(answers)
    }
}

fn job(row: &Row) -> StoreResult<NewJob> {
    let stream = StreamName::new(columns::stream(row, 2)?.as_str());
    let timeout: Option<i32> = cell(row, 7)?;
    let job = NewJob {
        job_id: Some(job_id(row, 1)?),
        max_attempts: count(row, 4)?,
        start: maybe_instant(row, 5)?.map_or(Start::Now, Start::At),
        unique_key: cell(row, 6)?,
        timeout: timeout.map(|s| Duration::from_secs(u64::try_from(s).unwrap_or_default())),
        ..NewJob::new(stream.map_err(|bad| StoreError::Refused(bad.to_string()))?, json(row, 3)?)
    };
    // The table's own guards are for whoever inserts: they answer at once. What they let through is judged here.
    job.check()?;
    Ok(job)
}

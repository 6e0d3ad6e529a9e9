//! Jobs that other programs enqueue inside their own transactions: rows of `fernery.inbox`.
//!
//! A row has its job's id from the start, so draining is an ordinary enqueue followed by a delete: after a crash in
//! between, or with two processes at once, the same job is found again and nothing is stored twice. Rows that cannot
//! become a job are moved to `fernery.inbox_refused` with the reason and do not block the others.

use super::PostgresStore;
use super::rows::{self, cell, count, job_id, json, maybe_instant, rows_limit};
use crate::error::{StoreError, StoreResult};
use crate::store::{Enqueue, Enqueued, NewJob, Pass, Start};
use fernery_core::{StreamName, limits};
use std::time::Duration;
use tokio_postgres::Row;
use tracing::warn;

/// Enqueues up to `limit` rows.
pub(super) async fn drain(store: &PostgresStore, limit: usize) -> StoreResult<Pass> {
    let bounds = (rows_limit(limit), rows_limit(limits::CLAIM_BYTES_MAX));
    let rows = store.read(include_str!("sql/inbox_read.sql"), &[&bounds.0, &bounds.1]).await?;
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
    for (inbox_id, answer) in ids.into_iter().zip(enqueue_each(store, jobs).await?) {
        match answer {
            Ok(Enqueued::Created(_) | Enqueued::Exists(_)) => taken.push(inbox_id),
            Ok(Enqueued::DuplicateKey(first)) => {
                refuse(inbox_id, format!("the unique key belongs to the unfinished job {}", first.job_id));
            }
            Ok(Enqueued::Conflict(id)) => {
                refuse(inbox_id, format!("job {id} already exists with other content"));
            }
            Err(error) => refuse(inbox_id, error.to_string()),
        }
    }
    if !taken.is_empty() {
        store.read(include_str!("sql/inbox_forget.sql"), &[&taken]).await?;
    }
    if !refused.is_empty() {
        warn!(rows = refused.len(), "refused rows of fernery.inbox; see fernery.inbox_refused");
        store.read(include_str!("sql/inbox_refuse.sql"), &[&refused, &reasons]).await?;
    }
    Ok(Pass { moved: rows.len(), full: !rows.is_empty() })
}

/// Enqueues them together; if that fails, one by one.
async fn enqueue_each(store: &PostgresStore, jobs: Vec<NewJob>) -> StoreResult<Vec<StoreResult<Enqueued>>> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    match store.enqueue(jobs.clone()).await {
        Ok(answers) => return Ok(answers.into_iter().map(Ok).collect()),
        Err(StoreError::Refused(_) | StoreError::Corrupt(_)) => {}
        Err(error) => return Err(error),
    }
    let mut answers = Vec::with_capacity(jobs.len());
    for job in jobs {
        answers.push(match store.enqueue(vec![job]).await {
            Ok(mut one) => one.pop().ok_or_else(|| StoreError::Corrupt("a job got no answer".into())),
            Err(error @ (StoreError::Refused(_) | StoreError::Corrupt(_))) => Err(error),
            Err(error) => return Err(error),
        });
    }
    Ok(answers)
}

fn job(row: &Row) -> StoreResult<NewJob> {
    let stream = StreamName::new(rows::stream(row, 2)?.as_str());
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

//! Jobs that other programs enqueue inside their own transactions: rows of `fernery.inbox`.
//!
//! A row carries its job's id from the start, so emptying is the ordinary enqueue followed by a delete: dying in between, or
//! two processes at once, finds the same job again and stores nothing twice.

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
        let mut refused: (Vec<i64>, Vec<String>) = Default::default();
        for row in &rows {
            let inbox_id: i64 = cell(row, 0)?;
            match job(row) {
                Ok(job) => {
                    ids.push(inbox_id);
                    jobs.push(job);
                }
                Err(error) => {
                    refused.0.push(inbox_id);
                    refused.1.push(error.to_string());
                }
            }
        }
        let answers = if jobs.is_empty() { Vec::new() } else { self.enqueue(jobs).await? };
        let mut taken = Vec::with_capacity(ids.len());
        for (inbox_id, answer) in ids.into_iter().zip(answers) {
            match answer {
                Enqueued::Created(_) | Enqueued::Exists(_) | Enqueued::DuplicateKey(_) => {
                    taken.push(inbox_id)
                }
                Enqueued::Conflict(job_id) => {
                    refused.0.push(inbox_id);
                    refused.1.push(format!("job {job_id} is there already, with other content"));
                }
            }
        }
        if !taken.is_empty() {
            self.read(include_str!("sql/inbox_forget.sql"), &[&taken]).await?;
        }
        if !refused.0.is_empty() {
            warn!(rows = refused.0.len(), "rows of the inbox were refused; see fernery.inbox_refused");
            self.read(include_str!("sql/inbox_refuse.sql"), &[&refused.0, &refused.1]).await?;
        }
        Ok(Pass { moved: rows.len(), full: !rows.is_empty() })
    }
}

fn job(row: &Row) -> StoreResult<NewJob> {
    let unfit = |why: String| StoreError::Refused(why);
    let stream = StreamName::new(columns::stream(row, 2)?.as_str()).map_err(|e| unfit(e.to_string()))?;
    let timeout: Option<i32> = cell(row, 7)?;
    Ok(NewJob {
        job_id: Some(job_id(row, 1)?),
        max_attempts: count(row, 4)?,
        start: maybe_instant(row, 5)?.map_or(Start::Now, Start::At),
        unique_key: cell(row, 6)?,
        timeout: timeout.map(|s| Duration::from_secs(u64::try_from(s).unwrap_or_default())),
        ..NewJob::new(stream, json(row, 3)?)
    })
}

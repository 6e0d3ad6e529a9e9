//! The walk of a bulk act over jobs, and what it does to those that are meant.

use super::rows;
use super::tx::Tx;
use crate::error::StoreResult;
use crate::pipeline::bulk::{BulkActed, Walked};
use crate::store::{CancelAnswer, DeadFilter, RetryAnswer};
use fernery_core::job::bulk::{BulkFilter, BulkVerb, Walk};
use fernery_core::{JobId, StreamName};
use rusqlite::{Connection, Row, ToSql, params};

/// Above the name of every stream.
const BEYOND_STREAMS: &str = "~";

/// The next jobs of a walk.
pub(super) fn walk(
    db: &Connection,
    filter: &BulkFilter,
    from: &Walk,
    limit: usize,
) -> StoreResult<Vec<Walked>> {
    let before = filter.before.as_millis();
    let id = |after: &Option<JobId>| after.map_or(Vec::new(), |id| id.uuid().as_bytes().to_vec());
    match from {
        Walk::Scheduled { after } => {
            let sql = include_str!("sql/bulk_scheduled.sql");
            found(db, sql, params![id(after), limit], |job_id| Walk::Scheduled { after: Some(job_id) })
        }
        Walk::Held { after } => {
            let sql = include_str!("sql/bulk_held.sql");
            found(db, sql, params![id(after), limit], |job_id| Walk::Held { after: Some(job_id) })
        }
        Walk::Cancelled { after } => {
            let sql = include_str!("sql/bulk_cancelled.sql");
            found(db, sql, params![id(after), limit], |job_id| Walk::Cancelled { after: Some(job_id) })
        }
        Walk::Ready { after } => {
            let named = filter.stream.as_ref().map(StreamName::as_str);
            let (stream, seq) = after
                .as_ref()
                .map_or((named.unwrap_or(""), i64::MIN), |(stream, seq)| (stream.as_str(), *seq));
            let last = named.unwrap_or(BEYOND_STREAMS);
            let mut statement = db.prepare_cached(include_str!("sql/bulk_ready.sql"))?;
            let rows = statement.query_map(params![stream, seq, last, limit], |row| {
                let walked = walked(row, |_| Walk::Ready { after: None })?;
                let after = Some((walked.stream.clone(), row.get("seq")?));
                Ok(Walked { here: Walk::Ready { after }, ..walked })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        }
        Walk::Dead { after } => {
            let (at, job_id) = after.map_or((i64::MIN, Vec::new()), |(at, job_id)| {
                (at.as_millis(), job_id.uuid().as_bytes().to_vec())
            });
            let of_stream;
            let (sql, params): (_, &[&dyn ToSql]) = match &filter.stream {
                Some(stream) => {
                    of_stream = stream.as_str();
                    let sql = include_str!("sql/bulk_dead_of_stream.sql");
                    (sql, params![at, job_id, before, limit, of_stream])
                }
                None => (include_str!("sql/bulk_dead.sql"), params![at, job_id, before, limit]),
            };
            let mut statement = db.prepare_cached(sql)?;
            let rows = statement.query_map(params, |row| {
                let walked = walked(row, |_| Walk::Dead { after: None })?;
                let (code, after) = (row.get("code")?, Some((walked.at, walked.job_id)));
                Ok(Walked { code: Some(code), here: Walk::Dead { after }, ..walked })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        }
    }
}

fn found(
    db: &Connection,
    sql: &str,
    params: &[&dyn ToSql],
    here: impl Fn(JobId) -> Walk,
) -> StoreResult<Vec<Walked>> {
    let mut statement = db.prepare_cached(sql)?;
    Ok(statement.query_map(params, |row| walked(row, &here))?.collect::<Result<_, _>>()?)
}

fn walked(row: &Row<'_>, here: impl Fn(JobId) -> Walk) -> rusqlite::Result<Walked> {
    let job_id = rows::job_id(row, "job_id")?;
    Ok(Walked {
        job_id,
        stream: rows::stream(row, "stream")?,
        at: rows::instant(row, "at")?,
        code: None,
        here: here(job_id),
    })
}

impl Tx<'_> {
    /// Does to these jobs what an operator asked for. There is one writer: they stand as the walk has just seen them.
    pub(super) fn bulk(&mut self, verb: BulkVerb, jobs: &[JobId]) -> StoreResult<BulkActed> {
        let mut acted = BulkActed::default();
        match verb {
            BulkVerb::Cancel => {
                for job_id in jobs {
                    let answer = self.cancel(*job_id, false)?;
                    acted.done +=
                        u64::from(matches!(answer, CancelAnswer::Cancelled | CancelAnswer::Requested));
                }
            }
            BulkVerb::Retry => {
                for job_id in jobs {
                    match self.retry(*job_id)? {
                        RetryAnswer::Requeued => acted.done += 1,
                        RetryAnswer::KeyTaken => acted.refused += 1,
                        RetryAnswer::NotEnded(_) | RetryAnswer::Unknown => {}
                    }
                }
            }
            BulkVerb::Purge => {
                let these = DeadFilter { job_ids: jobs.to_vec(), ..DeadFilter::default() };
                acted.done = self.purge(&these, jobs.len())?.moved as u64;
            }
        }
        Ok(acted)
    }
}

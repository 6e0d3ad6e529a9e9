//! Converts rows to values. A value of the wrong type is reported as corruption.

use crate::error::StoreError;
use crate::store::endings::Traces;
use crate::store::{AttemptView, JobBrief, StreamCounts, StreamView};
pub(super) use fernery_core::calendar::duration::millis_i64 as millis;
use fernery_core::job::lease::{Message, Tally};
use fernery_core::{AttemptId, Holding, JobId, Progress, StreamName, Timestamp, TokenHash};
use rusqlite::types::Type;
use rusqlite::{Error, Result, Row, RowIndex};
use serde_json::value::RawValue;
use std::str::FromStr;
use uuid::Uuid;

/// A column of a row: by its name; by its place in statements that are short or run often.
pub(super) trait SqliteColumn: RowIndex + Copy {}

impl SqliteColumn for usize {}
impl SqliteColumn for &str {}

fn damaged(row: &Row<'_>, column: impl SqliteColumn, kind: Type, why: impl std::fmt::Display) -> Error {
    match column.idx(row.as_ref()) {
        Ok(place) => Error::FromSqlConversionFailure(place, kind, why.to_string().into()),
        Err(unread) => unread,
    }
}

fn uuid(row: &Row<'_>, column: impl SqliteColumn) -> Result<Uuid> {
    let bytes = row.get_ref(column)?.as_blob().map_err(|e| damaged(row, column, Type::Blob, e))?;
    Uuid::from_slice(bytes).map_err(|e| damaged(row, column, Type::Blob, e))
}

pub(super) fn job_id(row: &Row<'_>, column: impl SqliteColumn) -> Result<JobId> {
    uuid(row, column).map(JobId::from_uuid)
}

pub(super) fn attempt_id(row: &Row<'_>, column: impl SqliteColumn) -> Result<AttemptId> {
    uuid(row, column).map(AttemptId::from_uuid)
}

pub(super) fn token_hash(row: &Row<'_>, column: usize) -> Result<TokenHash> {
    row.get(column).map(TokenHash)
}

pub(super) fn instant(row: &Row<'_>, column: impl SqliteColumn) -> Result<Timestamp> {
    row.get(column).map(Timestamp::from_millis)
}

pub(super) fn maybe_instant(row: &Row<'_>, column: impl SqliteColumn) -> Result<Option<Timestamp>> {
    row.get::<_, Option<i64>>(column).map(|ms| ms.map(Timestamp::from_millis))
}

pub(super) fn stream(row: &Row<'_>, column: impl SqliteColumn) -> Result<StreamName> {
    let text = row.get_ref(column)?.as_str().map_err(|e| damaged(row, column, Type::Text, e))?;
    Ok(StreamName::stored(text))
}

pub(super) fn word<T: FromStr<Err = String>>(row: &Row<'_>, column: impl SqliteColumn) -> Result<T> {
    let text = row.get_ref(column)?.as_str().map_err(|e| damaged(row, column, Type::Text, e))?;
    text.parse().map_err(|e: String| damaged(row, column, Type::Text, format!("{text:?}: {e}")))
}

pub(super) fn maybe_word<T: FromStr<Err = String>>(row: &Row<'_>, column: usize) -> Result<Option<T>> {
    match row.get_ref(column)? {
        rusqlite::types::ValueRef::Null => Ok(None),
        _ => word(row, column).map(Some),
    }
}

pub(super) fn json(row: &Row<'_>, column: impl SqliteColumn) -> Result<Box<RawValue>> {
    RawValue::from_string(row.get(column)?).map_err(|e| damaged(row, column, Type::Text, e))
}

fn maybe_json(row: &Row<'_>, column: impl SqliteColumn) -> Result<Option<Box<RawValue>>> {
    let text: Option<String> = row.get(column)?;
    text.map(RawValue::from_string).transpose().map_err(|e| damaged(row, column, Type::Text, e))
}

/// `failed, lost, released` from this column on.
pub(super) fn tally(row: &Row<'_>, column: usize) -> Result<Tally> {
    Ok(Tally { failed: row.get(column)?, lost: row.get(column + 1)?, released: row.get(column + 2)? })
}

/// A lease row in the order of `lease_of_job.sql`.
pub(super) fn holding(row: &Row<'_>) -> Result<Holding> {
    Ok(Holding {
        job_id: job_id(row, 0)?,
        attempt_id: attempt_id(row, 1)?,
        token_hash: token_hash(row, 2)?,
        worker_id: row.get(3)?,
        stream: stream(row, 4)?,
        message: Message { seq: row.get(5)?, ready_at: instant(row, 6)? },
        started_at: instant(row, 7)?,
        heartbeat_at: instant(row, 8)?,
        expires_at: instant(row, 9)?,
        timeout_at: maybe_instant(row, 10)?,
        claim_version: row.get(11)?,
        attempt_no: row.get(12)?,
        tally: tally(row, 13)?,
        max_attempts: row.get(16)?,
        cancel_requested: row.get(17)?,
        unique_key: row.get(18)?,
    })
}

/// A row of `job_brief.sql`; the outer error is damage of another kind than SQL's.
pub(super) fn brief(row: &Row<'_>) -> Result<std::result::Result<JobBrief, StoreError>> {
    let job_id = job_id(row, 0)?;
    let traces = Traces {
        leased: row.get(6)?,
        waiting: row.get(7)?,
        ended: maybe_word(row, 8)?,
        last_outcome: maybe_word(row, 10)?,
    };
    let status = match traces.status(job_id) {
        Ok(status) => status,
        Err(error) => return Ok(Err(error)),
    };
    let finished_at = match traces.ended {
        _ if !status.is_final() => None,
        Some(_) => maybe_instant(row, 9)?,
        None => maybe_instant(row, 11)?,
    };
    Ok(Ok(JobBrief {
        job_id,
        stream: stream(row, 1)?,
        status,
        max_attempts: row.get(2)?,
        created_at: instant(row, 3)?,
        run_at: instant(row, 4)?,
        finished_at,
        producer: row.get(5)?,
    }))
}

pub(super) fn attempt(row: &Row<'_>) -> Result<AttemptView> {
    Ok(AttemptView {
        attempt_id: attempt_id(row, "attempt_id")?,
        attempt_no: row.get("attempt_no")?,
        worker_id: row.get("worker_id")?,
        started_at: instant(row, "started_at")?,
        finished_at: maybe_instant(row, "finished_at")?,
        outcome: Some(word(row, "outcome")?),
        error: maybe_json(row, "error")?,
        result: maybe_json(row, "result")?,
        heartbeat_at: None,
        expires_at: None,
        progress: None,
        claim_version: row.get("claim_version")?,
    })
}

pub(super) fn progress(row: &Row<'_>) -> Result<Progress> {
    Progress::new(row.get(0)?, row.get(1)?).map_err(|e| damaged(row, 0, Type::Integer, e))
}

pub(super) fn stream_counts(row: &Row<'_>) -> Result<StreamCounts> {
    Ok(StreamCounts {
        ready: row.get("ready")?,
        scheduled: row.get("scheduled")?,
        running: row.get("running")?,
        succeeded: row.get("succeeded")?,
        dead: row.get("dead")?,
        cancelled: row.get("cancelled")?,
    })
}

pub(super) fn stream_view(row: &Row<'_>) -> Result<StreamView> {
    Ok(StreamView {
        name: stream(row, "name")?,
        paused: row.get("paused")?,
        redact: row.get("redact")?,
        counts: stream_counts(row)?,
        oldest_ready_at: maybe_instant(row, "oldest_ready_at")?,
    })
}

//! Converts values to columns and rows to values. A value of the wrong type is reported as corruption.

use crate::error::{StoreError, StoreResult};
use crate::store::endings::Traces;
use crate::store::{JobBrief, StreamCounts};
use crate::transport::MessageId;
use bytes::{BufMut, BytesMut};
pub(super) use fernery_core::calendar::duration::millis_i64 as millis;
use fernery_core::job::lease::{Message, Tally};
use fernery_core::{AttemptId, Holding, JobId, StreamName, Timestamp, TokenHash};
use serde_json::value::RawValue;
use std::error::Error;
use std::str::FromStr;
use tokio_postgres::Row;
use tokio_postgres::row::RowIndex;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};
use uuid::Uuid;

/// A parameter of a statement.
pub(super) type Param<'a> = &'a (dyn ToSql + Sync);

/// 2000-01-01, from where PostgreSQL counts, in milliseconds since 1970.
const POSTGRES_EPOCH_MS: i64 = 946_684_800_000;

/// An instant as `timestamptz`.
#[derive(Clone, Copy, Debug)]
pub(super) struct At(pub(super) Timestamp);

impl ToSql for At {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.put_i64((self.0.as_millis() - POSTGRES_EPOCH_MS).saturating_mul(1_000));
        Ok(IsNull::No)
    }

    accepts!(TIMESTAMPTZ);
    to_sql_checked!();
}

impl<'a> FromSql<'a> for At {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        let micros = i64::from_be_bytes(raw.try_into()?);
        Ok(Self(Timestamp::from_millis(micros.div_euclid(1_000) + POSTGRES_EPOCH_MS)))
    }

    accepts!(TIMESTAMPTZ);
}

/// A document as `json`, which keeps it to the byte.
#[derive(Clone, Copy, Debug)]
pub(super) struct Json<'a>(pub(super) &'a RawValue);

impl ToSql for Json<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.put_slice(self.0.get().as_bytes());
        Ok(IsNull::No)
    }

    accepts!(JSON);
    to_sql_checked!();
}

struct JsonCell(Box<RawValue>);

impl<'a> FromSql<'a> for JsonCell {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(RawValue::from_string(String::from_utf8(raw.to_vec())?)?))
    }

    accepts!(JSON);
}

fn damaged(what: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(format!("a row does not fit: {what}"))
}

/// A column of a row: by its name; by its place in statements that are short or run often.
pub(super) trait PostgresColumn: RowIndex + std::fmt::Display + Copy {}

impl PostgresColumn for usize {}
impl PostgresColumn for &str {}

pub(super) fn cell<'a, T: FromSql<'a>>(row: &'a Row, column: impl PostgresColumn) -> StoreResult<T> {
    row.try_get(column).map_err(damaged)
}

/// The stream at `column` and the message id in the two after it, where there is one.
pub(super) fn message(row: &Row, column: usize) -> StoreResult<Option<(StreamName, MessageId)>> {
    message_id(row, column + 1)?.map(|id| Ok((stream(row, column)?, id))).transpose()
}

pub(super) fn message_id(row: &Row, column: usize) -> StoreResult<Option<MessageId>> {
    let (ms, n): (Option<i64>, Option<i64>) = (cell(row, column)?, cell(row, column + 1)?);
    Ok(ms.zip(n).map(|(ms, n)| MessageId { ms, n }))
}

pub(super) fn job_id(row: &Row, column: impl PostgresColumn) -> StoreResult<JobId> {
    cell::<Uuid>(row, column).map(JobId::from_uuid)
}

pub(super) fn attempt_id(row: &Row, column: impl PostgresColumn) -> StoreResult<AttemptId> {
    cell::<Uuid>(row, column).map(AttemptId::from_uuid)
}

pub(super) fn token_hash(row: &Row, column: usize) -> StoreResult<TokenHash> {
    cell::<&[u8]>(row, column)?.try_into().map(TokenHash).map_err(damaged)
}

pub(super) fn instant(row: &Row, column: impl PostgresColumn) -> StoreResult<Timestamp> {
    cell::<At>(row, column).map(|at| at.0)
}

pub(super) fn maybe_instant(row: &Row, column: impl PostgresColumn) -> StoreResult<Option<Timestamp>> {
    cell::<Option<At>>(row, column).map(|at| at.map(|at| at.0))
}

pub(super) fn stream(row: &Row, column: impl PostgresColumn) -> StoreResult<StreamName> {
    cell::<&str>(row, column).map(StreamName::stored)
}

pub(super) fn json(row: &Row, column: impl PostgresColumn) -> StoreResult<Box<RawValue>> {
    cell::<JsonCell>(row, column).map(|cell| cell.0)
}

pub(super) fn maybe_json(row: &Row, column: impl PostgresColumn) -> StoreResult<Option<Box<RawValue>>> {
    cell::<Option<JsonCell>>(row, column).map(|cell| cell.map(|cell| cell.0))
}

/// A count that is never negative.
pub(super) fn count(row: &Row, column: impl PostgresColumn) -> StoreResult<u32> {
    u32::try_from(cell::<i32>(row, column)?).map_err(damaged)
}

pub(super) fn word<T: FromStr<Err = String>>(row: &Row, column: impl PostgresColumn) -> StoreResult<T> {
    let text: &str = cell(row, column)?;
    text.parse().map_err(|e| damaged(format!("{text:?}: {e}")))
}

pub(super) fn maybe_word<T: FromStr<Err = String>>(row: &Row, column: usize) -> StoreResult<Option<T>> {
    match cell::<Option<&str>>(row, column)? {
        Some(_) => word(row, column).map(Some),
        None => Ok(None),
    }
}

/// The columns of a lease in the `leases_*.sql` files. What such a statement reads besides follows them.
pub(super) const LEASE_COLUMNS: usize = 19;

/// A lease row in the order of the `leases_*.sql` files.
pub(super) fn holding(row: &Row) -> StoreResult<Holding> {
    Ok(Holding {
        job_id: job_id(row, 0)?,
        attempt_id: attempt_id(row, 1)?,
        token_hash: token_hash(row, 2)?,
        worker_id: cell(row, 3)?,
        stream: stream(row, 4)?,
        message: Message { seq: cell(row, 5)?, ready_at: instant(row, 6)? },
        started_at: instant(row, 7)?,
        heartbeat_at: instant(row, 8)?,
        expires_at: instant(row, 9)?,
        timeout_at: maybe_instant(row, 10)?,
        claim_version: cell(row, 11)?,
        attempt_no: count(row, 12)?,
        tally: Tally { failed: count(row, 13)?, lost: count(row, 14)?, released: count(row, 15)? },
        max_attempts: count(row, 16)?,
        cancel_requested: cell(row, 17)?,
        unique_key: cell(row, 18)?,
    })
}

/// The first twelve columns are those of the view `job_standing`.
pub(super) fn brief(row: &Row) -> StoreResult<JobBrief> {
    let job_id = job_id(row, 0)?;
    let traces = Traces {
        leased: cell(row, 6)?,
        waiting: cell(row, 7)?,
        ended: maybe_word(row, 8)?,
        last_outcome: maybe_word(row, 10)?,
    };
    let status = traces.status(job_id)?;
    let finished_at = match traces.ended {
        _ if !status.is_final() => None,
        Some(_) => maybe_instant(row, 9)?,
        None => maybe_instant(row, 11)?,
    };
    Ok(JobBrief {
        job_id,
        stream: stream(row, 1)?,
        status,
        max_attempts: count(row, 2)?,
        created_at: instant(row, 3)?,
        run_at: instant(row, 4)?,
        finished_at,
        producer: cell(row, 5)?,
    })
}

pub(super) fn counts(row: &Row) -> StoreResult<StreamCounts> {
    Ok(StreamCounts {
        ready: cell(row, "ready")?,
        scheduled: cell(row, "scheduled")?,
        running: cell(row, "running")?,
        succeeded: cell(row, "succeeded")?,
        dead: cell(row, "dead")?,
        cancelled: cell(row, "cancelled")?,
    })
}

pub(super) fn rows_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// A small number as PostgreSQL's `integer`.
pub(super) fn small(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

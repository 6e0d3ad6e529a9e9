//! The walk of a bulk act over jobs, and what it does to those that are meant, in the transaction of its step.

use super::after_commit::AfterCommit;
use super::connection::pool::Session;
use super::connection::retry::Trouble;
use super::rows::{self, At, Param, cell, job_id, rows_limit};
use crate::pipeline::bulk::{BulkActed, Walked};
use fernery_core::job::bulk::{BulkFilter, BulkVerb, Walk};
use fernery_core::{JobId, JobStatus, StreamName, Timestamp};
use tokio_postgres::Row;
use uuid::Uuid;

/// Above the name of every stream.
const BEYOND_STREAMS: &str = "~";

/// The next jobs of a walk.
pub(super) async fn walk(
    session: &Session<'_>,
    filter: &BulkFilter,
    from: &Walk,
    limit: usize,
) -> Result<Vec<Walked>, Trouble> {
    let limit = rows_limit(limit);
    let named = filter.stream.as_ref().map(StreamName::as_str);
    let after_id = |after: &Option<JobId>| after.map_or(Uuid::nil(), |job_id| job_id.uuid());
    let found = match from {
        Walk::Scheduled { after } => {
            session.query(include_str!("sql/bulk_scheduled.sql"), &[&after_id(after), &limit]).await?
        }
        Walk::Held { after } => {
            session.query(include_str!("sql/bulk_held.sql"), &[&after_id(after), &limit]).await?
        }
        Walk::Cancelled { after } => {
            session.query(include_str!("sql/bulk_cancelled.sql"), &[&after_id(after), &limit]).await?
        }
        Walk::Ready { after } => {
            let (stream, seq) = after
                .as_ref()
                .map_or((named.unwrap_or(""), i64::MIN), |(stream, seq)| (stream.as_str(), *seq));
            let last = named.unwrap_or(BEYOND_STREAMS);
            session.query(include_str!("sql/bulk_ready.sql"), &[&stream, &seq, &last, &limit]).await?
        }
        Walk::Dead { after } => {
            let (at, below) = after
                .map_or((At(Timestamp::from_millis(0)), Uuid::nil()), |(at, job_id)| (At(at), job_id.uuid()));
            let before = At(filter.before);
            let params: [Param<'_>; 4] = [&at, &below, &before, &limit];
            match &named {
                Some(stream) => {
                    let of_stream: Vec<Param<'_>> = params.into_iter().chain([stream as Param<'_>]).collect();
                    session.query(include_str!("sql/bulk_dead_of_stream.sql"), &of_stream).await?
                }
                None => session.query(include_str!("sql/bulk_dead.sql"), &params).await?,
            }
        }
    };
    let walked = |row: &Row| -> Result<Walked, Trouble> {
        let (job_id, stream, at) =
            (job_id(row, "job_id")?, rows::stream(row, "stream")?, cell::<At>(row, "at")?.0);
        let (here, code) = match from {
            Walk::Scheduled { .. } => (Walk::Scheduled { after: Some(job_id) }, None),
            Walk::Held { .. } => (Walk::Held { after: Some(job_id) }, None),
            Walk::Cancelled { .. } => (Walk::Cancelled { after: Some(job_id) }, None),
            Walk::Ready { .. } => (Walk::Ready { after: Some((stream.clone(), cell(row, "seq")?)) }, None),
            Walk::Dead { .. } => (Walk::Dead { after: Some((at, job_id)) }, Some(cell(row, "code")?)),
        };
        Ok(Walked { job_id, stream, at, code, here })
    };
    found.iter().map(walked).collect()
}

/// Does to these jobs what an operator asked for, as far as they still stand so, and notes whom the commit wakes.
pub(super) async fn act_on(
    session: &Session<'_>,
    (verb, filter): (BulkVerb, &BulkFilter),
    jobs: &[JobId],
    after: &mut AfterCommit,
) -> Result<BulkActed, Trouble> {
    let ids: Vec<Uuid> = jobs.iter().map(|job_id| job_id.uuid()).collect();
    let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    match (verb, filter.status) {
        (BulkVerb::Cancel, JobStatus::Running) => {
            let asked = session
                .query(include_str!("sql/bulk_request_cancel.sql"), &[&ids, &At(filter.before)])
                .await?;
            Ok(BulkActed { done: count(asked.len()), refused: 0 })
        }
        (BulkVerb::Cancel, _) => {
            let ended = session.query(include_str!("sql/cancel_waiting.sql"), &[&ids]).await?;
            for row in &ended {
                after.ended.push(job_id(row, "job_id")?);
            }
            Ok(BulkActed { done: count(ended.len()), refused: 0 })
        }
        (BulkVerb::Retry, status) => {
            let meant = ended_locked(session, &ids, (status, filter.before)).await?;
            let going = session.query(include_str!("sql/restart.sql"), &[&meant]).await?;
            for row in &going {
                after.waits(&rows::stream(row, 0)?, None);
            }
            let refused = meant.len().saturating_sub(going.len());
            Ok(BulkActed { done: count(going.len()), refused: count(refused) })
        }
        (BulkVerb::Purge, status) => {
            let meant = ended_locked(session, &ids, (status, filter.before)).await?;
            let (all, no_before) = (None::<&str>, None::<At>);
            let params: [Param<'_>; 5] = [&all, &all, &no_before, &meant, &rows_limit(meant.len())];
            let purged = session.query(include_str!("sql/purge.sql"), &params).await?;
            let done = purged.first().map_or(Ok(0), |row| cell::<i64>(row, 0))?;
            Ok(BulkActed { done: u64::try_from(done).unwrap_or(0), refused: 0 })
        }
    }
}

async fn ended_locked(
    session: &Session<'_>,
    ids: &[Uuid],
    (status, before): (JobStatus, Timestamp),
) -> Result<Vec<Uuid>, Trouble> {
    let params: [Param<'_>; 3] = [&ids, &status.as_str(), &At(before)];
    let found = session.query(include_str!("sql/bulk_ended_locked.sql"), &params).await?;
    Ok(found.iter().map(|row| cell(row, 0)).collect::<Result<_, _>>()?)
}

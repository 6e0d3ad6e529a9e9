//! Reads of jobs: each statement is one snapshot.

use super::PostgresStore;
use super::connection::retry::{Tries, Trouble};
use super::operate::{ids, terms};
use super::rows::{
    self, At, Param, attempt_id, brief, cell, count, instant, job_id, json, maybe_instant, maybe_json,
    rows_limit, word,
};
use crate::error::{StoreError, StoreResult};
use crate::store::{
    AttemptView, Cursor, DeadFilter, DeadGroup, DeadGroups, DeadLetter, Holder, IdsFound, IdsLike, JobBrief,
    JobFilter, JobView, Page, Read,
};
use async_trait::async_trait;
use fernery_core::artifact::{ClaimRecord, ResourceType};
use fernery_core::{Holding, JobId, JobStatus, Progress, StreamName, Timestamp, limits};
use std::collections::HashMap;
use std::time::Duration;
use tokio_postgres::Row;
use uuid::Uuid;

/// Opens a transaction in which all statements see the same.
const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// The largest id that a page may hold; `None` if there is none left.
pub(super) fn below(after: Option<&Cursor>) -> Option<Uuid> {
    match after {
        Some(Cursor::Below(id)) => id.uuid().as_u128().checked_sub(1).map(Uuid::from_u128),
        _ => Some(Uuid::max()),
    }
}

impl PostgresStore {
    /// Runs a statement that changes nothing, again if the connection is lost.
    pub(super) async fn read(&self, sql: &'static str, params: &[Param<'_>]) -> StoreResult<Vec<Row>> {
        let mut tries = Tries::new(self.shared.settings.chance);
        loop {
            let rows = async { self.shared.pool.session().await?.query(sql, params).await };
            match rows.await {
                Ok(rows) => return Ok(rows),
                Err(trouble) => tries.again(trouble).await?,
            }
        }
    }

    /// Runs a statement that is a transaction of its own, again only if the last try changed nothing.
    pub(super) async fn write_once(&self, sql: &'static str, params: &[Param<'_>]) -> StoreResult<Vec<Row>> {
        let mut tries = Tries::new(self.shared.settings.chance);
        loop {
            let rows = async { self.shared.pool.session().await?.query(sql, params).await };
            match rows.await {
                Ok(rows) => return Ok(rows),
                Err(trouble) => tries.again_if_undone(trouble).await?,
            }
        }
    }

    pub(super) async fn brief(&self, id: JobId) -> StoreResult<Option<JobBrief>> {
        let rows = self.read(include_str!("sql/jobs_by_id.sql"), &[&[id.uuid()].as_slice()]).await?;
        rows.first().map(brief).transpose()
    }

    async fn job_snapshot(&self, id: JobId) -> Result<Option<JobView>, Trouble> {
        let (one, list) = (id.uuid(), [id.uuid()]);
        let (one, list): ([Param<'_>; 1], [Param<'_>; 1]) = ([&one], [&list.as_slice()]);
        let session = self.shared.pool.session().await?;
        let rows = session.begin_with(SNAPSHOT, include_str!("sql/job_details.sql"), &one).await?;
        let Some(row) = rows.first() else {
            session.rollback().await?;
            return Ok(None);
        };
        let (closed, open) = tokio::join!(
            session.query(include_str!("sql/attempts_of_job.sql"), &one),
            session.query(include_str!("sql/leases_seen.sql"), &list),
        );
        let (closed, open) = (closed?, open?);
        session.commit().await?;
        let mut attempts = closed.iter().map(attempt).collect::<StoreResult<Vec<_>>>()?;
        let held = open.first().map(rows::holding).transpose()?;
        let cancel_requested = held.as_ref().is_some_and(|held| held.cancel_requested);
        let progress = open.first().map(progress).transpose()?.flatten();
        attempts.extend(held.map(|held| AttemptView::open(held, progress)));
        let timeout_ms: Option<i64> = cell(row, "timeout_ms")?;
        Ok(Some(JobView {
            brief: brief(row)?,
            payload: json(row, "payload")?,
            unique_key: cell(row, "unique_key")?,
            timeout: timeout_ms.map(|ms| Duration::from_millis(u64::try_from(ms).unwrap_or_default())),
            cancel_requested,
            attempts,
        }))
    }

    /// The next jobs, each with the cursor that stands on it, and where it stands if it may be meant.
    async fn candidates(
        &self,
        filter: &JobFilter,
        after: Option<&Cursor>,
        batch: usize,
    ) -> StoreResult<Vec<(Option<JobBrief>, Cursor)>> {
        let batch = rows_limit(batch);
        let wanted = filter.stream.as_ref().map(|stream| stream.as_str());
        let rows = match (filter.status, after) {
            (Some(JobStatus::Queued), Some(Cursor::Scheduled(from))) => {
                let from = from.map(JobId::uuid);
                self.read(include_str!("sql/list_scheduled_after.sql"), &[&from, &batch, &wanted]).await?
            }
            (Some(JobStatus::Queued), after) => {
                let (stream, seq) = match after {
                    Some(Cursor::Ready { stream, seq }) => (stream.as_str(), *seq),
                    _ => (wanted.unwrap_or(""), i64::MIN),
                };
                let params: [Param<'_>; 4] = [&stream, &seq, &wanted, &batch];
                self.read(include_str!("sql/list_ready_after.sql"), &params).await?
            }
            (status, after) => {
                let Some(from) = below(after) else { return Ok(Vec::new()) };
                let all = status.is_none();
                let jobs: [Param<'_>; 4] = [&from, &batch, &wanted, &all];
                match status {
                    Some(JobStatus::Running) => {
                        self.read(include_str!("sql/list_leased_below.sql"), &jobs[..3]).await?
                    }
                    Some(JobStatus::Dead) => {
                        self.read(include_str!("sql/list_dead_below.sql"), &jobs[..3]).await?
                    }
                    Some(JobStatus::Cancelled) => {
                        self.read(include_str!("sql/list_cancelled_below.sql"), &jobs[..3]).await?
                    }
                    _ => self.read(include_str!("sql/list_jobs_below.sql"), &jobs).await?,
                }
            }
        };
        let on = |row: &Row| -> StoreResult<Cursor> {
            let id = job_id(row, "candidate")?;
            Ok(match (filter.status, after) {
                (Some(JobStatus::Queued), Some(Cursor::Scheduled(_))) => Cursor::Scheduled(Some(id)),
                (Some(JobStatus::Queued), _) => {
                    Cursor::Ready { stream: rows::stream(row, "stream")?, seq: cell(row, "seq")? }
                }
                _ => Cursor::Below(id),
            })
        };
        let standing = |row: &Row| -> StoreResult<Option<JobBrief>> {
            cell::<Option<Uuid>>(row, "job_id")?.map(|_| brief(row)).transpose()
        };
        rows.iter().map(|row| Ok((standing(row)?, on(row)?))).collect()
    }
}

fn dead_letter(row: &Row) -> StoreResult<DeadLetter> {
    Ok(DeadLetter {
        job_id: job_id(row, "job_id")?,
        stream: rows::stream(row, "stream")?,
        buried_at: instant(row, "buried_at")?,
        reason: cell(row, "reason")?,
        code: cell(row, "code")?,
        error: cell(row, "error")?,
    })
}

#[async_trait]
impl Read for PostgresStore {
    async fn job(&self, id: JobId) -> StoreResult<Option<JobView>> {
        let mut tries = Tries::new(self.shared.settings.chance);
        loop {
            match self.job_snapshot(id).await {
                Ok(view) => return Ok(view),
                Err(trouble) => tries.again(trouble).await?,
            }
        }
    }

    async fn jobs(
        &self,
        filter: JobFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> StoreResult<Page<JobBrief>> {
        let batch = limits::PAGE_ROWS_MAX as usize;
        let (mut found, mut at, mut looked) = (Vec::new(), after, 0);
        while looked < limits::PAGE_SCAN_MAX as usize {
            let candidates = self.candidates(&filter, at.as_ref(), batch).await?;
            let short = candidates.len() < batch;
            for (brief, cursor) in candidates {
                looked += 1;
                at = Some(cursor);
                if let Some(brief) = brief.filter(|brief| filter.matches(brief)) {
                    found.push(brief);
                    if found.len() == limit {
                        return Ok(Page { rows: found, next: at });
                    }
                }
            }
            if short {
                // The ready ones are through: the scheduled ones follow.
                match at {
                    Some(Cursor::Scheduled(_)) => return Ok(Page { rows: found, next: None }),
                    _ if filter.status == Some(JobStatus::Queued) => at = Some(Cursor::Scheduled(None)),
                    _ => return Ok(Page { rows: found, next: None }),
                }
            }
        }
        Ok(Page { rows: found, next: at })
    }

    async fn job_ids(&self, part: IdsLike, limit: usize) -> StoreResult<IdsFound> {
        let (from, to, tail) = (part.from.uuid(), part.to.uuid(), format!("%{}", part.tail));
        let count = rows_limit(limit);
        let params: [Param<'_>; 6] = [&from, &to, &tail, &part.producer, &count, &part.looked_at_max];
        let rows = self.read(include_str!("sql/job_ids_between.sql"), &params).await?;
        let looked: i64 = rows.first().map_or(Ok(0), |row| cell(row, 0))?;
        let mut ids = Vec::new();
        for row in &rows {
            let found: Option<Uuid> = cell(row, 1)?;
            ids.extend(found.map(|_| job_id(row, "job_id")).transpose()?);
        }
        Ok(IdsFound::new(ids, looked, (&part, limit)))
    }

    async fn holders_of(&self, jobs: Vec<JobId>) -> StoreResult<Vec<Option<Holder>>> {
        let ids: Vec<Uuid> = jobs.iter().map(|id| id.uuid()).collect();
        let rows = self.read(include_str!("sql/leases_seen.sql"), &[&ids.as_slice()]).await?;
        let held = rows.iter().map(|row| {
            let Holding { job_id, worker_id, attempt_no, started_at, .. } = rows::holding(row)?;
            Ok((job_id, Holder { worker_id, attempt_no, started_at, progress: progress(row)? }))
        });
        let mut held: HashMap<JobId, Holder> = held.collect::<StoreResult<_>>()?;
        Ok(jobs.iter().map(|id| held.remove(id)).collect())
    }

    async fn count_dead(&self, filter: DeadFilter) -> StoreResult<u64> {
        let ids = ids(&filter);
        let (stream, code, before) = terms(&filter);
        let params: [Param<'_>; 4] = [&stream, &code, &before, &ids];
        let rows = self.read(include_str!("sql/dead_letters_count.sql"), &params).await?;
        let count: i64 = rows.first().map_or(Ok(0), |row| cell(row, 0))?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    async fn dead_letters(
        &self,
        filter: DeadFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> StoreResult<Page<DeadLetter>> {
        let (at, below) = match after {
            Some(Cursor::Buried { at, job_id }) => (At(at), job_id.uuid()),
            _ => (At(Timestamp::from_millis(253_370_764_800_000)), Uuid::max()),
        };
        let ids = ids(&filter);
        let (stream, code, before) = terms(&filter);
        let count = rows_limit(limit);
        // Whoever died before an instant is below the place of that instant.
        let (at, below) = match filter.before {
            Some(before) if before <= at.0 => (At(before), Uuid::nil()),
            _ => (at, below),
        };
        let found = match (&stream, &code) {
            (Some(stream), Some(code)) if ids.is_none() => {
                let of_both = include_str!("sql/dead_letters_page_of_both.sql");
                self.read(of_both, &[stream, code, &at, &below, &count]).await?
            }
            (Some(stream), None) if ids.is_none() => {
                let of_stream = include_str!("sql/dead_letters_page_of_stream.sql");
                self.read(of_stream, &[stream, &at, &below, &count]).await?
            }
            (None, Some(code)) if ids.is_none() => {
                let of_code = include_str!("sql/dead_letters_page_of_code.sql");
                self.read(of_code, &[code, &at, &below, &count]).await?
            }
            _ => {
                let params: [Param<'_>; 7] = [&stream, &code, &before, &ids, &at, &below, &count];
                self.read(include_str!("sql/dead_letters_page.sql"), &params).await?
            }
        };
        let found: Vec<DeadLetter> = found.iter().map(dead_letter).collect::<StoreResult<_>>()?;
        let full = found.last().filter(|_| found.len() == limit);
        let next = full.map(|last| Cursor::Buried { at: last.buried_at, job_id: last.job_id });
        Ok(Page { rows: found, next })
    }

    async fn dead_groups(
        &self,
        stream: Option<StreamName>,
        newest: usize,
        limit: usize,
    ) -> StoreResult<DeadGroups> {
        let (newest, limit) = (rows_limit(newest), rows_limit(limit));
        let stream = stream.as_ref().map(StreamName::as_str);
        let found =
            self.read(include_str!("sql/dead_letters_groups.sql"), &[&newest, &limit, &stream]).await?;
        let number = |row: &Row, name: &str| cell::<i64>(row, name).map(|n| u64::try_from(n).unwrap_or(0));
        let group = |row: &Row| {
            let (oldest_at, jobs) = (instant(row, "oldest_at")?, number(row, "jobs")?);
            let mut died_at: Vec<Timestamp> =
                cell::<Vec<i64>>(row, "died_at")?.into_iter().map(Timestamp::from_millis).collect();
            died_at.sort();
            Ok(DeadGroup { newest: dead_letter(row)?, oldest_at, jobs, died_at })
        };
        Ok(DeadGroups {
            looked_from: found.first().map(|row| instant(row, "looked_from")).transpose()?,
            looked_at: found.first().map_or(Ok(0), |row| number(row, "looked_at"))?,
            groups: found.iter().map(group).collect::<StoreResult<_>>()?,
        })
    }

    async fn leases(&self, after: Option<JobId>, limit: usize) -> StoreResult<Vec<Holding>> {
        let (after, limit) = (after.map_or(Uuid::nil(), JobId::uuid), rows_limit(limit));
        let rows = self.read(include_str!("sql/leases_page.sql"), &[&after, &limit]).await?;
        rows.iter().map(rows::holding).collect()
    }

    async fn next_due(&self) -> StoreResult<Option<Timestamp>> {
        let rows = self.read(include_str!("sql/scheduled_next.sql"), &[]).await?;
        rows.first().map_or(Ok(None), |row| maybe_instant(row, 0))
    }

    async fn workorder_leases(&self, limit: usize) -> StoreResult<Vec<ClaimRecord>> {
        let limit = rows_limit(limit);
        let record = |row: &Row| {
            Ok(ClaimRecord {
                resource_type: ResourceType::Workorder,
                resource_id: job_id(row, "resource_id")?.to_string(),
                owner_id: cell(row, "owner_id")?,
                lease_expires_at: instant(row, "expires_at")?,
                heartbeat_at: instant(row, "heartbeat_at")?,
                claim_version: cell(row, "claim_version")?,
            })
        };
        self.read(include_str!("sql/leases_of_workorders.sql"), &[&limit]).await?.iter().map(record).collect()
    }
}

fn attempt(row: &Row) -> StoreResult<AttemptView> {
    Ok(AttemptView {
        attempt_id: attempt_id(row, "attempt_id")?,
        attempt_no: count(row, "attempt_no")?,
        worker_id: cell(row, "worker_id")?,
        started_at: instant(row, "started_at")?,
        finished_at: maybe_instant(row, "finished_at")?,
        outcome: Some(word(row, "outcome")?),
        error: maybe_json(row, "error")?,
        result: maybe_json(row, "result")?,
        heartbeat_at: None,
        expires_at: None,
        progress: None,
        claim_version: cell(row, "claim_version")?,
    })
}

/// How far the holder of a lease says it is.
fn progress(row: &Row) -> StoreResult<Option<Progress>> {
    let Some(percent) = cell::<Option<i16>>(row, "percent")? else { return Ok(None) };
    let progress = u8::try_from(percent).map_err(|e| e.to_string());
    let progress = progress.and_then(|percent| Progress::new(percent, cell(row, "note").unwrap_or_default()));
    progress
        .map(Some)
        .map_err(|why| StoreError::Corrupt(format!("the progress of a lease is invalid: {why}")))
}

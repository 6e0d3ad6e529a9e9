//! Reads: on connections of their own, each call one snapshot.

use super::SqliteStore;
use super::rows;
use crate::error::{StoreError, StoreResult};
use crate::store::{
    AttemptView, Cursor, DeadFilter, DeadGroup, DeadGroups, DeadLetter, Holder, IdsFound, IdsLike, JobBrief,
    JobFilter, JobView, Page, Read,
};
use async_trait::async_trait;
use fernery_core::artifact::{ClaimRecord, ResourceType};
use fernery_core::{Holding, JobId, JobStatus, Progress, StreamName, Timestamp, limits};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};
use std::time::Duration;

#[async_trait]
impl Read for SqliteStore {
    async fn job(&self, job_id: JobId) -> StoreResult<Option<JobView>> {
        self.read(move |db| job(db, job_id)).await
    }

    async fn jobs(
        &self,
        filter: JobFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> StoreResult<Page<JobBrief>> {
        self.read(move |db| jobs(db, &filter, after, limit)).await
    }

    async fn job_ids(&self, part: IdsLike, limit: usize) -> StoreResult<IdsFound> {
        self.read(move |db| job_ids(db, &part, limit)).await
    }

    async fn holders_of(&self, jobs: Vec<JobId>) -> StoreResult<Vec<Option<Holder>>> {
        self.read(move |db| jobs.iter().map(|job_id| holder(db, *job_id)).collect()).await
    }

    async fn count_dead(&self, filter: DeadFilter) -> StoreResult<u64> {
        self.read(move |db| count_dead(db, &filter)).await
    }

    async fn dead_letters(
        &self,
        filter: DeadFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> StoreResult<Page<DeadLetter>> {
        self.read(move |db| dead_letters(db, &filter, after, limit)).await
    }

    async fn dead_groups(
        &self,
        stream: Option<StreamName>,
        newest: usize,
        limit: usize,
    ) -> StoreResult<DeadGroups> {
        self.read(move |db| dead_groups(db, stream.as_ref(), newest, limit)).await
    }

    async fn leases(&self, after: Option<JobId>, limit: usize) -> StoreResult<Vec<Holding>> {
        self.read(move |db| leases(db, after, limit)).await
    }

    async fn next_due(&self) -> StoreResult<Option<Timestamp>> {
        self.read(next_due).await
    }

    async fn workorder_leases(&self, limit: usize) -> StoreResult<Vec<ClaimRecord>> {
        self.read(move |db| workorder_leases(db, limit)).await
    }
}

pub(super) fn brief(db: &Connection, job_id: JobId) -> StoreResult<Option<JobBrief>> {
    let mut statement = db.prepare_cached(include_str!("sql/job_brief.sql"))?;
    statement.query_row([job_id.uuid().as_bytes()], rows::brief).optional()?.transpose()
}

pub(super) fn lease(db: &Connection, job_id: JobId) -> StoreResult<Option<Holding>> {
    let mut statement = db.prepare_cached(include_str!("sql/lease_of_job.sql"))?;
    Ok(statement.query_row([job_id.uuid().as_bytes()], rows::holding).optional()?)
}

fn progress(db: &Connection, job_id: JobId) -> StoreResult<Option<Progress>> {
    let mut statement = db.prepare_cached(include_str!("sql/lease_progress_of_job.sql"))?;
    Ok(statement.query_row([job_id.uuid().as_bytes()], rows::progress).optional()?)
}

fn holder(db: &Connection, job_id: JobId) -> StoreResult<Option<Holder>> {
    let Some(held) = lease(db, job_id)? else { return Ok(None) };
    let Holding { worker_id, attempt_no, started_at, .. } = held;
    Ok(Some(Holder { worker_id, attempt_no, started_at, progress: progress(db, job_id)? }))
}

fn job(db: &Connection, job_id: JobId) -> StoreResult<Option<JobView>> {
    let Some(brief) = brief(db, job_id)? else { return Ok(None) };
    let key = [&job_id.uuid().into_bytes()];
    let mut attempts: Vec<AttemptView> = db
        .prepare_cached(include_str!("sql/attempts_of_job.sql"))?
        .query_map(key, rows::attempt)?
        .collect::<Result<_, _>>()?;
    let held = lease(db, job_id)?;
    let cancel_requested = held.as_ref().is_some_and(|held| held.cancel_requested);
    let progress = progress(db, job_id)?;
    attempts.extend(held.map(|held| AttemptView::open(held, progress)));
    let (payload, unique_key, timeout_ms) =
        db.prepare_cached(include_str!("sql/job_details.sql"))?.query_row(key, |row| {
            let timeout_ms: Option<u64> = row.get("timeout_ms")?;
            Ok((rows::json(row, "payload")?, row.get("unique_key")?, timeout_ms))
        })?;
    let timeout = timeout_ms.map(Duration::from_millis);
    Ok(Some(JobView { brief, payload, unique_key, timeout, cancel_requested, attempts }))
}

/// The bound of a page that goes down: the cursor's id, or what no id reaches. Always a bound, so that the index is used.
fn below_or_end(after: Option<&Cursor>) -> Vec<u8> {
    match after {
        Some(Cursor::Below(id)) => id.uuid().as_bytes().to_vec(),
        _ => vec![0xff; 17],
    }
}

/// Where a walk over the jobs goes next: each candidate with the cursor that stands on it, and whether it may be meant. What stands
/// in the row that the walk reads is judged there: where a job stands takes four lookups more.
type Candidates = Vec<(JobId, Cursor, bool)>;

fn jobs(
    db: &Connection,
    filter: &JobFilter,
    after: Option<Cursor>,
    limit: usize,
) -> StoreResult<Page<JobBrief>> {
    let mut found = Vec::new();
    let mut at = after;
    let mut looked = 0;
    while looked < limits::PAGE_SCAN_MAX as usize {
        let batch = limits::PAGE_ROWS_MAX as usize;
        let candidates = candidates(db, filter, at.as_ref(), batch)?;
        let short = candidates.len() < batch;
        for (job_id, cursor, may_be_meant) in candidates {
            looked += 1;
            at = Some(cursor);
            if may_be_meant
                && let Some(brief) = brief(db, job_id)?
                && filter.matches(&brief)
            {
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

fn candidates(
    db: &Connection,
    filter: &JobFilter,
    after: Option<&Cursor>,
    batch: usize,
) -> StoreResult<Candidates> {
    let stream = filter.stream.as_ref().map(StreamName::as_str);
    let below = |row: &Row<'_>| {
        let (id, may_be_meant) = (rows::job_id(row, 0)?, row.get(1)?);
        Ok((id, Cursor::Below(id), may_be_meant))
    };
    let sql = match (filter.status, after) {
        (Some(JobStatus::Queued), Some(Cursor::Scheduled(from))) => {
            let from = from.map_or(Vec::new(), |id| id.uuid().as_bytes().to_vec());
            let mut statement = db.prepare_cached(include_str!("sql/list_scheduled_after.sql"))?;
            let found = statement.query_map(params![from, batch, stream], |row| {
                let (id, may_be_meant) = (rows::job_id(row, 0)?, row.get(1)?);
                Ok((id, Cursor::Scheduled(Some(id)), may_be_meant))
            })?;
            return Ok(found.collect::<Result<_, _>>()?);
        }
        (Some(JobStatus::Queued), after) => {
            let (stream, seq) = match (after, &filter.stream) {
                (Some(Cursor::Ready { stream, seq }), _) => (stream.as_str(), *seq),
                (_, Some(stream)) => (stream.as_str(), i64::MIN),
                _ => ("", i64::MIN),
            };
            let mut statement = db.prepare_cached(include_str!("sql/list_ready_after.sql"))?;
            let found = statement.query_map(params![stream, seq, batch], |row| {
                let cursor = Cursor::Ready { stream: rows::stream(row, "stream")?, seq: row.get("seq")? };
                Ok((rows::job_id(row, "job_id")?, cursor, true))
            })?;
            let mut found: Candidates = found.collect::<Result<_, _>>()?;
            if let Some(wanted) = &filter.stream {
                // Past the wanted stream there is nothing to find.
                found.retain(
                    |(_, cursor, _)| matches!(cursor, Cursor::Ready { stream, .. } if stream == wanted),
                );
            }
            return Ok(found);
        }
        (Some(JobStatus::Running), _) => include_str!("sql/list_leased_below.sql"),
        (Some(JobStatus::Dead), _) => include_str!("sql/list_dead_below.sql"),
        (Some(JobStatus::Cancelled), _) => include_str!("sql/list_cancelled_below.sql"),
        (status @ (None | Some(JobStatus::Succeeded)), _) => {
            let mut statement = db.prepare_cached(include_str!("sql/list_jobs_below.sql"))?;
            let params = params![below_or_end(after), batch, stream, status.is_none()];
            return Ok(statement.query_map(params, below)?.collect::<Result<_, _>>()?);
        }
    };
    let mut statement = db.prepare_cached(sql)?;
    let params = params![below_or_end(after), batch, stream];
    Ok(statement.query_map(params, below)?.collect::<Result<_, _>>()?)
}

fn job_ids(db: &Connection, part: &IdsLike, limit: usize) -> StoreResult<IdsFound> {
    let (from, to) = (part.from.uuid(), part.to.uuid());
    let mut statement = db.prepare_cached(include_str!("sql/job_ids_between.sql"))?;
    let end = format!("%{}", part.tail);
    let params = params![from.as_bytes(), to.as_bytes(), end, part.producer, limit, part.looked_at_max];
    let (mut looked, mut ids) = (0, Vec::new());
    let mut found = statement.query(params)?;
    while let Some(row) = found.next()? {
        looked = row.get(0)?;
        if !matches!(row.get_ref(1)?, ValueRef::Null) {
            ids.push(rows::job_id(row, 1)?);
        }
    }
    Ok(IdsFound::new(ids, looked, (part, limit)))
}

fn next_due(db: &Connection) -> StoreResult<Option<Timestamp>> {
    let mut statement = db.prepare_cached(include_str!("sql/scheduled_next.sql"))?;
    Ok(statement.query_row([], |row| rows::maybe_instant(row, 0))?)
}

/// The parameters 1 to 4 of the statements over dead letters.
pub(super) struct DeadParams {
    pub(super) stream: Option<String>,
    pub(super) code: Option<String>,
    pub(super) before: Option<i64>,
    pub(super) ids: Option<String>,
}

impl DeadParams {
    pub(super) fn new(filter: &DeadFilter) -> Self {
        let ids: Vec<_> = filter.job_ids.iter().map(|id| id.uuid().simple().to_string()).collect();
        Self {
            stream: filter.stream.as_ref().map(ToString::to_string),
            code: filter.code.clone(),
            before: filter.before.map(Timestamp::as_millis),
            ids: (!ids.is_empty()).then(|| serde_json::json!(ids).to_string()),
        }
    }
}

fn count_dead(db: &Connection, filter: &DeadFilter) -> StoreResult<u64> {
    let p = DeadParams::new(filter);
    let mut statement = db.prepare_cached(include_str!("sql/dead_letters_count.sql"))?;
    Ok(statement.query_row(params![p.stream, p.code, p.before, p.ids], |row| row.get(0))?)
}

fn dead_letters(
    db: &Connection,
    filter: &DeadFilter,
    after: Option<Cursor>,
    limit: usize,
) -> StoreResult<Page<DeadLetter>> {
    let p = DeadParams::new(filter);
    let (at, below) = match after {
        Some(Cursor::Buried { at, job_id }) => (at.as_millis(), job_id.uuid().as_bytes().to_vec()),
        _ => (i64::MAX, Vec::new()),
    };
    // Whoever died before an instant is below the place of that instant.
    let (at, below) = match p.before {
        Some(before) if before <= at => (before, Vec::new()),
        _ => (at, below),
    };
    let page = |statement: &str, params: &[&dyn ToSql]| -> StoreResult<Vec<DeadLetter>> {
        let mut statement = db.prepare_cached(statement)?;
        Ok(statement.query_map(params, dead_letter)?.collect::<Result<_, _>>()?)
    };
    let rows = match (&p.stream, &p.code) {
        (Some(stream), Some(code)) if p.ids.is_none() => {
            page(include_str!("sql/dead_letters_page_of_both.sql"), params![stream, code, at, below, limit])?
        }
        (Some(stream), None) if p.ids.is_none() => {
            page(include_str!("sql/dead_letters_page_of_stream.sql"), params![stream, at, below, limit])?
        }
        (None, Some(code)) if p.ids.is_none() => {
            page(include_str!("sql/dead_letters_page_of_code.sql"), params![code, at, below, limit])?
        }
        _ => page(
            include_str!("sql/dead_letters_page.sql"),
            params![p.stream, p.code, p.before, p.ids, at, below, limit],
        )?,
    };
    let full = rows.last().filter(|_| rows.len() == limit);
    let next = full.map(|last: &DeadLetter| Cursor::Buried { at: last.buried_at, job_id: last.job_id });
    Ok(Page { rows, next })
}

fn dead_letter(row: &Row<'_>) -> rusqlite::Result<DeadLetter> {
    Ok(DeadLetter {
        job_id: rows::job_id(row, "job_id")?,
        stream: rows::stream(row, "stream")?,
        buried_at: rows::instant(row, "buried_at")?,
        reason: row.get("reason")?,
        code: row.get("code")?,
        error: row.get("error")?,
    })
}

fn dead_groups(
    db: &Connection,
    stream: Option<&StreamName>,
    newest: usize,
    limit: usize,
) -> StoreResult<DeadGroups> {
    let mut statement = db.prepare_cached(include_str!("sql/dead_letters_groups.sql"))?;
    let mut found = statement.query(params![newest, limit, stream.map(StreamName::as_str)])?;
    let mut answer = DeadGroups::default();
    while let Some(row) = found.next()? {
        answer.looked_at = row.get("looked_at")?;
        answer.looked_from = Some(rows::instant(row, "looked_from")?);
        answer.groups.push(DeadGroup {
            newest: dead_letter(row)?,
            oldest_at: rows::instant(row, "oldest_at")?,
            jobs: row.get("jobs")?,
            died_at: died_at(&row.get::<_, String>("died_at")?)?,
        });
    }
    Ok(answer)
}

/// Instants in a list that the database made of them, in any order.
fn died_at(list: &str) -> StoreResult<Vec<Timestamp>> {
    let broken = |_| StoreError::Corrupt("the database returned a list that is none".into());
    let read: Result<Vec<i64>, _> = list.split(',').map(str::parse).collect();
    let mut times: Vec<Timestamp> = read.map_err(broken)?.into_iter().map(Timestamp::from_millis).collect();
    times.sort();
    Ok(times)
}

fn leases(db: &Connection, after: Option<JobId>, limit: usize) -> StoreResult<Vec<Holding>> {
    let after = after.map_or(Vec::new(), |job_id| job_id.uuid().as_bytes().to_vec());
    let mut statement = db.prepare_cached(include_str!("sql/leases_page.sql"))?;
    Ok(statement.query_map(params![after, limit], rows::holding)?.collect::<Result<_, _>>()?)
}

fn workorder_leases(db: &Connection, limit: usize) -> StoreResult<Vec<ClaimRecord>> {
    let mut statement = db.prepare_cached(include_str!("sql/leases_of_workorders.sql"))?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let record = |row: &Row<'_>| {
        Ok(ClaimRecord {
            resource_type: ResourceType::Workorder,
            resource_id: rows::job_id(row, "resource_id")?.to_string(),
            owner_id: row.get("owner_id")?,
            lease_expires_at: rows::instant(row, "expires_at")?,
            heartbeat_at: rows::instant(row, "heartbeat_at")?,
            claim_version: row.get("claim_version")?,
        })
    };
    Ok(statement.query_map([limit], record)?.collect::<Result<_, _>>()?)
}

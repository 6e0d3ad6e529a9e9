//! Operators' actions on single jobs, and on many dead jobs at once.

use super::after_commit::AfterCommit;
use super::connection::retry::{Tries, Trouble};
use super::rows::{self, At, LEASE_COLUMNS, Param, cell, instant, rows_limit};
use super::settle::{Decided, HolderReport, apply_and_commit};
use super::{PostgresStore, Shared};
use crate::error::{StoreError, StoreResult};
use crate::pipeline::answering;
use crate::pipeline::bulk::{self, ActInHand, BulkStep};
use crate::pipeline::execution::Ending;
use crate::store::{CancelAnswer, DeadFilter, JobBrief, Operate, Pass, RetryAnswer};
use async_trait::async_trait;
use fernery_core::job::settle;
use fernery_core::{JobId, JobStatus};
use uuid::Uuid;

/// How often a job may change between read and write before the operator is told to try again.
const CHASES_MAX: usize = 20;

#[async_trait]
impl Operate for PostgresStore {
    async fn cancel(&self, id: JobId, force: bool) -> StoreResult<CancelAnswer> {
        let mut tries = Tries::new(self.shared.settings.chance);
        let mut chases = 0;
        loop {
            match self.shared.cancel_once(id, force).await {
                Ok(Some(answer)) => return Ok(answer),
                Ok(None) if chases < CHASES_MAX => chases += 1,
                Ok(None) => {
                    return Err(StoreError::Busy(format!(
                        "job {id} changes too often to be cancelled; try again"
                    )));
                }
                Err(trouble) => tries.again_if_undone(trouble).await?,
            }
        }
    }

    async fn retry(&self, id: JobId) -> StoreResult<RetryAnswer> {
        let mut tries = Tries::new(self.shared.settings.chance);
        loop {
            match self.shared.restart(&[id.uuid()]).await {
                Ok(1..) => return Ok(RetryAnswer::Requeued),
                Ok(0) => break,
                Err(trouble) => tries.again_if_undone(trouble).await?,
            }
        }
        Ok(match self.brief(id).await? {
            None => RetryAnswer::Unknown,
            Some(JobBrief { status: JobStatus::Dead | JobStatus::Cancelled, .. }) => RetryAnswer::KeyTaken,
            Some(brief) => RetryAnswer::NotEnded(brief.status),
        })
    }

    async fn redrive(&self, filter: DeadFilter, limit: usize) -> StoreResult<Pass> {
        let mut tries = Tries::new(self.shared.settings.chance);
        loop {
            match self.shared.redrive_once(&filter, limit).await {
                Ok(pass) => return Ok(pass),
                Err(trouble) => tries.again_if_undone(trouble).await?,
            }
        }
    }

    async fn purge(&self, filter: DeadFilter, limit: usize) -> StoreResult<Pass> {
        let ids = ids(&filter);
        let (stream, code, before) = terms(&filter);
        let rows = self
            .write_once(include_str!("sql/purge.sql"), &[&stream, &code, &before, &ids, &rows_limit(limit)])
            .await?;
        let moved = usize::try_from(rows.first().map_or(Ok(0i64), |row| cell(row, 0))?).unwrap_or(0);
        Ok(Pass { moved, full: moved == limit })
    }

    async fn bulk_step(&self, taken: ActInHand) -> StoreResult<Option<BulkStep>> {
        let (work, answer) = answering(move |sql| bulk::step(sql, &taken));
        self.transact_work("BEGIN", work).await?;
        answer.take()
    }
}

/// The jobs that a filter names; `None` is all.
pub(super) fn ids(filter: &DeadFilter) -> Option<Vec<Uuid>> {
    (!filter.job_ids.is_empty()).then(|| filter.job_ids.iter().map(|id| id.uuid()).collect())
}

pub(super) fn terms(filter: &DeadFilter) -> (Option<&str>, Option<&str>, Option<At>) {
    (filter.stream.as_ref().map(|s| s.as_str()), filter.code.as_deref(), filter.before.map(At))
}

impl Shared {
    /// Ends a job wherever it is found; `None` if it moved meanwhile.
    async fn cancel_once(&self, id: JobId, force: bool) -> Result<Option<CancelAnswer>, Trouble> {
        let uuid = id.uuid();
        let session = self.pool.session().await?;
        let leases =
            session.begin_with("BEGIN", include_str!("sql/leases_locked.sql"), &[&[uuid].as_slice()]).await?;
        if let Some(row) = leases.first() {
            let (held, now) = (rows::holding(row)?, cell::<At>(row, LEASE_COLUMNS)?);
            if force {
                let one = Decided::new(
                    held,
                    settle::Ending::ForceCancelled,
                    HolderReport::NONE,
                    now.0,
                    &self.settings,
                );
                let after = apply_and_commit(&session, &[one]).await?;
                self.announce(after);
                return Ok(Some(CancelAnswer::Cancelled));
            }
            if held.cancel_requested {
                session.rollback().await?;
            } else {
                let sql = include_str!("sql/lease_request_cancel.sql");
                session.commit_with(sql, &[&uuid, &held.claim_version]).await?;
            }
            return Ok(Some(CancelAnswer::Requested));
        }
        let rows = session.query(include_str!("sql/cancel_waiting.sql"), &[&[uuid].as_slice()]).await?;
        if let Some(row) = rows.first() {
            let mut after = AfterCommit { ended: vec![id], ..AfterCommit::default() };
            if rows::stream(row, 0)?.is_workorders() {
                let ending = Ending::of_waiting(id, cell(row, 1)?, instant(row, 2)?);
                after.stages.extend(super::pipeline::end_workorders(&session, &[ending]).await?);
            }
            session.commit().await?;
            self.announce(after);
            return Ok(Some(CancelAnswer::Cancelled));
        }
        session.rollback().await?;
        let rows = session.query(include_str!("sql/jobs_by_id.sql"), &[&[uuid].as_slice()]).await?;
        let Some(row) = rows.first() else { return Ok(Some(CancelAnswer::Unknown)) };
        let status = rows::brief(row)?.status;
        Ok(status.is_final().then_some(CancelAnswer::Ended(status)))
    }

    /// Starts ended jobs over; answers how many.
    async fn restart(&self, ids: &[Uuid]) -> Result<usize, Trouble> {
        let session = self.pool.session().await?;
        session.begin_with("BEGIN", include_str!("sql/ended_locked.sql"), &[&ids]).await?;
        let rows = session.commit_with(include_str!("sql/restart.sql"), &[&ids]).await?;
        drop(session);
        let mut after = AfterCommit::default();
        for row in &rows {
            after.waits(&rows::stream(row, 0)?, None);
        }
        self.announce(after);
        Ok(rows.len())
    }

    async fn redrive_once(&self, filter: &DeadFilter, limit: usize) -> Result<Pass, Trouble> {
        let wanted = ids(filter);
        let (stream, code, before) = terms(filter);
        let count = rows_limit(limit);
        let params: [Param<'_>; 5] = [&stream, &code, &before, &wanted, &count];
        let session = self.pool.session().await?;
        let rows = session.query(include_str!("sql/dead_letters_redrivable.sql"), &params).await?;
        drop(session);
        let found: Vec<Uuid> = rows.iter().map(|row| cell(row, 0)).collect::<StoreResult<_>>()?;
        let moved = if found.is_empty() { 0 } else { self.restart(&found).await? };
        Ok(Pass { moved, full: found.len() == limit })
    }
}

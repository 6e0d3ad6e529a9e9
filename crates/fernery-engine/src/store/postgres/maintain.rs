//! The work of the engine's other loops: promotes due jobs, deletes old jobs, folds counts.

use super::after_commit::AfterCommit;
use super::clock;
use super::connection::retry::{Tries, Trouble};
use super::rows::{self, cell, millis, rows_limit};
use super::{PostgresStore, Shared, fence, intake};
use crate::door::stop_watch;
use crate::error::StoreResult;
use crate::store::{Maintain, Pass, Retention};
use crate::supervise::lock;
use async_trait::async_trait;
use uuid::Uuid;

/// Rows of counts folded by one statement.
const FOLD_BATCH: i64 = 10_000;

#[async_trait]
impl Maintain for PostgresStore {
    async fn promote(&self, limit: usize) -> StoreResult<Pass> {
        let rows = self.write_once(include_str!("sql/promote.sql"), &[&rows_limit(limit)]).await?;
        let mut after = AfterCommit::default();
        for row in &rows {
            let stream = rows::stream(row, 0)?;
            after.waits(&stream, None);
        }
        self.shared.announce(after);
        Ok(Pass { moved: rows.len(), full: rows.len() == limit })
    }

    async fn drain_intake(&self, limit: usize) -> StoreResult<Pass> {
        intake::drain(self, limit).await
    }

    async fn fence(&self) -> StoreResult<usize> {
        fence::fence(self).await
    }

    async fn retain(&self, retention: Retention, limit: usize) -> StoreResult<Pass> {
        let mut tries = Tries::new(self.shared.settings.chance);
        loop {
            match self.shared.retain_once(retention, limit).await {
                Ok(pass) => return Ok(pass),
                Err(trouble) => tries.again_if_undone(trouble).await?,
            }
        }
    }

    async fn tidy(&self) -> StoreResult<()> {
        self.fold_counts().await?;
        let last = *lock(&self.clock_kept);
        if last.is_none_or(|at| at.elapsed() >= clock::KEPT_EVERY) {
            self.keep_clock().await?;
            *lock(&self.clock_kept) = Some(stop_watch());
        }
        Ok(())
    }
}

impl PostgresStore {
    /// Adds the counts that were appended since the last time. Two at once take different rows.
    async fn fold_counts(&self) -> StoreResult<()> {
        loop {
            let rows = self.write_once(include_str!("sql/streams_fold.sql"), &[&FOLD_BATCH]).await?;
            let folded: i64 = rows.first().map_or(Ok(0), |row| cell(row, 0))?;
            if folded < FOLD_BATCH {
                return Ok(());
            }
        }
    }
}

impl Shared {
    async fn retain_once(&self, retention: Retention, limit: usize) -> Result<Pass, Trouble> {
        let (finished, dead) = (millis(retention.finished), retention.dead.map(millis));
        let count = rows_limit(limit);
        let session = self.pool.session().await?;
        let begin = include_str!("sql/retain_begin.sql");
        let rows = session
            .begin_with(begin, include_str!("sql/retain_find.sql"), &[&finished, &count, &dead])
            .await?;
        if rows.is_empty() {
            session.rollback().await?;
            return Ok(Pass::default());
        }
        let found: Vec<Uuid> = rows.iter().map(|row| cell(row, 0)).collect::<StoreResult<_>>()?;
        let gone =
            session.commit_with(include_str!("sql/retain_forget.sql"), &[&found, &finished, &dead]).await?;
        let moved: i64 = gone.first().map_or(Ok(0), |row| cell(row, 0))?;
        Ok(Pass { moved: usize::try_from(moved).unwrap_or(0), full: found.len() >= limit && moved > 0 })
    }
}

//! Housekeeping: due jobs become claimable, old ones go, counts are folded; streams and tokens.

use super::after::After;
use super::columns::{self, At, Param, cell, counts, instant, maybe_instant, millis, rows_limit};
use super::trouble::{Tries, Trouble};
use super::{PostgresStore, Shared};
use crate::error::{StoreError, StoreResult};
use crate::store::{Pass, StreamView, TokenRow};
use fernery_core::{StreamName, Timestamp};
use std::collections::HashMap;
use std::time::Duration;
use tokio_postgres::Row;
use uuid::Uuid;

/// Rows of counts folded by one statement.
const FOLD_BATCH: i64 = 10_000;

impl PostgresStore {
    pub(super) async fn promote_due(&self, limit: usize) -> StoreResult<Pass> {
        let rows = self.write_once(include_str!("sql/promote.sql"), &[&rows_limit(limit)]).await?;
        let mut after = After::default();
        for row in &rows {
            let stream = columns::stream(row, 0)?;
            after.waits(&stream, None);
        }
        self.shared.announce(after);
        Ok(Pass { moved: rows.len(), full: rows.len() == limit })
    }

    pub(super) async fn retain_recent(&self, age: Duration, limit: usize) -> StoreResult<Pass> {
        let mut tries = Tries::new(self.shared.settings.chance);
        loop {
            match self.shared.retain(millis(age), limit).await {
                Ok(pass) => return Ok(pass),
                Err(trouble) => tries.again_if_undone(trouble).await?,
            }
        }
    }

    /// Adds the counts that were appended since the last time. Two at once take different rows.
    pub(super) async fn fold_counts(&self) -> StoreResult<()> {
        loop {
            let rows = self.write_once(include_str!("sql/streams_fold.sql"), &[&FOLD_BATCH]).await?;
            let folded: i64 = rows.first().map_or(Ok(0), |row| cell(row, 0))?;
            if folded < FOLD_BATCH {
                return Ok(());
            }
        }
    }

    pub(super) async fn stream_views(&self, name: Option<&StreamName>) -> StoreResult<Vec<StreamView>> {
        let name = name.map(StreamName::as_str);
        let rows = self.read(include_str!("sql/streams_all.sql"), &[&name]).await?;
        rows.iter().map(stream_view).collect()
    }

    pub(super) async fn pause_stream(&self, name: StreamName, paused: bool) -> StoreResult<bool> {
        let params: [Param<'_>; 2] = [&name.as_str(), &paused];
        // Twice is as good as once, so a lost answer is no reason to give up.
        let known = !self.read(include_str!("sql/stream_pause.sql"), &params).await?.is_empty();
        if let Some(post) = &self.shared.post {
            post.spare.is_paused(&name, known && paused);
        }
        if known && !paused {
            self.shared.wake(HashMap::from([(name, usize::MAX)]));
        }
        Ok(known)
    }

    pub(super) async fn claimable_streams(&self, streams: Vec<StreamName>) -> StoreResult<Vec<StreamName>> {
        let names: Vec<&str> = streams.iter().map(StreamName::as_str).collect();
        let rows = self.read(include_str!("sql/streams_claimable.sql"), &[&names]).await?;
        rows.iter().map(|row| columns::stream(row, 0)).collect()
    }

    pub(super) async fn next_due_at(&self) -> StoreResult<Option<Timestamp>> {
        let rows = self.read(include_str!("sql/scheduled_next.sql"), &[]).await?;
        rows.first().map_or(Ok(None), |row| maybe_instant(row, 0))
    }

    pub(super) async fn database_now(&self) -> StoreResult<Timestamp> {
        let rows = self.read(include_str!("sql/now.sql"), &[]).await?;
        let row = rows.first().ok_or_else(|| StoreError::Corrupt("the database tells no time".into()))?;
        instant(row, 0)
    }

    pub(super) async fn all_tokens(&self) -> StoreResult<Vec<TokenRow>> {
        let rows = self.read(include_str!("sql/tokens_all.sql"), &[]).await?;
        rows.iter().map(token).collect()
    }

    pub(super) async fn store_token(&self, token: &TokenRow) -> StoreResult<bool> {
        let hash = token.secret_hash.as_slice();
        let (created, expires, revoked) =
            (At(token.created_at), token.expires_at.map(At), token.revoked_at.map(At));
        let params: [Param<'_>; 8] =
            [&token.token_id, &token.name, &token.role, &token.streams, &hash, &created, &expires, &revoked];
        let added = self.write_once(include_str!("sql/token_insert.sql"), &params).await?;
        Ok(!added.is_empty())
    }

    pub(super) async fn take_token_back(&self, token_id: &str) -> StoreResult<bool> {
        // The first revocation stands, so asking again after a lost answer changes nothing.
        Ok(!self.read(include_str!("sql/token_revoke.sql"), &[&token_id]).await?.is_empty())
    }
}

impl Shared {
    async fn retain(&self, age_ms: i64, limit: usize) -> Result<Pass, Trouble> {
        let count = rows_limit(limit);
        let session = self.pool.session().await?;
        let begin = include_str!("sql/retain_begin.sql");
        let rows = session.begin_with(begin, include_str!("sql/retain_find.sql"), &[&age_ms, &count]).await?;
        if rows.is_empty() {
            session.rollback().await?;
            return Ok(Pass::default());
        }
        let found: Vec<Uuid> = rows.iter().map(|row| cell(row, 0)).collect::<StoreResult<_>>()?;
        let gone = session.commit_with(include_str!("sql/retain_forget.sql"), &[&found, &age_ms]).await?;
        let moved: i64 = gone.first().map_or(Ok(0), |row| cell(row, 0))?;
        Ok(Pass { moved: usize::try_from(moved).unwrap_or(0), full: found.len() >= limit && moved > 0 })
    }
}

fn stream_view(row: &Row) -> StoreResult<StreamView> {
    Ok(StreamView {
        name: columns::stream(row, 0)?,
        paused: cell(row, 1)?,
        counts: counts(row, 2)?,
        oldest_ready_at: maybe_instant(row, 8)?,
    })
}

fn token(row: &Row) -> StoreResult<TokenRow> {
    let hash: &[u8] = cell(row, 4)?;
    Ok(TokenRow {
        token_id: cell(row, 0)?,
        name: cell(row, 1)?,
        role: cell(row, 2)?,
        streams: cell(row, 3)?,
        secret_hash: hash
            .try_into()
            .map_err(|_| StoreError::Corrupt("a token's hash has the wrong size".into()))?,
        created_at: instant(row, 5)?,
        expires_at: maybe_instant(row, 6)?,
        revoked_at: maybe_instant(row, 7)?,
    })
}

//! Streams: what is in them, how many there may be, and what is set for them.

use super::PostgresStore;
use super::connection::retry::Tries;
use super::rows::{self, Param, cell, counts, maybe_instant, millis, rows_limit};
use crate::error::{StoreError, StoreResult};
use crate::store::{Pass, StreamCounts, StreamLimits, StreamView, Streams, StreamsOpened};
use async_trait::async_trait;
use fernery_core::StreamName;
use std::collections::HashMap;
use std::time::Duration;
use tokio_postgres::Row;

#[async_trait]
impl Streams for PostgresStore {
    async fn streams(&self, after: Option<StreamName>, limit: usize) -> StoreResult<Vec<StreamView>> {
        self.stream_views(None, after.as_ref(), limit).await
    }

    async fn streams_beyond(&self, after: Option<StreamName>) -> StoreResult<(u64, StreamCounts)> {
        let after = after.as_ref().map_or("", StreamName::as_str);
        let rows = self.read(include_str!("sql/streams_beyond.sql"), &[&after]).await?;
        let row = rows.first().ok_or_else(|| StoreError::Corrupt("the database returned no count".into()))?;
        let number: i64 = cell(row, "streams")?;
        Ok((u64::try_from(number).unwrap_or(0), counts(row)?))
    }

    async fn stream(&self, name: StreamName) -> StoreResult<Option<StreamView>> {
        Ok(self.stream_views(Some(&name), None, 1).await?.pop())
    }

    /// Opens those that are new, unless there would be too many. Asked again after a lost answer it finds them open.
    async fn open_streams(
        &self,
        names: Vec<StreamName>,
        by: Option<String>,
        limits: StreamLimits,
    ) -> StoreResult<StreamsOpened> {
        let names: Vec<&str> = names.iter().map(StreamName::as_str).collect();
        let (in_all, of_token) = (rows_limit(limits.in_all), rows_limit(limits.of_token));
        let params: [Param<'_>; 4] = [&names, &by, &in_all, &of_token];
        let open = async || {
            let session = self.shared.pool.session().await?;
            session.begin_with("BEGIN", include_str!("sql/streams_lock.sql"), &[]).await?;
            session.commit_with(include_str!("sql/streams_open.sql"), &params).await
        };
        let mut tries = Tries::new(self.shared.settings.chance);
        let rows = loop {
            match open().await {
                Ok(rows) => break rows,
                Err(trouble) => tries.again(trouble).await?,
            }
        };
        let row = rows.first().ok_or_else(|| StoreError::Corrupt("the database returned no count".into()))?;
        match cell::<Option<&str>>(row, 1)? {
            None => Ok(StreamsOpened::Yes),
            Some("in_all") => Ok(StreamsOpened::TooManyInAll(rows::stream(row, 0)?)),
            Some(_) => Ok(StreamsOpened::TooManyOfToken(rows::stream(row, 0)?)),
        }
    }

    async fn forget_streams(&self, age: Duration, limit: usize) -> StoreResult<Pass> {
        let params: [Param<'_>; 2] = [&millis(age), &rows_limit(limit)];
        let gone = self.write_once(include_str!("sql/streams_forget.sql"), &params).await?;
        Ok(Pass { moved: gone.len(), full: gone.len() == limit })
    }

    async fn set_paused(&self, name: StreamName, paused: bool) -> StoreResult<bool> {
        let params: [Param<'_>; 2] = [&name.as_str(), &paused];
        // Twice is as good as once, so a lost answer is no reason to give up.
        let known = !self.read(include_str!("sql/stream_pause.sql"), &params).await?.is_empty();
        if let Some(messaging) = &self.shared.messaging {
            messaging.prefetched.is_paused(&name, known && paused);
        }
        if known && !paused {
            self.shared.wake(HashMap::from([(name, usize::MAX)]));
        }
        Ok(known)
    }

    async fn redacting(&self, streams: Vec<StreamName>) -> StoreResult<Vec<StreamName>> {
        let names: Vec<&str> = streams.iter().map(StreamName::as_str).collect();
        let rows = self.read(include_str!("sql/streams_redacting.sql"), &[&names]).await?;
        rows.iter().map(|row| rows::stream(row, 0)).collect()
    }

    async fn claimable(&self, streams: Vec<StreamName>) -> StoreResult<Vec<StreamName>> {
        let names: Vec<&str> = streams.iter().map(StreamName::as_str).collect();
        let rows = self.read(include_str!("sql/streams_claimable.sql"), &[&names]).await?;
        rows.iter().map(|row| rows::stream(row, 0)).collect()
    }
}

impl PostgresStore {
    /// The stream of this name, or else up to `limit` after the one named `after`.
    async fn stream_views(
        &self,
        name: Option<&StreamName>,
        after: Option<&StreamName>,
        limit: usize,
    ) -> StoreResult<Vec<StreamView>> {
        let name = name.map(StreamName::as_str);
        // No stream has an empty name.
        let after = after.map_or("", StreamName::as_str);
        let rows =
            self.read(include_str!("sql/streams_page.sql"), &[&name, &after, &rows_limit(limit)]).await?;
        rows.iter().map(stream_view).collect()
    }
}

fn stream_view(row: &Row) -> StoreResult<StreamView> {
    Ok(StreamView {
        name: rows::stream(row, "name")?,
        paused: cell(row, "paused")?,
        redact: cell(row, "redact")?,
        counts: counts(row)?,
        oldest_ready_at: maybe_instant(row, "oldest_ready_at")?,
    })
}

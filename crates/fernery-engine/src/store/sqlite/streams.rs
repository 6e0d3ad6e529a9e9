//! Streams: what is in them, how many there may be, and what is set for them.

use super::SqliteStore;
use super::rows;
use super::tx::Tx;
use crate::error::StoreResult;
use crate::store::{Pass, StreamCounts, StreamLimits, StreamView, Streams, StreamsOpened};
use async_trait::async_trait;
use fernery_core::{StreamName, Timestamp};
use rusqlite::{Connection, params};
use std::collections::BTreeSet;
use std::time::Duration;

#[async_trait]
impl Streams for SqliteStore {
    async fn streams(&self, after: Option<StreamName>, limit: usize) -> StoreResult<Vec<StreamView>> {
        self.read(move |db| streams(db, None, after.as_ref(), limit)).await
    }

    async fn streams_beyond(&self, after: Option<StreamName>) -> StoreResult<(u64, StreamCounts)> {
        self.read(move |db| streams_beyond(db, after.as_ref())).await
    }

    async fn stream(&self, name: StreamName) -> StoreResult<Option<StreamView>> {
        self.read(move |db| Ok(streams(db, Some(&name), None, 1)?.pop())).await
    }

    async fn open_streams(
        &self,
        names: Vec<StreamName>,
        by: Option<String>,
        limits: StreamLimits,
    ) -> StoreResult<StreamsOpened> {
        self.write(move |tx| tx.open_streams(&names, by.as_deref(), limits)).await
    }

    async fn forget_streams(&self, age: Duration, limit: usize) -> StoreResult<Pass> {
        let cutoff = self.clock.now().before(age);
        let found = self.read(move |db| forgettable(db, cutoff, limit)).await?;
        let full = found.len() == limit;
        let moved = match found.is_empty() {
            true => 0,
            false => self.write(move |tx| tx.forget_streams(&found, cutoff)).await?,
        };
        Ok(Pass { moved, full: full && moved > 0 })
    }

    async fn set_paused(&self, name: StreamName, paused: bool) -> StoreResult<bool> {
        self.write(move |tx| tx.set_paused(&name, paused)).await
    }

    async fn redacting(&self, streams: Vec<StreamName>) -> StoreResult<Vec<StreamName>> {
        self.read(move |db| those(db, include_str!("sql/stream_redacts.sql"), streams)).await
    }

    async fn claimable(&self, streams: Vec<StreamName>) -> StoreResult<Vec<StreamName>> {
        self.read(move |db| those(db, include_str!("sql/stream_claimable.sql"), streams)).await
    }
}

impl Tx<'_> {
    /// Opens those that are new, unless there would be too many: this thread is the only one that does.
    fn open_streams(
        &mut self,
        names: &[StreamName],
        by: Option<&str>,
        limits: StreamLimits,
    ) -> StoreResult<StreamsOpened> {
        let mut new = BTreeSet::new();
        for name in names {
            let mut known = self.db.prepare_cached(include_str!("sql/stream_known.sql"))?;
            if !known.query_row([name.as_str()], |row| row.get(0))? {
                new.insert(name);
            }
        }
        let Some(first) = new.first().map(|name| (*name).clone()) else { return Ok(StreamsOpened::Yes) };
        let mut count = self.db.prepare_cached(include_str!("sql/streams_count.sql"))?;
        let mut is_full = |of: Option<&str>, max: usize| -> StoreResult<bool> {
            let there: usize = count.query_row(params![of, max], |row| row.get(0))?;
            Ok(there + new.len() > max)
        };
        if is_full(None, limits.in_all)? {
            return Ok(StreamsOpened::TooManyInAll(first));
        }
        if by.is_some() && is_full(by, limits.of_token)? {
            return Ok(StreamsOpened::TooManyOfToken(first));
        }
        for name in new {
            let mut open = self.db.prepare_cached(include_str!("sql/stream_open.sql"))?;
            open.execute(params![name.as_str(), by, self.now.as_millis()])?;
        }
        Ok(StreamsOpened::Yes)
    }

    /// Forgets these streams where they are still empty and were not used since `cutoff`.
    fn forget_streams(&mut self, names: &[StreamName], cutoff: Timestamp) -> StoreResult<usize> {
        let mut moved = 0;
        for name in names {
            let mut forget = self.db.prepare_cached(include_str!("sql/stream_forget.sql"))?;
            moved += forget.execute(params![name.as_str(), cutoff.as_millis()])?;
        }
        Ok(moved)
    }

    fn set_paused(&mut self, stream: &StreamName, paused: bool) -> StoreResult<bool> {
        let mut statement = self.db.prepare_cached(include_str!("sql/stream_pause.sql"))?;
        let known = statement.execute(params![stream.as_str(), paused])? == 1;
        if known && paused {
            self.paused.insert(stream.clone());
        } else if known {
            self.paused.remove(stream);
            self.after.claimable.insert(stream.clone(), usize::MAX);
        }
        Ok(known)
    }
}

/// The stream of this name, or else up to `limit` after the one named `after`.
fn streams(
    db: &Connection,
    name: Option<&StreamName>,
    after: Option<&StreamName>,
    limit: usize,
) -> StoreResult<Vec<StreamView>> {
    let mut statement = db.prepare_cached(include_str!("sql/streams_page.sql"))?;
    // No stream has an empty name.
    let after = after.map_or("", StreamName::as_str);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = statement.query_map(params![name.map(StreamName::as_str), after, limit], rows::stream_view)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn streams_beyond(db: &Connection, after: Option<&StreamName>) -> StoreResult<(u64, StreamCounts)> {
    let mut statement = db.prepare_cached(include_str!("sql/streams_beyond.sql"))?;
    let after = after.map_or("", StreamName::as_str);
    Ok(statement.query_row([after], |row| Ok((row.get("streams")?, rows::stream_counts(row)?)))?)
}

/// Streams that may be forgotten.
fn forgettable(db: &Connection, cutoff: Timestamp, limit: usize) -> StoreResult<Vec<StreamName>> {
    let mut statement = db.prepare_cached(include_str!("sql/streams_forgettable.sql"))?;
    let found = statement.query_map(params![cutoff.as_millis(), limit], |row| rows::stream(row, 0))?;
    Ok(found.collect::<Result<_, _>>()?)
}

/// Those of these streams that a statement says yes to.
fn those(db: &Connection, asked: &str, streams: Vec<StreamName>) -> StoreResult<Vec<StreamName>> {
    let mut statement = db.prepare_cached(asked)?;
    let mut found = Vec::new();
    for stream in streams {
        if statement.query_row([stream.as_str()], |row| row.get(0))? {
            found.push(stream);
        }
    }
    Ok(found)
}

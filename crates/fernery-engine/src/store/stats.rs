//! What happened in streams, minute by minute, for whoever wants to see how they are doing. The same on both databases.
//!
//! Verbs note what happened in memory ([`UnwrittenStats`]); the engine writes it every few seconds, a row for each stream and
//! span, and not one for each job. So a process that is killed loses at most what it noted since its last write: statistics, and
//! never a job.
//! What was written is counted once: a write has an id, and one whose answer was lost finds its rows written.
//!
//! A row is written for each [`StatsRange`], so nothing has to be folded: what is older than its range is deleted, and that is all.

use super::{Pass, Transactions};
use crate::error::StoreResult;
use crate::pipeline::{Cell, Row, Sql, answering};
use crate::supervise::lock;
use async_trait::async_trait;
use fernery_core::job::stats::{Happening, StatsCounts, StatsRange};
use fernery_core::{StreamName, Timestamp, limits};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

/// What happened since it was last written.
#[derive(Debug, Default)]
pub struct UnwrittenStats {
    minutes: Mutex<HashMap<StreamName, BTreeMap<Timestamp, StatsCounts>>>,
    /// What is being written; it stays until that has succeeded.
    pub(crate) written: tokio::sync::Mutex<Option<StatsBatch>>,
}

/// Counts on their way to the database.
#[derive(Clone, Debug)]
pub struct StatsBatch {
    /// The id of this write.
    pub id: String,
    /// By stream, minutes of the span, and its beginning: in the order in which rows are locked.
    pub rows: Arc<BTreeMap<(StreamName, i64, Timestamp), StatsCounts>>,
}

impl UnwrittenStats {
    /// Notes what happened.
    pub(crate) fn note(&self, happened: impl IntoIterator<Item = (StreamName, Timestamp, Happening)>) {
        let mut happened = happened.into_iter().peekable();
        if happened.peek().is_none() {
            return;
        }
        let mut minutes = lock(&self.minutes);
        for (stream, at, happening) in happened {
            let of_stream = minutes.entry(stream).or_default();
            of_stream.entry(StatsRange::Hour.point_of(at)).or_default().note(happening);
        }
    }

    /// How many batches it takes to write what has happened until now.
    pub(crate) fn batches(&self) -> usize {
        lock(&self.minutes).len().div_ceil(limits::STATS_BATCH)
    }

    /// Takes what happened in up to [`STATS_BATCH`](limits::STATS_BATCH) streams, to be written under this id.
    pub fn take(&self, id: String) -> Option<StatsBatch> {
        let mut minutes = lock(&self.minutes);
        let streams: Vec<StreamName> = minutes.keys().take(limits::STATS_BATCH).cloned().collect();
        let mut rows: BTreeMap<_, StatsCounts> = BTreeMap::new();
        for stream in streams {
            for (at, counts) in minutes.remove(&stream).unwrap_or_default() {
                for range in StatsRange::ALL {
                    let key = (stream.clone(), range.minutes(), range.point_of(at));
                    rows.entry(key).or_default().add(&counts);
                }
            }
        }
        (!rows.is_empty()).then(|| StatsBatch { id, rows: Arc::new(rows) })
    }
}

/// What happened in one stream: the points in which anything did, oldest first.
pub type StreamHistory = Vec<(Timestamp, StatsCounts)>;

/// What happened in streams.
#[async_trait]
pub trait Stats: Transactions {
    /// Adds counts. Doing it again with the same batch changes nothing.
    async fn add_stats(&self, batch: StatsBatch) -> StoreResult<()> {
        self.transact(Box::new(move |sql| add(sql, &batch))).await
    }

    /// What happened in these streams within a range, in their order, and when the range begins.
    async fn stats(
        &self,
        streams: Vec<StreamName>,
        range: StatsRange,
    ) -> StoreResult<(Timestamp, Vec<StreamHistory>)> {
        let (work, answer) = answering(move |sql| {
            let since = range.since(sql.now());
            let asked: Vec<_> = streams
                .iter()
                .map(|stream| {
                    let cells = vec![stream.as_str().into(), range.minutes().into(), since.into()];
                    (include_str!("sql/stats_of_stream.sql"), cells)
                })
                .collect();
            let found = sql.query_all(&asked)?;
            let histories = found.iter().map(|rows| rows.iter().map(point).collect::<StoreResult<_>>());
            Ok((since, histories.collect::<StoreResult<Vec<StreamHistory>>>()?))
        });
        self.read(work).await?;
        answer.take()
    }

    /// Forgets up to `limit` rows of each range that are older than it.
    async fn forget_stats(&self, limit: usize) -> StoreResult<Pass> {
        let (work, answer) = answering(move |sql| {
            let (now, mut pass) = (sql.now(), Pass::default());
            for range in StatsRange::ALL {
                let most = i64::try_from(limit).unwrap_or(i64::MAX);
                let cells = [range.minutes().into(), range.since(now).into(), most.into()];
                let gone = sql.touched(include_str!("sql/stats_forget.sql"), &cells)?;
                pass.moved += gone;
                pass.full |= gone == limit;
            }
            Ok(pass)
        });
        self.transact(work).await?;
        answer.take()
    }
}

fn stored(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn add(sql: &mut dyn Sql, batch: &StatsBatch) -> StoreResult<()> {
    let texts: Vec<_> = batch.rows.values().map(|f| (f.waits.to_string(), f.runs.to_string())).collect();
    let asked: Vec<_> = batch
        .rows
        .iter()
        .zip(&texts)
        .map(|(((stream, minutes, at), f), (waits, runs))| {
            let cells: Vec<Cell<'_>> = vec![
                stream.as_str().into(),
                (*minutes).into(),
                (*at).into(),
                stored(f.enqueued).into(),
                stored(f.completed).into(),
                stored(f.failed).into(),
                stored(f.dead).into(),
                waits.into(),
                runs.into(),
                (&batch.id).into(),
            ];
            (include_str!("sql/stats_add.sql"), cells)
        })
        .collect();
    let added = sql.query_all(&asked)?;
    for (((stream, minutes, at), counts), rows) in batch.rows.iter().zip(&added) {
        // No row: this batch was written before, and its answer was lost.
        let Some(row) = rows.first() else { continue };
        if row.int("writes")? == 0 {
            continue;
        }
        let mut there =
            StatsCounts { waits: row.word("waits")?, runs: row.word("runs")?, ..StatsCounts::default() };
        there.waits.add(&counts.waits);
        there.runs.add(&counts.runs);
        let (waits, runs) = (there.waits.to_string(), there.runs.to_string());
        let cells =
            [stream.as_str().into(), (*minutes).into(), (*at).into(), (&waits).into(), (&runs).into()];
        sql.write("the statistics of a stream", include_str!("sql/stats_widen.sql"), &cells)?;
    }
    Ok(())
}

fn point(row: &Row) -> StoreResult<(Timestamp, StatsCounts)> {
    let counts = StatsCounts {
        enqueued: row.count("enqueued")?,
        completed: row.count("completed")?,
        failed: row.count("failed")?,
        dead: row.count("dead")?,
        waits: row.word("waits")?,
        runs: row.word("runs")?,
    };
    Ok((row.at("at")?, counts))
}

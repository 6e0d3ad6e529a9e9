//! What claims leave behind: messages whose jobs went on without them, and messages whose reader died.
//!
//! Every process sweeps all streams, also those that nobody polls any more, a page of each at a time. Two that sweep the
//! same page do the same thing twice.

use super::Shared;
use super::columns::{self, Param, cell};
use super::hints::Worth;
use super::post::{Post, Stop};
use super::trouble::Trouble;
use crate::door;
use crate::transport::{Hint, MessageId, Reason};
use fernery_core::StreamName;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tracing::debug;
use uuid::Uuid;

/// Between two pages of a stream.
const INTERVAL: Duration = Duration::from_secs(1);
/// Messages of a page.
const PAGE: usize = 500;
/// Pages of a stream in one round, while there is something to take away.
const PAGES: usize = 20;
/// A message this young is left to whoever is dealing with it now.
const YOUNG: Duration = Duration::from_secs(3);
/// How much longer than a lease a message is left with its reader.
const BEYOND_LEASE: Duration = Duration::from_secs(1);
/// How long what one claim had no use for is kept for the next.
const SPARE: Duration = Duration::from_secs(1);
/// A reader that has nothing in hand and did nothing for so long has gone; one that has not is simply known again.
const READER_GONE: Duration = Duration::from_secs(600);

/// A stream that has had no message for so long, and holds none, is forgotten; the next message makes it anew.
const STREAM_IDLE: Duration = Duration::from_secs(3_600);
/// Readers and streams that may be forgotten are looked at once in so many rounds.
const FORGET: u64 = 60;

/// How far the sweep of a stream has come.
#[derive(Default)]
struct Progress {
    looked_to: MessageId,
    abandoned_from: MessageId,
}

/// Sweeps until it is aborted.
pub(super) async fn sweep(shared: Arc<Shared>) {
    let Some(post) = &shared.post else { return };
    let mut progress: HashMap<StreamName, Progress> = HashMap::new();
    for round in 0_u64.. {
        sleep(shared.settings.chance.jittered(INTERVAL)).await;
        match shared.sweep_all(post, &mut progress, round % FORGET == 0).await {
            Ok(()) => {}
            Err(Stop::Transport(away)) => {
                // What was known about streams may be about streams that are no more.
                progress.clear();
                debug!(%away, "not swept");
            }
            Err(Stop::Database(trouble)) => debug!(?trouble, "not swept"),
        }
    }
}

impl Shared {
    async fn sweep_all(
        &self,
        post: &Post,
        progress: &mut HashMap<StreamName, Progress>,
        forget: bool,
    ) -> Result<(), Stop> {
        for (stream, hints) in post.spare.take_old(SPARE, Instant::now()) {
            self.hand_back(post, &stream, &hints).await?;
        }
        let session = self.pool.session().await?;
        let rows = session.query(include_str!("sql/relayed_all.sql"), &[]).await?;
        drop(session);
        let mut streams = Vec::with_capacity(rows.len());
        for row in &rows {
            let stream = columns::stream(row, 0)?;
            if stream.as_str() != crate::transport::DEAD_LETTERS {
                streams.push((stream, MessageId { ms: cell(row, 1)?, n: cell(row, 2)? }));
            }
        }
        let names: Vec<StreamName> = streams.iter().map(|(stream, _)| stream.clone()).collect();
        progress.retain(|stream, _| names.contains(stream));
        let lengths = post.transport.lengths(&names).await?;
        let idle_since = door::wall_clock().before(STREAM_IDLE).as_millis();
        for ((stream, newest), length) in streams.iter().zip(lengths) {
            if length > 0 {
                let place = progress.entry(stream.clone()).or_default();
                self.sweep_page(post, stream, place).await?;
                self.take_over(post, stream, place).await?;
            } else if forget && newest.ms < idle_since {
                self.forget_stream(post, stream, *newest).await?;
                continue;
            }
            if forget {
                post.transport.forget_readers(stream, READER_GONE).await?;
            }
        }
        Ok(())
    }

    /// Forgets a stream that is idle. The record goes first: a message that is sent from here on makes a new one, and then the
    /// transport, which looks once more, keeps the stream.
    async fn forget_stream(&self, post: &Post, stream: &StreamName, newest: MessageId) -> Result<(), Stop> {
        let session = self.pool.session().await?;
        let params: [Param<'_>; 3] = [&stream.as_str(), &newest.ms, &newest.n];
        if session.query(include_str!("sql/relayed_forget.sql"), &params).await?.is_empty() {
            return Ok(());
        }
        let forgotten = post.transport.forget(stream, newest).await;
        if !matches!(forgotten, Ok(true)) {
            session.query(include_str!("sql/relayed_keep.sql"), &params).await?;
        }
        forgotten?;
        Ok(())
    }

    /// Takes away what is good for nothing, whoever has it.
    async fn sweep_page(&self, post: &Post, stream: &StreamName, place: &mut Progress) -> Result<(), Stop> {
        // On at once while there is something to do: where workers acknowledge, all that is settled goes this way.
        for _ in 0..PAGES {
            if !self.sweep_one_page(post, stream, place).await? {
                break;
            }
        }
        Ok(())
    }

    /// Whether there may be more like it.
    async fn sweep_one_page(
        &self,
        post: &Post,
        stream: &StreamName,
        place: &mut Progress,
    ) -> Result<bool, Stop> {
        let page = post.transport.look(stream, place.looked_to, PAGE).await?;
        place.looked_to = match page.last() {
            Some(last) if page.len() == PAGE => last.message,
            _ => MessageId::default(),
        };
        let old = door::wall_clock().before(YOUNG).as_millis();
        let hints: Vec<&Hint> = page.iter().filter(|hint| hint.message.ms <= old).collect();
        if hints.is_empty() {
            return Ok(false);
        }
        let worth = self.judge(&hints).await?;
        Ok(self.take_away(&hints, &worth) > 0 && page.len() == PAGE)
    }

    /// Takes over what a reader has held for longer than any lease it may have led to. A job that still waits is told of
    /// anew; a message of a running job stays.
    async fn take_over(&self, post: &Post, stream: &StreamName, place: &mut Progress) -> Result<(), Stop> {
        let idle = self.settings.lease_ttl + BEYOND_LEASE;
        let abandoned = post.transport.abandoned(stream, idle, place.abandoned_from, PAGE).await?;
        place.abandoned_from = abandoned.next.unwrap_or_default();
        Ok(self.hand_back(post, stream, &abandoned.hints).await?)
    }

    /// Messages of a stream that are ours and lead nowhere here go, and the jobs that still wait under them are told of anew:
    /// by the outbox, as all others are.
    async fn hand_back(&self, post: &Post, stream: &StreamName, hints: &[Hint]) -> Result<(), Trouble> {
        let hints: Vec<&Hint> = hints.iter().collect();
        if hints.is_empty() {
            return Ok(());
        }
        let worth = self.judge(&hints).await?;
        self.take_away(&hints, &worth);
        let waiting: Vec<&Hint> = hints
            .iter()
            .zip(&worth)
            .filter(|(_, worth)| **worth == Worth::Waiting)
            .map(|(h, _)| *h)
            .collect();
        if waiting.is_empty() {
            return Ok(());
        }
        let jobs: Vec<Uuid> = waiting.iter().map(|hint| hint.note.job_id.uuid()).collect();
        let places: Vec<i64> = waiting.iter().map(|hint| hint.note.place).collect();
        let versions: Vec<i64> = waiting.iter().map(|hint| hint.note.version).collect();
        let session = self.pool.session().await?;
        let params: [Param<'_>; 4] = [&stream.as_str(), &jobs, &places, &versions];
        session.query(include_str!("sql/outbox_add.sql"), &params).await?;
        drop(session);
        let old = waiting.iter().map(|hint| (stream.clone(), hint.message)).collect();
        post.transport.finished(old, Reason::Stale);
        post.nudge();
        Ok(())
    }
}

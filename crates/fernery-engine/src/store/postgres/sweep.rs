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
use std::collections::{HashMap, HashSet};
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
/// How long a message is left with its reader. One that led to a lease may be held for longer: the database knows.
const IN_HAND: Duration = Duration::from_secs(5);
/// How long what one claim had no use for is kept for the next.
const SPARE: Duration = Duration::from_secs(1);
/// A reader that has nothing in hand and did nothing for so many leases has gone; one that has not is simply known again.
const READER_GONE_LEASES: u32 = 5;
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
    // Only what was done counts: a first round that fails is not the last look at idle streams for a minute.
    let mut rounds = 0_u64;
    loop {
        sleep(shared.settings.chance.jittered(INTERVAL)).await;
        match shared.sweep_all(post, &mut progress, rounds.is_multiple_of(FORGET)).await {
            Ok(()) => rounds += 1,
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
        let mut old = post.spare.take_old(SPARE, Instant::now()).into_iter();
        while let Some((stream, hints)) = old.next() {
            if let Err(trouble) = self.hand_back(post, &stream, hints).await {
                old.for_each(|(_, hints)| keep(post, hints));
                return Err(trouble.into());
            }
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
        let known: HashSet<&StreamName> = names.iter().collect();
        progress.retain(|stream, _| known.contains(stream));
        let loads = post.transport.loads(&names).await?;
        let idle_since = door::wall_clock().before(STREAM_IDLE).as_millis();
        let reader_gone = self.settings.lease_ttl * READER_GONE_LEASES;
        for ((stream, newest), load) in streams.iter().zip(loads) {
            if load.set_up_anew {
                post.suspect(vec![stream.clone()]);
            }
            let place = progress.entry(stream.clone()).or_default();
            if load.messages > 0 {
                self.sweep_page(post, stream, place).await?;
            }
            if load.in_hand > 0 {
                // Also of a stream that holds none: what others delete stays in hand until it is taken over.
                self.take_over(post, stream, place).await?;
            }
            if forget {
                if load.messages == 0 && newest.ms < idle_since {
                    self.forget_stream(post, stream, *newest, idle_since).await?;
                } else {
                    post.transport.forget_readers(stream, reader_gone).await?;
                }
            }
        }
        Ok(())
    }

    /// Forgets a stream that is idle. The record goes first: a message that is sent from here on makes a new one, and then the
    /// transport, which looks once more, keeps the stream.
    async fn forget_stream(
        &self,
        post: &Post,
        stream: &StreamName,
        newest: MessageId,
        idle_since_ms: i64,
    ) -> Result<(), Stop> {
        let session = self.pool.session().await?;
        let params: [Param<'_>; 3] = [&stream.as_str(), &newest.ms, &newest.n];
        if session.query(include_str!("sql/relayed_forget.sql"), &params).await?.is_empty() {
            return Ok(());
        }
        let forgotten = post.transport.forget(stream, idle_since_ms).await;
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
        let is_full = page.read >= PAGE;
        place.looked_to = page.last.filter(|_| is_full).unwrap_or_default();
        // One from the future is somebody's invention, or their clock's: it would never be old.
        let now = door::wall_clock();
        let young = now.before(YOUNG).as_millis()..=now.after(YOUNG).as_millis();
        let hints: Vec<&Hint> = page.hints.iter().filter(|hint| !young.contains(&hint.message.ms)).collect();
        if hints.is_empty() {
            return Ok(false);
        }
        let worth = self.judge(&hints).await?;
        Ok(self.take_away(&hints, &worth) > 0 && is_full)
    }

    /// Takes over what a reader has held for longer than a claim takes. A job that still waits is told of
    /// anew; a message of a running job stays.
    async fn take_over(&self, post: &Post, stream: &StreamName, place: &mut Progress) -> Result<(), Stop> {
        let abandoned = post.transport.abandoned(stream, IN_HAND, place.abandoned_from, PAGE).await?;
        place.abandoned_from = abandoned.next.unwrap_or_default();
        Ok(self.hand_back(post, stream, abandoned.hints).await?)
    }

    /// Messages of a stream that are ours and lead nowhere here go, and the jobs that still wait under them are told of anew:
    /// by the outbox, as all others are.
    async fn hand_back(&self, post: &Post, stream: &StreamName, hints: Vec<Hint>) -> Result<(), Trouble> {
        let done = self.tell_anew(post, stream, &hints).await;
        if done.is_err() {
            // They are in nobody else's hands.
            keep(post, hints);
        }
        done
    }

    async fn tell_anew(&self, post: &Post, stream: &StreamName, hints: &[Hint]) -> Result<(), Trouble> {
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

fn keep(post: &Post, hints: Vec<Hint>) {
    let now = Instant::now();
    post.spare.keep(hints.into_iter().map(|hint| (now, hint)));
}

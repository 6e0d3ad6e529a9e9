//! Cleans up messages: those whose jobs were claimed without them, and those whose reader died.
//!
//! Every process sweeps all streams, also those that nobody polls any more, a page of each at a time. Two that sweep the
//! same page do the same thing twice.

use super::hinted_claim::Worth;
use super::relay::{Messaging, Stop};
use crate::door;
use crate::store::postgres::Shared;
use crate::store::postgres::connection::retry::Trouble;
use crate::store::postgres::rows::{self, Param, cell};
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
/// A younger message is left to the process that handles it now.
const YOUNG: Duration = Duration::from_secs(3);
/// How long a message is left to its reader. With a lease in the database it may be held longer.
const IN_HAND: Duration = Duration::from_secs(5);
/// How long an unused prefetched message is reserved for this process's next claim.
const PREFETCHED_KEPT: Duration = Duration::from_secs(1);
/// A consumer with no pending message that was idle for so many leases is removed; if it is alive, it is created again.
const READER_GONE_LEASES: u32 = 5;
/// An empty stream without a message for this long is deleted; the next message creates it again.
const STREAM_IDLE: Duration = Duration::from_secs(3_600);
/// Idle consumers and streams are checked once in this many rounds.
const FORGET: u64 = 60;

/// How far the sweep of a stream has come.
#[derive(Default)]
struct Progress {
    looked_to: MessageId,
    abandoned_from: MessageId,
}

/// Sweeps until it is aborted.
pub(crate) async fn sweep(shared: Arc<Shared>) {
    let Some(messaging) = &shared.messaging else { return };
    let mut progress: HashMap<StreamName, Progress> = HashMap::new();
    // Only successful rounds count: otherwise a failed first round would delay the check of idle streams for a minute.
    let mut rounds = 0_u64;
    loop {
        sleep(shared.settings.chance.jittered(INTERVAL)).await;
        match shared.sweep_all(messaging, &mut progress, rounds.is_multiple_of(FORGET)).await {
            Ok(()) => rounds += 1,
            Err(Stop::Transport(away)) => {
                // The streams may be others after a restart of Redis.
                progress.clear();
                debug!(%away, "sweep of Redis streams failed; will retry");
            }
            Err(Stop::Database(trouble)) => debug!(?trouble, "sweep of Redis streams failed; will retry"),
        }
    }
}

impl Shared {
    async fn sweep_all(
        &self,
        messaging: &Messaging,
        progress: &mut HashMap<StreamName, Progress>,
        forget: bool,
    ) -> Result<(), Stop> {
        let mut old = messaging.prefetched.take_old(PREFETCHED_KEPT, Instant::now()).into_iter();
        while let Some((stream, hints)) = old.next() {
            if let Err(trouble) = self.hand_back(messaging, &stream, hints).await {
                old.for_each(|(_, hints)| keep(messaging, hints));
                return Err(trouble.into());
            }
        }
        let session = self.pool.session().await?;
        let rows = session.query(include_str!("../sql/relayed_all.sql"), &[]).await?;
        drop(session);
        let mut streams = Vec::with_capacity(rows.len());
        for row in &rows {
            let stream = rows::stream(row, "stream")?;
            if stream.as_str() != crate::transport::DEAD_LETTERS {
                streams.push((stream, MessageId { ms: cell(row, "newest_ms")?, n: cell(row, "newest_n")? }));
            }
        }
        let names: Vec<StreamName> = streams.iter().map(|(stream, _)| stream.clone()).collect();
        let known: HashSet<&StreamName> = names.iter().collect();
        progress.retain(|stream, _| known.contains(stream));
        let loads = messaging.transport.loads(&names).await?;
        let idle_since = door::wall_clock().before(STREAM_IDLE).as_millis();
        let reader_gone = self.settings.lease_ttl * READER_GONE_LEASES;
        for ((stream, newest), load) in streams.iter().zip(loads) {
            if load.set_up_anew {
                messaging.suspect(vec![stream.clone()]);
            }
            let place = progress.entry(stream.clone()).or_default();
            if load.messages > 0 {
                self.sweep_page(messaging, stream, place).await?;
            }
            if load.in_hand > 0 {
                // Also of a stream that holds none: what others delete stays in hand until it is taken over.
                self.take_over(messaging, stream, place).await?;
            }
            if forget {
                if load.messages == 0 && newest.ms < idle_since {
                    self.forget_stream(messaging, stream, *newest, idle_since).await?;
                } else {
                    messaging.transport.forget_readers(stream, reader_gone).await?;
                }
            }
        }
        Ok(())
    }

    /// Forgets a stream that is idle. The record goes first: a message that is sent from here on makes a new one, and then the
    /// transport, which looks once more, keeps the stream.
    async fn forget_stream(
        &self,
        messaging: &Messaging,
        stream: &StreamName,
        newest: MessageId,
        idle_since_ms: i64,
    ) -> Result<(), Stop> {
        let session = self.pool.session().await?;
        let params: [Param<'_>; 3] = [&stream.as_str(), &newest.ms, &newest.n];
        if session.query(include_str!("../sql/relayed_forget.sql"), &params).await?.is_empty() {
            return Ok(());
        }
        let forgotten = messaging.transport.forget(stream, idle_since_ms).await;
        if !matches!(forgotten, Ok(true)) {
            session.query(include_str!("../sql/relayed_keep.sql"), &params).await?;
        }
        forgotten?;
        Ok(())
    }

    /// Deletes useless messages, also pending ones of other consumers.
    async fn sweep_page(
        &self,
        messaging: &Messaging,
        stream: &StreamName,
        place: &mut Progress,
    ) -> Result<(), Stop> {
        // On at once while there is something to do: where workers acknowledge, all that is settled goes this way.
        for _ in 0..PAGES {
            if !self.sweep_one_page(messaging, stream, place).await? {
                break;
            }
        }
        Ok(())
    }

    /// Whether there may be more like it.
    async fn sweep_one_page(
        &self,
        messaging: &Messaging,
        stream: &StreamName,
        place: &mut Progress,
    ) -> Result<bool, Stop> {
        let page = messaging.transport.look(stream, place.looked_to, PAGE).await?;
        let is_full = page.read >= PAGE;
        place.looked_to = page.last.filter(|_| is_full).unwrap_or_default();
        // A message id in the future is forged or comes from a wrong clock: it would never become old.
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
    async fn take_over(
        &self,
        messaging: &Messaging,
        stream: &StreamName,
        place: &mut Progress,
    ) -> Result<(), Stop> {
        let abandoned = messaging.transport.abandoned(stream, IN_HAND, place.abandoned_from, PAGE).await?;
        place.abandoned_from = abandoned.next.unwrap_or_default();
        Ok(self.hand_back(messaging, stream, abandoned.hints).await?)
    }

    /// Deletes messages that this process holds without use; for jobs that still wait, new messages are sent through
    /// the outbox.
    async fn hand_back(
        &self,
        messaging: &Messaging,
        stream: &StreamName,
        hints: Vec<Hint>,
    ) -> Result<(), Trouble> {
        let done = self.resend_hints(messaging, stream, &hints).await;
        if done.is_err() {
            // They are in nobody else's hands.
            keep(messaging, hints);
        }
        done
    }

    async fn resend_hints(
        &self,
        messaging: &Messaging,
        stream: &StreamName,
        hints: &[Hint],
    ) -> Result<(), Trouble> {
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
        session.query(include_str!("../sql/outbox_add.sql"), &params).await?;
        drop(session);
        let old = waiting.iter().map(|hint| (stream.clone(), hint.message)).collect();
        messaging.transport.finished(old, Reason::Stale);
        messaging.nudge();
        Ok(())
    }
}

fn keep(messaging: &Messaging, hints: Vec<Hint>) {
    let now = Instant::now();
    messaging.prefetched.keep(hints.into_iter().map(|hint| (now, hint)));
}

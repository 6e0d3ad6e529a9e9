//! Finds messages that the transport lost, and sends them again.
//!
//! Redis does not know what it lost. So at every new connection, before the first message, and from time to time after
//! that, each process compares the newest message id of every stream with the newest one that was sent. A stream that
//! is missing when a message is sent is another sign of loss; it is recorded before a new message can hide it.

use super::relay::{BEGIN, Messaging, Stop};
use crate::door::failpoint;
use crate::error::StoreResult;
use crate::store::postgres::Shared;
use crate::store::postgres::connection::retry::Trouble;
use crate::store::postgres::processes;
use crate::store::postgres::rows::{self, cell, job_id};
use crate::supervise::lock;
use crate::transport::{DEAD_LETTERS, MessageId, Note, Sender};
use fernery_core::StreamName;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;
use tracing::{info, warn};

/// Jobs told of again at once.
const REEMIT: i64 = 1_000;
/// The limit of outbox rows while nothing can be sent; up to twice as many may be there.
const OUTBOX_ROWS_MAX: i64 = 10_000;

/// If no process has sent anything for this long, the problem is not only in this process.
const QUIET: Duration = Duration::from_secs(5);

/// How the outbox is kept short while nothing can be sent.
#[derive(Default)]
pub(crate) struct Shortening {
    /// The last row that was looked at.
    to: i64,
    /// What was last known to have been sent, and since when it is so.
    quiet: Option<(String, Instant)>,
}

impl Shared {
    /// Sends hints again for some jobs of a stream that has lost messages. True if there may be more.
    pub(crate) async fn resend(&self, sender: &mut dyn Sender) -> Result<bool, Stop> {
        let session = self.pool.session().await?;
        let rows = session.begin_with(BEGIN, include_str!("../sql/reemit_take.sql"), &[&REEMIT]).await?;
        let Some(first) = rows.first() else {
            session.rollback().await?;
            return Ok(false);
        };
        let stream = rows::stream(first, "stream")?;
        let under_way = cell::<i64>(first, "next_place")? > 0;
        let mut notes = Vec::with_capacity(rows.len());
        for row in &rows {
            if let Some(place) = cell(row, "seq")? {
                let (job_id, version) = (job_id(row, "job_id")?, cell(row, "claim_version")?);
                notes.push(Note { stream: stream.clone(), job_id, place, version });
            }
        }
        let made = !sender.prepare(&notes).await?.is_empty();
        let sent = if made && under_way { None } else { sender.send(&notes).await?.into_iter().collect() };
        let Some(messages): Option<Vec<MessageId>> = sent else {
            // What was told before this is lost as well.
            session.commit_with(include_str!("../sql/reemit_restart.sql"), &[&stream.as_str()]).await?;
            return Ok(true);
        };
        failpoint("reemit-sent");
        self.wake(HashMap::from([(stream.clone(), notes.len())]));
        let newest = messages.iter().max().copied().unwrap_or_default();
        let next = notes.last().filter(|_| notes.len() as i64 == REEMIT).map(|note| note.place + 1);
        let params: [rows::Param<'_>; 4] = [&stream.as_str(), &next, &newest.ms, &newest.n];
        session.commit_with(include_str!("../sql/reemit_sent.sql"), &params).await?;
        failpoint("reemit-written");
        info!(%stream, jobs = notes.len(), "sent messages again for waiting jobs");
        Ok(true)
    }

    pub(crate) async fn look_for_losses(
        &self,
        messaging: &Messaging,
        sender: &mut dyn Sender,
    ) -> Result<(), Stop> {
        let session = self.pool.session().await?;
        let rows = session.query(include_str!("../sql/relayed_all.sql"), &[]).await?;
        drop(session);
        let mut sent = Vec::with_capacity(rows.len());
        let mut paused = HashSet::new();
        for row in &rows {
            let stream = rows::stream(row, "stream")?;
            if cell(row, "paused")? {
                paused.insert(stream.clone());
            }
            sent.push((stream, MessageId { ms: cell(row, "newest_ms")?, n: cell(row, "newest_n")? }));
        }
        messaging.prefetched.are_paused(paused);
        let streams: Vec<StreamName> = sent.iter().map(|(stream, _)| stream.clone()).collect();
        let found = sender.newest(&streams).await?;
        let lost = |((_, sent), found): &((StreamName, MessageId), Option<MessageId>)| {
            *sent > found.unwrap_or_default()
        };
        let lost: Vec<_> = sent.into_iter().zip(found).filter(lost).map(|(stream, _)| stream).collect();
        if lost.is_empty() || self.others_send_elsewhere(messaging).await? {
            return Ok(());
        }
        for (stream, sent) in lost {
            self.ask_to_resend(&stream, sent).await?;
        }
        Ok(())
    }

    /// Whether a live process uses another Redis. Its messages are not lost, and without this check the two processes
    /// would send each other's messages again and again.
    async fn others_send_elsewhere(&self, messaging: &Messaging) -> Result<bool, Trouble> {
        let session = self.pool.session().await?;
        let (place, alive_ms) = (messaging.transport.place(), processes::alive_ms());
        let rows = session.query(include_str!("../sql/peers_elsewhere.sql"), &[&place, &alive_ms]).await?;
        let elsewhere = rows.first().map_or(Ok(false), |row| cell(row, 0))?;
        if elsewhere && !messaging.told_of_others.swap(true, Ordering::Relaxed) {
            warn!(
                %place,
                "another process uses a different Redis; lost messages are not sent again until all \
                 use the same one"
            );
        }
        Ok(elsewhere)
    }

    async fn ask_to_resend(&self, stream: &StreamName, sent: MessageId) -> Result<(), Trouble> {
        let session = self.pool.session().await?;
        let name = stream.as_str();
        let rows = session.begin_with(BEGIN, include_str!("../sql/reemit_begin.sql"), &[&name]).await?;
        let made: bool = rows.first().map_or(Ok(false), |row| cell(row, 0))?;
        let params: [rows::Param<'_>; 4] = [&name, &sent.ms, &sent.n, &made];
        if !session.commit_with(include_str!("../sql/reemit_ask.sql"), &params).await?.is_empty() {
            warn!(%stream, "Redis lost messages; sending them again");
        }
        Ok(())
    }

    /// Streams that did not exist when a message was sent. Unless they are new, their messages are lost.
    pub(crate) async fn made_anew(&self, streams: &[StreamName]) -> Result<(), Trouble> {
        if streams.is_empty() {
            return Ok(());
        }
        let asked = async {
            let session = self.pool.session().await?;
            let names: Vec<&str> = streams.iter().map(StreamName::as_str).collect();
            session.query(include_str!("../sql/reemit_made.sql"), &[&names]).await
        };
        // The streams exist now, so the loss could not be detected a second time.
        let rows = asked.await.inspect_err(|_| {
            self.messaging.iter().for_each(|messaging| messaging.suspect(streams.to_vec()));
        })?;
        for stream in rows.iter().map(|row| rows::stream(row, 0)).collect::<StoreResult<Vec<_>>>()? {
            warn!(%stream, "Redis lost messages; sending them again");
        }
        Ok(())
    }

    /// Streams with waiting jobs for which no message was ever sent, because there was no transport before.
    pub(crate) async fn tell_of_what_waits(&self) -> Result<(), Trouble> {
        let session = self.pool.session().await?;
        let rows = session.query(include_str!("../sql/reemit_untold.sql"), &[]).await?;
        if !rows.is_empty() {
            info!(
                streams = rows.len(),
                "sending messages for jobs that were enqueued before Redis was in use"
            );
        }
        Ok(())
    }

    /// Nothing can be sent, and the outbox must not grow without limit. Beyond a number of rows, rows are deleted and
    /// their streams are marked: once messages can be sent, all jobs that wait in them are announced again.
    pub(crate) async fn shorten_outbox(&self, shortening: &mut Shortening) -> Result<(), Trouble> {
        if !self.nobody_sends(shortening).await? {
            return Ok(());
        }
        loop {
            let session = self.pool.session().await?;
            let params: [rows::Param<'_>; 3] = [&shortening.to, &OUTBOX_ROWS_MAX, &DEAD_LETTERS];
            let rows = session.query(include_str!("../sql/outbox_shorten.sql"), &params).await?;
            let Some(row) = rows.first() else { return Ok(()) };
            let gone: i64 = cell(row, 0)?;
            if gone == 0 {
                return Ok(());
            }
            shortening.to = cell(row, 1)?;
            info!(rows = gone, "trimmed the outbox; the deleted messages are sent once Redis is back");
        }
    }

    /// Whether no process has sent anything for a while.
    async fn nobody_sends(&self, shortening: &mut Shortening) -> Result<bool, Trouble> {
        let session = self.pool.session().await?;
        let rows = session.query(include_str!("../sql/relayed_mark.sql"), &[]).await?;
        let mark: String = rows.first().map_or(Ok(String::new()), |row| cell(row, 0))?;
        match &shortening.quiet {
            Some((known, since)) if *known == mark => Ok(since.elapsed() >= QUIET),
            _ => {
                shortening.quiet = Some((mark, Instant::now()));
                Ok(false)
            }
        }
    }

    pub(crate) async fn write_suspects(&self, messaging: &Messaging) -> Result<(), Trouble> {
        let suspects: Vec<StreamName> = lock(&messaging.suspects).iter().cloned().collect();
        if suspects.is_empty() {
            return Ok(());
        }
        let session = self.pool.session().await?;
        let names: Vec<&str> = suspects.iter().map(StreamName::as_str).collect();
        session.query(include_str!("../sql/reemit_suspect.sql"), &[&names]).await?;
        let mut left = lock(&messaging.suspects);
        left.retain(|stream| !suspects.contains(stream));
        Ok(())
    }
}

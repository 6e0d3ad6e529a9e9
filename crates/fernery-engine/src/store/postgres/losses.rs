//! What a transport has lost is told of again.
//!
//! It does not know what it has lost. So each time a way to send is made, and now and then besides, what each stream says its
//! newest message was is held against what was sent. Every process does this before the first message that it sends over a
//! new connection. A stream that is not there when it is sent to is another sign: it is written down before anything is sent
//! that would cover it up.

use super::Shared;
use super::columns::{self, cell, job_id};
use super::post::{BEGIN, Post, Stop};
use super::processes;
use super::trouble::Trouble;
use crate::door::failpoint;
use crate::error::StoreResult;
use crate::transport::{DEAD_LETTERS, MessageId, Note, Sender};
use fernery_core::StreamName;
use std::collections::{HashMap, HashSet};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;
use tracing::{info, warn};

/// Jobs told of again at once.
const REEMIT: i64 = 1_000;
/// Rows that may wait in the outbox while nothing can be sent; up to twice as many do.
const OUTBOX_ROWS_MAX: i64 = 10_000;

/// Nobody has sent anything for so long: then it is not only this process that cannot.
const QUIET: Duration = Duration::from_secs(5);

/// How the outbox is kept short while nothing can be sent.
#[derive(Default)]
pub(super) struct Shortening {
    /// The last row that was looked at.
    to: i64,
    /// What was last known to have been sent, and since when it is so.
    quiet: Option<(String, Instant)>,
}

impl Shared {
    /// Tells again of some jobs of a stream that has lost messages. True if there may be more.
    pub(super) async fn tell_again(&self, sender: &mut dyn Sender) -> Result<bool, Stop> {
        let session = self.pool.session().await?;
        let rows = session.begin_with(BEGIN, include_str!("sql/reemit_take.sql"), &[&REEMIT]).await?;
        let Some(first) = rows.first() else {
            session.rollback().await?;
            return Ok(false);
        };
        let stream = columns::stream(first, 0)?;
        let under_way = cell::<i64>(first, 4)? > 0;
        let mut notes = Vec::with_capacity(rows.len());
        for row in &rows {
            if cell::<Option<i64>>(row, 2)?.is_some() {
                let (place, version) = (cell(row, 2)?, cell(row, 3)?);
                notes.push(Note { stream: stream.clone(), job_id: job_id(row, 1)?, place, version });
            }
        }
        let made = !sender.prepare(&notes).await?.is_empty();
        let sent = if made && under_way { None } else { sender.send(&notes).await?.into_iter().collect() };
        let Some(messages): Option<Vec<MessageId>> = sent else {
            // What was told before this is lost as well.
            session.commit_with(include_str!("sql/reemit_restart.sql"), &[&stream.as_str()]).await?;
            return Ok(true);
        };
        failpoint("reemit-sent");
        self.wake(HashMap::from([(stream.clone(), notes.len())]));
        let newest = messages.iter().max().copied().unwrap_or_default();
        let next = notes.last().filter(|_| notes.len() as i64 == REEMIT).map(|note| note.place + 1);
        let params: [columns::Param<'_>; 4] = [&stream.as_str(), &next, &newest.ms, &newest.n];
        session.commit_with(include_str!("sql/reemit_sent.sql"), &params).await?;
        failpoint("reemit-written");
        info!(%stream, jobs = notes.len(), "told again of jobs that wait");
        Ok(true)
    }

    pub(super) async fn look_for_losses(&self, post: &Post, sender: &mut dyn Sender) -> Result<(), Stop> {
        let session = self.pool.session().await?;
        let rows = session.query(include_str!("sql/relayed_all.sql"), &[]).await?;
        drop(session);
        let mut sent = Vec::with_capacity(rows.len());
        let mut paused = HashSet::new();
        for row in &rows {
            let stream = columns::stream(row, 0)?;
            if cell(row, 3)? {
                paused.insert(stream.clone());
            }
            sent.push((stream, MessageId { ms: cell(row, 1)?, n: cell(row, 2)? }));
        }
        post.spare.are_paused(paused);
        let streams: Vec<StreamName> = sent.iter().map(|(stream, _)| stream.clone()).collect();
        let found = sender.newest(&streams).await?;
        let lost = |((_, sent), found): &((StreamName, MessageId), Option<MessageId>)| {
            *sent > found.unwrap_or_default()
        };
        let lost: Vec<_> = sent.into_iter().zip(found).filter(lost).map(|(stream, _)| stream).collect();
        if lost.is_empty() || self.others_send_elsewhere(post).await? {
            return Ok(());
        }
        for (stream, sent) in lost {
            self.ask_to_tell_again(&stream, sent).await?;
        }
        Ok(())
    }

    /// Whether a living process has another Redis. What it sent there is not lost here, and the two would tell of it again and
    /// again, each of what the other sent.
    async fn others_send_elsewhere(&self, post: &Post) -> Result<bool, Trouble> {
        let session = self.pool.session().await?;
        let (place, alive_ms) = (post.transport.place(), processes::alive_ms());
        let rows = session.query(include_str!("sql/peers_elsewhere.sql"), &[&place, &alive_ms]).await?;
        let elsewhere = rows.first().map_or(Ok(false), |row| cell(row, 0))?;
        if elsewhere && !post.told_of_others.swap(true, Ordering::Relaxed) {
            warn!(%place, "another process sends its messages elsewhere: lost ones are not told of again meanwhile");
        }
        Ok(elsewhere)
    }

    async fn ask_to_tell_again(&self, stream: &StreamName, sent: MessageId) -> Result<(), Trouble> {
        let session = self.pool.session().await?;
        let name = stream.as_str();
        let rows = session.begin_with(BEGIN, include_str!("sql/reemit_begin.sql"), &[&name]).await?;
        let made: bool = rows.first().map_or(Ok(false), |row| cell(row, 0))?;
        let params: [columns::Param<'_>; 4] = [&name, &sent.ms, &sent.n, &made];
        if !session.commit_with(include_str!("sql/reemit_ask.sql"), &params).await?.is_empty() {
            warn!(%stream, "messages were lost");
        }
        Ok(())
    }

    /// Streams were not there when they were to be sent to. New ones aside, they had messages, which are lost.
    pub(super) async fn made_anew(&self, streams: &[StreamName]) -> Result<(), Trouble> {
        if streams.is_empty() {
            return Ok(());
        }
        let asked = async {
            let session = self.pool.session().await?;
            let names: Vec<&str> = streams.iter().map(StreamName::as_str).collect();
            session.query(include_str!("sql/reemit_made.sql"), &[&names]).await
        };
        // They are there now, and nobody would find out a second time.
        let rows = asked.await.inspect_err(|_| {
            self.post.iter().for_each(|post| post.suspect(streams.to_vec()));
        })?;
        for stream in rows.iter().map(|row| columns::stream(row, 0)).collect::<StoreResult<Vec<_>>>()? {
            warn!(%stream, "messages were lost");
        }
        Ok(())
    }

    /// Streams in which jobs wait and of which no message has ever told: there was no transport before.
    pub(super) async fn tell_of_what_waits(&self) -> Result<(), Trouble> {
        let session = self.pool.session().await?;
        let rows = session.query(include_str!("sql/reemit_untold.sql"), &[]).await?;
        if !rows.is_empty() {
            info!(streams = rows.len(), "jobs that waited before there were messages are told of");
        }
        Ok(())
    }

    /// Nothing can be sent. What is owed does not grow without end: beyond a number of rows their streams are told of again
    /// once it can, which is of jobs that wait then.
    pub(super) async fn shorten_outbox(&self, shortening: &mut Shortening) -> Result<(), Trouble> {
        if !self.nobody_sends(shortening).await? {
            return Ok(());
        }
        loop {
            let session = self.pool.session().await?;
            let params: [columns::Param<'_>; 3] = [&shortening.to, &OUTBOX_ROWS_MAX, &DEAD_LETTERS];
            let rows = session.query(include_str!("sql/outbox_shorten.sql"), &params).await?;
            let Some(row) = rows.first() else { return Ok(()) };
            let gone: i64 = cell(row, 0)?;
            if gone == 0 {
                return Ok(());
            }
            shortening.to = cell(row, 1)?;
            info!(rows = gone, "the outbox was cut short; what waits is told of once messages can be sent");
        }
    }

    /// Whether no process has sent anything for a while.
    async fn nobody_sends(&self, shortening: &mut Shortening) -> Result<bool, Trouble> {
        let session = self.pool.session().await?;
        let rows = session.query(include_str!("sql/relayed_mark.sql"), &[]).await?;
        let mark: String = rows.first().map_or(Ok(String::new()), |row| cell(row, 0))?;
        match &shortening.quiet {
            Some((known, since)) if *known == mark => Ok(since.elapsed() >= QUIET),
            _ => {
                shortening.quiet = Some((mark, Instant::now()));
                Ok(false)
            }
        }
    }

    pub(super) async fn write_suspects(&self, post: &Post) -> Result<(), Trouble> {
        let suspects: Vec<StreamName> =
            post.suspects.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect();
        if suspects.is_empty() {
            return Ok(());
        }
        let session = self.pool.session().await?;
        let names: Vec<&str> = suspects.iter().map(StreamName::as_str).collect();
        session.query(include_str!("sql/reemit_suspect.sql"), &[&names]).await?;
        let mut left = post.suspects.lock().unwrap_or_else(PoisonError::into_inner);
        left.retain(|stream| !suspects.contains(stream));
        Ok(())
    }
}

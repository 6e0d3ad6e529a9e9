//! The way of messages out: what the outbox holds is sent.
//!
//! Every process relays. Rows are taken with SKIP LOCKED, sent, and deleted in the same transaction: a process that dies
//! between leaves the rows to another, and some jobs are told of twice. That costs a lookup and nothing else. What the
//! transport has lost, before or meanwhile, is the business of `losses`.

use super::Shared;
use super::columns::{self, cell};
use super::healing::Healing;
use super::losses::Shortening;
use super::spare::Spare;
use super::trouble::Trouble;
use crate::door::failpoint;
use crate::error::StoreResult;
use crate::transport::{Away, DEAD_LETTERS, MessageId, Note, Sender, Transport};
use fernery_core::{JobId, StreamName};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, info, warn};
use uuid::Uuid;

/// Rows of the outbox taken at once. A row is what one statement made claimable.
const ROWS: i64 = 32;
/// Jobs told of at once, the last row aside: the transaction stays open while they are sent, and must not be cut off.
const JOBS: usize = 5_000;
/// How often the outbox is looked at and losses are looked for, should nobody say anything.
const INTERVAL: Duration = Duration::from_secs(1);
/// How often losses are looked for while the connection holds.
const CHECK: Duration = Duration::from_secs(2);
/// The delete of what was sent need not be durable: what comes back is sent twice.
pub(super) const BEGIN: &str = "BEGIN; SET LOCAL synchronous_commit = off";

pub(super) struct Post {
    pub(super) transport: Arc<dyn Transport>,
    /// Whether messages go out now.
    up: AtomicBool,
    due: Notify,
    pub(super) healing: Healing,
    /// Streams that may have lost messages, until that is written down.
    pub(super) suspects: Mutex<HashSet<StreamName>>,
    /// It was said that others send elsewhere.
    pub(super) told_of_others: AtomicBool,
    pub(super) spare: Spare,
}

impl Post {
    pub(super) fn new(transport: Arc<dyn Transport>) -> Self {
        Self {
            transport,
            up: AtomicBool::new(false),
            due: Notify::new(),
            healing: Healing::default(),
            suspects: Mutex::default(),
            told_of_others: AtomicBool::new(false),
            spare: Spare::default(),
        }
    }

    /// Messages of these streams may have been lost, whatever their newest one says: the relay sees to it.
    pub(super) fn suspect(&self, streams: Vec<StreamName>) {
        self.suspects.lock().unwrap_or_else(PoisonError::into_inner).extend(streams);
        self.due.notify_one();
    }

    /// There is something to send. False if nothing is being sent now: then nobody else wakes waiting claims.
    pub(super) fn nudge(&self) -> bool {
        self.due.notify_one();
        self.up.load(Ordering::Relaxed)
    }
}

/// Why a round ended early.
pub(super) enum Stop {
    Transport(Away),
    Database(Trouble),
}

impl From<Away> for Stop {
    fn from(away: Away) -> Self {
        Self::Transport(away)
    }
}

impl From<Trouble> for Stop {
    fn from(trouble: Trouble) -> Self {
        Self::Database(trouble)
    }
}

impl From<crate::error::StoreError> for Stop {
    fn from(error: crate::error::StoreError) -> Self {
        Self::Database(error.into())
    }
}

/// Sends until it is aborted.
pub(super) async fn relay(shared: Arc<Shared>) {
    let Some(post) = &shared.post else { return };
    let mut shortening = Shortening::default();
    // Before the first message: a stream that was sent to counts as one that was told of.
    while let Err(trouble) = shared.tell_of_what_waits().await {
        warn!(?trouble, "messages wait for the database");
        sleep(shared.settings.chance.jittered(INTERVAL)).await;
    }
    loop {
        match post.transport.sender().await {
            Ok(sender) => {
                let stop = shared.relay_over(post, sender).await;
                post.up.store(false, Ordering::Relaxed);
                match stop {
                    Stop::Transport(away) => {
                        warn!(%away, "messages wait; jobs are claimed from the database meanwhile");
                    }
                    Stop::Database(trouble) => warn!(?trouble, "messages wait for the database"),
                }
                // Whoever waits for a message that is not sent would wait for the backstop.
                shared.signals.parking.nudge_all();
            }
            Err(away) => debug!(%away, "no way to send"),
        }
        if let Err(trouble) = shared.shorten_outbox(&mut shortening).await {
            debug!(?trouble, "the outbox is as long as it is");
        }
        let _ = timeout(shared.settings.chance.jittered(INTERVAL), post.due.notified()).await;
        sleep(shared.settings.chance.jittered(INTERVAL / 4)).await;
    }
}

impl Shared {
    /// Sends until one side fails.
    async fn relay_over(&self, post: &Post, mut sender: Box<dyn Sender>) -> Stop {
        // What waited for this may be about jobs that have ended meanwhile.
        let mut behind = true;
        let sent = async {
            loop {
                self.look_for_losses(post, &mut *sender).await?;
                let next_check = Instant::now() + CHECK;
                while Instant::now() < next_check {
                    self.write_suspects(post).await?;
                    // In turns: neither waits for the other's backlog, nor the next check for both.
                    let more = self.relay_once(&mut *sender, behind).await?;
                    behind &= more;
                    if !post.up.swap(true, Ordering::Relaxed) {
                        info!("messages are sent");
                    }
                    if self.tell_again(&mut *sender).await? || more {
                        continue;
                    }
                    let wait = next_check.saturating_duration_since(Instant::now()).min(INTERVAL);
                    let _ = timeout(wait, post.due.notified()).await;
                }
            }
        };
        let stopped: Result<std::convert::Infallible, Stop> = sent.await;
        match stopped {
            Ok(never) => match never {},
            Err(stop) => stop,
        }
    }

    /// Sends what a few rows hold. True if there may be more.
    async fn relay_once(&self, sender: &mut dyn Sender, behind: bool) -> Result<bool, Stop> {
        let session = self.pool.session().await?;
        let rows = if behind {
            let params: [columns::Param<'_>; 2] = [&ROWS, &DEAD_LETTERS];
            session.begin_with(BEGIN, include_str!("sql/outbox_take_behind.sql"), &params).await?
        } else {
            session.begin_with(BEGIN, include_str!("sql/outbox_take.sql"), &[&ROWS]).await?
        };
        if rows.is_empty() {
            session.rollback().await?;
            return Ok(false);
        }
        let mut notes = Vec::new();
        let mut claimable: HashMap<StreamName, usize> = HashMap::new();
        let mut taken = 0;
        for row in &rows {
            if notes.len() >= JOBS {
                break;
            }
            taken += 1;
            let stream = columns::stream(row, 1)?;
            let (jobs, places, versions): (Vec<Uuid>, Vec<i64>, Vec<i64>) =
                (cell(row, 2)?, cell(row, 3)?, cell(row, 4)?);
            if stream.as_str() != DEAD_LETTERS {
                *claimable.entry(stream.clone()).or_default() += jobs.len();
            }
            for ((job, place), version) in jobs.into_iter().zip(places).zip(versions) {
                notes.push(Note { stream: stream.clone(), job_id: JobId::from_uuid(job), place, version });
            }
        }
        let ids: Vec<i64> = rows[..taken].iter().map(|row| cell(row, 0)).collect::<StoreResult<_>>()?;
        let messages = self.deliver(sender, &notes).await?;
        failpoint("relay-sent");
        self.wake(claimable);
        let newest = newest(&notes, &messages);
        let streams: Vec<&str> = newest.keys().map(|stream| stream.as_str()).collect();
        let ms: Vec<i64> = newest.values().map(|id| id.ms).collect();
        let n: Vec<i64> = newest.values().map(|id| id.n).collect();
        session.commit_with(include_str!("sql/outbox_sent.sql"), &[&ids, &streams, &ms, &n]).await?;
        failpoint("relay-written");
        Ok(rows.len() as i64 == ROWS || taken < rows.len())
    }

    /// Sends, also to streams that are new or gone. That one was gone is written down before its next message covers it up.
    async fn deliver(&self, sender: &mut dyn Sender, notes: &[Note]) -> Result<Vec<MessageId>, Stop> {
        self.made_anew(&sender.prepare(notes).await?).await?;
        let mut messages = sender.send(notes).await?;
        let gone: Vec<usize> =
            messages.iter().enumerate().filter(|(_, id)| id.is_none()).map(|(n, _)| n).collect();
        if !gone.is_empty() {
            let again: Vec<Note> = gone.iter().map(|n| notes[*n].clone()).collect();
            self.made_anew(&sender.prepare(&again).await?).await?;
            for (n, message) in gone.into_iter().zip(sender.send(&again).await?) {
                messages[n] = message;
            }
        }
        let all: Option<Vec<MessageId>> = messages.into_iter().collect();
        all.ok_or_else(|| Stop::Transport(Away("streams vanish as soon as they are made".into())))
    }
}

/// The newest message of each stream.
fn newest<'a>(notes: &'a [Note], messages: &[MessageId]) -> BTreeMap<&'a StreamName, MessageId> {
    let mut newest: BTreeMap<&StreamName, MessageId> = BTreeMap::new();
    for (note, id) in notes.iter().zip(messages) {
        let known = newest.entry(&note.stream).or_default();
        *known = (*known).max(*id);
    }
    newest
}

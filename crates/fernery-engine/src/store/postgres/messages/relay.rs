//! The relay: sends the messages of the outbox.
//!
//! Every process relays. Rows are taken with SKIP LOCKED, sent, and deleted in the same transaction: if a process dies
//! in between, another one sends them again. A second message costs only a lookup. Messages that the transport loses
//! are found by `lost`.

use super::database_poll::DatabasePoll;
use super::lost::Shortening;
use super::prefetched::Prefetched;
use crate::door::failpoint;
use crate::error::StoreResult;
use crate::store::postgres::Shared;
use crate::store::postgres::connection::retry::Trouble;
use crate::store::postgres::rows::{self, cell};
use crate::supervise::lock;
use crate::transport::{Away, DEAD_LETTERS, MessageId, Note, Sender, Transport};
use fernery_core::{JobId, StreamName};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, info, warn};
use uuid::Uuid;

/// Rows of the outbox taken at once. A row is what one statement made claimable.
const ROWS: i64 = 32;
/// Jobs per send; checked before each row, so the last row may exceed it. The transaction stays open during the send,
/// so it must be short.
const JOBS: usize = 5_000;
/// How often the outbox and lost messages are checked without a wake-up.
const INTERVAL: Duration = Duration::from_secs(1);
/// How often lost messages are looked for while the connection holds.
const CHECK: Duration = Duration::from_secs(2);
/// The delete need not be durable: rows that come back after a crash are sent twice.
pub(crate) const BEGIN: &str = "BEGIN; SET LOCAL synchronous_commit = off";

pub(crate) struct Messaging {
    pub(crate) transport: Arc<dyn Transport>,
    /// Whether messages go out now.
    up: AtomicBool,
    due: Notify,
    pub(crate) database_poll: DatabasePoll,
    /// Streams that may have lost messages, until that is written down.
    pub(crate) suspects: Mutex<HashSet<StreamName>>,
    /// The warning about another Redis was logged.
    pub(crate) told_of_others: AtomicBool,
    pub(crate) prefetched: Prefetched,
}

impl Messaging {
    pub(crate) fn new(transport: Arc<dyn Transport>) -> Self {
        Self {
            transport,
            up: AtomicBool::new(false),
            due: Notify::new(),
            database_poll: DatabasePoll::default(),
            suspects: Mutex::default(),
            told_of_others: AtomicBool::new(false),
            prefetched: Prefetched::default(),
        }
    }

    /// Messages of these streams may be lost even if the newest id looks right: the relay checks them.
    pub(crate) fn suspect(&self, streams: Vec<StreamName>) {
        lock(&self.suspects).extend(streams);
        self.due.notify_one();
    }

    /// There is something to send. False if nothing is being sent now: then nobody else wakes waiting claims.
    pub(crate) fn nudge(&self) -> bool {
        self.due.notify_one();
        self.up.load(Ordering::Relaxed)
    }
}

/// Why a round ended early.
pub(crate) enum Stop {
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
pub(crate) async fn relay(shared: Arc<Shared>) {
    let Some(messaging) = &shared.messaging else { return };
    let mut shortening = Shortening::default();
    // Before the first message: a stream that was sent to counts as one that was told of.
    while let Err(trouble) = shared.tell_of_what_waits().await {
        warn!(?trouble, "the Redis relay cannot use the database; messages wait, will retry");
        sleep(shared.settings.chance.jittered(INTERVAL)).await;
    }
    loop {
        match messaging.transport.sender().await {
            Ok(sender) => {
                let stop = shared.relay_over(messaging, sender).await;
                messaging.up.store(false, Ordering::Relaxed);
                match stop {
                    Stop::Transport(away) => {
                        warn!(%away, "the Redis relay is down; messages wait, claims go to the database");
                    }
                    Stop::Database(trouble) => {
                        warn!(?trouble, "the Redis relay cannot use the database; messages wait, will retry")
                    }
                }
                // Otherwise claims that wait for a message would wait until the backstop poll.
                shared.signals.parking.nudge_all();
            }
            Err(away) => debug!(%away, "cannot connect to Redis; will retry"),
        }
        if let Err(trouble) = shared.shorten_outbox(&mut shortening).await {
            debug!(?trouble, "could not trim the outbox; will retry");
        }
        let _ = timeout(shared.settings.chance.jittered(INTERVAL), messaging.due.notified()).await;
        sleep(shared.settings.chance.jittered(INTERVAL / 4)).await;
    }
}

impl Shared {
    /// Sends until one side fails.
    async fn relay_over(&self, messaging: &Messaging, mut sender: Box<dyn Sender>) -> Stop {
        // What waited for this may be about jobs that have ended meanwhile.
        let mut behind = true;
        let sent = async {
            loop {
                self.look_for_losses(messaging, &mut *sender).await?;
                let next_check = Instant::now() + CHECK;
                while Instant::now() < next_check {
                    self.write_suspects(messaging).await?;
                    // In turns: neither waits for the other's backlog, nor the next check for both.
                    let more = self.relay_once(&mut *sender, behind).await?;
                    behind &= more;
                    if !messaging.up.swap(true, Ordering::Relaxed) {
                        info!("Redis relay is up: sending messages");
                    }
                    if self.resend(&mut *sender).await? || more {
                        continue;
                    }
                    let wait = next_check.saturating_duration_since(Instant::now()).min(INTERVAL);
                    let _ = timeout(wait, messaging.due.notified()).await;
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
            let params: [rows::Param<'_>; 2] = [&ROWS, &DEAD_LETTERS];
            session.begin_with(BEGIN, include_str!("../sql/outbox_take_behind.sql"), &params).await?
        } else {
            session.begin_with(BEGIN, include_str!("../sql/outbox_take.sql"), &[&ROWS]).await?
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
            let stream = rows::stream(row, 1)?;
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
        session.commit_with(include_str!("../sql/outbox_sent.sql"), &[&ids, &streams, &ms, &n]).await?;
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
        all.ok_or_else(|| Stop::Transport(Away("Redis streams disappear as soon as they are created".into())))
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

//! `GET /events`: tells browsers that something has changed, never what. They ask for the page again.
//!
//! One reader for each process looks at most once a second at how far each topic has come, and only while somebody listens. A
//! page carries how far everything had come before it was made (a word for each topic), and its stream begins there (`?known=`); a
//! browser that comes back says what it knew (`Last-Event-ID`). Either is compared with what is there now, so nothing is missed
//! before the stream opens, over a broken connection or a restart.

use super::reply::PageReply;
use super::sign_in;
use super::visit::{Shown, Visit};
use crate::http::Server;
use crate::http::problem::{Code, Refusal};
use bytes::Bytes;
use fernery_engine::pipeline::heads::heads;
use fernery_engine::{StoreResult, door};
use sha2::{Digest, Sha256};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tracing::debug;

/// How often the reader looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A page is made with what was seen so lately.
const RECENT: Duration = Duration::from_secs(2);
/// While a run is under way, its topic changes this often: its executor says how far it is.
const RUNS_EVERY: Duration = Duration::from_secs(3);
/// A sign of life, so that a browser and a proxy keep the stream open; then the session is looked at, too.
const ALIVE_EVERY: Duration = Duration::from_secs(15);
/// How long a browser waits before it connects again.
const RETRY_MS: u64 = 2_000;
/// Streams of a process at once.
const STREAMS_MAX: usize = 2_000;
/// Streams of one session at once: a browser has one, however many tabs it has.
pub(crate) const STREAMS_OF_SESSION_MAX: usize = 8;

/// What a page may follow. A page names them in `data-live`.
/// `jobs` is where jobs stand and how far acts on all that match are, `beats` what is heard of those that work: heartbeats, progress, wishes to
/// cancel, and signs of life of processes.
const TOPICS: [&str; 8] = ["tickets", "inbox", "manifests", "runs", "jobs", "beats", "processes", "tokens"];

/// How far each topic has come: a word each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Vector([String; TOPICS.len()]);

impl Vector {
    /// The word of each topic.
    fn words(&self) -> impl Iterator<Item = (&'static str, String)> {
        TOPICS.iter().zip(&self.0).map(|(topic, at)| (*topic, format!("{topic}-{at}")))
    }

    fn id(&self) -> String {
        self.words().map(|(_, word)| word).collect::<Vec<_>>().join(".")
    }

    /// The topics that are not as somebody knew them.
    fn changed_since(&self, known: &str) -> Vec<&'static str> {
        let known: Vec<&str> = known.split('.').collect();
        self.words().filter(|(_, word)| !known.contains(&word.as_str())).map(|(topic, _)| topic).collect()
    }
}

async fn look(server: &Server) -> StoreResult<Vector> {
    let store = server.engine().store();
    let heads = heads(store).await?;
    let (streams, counts) = store.streams_beyond(None).await?;
    let alive = store.processes().await?;
    let mut processes: Vec<String> = alive.iter().map(|of| of.process.process_id.to_string()).collect();
    processes.sort_unstable();
    let mut seen: Vec<i64> = alive.iter().map(|of| of.seen_at.as_millis()).collect();
    seen.sort_unstable();
    let beat = if heads.active { door::since_boot().as_secs() / RUNS_EVERY.as_secs() + 1 } else { 0 };
    let word = |of: &dyn std::fmt::Debug| {
        let hash = Sha256::digest(format!("{of:?}"));
        fernery_core::hex(&hash[..4])
    };
    Ok(Vector([
        word(&heads.journal),
        word(&(&heads.journal, &heads.capture)),
        word(&heads.manifest),
        word(&beat),
        word(&(streams, counts, &heads.paused, heads.held, &heads.acts)),
        word(&(heads.held, heads.versions, seen)),
        word(&processes),
        word(&(&heads.tokens, &heads.sessions)),
    ]))
}

/// The streams of this process, and the reader behind them.
#[derive(Debug)]
pub struct LiveStreams {
    told: watch::Sender<Vector>,
    closing: watch::Sender<bool>,
    /// Counts the sessions and tokens that this process ended.
    ended: watch::Sender<u64>,
    listeners: Mutex<Listeners>,
}

#[derive(Debug, Default)]
struct Listeners {
    /// The session of each.
    sessions: Vec<String>,
    /// Whether the reader runs.
    read: bool,
    /// When what is told was looked for last.
    looked_at: Option<Instant>,
}

impl Default for LiveStreams {
    fn default() -> Self {
        Self {
            told: watch::channel(Vector::default()).0,
            closing: watch::channel(false).0,
            ended: watch::channel(0).0,
            listeners: Mutex::default(),
        }
    }
}

impl LiveStreams {
    /// Ends every stream; there are no more.
    pub fn close(&self) {
        self.closing.send_replace(true);
    }

    /// A session or a token was ended here: its streams end now. One that another process ended is noticed at the next sign of life.
    pub fn ended(&self) {
        self.ended.send_modify(|ended| *ended += 1);
    }

    pub fn listening(&self) -> usize {
        self.listeners().sessions.len()
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far everything has come, for a page that is about to be made: never further than what the page will show. Empty if that
    /// cannot be said; whoever knows nothing is told of everything.
    pub(super) async fn before(server: &Server) -> String {
        let live = &server.live;
        let recent = |at: Instant| at.elapsed() < RECENT;
        if !live.listeners().looked_at.is_some_and(recent) {
            live.look(server).await;
        }
        let told = live.told.borrow();
        if *told == Vector::default() { String::new() } else { told.id() }
    }

    /// Looks, and tells whoever listens what has changed.
    async fn look(&self, server: &Server) {
        let at = door::stop_watch();
        match look(server).await {
            Ok(vector) => {
                self.listeners().looked_at = Some(at);
                self.told.send_if_modified(|told| {
                    let changed = *told != vector;
                    *told = vector;
                    changed
                });
            }
            // The store says why in the log; browsers are told when it answers again.
            Err(error) => debug!(%error, "could not look for changes"),
        }
    }

    /// Adds a listener, and starts the reader with the first.
    fn listen(server: &Arc<Server>, session: &str) -> Option<Listening> {
        let live = &server.live;
        let mut listeners = live.listeners();
        let of_session = listeners.sessions.iter().filter(|other| *other == session).count();
        if listeners.sessions.len() >= STREAMS_MAX || of_session >= STREAMS_OF_SESSION_MAX {
            return None;
        }
        listeners.sessions.push(session.to_string());
        if !std::mem::replace(&mut listeners.read, true) {
            tokio::spawn(read(server.clone()));
        }
        Some(Listening { live: live.clone(), session: session.to_string() })
    }
}

/// A listener, as long as it lives.
struct Listening {
    live: Arc<LiveStreams>,
    session: String,
}

impl Drop for Listening {
    fn drop(&mut self) {
        let mut listeners = self.live.listeners();
        if let Some(n) = listeners.sessions.iter().position(|other| *other == self.session) {
            listeners.sessions.swap_remove(n);
        }
    }
}

/// The reader: until nobody listens any more.
async fn read(server: Arc<Server>) {
    loop {
        server.live.look(&server).await;
        tokio::time::sleep(LOOK_EVERY).await;
        let mut listeners = server.live.listeners();
        if listeners.sessions.is_empty() {
            listeners.read = false;
            return;
        }
    }
}

/// `GET /events`
pub(super) async fn events(visit: Visit) -> Shown {
    let refuse = || {
        Refusal::new(
            Code::TooManyWaiting,
            "too many open pages follow changes; this one does not update by itself",
        )
    };
    let signed_in = visit.signed_in.as_ref().ok_or_else(refuse)?;
    let listening = LiveStreams::listen(&visit.server, &signed_in.session.session_id).ok_or_else(refuse)?;
    let (chunks, body) = mpsc::channel(4);
    // A stream that is opened again says what it was told; a new one, what its page shows.
    let known = visit.last_event.clone().or_else(|| visit.query.filled("known").map(str::to_string));
    tokio::spawn(tell(visit, listening, known, chunks));
    Ok(PageReply::events(body))
}

/// Tells one browser until it is gone, its session has ended or the server stops.
async fn tell(visit: Visit, _listening: Listening, known: Option<String>, chunks: mpsc::Sender<Bytes>) {
    let live = visit.server.live.clone();
    let (mut told, mut closing) = (live.told.subscribe(), live.closing.subscribe());
    let mut ended = live.ended.subscribe();
    let (mut known, mut looked_at) = (known, door::stop_watch());
    let mut hello = format!("retry: {RETRY_MS}\n\n");
    loop {
        let now = told.borrow_and_update().clone();
        // Before the first look there is nothing to tell.
        if now != Vector::default() {
            let changed = known.as_deref().map_or(Vec::new(), |known| now.changed_since(known));
            if known.is_none() || !changed.is_empty() {
                hello.push_str(&format!("id: {}\nevent: changed\ndata: {}\n\n", now.id(), changed.join(" ")));
            }
            known = Some(now.id());
        }
        if !hello.is_empty() && chunks.send(Bytes::from(std::mem::take(&mut hello))).await.is_err() {
            return;
        }
        let quiet = tokio::select! {
            _ = told.changed() => false,
            _ = ended.changed() => true,
            _ = closing.wait_for(|closing| *closing) => return,
            () = chunks.closed() => return,
            () = tokio::time::sleep(ALIVE_EVERY) => true,
        };
        if quiet {
            hello.push_str(": alive\n\n");
        }
        // Whoever signed out, or lost the token, is told nothing more.
        if quiet || looked_at.elapsed() >= ALIVE_EVERY {
            if !sign_in::still(&visit).await {
                return;
            }
            looked_at = door::stop_watch();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_browser_knew_is_compared_topic_by_topic() {
        let (vector, mut other) = (Vector(TOPICS.map(str::to_string)), Vector(TOPICS.map(str::to_string)));
        assert_eq!(vector.changed_since(&vector.id()), [""; 0]);
        (other.0[1], other.0[6]) = ("x".into(), "y".into());
        assert_eq!(vector.changed_since(&other.id()), ["inbox", "processes"]);
        assert_eq!(vector.changed_since(""), TOPICS);
        assert_eq!(
            vector.changed_since("inbox-inbox.tickets-tickets"),
            TOPICS[2..],
            "an older version knew fewer"
        );
    }
}

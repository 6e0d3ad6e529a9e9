//! `GET /events`: tells browsers that something has changed, never what. They ask for the page again.
//!
//! One reader for each process looks at most once a second at how far each topic has come, and only while somebody listens. A
//! browser that comes back says what it knew (`Last-Event-ID`, a word for each topic); it is compared with what is there now, so
//! nothing is missed over a broken connection or a restart.

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
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tracing::debug;

/// How often the reader looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// While a run is under way, its topic changes this often: its executor says how far it is.
const RUNS_EVERY: Duration = Duration::from_secs(3);
/// A sign of life, so that a browser and a proxy keep the stream open; then the session is looked at, too.
const ALIVE_EVERY: Duration = Duration::from_secs(15);
/// How long a browser waits before it connects again.
const RETRY_MS: u64 = 2_000;
/// Streams of a process at once.
const STREAMS_MAX: usize = 2_000;
/// Streams of one session at once: a browser has one, however many tabs it has.
const STREAMS_OF_SESSION_MAX: usize = 8;

/// What a page may follow. A page names them in `data-live`.
const TOPICS: [&str; 5] = ["tickets", "inbox", "runs", "jobs", "processes"];

/// How far each topic has come: a word each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Vector([String; TOPICS.len()]);

impl Vector {
    fn id(&self) -> String {
        self.0.join(".")
    }

    /// The topics that are not as somebody knew them.
    fn changed_since(&self, known: &str) -> Vec<&'static str> {
        let known: Vec<&str> = known.split('.').collect();
        let differs = |(n, _): &(usize, &&str)| known.get(*n) != Some(&self.0[*n].as_str());
        TOPICS.iter().enumerate().filter(differs).map(|(_, topic)| *topic).collect()
    }
}

async fn look(server: &Server) -> StoreResult<Vector> {
    let store = server.engine().store();
    let heads = heads(store).await?;
    let (streams, counts) = store.streams_beyond(None).await?;
    let mut processes: Vec<String> =
        store.processes().await?.iter().map(|alive| alive.process.process_id.to_string()).collect();
    processes.sort_unstable();
    let beat = if heads.active { door::since_boot().as_secs() / RUNS_EVERY.as_secs() + 1 } else { 0 };
    let word = |of: &dyn std::fmt::Debug| {
        let hash = Sha256::digest(format!("{of:?}"));
        hash.iter().take(4).map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    Ok(Vector([
        word(&heads.journal),
        word(&(&heads.journal, &heads.capture)),
        word(&beat),
        word(&(streams, counts)),
        word(&processes),
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
        match look(&server).await {
            Ok(vector) => {
                server.live.told.send_if_modified(|told| {
                    let changed = *told != vector;
                    *told = vector;
                    changed
                });
            }
            // The store says why in the log; browsers are told when it answers again.
            Err(error) => debug!(%error, "could not look for changes"),
        }
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
    let known = visit.last_event.clone();
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
        let vector = Vector(["a", "b", "c", "d", "e"].map(str::to_string));
        assert_eq!(vector.changed_since("a.b.c.d.e"), [""; 0]);
        assert_eq!(vector.changed_since("a.x.c.d.y"), ["inbox", "processes"]);
        assert_eq!(vector.changed_since(""), TOPICS);
        assert_eq!(vector.changed_since("a.b"), ["runs", "jobs", "processes"], "an older version knew fewer");
    }
}

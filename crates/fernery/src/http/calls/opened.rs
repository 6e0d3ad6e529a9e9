//! New streams: how many a token may open, and how many there may be in all.
//!
//! The store counts, in the transaction that opens the stream ([`open_streams`](fernery_engine::store::Streams::open_streams)).
//! This process remembers which streams are open, so that a stream in use costs nothing. It forgets a stream long before the
//! store does.

use crate::config::duration::in_words;
use crate::http::problem::{Code, Refusal, Refused};
use crate::http::wire::answer::Call;
use fernery_core::{StreamName, limits};
use fernery_engine::door;
use fernery_engine::store::{NewJob, StreamsOpened};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a stream counts as open without asking the store: much less than the store keeps an empty stream.
const KNOWN: Duration = Duration::from_secs(600);
/// Streams that are remembered; if there are more, all are forgotten and asked for again.
const KNOWN_MAX: usize = 2 * limits::STREAMS_MAX;

/// Open streams, and when the store last said so.
#[derive(Debug, Default)]
pub(crate) struct OpenedStreams(Mutex<HashMap<StreamName, Instant>>);

impl OpenedStreams {
    fn known(&self) -> MutexGuard<'_, HashMap<StreamName, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The streams of these jobs that the store must be asked about, each with the place of its first job.
    fn unknown(&self, jobs: &[NewJob], now: Instant) -> HashMap<StreamName, usize> {
        let known = self.known();
        let is_known = |name: &StreamName| known.get(name).is_some_and(|at| now.duration_since(*at) < KNOWN);
        let mut unknown = HashMap::new();
        let mut last = None;
        for (n, job) in jobs.iter().enumerate() {
            // Most arrays have one stream.
            if last.replace(&job.stream) != Some(&job.stream) && !is_known(&job.stream) {
                unknown.entry(job.stream.clone()).or_insert(n);
            }
        }
        unknown
    }

    fn remember(&self, names: impl Iterator<Item = StreamName>, now: Instant) {
        let mut known = self.known();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.extend(names.map(|name| (name, now)));
    }
}

/// Opens the new streams of these jobs, or refuses the whole call.
pub(in crate::http) async fn open(call: &Call, jobs: &[NewJob], many: bool) -> Result<(), Refused> {
    let (server, now) = (&call.server, door::stop_watch());
    let unknown = server.opened.unknown(jobs, now);
    if unknown.is_empty() {
        return Ok(());
    }
    let Err((new, said)) = ask(call, unknown.keys().cloned().collect()).await? else {
        server.opened.remember(unknown.into_keys(), now);
        return Ok(());
    };
    let place = unknown.get(&new).copied().unwrap_or(0);
    let pointer = if many { format!("/{place}/stream") } else { "/stream".to_string() };
    Err(Refusal::field(Code::TooManyStreams, pointer, said))
}

/// Opens a stream that has no job yet, or refuses the call.
pub(in crate::http) async fn open_one(call: &Call, name: &StreamName) -> Result<(), Refused> {
    let asked = ask(call, vec![name.clone()]).await?;
    asked.map_err(|(_, said)| Refusal::new(Code::TooManyStreams, said))
}

/// Opens the new ones of these streams, or says which one is new and what stands in its way.
async fn ask(call: &Call, names: Vec<StreamName>) -> Result<Result<(), (StreamName, String)>, Refused> {
    let server = &call.server;
    let by = call.caller.0.as_ref().map(|token| token.row.token_id.clone());
    let store = server.engine().store();
    let (new, said) = match store.open_streams(names, by, server.settings.streams_max).await? {
        StreamsOpened::Yes => return Ok(Ok(())),
        StreamsOpened::TooManyInAll(new) => {
            (new, format!("the server allows at most {} streams", server.settings.streams_max.in_all))
        }
        StreamsOpened::TooManyOfToken(new) => {
            (new, format!("one token may create at most {} streams", server.settings.streams_max.of_token))
        }
    };
    let forgotten = server.engine().settings().retention.saturating_add(limits::STREAM_FORGOTTEN);
    let detail = format!(
        "stream {new} is new, and {said}: use an existing stream and put what differs into the payload. An \
        empty stream is removed {} after its last use, unless it is paused, redacted or has dead jobs: then resume \
        it, set `redact` to false, or clear them with `fernery dlq redrive` or `fernery dlq purge`",
        in_words(forgotten)
    );
    Ok(Err((new, detail)))
}

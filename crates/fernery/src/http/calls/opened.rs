//! New streams: how many a token may open, and how many there may be in all.
//!
//! The store counts, in one transaction with the opening ([`open_streams`](fernery_engine::store::Streams::open_streams)). Here
//! is remembered what it has said yes to, so that a stream in use costs nothing. That is forgotten long before the store
//! forgets a stream.

use crate::config::duration::told;
use crate::http::problem::{Code, Refusal, Refused};
use crate::http::wire::answer::Call;
use fernery_core::{StreamName, limits};
use fernery_engine::door;
use fernery_engine::store::{NewJob, StreamsOpened};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a stream is known to be there without asking: much less than the store keeps an empty one.
const KNOWN: Duration = Duration::from_secs(600);
/// Streams that are remembered; beyond it all are asked for again.
const KNOWN_MAX: usize = 2 * limits::STREAMS_MAX;

/// Streams that are there, and when the store last said so.
#[derive(Debug, Default)]
pub(crate) struct OpenedStreams(Mutex<HashMap<StreamName, Instant>>);

impl OpenedStreams {
    fn known(&self) -> MutexGuard<'_, HashMap<StreamName, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those of the jobs' streams that the store is to be asked about, each with the place of its first job.
    fn unknown(&self, jobs: &[NewJob], now: Instant) -> HashMap<StreamName, usize> {
        let known = self.known();
        let is_known = |name: &StreamName| known.get(name).is_some_and(|at| now.duration_since(*at) < KNOWN);
        let mut unknown = HashMap::new();
        let mut last = None;
        for (n, job) in jobs.iter().enumerate() {
            // Arrays are mostly of one stream.
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

/// Opens the streams of these jobs where they are new, or refuses all of the call.
pub(in crate::http) async fn open(call: &Call, jobs: &[NewJob], many: bool) -> Result<(), Refused> {
    let (server, now) = (&call.server, door::stop_watch());
    let unknown = server.opened.unknown(jobs, now);
    if unknown.is_empty() {
        return Ok(());
    }
    let by = call.caller.0.as_ref().map(|token| token.row.token_id.clone());
    let names = unknown.keys().cloned().collect();
    let store = server.engine().store();
    let (new, said) = match store.open_streams(names, by, server.settings.streams_max).await? {
        StreamsOpened::Yes => {
            server.opened.remember(unknown.into_keys(), now);
            return Ok(());
        }
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
        empty stream is removed {} after its last use, unless it is paused or has dead jobs: then resume \
        it, and clear them with `fernery dlq redrive` or `fernery dlq purge`",
        told(forgotten)
    );
    let place = unknown.get(&new).copied().unwrap_or(0);
    let pointer = if many { format!("/{place}/stream") } else { "/stream".to_string() };
    Err(Refusal::field(Code::TooManyStreams, pointer, detail))
}

//! Prefetched messages that a claim did not use, and streams that are not worth reading.
//!
//! A claim of large jobs takes fewer than it asked for and cannot unread the other messages: the next claim of this
//! process uses them first. Messages that nobody uses soon are sent again (`sweep`), so that other processes get them.

use crate::supervise::lock;
use crate::transport::Hint;
use fernery_core::StreamName;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

#[derive(Default)]
pub(crate) struct Prefetched {
    kept: Mutex<HashMap<StreamName, VecDeque<(Instant, Hint)>>>,
    paused: Mutex<HashSet<StreamName>>,
}

/// Messages taken for a claim, and how many of them each of its streams has.
pub(crate) struct Taken {
    pub(crate) hints: Vec<(Instant, Hint)>,
    pub(crate) of_each: Vec<usize>,
}

impl Prefetched {
    /// The paused streams, as far as this process knows. Old knowledge costs a useless read, or a missed one.
    pub(crate) fn are_paused(&self, streams: HashSet<StreamName>) {
        *lock(&self.paused) = streams;
    }

    pub(crate) fn is_paused(&self, stream: &StreamName, paused: bool) {
        let mut known = lock(&self.paused);
        if paused {
            known.insert(stream.clone());
        } else {
            known.remove(stream);
        }
    }

    /// Those of the streams that are worth reading.
    pub(crate) fn open<'a>(&self, streams: &'a [StreamName]) -> Cow<'a, [StreamName]> {
        let paused = lock(&self.paused);
        if streams.iter().any(|stream| paused.contains(stream)) {
            streams.iter().filter(|stream| !paused.contains(*stream)).cloned().collect()
        } else {
            Cow::Borrowed(streams)
        }
    }

    /// Up to `max` messages, earlier streams first.
    pub(crate) fn take(&self, streams: &[StreamName], max: usize) -> Taken {
        let mut kept = lock(&self.kept);
        let (mut hints, mut of_each) = (Vec::new(), vec![0; streams.len()]);
        if kept.is_empty() {
            return Taken { hints, of_each };
        }
        for (stream, taken) in streams.iter().zip(&mut of_each) {
            let Some(of_stream) = kept.get_mut(stream) else { continue };
            *taken = of_stream.len().min(max - hints.len());
            hints.extend(of_stream.drain(..*taken));
            if of_stream.is_empty() {
                kept.remove(stream);
            }
        }
        Taken { hints, of_each }
    }

    pub(crate) fn keep(&self, hints: impl IntoIterator<Item = (Instant, Hint)>) {
        let mut kept = lock(&self.kept);
        for (since, hint) in hints {
            kept.entry(hint.note.stream.clone()).or_default().push_back((since, hint));
        }
    }

    /// Messages that were kept for so long that no claim of this process needs them.
    pub(crate) fn take_old(&self, age: Duration, now: Instant) -> Vec<(StreamName, Vec<Hint>)> {
        let mut old = Vec::new();
        lock(&self.kept).retain(|stream, of_stream| {
            let is_old = |(since, _): &(Instant, Hint)| *since + age <= now;
            let hints: Vec<Hint> =
                of_stream.iter().filter(|kept| is_old(kept)).map(|(_, hint)| hint.clone()).collect();
            if !hints.is_empty() {
                of_stream.retain(|kept| !is_old(kept));
                old.push((stream.clone(), hints));
            }
            !of_stream.is_empty()
        });
        old
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::{MessageId, Note};
    use fernery_core::JobId;

    fn hint(stream: &str, n: i64) -> Hint {
        let job_id = JobId::from_uuid(uuid::Uuid::nil());
        let note = Note { stream: StreamName::stored(stream), job_id, place: n, version: 0 };
        Hint { message: MessageId { ms: 1, n }, note }
    }

    fn places(hints: &[(Instant, Hint)]) -> Vec<i64> {
        hints.iter().map(|(_, hint)| hint.note.place).collect()
    }

    #[test]
    fn what_was_kept_is_had_once_in_the_order_of_the_streams_or_is_old() {
        let (prefetched, now) = (Prefetched::default(), Instant::now());
        let streams = [StreamName::stored("a"), StreamName::stored("b")];
        prefetched.keep([hint("b", 1), hint("a", 2), hint("a", 3)].map(|hint| (now, hint)));
        let taken = prefetched.take(&streams, 2);
        assert_eq!((places(&taken.hints), taken.of_each), (vec![2, 3], vec![2, 0]));
        assert_eq!(prefetched.take_old(Duration::from_secs(1), now), []);
        let old = prefetched.take_old(Duration::from_secs(1), now + Duration::from_secs(1));
        assert_eq!(old, [(streams[1].clone(), vec![hint("b", 1)])]);
        assert_eq!(places(&prefetched.take(&streams, 2).hints), [0; 0]);
    }

    #[test]
    fn a_paused_stream_is_left_out() {
        let prefetched = Prefetched::default();
        let streams = [StreamName::stored("a"), StreamName::stored("b")];
        prefetched.is_paused(&streams[0], true);
        assert_eq!(*prefetched.open(&streams), streams[1..]);
        prefetched.are_paused(HashSet::new());
        assert_eq!(*prefetched.open(&streams), streams);
    }
}

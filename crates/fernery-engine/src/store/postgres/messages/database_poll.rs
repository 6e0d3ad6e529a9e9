//! Decides when a claim reads the database although there are messages. Without this, jobs without a message could wait
//! for ever behind jobs that have one.

use crate::supervise::lock;
use fernery_core::StreamName;
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// At this interval one claim batch of a stream ignores messages and takes its jobs from the database.
const POLL_EVERY: Duration = Duration::from_secs(2);
/// But at most one batch in this many: on a quiet stream every claim would ignore its message.
const CLAIMS_BETWEEN: u32 = 5;
/// Unless this much time has passed.
const POLL_AT_LATEST: Duration = Duration::from_secs(4);
/// Streams that are remembered; beyond that all are forgotten.
const STREAMS_MAX: usize = 10_000;

#[derive(Default)]
pub(crate) struct DatabasePoll {
    known: Mutex<HashMap<StreamName, LastPoll>>,
}

/// When the database was last read for a stream, past its messages.
#[derive(Clone, Copy)]
struct LastPoll {
    at: Instant,
    claims_since: u32,
    /// A claim past the messages had all it wanted before it came to this stream.
    passed_over: Option<Instant>,
}

/// What was known of streams before a claim asked past their messages.
pub(crate) struct Before(Vec<Option<LastPoll>>);

impl DatabasePoll {
    /// Whether it is time for a claim over these streams that goes by the database alone.
    pub(crate) fn is_due(&self, streams: &[StreamName], now: Instant) -> bool {
        let mut known = lock(&self.known);
        if known.len() >= STREAMS_MAX {
            known.clear();
        }
        let mut due = false;
        for (place, stream) in streams.iter().enumerate() {
            let new = LastPoll { at: now, claims_since: 0, passed_over: None };
            let polled = known.entry(stream.clone()).or_insert(new);
            polled.claims_since += 1;
            let often = polled.claims_since >= CLAIMS_BETWEEN && now >= polled.at + POLL_EVERY;
            let at_last = polled.claims_since > 1 && now >= polled.at + POLL_AT_LATEST;
            // The last database read stopped before this stream, at one with a backlog: another read would stop there too.
            let in_vain = place > 0 && polled.passed_over.is_some_and(|at| now < at + POLL_EVERY);
            due |= (often || at_last) && !in_vain;
        }
        due
    }

    /// The database is being asked for these streams, past all messages.
    pub(crate) fn begins(&self, streams: &[StreamName], now: Instant) -> Before {
        let mut known = lock(&self.known);
        let polled = LastPoll { at: now, claims_since: 0, passed_over: None };
        Before(streams.iter().map(|stream| known.insert(stream.clone(), polled)).collect())
    }

    /// It gave all that was wanted, the last of it from the stream `last`: what follows was not looked at.
    pub(crate) fn ended_at(&self, last: &StreamName, streams: &[StreamName], before: &Before, now: Instant) {
        let mut known = lock(&self.known);
        let behind = streams.iter().zip(&before.0).skip_while(|(stream, _)| *stream != last).skip(1);
        for (stream, before) in behind {
            if let Some(before) = before {
                known.insert(stream.clone(), LastPoll { passed_over: Some(now), ..*before });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(database_poll: &DatabasePoll, streams: &[StreamName], now: Instant) -> bool {
        (0..CLAIMS_BETWEEN).fold(false, |due, _| database_poll.is_due(streams, now) || due)
    }

    #[test]
    fn a_stream_that_was_not_come_to_is_not_taken_for_polled() {
        let (database_poll, start) = (DatabasePoll::default(), Instant::now());
        let both = [StreamName::stored("a"), StreamName::stored("b")];
        assert!(!claims(&database_poll, &both, start));
        let later = start + POLL_EVERY;
        assert!(claims(&database_poll, &both, later));
        let before = database_poll.begins(&both, later);
        database_poll.ended_at(&both[0], &both, &before, later);
        assert!(!claims(&database_poll, &both, later), "the first was, and would be in the way again");
        assert!(claims(&database_poll, &both[1..], later), "whoever asks for the second alone comes to it");
        let before = database_poll.begins(&both[1..], later);
        database_poll.ended_at(&both[1], &both[1..], &before, later);
        assert!(!claims(&database_poll, &both[1..], later));
    }

    #[test]
    fn a_quiet_stream_is_polled_at_last() {
        let (database_poll, start) = (DatabasePoll::default(), Instant::now());
        let one = [StreamName::stored("a")];
        assert!(!database_poll.is_due(&one, start));
        assert!(!database_poll.is_due(&one, start + POLL_EVERY));
        assert!(database_poll.is_due(&one, start + POLL_AT_LATEST));
    }
}

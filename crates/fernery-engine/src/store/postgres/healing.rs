//! When a claim asks the database although there are messages: jobs that no message tells of must not wait for ever behind
//! those that have one.

use fernery_core::StreamName;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// One claim batch of a stream in this time takes its jobs from the database, whatever messages say.
const HEAL: Duration = Duration::from_secs(2);
/// But no more than one in so many: on a quiet stream every claim would go past its message.
const HEAL_EVERY: u32 = 5;
/// Unless this much time has passed.
const HEAL_AT_LAST: Duration = Duration::from_secs(4);
/// Streams that are remembered; beyond that all are forgotten.
const STREAMS_MAX: usize = 10_000;

#[derive(Default)]
pub(super) struct Healing {
    known: Mutex<HashMap<StreamName, Healed>>,
}

/// When a stream was last asked past its messages.
#[derive(Clone, Copy)]
struct Healed {
    at: Instant,
    claims_since: u32,
    /// A claim past the messages had all it wanted before it came to this stream.
    passed_over: Option<Instant>,
}

/// What was known of streams before a claim asked past their messages.
pub(super) struct Before(Vec<Option<Healed>>);

impl Healing {
    fn lock(&self) -> MutexGuard<'_, HashMap<StreamName, Healed>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is time for a claim over these streams that goes by the database alone.
    pub(super) fn is_due(&self, streams: &[StreamName], now: Instant) -> bool {
        let mut known = self.lock();
        if known.len() >= STREAMS_MAX {
            known.clear();
        }
        let mut due = false;
        for (place, stream) in streams.iter().enumerate() {
            let new = Healed { at: now, claims_since: 0, passed_over: None };
            let healed = known.entry(stream.clone()).or_insert(new);
            healed.claims_since += 1;
            let often = healed.claims_since >= HEAL_EVERY && now >= healed.at + HEAL;
            let at_last = healed.claims_since > 1 && now >= healed.at + HEAL_AT_LAST;
            // Behind a stream with a backlog it would not be come to this time either, over and over.
            let in_vain = place > 0 && healed.passed_over.is_some_and(|at| now < at + HEAL);
            due |= (often || at_last) && !in_vain;
        }
        due
    }

    /// The database is being asked for these streams, past all messages.
    pub(super) fn begins(&self, streams: &[StreamName], now: Instant) -> Before {
        let mut known = self.lock();
        let healed = Healed { at: now, claims_since: 0, passed_over: None };
        Before(streams.iter().map(|stream| known.insert(stream.clone(), healed)).collect())
    }

    /// It gave all that was wanted, the last of it from the stream `last`: what follows was not looked at.
    pub(super) fn ended_at(&self, last: &StreamName, streams: &[StreamName], before: &Before, now: Instant) {
        let mut known = self.lock();
        let behind = streams.iter().zip(&before.0).skip_while(|(stream, _)| *stream != last).skip(1);
        for (stream, before) in behind {
            if let Some(before) = before {
                known.insert(stream.clone(), Healed { passed_over: Some(now), ..*before });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(healing: &Healing, streams: &[StreamName], now: Instant) -> bool {
        (0..HEAL_EVERY).fold(false, |due, _| healing.is_due(streams, now) || due)
    }

    #[test]
    fn a_stream_that_was_not_come_to_is_not_taken_for_healed() {
        let (healing, start) = (Healing::default(), Instant::now());
        let both = [StreamName::stored("a"), StreamName::stored("b")];
        assert!(!claims(&healing, &both, start));
        let later = start + HEAL;
        assert!(claims(&healing, &both, later));
        let before = healing.begins(&both, later);
        healing.ended_at(&both[0], &both, &before, later);
        assert!(!claims(&healing, &both, later), "the first was, and would be in the way again");
        assert!(claims(&healing, &both[1..], later), "whoever asks for the second alone comes to it");
        let before = healing.begins(&both[1..], later);
        healing.ended_at(&both[1], &both[1..], &before, later);
        assert!(!claims(&healing, &both[1..], later));
    }

    #[test]
    fn a_quiet_stream_is_healed_at_last() {
        let (healing, start) = (Healing::default(), Instant::now());
        let one = [StreamName::stored("a")];
        assert!(!healing.is_due(&one, start));
        assert!(!healing.is_due(&one, start + HEAL));
        assert!(healing.is_due(&one, start + HEAL_AT_LAST));
    }
}

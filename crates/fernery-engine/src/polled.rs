//! Remembers which streams were polled, to tell "no worker polls this stream" from "all workers are busy".
//!
//! A client that asks for ever new names must neither fill the memory nor push out the workers that come again and again.
//! So there is room for a number of names; where it is full, what nobody has asked for in a minute goes first, then what
//! was asked for once, the oldest first.

use fernery_core::{StreamName, Timestamp};
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// A stream that nobody has asked for this long has no worker.
pub(crate) const UNPOLLED: Duration = Duration::from_secs(60);
/// Whoever waited for jobs comes back at once, or within this time after an error.
pub(crate) const GONE: Duration = Duration::from_secs(3);
/// Streams that are remembered.
const NAMES_MAX: usize = 10_000;

/// When streams were last asked for.
#[derive(Debug, Default)]
pub(crate) struct Polled {
    known: HashMap<StreamName, Poll>,
    /// Those asked for once, and those asked for again since, oldest first.
    once: BTreeSet<(Timestamp, StreamName)>,
    again: BTreeSet<(Timestamp, StreamName)>,
}

#[derive(Clone, Copy, Debug)]
struct Poll {
    at: Timestamp,
    again: bool,
    /// The last one who waited for it went away without a job.
    left: bool,
}

impl Polled {
    fn line(&mut self, again: bool) -> &mut BTreeSet<(Timestamp, StreamName)> {
        if again { &mut self.again } else { &mut self.once }
    }

    /// Remembers that a stream was asked for.
    pub(crate) fn polled(&mut self, stream: &StreamName, now: Timestamp) {
        let before = self.known.get(stream).copied();
        match before {
            Some(poll) => drop(self.line(poll.again).remove(&(poll.at, stream.clone()))),
            None if self.known.len() >= NAMES_MAX => self.forget_one(now),
            None => {}
        }
        let again = before.is_some();
        self.known.insert(stream.clone(), Poll { at: now, again, left: false });
        self.line(again).insert((now, stream.clone()));
    }

    /// Remembers that the last one who waited for a stream went away without a job of it.
    pub(crate) fn left(&mut self, stream: &StreamName, now: Timestamp) {
        let Some(poll) = self.known.get(stream).copied() else { return };
        self.line(poll.again).remove(&(poll.at, stream.clone()));
        self.line(poll.again).insert((now, stream.clone()));
        self.known.insert(stream.clone(), Poll { at: now, left: true, ..poll });
    }

    /// Whether nobody asks for a stream any more.
    pub(crate) fn is_left(&self, stream: &StreamName, now: Timestamp) -> bool {
        self.known.get(stream).is_none_or(|poll| now.since(poll.at) > if poll.left { GONE } else { UNPOLLED })
    }

    fn forget_one(&mut self, now: Timestamp) {
        let stale = self.again.first().is_some_and(|(at, _)| now.since(*at) > UNPOLLED);
        let line = if stale || self.once.is_empty() { &mut self.again } else { &mut self.once };
        if let Some((_, stream)) = line.pop_first() {
            self.known.remove(&stream);
        }
    }

    /// When a stream was last asked for, as far as this is remembered.
    pub(crate) fn last(&self, stream: &StreamName) -> Option<Timestamp> {
        self.known.get(stream).map(|poll| poll.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn name(n: usize) -> StreamName {
        StreamName::stored(&format!("s{n}"))
    }

    fn is_bounded(polled: &Polled) {
        assert_eq!(polled.known.len(), NAMES_MAX);
        assert_eq!(polled.once.len() + polled.again.len(), NAMES_MAX);
    }

    #[test]
    fn a_worker_that_comes_again_is_not_forgotten_for_names_that_come_once() {
        let mut polled = Polled::default();
        let worker = StreamName::stored("mail");
        polled.polled(&worker, at(1));
        polled.polled(&worker, at(6));
        (0..3 * NAMES_MAX).for_each(|n| polled.polled(&name(n), at(7)));
        assert_eq!(polled.last(&worker), Some(at(6)));
        is_bounded(&polled);
    }

    #[test]
    fn whoever_waited_and_went_is_gone_at_once_and_whoever_got_a_job_is_busy() {
        let (mut polled, mail) = (Polled::default(), StreamName::stored("mail"));
        assert!(polled.is_left(&mail, at(0)));
        polled.polled(&mail, at(10));
        assert!(!polled.is_left(&mail, at(70)));
        assert!(polled.is_left(&mail, at(71)));
        polled.left(&mail, at(80));
        assert!(!polled.is_left(&mail, at(83)), "it may be on its way back");
        assert!(polled.is_left(&mail, at(84)));
        assert_eq!(polled.last(&mail), Some(at(80)));
        polled.polled(&mail, at(90));
        assert!(!polled.is_left(&mail, at(150)));
        polled.left(&StreamName::stored("never"), at(90));
        assert_eq!(polled.last(&StreamName::stored("never")), None);
        assert_eq!((polled.known.len(), polled.once.len() + polled.again.len()), (1, 1));
    }

    #[test]
    fn a_worker_that_comes_after_many_names_is_remembered() {
        let mut polled = Polled::default();
        for round in 0..2 {
            (0..NAMES_MAX).for_each(|n| polled.polled(&name(n), at(round)));
        }
        let worker = StreamName::stored("mail");
        polled.polled(&worker, at(2));
        assert_eq!(polled.last(&worker), Some(at(2)), "though all others came again");
        // What nobody has asked for in a minute makes room, however often it was asked for before.
        polled.polled(&name(NAMES_MAX), at(62));
        assert_eq!(polled.last(&worker), Some(at(2)));
        is_bounded(&polled);
    }
}

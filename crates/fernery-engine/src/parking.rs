//! Claims that wait, and the nudges that wake them.
//!
//! A nudge names a stream and no job: the woken claim asks the store again over all its streams, in its own order. So a
//! nudge that is lost, doubled or late makes a claim slower, never wrong; the engine's backstop poll nudges as well.
//!
//! Each waiting claim is woken by at most one nudge at a time, first come first served, and a nudge that reaches a claim
//! which is just leaving is handed on: of two jobs and two waiters none stays behind.

use crate::door;
use crate::polled::Polled;
use crate::supervise::lock;
use fernery_core::{StreamName, Timestamp};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// Who waits where.
#[derive(Debug, Default)]
pub struct Parking {
    lot: Mutex<Lot>,
    next_ticket: AtomicU64,
}

#[derive(Debug, Default)]
struct Lot {
    /// Each claim stands in the queue of every stream that it asks for.
    waiting: HashMap<StreamName, BTreeMap<u64, Arc<Waiter>>>,
    claims: usize,
    polled: Polled,
}

#[derive(Debug)]
struct Waiter {
    wake: Notify,
    /// Which stream nudged it, until it looks.
    nudged: Mutex<Option<StreamName>>,
}

/// A place in the lot; leaving it is dropping it.
#[derive(Debug)]
pub struct Parked<'a> {
    parking: &'a Parking,
    ticket: u64,
    streams: &'a [StreamName],
    waiter: Arc<Waiter>,
    /// The nudge that the store is being asked about. Whoever hangs up meanwhile hands it on.
    unanswered: Mutex<Option<StreamName>>,
    /// It leaves with a job, and so is busy rather than gone.
    got: AtomicBool,
}

impl Parking {
    /// Takes a place. Ask the store once more *after* this and before waiting, or a job that came between is missed.
    pub fn park<'a>(&'a self, streams: &'a [StreamName]) -> Parked<'a> {
        let ticket = self.next_ticket.fetch_add(1, Ordering::Relaxed);
        let waiter = Arc::new(Waiter { wake: Notify::new(), nudged: Mutex::new(None) });
        let (unanswered, got) = (Mutex::new(None), AtomicBool::new(false));
        let parked = Parked { parking: self, ticket, streams, waiter, unanswered, got };
        parked.stand();
        // Last: whoever sees it counted may count on it to be woken.
        lock(&self.lot).claims += 1;
        parked
    }

    /// Wakes up to `jobs` claims that wait for this stream, and says how many it woke.
    pub fn nudge(&self, stream: &StreamName, jobs: usize) -> usize {
        let mut lot = lock(&self.lot);
        let Some(queue) = lot.waiting.get_mut(stream) else { return 0 };
        let mut left = jobs;
        while left > 0
            && let Some((_, waiter)) = queue.pop_first()
        {
            let mut nudged = lock(&waiter.nudged);
            // Nudged for another stream and not yet looking: it takes one job, so this nudge is for somebody else.
            if nudged.is_none() {
                *nudged = Some(stream.clone());
                waiter.wake.notify_one();
                left -= 1;
            }
        }
        if queue.is_empty() {
            lot.waiting.remove(stream);
        }
        jobs - left
    }

    /// Wakes every waiting claim.
    pub fn nudge_all(&self) {
        for stream in self.streams() {
            self.nudge(&stream, usize::MAX);
        }
    }

    /// The streams that somebody waits for.
    pub fn streams(&self) -> Vec<StreamName> {
        lock(&self.lot).waiting.keys().cloned().collect()
    }

    /// Claims that wait, each counted once, however many streams it asks for.
    pub fn claims(&self) -> usize {
        lock(&self.lot).claims
    }

    /// Remembers that these streams were asked for.
    pub fn polled(&self, streams: &[StreamName], now: Timestamp) {
        let mut lot = lock(&self.lot);
        for stream in streams {
            lot.polled.polled(stream, now);
        }
    }

    /// When a stream was last asked for by anybody, as far as this process knows: `now` where a claim waits for it.
    pub fn last_polled(&self, stream: &StreamName, now: Timestamp) -> Option<Timestamp> {
        let lot = lock(&self.lot);
        if lot.waiting.contains_key(stream) { Some(now) } else { lot.polled.last(stream) }
    }

    /// Whether nobody asks for a stream any more, as far as this process knows.
    pub fn is_left(&self, stream: &StreamName, now: Timestamp) -> bool {
        let lot = lock(&self.lot);
        !lot.waiting.contains_key(stream) && lot.polled.is_left(stream, now)
    }
}

impl Parked<'_> {
    fn stand(&self) {
        let mut lot = lock(&self.parking.lot);
        for stream in self.streams {
            lot.waiting.entry(stream.clone()).or_default().insert(self.ticket, self.waiter.clone());
        }
    }

    /// Waits for a nudge, then stands in line again at its old place. The caller asks the store next, and says so with
    /// [`Parked::answered`] once it has the answer: until then the nudge may still be needed by somebody else.
    pub async fn nudged(&self) {
        self.waiter.wake.notified().await;
        let nudge = lock(&self.waiter.nudged).take();
        *lock(&self.unanswered) = nudge;
        self.stand();
    }

    /// The store has answered what was asked because of the last nudge, with a job of stream `got` or with none. The nudge
    /// is spent, unless the job is another stream's: then the one it was for may still wait, and somebody else looks.
    pub fn answered(&self, got: Option<&StreamName>) {
        let nudge = lock(&self.unanswered).take();
        self.got.store(got.is_some(), Ordering::Relaxed);
        if let (Some(nudge), Some(got)) = (nudge, got)
            && nudge != *got
        {
            self.parking.nudge(&nudge, 1);
        }
    }
}

impl Drop for Parked<'_> {
    fn drop(&mut self) {
        let now = door::wall_clock();
        {
            let mut lot = lock(&self.parking.lot);
            lot.claims -= 1;
            for stream in self.streams {
                if let Some(queue) = lot.waiting.get_mut(stream) {
                    queue.remove(&self.ticket);
                    if queue.is_empty() {
                        lot.waiting.remove(stream);
                        if !self.got.load(Ordering::Relaxed) {
                            lot.polled.left(stream, now);
                        }
                    }
                }
            }
        }
        let owed = [lock(&self.unanswered).take(), lock(&self.waiter.nudged).take()];
        for stream in owed.into_iter().flatten() {
            self.parking.nudge(&stream, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> StreamName {
        StreamName::stored(text)
    }

    #[tokio::test]
    async fn a_nudge_wakes_the_one_who_waited_longest() {
        let parking = Parking::default();
        let streams = [name("a"), name("b")];
        let first = parking.park(&streams);
        let second = parking.park(&streams[..1]);
        parking.nudge(&name("a"), 1);
        first.nudged().await;
        parking.nudge(&name("a"), 2);
        tokio::join!(first.nudged(), second.nudged());
    }

    #[tokio::test]
    async fn a_nudge_to_somebody_who_leaves_is_handed_on() {
        let parking = Parking::default();
        let streams = [name("a")];
        let first = parking.park(&streams);
        let second = parking.park(&streams);
        parking.nudge(&name("a"), 1);
        drop(first);
        second.nudged().await;
    }

    #[tokio::test]
    async fn a_job_in_each_of_two_streams_wakes_two_claims_that_wait_for_both() {
        let parking = Parking::default();
        let streams = [name("a"), name("b")];
        let (first, second) = (parking.park(&streams), parking.park(&streams));
        parking.nudge(&name("a"), 1);
        parking.nudge(&name("b"), 1);
        tokio::join!(first.nudged(), second.nudged());
    }

    #[tokio::test]
    async fn a_nudge_is_handed_on_by_who_leaves_before_the_store_has_answered() {
        let parking = Parking::default();
        let streams = [name("a")];
        let (first, second) = (parking.park(&streams), parking.park(&streams));
        parking.nudge(&name("a"), 1);
        first.nudged().await;
        drop(first);
        second.nudged().await;
        second.answered(None);
    }

    #[test]
    fn whoever_waits_for_a_stream_polls_it_now() {
        let parking = Parking::default();
        let (streams, now) = ([name("a")], Timestamp::from_millis(9));
        let parked = parking.park(&streams);
        assert_eq!(
            parking.last_polled(&streams[0], now),
            Some(now),
            "whatever was polled and forgotten before"
        );
        drop(parked);
        assert_eq!(parking.last_polled(&streams[0], now), None);
    }

    #[test]
    fn leaving_leaves_nothing_behind() {
        let parking = Parking::default();
        let streams = [name("a"), name("b")];
        let parked = parking.park(&streams);
        assert_eq!((parking.claims(), parking.streams().len()), (1, 2), "one claim, in two queues");
        drop(parked);
        assert_eq!(parking.claims(), 0);
        assert!(parking.streams().is_empty());
    }
}

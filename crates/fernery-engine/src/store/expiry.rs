//! When the leases of each stream expire, as far as this process knows. With it a claim finds an expired lease at once,
//! and pays nothing if there is none.
//!
//! Kept in memory: for each stream an instant before which none of its leases runs out. A claim tells of its new leases. A
//! heartbeat tells nothing: the instant is then too early, and costs one look that finds nothing. A look at the database
//! (every pass of the reaper ends with one) replaces what is known.
//!
//! Other processes make leases too. One that was made after the last look lasts for a whole lease, so nothing unknown runs
//! out before the *horizon*, one lease after that look. An attempt with a shorter time-out is known to the process that
//! made it; should that process die as well, the next pass of the reaper finds it.
//!
//! Who decides is the lease row and the database's clock. What is known here only says when to look: wrong, it costs a look
//! or some seconds, never a lease.

use crate::supervise::lock;
use fernery_core::{StreamName, Timestamp};
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// Before everything: nobody has looked yet.
const UNKNOWN: Timestamp = Timestamp::from_millis(0);
/// After everything.
const NEVER: Timestamp = Timestamp::from_millis(i64::MAX);

pub(super) struct Expiries {
    known: Mutex<Known>,
    /// One look at a time: an older one that ended last would forget what a newer one has found.
    looking: tokio::sync::Mutex<()>,
}

struct Known {
    /// As of the last look, and what was told before it began.
    found: HashMap<StreamName, Timestamp>,
    /// Told since the last look began: it may not have seen them.
    told: HashMap<StreamName, Timestamp>,
    /// When the last lease of a stream ran out that could not be settled: it is damaged, or somebody had it in hand. No
    /// claim looks again because of it; the reaper does.
    left: HashMap<StreamName, Timestamp>,
    horizon: Timestamp,
    /// The earliest of all the above.
    earliest: Timestamp,
    /// Looks that have ended.
    looks: usize,
    /// What the clock that decides showed, and when.
    clock: Option<(Timestamp, Instant)>,
}

/// From when on leases of some streams may have run out, and after how many looks that was known.
#[derive(Clone, Copy)]
pub(super) struct Bound {
    pub(super) at: Timestamp,
    looks: usize,
}

/// A look under way.
pub(super) struct Look<'a> {
    expiries: &'a Expiries,
    /// When it began: what runs out while it settles and looks is still to be settled.
    pub(super) since: Instant,
    _alone: tokio::sync::MutexGuard<'a, ()>,
}

/// The leases of one stream.
pub(super) struct OfStream {
    pub(super) stream: StreamName,
    /// When the first runs out that had not by then.
    pub(super) next: Option<Timestamp>,
    /// When the last ran out that had when the look began.
    pub(super) overdue: Option<Timestamp>,
}

/// What a look found, after expired leases were settled.
pub(super) struct Found<'a> {
    /// By the clock that decides.
    pub(super) now: Timestamp,
    pub(super) leases: Vec<OfStream>,
    /// Of which streams they were settled.
    pub(super) settled: Settled<'a>,
    /// How long a lease lasts that another process may make; `None` where there is no other.
    pub(super) others: Option<Duration>,
}

/// Where expired leases were settled.
#[derive(Clone, Copy)]
pub(super) enum Settled<'a> {
    /// Everywhere.
    All,
    /// In these streams.
    Of(&'a [StreamName]),
    /// Nowhere to the end: there were more than one batch.
    Unfinished,
}

fn sooner(of: &mut HashMap<StreamName, Timestamp>, stream: &StreamName, at: Timestamp) {
    match of.get_mut(stream) {
        Some(known) => *known = at.min(*known),
        None => drop(of.insert(stream.clone(), at)),
    }
}

impl Default for Expiries {
    fn default() -> Self {
        let known = Known {
            found: HashMap::new(),
            told: HashMap::new(),
            left: HashMap::new(),
            horizon: UNKNOWN,
            earliest: UNKNOWN,
            looks: 0,
            clock: None,
        };
        Self { known: Mutex::new(known), looking: tokio::sync::Mutex::default() }
    }
}

impl Expiries {
    /// A lease of this stream was made at `now` and runs out at `expires_at`. Call it after the commit. Says whether it
    /// runs out before everything that was known.
    pub(super) fn made(&self, stream: &StreamName, expires_at: Timestamp, now: Timestamp) -> bool {
        let mut known = lock(&self.known);
        known.clock = Some((now, Instant::now()));
        sooner(&mut known.told, stream, expires_at);
        let first = expires_at < known.earliest;
        known.earliest = known.earliest.min(expires_at);
        first
    }

    /// Before this, no lease of these streams runs out.
    pub(super) fn of(&self, streams: &[StreamName]) -> Bound {
        let known = lock(&self.known);
        let each = streams.iter().flat_map(|stream| [known.found.get(stream), known.told.get(stream)]);
        Bound { at: each.flatten().copied().fold(known.horizon, Timestamp::min), looks: known.looks }
    }

    #[cfg(test)]
    pub(super) fn looks(&self) -> usize {
        lock(&self.known).looks
    }

    /// Whether leases of these streams seem to have run out, by what the clock that decides must show by now.
    pub(super) fn seem_due(&self, streams: &[StreamName]) -> bool {
        let at = self.of(streams).at;
        lock(&self.known).now().is_none_or(|now| at <= now)
    }

    /// How long until the first lease may run out; zero if nobody has looked yet.
    pub(super) fn wait(&self) -> Duration {
        let known = lock(&self.known);
        known.now().map_or(Duration::ZERO, |now| known.earliest.since(now))
    }

    /// What the clock that decides must show by now; `None` if nobody has seen it yet.
    pub(super) fn now(&self) -> Option<Timestamp> {
        lock(&self.known).now()
    }

    /// Begins a look. Leases that were told of from here on are kept whatever it finds.
    pub(super) async fn look(&self) -> Look<'_> {
        let alone = self.looking.lock().await;
        let mut known = lock(&self.known);
        let Known { found, told, .. } = &mut *known;
        for (stream, at) in told.drain() {
            sooner(found, &stream, at);
        }
        Look { expiries: self, since: Instant::now(), _alone: alone }
    }

    /// As [`Expiries::look`]; `None` if somebody has looked since the bound was read.
    pub(super) async fn look_after(&self, bound: Bound) -> Option<Look<'_>> {
        let look = self.look().await;
        (lock(&self.known).looks == bound.looks).then_some(look)
    }
}

impl Known {
    fn now(&self) -> Option<Timestamp> {
        self.clock.map(|(shown, at)| shown.after(at.elapsed()))
    }
}

impl Look<'_> {
    pub(super) fn ended(self, found: Found<'_>) {
        let mut known = lock(&self.expiries.known);
        let left_before = std::mem::take(&mut known.left);
        known.found.clear();
        for OfStream { stream, next, overdue } in found.leases {
            let settled = match found.settled {
                Settled::All => true,
                Settled::Of(streams) => streams.contains(&stream),
                Settled::Unfinished => false,
            };
            let left = overdue.filter(|at| settled || left_before.get(&stream) == Some(at));
            if let Some(at) = overdue.filter(|_| left.is_none()).or(next) {
                known.found.insert(stream.clone(), at);
            }
            if let Some(at) = left {
                known.left.insert(stream, at);
            }
        }
        known.horizon = found.others.map_or(NEVER, |lease| found.now.after(lease));
        let each = known.found.values().chain(known.told.values()).copied();
        known.earliest = each.fold(known.horizon, Timestamp::min);
        known.clock = Some((found.now, Instant::now()));
        known.looks += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(60);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000 + seconds * 1_000)
    }

    fn name(text: &str) -> StreamName {
        StreamName::stored(text)
    }

    fn found(now: i64, next: &[(&str, i64)], others: Option<Duration>) -> Found<'static> {
        let one = |(stream, seconds): &(&str, i64)| {
            let (at, now) = (at(*seconds), at(now));
            OfStream {
                stream: name(stream),
                next: Some(at).filter(|at| *at > now),
                overdue: Some(at).filter(|at| *at <= now),
            }
        };
        Found { now: at(now), leases: next.iter().map(one).collect(), settled: Settled::All, others }
    }

    #[tokio::test]
    async fn until_somebody_has_looked_everything_may_have_run_out() {
        let expiries = Expiries::default();
        assert_eq!(expiries.of(&[name("a")]).at, UNKNOWN);
        assert!(expiries.seem_due(&[name("a")]));
        expiries.made(&name("a"), at(60), at(0));
        assert_eq!(expiries.of(&[name("a")]).at, UNKNOWN, "there may be others");
        expiries.look().await.ended(found(0, &[], None));
        assert_eq!(expiries.of(&[name("a")]).at, NEVER);
    }

    #[tokio::test]
    async fn a_lease_that_is_made_during_a_look_is_not_forgotten_by_it() {
        let expiries = Expiries::default();
        expiries.made(&name("a"), at(50), at(0));
        let look = expiries.look().await;
        assert!(!expiries.made(&name("b"), at(60), at(0)), "the first is due sooner");
        look.ended(found(0, &[("c", 70)], None));
        let of = |stream| expiries.of(&[name(stream)]).at;
        assert_eq!((of("a"), of("b"), of("c")), (NEVER, at(60), at(70)), "the first has ended meanwhile");
        assert_eq!(expiries.of(&[name("c"), name("b")]).at, at(60));
        assert!(expiries.made(&name("a"), at(59), at(0)), "now it is the first");
        assert!(!expiries.made(&name("a"), at(61), at(1)));
        assert_eq!(of("a"), at(59));
    }

    #[tokio::test]
    async fn what_other_processes_make_is_looked_for_before_it_can_run_out() {
        let expiries = Expiries::default();
        expiries.look().await.ended(found(0, &[("a", 30)], Some(LEASE)));
        assert_eq!((expiries.of(&[name("a")]).at, expiries.of(&[name("b")]).at), (at(30), at(60)));
        assert!(!expiries.seem_due(&[name("a")]));
        assert!(expiries.wait() <= Duration::from_secs(30) && expiries.wait() > Duration::from_secs(20));
    }

    #[tokio::test]
    async fn what_was_not_asked_for_stays_due_and_what_cannot_be_settled_does_not() {
        let expiries = Expiries::default();
        let asked = [name("a")];
        let leases = [("a", 5), ("b", 6), ("c", 70)];
        expiries.look().await.ended(Found { settled: Settled::Of(&asked), ..found(10, &leases, None) });
        let of = |stream| expiries.of(&[name(stream)]).at;
        assert_eq!((of("a"), of("b"), of("c")), (NEVER, at(6), at(70)));
        let asked = [name("b")];
        expiries.look().await.ended(Found { settled: Settled::Of(&asked), ..found(11, &leases, None) });
        assert_eq!((of("a"), of("b")), (NEVER, NEVER), "both were tried");
        let leases = [("a", 12), ("b", 6)];
        expiries.look().await.ended(Found { settled: Settled::Of(&[]), ..found(13, &leases, None) });
        assert_eq!((of("a"), of("b")), (at(12), NEVER), "another lease has run out since");
        expiries.look().await.ended(Found { settled: Settled::Unfinished, ..found(14, &leases, None) });
        assert_eq!((of("a"), of("b")), (at(12), NEVER));
    }

    #[tokio::test]
    async fn of_many_who_want_to_look_one_does() {
        let expiries = Expiries::default();
        let bound = expiries.of(&[name("a")]);
        expiries.look_after(bound).await.expect("the first").ended(found(0, &[], None));
        assert!(expiries.look_after(bound).await.is_none());
        let left = expiries.look().await;
        drop(left);
        assert!(expiries.look_after(expiries.of(&[])).await.is_some(), "one that failed is no look");
    }
}

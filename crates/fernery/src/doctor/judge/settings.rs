//! Settings that are allowed but harmful.

use super::super::finding::Finding;
use crate::config::duration::show;
use std::time::Duration;

/// With shorter leases, an ordinary pause (garbage collection, a slow disk) costs a lease.
const TTL_COMFORTABLE: Duration = Duration::from_secs(5);
/// With longer leases, a dead worker blocks its job for too long.
const TTL_PATIENT: Duration = Duration::from_secs(300);

/// The three intervals of a lease.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Intervals {
    pub(crate) lease_ttl: Duration,
    pub(crate) heartbeat: Duration,
    pub(crate) reap: Duration,
}

/// Whether the intervals fit each other and are reasonable.
pub(crate) fn leases(set: Intervals) -> Finding {
    const CHECK: &str = "lease_settings";
    let Intervals { lease_ttl, heartbeat, reap } = set;
    let found = format!(
        "leases of {}, heartbeats every {}, reaper every {}",
        show(lease_ttl),
        show(heartbeat),
        show(reap)
    );
    if heartbeat * 2 > lease_ttl {
        let remedy =
            "set heartbeat_interval to half of lease_ttl or less: one lost heartbeat would cost the lease";
        return Finding::problem(CHECK, found, remedy);
    }
    if reap > lease_ttl {
        let remedy = "set reap_interval to lease_ttl or less: the reaper would find expired leases too late";
        return Finding::problem(CHECK, found, remedy);
    }
    if lease_ttl < TTL_COMFORTABLE {
        let remedy =
            "set lease_ttl to 5s or more: with a shorter lease, an ordinary pause of a worker loses it";
        return Finding::warning(CHECK, found, remedy);
    }
    if lease_ttl > TTL_PATIENT {
        let remedy = "set lease_ttl to 5m or less and let workers send heartbeats: a dead worker keeps its \
            job until the lease expires";
        return Finding::warning(CHECK, found, remedy);
    }
    if reap * 2 > lease_ttl {
        let remedy = "set reap_interval to half of lease_ttl or less, or leave it out";
        return Finding::warning(CHECK, found, remedy);
    }
    Finding::ok(CHECK, found)
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Level::{self, Ok, Problem, Warning};
    use super::*;

    #[test]
    fn intervals_that_hurt_are_told() {
        let cases: &[(u64, u64, u64, Level)] = &[
            (60_000, 20_000, 5_000, Ok),
            (5_000, 1_666, 2_500, Ok),
            (300_000, 100_000, 5_000, Ok),
            (4_999, 1_000, 1_000, Warning),
            (300_001, 100_000, 5_000, Warning),
            (60_000, 20_000, 31_000, Warning),
            (60_000, 30_001, 5_000, Problem),
            (60_000, 30_000, 5_000, Ok),
            (60_000, 20_000, 60_001, Problem),
        ];
        for &(ttl, heartbeat, reap, level) in cases {
            let set = Intervals {
                lease_ttl: Duration::from_millis(ttl),
                heartbeat: Duration::from_millis(heartbeat),
                reap: Duration::from_millis(reap),
            };
            assert_eq!(leases(set).level, level, "{set:?}");
        }
    }
}

//! How long to wait before the same call is sent again.

use crate::door;
use std::time::Duration;

/// The first wait.
const FIRST: Duration = Duration::from_millis(100);
/// The longest wait that is ours to choose.
const LONGEST: Duration = Duration::from_secs(5);
/// The longest that a server may ask for: a typo there must not stop a worker for a day.
const ASKED_MAX: Duration = Duration::from_secs(60);

/// Waits that double, with jitter, so that many clients do not come back at once.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The next wait; at least what the server asked for.
    pub(crate) fn next(&mut self, asked: Option<Duration>) -> Duration {
        let wait = Self::nth(self.failures, door::fraction());
        self.failures = self.failures.saturating_add(1);
        wait.max(asked.unwrap_or_default().min(ASKED_MAX))
    }

    /// A call went through.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// Whether the last call failed.
    pub(crate) fn is_failing(&self) -> bool {
        self.failures > 0
    }

    fn nth(failures: u32, fraction: f64) -> Duration {
        let whole = FIRST.saturating_mul(1 << failures.min(16)).min(LONGEST);
        whole.mul_f64(0.5 + fraction / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_five_seconds_and_never_fall_below_half() {
        let whole: Vec<_> = (0..9).map(|n| Backoff::nth(n, 1.0).as_millis()).collect();
        assert_eq!(whole, [100, 200, 400, 800, 1600, 3200, 5_000, 5_000, 5_000]);
        assert_eq!(Backoff::nth(0, 0.0).as_millis(), 50);
        assert_eq!(Backoff::nth(u32::MAX, 0.0).as_millis(), 2_500);
    }

    #[test]
    fn what_the_server_asks_for_is_respected_within_reason() {
        let mut backoff = Backoff::default();
        assert_eq!(backoff.next(Some(Duration::from_secs(2))).as_secs(), 2);
        assert_eq!(backoff.next(Some(Duration::from_secs(86_400))), ASKED_MAX);
        assert!(backoff.is_failing());
        backoff.reset();
        assert!(backoff.next(None) <= FIRST);
    }
}

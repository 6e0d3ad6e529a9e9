//! How long to wait before the same call is sent again.

use fernery_core::job::retry::RetryPolicy;
use fernery_door::Chance;
use std::time::Duration;

/// The waits if the server does not ask for one.
const POLICY: RetryPolicy = RetryPolicy { base: Duration::from_millis(100), cap: Duration::from_secs(5) };
/// Upper bound of a wait that the server asks for: a typo there must not stop a worker for a day.
const ASKED_MAX: Duration = Duration::from_secs(60);

/// Waits that double, with jitter, so that many clients do not come back at once.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The next wait; at least what the server asked for.
    pub(crate) fn next(&mut self, asked: Option<Duration>) -> Duration {
        self.failures = self.failures.saturating_add(1);
        let wait = Self::nth(self.failures, Chance::default().fraction());
        wait.max(asked.unwrap_or_default().min(ASKED_MAX))
    }

    /// A call succeeded.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// Whether the last call failed.
    pub(crate) fn is_failing(&self) -> bool {
        self.failures > 0
    }

    /// At least half of the full wait: an immediate retry would fail again.
    fn nth(failures: u32, fraction: f64) -> Duration {
        POLICY.wait(failures, 0.5 + fraction / 2.0)
    }
}

/// This long from now, by tokio's clock, which tests may stop. A time beyond the clock's range counts as never.
pub(crate) fn later(by: Duration) -> tokio::time::Instant {
    let now = tokio::time::Instant::now();
    now.checked_add(by).unwrap_or_else(|| now + Duration::from_secs(30 * 365 * 86_400))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_five_seconds_and_never_fall_below_half() {
        let whole: Vec<_> = (1..10).map(|n| Backoff::nth(n, 1.0).as_millis()).collect();
        assert_eq!(whole, [100, 200, 400, 800, 1600, 3200, 5_000, 5_000, 5_000]);
        assert_eq!(Backoff::nth(1, 0.0).as_millis(), 50);
        assert_eq!(Backoff::nth(u32::MAX, 0.0).as_millis(), 2_500);
    }

    #[test]
    fn what_the_server_asks_for_is_respected_within_reason() {
        let mut backoff = Backoff::default();
        assert_eq!(backoff.next(Some(Duration::from_secs(2))).as_secs(), 2);
        assert_eq!(backoff.next(Some(Duration::from_secs(86_400))), ASKED_MAX);
        assert!(backoff.is_failing());
        backoff.reset();
        assert!(backoff.next(None) <= POLICY.base);
    }
}

//! When to try again: exponential back-off. Whatever waits longer each time waits by these rules, be it a job, a call to the
//! database, a client or a loop; only base and cap are its own.

use std::time::Duration;

/// How long to wait after a failure before the next try. The default is that of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The longest wait after the first failure; it doubles with each further one.
    pub base: Duration,
    /// No wait is longer.
    pub cap: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { base: Duration::from_secs(1), cap: Duration::from_secs(600) }
    }
}

impl RetryPolicy {
    /// The longest wait after this many failures.
    pub fn ceiling(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        self.base.saturating_mul(1 << doublings).min(self.cap)
    }

    /// The wait after this many failures; `fraction` in 0..1 is the randomness. Full jitter: a thousand jobs that failed
    /// together come back spread over the whole interval.
    pub fn wait(&self, failures: u32, fraction: f64) -> Duration {
        self.ceiling(failures).mul_f64(fraction.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_cap() {
        let policy = RetryPolicy::default();
        let seconds: Vec<u64> = (1..=12).map(|n| policy.ceiling(n).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]);
        assert_eq!(policy.ceiling(u32::MAX), policy.cap);
    }

    #[test]
    fn jitter_spreads_over_the_whole_interval() {
        let policy = RetryPolicy::default();
        assert_eq!(policy.wait(4, 0.0), Duration::ZERO);
        assert_eq!(policy.wait(4, 0.5), Duration::from_secs(4));
        assert!(policy.wait(4, 0.999) < Duration::from_secs(8));
    }
}

//! What an objective may cost over all its attempts, and what it has cost so far.
//!
//! One envelope lasts as long as one approval: retries and unblocking go on within it. A person who approves anew, or
//! reopens, grants a new one.

use crate::blueprint::Envelope;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What the attempts of one objective have used since a person last approved it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Workorders made.
    pub attempts: u32,
    /// Wall time of all attempts.
    pub wall_ms: u64,
    /// Tokens, as far as executors reported them.
    pub tokens: u64,
    /// Cost in millionths of a dollar, as far as reported.
    pub cost_usd_micros: u64,
}

/// Which part of the envelope is used up, in words.
pub fn exhausted(envelope: &Envelope, spent: &Spent) -> Option<String> {
    let over = |limit: Option<u64>, used: u64| limit.is_some_and(|limit| used >= limit);
    if over(envelope.attempts.map(u64::from), spent.attempts.into()) {
        return Some(format!("all {} attempts are used", spent.attempts));
    }
    let wall = envelope.wall_time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    if over(wall, spent.wall_ms) {
        return Some(format!("{:?} of wall time are used", Duration::from_millis(spent.wall_ms)));
    }
    if over(envelope.tokens, spent.tokens) {
        return Some(format!("{} tokens are used", spent.tokens));
    }
    if over(envelope.cost_usd_micros, spent.cost_usd_micros) {
        return Some(format!("{:.2} dollars are spent", spent.cost_usd_micros as f64 / 1e6));
    }
    None
}

/// How long the next workorder may take: its own budget, or what is left of the envelope.
pub fn budget(envelope: &Envelope, spent: &Spent, own: Duration) -> Duration {
    let left = envelope.wall_time.map(|all| all.saturating_sub(Duration::from_millis(spent.wall_ms)));
    left.map_or(own, |left| left.min(own)).max(Duration::from_millis(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_envelope_covers_all_attempts() {
        let envelope = Envelope {
            attempts: Some(3),
            wall_time: Some(Duration::from_secs(10)),
            tokens: Some(100),
            cost_usd_micros: Some(2_000_000),
        };
        let spent = Spent { attempts: 2, wall_ms: 9_000, tokens: 99, cost_usd_micros: 1_999_999 };
        assert_eq!(exhausted(&envelope, &spent), None);
        assert_eq!(budget(&envelope, &spent, Duration::from_secs(5)), Duration::from_secs(1));
        assert!(exhausted(&envelope, &Spent { attempts: 3, ..spent }).is_some());
        assert!(exhausted(&envelope, &Spent { wall_ms: 10_000, ..spent }).is_some());
        assert!(exhausted(&envelope, &Spent { tokens: 100, ..spent }).is_some());
        assert!(exhausted(&envelope, &Spent { cost_usd_micros: 2_000_000, ..spent }).is_some());
    }
}

//! The envelope: what an objective may cost over all its attempts, and what it has cost so far.
//!
//! One envelope lasts as long as one approval: retries and unblocking use the same one. A new approval or a reopening
//! grants a new one.

use super::patching::Unready;
use crate::artifact::Metadata;
use crate::blueprint::Envelope;
use crate::calendar::duration::millis;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// What the attempts of one objective have used since a person last approved it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Workorders, except those that could not begin.
    pub attempts: u32,
    /// Wall time of all attempts.
    pub wall_ms: u64,
    /// Tokens, as far as executors reported them.
    pub tokens: u64,
    /// Cost in millionths of a dollar, as far as reported.
    pub cost_usd_micros: u64,
}

impl Spent {
    /// Charges the time of an attempt and what its bundle reports. The attempt itself was charged when its workorder
    /// was made; it is refunded if the run could not begin.
    pub fn charge(&mut self, wall_ms: u64, metadata: &Metadata) {
        let used = |name: &str| metadata.get(name).and_then(Value::as_u64).unwrap_or(0);
        self.wall_ms = self.wall_ms.saturating_add(wall_ms);
        self.tokens = self.tokens.saturating_add(used("tokens"));
        self.cost_usd_micros = self.cost_usd_micros.saturating_add(used("cost_usd_micros"));
        if Unready::of(metadata).is_some() {
            self.attempts = self.attempts.saturating_sub(1);
        }
    }
}

/// Which part of the envelope is used up, in words.
pub fn exhausted(envelope: &Envelope, spent: &Spent) -> Option<String> {
    let over = |limit: Option<u64>, used: u64| limit.is_some_and(|limit| used >= limit);
    if over(envelope.attempts.map(u64::from), spent.attempts.into()) {
        return Some(match spent.attempts {
            1 => "its one attempt is used".to_string(),
            n => format!("all {n} attempts are used"),
        });
    }
    let wall = envelope.wall_time.map(millis);
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

/// The time limit of the next workorder: its own budget, or the rest of the envelope.
pub fn budget(envelope: &Envelope, spent: &Spent, own: Duration) -> Duration {
    let left = envelope.wall_time.map(|all| all.saturating_sub(Duration::from_millis(spent.wall_ms)));
    left.map_or(own, |left| left.min(own)).max(Duration::from_millis(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_attempt_that_never_began_is_given_back_and_no_other() {
        let before = Spent { attempts: 2, wall_ms: 5, ..Spent::default() };
        let attempts = |outcome: &str, preflight: Value| {
            let metadata = [("outcome".to_string(), json!(outcome)), ("preflight".to_string(), preflight)];
            let mut spent = before;
            spent.charge(7, &metadata.into());
            assert_eq!(spent.wall_ms, 12);
            spent.attempts
        };
        for unready in Unready::ALL {
            assert_eq!(attempts("INFRA", json!(unready.as_str())), 1, "{unready:?}");
            assert_eq!(attempts("FAILED", json!(unready.as_str())), 2, "it says that it ran");
        }
        for other in [json!(null), json!("weather"), json!(true)] {
            assert_eq!(attempts("INFRA", other), 2);
        }
        let mut spent = Spent::default();
        spent
            .charge(0, &[("tokens".to_string(), json!(3)), ("cost_usd_micros".to_string(), json!(4))].into());
        assert_eq!((spent.attempts, spent.tokens, spent.cost_usd_micros), (0, 3, 4));
    }

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

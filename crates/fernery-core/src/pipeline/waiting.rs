//! Why nothing happens to an objective that is to be worked on: a word for programs, a sentence for people.

use crate::Timestamp;
use crate::artifact::AzollaId;
use std::time::Duration;

/// A process that hosts an azolla says so this often…
pub const HOSTED_EVERY: Duration = Duration::from_secs(20);
/// … and after this long without a word nobody hosts it.
pub const HOSTED_FOR: Duration = Duration::from_secs(60);

/// Whether some process hosts an azolla of which one said so at `said_at`.
pub fn is_hosted(said_at: Option<Timestamp>, now: Timestamp) -> bool {
    said_at.is_some_and(|at| now.since(at) < HOSTED_FOR)
}

/// What it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// No process hosts its azolla.
    NotHosted {
        /// Which.
        azolla_id: AzollaId,
        /// When one last did.
        since: Option<Timestamp>,
    },
    /// As many workorders are active as may be.
    Concurrency,
    /// As many objectives wait for a person as may.
    Review,
    /// The scheduler.
    Turn,
    /// The gates.
    Gates,
}

impl Waiting {
    /// A stable word for programs.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotHosted { .. } => "azolla_not_hosted",
            Self::Concurrency => "concurrency_limit",
            Self::Review => "review_limit",
            Self::Turn => "turn",
            Self::Gates => "gates",
        }
    }

    /// A sentence for people.
    pub fn sentence(&self) -> String {
        match self {
            Self::NotHosted { azolla_id, since } => {
                let since = since.map_or(String::new(), |at| format!(" since {at}"));
                format!(
                    "no process hosts azolla {azolla_id}{since}: start one with its blueprint (fernery up --azolla FILE), \
                     or cancel, block or edit the ticket"
                )
            }
            Self::Concurrency => {
                "as many workorders of its azolla are under way as its blueprint allows".into()
            }
            Self::Review => {
                "as many finished tickets of its azolla wait to be confirmed as its blueprint allows".into()
            }
            Self::Turn => "it waits for its turn".into(),
            Self::Gates => "its gates judge what came out".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_azolla_is_hosted_for_a_minute_after_somebody_said_so() {
        let at = |ms| Timestamp::from_millis(ms);
        assert!(!is_hosted(None, at(0)));
        assert!(is_hosted(Some(at(1_000)), at(60_999)));
        assert!(!is_hosted(Some(at(1_000)), at(61_000)));
        // A clock that was set back leaves it hosted.
        assert!(is_hosted(Some(at(99_000)), at(1_000)));
    }
}

//! Why an approved objective waits: a code for programs, a sentence for people.

use crate::Timestamp;
use crate::artifact::AzollaId;
use std::time::Duration;

/// How often a process records that it hosts an azolla…
pub const HOSTED_EVERY: Duration = Duration::from_secs(20);
/// … and how long such a record counts.
pub const HOSTED_FOR: Duration = Duration::from_secs(60);

/// Whether the azolla is hosted, if the last record is of `said_at`.
pub fn is_hosted(said_at: Option<Timestamp>, now: Timestamp) -> bool {
    said_at.is_some_and(|at| now.since(at) < HOSTED_FOR)
}

/// What it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// No process hosts its azolla.
    NotHosted {
        azolla_id: AzollaId,
        /// When a process last hosted it.
        since: Option<Timestamp>,
    },
    /// The limit of unfinished workorders is reached.
    Concurrency,
    /// The limit of unconfirmed objectives is reached.
    Review,
    /// The scheduler.
    Turn,
    /// The gates.
    Gates,
}

impl Waiting {
    /// The word of [`NotHosted`](Self::NotHosted), by which programs recognise it.
    pub const NOT_HOSTED: &str = "azolla_not_hosted";

    /// A stable word for programs.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotHosted { .. } => Self::NOT_HOSTED,
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
                "its azolla already runs as many workorders as its blueprint allows (limits.concurrency)".into()
            }
            Self::Review => {
                "confirm finished tickets first: as many wait in its azolla as its blueprint allows (limits.review_limit)".into()
            }
            Self::Turn => "the scheduler has not come to it yet".into(),
            Self::Gates => "its gates are checking the output".into(),
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

//! How pressing something is: a sum whose terms can be printed, so that nobody has to guess why one thing comes before another.

use crate::Timestamp;
use crate::artifact::{ObjectiveStatus, PauseReason};
use std::time::Duration;

/// What the place of an item depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weighed {
    /// The status of the objective; `None` for candidates of the inbox.
    pub status: Option<ObjectiveStatus>,
    /// Whether one answer of a person is all that is missing.
    pub one_blocker: bool,
    /// 0 to 4; 0 is the most.
    pub importance: u8,
    /// 0 to 4; 0 is now.
    pub urgency: u8,
    pub due_at: Option<Timestamp>,
    /// Whether it waits longer than its urgency allows, and has no date.
    pub late: bool,
    /// Whether a person does it.
    pub for_person: bool,
    pub pause: Option<PauseReason>,
    /// Of a finished ticket: what its patch waits for.
    pub patch: Option<PatchWaits>,
}

/// Why a patch that passed is not on its base branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchWaits {
    /// It conflicts, or was tried and did not land.
    NotLanded,
    /// Nobody has merged it.
    NotMerged,
}

impl Weighed {
    /// Something that is no objective of which more is known, with nothing that presses.
    pub(super) fn plain(importance: u8, urgency: u8) -> Self {
        Self {
            status: None,
            one_blocker: false,
            importance,
            urgency,
            due_at: None,
            late: false,
            for_person: false,
            pause: None,
            patch: None,
        }
    }
}

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The terms of the sum, without those that are zero.
pub fn terms(weighed: &Weighed, now: Timestamp) -> Vec<(String, i64)> {
    use ObjectiveStatus::{Blocked, Done, InProgress, New, Todo};
    let waits = match weighed.status {
        Some(New | Todo | InProgress) if weighed.for_person => ("to be done", 30),
        Some(Blocked) if weighed.one_blocker => ("needs one answer", 50),
        _ if weighed.patch == Some(PatchWaits::NotLanded) => ("did not land", 45),
        _ if weighed.patch == Some(PatchWaits::NotMerged) => ("to be merged", 20),
        Some(Done) => ("to be confirmed", 40),
        Some(Blocked) => ("blocked", 35),
        Some(New) => ("to be approved", 30),
        None => ("to be sorted", 20),
        Some(Todo | InProgress) => ("under way", 0),
    };
    let pause = match weighed.pause {
        Some(PauseReason::BudgetExhausted) => 12,
        Some(PauseReason::GateFailed) => 10,
        Some(PauseReason::RunComplete) | None => 0,
    };
    let date = match weighed.due_at {
        Some(due_at) if due_at <= now => ("overdue", 45),
        Some(due_at) if due_at.since(now) <= DAY => ("due within a day", 15),
        Some(due_at) if due_at.since(now) <= 7 * DAY => ("due within a week", 6),
        None if weighed.late => ("waits too long", 45),
        _ => ("", 0),
    };
    let least = |grade: u8| i64::from(4 - grade.min(4));
    [
        waits,
        date,
        ("stopped short", pause),
        ("importance", 6 * least(weighed.importance)),
        ("urgency", 4 * least(weighed.urgency)),
    ]
    .into_iter()
    .filter(|(_, points)| *points != 0)
    .map(|(name, points)| (name.to_string(), points))
    .collect()
}

pub fn total(terms: &[(String, i64)]) -> i64 {
    terms.iter().map(|(_, points)| points).sum()
}

/// The sum as it is printed: `66 = to be approved 30 + importance 24 + urgency 12`.
pub fn printed(terms: &[(String, i64)]) -> String {
    let parts: Vec<_> = terms.iter().map(|(name, points)| format!("{name} {points}")).collect();
    if parts.is_empty() { "0".to_string() } else { format!("{} = {}", total(terms), parts.join(" + ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_that_presses_adds_its_term() {
        let now = Timestamp::from_millis(1_000_000_000_000);
        let plain = Weighed { status: Some(ObjectiveStatus::New), ..Weighed::plain(4, 4) };
        let due = |after| Some(now.after(after));
        for (weighed, expected) in [
            (plain.clone(), "30 = to be approved 30"),
            (Weighed { status: None, ..plain.clone() }, "20 = to be sorted 20"),
            (Weighed { status: Some(ObjectiveStatus::Todo), ..plain.clone() }, "0"),
            (
                Weighed { importance: 0, urgency: 1, ..plain.clone() },
                "66 = to be approved 30 + importance 24 + urgency 12",
            ),
            (Weighed { importance: 9, ..plain.clone() }, "30 = to be approved 30"),
            (
                Weighed { status: Some(ObjectiveStatus::InProgress), for_person: true, ..plain.clone() },
                "30 = to be done 30",
            ),
            (Weighed { late: true, ..plain.clone() }, "75 = to be approved 30 + waits too long 45"),
            (Weighed { due_at: Some(now), ..plain.clone() }, "75 = to be approved 30 + overdue 45"),
            (Weighed { due_at: due(DAY), ..plain.clone() }, "45 = to be approved 30 + due within a day 15"),
            (
                Weighed { due_at: due(2 * DAY), ..plain.clone() },
                "36 = to be approved 30 + due within a week 6",
            ),
            (Weighed { due_at: due(8 * DAY), ..plain.clone() }, "30 = to be approved 30"),
            (
                Weighed {
                    status: Some(ObjectiveStatus::Blocked),
                    one_blocker: true,
                    pause: Some(PauseReason::BudgetExhausted),
                    ..plain.clone()
                },
                "62 = needs one answer 50 + stopped short 12",
            ),
        ] {
            assert_eq!(printed(&terms(&weighed, now)), expected);
        }
    }
}

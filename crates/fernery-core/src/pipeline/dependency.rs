//! A ticket that waits for another one, and what moves that one. The store knows which blockers are such: the text of a blocker
//! says nothing about it.

use super::landing::LandingState;
use crate::artifact::{BlockerId, BlockerRef, Objective, ObjectiveId, ObjectiveStatus};
use crate::inbox::deadline::says_cancelled;
use crate::words;
use serde::{Deserialize, Serialize};

words!(
    /// Where the ticket stands that another one waits for.
    Stands {
        NotApproved = "NOT_APPROVED",
        UnderWay = "UNDER_WAY",
        Stopped = "STOPPED",
        NotConfirmed = "NOT_CONFIRMED",
        /// It is confirmed, and its patch is on its way to the branch.
        Landing = "LANDING",
        /// It is confirmed, and its patch was wanted and did not land.
        NotLanded = "NOT_LANDED",
        /// It came from another instance, finished and confirmed: nothing here ends the waiting by itself.
        FinishedElsewhere = "FINISHED_ELSEWHERE",
        Cancelled = "CANCELLED",
    }
);

impl Stands {
    /// How far a ticket is that has this status, is blocked for this reason, and has this patch.
    pub fn of(
        status: ObjectiveStatus,
        reason: Option<&str>,
        unconfirmed: bool,
        landing: Option<LandingState>,
    ) -> Self {
        match status {
            _ if says_cancelled(status, reason) => Self::Cancelled,
            ObjectiveStatus::New => Self::NotApproved,
            ObjectiveStatus::Todo | ObjectiveStatus::InProgress => Self::UnderWay,
            ObjectiveStatus::Blocked => Self::Stopped,
            ObjectiveStatus::Done if unconfirmed => Self::NotConfirmed,
            ObjectiveStatus::Done if landing.is_some_and(LandingState::is_wanted) => Self::Landing,
            ObjectiveStatus::Done if landing.is_none() => Self::FinishedElsewhere,
            ObjectiveStatus::Done => Self::NotLanded,
        }
    }
}

/// An open blocker that resolves by itself when another ticket is confirmed or has landed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependency {
    pub blocker_id: BlockerId,
    /// The other ticket.
    pub on: ObjectiveId,
    pub stands: Stands,
}

impl Dependency {
    /// Whether it never resolves by itself.
    pub fn is_given_up(&self) -> bool {
        matches!(self.stands, Stands::Cancelled | Stands::FinishedElsewhere)
    }

    /// What it waits for.
    pub fn sentence(&self) -> String {
        let on = &self.on;
        match self.stands {
            Stands::NotApproved => format!("waits for {on}, which nobody has approved yet"),
            Stands::UnderWay => format!("waits for {on}, which is being worked on"),
            Stands::Stopped => format!("waits for {on}, which is stopped"),
            Stands::NotConfirmed => format!("waits for {on}, whose result nobody has confirmed yet"),
            Stands::Landing => format!("waits for {on}, whose patch is being merged"),
            Stands::NotLanded => format!("waits for {on}, whose patch was not merged"),
            Stands::FinishedElsewhere => format!("waits for {on}, which was finished in another instance"),
            Stands::Cancelled => format!("waits for {on}, which was cancelled"),
        }
    }

    /// The command of a person that moves the other ticket, or, if nothing does, the waiting one; `None`: no single one does.
    pub fn moved_by(&self, waiting: &ObjectiveId) -> Option<String> {
        let on = &self.on;
        match self.stands {
            Stands::NotApproved => Some(format!("fernery ticket approve {on}")),
            Stands::NotConfirmed => Some(format!("fernery ticket confirm {on}")),
            Stands::NotLanded => Some(format!("fernery ticket merge {on}")),
            Stands::Cancelled | Stands::FinishedElsewhere => {
                Some(format!("fernery ticket unblock {waiting} --blocker {}", self.blocker_id))
            }
            Stands::UnderWay | Stands::Stopped | Stands::Landing => None,
        }
    }

    /// What a person reads as the next action of the waiting ticket. One whose approval covers it no longer does not go on by
    /// itself.
    pub fn action(&self, waiting: &ObjectiveId, approved: bool) -> String {
        let (on, sentence) = (&self.on, self.sentence());
        let then = match approved {
            true => "it goes on by itself".to_string(),
            false => format!("it is NEW, and has to be approved again: fernery ticket approve {waiting}"),
        };
        match (self.moved_by(waiting), self.stands) {
            (Some(command), Stands::Cancelled | Stands::FinishedElsewhere) => {
                format!("It {sentence}. To go on without it: {command}")
            }
            (Some(command), _) => format!("It {sentence}: {command}. Then {then}"),
            (None, Stands::Stopped) => {
                format!("It {sentence}; what that needs: fernery ticket show {on}. Then {then}")
            }
            (None, _) => format!("Nothing: it {sentence}. Then {then}"),
        }
    }
}

/// The open blockers of an objective that somebody has to resolve.
pub fn asks_somebody<'a>(
    objective: &'a Objective,
    waits_for: &'a [Dependency],
) -> impl Iterator<Item = &'a BlockerRef> {
    let waits = |of: &BlockerRef| {
        waits_for.iter().any(|known| known.blocker_id == of.blocker_id && !known.is_given_up())
    };
    objective.blocked_on.iter().filter(move |blocker| !blocker.resolved && !waits(blocker))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(stands: Stands) -> Dependency {
        Dependency { blocker_id: BlockerId::stored("b1"), on: ObjectiveId::stored("first"), stands }
    }

    #[test]
    fn every_sentence_names_the_other_ticket_and_every_command_moves_it() {
        let waiting = ObjectiveId::stored("second");
        for stands in Stands::ALL {
            let one = on(*stands);
            assert!(one.sentence().starts_with("waits for first, wh"), "{}", one.sentence());
            let action = one.action(&waiting, true);
            assert!(action.contains(&one.sentence()), "{action}");
            let unapproved = one.action(&waiting, false);
            assert!(!unapproved.contains("by itself"), "{unapproved}");
            assert_eq!(
                unapproved.contains("fernery ticket approve second"),
                !one.is_given_up(),
                "{unapproved}"
            );
            if let Some(command) = one.moved_by(&waiting) {
                let about = if one.is_given_up() { "unblock second --blocker b1" } else { "first" };
                assert!(command.contains(about) && action.contains(&command), "{action}");
            }
        }
    }
}

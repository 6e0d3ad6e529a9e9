//! What needs a person, over all azollas.

use crate::artifact::{
    AzollaId, Objective, ObjectiveId, ObjectiveStatus, PauseState, PauseSummary, QueryStatus,
};
use crate::canonical::digest_of;
use crate::{Digest, Timestamp};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Items that are kept of all that need a person.
pub const ITEMS_MAX: usize = 50;

/// An azolla that was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Which.
    pub azolla_id: AzollaId,
    /// Whether it answered.
    pub status: QueryStatus,
    /// Where it is, if it is not here.
    pub server: Option<String>,
    /// Of when its answer is.
    pub as_of: Option<Timestamp>,
}

/// What one azolla answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Told {
    /// Who was asked, and whether there was an answer.
    pub asked: Asked,
    /// Its objectives that are not DONE, or DONE and not confirmed.
    pub objectives: Vec<Objective>,
    /// The newest pause of each of them that waits for a person.
    pub pauses: Vec<PauseState>,
}

/// What the asking azolla knows of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Own {
    /// Its id.
    pub azolla_id: AzollaId,
    /// Candidates that wait for a person.
    pub candidates: u64,
    /// Since when the oldest of them waits.
    pub oldest_candidate: Option<Timestamp>,
    /// Captures that wait for triage.
    pub pending_captures: u64,
}

/// Something that needs a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// Names it, like `mec/T-1` or `task_management/triage`.
    pub item_id: String,
    /// Where it is.
    pub azolla_id: AzollaId,
    /// Which objective, if it is one.
    pub objective_id: Option<ObjectiveId>,
    /// What it is, in a line.
    pub title: String,
    /// Why it needs a person: facts, in words.
    pub why: Vec<String>,
    /// What to type.
    pub command: String,
    /// 0 to 4; 0 is the most.
    pub importance: u8,
    /// 0 to 4; 0 is now.
    pub urgency: u8,
    /// Until when, if it has a date or its urgency gives it one.
    pub due_at: Option<Timestamp>,
    /// Whether that has passed.
    pub overdue: bool,
    /// Where the objective stands, if it is one.
    pub status: Option<ObjectiveStatus>,
    /// Where it stopped.
    pub pause: Option<PauseSummary>,
    /// What its place in the order is the sum of.
    pub score_terms: Vec<(String, i64)>,
}

/// All that a manifest is made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// Who was asked.
    pub asked: Vec<Asked>,
    /// What needs a person, the most pressing first.
    pub items: Vec<Item>,
    /// How many more there are.
    pub more: u64,
}

/// Finds what needs a person.
pub fn facts(told: &[Told], own: &Own, urgency: &[Option<Duration>; 5], now: Timestamp) -> Facts {
    let _ = (own, urgency, now);
    Facts { asked: told.iter().map(|told| told.asked.clone()).collect(), items: Vec::new(), more: 0 }
}

impl Facts {
    /// Names what matters in them: the same facts asked for later have the same digest.
    pub fn digest(&self) -> Digest {
        let asked: Vec<_> = self.asked.iter().map(|a| (&a.azolla_id, a.status, &a.server)).collect();
        digest_of(&(asked, &self.items, self.more))
    }

    /// Where things stopped.
    pub fn pauses(&self) -> Vec<PauseSummary> {
        self.items.iter().filter_map(|item| item.pause.clone()).collect()
    }
}

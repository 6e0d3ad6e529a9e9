//! What waits in the inbox itself: candidates that press, the others, and captures that are held.

use super::{Item, Unmerged, dated, minute};
use crate::Timestamp;
use crate::artifact::{AzollaId, CandidateId};
use crate::inbox::one_line;
use crate::inbox::score::{self, Weighed};
use crate::{id_part, limits};
use serde::{Deserialize, Serialize};

/// What the asking azolla knows of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Own {
    pub azolla_id: AzollaId,
    /// Candidates that wait for a person.
    pub candidates: u64,
    /// Since when the oldest of them waits.
    pub oldest_candidate: Option<Timestamp>,
    /// Captures that wait for triage.
    pub pending_captures: u64,
    /// Captures that came with an import, and wait for a person to release them.
    pub held_captures: u64,
    /// Lines that come again, and came with an import: they wait for the same.
    pub held_recurrences: u64,
    /// Candidates that press, each of which has a line of its own.
    pub pressing: Vec<Pressing>,
    /// Patches of this instance that a person has confirmed and nobody has merged.
    pub unmerged: Option<Unmerged>,
    /// The repositories of this process; `None`: unknown.
    pub repos: Option<Vec<String>>,
}

/// A candidate that is urgent, or due soon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pressing {
    pub candidate_id: CandidateId,
    pub title: String,
    pub importance: u8,
    pub urgency: u8,
    /// Until when, if it has a date.
    pub due_at: Option<Timestamp>,
    /// Since when it waits.
    pub created_at: Timestamp,
}

/// A candidate that presses, with the command that makes a ticket of it.
pub(super) fn pressing(own: &Own, candidate: &Pressing, now: Timestamp) -> Item {
    let id = candidate.candidate_id.as_str();
    let short = id_part::short(id);
    let mut why = vec![format!("captured, and no ticket yet, since {}", minute(candidate.created_at))];
    let overdue = dated(&mut why, candidate.due_at, now);
    if candidate.due_at.is_none() {
        why.insert(
            0,
            if candidate.urgency == 0 { "urgent: now" } else { "urgent: within a day" }.to_string(),
        );
    }
    let weighed =
        Weighed { due_at: candidate.due_at, ..Weighed::plain(candidate.importance, candidate.urgency) };
    Item {
        item_id: format!("{}/candidate/{short}", own.azolla_id),
        azolla_id: own.azolla_id.clone(),
        objective_id: None,
        title: one_line(&candidate.title, limits::TITLE_CHARS_MAX),
        why,
        command: format!("fernery triage promote {short}"),
        importance: candidate.importance,
        urgency: candidate.urgency,
        due_at: candidate.due_at,
        overdue,
        status: None,
        pause: None,
        score_terms: score::terms(&weighed, now),
    }
}

/// The other candidates of the inbox, as one item.
pub(super) fn candidates(own: &Own, now: Timestamp) -> Option<Item> {
    let also = if own.pressing.is_empty() { "" } else { "more " };
    let title = match own.candidates.saturating_sub(own.pressing.len() as u64) {
        0 => return None,
        1 => format!("1 {also}candidate waits in the inbox"),
        n => format!("{n} {also}candidates wait in the inbox"),
    };
    let since = own.oldest_candidate.map_or(String::new(), |at| format!("; the oldest since {}", minute(at)));
    let why = format!("nothing becomes a ticket before somebody promotes it{since}");
    Some(of_inbox(own, "triage", title, why, now))
}

/// What came with an import and nobody has released, as one item.
pub(super) fn held(own: &Own, now: Timestamp) -> Option<Item> {
    let counted = |n: u64, one: &str| match n {
        0 => None,
        1 => Some(format!("1 {one}")),
        n => Some(format!("{n} {one}s")),
    };
    let (captures, lines) =
        (counted(own.held_captures, "capture"), counted(own.held_recurrences, "recurring line"));
    let what = captures.into_iter().chain(lines).collect::<Vec<_>>().join(" and ");
    let title = match own.held_captures + own.held_recurrences {
        0 => return None,
        1 => format!("{what} came with an import and is held"),
        _ => format!("{what} came with an import and are held"),
    };
    let why = "nothing of it goes to triage before somebody releases it".to_string();
    let mut item = of_inbox(own, "held", title, why, now);
    item.command = match own.azolla_id.as_str() {
        // The one that is meant where nobody names one.
        "task_management" => "fernery triage release".to_string(),
        other => format!("fernery triage release --azolla {other}"),
    };
    Some(item)
}

pub(super) fn of_inbox(own: &Own, name: &str, title: String, why: String, now: Timestamp) -> Item {
    let (importance, urgency) =
        (crate::inbox::triage::IMPORTANCE_DEFAULT, crate::inbox::triage::URGENCY_DEFAULT);
    Item {
        item_id: format!("{}/{name}", own.azolla_id),
        azolla_id: own.azolla_id.clone(),
        objective_id: None,
        title,
        why: vec![why],
        command: "fernery triage".to_string(),
        importance,
        urgency,
        due_at: None,
        overdue: false,
        status: None,
        pause: None,
        score_terms: score::terms(&Weighed::plain(importance, urgency), now),
    }
}

//! What needs a person, over all azollas, the most pressing first.
//!
//! Facts are computed here and nowhere else, and each carries the command that deals with it. They name instants and not
//! ages, so that the same facts asked for later are the same: then nobody is told again.

use super::deadline::{self, Clock, at_server};
use super::foreign;
use super::one_line;
use super::score::{self, Weighed};
use crate::artifact::{
    AzollaId, BlockerRef, Objective, ObjectiveId, ObjectiveStatus, ObjectiveType, PauseReason, PauseState,
    PauseSummary, QueryStatus,
};
use crate::canonical::digest_of;
use crate::{Digest, Timestamp, limits};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Items that are kept of all that need a person.
pub const ITEMS_MAX: usize = 50;

/// An azolla that was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    pub azolla_id: AzollaId,
    pub status: QueryStatus,
    /// Where it is, if it is not here.
    pub server: Option<String>,
    /// Of when its answer is.
    pub as_of: Option<Timestamp>,
    /// Artifacts that it told of and nobody here can read.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unread: u64,
    /// It told as much as one answer takes: there may be more.
    #[serde(default, skip_serializing_if = "is_false")]
    pub full: bool,
}

fn is_false(is: &bool) -> bool {
    !is
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Asked {
    /// Whether all that it would tell was seen.
    pub fn is_seen(&self) -> bool {
        self.status == QueryStatus::Ok && self.unread == 0 && !self.full
    }
}

/// What one azolla answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AzollaAnswer {
    /// Who was asked, and whether there was an answer.
    pub asked: Asked,
    /// Its objectives that are not DONE, or DONE and not confirmed.
    pub objectives: Vec<Objective>,
    /// The newest pause of each of them that waits for a person.
    pub pauses: Vec<PauseState>,
    /// Since when the urgencies of some of them count.
    #[serde(default)]
    pub clocks: BTreeMap<ObjectiveId, Clock>,
    /// The own ids of objectives that are not of our form, as far as pauses name them.
    #[serde(default)]
    pub foreign: BTreeMap<ObjectiveId, String>,
}

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
}

/// Something that needs a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The status of the objective; `None`: it is no objective.
    pub status: Option<ObjectiveStatus>,
    /// Where it stopped.
    pub pause: Option<PauseSummary>,
    /// What its place in the order is the sum of.
    pub score_terms: Vec<(String, i64)>,
}

/// All that a manifest is made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    pub asked: Vec<Asked>,
    /// What needs a person, the most pressing first.
    pub items: Vec<Item>,
    /// How many more there are.
    pub more: u64,
    /// Captures that triage has still to look through. They need nobody.
    #[serde(default)]
    pub pending_captures: u64,
}

/// Characters of one reason.
const WHY_CHARS: usize = 200;

/// Finds what needs a person. Of an objective that its azolla does not tell, a pause is what is known; that one was asked and did
/// not answer is kept.
pub fn facts(told: &[AzollaAnswer], own: &Own, urgency: &[Option<Duration>; 5], now: Timestamp) -> Facts {
    let mut items: Vec<_> = candidates(own, now).into_iter().chain(held(own, now)).collect();
    let mut seen = BTreeSet::new();
    for told in told {
        let mut pauses: BTreeMap<_, &PauseState> = BTreeMap::new();
        for pause in &told.pauses {
            let newest = pauses.entry(&pause.objective_id).or_insert(pause);
            if pause.created_at > newest.created_at {
                *newest = pause;
            }
        }
        let heard = told.asked.status == QueryStatus::Ok;
        for objective in told.objectives.iter().filter(|_| heard) {
            let pause = pauses.get(&objective.objective_id).copied();
            if seen.insert((&told.asked.azolla_id, &objective.objective_id)) {
                let known = told.clocks.get(&objective.objective_id);
                items.extend(item(&told.asked, objective, (pause, known), urgency, now));
            }
        }
        let alone = pauses.into_iter().filter(|(id, _)| seen.insert((&told.asked.azolla_id, *id)));
        items.extend(alone.map(|(id, pause)| paused(&told.asked, pause, told.foreign.get(id), now)));
    }
    items.sort_by_cached_key(|item| {
        let due_at = item.due_at.unwrap_or(Timestamp::from_millis(i64::MAX));
        (Reverse(score::total(&item.score_terms)), due_at, item.item_id.clone())
    });
    let more = items.len().saturating_sub(ITEMS_MAX) as u64;
    items.truncate(ITEMS_MAX);
    let asked = told.iter().map(|told| told.asked.clone()).collect();
    Facts { asked, items, more, pending_captures: own.pending_captures }
}

/// The candidates of the inbox, as one item.
fn candidates(own: &Own, now: Timestamp) -> Option<Item> {
    let title = match own.candidates {
        0 => return None,
        1 => "1 candidate waits in the inbox".to_string(),
        n => format!("{n} candidates wait in the inbox"),
    };
    let since = own.oldest_candidate.map_or(String::new(), |at| format!("; the oldest since {}", minute(at)));
    let why = format!("nothing becomes a ticket before somebody promotes it{since}");
    Some(of_inbox(own, "triage", title, why, now))
}

/// The captures that came with an import and that nobody has released, as one item.
fn held(own: &Own, now: Timestamp) -> Option<Item> {
    let title = match own.held_captures {
        0 => return None,
        1 => "1 capture came with an import and is held".to_string(),
        n => format!("{n} captures came with an import and are held"),
    };
    let why = "triage looks through none of them before somebody releases them".to_string();
    let mut item = of_inbox(own, "held", title, why, now);
    item.command = match own.azolla_id.as_str() {
        // The one that is meant where nobody names one.
        "task_management" => "fernery triage release".to_string(),
        other => format!("fernery triage release --azolla {other}"),
    };
    Some(item)
}

fn of_inbox(own: &Own, name: &str, title: String, why: String, now: Timestamp) -> Item {
    let (importance, urgency) = (super::triage::IMPORTANCE_DEFAULT, super::triage::URGENCY_DEFAULT);
    let weighed =
        Weighed { status: None, one_blocker: false, importance, urgency, due_at: None, pause: None };
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
        score_terms: score::terms(&weighed, now),
    }
}

/// A pause of an objective that its azolla does not tell.
fn paused(asked: &Asked, pause: &PauseState, own_id: Option<&String>, now: Timestamp) -> Item {
    let (id, azolla) = (&pause.objective_id, &asked.azolla_id);
    let (importance, urgency) = (super::triage::IMPORTANCE_DEFAULT, super::triage::URGENCY_DEFAULT);
    let why = match pause.reason {
        PauseReason::BudgetExhausted => "its budget is spent",
        PauseReason::GateFailed => "its last run did not pass, or something is in its way",
        PauseReason::RunComplete => "it stopped and waits for a person",
    };
    let command = match own_id {
        Some(own) => foreign::look_at(own, azolla.as_str(), asked.server.as_deref()),
        None => format!("fernery ticket show {id}{}", at_server(asked.server.as_deref())),
    };
    let weighed = Weighed {
        status: None,
        one_blocker: false,
        importance,
        urgency,
        due_at: None,
        pause: Some(pause.reason),
    };
    let shown = own_id.map_or_else(|| id.to_string(), |own| one_line(own, WHY_CHARS));
    Item {
        item_id: format!("{azolla}/{}", item_name(id)),
        azolla_id: azolla.clone(),
        objective_id: Some(id.clone()),
        title: one_line(&format!("{shown} in {azolla}"), limits::TITLE_CHARS_MAX),
        why: vec![format!("{why} since {}; {azolla} tells no more", minute(pause.created_at))],
        pause: Some(summary(azolla, pause, &command)),
        command,
        importance,
        urgency,
        due_at: None,
        overdue: false,
        status: None,
        score_terms: score::terms(&weighed, now),
    }
}

/// The part of an item's id that names an objective.
fn item_name(id: &ObjectiveId) -> &str {
    match id.as_str() {
        "triage" => "ticket/triage",
        "held" => "ticket/held",
        name => name,
    }
}

/// Whether the stop asks for a change of the ticket's text, and the ticket is unchanged since.
fn wants_edit(objective: &Objective, blocker: &BlockerRef, pause: Option<&PauseState>) -> bool {
    let edit = format!("fernery ticket edit {}", objective.objective_id);
    let first = pause.and_then(|pause| pause.prioritized_actions.first());
    let asked = blocker.description.contains(&edit) || first.is_some_and(|action| action.contains(&edit));
    asked && pause.is_none_or(|pause| objective.updated_at <= pause.created_at)
}

fn item(
    asked: &Asked,
    objective: &Objective,
    (pause, known): (Option<&PauseState>, Option<&Clock>),
    urgency: &[Option<Duration>; 5],
    now: Timestamp,
) -> Option<Item> {
    let open = deadline::is_open(objective);
    let done = objective.objective_type == ObjectiveType::Ticket && objective.status == ObjectiveStatus::Done;
    let clock = deadline::clock(objective, known, now);
    let due_at = deadline::deadline(&clock, urgency).filter(|_| open);
    let overdue = due_at.is_some_and(|due_at| due_at <= now);
    let (id, status) = (&objective.objective_id, objective.status);
    let blockers: Vec<_> = objective.blocked_on.iter().filter(|blocker| !blocker.resolved).collect();
    let (verb, mut why) = match (status, &blockers[..]) {
        _ if !open && !done => return None,
        (ObjectiveStatus::New, _) => (
            format!("approve {id}"),
            vec![format!("waits for approval since {}", minute(objective.created_at))],
        ),
        (ObjectiveStatus::Done, _) => (
            format!("confirm {id}"),
            vec![format!(
                "passed its gates and waits to be confirmed since {}",
                minute(objective.updated_at)
            )],
        ),
        (ObjectiveStatus::Blocked, [blocker]) if foreign::has_foreign_blockers(objective) => {
            (format!("show {id}"), vec![format!("waits on {}", said(blocker))])
        }
        (ObjectiveStatus::Blocked, [blocker]) => {
            let verb = match wants_edit(objective, blocker, pause) {
                true => format!("edit {id}"),
                false => format!("unblock {id} --blocker {}", blocker.blocker_id),
            };
            (verb, vec![format!("waits on {}", said(blocker))])
        }
        (ObjectiveStatus::Blocked, blockers) => {
            let reason = objective.blocked_reason.as_deref().unwrap_or("nobody said why");
            let why = match blockers.len() {
                0 => format!("blocked: {reason}"),
                n => format!("blocked on {n} things: {reason}"),
            };
            (format!("show {id}"), vec![why])
        }
        (ObjectiveStatus::Todo | ObjectiveStatus::InProgress, _) if !overdue => return None,
        (ObjectiveStatus::Todo, _) => (format!("show {id}"), vec!["nobody works on it yet".to_string()]),
        (ObjectiveStatus::InProgress, _) => (format!("show {id}"), vec!["still under way".to_string()]),
    };
    // An overdue date is the most important reason, so it comes first.
    match due_at {
        Some(due_at) if overdue => why.insert(0, format!("overdue since {}", minute(due_at))),
        Some(due_at) => why.push(format!("due {}", minute(due_at))),
        None => {}
    }
    match pause.map(|pause| pause.reason) {
        Some(PauseReason::BudgetExhausted) => why.push("its budget is spent".to_string()),
        Some(PauseReason::GateFailed) => why.push("its last run did not pass".to_string()),
        Some(PauseReason::RunComplete) | None => {}
    }
    let command = match foreign::foreign_id(objective) {
        Some(own) => foreign::look_at(own, asked.azolla_id.as_str(), asked.server.as_deref()),
        None => format!("fernery ticket {verb}{}", at_server(asked.server.as_deref())),
    };
    let weighed = Weighed {
        status: Some(status),
        one_blocker: blockers.len() == 1,
        importance: objective.importance,
        urgency: objective.urgency,
        due_at,
        pause: pause.map(|pause| pause.reason),
    };
    Some(Item {
        item_id: format!("{}/{}", asked.azolla_id, item_name(id)),
        azolla_id: asked.azolla_id.clone(),
        objective_id: Some(id.clone()),
        title: one_line(&objective.title, limits::TITLE_CHARS_MAX),
        why: why.iter().map(|why| one_line(why, WHY_CHARS)).collect(),
        pause: pause.map(|pause| summary(&asked.azolla_id, pause, &command)),
        command,
        importance: objective.importance,
        urgency: objective.urgency,
        due_at,
        overdue,
        status: Some(status),
        score_terms: score::terms(&weighed, now),
    })
}

fn said(blocker: &BlockerRef) -> &str {
    if blocker.description.trim().is_empty() { blocker.kind.as_str() } else { &blocker.description }
}

/// A pause as its azolla told it, with one to three actions even if it told none.
fn summary(azolla_id: &AzollaId, pause: &PauseState, command: &str) -> PauseSummary {
    let told = pause.prioritized_actions.iter().map(|action| one_line(action, limits::TITLE_CHARS_MAX));
    let mut actions: Vec<_> = told.filter(|action| !action.is_empty()).take(3).collect();
    if actions.is_empty() {
        actions.push(command.to_string());
    }
    PauseSummary {
        source_azolla_id: azolla_id.clone(),
        objective_id: pause.objective_id.clone(),
        reason: pause.reason,
        prioritized_actions: actions,
    }
}

/// An instant as people read it.
fn minute(at: Timestamp) -> String {
    let text = at.to_string();
    match (text.get(..10), text.get(11..16)) {
        (Some(day), Some(time)) => format!("{day} {time} UTC"),
        _ => text,
    }
}

impl Facts {
    /// Names what matters in them: the same facts asked for later have the same digest.
    pub fn digest(&self) -> Digest {
        let asked = self.asked.iter().map(|a| match (a.unread, a.full) {
            // Digests that were written before these were known stay true.
            (0, false) => json!([a.azolla_id, a.status, a.server]),
            (unread, false) => json!([a.azolla_id, a.status, a.server, unread]),
            (unread, true) => json!([a.azolla_id, a.status, a.server, unread, true]),
        });
        let asked: Vec<_> = asked.collect();
        digest_of(&(asked, &self.items, self.more))
    }

    /// Where things stopped.
    pub fn pauses(&self) -> Vec<PauseSummary> {
        self.items.iter().filter_map(|item| item.pause.clone()).collect()
    }
}

#[cfg(test)]
pub(super) mod tests;

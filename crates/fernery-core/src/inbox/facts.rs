//! What needs a person, over all azollas, the most pressing first.
//!
//! Facts are computed here and nowhere else, and each carries the command that deals with it. They name instants and not
//! ages, so that the same facts asked for later are the same: then nobody is told again.

mod inbox;
mod patches;

pub use inbox::{Own, Pressing};
pub use patches::{Unlanded, Unmerged};

use super::deadline::{self, Clock, at_server};
use super::foreign;
use super::one_line;
use super::score::{self, PatchWaits, Weighed};
use crate::artifact::{
    AzollaId, BlockerId, BlockerKind, BlockerRef, Objective, ObjectiveId, ObjectiveStatus, ObjectiveType,
    PauseReason, PauseState, PauseSummary, QueryStatus,
};
use crate::blueprint::Blueprint;
use crate::canonical::digest_of;
use crate::pipeline::dependency::{Dependency, asks_somebody};
use crate::pipeline::ground::{Premises, repo_ref, unstartable};
use crate::pipeline::possible::TicketState;
use crate::pipeline::scheduling::first_line;
use crate::{Digest, Timestamp, limits};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
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
    /// Of objectives of this instance: the open blockers that wait for another ticket.
    #[serde(default)]
    pub waits_for: BTreeMap<ObjectiveId, Vec<Dependency>>,
    /// Of finished tickets of this instance: the patches that conflict with their base branch, or did not land.
    #[serde(skip)]
    pub patches: BTreeMap<ObjectiveId, Unlanded>,
    /// Its blueprint, if it is of this instance.
    #[serde(skip)]
    pub blueprint: Option<Arc<Blueprint>>,
}

/// Something that needs a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// Names it, like `mec/T-1` or `task_management/triage`.
    pub item_id: String,
    pub azolla_id: AzollaId,
    /// Which objective, if it is one.
    pub objective_id: Option<ObjectiveId>,
    /// What it is, in a line.
    pub title: String,
    /// Why it needs a person: facts, in words.
    pub why: Vec<String>,
    pub command: String,
    /// 0 to 4; 0 is the most.
    pub importance: u8,
    /// 0 to 4; 0 is now.
    pub urgency: u8,
    /// Until when, if somebody set a date.
    pub due_at: Option<Timestamp>,
    /// Whether that has passed, or it waits longer than its urgency allows.
    pub overdue: bool,
    /// The status of the objective; `None`: it is no objective.
    pub status: Option<ObjectiveStatus>,
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
    let mut items: Vec<_> = inbox::candidates(own, now).into_iter().chain(inbox::held(own, now)).collect();
    items.extend(patches::unmerged(own, now));
    items.extend(own.pressing.iter().map(|candidate| inbox::pressing(own, candidate, now)));
    let mut seen = BTreeSet::new();
    let behind = behind(told);
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
                let known = Known { pause, clock: known, behind: behind.get(&objective.objective_id) };
                items.extend(item((told, own), objective, &known, urgency, now));
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

/// The tickets that wait for each.
fn behind(told: &[AzollaAnswer]) -> BTreeMap<&ObjectiveId, Vec<&str>> {
    let mut behind: BTreeMap<&ObjectiveId, Vec<&str>> = BTreeMap::new();
    for (id, dependency) in
        told.iter().flat_map(|told| &told.waits_for).flat_map(|(id, all)| all.iter().map(move |of| (id, of)))
    {
        behind.entry(&dependency.on).or_default().push(id.as_str());
    }
    behind
}

/// What is known beside an objective.
struct Known<'a> {
    pause: Option<&'a PauseState>,
    clock: Option<&'a Clock>,
    /// The tickets that wait for it.
    behind: Option<&'a Vec<&'a str>>,
}

/// Says when something is due, if it has a date; answers whether that has passed. What has passed is said first.
fn dated(why: &mut Vec<String>, due_at: Option<Timestamp>, now: Timestamp) -> bool {
    match due_at {
        Some(due_at) if due_at <= now => why.insert(0, format!("overdue since {}", minute(due_at))),
        Some(due_at) => why.push(format!("due {}", minute(due_at))),
        None => {}
    }
    due_at.is_some_and(|due_at| due_at <= now)
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
    let weighed = Weighed { pause: Some(pause.reason), ..Weighed::plain(importance, urgency) };
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
        "unmerged" => "ticket/unmerged",
        name => name,
    }
}

/// The blocker of its executor's question, if nobody has answered that: its last pause says how.
fn question(objective: &Objective, pause: Option<&PauseState>) -> Option<BlockerId> {
    let answer = format!("fernery ticket answer {} ", objective.objective_id);
    let asked = pause?.prioritized_actions.iter().find(|action| action.contains(&answer))?;
    let mut open =
        objective.blocked_on.iter().filter(|of| !of.resolved && of.kind == BlockerKind::UserInput).peekable();
    let first = open.peek().copied();
    let named = open.find(|of| asked.ends_with(&format!("({})", first_line(&of.description))));
    named.or(first).map(|of| of.blocker_id.clone())
}

/// Whether the stop asks for a change of the ticket's text, and the ticket is unchanged since.
fn wants_edit(objective: &Objective, blocker: &BlockerRef, pause: Option<&PauseState>) -> bool {
    let edit = format!("fernery ticket edit {}", objective.objective_id);
    let first = pause.and_then(|pause| pause.prioritized_actions.first());
    let asked = blocker.description.contains(&edit) || first.is_some_and(|action| action.contains(&edit));
    asked && pause.is_none_or(|pause| objective.updated_at <= pause.created_at)
}

/// What a person can type about a ticket that is not approved yet, and why; of this instance only what is certain to work.
fn first_step((told, own): (&AzollaAnswer, &Own), objective: &Objective) -> (String, String) {
    let id = &objective.objective_id;
    let since = minute(objective.created_at);
    let approve = (format!("fernery ticket approve {id}"), format!("waits for approval since {since}"));
    let Some(blueprint) = told.blueprint.as_ref().filter(|of| of.needs_repository()) else { return approve };
    let premises = own
        .repos
        .as_ref()
        .map(|repos| Premises { hosted: vec![objective.azolla_id.clone()], repos: repos.clone() });
    if unstartable(objective, blueprint, premises.as_ref()).is_none() {
        return approve;
    }
    let named = repo_ref(objective).map_or_else(
        || "names no repository".to_string(),
        |name| format!("names repository {name}, which is not here"),
    );
    match own.repos.as_deref().and_then(<[String]>::first) {
        Some(repo) => (
            format!("fernery ticket edit {id} --meta repo_ref={repo}"),
            format!("{named}, and can be approved once it does"),
        ),
        None => (
            format!("fernery ticket cancel {id}"),
            format!("{named}, and this server has none to work on: run fernery init in one, or give it up"),
        ),
    }
}

fn item(
    (told, own): (&AzollaAnswer, &Own),
    objective: &Objective,
    known: &Known<'_>,
    urgency: &[Option<Duration>; 5],
    now: Timestamp,
) -> Option<Item> {
    let (asked, pause) = (&told.asked, known.pause);
    let open = deadline::is_open(objective);
    let done = objective.objective_type == ObjectiveType::Ticket && objective.status == ObjectiveStatus::Done;
    let clock = deadline::clock(objective, known.clock, now);
    // A date that somebody set is told as one. What only its urgency says is no date.
    let due_at = clock.due_at.filter(|_| open);
    let deadline = deadline::deadline(&clock, urgency).filter(|_| open);
    let late = due_at.is_none() && deadline.is_some_and(|deadline| deadline <= now);
    let overdue = late || due_at.is_some_and(|due_at| due_at <= now);
    let for_person = told.blueprint.as_ref().is_some_and(|of| of.is_for_people());
    let (id, status) = (&objective.objective_id, objective.status);
    let waits_for = told.waits_for.get(id).map_or(&[][..], Vec::as_slice);
    let blockers: Vec<_> = asks_somebody(objective, waits_for).collect();
    let ticket = |verb: &str| format!("fernery ticket {verb} {id}");
    let unlanded = told.patches.get(id);
    let standing = TicketState {
        unconfirmed: done && unlanded.is_none_or(|of| !of.confirmed),
        patch: unlanded.map(|of| of.patch.clone()),
        waits_for: waits_for.to_vec(),
        question: question(objective, pause),
        for_person,
        ..TicketState::of(objective)
    };
    let suggested = standing.suggested().map_or_else(|| ticket("show"), |(_, command)| command);
    let (command, mut why) = match (status, &blockers[..]) {
        _ if !open && !done => return None,
        (ObjectiveStatus::New | ObjectiveStatus::Todo | ObjectiveStatus::InProgress, [])
            if for_person && waits_for.is_empty() =>
        {
            (suggested, vec![format!("yours to do since {}", minute(objective.created_at))])
        }
        (ObjectiveStatus::New, _) => {
            let (command, why) = first_step((told, own), objective);
            (command, vec![why])
        }
        (ObjectiveStatus::Done, _) => (suggested, patches::finished(&standing)),
        // It needs nobody: the other ticket stands on the page itself, if that does.
        (ObjectiveStatus::Blocked, []) if !waits_for.is_empty() && !overdue => return None,
        (ObjectiveStatus::Blocked, []) if !waits_for.is_empty() => {
            let moves = waits_for.iter().find_map(|of| of.moved_by(id));
            let command = moves.unwrap_or_else(|| format!("fernery snooze {id} tomorrow"));
            (command, waits_for.iter().map(Dependency::sentence).collect())
        }
        (ObjectiveStatus::Blocked, [blocker]) if foreign::has_foreign_blockers(objective) => {
            (ticket("show"), vec![format!("waits on {}", said(blocker))])
        }
        (ObjectiveStatus::Blocked, [blocker]) => {
            let edits = standing.question.is_none() && wants_edit(objective, blocker, pause);
            let command = if edits { ticket("edit") } else { suggested };
            let given_up = waits_for.iter().find(|of| of.blocker_id == blocker.blocker_id);
            let why = given_up.map_or_else(|| format!("waits on {}", said(blocker)), |of| of.sentence());
            (command, vec![why])
        }
        (ObjectiveStatus::Blocked, blockers) => {
            let reason = objective.blocked_reason.as_deref().unwrap_or("nobody said why");
            let why = match blockers.len() {
                0 => format!("blocked: {reason}"),
                n => format!("blocked on {n} things: {reason}"),
            };
            (suggested, vec![why])
        }
        (ObjectiveStatus::Todo | ObjectiveStatus::InProgress, _) if !overdue => return None,
        (ObjectiveStatus::Todo, _) => {
            (format!("fernery snooze {id} tomorrow"), vec!["nobody works on it yet".to_string()])
        }
        (ObjectiveStatus::InProgress, _) => {
            (format!("fernery snooze {id} tomorrow"), vec!["still under way".to_string()])
        }
    };
    if let Some([first, more @ ..]) = known.behind.map(Vec::as_slice) {
        why.push(match more.len() {
            0 => format!("{first} waits for it"),
            n => format!("{first} and {n} more wait for it"),
        });
    }
    // An overdue date is the most important reason, so it comes first.
    dated(&mut why, due_at, now);
    if late {
        why.insert(0, format!("waits longer than urgency {} allows", objective.urgency));
    }
    // The reason of a run's failure stands in the ticket; a pause alone does not tell that there was a run.
    let judged = objective
        .blocked_reason
        .as_deref()
        .filter(|why| why.starts_with("gate ") || why.starts_with("not judged: "));
    match (pause.map(|pause| pause.reason), judged) {
        (Some(PauseReason::BudgetExhausted), _) => why.push("its budget is spent".to_string()),
        // A run that asks has stopped to ask: the question is the reason.
        (Some(PauseReason::GateFailed), Some(judged))
            if standing.question.is_none() && !why.iter().any(|why| why.contains(judged)) =>
        {
            why.push(format!("its last run did not pass: {judged}"));
        }
        _ => {}
    }
    let command = match foreign::foreign_id(objective) {
        Some(own) => foreign::look_at(own, asked.azolla_id.as_str(), asked.server.as_deref()),
        None => format!("{command}{}", at_server(asked.server.as_deref())),
    };
    let weighed = Weighed {
        status: Some(status),
        one_blocker: blockers.len() == 1,
        importance: objective.importance,
        urgency: objective.urgency,
        due_at,
        late,
        for_person,
        pause: pause.map(|pause| pause.reason),
        patch: unlanded.map(|_| PatchWaits::NotLanded),
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

    pub fn pauses(&self) -> Vec<PauseSummary> {
        self.items.iter().filter_map(|item| item.pause.clone()).collect()
    }
}

#[cfg(test)]
pub(super) mod tests;

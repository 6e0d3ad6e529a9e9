//! Decides what happens to an event that the scheduler has claimed.

use super::dependency::Dependency;
use super::envelope::{Spent, exhausted};
use super::happened::PauseKind;
use super::possible::{Approved, TicketState};
use crate::artifact::{
    BlockerKind, BlockerRef, DiazotrophType, Objective, ObjectiveId, ObjectiveStatus, ObjectiveType,
    PauseReason, TerminalReason,
};
use crate::blueprint::Envelope;

/// The decision about an event.
#[derive(Clone, Debug, PartialEq)]
pub enum Scheduling {
    /// A workorder is made, and the objective is IN_PROGRESS.
    Schedule,
    /// No workorder: the event is processed for this reason, and nothing else changes.
    Close(TerminalReason),
    /// The approval does not cover the current content: back to NEW.
    Lapse,
    /// There is a blocker: BLOCKED, with a pause.
    Block(Stop),
}

/// Why an objective cannot go on, and what a person can do about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Stop {
    pub kind: PauseKind,
    /// For the objective and the pause.
    pub reason: PauseReason,
    pub why: String,
    /// A new blocker; `None` if existing blockers are the reason.
    pub blocker: Option<(BlockerKind, String)>,
    /// One to three.
    pub actions: Vec<String>,
}

/// What the scheduler has read under lock.
#[derive(Clone, Debug)]
pub struct Seen<'a> {
    /// The event's objective; `None`: it is not there.
    pub objective: Option<&'a Objective>,
    /// Its open blockers that wait for another ticket.
    pub waits_for: &'a [Dependency],
    /// Whether its approval covers the current content.
    pub approved: bool,
    /// The limits of its attempts.
    pub envelope: &'a Envelope,
    /// What they have cost.
    pub spent: Spent,
}

/// Decides.
///
/// No call creates an event without its objective: readiness writes events for objectives that it has read, no
/// objective is ever deleted, and an import refuses events of unknown tickets. MISSING_TICKET is for rows written by
/// other programs, and for a damaged database.
pub fn decide(seen: &Seen<'_>) -> Scheduling {
    let Some(objective) = seen.objective else { return Scheduling::Close(TerminalReason::MissingTicket) };
    if objective.status != ObjectiveStatus::Todo || objective.objective_type == ObjectiveType::Standing {
        return Scheduling::Close(TerminalReason::NonExecutableStatus);
    }
    if !seen.approved {
        return Scheduling::Lapse;
    }
    if objective.has_open_blockers() {
        let waits_for = seen.waits_for.to_vec();
        return Scheduling::Block(blocked(&TicketState { waits_for, ..TicketState::of(objective) }));
    }
    if let Some(why) = exhausted(seen.envelope, &seen.spent) {
        return Scheduling::Block(spent(objective, &why));
    }
    Scheduling::Schedule
}

/// The stop of an objective whose blockers are open. Those that wait for another ticket ask nothing of a person; a question comes
/// first, and is answered.
pub fn blocked(state: &TicketState<'_>) -> Stop {
    let id = &state.objective.objective_id;
    let is_question = |b: &BlockerRef| state.question.as_ref() == Some(&b.blocker_id);
    let mut open = state.asks();
    open.sort_by_key(|blocker| !is_question(blocker));
    let waits: Vec<_> = state.waits_for.iter().filter(|of| !of.is_given_up()).collect();
    let named = |b: &&BlockerRef| format!("{} ({})", b.blocker_id, first_line(&b.description));
    let blocked_on = format!("blocked on {}", open.iter().map(named).collect::<Vec<_>>().join(", "));
    let others: Vec<&str> = waits.iter().map(|of| of.on.as_str()).collect();
    let waits_for = format!("waits for {}", others.join(", "));
    let (kind, why) = match (&open[..], &waits[..]) {
        ([], _) => (PauseKind::Waits, waits_for),
        (_, []) => (PauseKind::Event, blocked_on),
        _ => (PauseKind::Event, format!("{blocked_on}, and {waits_for}")),
    };
    let action = |b: &&BlockerRef| match is_question(b) {
        true => answer_it(id, &b.description),
        false => {
            format!("Resolve {}, then: fernery ticket unblock {id} --blocker {}", named(b), b.blocker_id)
        }
    };
    let mut actions: Vec<String> = open.iter().take(2).map(action).collect();
    if open.len() > 2 {
        actions.push(format!("Look at all {} blockers: fernery ticket show {id}", open.len()));
    }
    let approved = state.approved == Approved::Valid || state.for_person;
    actions.extend(waits.iter().map(|of| of.action(id, approved)));
    Stop { kind, reason: PauseReason::GateFailed, why, blocker: None, actions }
}

/// The action for an executor's question.
pub(super) fn answer_it(id: &ObjectiveId, question: &str) -> String {
    format!("Answer it: fernery ticket answer {id} \"…\"   ({})", first_line(question))
}

/// The stop of an objective whose envelope is used up.
pub fn spent(objective: &Objective, why: &str) -> Stop {
    let id = &objective.objective_id;
    Stop {
        kind: PauseKind::Event,
        reason: PauseReason::BudgetExhausted,
        why: format!("its envelope is used up: {why}"),
        blocker: Some((BlockerKind::UserInput, format!("envelope used up: {why}"))),
        actions: vec![format!("See how the attempts ended: fernery ticket show {id}"), again(id)],
    }
}

/// The action for a new envelope: only a new approval grants one.
pub(super) fn again(id: &ObjectiveId) -> String {
    format!(
        "To go on with a new envelope: fernery ticket unblock {id} --all, then: fernery ticket approve {id}"
    )
}

/// The stop of an objective whose workorder waits for a kind of executor that its azolla no longer has.
pub fn unexecuted(objective: &Objective, wanted: &DiazotrophType, in_force: &DiazotrophType) -> Stop {
    let id = &objective.objective_id;
    let why = if wanted == in_force {
        format!("its workorder is for an executor of {wanted} that the current blueprint no longer has")
    } else {
        format!("its workorder is for {wanted}; the current blueprint has {in_force} instead")
    };
    Stop {
        kind: PauseKind::Workorder,
        reason: PauseReason::GateFailed,
        blocker: Some((BlockerKind::DependencyChange, why.clone())),
        why,
        actions: vec![
            format!(
                "Let {in_force} do it: fernery ticket unblock {id} --all, then: fernery ticket approve {id}"
            ),
            format!("Or host a blueprint with {wanted} again, then: fernery ticket unblock {id} --all"),
        ],
    }
}

/// The first line, as far as a list has room for it; what is cut ends in `…`.
pub fn first_line(text: &str) -> String {
    line_within(text, 120)
}

/// A whole first line, for text that a person has to read in full.
pub(super) fn whole_line(text: &str) -> String {
    line_within(text, 1_000)
}

fn line_within(text: &str, chars_max: usize) -> String {
    let line = text.lines().next().unwrap_or("").trim();
    let mut short: String = line.chars().take(chars_max).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    short
}

//! What can be done with a ticket now, and what is suggested. It is said here and nowhere else: refusals, pauses, `ticket show`, the
//! orientation and the buttons of the pages all ask this.

use super::dependency::{Dependency, asks_somebody};
use super::judging::keep_run;
use super::landing::{Fit, LandingState, once_more, reopening};
use super::lifecycle::{Step, after};
use super::scheduling;
use super::waiting::Waiting;
use crate::artifact::{BlockerId, BlockerRef, Objective, ObjectiveStatus, PauseState, RunId};
use crate::inbox::deadline::{CANCELLED, is_cancelled};
use crate::words;
use std::borrow::Cow;

words!(
    /// What a person can do with a ticket.
    Verb {
        Approve = "approve",
        Answer = "answer",
        Done = "done",
        Edit = "edit",
        Block = "block",
        Unblock = "unblock",
        Confirm = "confirm",
        /// Confirm an earlier run that passed, where what came after it did not.
        Keep = "keep",
        Merge = "merge",
        Reopen = "reopen",
        Cancel = "cancel",
    }
);

/// Whether an approval lets it be worked on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approved {
    /// Nobody has approved it, or it was changed since.
    Never,
    /// It was approved with another blueprint.
    Void,
    #[default]
    Valid,
}

/// How its patch stands to its base branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchState {
    pub state: LandingState,
    pub fit: Option<Fit>,
    /// Why it conflicts, or did not land.
    pub why: Option<String>,
    /// Why nobody can land it now.
    pub waiting: Option<String>,
}

impl PatchState {
    /// Whether it is known not to merge with its branch, and nobody has asked for it.
    pub fn conflicts(&self) -> bool {
        self.state == LandingState::Open && self.fit == Some(Fit::Conflicts)
    }
}

/// How a ticket stands: all that decides what can be done with it. What nobody knows is left empty.
#[derive(Clone, Debug)]
pub struct TicketState<'a> {
    pub objective: Cow<'a, Objective>,
    /// It is DONE, and no person has confirmed it.
    pub unconfirmed: bool,
    pub approved: Approved,
    /// Its open blockers that wait for another ticket.
    pub waits_for: Vec<Dependency>,
    /// The blocker of a question that nobody has answered.
    pub question: Option<BlockerId>,
    /// The last run that passed.
    pub passed: Option<RunId>,
    pub patch: Option<PatchState>,
    /// A person does it, and no program.
    pub for_person: bool,
    /// A workorder of it has not come to its end.
    pub running: bool,
    /// Why nothing happens: a code and a sentence.
    pub waiting: Option<(String, String)>,
    /// Where it last stopped.
    pub pause: Option<PauseState>,
}

words!(
    /// The status as people see it: a ticket that was cancelled says so.
    SeenStatus {
        New = "NEW",
        Todo = "TODO",
        InProgress = "IN_PROGRESS",
        Blocked = "BLOCKED",
        Done = "DONE",
        Cancelled = "CANCELLED",
    }
);

impl SeenStatus {
    pub fn of(objective: &Objective) -> Self {
        match objective.status {
            _ if is_cancelled(objective) => Self::Cancelled,
            ObjectiveStatus::New => Self::New,
            ObjectiveStatus::Todo => Self::Todo,
            ObjectiveStatus::InProgress => Self::InProgress,
            ObjectiveStatus::Blocked => Self::Blocked,
            ObjectiveStatus::Done => Self::Done,
        }
    }

    /// The status of the artifact.
    pub const fn stored(self) -> ObjectiveStatus {
        match self {
            Self::New => ObjectiveStatus::New,
            Self::Todo => ObjectiveStatus::Todo,
            Self::InProgress => ObjectiveStatus::InProgress,
            Self::Blocked | Self::Cancelled => ObjectiveStatus::Blocked,
            Self::Done => ObjectiveStatus::Done,
        }
    }
}

/// The answer to the question of a ticket, to be filled in.
fn answer(objective: &Objective) -> String {
    format!("fernery ticket answer {} \"…\"", objective.objective_id)
}

impl<'a> TicketState<'a> {
    /// The state of an approved ticket of which nothing else is known.
    pub fn of(objective: &'a Objective) -> Self {
        Self {
            objective: Cow::Borrowed(objective),
            unconfirmed: false,
            approved: Approved::Valid,
            waits_for: Vec::new(),
            question: None,
            passed: None,
            patch: None,
            for_person: false,
            running: false,
            waiting: None,
            pause: None,
        }
    }

    /// With a ticket of its own, to be kept longer than what was read.
    pub fn kept(self) -> TicketState<'static> {
        TicketState { objective: Cow::Owned(self.objective.into_owned()), ..self }
    }

    /// The open blockers that somebody has to resolve.
    pub fn asks(&self) -> Vec<&BlockerRef> {
        asks_somebody(&self.objective, &self.waits_for).collect()
    }

    fn is_cancelled(&self) -> bool {
        is_cancelled(&self.objective)
    }

    /// Its patch, if that is known to conflict with its base branch.
    fn conflict(&self) -> Option<&PatchState> {
        self.patch.as_ref().filter(|patch| patch.conflicts())
    }

    fn leads(&self, step: Step) -> bool {
        after(self.objective.objective_type, self.objective.status, step).is_some()
    }

    /// Whether this can be done now.
    pub fn allows(&self, verb: Verb) -> bool {
        use ObjectiveStatus::{Blocked, Done, InProgress, New, Todo};
        let status = self.objective.status;
        let open = self.objective.has_open_blockers();
        let state = self.patch.as_ref().map(|patch| patch.state);
        match verb {
            Verb::Approve => self.leads(Step::Approve),
            Verb::Answer => status == Blocked && self.question.is_some() && !self.running,
            Verb::Done => self.for_person && !open && matches!(status, New | Todo | InProgress),
            Verb::Edit => self.leads(Step::Edit),
            Verb::Block => status == Blocked || self.leads(Step::Block),
            Verb::Unblock if self.running => false,
            Verb::Unblock => status == Blocked || open && matches!(status, New | Todo),
            Verb::Confirm => status == Done && self.unconfirmed,
            Verb::Keep => {
                let whole = self.approved == Approved::Valid && !self.running && !self.is_cancelled();
                self.leads(Step::Keep) && whole && self.passed.is_some()
            }
            Verb::Merge => status == Done && state == Some(LandingState::Open) && self.conflict().is_none(),
            Verb::Reopen => self.leads(Step::Reopen) && state != Some(LandingState::Moving),
            Verb::Cancel if status == Done => match state {
                Some(state) => matches!(state, LandingState::Open | LandingState::Wanted),
                None => self.unconfirmed,
            },
            Verb::Cancel => self.leads(Step::Cancel) && !self.is_cancelled(),
        }
    }

    /// All that can be done now.
    pub fn possible(&self) -> Vec<Verb> {
        Verb::ALL.iter().copied().filter(|verb| self.allows(*verb)).collect()
    }

    /// What is suggested, with its exact command; `None`: nothing, or something about another ticket.
    pub fn suggested(&self) -> Option<(Verb, String)> {
        use ObjectiveStatus::{Blocked, Done, InProgress, New, Todo};
        let id = &self.objective.objective_id;
        let ticket = |verb: &str, more: &str| format!("fernery ticket {verb} {id}{more}");
        let asks = self.asks();
        Some(match self.objective.status {
            Blocked if self.question.is_some() => (Verb::Answer, answer(&self.objective)),
            Blocked if self.is_cancelled() => (Verb::Unblock, ticket("unblock", " --all")),
            New | Todo | InProgress if self.allows(Verb::Done) => (Verb::Done, format!("fernery done {id}")),
            New if !self.for_person => (Verb::Approve, ticket("approve", "")),
            Todo | InProgress if asks.is_empty() => return None,
            New | Todo | InProgress | Blocked => match asks[..] {
                [] if !self.waits_for.is_empty() => return None,
                [one] => (Verb::Unblock, ticket("unblock", &format!(" --blocker {}", one.blocker_id))),
                _ => (Verb::Unblock, ticket("unblock", " --all")),
            },
            // Whoever confirmed it first could not merge it.
            Done if self.conflict().is_some() => {
                (Verb::Reopen, reopening(id, self.conflict().and_then(|patch| patch.why.as_deref())))
            }
            Done if self.unconfirmed => (Verb::Confirm, ticket("confirm", "")),
            Done if self.allows(Verb::Merge) => (Verb::Merge, ticket("merge", "")),
            Done => return None,
        })
    }

    /// What a person reads as the next things to do, the first first.
    pub fn next(&self) -> Vec<String> {
        let id = &self.objective.objective_id;
        let reopen = || format!("Not right? fernery ticket reopen {id} --note \"what is missing\"");
        if self.is_cancelled() {
            return vec![self.taken_up()];
        }
        match self.objective.status {
            ObjectiveStatus::New => match self.suggested() {
                Some((Verb::Done, command)) => vec![format!("You do it. When it is done: {command}")],
                Some((Verb::Approve, command)) => vec![format!("Read it, and approve it: {command}")],
                _ => scheduling::blocked(self).actions,
            },
            ObjectiveStatus::Todo if self.objective.has_open_blockers() => scheduling::blocked(self).actions,
            ObjectiveStatus::Todo | ObjectiveStatus::InProgress => self.waits(),
            ObjectiveStatus::Blocked => self.stopped(),
            ObjectiveStatus::Done if self.unconfirmed && self.conflict().is_some() => {
                let confirm = format!("Or confirm the result as it is: fernery ticket confirm {id}");
                self.lands().into_iter().chain([confirm]).collect()
            }
            ObjectiveStatus::Done if self.unconfirmed => {
                let mut next = vec![format!("Check the result, and confirm it: fernery ticket confirm {id}")];
                match self.patch.as_ref().and_then(|patch| patch.why.as_deref()) {
                    Some(why) => next.push(format!("It does not land now: {}", scheduling::first_line(why))),
                    None if self.allows(Verb::Merge) => {
                        next.push(format!("Or confirm and merge it: fernery ticket merge {id}"));
                    }
                    None => {}
                }
                next.push(reopen());
                next
            }
            ObjectiveStatus::Done => self.lands(),
        }
    }

    /// How a cancelled ticket is taken up again.
    pub fn taken_up(&self) -> String {
        let id = &self.objective.objective_id;
        match self.question {
            Some(_) => format!("To take it up again, answer its question: {}", answer(&self.objective)),
            None => format!("To take it up again: fernery ticket unblock {id} --all"),
        }
    }

    fn waits(&self) -> Vec<String> {
        let Some((code, why)) = &self.waiting else {
            return vec!["Nothing: it continues by itself".into()];
        };
        let id = &self.objective.objective_id;
        match code.as_str() {
            code if Waiting::needs_a_person(code) => {
                vec![why.clone(), format!("Or stop it: fernery ticket cancel {id}")]
            }
            "person" => vec![format!("You do it. When it is done: fernery done {id}")],
            "review_limit" => vec![format!("Confirm finished tickets: {why}")],
            _ => vec![format!("Nothing: {why}")],
        }
    }

    /// The next steps of a BLOCKED ticket. Its last pause says more than its blockers do, as long as nothing has changed since.
    fn stopped(&self) -> Vec<String> {
        let id = &self.objective.objective_id;
        let is_dependency = |of: &BlockerRef| self.waits_for.iter().any(|on| on.blocker_id == of.blocker_id);
        let only_waits = !self.waits_for.is_empty() && self.asks().into_iter().all(is_dependency);
        let said = self.pause.as_ref().filter(|pause| pause.created_at >= self.objective.updated_at);
        let mut actions = match said {
            Some(pause) if !only_waits => pause.prioritized_actions.clone(),
            _ if self.objective.has_open_blockers() => scheduling::blocked(self).actions,
            _ => vec![format!("fernery ticket unblock {id} --all")],
        };
        if let Some(run) = self.passed.as_ref().filter(|_| self.allows(Verb::Keep)) {
            let keep = keep_run(id, run);
            if !actions.contains(&keep) {
                actions.push(keep);
            }
        }
        let approve = format!("fernery ticket approve {id}");
        // An answer approves.
        let unsaid = self.question.is_none() && !actions.iter().any(|action| action.contains(&approve));
        if self.approved != Approved::Valid && unsaid {
            actions.push(format!("No approval covers it now: after that it is NEW, then: {approve}"));
        }
        actions
    }

    /// Of a finished ticket: where its patch stands.
    fn lands(&self) -> Vec<String> {
        let Some(patch) = &self.patch else { return Vec::new() };
        match (patch.state, self.suggested()) {
            (state, _) if state.is_wanted() => {
                vec![patch.waiting.clone().unwrap_or_else(|| "Nothing: it lands by itself".into())]
            }
            (_, Some((Verb::Reopen, command))) => {
                vec![format!("It conflicts with its base branch. Let it be worked on again: {command}")]
            }
            (LandingState::Open, Some((_, command))) => match &patch.why {
                Some(why) => once_more(&self.objective.objective_id, why),
                None => vec![format!("Merge it: {command}")],
            },
            _ => Vec::new(),
        }
    }

    /// Why something cannot be done now, and what can.
    pub fn refusal(&self) -> String {
        let id = &self.objective.objective_id;
        let is = if self.is_cancelled() { CANCELLED } else { self.objective.status.as_str() };
        let possible = self.possible();
        let names = possible.iter().map(|verb| match verb {
            Verb::Keep => "confirm --run",
            verb => verb.as_str(),
        });
        let next = match (self.objective.status, self.next().first()) {
            (ObjectiveStatus::InProgress | ObjectiveStatus::Todo, _) | (_, None) => String::new(),
            (_, Some(first)) => format!(". {first}"),
        };
        format!("{id} is {is}; possible actions: {}{next}", names.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
#[path = "possible/tests.rs"]
mod tests;

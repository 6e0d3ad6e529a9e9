//! Decides what happens to an event that the scheduler has claimed.

use super::envelope::{Spent, exhausted};
use crate::artifact::{
    AzollaId, BlockerKind, DiazotrophType, Objective, ObjectiveId, ObjectiveStatus, ObjectiveType,
    PauseReason, TerminalReason,
};
use crate::blueprint::{Blueprint, Envelope};

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
    /// For the objective and the pause.
    pub reason: PauseReason,
    pub why: String,
    /// A new blocker; `None` if existing blockers are the reason.
    pub blocker: Option<(BlockerKind, String)>,
    /// One to three.
    pub actions: Vec<String>,
}

/// The start of work: the commit of a repository's base branch when the scheduler looked, or why it is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ground {
    /// The repository's name in the ticket; `None`: it names none.
    pub repo_ref: Option<String>,
    /// Its base branch and the commit there.
    pub base: Result<(String, String), String>,
}

/// The repository that an objective names.
pub fn repo_ref(objective: &Objective) -> Option<&str> {
    objective.metadata.get("repo_ref")?.as_str()
}

/// What the process that gets the approval could start work on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Premises {
    /// The azollas that it hosts.
    pub hosted: Vec<AzollaId>,
    /// The names of its repositories.
    pub repos: Vec<String>,
}

/// Why an approval would be in vain: the work needs a repository, and there is none. Reports only what is certain:
/// other processes may host the azolla and have the repository, and a missing login or worker may still come.
pub fn unstartable(
    objective: &Objective,
    blueprint: &Blueprint,
    premises: Option<&Premises>,
) -> Option<String> {
    if !blueprint.needs_repository() {
        return None;
    }
    let (id, azolla) = (&objective.objective_id, &objective.azolla_id);
    let name_one = match objective.status {
        // A DONE objective cannot be edited.
        ObjectiveStatus::Done => format!(
            "{id} is DONE and cannot be edited; write a new ticket: fernery ticket new --azolla {azolla} --title TEXT \
             --meta repo_ref=NAME"
        ),
        _ => format!("Name one: fernery ticket edit {id} --meta repo_ref=NAME"),
    };
    let named = repo_ref(objective);
    let Some(here) = premises.filter(|here| here.hosted.contains(azolla)) else {
        return match named {
            Some(_) => None,
            None => Some(format!(
                "azolla {azolla} makes patches for a repository, but {id} names none. {name_one}, where NAME is in [repos] of \
                 the server that hosts {azolla}"
            )),
        };
    };
    if here.repos.is_empty() {
        return Some(format!(
            "azolla {azolla} makes patches for a repository, but this server has none: run `fernery init` in a repository, \
             or start `fernery up` with --repos NAME=PATH"
        ));
    }
    let known = here.repos.join(", ");
    match named {
        Some(name) if here.repos.iter().any(|repo| repo == name) => None,
        Some(name) => Some(format!(
            "repository {name} is not in [repos] of this server, which has: {known}. {name_one}"
        )),
        None => Some(format!(
            "azolla {azolla} makes patches for a repository, but {id} names none. This server has: {known}. {name_one}"
        )),
    }
}

/// The stop of an objective without a base commit.
pub fn groundless(objective: &Objective, why: &str) -> Stop {
    let id = &objective.objective_id;
    Stop {
        reason: PauseReason::GateFailed,
        why: why.to_string(),
        blocker: Some((BlockerKind::EnvironmentAccess, why.to_string())),
        actions: vec![
            format!("Fix this: {}", first_line(why)),
            format!("Then: fernery ticket unblock {id} --all"),
        ],
    }
}

/// What the scheduler has read under lock.
#[derive(Clone, Debug)]
pub struct Seen<'a> {
    /// The event's objective; `None`: it is not there.
    pub objective: Option<&'a Objective>,
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
        return Scheduling::Block(blocked(objective));
    }
    if let Some(why) = exhausted(seen.envelope, &seen.spent) {
        return Scheduling::Block(spent(objective, &why));
    }
    Scheduling::Schedule
}

/// The stop of an objective whose blockers are open.
pub fn blocked(objective: &Objective) -> Stop {
    let id = &objective.objective_id;
    let open: Vec<_> = objective.blocked_on.iter().filter(|blocker| !blocker.resolved).collect();
    let named =
        |b: &&crate::artifact::BlockerRef| format!("{} ({})", b.blocker_id, first_line(&b.description));
    let why = format!("blocked on {}", open.iter().map(named).collect::<Vec<_>>().join(", "));
    let mut actions: Vec<String> = open
        .iter()
        .take(2)
        .map(|b| {
            format!("Resolve {}, then: fernery ticket unblock {id} --blocker {}", named(b), b.blocker_id)
        })
        .collect();
    if open.len() > 2 {
        actions.push(format!("Look at all {} blockers: fernery ticket show {id}", open.len()));
    }
    Stop { reason: PauseReason::GateFailed, why, blocker: None, actions }
}

/// The stop of an objective whose envelope is used up.
pub fn spent(objective: &Objective, why: &str) -> Stop {
    let id = &objective.objective_id;
    Stop {
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

pub(super) fn first_line(text: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn objective(metadata: serde_json::Value) -> Objective {
        serde_json::from_value(json!({
            "objective_id": "T-1", "azolla_id": "mec", "title": "t", "acceptance_criteria": "",
            "objective_type": "TICKET", "status": "NEW", "importance": 2, "urgency": 2, "blocked_reason": null,
            "blocked_on": [], "metadata": metadata, "created_at": "2026-01-01T00:00:00Z",
            "updated_at": "2026-01-01T00:00:00Z",
        }))
        .unwrap()
    }

    #[test]
    fn what_has_no_repository_to_start_from_is_told_before_it_is_approved() {
        let mec = Blueprint::mec();
        let premises = |hosted: &str, repos: &[&str]| Premises {
            hosted: vec![AzollaId::stored(hosted)],
            repos: repos.iter().map(ToString::to_string).collect(),
        };
        let (none, web) = (json!({}), json!({"repo_ref": "web"}));
        let (here, elsewhere) = (premises("mec", &["app", "web"]), premises("other", &[]));
        for (metadata, at, said) in [
            (&none, Some(premises("mec", &[])), "`fernery init` in a repository"),
            (&web, Some(premises("mec", &[])), "`fernery init` in a repository"),
            (&none, Some(here.clone()), "T-1 names none. This server has: app, web"),
            (&json!({"repo_ref": 7}), Some(here.clone()), "T-1 names none"),
            (
                &json!({"repo_ref": "wbe"}),
                Some(here.clone()),
                "repository wbe is not in [repos] of this server",
            ),
            (&none, Some(elsewhere.clone()), "of the server that hosts mec"),
            (&none, None, "of the server that hosts mec"),
        ] {
            let why = unstartable(&objective(metadata.clone()), &mec, at.as_ref()).unwrap_or_default();
            assert!(why.contains(said), "{metadata} {at:?}: {why}");
        }
        // A DONE objective cannot be edited, so the message must not suggest that.
        for at in [Some(here.clone()), None] {
            let done = Objective { status: ObjectiveStatus::Done, ..objective(none.clone()) };
            let why = unstartable(&done, &mec, at.as_ref()).unwrap_or_default();
            assert!(!why.contains("ticket edit"), "{why}");
            assert!(why.contains("write a new ticket: fernery ticket new --azolla mec"), "{why}");
        }
        for at in [Some(here), Some(elsewhere), None] {
            assert_eq!(unstartable(&objective(web.clone()), &mec, at.as_ref()), None, "{at:?}");
        }
        let tasks = Blueprint { gates: vec![crate::blueprint::Gate::Schema], ..mec };
        assert_eq!(unstartable(&objective(none), &tasks, Some(&premises("mec", &[]))), None);
    }
}

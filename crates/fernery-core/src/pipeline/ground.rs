//! The repository and the commit that work starts from: checked before an approval, and again by the scheduler.

use super::happened::PauseKind;
use super::scheduling::{Stop, first_line};
use crate::artifact::{AzollaId, BlockerKind, Objective, ObjectiveStatus, PauseReason};
use crate::blueprint::Blueprint;

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

/// The start of work: the commit of a repository's base branch when the scheduler looked, or why it is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ground {
    /// The repository's name in the ticket; `None`: it names none.
    pub repo_ref: Option<String>,
    /// Its base branch and the commit there.
    pub base: Result<(String, String), String>,
}

/// The stop of an objective without a base commit.
pub fn groundless(objective: &Objective, why: &str) -> Stop {
    let id = &objective.objective_id;
    Stop {
        kind: PauseKind::Event,
        reason: PauseReason::GateFailed,
        why: why.to_string(),
        blocker: Some((BlockerKind::EnvironmentAccess, why.to_string())),
        actions: vec![
            format!("Fix this: {}", first_line(why)),
            format!("Then: fernery ticket unblock {id} --all"),
        ],
    }
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

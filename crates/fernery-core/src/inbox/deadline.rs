//! When an objective is overdue.
//!
//! A deadline counts from the instant at which its urgency was first seen, not from the last edit: to edit a title buys no
//! time. A `due_at` in the metadata wins over the urgency.

use crate::Timestamp;
use crate::artifact::{AzollaId, Objective, ObjectiveStatus, ObjectiveType, PauseReason, PauseState};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// What a deadline counts from: the instant at which this urgency and this `due_at` were first seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clock {
    /// The urgency that was seen.
    pub urgency: u8,
    /// The `due_at` that was seen.
    pub due_at: Option<Timestamp>,
    /// When they were first seen.
    pub since: Timestamp,
}

/// The `due_at` of an objective's metadata: an instant of RFC 3339, or a date, which ends with its last second in UTC.
/// Whatever else stands there is none.
pub fn due_at(objective: &Objective) -> Option<Timestamp> {
    let text = objective.metadata.get("due_at").and_then(Value::as_str)?;
    let instant = text.parse().ok();
    instant.or_else(|| (text.len() == 10).then(|| format!("{text}T23:59:59Z").parse().ok()).flatten())
}

/// The clock of an objective as it stands now, given the one that was known. At first sight it counts from when the
/// objective was written down; unchanged it goes on; an urgency or date that changed counts from now.
pub fn clock(objective: &Objective, known: Option<&Clock>, now: Timestamp) -> Clock {
    let (urgency, due_at) = (objective.urgency, due_at(objective));
    let since = match known {
        None => objective.created_at,
        Some(known) if known.urgency == urgency && known.due_at == due_at => known.since,
        Some(_) => now,
    };
    Clock { urgency, due_at, since }
}

/// When it is overdue. The map has a duration for each urgency, or none.
pub fn deadline(clock: &Clock, urgency_map: &[Option<Duration>; 5]) -> Option<Timestamp> {
    let by_urgency = || {
        let allowed = urgency_map.get(usize::from(clock.urgency)).copied().flatten()?;
        Some(clock.since.after(allowed))
    };
    clock.due_at.or_else(by_urgency)
}

/// Whether somebody still has something to do: a ticket that is neither DONE nor cancelled.
pub fn is_open(objective: &Objective) -> bool {
    objective.objective_type == ObjectiveType::Ticket
        && objective.status != ObjectiveStatus::Done
        && !is_cancelled(objective)
}

/// Whether an operator cancelled it.
pub(crate) fn is_cancelled(objective: &Objective) -> bool {
    objective.status == ObjectiveStatus::Blocked && objective.blocked_reason.as_deref() == Some("cancelled")
}

/// ` --server URL` for a command that goes elsewhere.
pub(crate) fn at_server(server: Option<&str>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || ":/._-%[]".contains(c);
    match server {
        None => String::new(),
        Some(url) if url.chars().all(plain) => format!(" --server {url}"),
        Some(url) => format!(" --server '{}'", url.replace('\'', "'\\''")),
    }
}

/// What a person is told of an overdue objective, written by the azolla that noticed and kept there.
pub fn overdue_pause(
    objective: &Objective,
    azolla_id: &AzollaId,
    server: Option<&str>,
    deadline: Timestamp,
    now: Timestamp,
) -> PauseState {
    let (id, at) = (&objective.objective_id, at_server(server));
    PauseState {
        objective_id: id.clone(),
        azolla_id: azolla_id.clone(),
        reason: PauseReason::RunComplete,
        prioritized_actions: vec![
            format!("Overdue since {deadline}. See what it waits for: fernery ticket show {id}{at}"),
            format!("Give it another urgency or due_at: fernery ticket edit {id}{at}"),
            format!("Give it up: fernery ticket cancel {id}{at}"),
        ],
        created_at: now,
    }
}

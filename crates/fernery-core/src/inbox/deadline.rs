//! When an objective is overdue.
//!
//! A deadline counts from when its urgency was first seen, not from the last edit: editing a title gives no more time.
//! A `due_at` in the metadata overrides the urgency.

use super::{dates, foreign};
use crate::Timestamp;
use crate::artifact::{
    AzollaId, Metadata, Objective, ObjectiveStatus, ObjectiveType, PauseReason, PauseState,
};
use crate::calendar::Zone;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// The start of a deadline: when this urgency and this `due_at` were first seen.
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
/// Any other text counts as no date.
pub fn due_at(objective: &Objective) -> Option<Timestamp> {
    due_of(&objective.metadata)
}

/// The same of metadata.
pub fn due_of(metadata: &Metadata) -> Option<Timestamp> {
    let text = metadata.get("due_at").and_then(Value::as_str)?;
    let instant = text.parse().ok();
    instant.or_else(|| (text.len() == 10).then(|| format!("{text}T23:59:59Z").parse().ok()).flatten())
}

/// Reads when something is due as people say it, from `now` on: `friday`, `tomorrow 17:00`, `in 2 weeks`, `3d`, a date, or an
/// instant. A day without a time ends with its last second, as in a capture.
pub fn read_due(text: &str, now: Timestamp, zone: &Zone) -> Result<Timestamp, String> {
    let lower = text.trim().to_lowercase();
    let words: Vec<&str> = lower.split_whitespace().collect();
    let in_words = || {
        let today = zone.civil(now)?.date();
        let when = dates::phrase(&words, today).or_else(|| match words[..] {
            [word] => dates::value(word, today),
            _ => None,
        })?;
        // A day so far away that no instant can be written for it is no date.
        zone.instant(when.civil()).filter(|at| at.to_string().parse::<Timestamp>().is_ok())
    };
    text.trim().parse().ok().or_else(in_words).ok_or_else(|| format!("{text:?} is no date: {DUE_SAID}"))
}

/// What people can say for a date that something is due.
pub const DUE_SAID: &str =
    "say friday, tomorrow 17:00, in 2 weeks, 2026-12-01, or an instant like 2026-12-01T17:00:00Z";

/// The clock of an objective now, given the clock that was known before. A new objective counts from its creation; if urgency
/// and date are unchanged, the clock continues; if one of them changed, it counts from now.
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

/// Why a cancelled objective is BLOCKED.
pub const CANCELLED: &str = "cancelled";

/// Whether an operator cancelled it.
pub fn is_cancelled(objective: &Objective) -> bool {
    says_cancelled(objective.status, objective.blocked_reason.as_deref())
}

/// Whether a status and its reason are those of a cancelled objective.
pub fn says_cancelled(status: ObjectiveStatus, reason: Option<&str>) -> bool {
    status == ObjectiveStatus::Blocked && reason == Some(CANCELLED)
}

/// ` --url URL` for a command that goes elsewhere.
pub(crate) fn at_server(server: Option<&str>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || ":/._-%[]".contains(c);
    match server {
        None => String::new(),
        Some(url) if url.chars().all(plain) => format!(" --url {url}"),
        Some(url) => format!(" --url '{}'", url.replace('\'', "'\\''")),
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
    let paused = |actions: Vec<String>| {
        PauseState::new(id.clone(), azolla_id.clone(), PauseReason::RunComplete, actions, now)
    };
    if let Some(own) = foreign::foreign_id(objective) {
        let look = foreign::look_at(own, objective.azolla_id.as_str(), server);
        return paused(vec![format!("Overdue since {deadline}: {look}")]);
    }
    let more_time = match due_at(objective) {
        Some(_) => {
            let next_week = now.after(Duration::from_secs(7 * 24 * 3600)).to_string();
            format!("--meta due_at={}", next_week.split('T').next().unwrap_or_default())
        }
        None => format!("--urgency {}", objective.urgency.saturating_add(1).min(4)),
    };
    paused(vec![
        format!("Overdue since {deadline}. See what it waits for: fernery ticket show {id}{at}"),
        format!("Give it more time: fernery ticket edit {id} {more_time}{at}"),
        format!("Give it up: fernery ticket cancel {id}{at}"),
    ])
}

#[cfg(test)]
mod tests {
    use super::super::facts::tests::{URGENCY, now, objective};
    use super::*;
    use serde_json::json;

    const HOUR: Duration = Duration::from_secs(3600);

    fn with_due(value: Value) -> Objective {
        Objective {
            metadata: [("due_at".to_string(), value)].into(),
            ..objective("T-1", ObjectiveStatus::Todo)
        }
    }

    #[test]
    fn people_say_when_something_is_due() {
        // A Monday.
        let now: Timestamp = "2026-11-16T10:30:00Z".parse().unwrap();
        let read = |text: &str, zone: &str| read_due(text, now, &zone.parse().unwrap());
        for (text, expected) in [
            ("friday", "2026-11-20T23:59:59.000Z"),
            ("Tomorrow 17:00", "2026-11-17T17:00:00.000Z"),
            ("in 2 weeks", "2026-11-30T23:59:59.000Z"),
            ("3d", "2026-11-19T23:59:59.000Z"),
            ("2026-12-01", "2026-12-01T23:59:59.000Z"),
            ("2026-12-01T08:00:00+01:00", "2026-12-01T07:00:00.000Z"),
            ("2026-11-02", "2026-11-02T23:59:59.000Z"),
        ] {
            assert_eq!(read(text, "UTC").map(|at| at.to_string()).as_deref(), Ok(expected), "{text}");
        }
        let vienna = read("friday", "Europe/Vienna").unwrap();
        assert_eq!(vienna.to_string(), "2026-11-20T22:59:59.000Z");
        for text in ["", "soon", "2026-13-01", "friday friday", "5"] {
            assert!(read(text, "UTC").is_err_and(|why| why.contains("say friday")), "{text}");
        }
    }

    #[test]
    fn only_an_instant_or_a_date_is_a_due_at() {
        for (value, expected) in [
            (json!("2026-11-20T10:00:00Z"), Some("2026-11-20T10:00:00.000Z")),
            (json!("2026-11-20T10:00:00+02:00"), Some("2026-11-20T08:00:00.000Z")),
            (json!("2026-11-20"), Some("2026-11-20T23:59:59.000Z")),
            (json!("2026-11-31"), None),
            (json!("+002026-11"), None),
            (json!("friday"), None),
            (json!(""), None),
            (json!(1_790_000_000), None),
            (json!(null), None),
            (json!({ "at": "2026-11-20" }), None),
        ] {
            let found = due_at(&with_due(value.clone())).map(|at| at.to_string());
            assert_eq!(found.as_deref(), expected, "{value}");
        }
        assert_eq!(due_at(&objective("T-1", ObjectiveStatus::New)), None);
    }

    #[test]
    fn the_clock_starts_with_the_objective_and_again_only_with_another_urgency_or_date() {
        let first = Objective { urgency: 1, ..objective("T-1", ObjectiveStatus::Todo) };
        let seen = clock(&first, None, now());
        assert_eq!(seen, Clock { urgency: 1, due_at: None, since: first.created_at });
        let edited = Objective { title: "other".into(), updated_at: now(), ..first.clone() };
        assert_eq!(clock(&edited, Some(&seen), now()), seen, "an edit buys no time");
        let later = now().after(HOUR);
        assert_eq!(clock(&Objective { urgency: 2, ..first.clone() }, Some(&seen), later).since, later);
        let dated = clock(&Objective { urgency: 1, ..with_due(json!("2026-11-20")) }, Some(&seen), later);
        assert_eq!(dated.since, later);
        assert_eq!(clock(&first, Some(&dated), later.after(HOUR)).since, later.after(HOUR));
    }

    #[test]
    fn a_date_wins_over_the_urgency_and_some_urgencies_have_no_deadline() {
        let clock = |urgency, due_at| Clock { urgency, due_at, since: now() };
        for (clock, expected) in [
            (clock(0, None), Some(now())),
            (clock(1, None), Some(now().after(24 * HOUR))),
            (clock(4, None), None),
            (clock(9, None), None),
            (clock(0, Some(now().after(HOUR))), Some(now().after(HOUR))),
            (clock(4, Some(now().before(HOUR))), Some(now().before(HOUR))),
        ] {
            assert_eq!(deadline(&clock, &URGENCY), expected, "{clock:?}");
        }
    }

    #[test]
    fn what_is_done_cancelled_or_standing_is_not_open() {
        use ObjectiveStatus::{Blocked, Done, InProgress, New, Todo};
        for (status, expected) in
            [(New, true), (Todo, true), (InProgress, true), (Blocked, true), (Done, false)]
        {
            assert_eq!(is_open(&objective("T-1", status)), expected, "{status}");
        }
        let cancelled = Objective { blocked_reason: Some("cancelled".into()), ..objective("T-1", Blocked) };
        assert!(!is_open(&cancelled));
        assert!(!is_open(&Objective { objective_type: ObjectiveType::Standing, ..objective("T-1", New) }));
    }

    #[test]
    fn the_pause_of_an_overdue_objective_is_the_noticing_azollas_and_has_exact_commands() {
        let here = AzollaId::stored("task_management");
        let pause = overdue_pause(
            &objective("T-1", ObjectiveStatus::Todo),
            &here,
            Some("http://x:7878"),
            now(),
            now(),
        );
        assert_eq!(
            pause.prioritized_actions,
            [
                "Overdue since 2026-11-16T12:00:00.000Z. See what it waits for: fernery ticket show T-1 --url http://x:7878",
                "Give it more time: fernery ticket edit T-1 --urgency 4 --url http://x:7878",
                "Give it up: fernery ticket cancel T-1 --url http://x:7878",
            ]
        );
        assert_eq!(crate::Schema::named("pause_state").unwrap().validate(&json!(pause)), []);
        assert_eq!(pause.azolla_id, here);
        let dated = overdue_pause(&with_due(json!("2026-11-15")), &here, None, now(), now());
        assert_eq!(
            dated.prioritized_actions[1],
            "Give it more time: fernery ticket edit T-1 --meta due_at=2026-11-23"
        );
    }
}

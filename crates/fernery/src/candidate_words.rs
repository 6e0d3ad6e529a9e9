//! A candidate in words, the same ones in the terminal and on the pages.

use fernery_client::wire::CandidateView;
use fernery_core::Timestamp;
use fernery_core::id_part::short;
use fernery_core::inbox::CandidateStatus;
use serde_json::Value;

const IMPORTANCE: [&str; 5] = ["most", "high", "middling", "low", "least"];
const URGENCY: [&str; 5] = ["now", "soon", "about this week", "can wait", "whenever"];

/// What is known of a candidate beside its texts, each with its name.
pub(crate) fn facts(candidate: &CandidateView) -> Vec<(&'static str, String)> {
    let text = |key: &str| candidate.metadata.get(key).and_then(Value::as_str).map(str::to_string);
    let mut facts = Vec::new();
    let mut fact = |name, value: Option<String>| facts.extend(value.map(|value| (name, value)));
    fact("importance", Some(word(&IMPORTANCE, candidate.importance)));
    fact("urgency", Some(word(&URGENCY, candidate.urgency)));
    fact("due", due(candidate));
    fact("every", text("every"));
    fact("snoozed", candidate.snoozed_until.map(|until| format!("until {}", readable(&until.to_string()))));
    fact("projects", names(candidate, "projects", "+"));
    fact("contexts", names(candidate, "contexts", "@"));
    fact("labels", names(candidate, "labels", "#"));
    let status = match (&candidate.objective_id, &candidate.merged_into) {
        (Some(ticket), _) => Some(format!("{} as {ticket}", candidate.status)),
        (_, Some(other)) => Some(format!("{} into {}", candidate.status, short(other.as_str()))),
        _ if candidate.status == CandidateStatus::Waiting => None,
        _ => Some(candidate.status.to_string()),
    };
    fact("status", status);
    fact("made by", (candidate.made_by != "builtin").then(|| candidate.made_by.clone()));
    facts
}

/// The due date, if there is one.
pub(crate) fn due(candidate: &CandidateView) -> Option<String> {
    candidate.metadata.get("due_at").and_then(Value::as_str).map(readable)
}

/// Words of a list in the metadata.
pub(crate) fn names(candidate: &CandidateView, key: &str, mark: &str) -> Option<String> {
    let names = candidate.metadata.get(key)?.as_array()?;
    let names: Vec<_> = names.iter().filter_map(Value::as_str).map(|name| format!("{mark}{name}")).collect();
    (!names.is_empty()).then(|| names.join(" "))
}

/// A due date that somebody typed, as it is kept.
pub(crate) fn due_date(text: &str) -> Result<String, String> {
    let end_of_day = || format!("{text}T23:59:59Z").parse::<Timestamp>().is_ok();
    match text.parse::<Timestamp>().is_ok() || (text.len() == 10 && end_of_day()) {
        true => Ok(text.to_string()),
        false => Err("expected a date like 2026-11-20, or a time like 2026-11-20T17:00:00Z".into()),
    }
}

/// Only the day, if the time is its end.
fn readable(due: &str) -> String {
    match due.split_once('T') {
        Some((day, time)) if time.starts_with("23:59:59") && time.ends_with('Z') => day.to_string(),
        Some((day, time)) if time.ends_with('Z') && time.is_ascii() && time.len() > 5 => {
            format!("{day} {} UTC", &time[..5])
        }
        _ => due.to_string(),
    }
}

fn word(words: &[&str; 5], degree: u8) -> String {
    format!("{degree} ({})", words.get(usize::from(degree)).unwrap_or(&"?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_due_date_is_as_short_as_it_can_be() {
        for (due, said) in [
            ("2026-11-17T23:59:59.000Z", "2026-11-17"),
            ("2026-11-17T17:00:00.000Z", "2026-11-17 17:00 UTC"),
            ("2026-11-17T17:00:00+01:00", "2026-11-17T17:00:00+01:00"),
            ("2026-11-17", "2026-11-17"),
        ] {
            assert_eq!(readable(due), said);
        }
    }

    #[test]
    fn a_due_date_that_is_typed_is_a_day_or_an_instant() {
        for good in ["2026-11-20", "2026-11-20T17:00:00Z", "2026-11-20T17:00:00+01:00"] {
            assert_eq!(due_date(good), Ok(good.to_string()));
        }
        for bad in ["", "tomorrow", "2026-13-01", "2026-11-20T17", "20.11.2026"] {
            assert!(due_date(bad).is_err(), "{bad}");
        }
    }
}

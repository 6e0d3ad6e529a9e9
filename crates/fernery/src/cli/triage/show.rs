//! A candidate for people: what was captured, and below it the ticket that it would become.

use crate::cli::job::stream;
use crate::cli::screen::{counted, plain, wrapped};
use fernery_client::wire::CandidateView;
use fernery_core::inbox::label::is_same;
use fernery_core::inbox::{CandidateStatus, marks};
use fernery_engine::door;
use serde_json::Value;

pub(super) use crate::cli::screen::ids::short;

/// The due date, if there is one.
pub(super) fn due(candidate: &CandidateView) -> Option<String> {
    candidate.metadata.get("due_at").and_then(Value::as_str).map(|due| plain(&readable(due)))
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

/// Words of a list in the metadata.
fn names(candidate: &CandidateView, key: &str, mark: &str) -> Option<String> {
    let names = candidate.metadata.get(key)?.as_array()?;
    let names: Vec<_> =
        names.iter().filter_map(Value::as_str).map(|n| format!("{mark}{}", plain(n))).collect();
    (!names.is_empty()).then(|| names.join(" "))
}

/// The title, with the labels that it does not name itself.
pub(super) fn titled(candidate: &CandidateView) -> String {
    let said = marks::labels(&candidate.title);
    let of = |key: &str, mark: &str| names(candidate, key, mark).unwrap_or_default();
    let all = [of("projects", "+"), of("labels", "#")].join(" ");
    let more = all.split_whitespace().filter(|label| !said.iter().any(|known| is_same(known, &label[1..])));
    std::iter::once(candidate.title.as_str()).chain(more).collect::<Vec<_>>().join(" ")
}

const IMPORTANCE: [&str; 5] = ["most", "high", "middling", "low", "least"];
const URGENCY: [&str; 5] = ["now", "soon", "about this week", "can wait", "whenever"];

fn word(words: &[&str; 5], degree: u8) -> String {
    format!("{degree} ({})", words.get(usize::from(degree)).unwrap_or(&"?"))
}

/// What is known of a candidate beside its texts, each with its name.
pub(crate) fn facts(candidate: &CandidateView) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let mut fact = |name, value: Option<String>| facts.extend(value.map(|value| (name, value)));
    fact("importance", Some(word(&IMPORTANCE, candidate.importance)));
    fact("urgency", Some(word(&URGENCY, candidate.urgency)));
    fact("due", due(candidate));
    fact("every", candidate.metadata.get("every").and_then(Value::as_str).map(plain));
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
    fact("status", status.map(|status| plain(&status)));
    fact("made by", (candidate.made_by != "builtin").then(|| plain(&candidate.made_by)));
    facts
}

/// The lines of a candidate, wrapped to `width` if known; a text of more than `lines_max` lines is cut.
pub(super) fn card(candidate: &CandidateView, width: Option<usize>, lines_max: usize) -> Vec<String> {
    let now = door::wall_clock();
    let id = short(candidate.candidate_id.as_str());
    let mut lines = Vec::new();
    for capture in &candidate.captures {
        let captured = &capture.capture;
        let ago = stream::age(now.since(captured.created_at));
        lines.push(format!("captured {ago} ago from {}:", plain(&captured.source_label)));
        let mut text = indented(&captured.raw_content, width);
        if text.len() > lines_max {
            let more = counted(text.len() - lines_max, "more line");
            text.truncate(lines_max);
            text.push(format!("  … {more}: fernery triage show {id}"));
        }
        lines.extend(text);
    }
    lines.push(String::new());
    let title = indented(&candidate.title, width);
    lines.extend(title.into_iter().map(|line| line.trim_start().to_string()));
    lines.extend(facts(candidate).into_iter().map(|(name, value)| format!("  {name:<11} {value}")));
    lines.push(format!("  {:<11} {}", "id", candidate.candidate_id));
    if !candidate.acceptance_criteria.trim().is_empty() {
        let mut criteria = indented(&candidate.acceptance_criteria, width);
        if criteria.len() > lines_max {
            criteria.truncate(lines_max);
            criteria.push("  …".to_string());
        }
        lines.extend(criteria);
    }
    lines
}

/// Foreign text, without control characters, indented by two and wrapped.
fn indented(text: &str, width: Option<usize>) -> Vec<String> {
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(3).max(10));
    let mut lines = Vec::new();
    for line in plain(text).trim_end().lines() {
        lines.extend(wrapped(line, room).into_iter().map(|line| format!("  {line}").trim_end().to_string()));
    }
    lines
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
    fn text_is_broken_at_words_and_moves_no_terminal() {
        let four = "one two three four five six";
        assert_eq!(indented(four, Some(25)), ["  one two three four", "  five six"]);
        let columns = |text: &str| {
            indented(&text.repeat(25), Some(25))
                .iter()
                .map(|line| line.trim().chars().count())
                .collect::<Vec<_>>()
        };
        assert_eq!(columns("x"), [22, 3]);
        assert_eq!(columns("字"), [11, 11, 3], "each takes two columns");
        assert_eq!(indented("a\n\nb\u{1b}[2J\u{202e}", None), ["  a", "", "  b\\u{1b}[2J\\u{202e}"]);
    }
}

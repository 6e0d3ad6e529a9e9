//! A ticket for people: its content, its history in order, and what to do next.

use crate::cli::failure::Outcome;
use crate::cli::run::evidence::{evidence, relied_on};
use crate::cli::screen::{Cell, Screen, plain};
use fernery_client::wire::{ApprovalView, ObjectiveDetail};
use fernery_core::artifact::{Objective, ObjectiveStatus};
use fernery_core::pipeline::waiting::Waiting;
use fernery_core::{Progress, Timestamp};
use serde_json::Value;

/// Longest line for a part of a document.
const OUTLINE_CHARS_MAX: usize = 100;

/// One thing that happened.
pub(in crate::cli) struct Moment {
    pub(in crate::cli) at: Timestamp,
    pub(in crate::cli) who: String,
    pub(in crate::cli) what: String,
    /// What else there is to it, a line each.
    pub(in crate::cli) more: Vec<String>,
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or("")
}

fn moment(value: &Value, who: impl Into<String>, what: String) -> Moment {
    let at = text(value, "created_at").parse().unwrap_or_else(|_| Timestamp::from_millis(0));
    Moment { at, who: who.into(), what, more: Vec::new() }
}

pub(in crate::cli) fn show(screen: Screen, detail: &ObjectiveDetail) -> Outcome {
    let o = &detail.view.objective;
    let mut facts = vec![
        ("ticket", Cell::from(&o.objective_id)),
        ("status", Cell::state(o.status.as_str())),
        ("title", (&o.title).into()),
        ("azolla", (&o.azolla_id).into()),
        ("matters", format!("importance {}, urgency {}", o.importance, o.urgency).into()),
    ];
    facts.extend(now(detail).map(|now| ("now", now.into())));
    facts.extend(o.blocked_reason.as_ref().map(|why| ("blocked", why.into())));
    facts.extend(envelope(detail).map(|spent| ("spent", spent.into())));
    for (key, value) in &o.metadata {
        facts.push(("metadata", format!("{key}: {}", shown(value)).into()));
    }
    facts.extend(detail.view.unconfirmed.then(|| ("confirm", "not confirmed by a person yet".into())));
    screen.facts(&facts)?;
    for blocker in o.blocked_on.iter().filter(|blocker| !blocker.resolved) {
        let line = format!("blocker  {} ({}): {}", blocker.blocker_id, blocker.kind, blocker.description);
        screen.line(&plain(&line))?;
    }
    if !o.acceptance_criteria.is_empty() {
        screen.line("")?;
        indented(screen, &o.acceptance_criteria)?;
    }
    screen.line("")?;
    let mut moments = timeline(detail);
    moments.sort_by_key(|moment| moment.at);
    let who = moments.iter().map(|moment| moment.who.chars().count()).max().unwrap_or(0);
    for Moment { at, who: by, what, more } in &moments {
        screen.line(&format!("{at}  {:who$}  {}", plain(by), plain(what).replace('\n', " ")))?;
        for line in more {
            screen.line(&format!("    {}", plain(line).replace('\n', " ")))?;
        }
    }
    let next = next(detail);
    if !next.is_empty() {
        screen.line("")?;
        screen.line("next:")?;
    }
    next.iter().try_for_each(|action| screen.line(&format!("  {}", plain(action))))
}

/// The progress of an executor, and its note.
pub(in crate::cli) fn doing(progress: &Progress) -> String {
    match progress.note() {
        Some(note) => format!("{}% {note}", progress.percent()),
        None => format!("{}%", progress.percent()),
    }
}

/// The reason of a BLOCKED ticket, short enough for a row; nothing for others.
pub(in crate::cli) fn kept_by(objective: &Objective) -> String {
    const ROW_CHARS_MAX: usize = 80;
    if objective.status != ObjectiveStatus::Blocked {
        return String::new();
    }
    let open = objective.blocked_on.iter().rev().find(|blocker| !blocker.resolved);
    let why = open.map(|blocker| blocker.description.as_str()).or(objective.blocked_reason.as_deref());
    let line = why.unwrap_or_default().lines().next().unwrap_or_default();
    match line.char_indices().nth(ROW_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_string(),
    }
}

/// Like [`doing`]; the percentage of an agent is of its budget, not of its work.
fn now(detail: &ObjectiveDetail) -> Option<String> {
    let progress = detail.view.progress.as_ref()?;
    let executors = &detail.approval.as_ref()?.shown["blueprint"]["executors"];
    let by_agent = executors.as_object().is_some_and(|all| all.values().any(|of| of["kind"] == "agent"));
    Some(match progress.note().filter(|_| by_agent) {
        Some(note) => format!("{}% of its budget is spent: {note}", progress.percent()),
        None => doing(progress),
    })
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

fn indented(screen: Screen, text: &str) -> Outcome {
    plain(text).lines().try_for_each(|line| screen.line(format!("  {line}").trim_end()))
}

/// A document, with one line for each part that fits. It is complete, and no text in it can look like another part.
fn outline(value: &Value, depth: usize, lines: &mut Vec<String>) {
    let parts: Vec<(String, &Value)> = match value {
        Value::Object(fields) => {
            fields.iter().map(|(key, part)| (format!("{}: ", name(key)), part)).collect()
        }
        Value::Array(list) => list.iter().map(|part| ("- ".to_string(), part)).collect(),
        other => vec![(String::new(), other)],
    };
    for (head, part) in parts {
        let margin = "  ".repeat(depth);
        let whole = format!("{margin}{head}{part}");
        let splits =
            matches!(part, Value::Object(_) | Value::Array(_)) && whole.chars().count() > OUTLINE_CHARS_MAX;
        if splits {
            lines.push(format!("{margin}{}", head.trim_end()));
            outline(part, depth + 1, lines);
        } else {
            lines.push(whole);
        }
    }
}

/// A key as it is if it is plain, else as JSON.
fn name(key: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_plain = !key.is_empty() && key.chars().all(plain);
    if is_plain { key.to_string() } else { Value::from(key).to_string() }
}

/// All that happened to a ticket.
pub(in crate::cli) fn timeline(detail: &ObjectiveDetail) -> Vec<Moment> {
    let o = &detail.view.objective;
    let mut moments = vec![Moment {
        at: o.created_at,
        who: "operator".into(),
        what: "created it".into(),
        more: Vec::new(),
    }];
    for decision in &detail.decisions {
        let act = match text(decision, "kind") {
            "APPROVE" => "approved it",
            "CONFIRM" => "confirmed it",
            "REOPEN" => "reopened it",
            other => other,
        };
        let digest = text(decision, "digest").get(..12).unwrap_or_default();
        let note = decision["note"].as_str().map_or(String::new(), |note| format!(": {note}"));
        moments.push(moment(decision, text(decision, "who"), format!("{act} ({digest}…){note}")));
    }
    for event in &detail.events {
        let became = event["reason"].as_str().unwrap_or("waiting for the scheduler");
        moments.push(moment(event, "readiness", format!("{}: {became}", text(event, "type"))));
    }
    for workorder in &detail.workorders {
        let (id, kind) = (text(workorder, "work_order_id"), text(workorder, "diazotroph_type"));
        let what = format!("workorder {id} for {kind}, {}", text(workorder, "status"));
        moments.push(moment(workorder, "scheduler", what));
    }
    for bundle in &detail.output_bundles {
        let outcome = bundle["metadata"]["outcome"].as_str().unwrap_or("OUTPUT");
        moments.push(moment(bundle, "executor", format!("{outcome}: {}", text(bundle, "title"))));
    }
    for run in &detail.runs {
        let what = format!(
            "{}: {} (run {})",
            text(run, "gate_result"),
            text(run, "gate_reason"),
            text(run, "run_id")
        );
        let mut judged = moment(run, "gate", what);
        judged.more = run["evidence"].as_array().into_iter().flatten().flat_map(evidence).collect();
        moments.push(judged);
    }
    for pause in &detail.pauses {
        let what = format!("paused: {}", pause.reason);
        moments.push(Moment { at: pause.created_at, who: "fernery".into(), what, more: Vec::new() });
    }
    moments
}

/// What to do about a ticket in TODO or IN_PROGRESS, by what it waits for.
fn stands(detail: &ObjectiveDetail) -> Vec<String> {
    let Some(waiting) = &detail.view.waiting else {
        return vec!["Nothing: it continues by itself".into()];
    };
    let id = &detail.view.objective.objective_id;
    match waiting.code.as_str() {
        "no_worker" => vec![
            format!("Start an executor: {}", waiting.why),
            format!("Or stop it: fernery ticket cancel {id}"),
        ],
        Waiting::NOT_HOSTED | "stream_paused" => {
            vec![waiting.why.clone(), format!("Or stop it: fernery ticket cancel {id}")]
        }
        "review_limit" => vec![format!("Confirm finished tickets: {}", waiting.why)],
        _ => vec![format!("Nothing: {}", waiting.why)],
    }
}

/// The use of each part of the envelope that has a limit.
fn envelope(detail: &ObjectiveDetail) -> Option<String> {
    let bounds = detail.envelope.as_ref()?.as_object()?;
    let spent = &detail.view.spent;
    let parts: Vec<String> = [
        ("attempts", "attempts", "attempts", 1),
        ("wall_time_ms", "wall_ms", "seconds", 1_000),
        ("tokens", "tokens", "tokens", 1),
        ("cost_usd_micros", "cost_usd_micros", "cents", 10_000),
    ]
    .into_iter()
    .filter_map(|(bound, used, unit, of)| {
        let limit = bounds.get(bound)?.as_u64()?;
        let used = spent[used].as_u64().unwrap_or(0);
        Some(format!("{} of {} {unit}", used.div_ceil(of), limit / of))
    })
    .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// What a person can do now.
fn next(detail: &ObjectiveDetail) -> Vec<String> {
    let o = &detail.view.objective;
    let id = &o.objective_id;
    match o.status {
        ObjectiveStatus::New => vec![format!("Read it, and approve it: fernery ticket approve {id}")],
        ObjectiveStatus::Todo | ObjectiveStatus::InProgress => stands(detail),
        ObjectiveStatus::Blocked => {
            let last = detail.pauses.iter().max_by_key(|pause| pause.created_at);
            last.map_or_else(
                || vec![format!("fernery ticket unblock {id} --all")],
                |pause| pause.prioritized_actions.clone(),
            )
        }
        ObjectiveStatus::Done if detail.view.unconfirmed => vec![
            format!("Check the result, and confirm it: fernery ticket confirm {id}"),
            format!("Not right? fernery ticket reopen {id} --note \"what is missing\""),
        ],
        ObjectiveStatus::Done => Vec::new(),
    }
}

/// What an approval covers, in the order in which a person reads it.
pub(in crate::cli) fn approval(screen: Screen, approval: &ApprovalView) -> Outcome {
    let shown_now = &approval.shown;
    screen.facts(&[
        ("ticket", text(shown_now, "objective_id").into()),
        ("azolla", text(shown_now, "azolla_id").into()),
        ("title", text(shown_now, "title").into()),
    ])?;
    if !text(shown_now, "acceptance_criteria").is_empty() {
        screen.line("")?;
        indented(screen, text(shown_now, "acceptance_criteria"))?;
    }
    for (name, what) in [("metadata", "metadata"), ("blueprint", "what runs and how it is judged")] {
        screen.line("")?;
        screen.line(&format!("{what}:"))?;
        let mut lines = Vec::new();
        outline(&shown_now[name], 1, &mut lines);
        lines.iter().try_for_each(|line| screen.line(&plain(line)))?;
    }
    relied_on(shown_now).iter().try_for_each(|line| screen.line(&plain(line)))?;
    screen.line("")?;
    screen.facts(&[("digest", (&approval.digest).into())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_outline_has_every_part_and_no_text_passes_for_one() {
        let long = "x".repeat(OUTLINE_CHARS_MAX);
        let document = json!({ "a": { "b": [1, "two"], "c\n  d: 1": long }, "e": "f\n  g: 1", "h": [long] });
        let mut lines = Vec::new();
        outline(&document, 1, &mut lines);
        let expected = [
            "  a:".to_string(),
            "    b: [1,\"two\"]".to_string(),
            format!("    \"c\\n  d: 1\": \"{long}\""),
            "  e: \"f\\n  g: 1\"".to_string(),
            "  h:".to_string(),
            format!("    - \"{long}\""),
        ];
        assert_eq!(lines, expected);
    }
}

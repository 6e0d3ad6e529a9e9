//! A ticket for people: its content, its history in order, and what to do next.

use super::due::DUE_AT;
use super::merge;
use crate::cli::failure::Outcome;
use crate::cli::screen::{Cell, Paint, Screen, plain, when, wrapped};
use crate::ticket_words::{
    Moment, Part, Revised, changes, envelope_with, landing_line, open_question, parts, timeline,
};
use fernery_client::wire::{ApprovalView, ObjectiveDetail};
use fernery_core::Progress;
use fernery_core::artifact::{BlockerRef, Objective};
use fernery_core::inbox::deadline::{due_at, is_cancelled, is_open};
use fernery_core::inbox::label::is_same;
use fernery_core::inbox::marks;
use fernery_core::pipeline::dependency::{Dependency, asks_somebody};
use fernery_core::pipeline::possible::SeenStatus;
use fernery_core::pipeline::waiting::Waiting;
use fernery_engine::door;
use serde_json::Value;
use std::time::Duration;

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or("")
}

/// The metadata that is shown as labels.
const LABELLED: [&str; 2] = ["projects", "labels"];

/// `more`: the time of attempts that is not written down yet.
pub(in crate::cli) fn show(screen: Screen, detail: &ObjectiveDetail, more: Duration) -> Outcome {
    let o = &detail.view.objective;
    let mut facts = vec![
        ("ticket", Cell::from(&o.objective_id)),
        ("status", Cell::state(SeenStatus::of(o).as_str())),
        ("title", (&o.title).into()),
        ("azolla", (&o.azolla_id).into()),
        ("matters", format!("importance {}, urgency {}", o.importance, o.urgency).into()),
    ];
    let labels: Vec<String> = o.labels().map(|label| format!("+{label}")).collect();
    facts.extend((!labels.is_empty()).then(|| ("labels", labels.join(" ").into())));
    facts.extend(detail.view.snoozed_until.map(|until| ("snoozed", format!("until {until}").into())));
    facts.extend(now(detail).map(|now| ("now", now.into())));
    let stuck = detail.view.waiting.as_ref().filter(|waiting| Waiting::needs_a_person(&waiting.code));
    facts.extend(stuck.map(|waiting| ("waits", (&waiting.why).into())));
    let waits_for = &detail.view.waits_for;
    facts.extend(waits_for.iter().map(|of| ("after", of.sentence().into())));
    facts.extend(o.blocked_reason.as_ref().filter(|_| !is_cancelled(o)).map(|why| ("blocked", why.into())));
    facts.extend(envelope_with(detail, more).map(|spent| ("spent", spent.into())));
    let due = due_at(o);
    facts.extend(due.map(|at| {
        let told = if is_open(o) { when::due(at, door::wall_clock()) } else { "was due".to_string() };
        ("due", format!("{told}: {}", when::minute(at)).into())
    }));
    let is_shown = |key: &str| LABELLED.contains(&key) || key == DUE_AT && due.is_some();
    for (key, value) in o.metadata.iter().filter(|(key, _)| !is_shown(key)) {
        facts.push(("metadata", format!("{key}: {}", shown(value)).into()));
    }
    facts.extend(detail.view.unconfirmed.then(|| ("confirm", "not confirmed by a person yet".into())));
    if let Some(landing) = &detail.view.landing {
        facts.push(("patch", landing_line(landing).into()));
        facts.extend(merge::gate_log(&o.objective_id, landing).map(|command| ("log", command.into())));
        facts.extend(merge::by_hand(landing).map(|commands| ("by hand", commands.into())));
        facts.extend(landing.remarks.iter().map(|text| ("tree", text.into())));
    }
    for blocker in asks_somebody(o, waits_for).filter(|of| !is_dependency(waits_for, of)) {
        let line = format!("{} ({}): {}", blocker.blocker_id, blocker.kind, blocker.description);
        facts.push(("blocker", line.into()));
    }
    screen.facts(&facts)?;
    if let Some(asked) = open_question(detail) {
        screen.line("question:")?;
        quoted(screen, &asked.question)?;
    }
    if !o.acceptance_criteria.is_empty() {
        screen.line("")?;
        indented(screen, &o.acceptance_criteria)?;
    }
    screen.line("")?;
    history(screen, detail)?;
    if !detail.next.is_empty() {
        screen.line("")?;
        screen.line("next:")?;
    }
    detail.next.iter().try_for_each(|action| screen.say(&format!("  {}", plain(action))))
}

/// What happened, in order, with who did it.
fn history(screen: Screen, detail: &ObjectiveDetail) -> Outcome {
    let mut moments = timeline(detail);
    moments.sort_by_key(|moment| moment.at);
    let when: Vec<String> = moments.iter().map(|moment| screen.at(moment.at)).collect();
    let at = when.iter().map(String::len).max().unwrap_or(0);
    // Where there is little room, the name of a token is enough.
    let named = |moment: &Moment| match (screen.width(), moment.who.split_once(" (")) {
        (Some(_), Some((name, _))) => plain(name),
        _ => plain(&moment.who),
    };
    let who = moments.iter().map(|moment| named(moment).chars().count()).max().unwrap_or(0);
    screen.line(&screen.painted(&format!("{:at$}  {:who$}  WHAT", "WHEN", "WHO"), Paint::Dim))?;
    for (when, moment) in when.iter().zip(&moments) {
        let Moment { what, more, .. } = moment;
        let what = plain(what).replace('\n', " ");
        screen.hanging(&format!("{when:at$}  {:who$}  ", named(moment)), &what, verdict(&what))?;
        for line in more {
            let line = plain(line).replace('\n', " ");
            screen.hanging(
                if line.starts_with(' ') { "      " } else { "    " },
                line.trim_start(),
                verdict(&line),
            )?;
        }
    }
    Ok(())
}

/// Green for what passed, red for what did not.
pub(in crate::cli) fn verdict(line: &str) -> Paint {
    let says = |word: &str| line.starts_with(word) || line.contains(&format!(": {word}"));
    match () {
        () if says("PASS") || says("passed its gates") => Paint::Good,
        () if says("FAIL") || says("did not pass") || says("did not land") => Paint::Bad,
        () => Paint::Plain,
    }
}

/// The progress of an executor, and its note.
pub(in crate::cli) fn doing(progress: &Progress) -> String {
    match progress.note() {
        Some(note) => format!("{}% {note}", progress.percent()),
        None => format!("{}%", progress.percent()),
    }
}

/// The title with its labels, as far as it does not name them itself.
pub(in crate::cli) fn titled(objective: &Objective) -> String {
    let said = marks::labels(&objective.title);
    let more = objective.labels().filter(|label| !said.iter().any(|known| is_same(known, label)));
    std::iter::once(objective.title.clone())
        .chain(more.map(|label| format!("+{label}")))
        .collect::<Vec<_>>()
        .join(" ")
}

fn is_dependency(waits_for: &[Dependency], blocker: &BlockerRef) -> bool {
    waits_for.iter().any(|of| of.blocker_id == blocker.blocker_id)
}

/// What keeps a ticket, short enough for a row; nothing if nothing does.
pub(in crate::cli) fn kept_by(objective: &Objective, waits_for: &[Dependency]) -> String {
    const ROW_CHARS_MAX: usize = 80;
    if is_cancelled(objective) {
        return String::new();
    }
    let asks = asks_somebody(objective, waits_for).filter(|of| !is_dependency(waits_for, of)).last();
    let waits = waits_for.first().map(Dependency::sentence);
    let why = asks.map(|blocker| blocker.description.as_str()).or(waits.as_deref());
    let why = why.or(objective.blocked_reason.as_deref());
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
    plain(text).lines().try_for_each(|line| screen.say(format!("  {line}").trim_end()))
}

/// What an approval covers: the ticket, then what runs and how it is judged.
pub(in crate::cli) fn approval(screen: Screen, approval: &ApprovalView, before: Option<&Value>) -> Outcome {
    let shown_now = &approval.shown;
    let (id, azolla) = (text(shown_now, "objective_id"), text(shown_now, "azolla_id"));
    screen.facts(&[
        ("ticket", id.into()),
        ("azolla", azolla.into()),
        ("title", text(shown_now, "title").into()),
    ])?;
    quoted(screen, text(shown_now, "acceptance_criteria"))?;
    screen.line("")?;
    let parts = parts(shown_now);
    let mut facts: Vec<(&str, Cell)> = Vec::new();
    let mut last = "";
    for part in &parts {
        match part {
            Part::Fact(name, text) => facts.push((if *name == last { "" } else { name }, text.into())),
            Part::Text(name, text) => {
                facts.push((name, format!("below: {} lines", text.lines().count()).into()))
            }
        }
        let (Part::Fact(name, _) | Part::Text(name, _)) = part;
        last = name;
    }
    screen.facts(&facts)?;
    for part in &parts {
        if let Part::Text(name, text) = part {
            screen.line("")?;
            screen.line(&format!("{name}:"))?;
            quoted(screen, text)?;
        }
    }
    let changed = before.map(|before| changes(before, shown_now)).unwrap_or_default();
    if !changed.is_empty() {
        screen.line("")?;
        screen.line("changed since the last approval:")?;
    }
    for line in changed.iter().flat_map(Revised::lines) {
        let paint = if line.starts_with('-') { Paint::Bad } else { Paint::Good };
        screen.hanging("  ", &plain(&line), paint)?;
    }
    screen.line("")?;
    let whole = format!("the whole document: fernery ticket show {id} --json");
    screen.facts(&[("digest", (&approval.digest).into()), ("", whole.into())])
}

/// Foreign text, marked so that no line of it can be taken for one of ours.
pub(in crate::cli) fn quoted(screen: Screen, text: &str) -> Outcome {
    const MARK: &str = "  │ ";
    let lines = plain(text);
    let lines = lines.lines().flat_map(|line| match screen.width() {
        Some(width) => wrapped(line, width.saturating_sub(MARK.chars().count())),
        None => vec![line.to_string()],
    });
    lines.map(|line| format!("{MARK}{line}")).try_for_each(|line| screen.line(line.trim_end()))
}

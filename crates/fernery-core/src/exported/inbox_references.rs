//! What captures, candidates, manifests, questions, overdue pauses and attempts say of other artifacts, and these of them.

use super::references::{path, storable};
use super::{BesideObjective, Exported, Faults, Kept, Snoozed};
use crate::artifact::{
    AzollaId, BlockerKind, CaptureBuffer, CaptureStatus, Event, EventType, Objective, ObjectiveStatus,
    QueryStatus,
};
use crate::blueprint::Blueprint;
use crate::inbox::{self, CandidateStatus, Captured, Question};
use crate::{Timestamp, limits};
use std::collections::BTreeSet;

pub(super) fn check(all: &Exported, now: Timestamp, faults: &mut Faults) {
    captures(all, faults);
    candidates(all, faults);
    manifests(all, faults);
    queries(all, faults);
    overdue(all, faults);
    attempts(all, faults);
    dependencies(all, faults);
    recurrences(all, faults);
    snoozes(all, faults);
    instants(all, now, faults);
}

fn has(all: &Exported, azolla: &AzollaId, is_it: impl Fn(&Blueprint) -> bool) -> bool {
    all.blueprints.values().any(|blueprint| blueprint.azolla_id == *azolla && is_it(blueprint))
}

/// The one objective of an azolla without tickets: as a blueprint of the folder has it, and never decided about.
pub(super) fn standing(
    all: &Exported,
    kept: &Kept<Objective, BesideObjective>,
    at: &str,
    faults: &mut Faults,
) {
    let Kept { artifact: o, beside } = kept;
    let named = has(all, &o.azolla_id, |blueprint| {
        blueprint.standing.as_ref().is_some_and(|duty| duty.objective_id == o.objective_id)
    });
    faults.unless(named, at, "no blueprint of its azolla has a standing objective with this id");
    let words = has(all, &o.azolla_id, |blueprint| {
        let duty = blueprint.standing.as_ref();
        duty.is_some_and(|d| d.title == o.title && d.acceptance_criteria == o.acceptance_criteria)
    });
    faults.unless(words, at, "its title or criteria match no blueprint of its azolla");
    let plain =
        o.status == ObjectiveStatus::InProgress && o.blocked_on.is_empty() && o.blocked_reason.is_none();
    faults.unless(plain, at, "a standing objective must be IN_PROGRESS and unblocked");
    faults.unless(
        beside.approval.is_none() && !beside.unconfirmed,
        &path("beside/objectives", &o.objective_id),
        "a standing objective is neither approved nor confirmed",
    );
}

/// An event of an inbox.
pub(super) fn event(all: &Exported, event: &Event, at: &str, faults: &mut Faults) {
    if event.event_type == EventType::CaptureReady {
        match all.captures.get(&event.resource_id) {
            Some(of) if of.artifact.azolla_id == event.azolla_id => {}
            Some(_) => faults.add(at, "its capture belongs to another azolla"),
            None => faults.add(at, format!("there is no capture {}", event.resource_id)),
        }
    } else {
        let makes = has(all, &event.azolla_id, |blueprint| blueprint.manifest.is_some());
        faults.unless(makes, at, format!("azolla {} makes no manifests", event.azolla_id));
    }
}

fn captures(all: &Exported, faults: &mut Faults) {
    for (id, Kept { artifact: capture, beside }) in &all.captures {
        let (at, beside_at) = (path("capture_buffers", id), path("beside/capture_buffers", id));
        let inbox = has(all, &capture.azolla_id, |blueprint| blueprint.triage.is_some());
        faults.unless(inbox, &at, format!("azolla {} has no inbox", capture.azolla_id));
        faults.unless(
            is_as_it_came(capture, beside.raw_hex.as_deref()),
            &beside_at,
            "raw_hex and raw_content differ",
        );
        faults.unless(
            storable([&capture.raw_content, &capture.source_label]),
            &at,
            "it contains a NUL character",
        );
        let pending = capture.status == CaptureStatus::Pending;
        faults.unless(pending || !beside.held, &beside_at, "it is held, but not PENDING");
        let Some(work) = &beside.work_order_id else {
            faults.unless(pending, &beside_at, "it is PROCESSED, but names no triage");
            continue;
        };
        let triage = all.workorders.get(work.as_str()).filter(|w| w.beside.azolla_id == capture.azolla_id);
        let Some(triage) = triage else {
            faults.add(&beside_at, format!("there is no triage {work} in its azolla"));
            continue;
        };
        let open = !triage.beside.judged;
        faults.unless(open == pending, &beside_at, "its status does not match its triage");
        let asked = all.snapshots.get(triage.artifact.context_snapshot_id.as_str()).and_then(Question::of);
        let same = match &asked {
            Some(Question::Triage { batch, .. }) => {
                batch.iter().any(|captured| captured.capture_id.as_str() == id && is_same(captured, capture))
            }
            _ => false,
        };
        faults.unless(same, &at, format!("it does not match the question of triage {work}"));
    }
}

fn is_same(captured: &Captured, capture: &CaptureBuffer) -> bool {
    captured.text == capture.raw_content
        && captured.source_label == capture.source_label
        && captured.created_at == capture.created_at
}

/// What is shown is made of the bytes, and the bytes are kept where they are no plain text.
fn is_as_it_came(capture: &CaptureBuffer, raw_hex: Option<&str>) -> bool {
    match raw_hex.map(bytes) {
        None => inbox::shown(capture.raw_content.as_bytes()) == capture.raw_content,
        Some(Some(raw)) => {
            raw.len() <= limits::CAPTURE_BYTES_MAX
                && inbox::shown(&raw) == capture.raw_content
                && raw != capture.raw_content.as_bytes()
        }
        Some(None) => false,
    }
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits = hex.chars().map(|c| c.to_digit(16).filter(|_| !c.is_ascii_uppercase()));
    let digits: Vec<u8> =
        digits.map(|digit| digit.and_then(|d| u8::try_from(d).ok())).collect::<Option<_>>()?;
    let pairs = digits.chunks_exact(2);
    pairs.remainder().is_empty().then(|| pairs.map(|pair| pair[0] << 4 | pair[1]).collect())
}

fn candidates(all: &Exported, faults: &mut Faults) {
    let mut taken = BTreeSet::new();
    for (id, candidate) in &all.candidates {
        let at = path("candidates", id);
        let azolla = &candidate.azolla_id;
        let inbox = has(all, azolla, |blueprint| blueprint.triage.is_some());
        faults.unless(inbox, &at, format!("azolla {azolla} has no inbox"));
        for violation in candidate.draft().violations() {
            faults.add(&at, format!("{}: {}", violation.path, violation.message));
        }
        faults.unless(storable([&candidate.made_by]), &at, "it contains a NUL character");
        for capture in &candidate.capture_ids {
            let there = all.captures.get(capture.as_str());
            let own = there.is_some_and(|c| {
                c.artifact.azolla_id == *azolla && c.artifact.status == CaptureStatus::Processed
            });
            faults.unless(own, &at, format!("there is no PROCESSED capture {capture} in its azolla"));
            faults.unless(
                taken.insert(capture),
                &at,
                format!("capture {capture} is also in another candidate"),
            );
        }
        let work = candidate.work_order_id.as_ref().map(|work| all.workorders.get(work.as_str()));
        let made = work.is_none_or(|work| work.is_some_and(|w| w.beside.azolla_id == *azolla));
        faults.unless(made, &at, "its triage is missing or belongs to another azolla");
        let (status, became, into) = (candidate.status, &candidate.objective_id, &candidate.merged_into);
        faults.unless(
            (status == CandidateStatus::Promoted) == became.is_some(),
            &at,
            "it must name a ticket if it is PROMOTED, and only then",
        );
        faults.unless(
            (status == CandidateStatus::Merged) == into.is_some(),
            &at,
            "it must name another candidate if it is MERGED, and only then",
        );
        if let Some(ticket) = became {
            let there = all.objectives.contains_key(ticket.as_str()) && !all.is_standing(ticket.as_str());
            faults.unless(there, &at, format!("there is no ticket {ticket}"));
        }
        if let Some(other) = into {
            let there = all.candidates.get(other.as_str()).is_some_and(|o| o.azolla_id == *azolla);
            faults.unless(
                there && other.as_str() != id,
                &at,
                format!("there is no candidate {other} in its azolla"),
            );
        }
    }
}

fn manifests(all: &Exported, faults: &mut Faults) {
    let mut works = BTreeSet::new();
    for (id, Kept { artifact: manifest, beside }) in &all.manifests {
        let (at, beside_at) = (path("session_manifests", id), path("beside/session_manifests", id));
        let work = all.workorders.get(beside.work_order_id.as_str());
        let Some(work) = work.filter(|w| w.beside.azolla_id == manifest.azolla_id) else {
            faults.add(&beside_at, format!("there is no workorder {} in its azolla", beside.work_order_id));
            continue;
        };
        faults.unless(
            works.insert(&beside.work_order_id),
            &beside_at,
            "its workorder also made another manifest",
        );
        let asked = all.snapshots.get(work.artifact.context_snapshot_id.as_str()).and_then(Question::of);
        let same = matches!(&asked, Some(Question::Manifest(facts)) if *facts == beside.facts);
        faults.unless(same, &beside_at, "its facts do not match the question of its workorder");
        let digest = beside.facts.digest() == beside.facts_digest;
        faults.unless(digest, &beside_at, "facts_digest does not match its facts");
        let queried: BTreeSet<&AzollaId> = beside.facts.asked.iter().map(|asked| &asked.azolla_id).collect();
        let named = manifest.queried_azolla_ids.iter().all(|azolla| queried.contains(azolla));
        faults.unless(named, &at, "it names an azolla that was not queried");
        faults.unless(storable([&beside.built_by]), &beside_at, "it contains a NUL character");
    }
}

fn queries(all: &Exported, faults: &mut Faults) {
    let mut answers = BTreeSet::new();
    for (id, Kept { artifact: query, beside }) in &all.queries {
        let (at, beside_at) = (path("substrate_queries", id), path("beside/substrate_queries", id));
        faults.unless(
            query.source_azolla_id == beside.azolla_id,
            &at,
            "it was asked by one azolla and is kept by another",
        );
        let event = all.events.get(beside.event_id.as_str()).map(|kept| &kept.artifact);
        let asked = event
            .is_some_and(|e| e.event_type == EventType::ManifestRequested && e.azolla_id == beside.azolla_id);
        faults.unless(asked, &beside_at, format!("there is no request for a manifest {}", beside.event_id));
        let answer = all.responses.get(beside.response_id.as_str());
        let same = answer
            .is_some_and(|r| r.query_id == query.query_id && r.target_azolla_id == query.target_azolla_id);
        faults.unless(
            same && answers.insert(beside.response_id.as_str()),
            &beside_at,
            format!("substrate_query_response {} is missing or belongs to another query", beside.response_id),
        );
    }
    for (id, answer) in &all.responses {
        let at = path("substrate_query_responses", id);
        faults.unless(answers.contains(id.as_str()), &at, "no substrate_query names it");
        let told = answer.status == QueryStatus::Ok || answer.results.is_empty();
        faults.unless(told, &at, "it has results, but its status is not OK");
    }
}

/// They are about objectives that may be elsewhere: only whose they are can be checked.
fn overdue(all: &Exported, faults: &mut Faults) {
    for (name, Kept { artifact: pause, beside }) in &all.overdue {
        let at = path("overdue_pause_states", name);
        let known = has(all, &pause.azolla_id, |_| true);
        faults.unless(known, &at, format!("azolla {} has no blueprint in the folder", pause.azolla_id));
        let rest = beside.pause_key.strip_prefix(&format!("overdue:{}:", pause.azolla_id));
        let of_it = rest.and_then(|rest| rest.split_once('/')).and_then(|(_, rest)| rest.split_once(':'));
        let (named, since) = of_it.unwrap_or_default();
        let fits = named == pause.objective_id.as_str() && since.parse::<i64>().is_ok();
        faults.unless(
            fits,
            &path("beside/overdue_pause_states", name),
            "its pause_key does not match its azolla and objective",
        );
        faults.unless(storable(&pause.prioritized_actions), &at, "it contains a NUL character");
    }
}

fn attempts(all: &Exported, faults: &mut Faults) {
    let mut numbers = BTreeSet::new();
    for (id, attempt) in &all.attempts {
        let at = path("attempts", id);
        let work = attempt.work_order_id.as_str();
        faults.unless(all.workorders.contains_key(work), &at, format!("there is no workorder {work}"));
        let first = numbers.insert((work, attempt.attempt_no));
        faults.unless(first, &at, "another attempt of its workorder has the same number");
        faults.unless(attempt.started_at <= attempt.finished_at, &at, "it ended before it began");
        faults.unless(storable([&attempt.worker_id]), &at, "it contains a NUL character");
    }
}

/// A ticket can only be written down to wait for one that was there before it, so none waits for itself over others.
fn dependencies(all: &Exported, faults: &mut Faults) {
    for (name, link) in &all.dependencies {
        let at = path("dependencies", name);
        let ticket = |id: &str| all.objectives.get(id).filter(|_| !all.is_standing(id)).map(|o| &o.artifact);
        let (waits, other) = (ticket(link.objective_id.as_str()), ticket(link.after_id.as_str()));
        let blocker =
            waits.and_then(|waits| waits.blocked_on.iter().find(|b| b.blocker_id == link.blocker_id));
        let fits = blocker.is_some_and(|blocker| blocker.kind == BlockerKind::DependencyChange);
        faults.unless(fits, &at, format!("{} has no blocker {}", link.objective_id, link.blocker_id));
        faults.unless(other.is_some(), &at, format!("there is no ticket {}", link.after_id));
        let earlier = waits.zip(other).is_none_or(|(waits, other)| other.created_at <= waits.created_at);
        faults.unless(
            earlier && link.objective_id != link.after_id,
            &at,
            format!("{} is older than {}, which it waits for", link.objective_id, link.after_id),
        );
    }
}

fn recurrences(all: &Exported, faults: &mut Faults) {
    for (id, line) in &all.recurrences {
        let at = path("recurrences", id);
        let capture = all.captures.get(id).filter(|kept| kept.artifact.azolla_id == line.azolla_id);
        faults.unless(capture.is_some(), &at, format!("there is no capture {id} in its azolla"));
        faults.unless(storable([&line.every, &line.text]), &at, "it contains a NUL character");
        let most = limits::CAPTURE_BYTES_MAX;
        faults.unless(line.text.len() <= most, &at, format!("its text has more than {most} bytes"));
    }
}

fn snoozes(all: &Exported, faults: &mut Faults) {
    for (name, snooze) in &all.snoozes {
        let id = &snooze.subject_id;
        let there = match snooze.kind {
            Snoozed::Objective => all.objectives.contains_key(id) && !all.is_standing(id),
            Snoozed::Candidate => all.candidates.contains_key(id),
        };
        faults.unless(there, &path("snoozes", name), format!("there is no {} {id}", snooze.kind));
    }
}

/// What is stored must not drag the clock of its reader along.
fn instants(all: &Exported, now: Timestamp, faults: &mut Faults) {
    let latest = now.after(limits::IMPORT_AHEAD_MAX);
    let mut each = |at: Timestamp, folder: &str, id: &str| {
        faults.unless(at <= latest, &path(folder, id), format!("{at} is in the future; now is {now}"));
    };
    for (id, Kept { artifact: capture, .. }) in &all.captures {
        each(capture.created_at.max(capture.updated_at), "capture_buffers", id);
    }
    all.candidates.iter().for_each(|(id, c)| each(c.created_at.max(c.updated_at), "candidates", id));
    all.manifests.iter().for_each(|(id, m)| each(m.artifact.created_at, "session_manifests", id));
    all.queries.iter().for_each(|(id, q)| each(q.artifact.created_at, "substrate_queries", id));
    all.responses.iter().for_each(|(id, r)| each(r.created_at, "substrate_query_responses", id));
    all.overdue.iter().for_each(|(id, o)| each(o.artifact.created_at, "overdue_pause_states", id));
    all.recurrences.iter().for_each(|(id, r)| each(r.created_at, "recurrences", id));
    all.attempts.iter().for_each(|(id, a)| each(a.finished_at, "attempts", id));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_is_of_whole_bytes_in_small_letters() {
        for (hex, raw) in
            [("", Some(vec![])), ("00ff", Some(vec![0, 255])), ("0", None), ("0G", None), ("0A", None)]
        {
            assert_eq!(bytes(hex), raw, "{hex}");
        }
    }
}

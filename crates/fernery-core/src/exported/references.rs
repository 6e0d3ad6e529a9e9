//! What artifacts say of each other: every id leads to something that leads back.

use super::{BesideWorkorder, Exported, Faults, Kept};
use crate::Timestamp;
use crate::artifact::{
    EventType, GateResult, ObjectiveStatus, ObjectiveType, RecordId, RunRecord, TerminalReason, Workorder,
    WorkorderStatus,
};
use crate::blueprint::Gate;
use crate::canonical;
use crate::journal::Entry;
use crate::limits;
use crate::names::is_unprintable;
use crate::pipeline::approval::Decision;
use crate::pipeline::draft::Draft;
use crate::pipeline::judging::{BRANCH, Evidence, verdict_again};
use crate::pipeline::{is_showable, membrane};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn of_entry(entry: &Entry) -> String {
    format!("journal/{}.json", entry.entry_id)
}

pub(super) fn path(folder: &str, id: impl std::fmt::Display) -> String {
    format!("{folder}/{id}.json")
}

/// What is looked up by something else than its id.
struct Index<'a> {
    /// Of a workorder.
    runs: BTreeMap<&'a str, &'a RunRecord>,
    /// Of an objective, in the order of its entries into TODO.
    works: BTreeMap<&'a str, Vec<&'a Kept<Workorder, BesideWorkorder>>>,
    /// Of an objective.
    approvals: BTreeMap<&'a str, Vec<&'a Decision>>,
}

impl<'a> Index<'a> {
    fn new(all: &'a Exported) -> Self {
        let runs =
            all.runs.values().map(|run| (run.artifact.work_order_id.as_str(), &run.artifact)).collect();
        let mut works: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for work in all.workorders.values() {
            works.entry(work.artifact.objective_id.as_str()).or_default().push(work);
        }
        for works in works.values_mut() {
            // Entries into TODO are counted; a clock may be set back.
            works.sort_by_key(|work| entry_of(all, work));
        }
        let mut approvals: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for decision in all.decisions.values().filter(|decision| decision.approves()) {
            approvals.entry(decision.objective_id.as_str()).or_default().push(decision);
        }
        Self { runs, works, approvals }
    }
}

fn entry_of(all: &Exported, work: &Kept<Workorder, BesideWorkorder>) -> i64 {
    all.events.get(work.beside.event_id.as_str()).map_or(0, |event| event.beside.entry)
}

pub(super) fn check(all: &Exported, now: Timestamp, faults: &mut Faults) {
    let index = Index::new(all);
    objectives(all, &index, faults);
    decisions(all, faults);
    events(all, faults);
    workorders(all, &index, faults);
    runs(all, faults);
    pauses(all, faults);
    journal(all, faults);
    instants(all, now, faults);
}

fn objectives(all: &Exported, index: &Index<'_>, faults: &mut Faults) {
    for (id, Kept { artifact: o, beside }) in &all.objectives {
        let at = path("objectives", id);
        faults.unless(o.objective_type == ObjectiveType::Ticket, &at, "only tickets can be brought in");
        let draft = Draft {
            title: o.title.clone(),
            acceptance_criteria: o.acceptance_criteria.clone(),
            importance: o.importance,
            urgency: o.urgency,
            metadata: o.metadata.clone(),
        };
        for violation in draft.violations() {
            faults.add(&at, format!("{}: {}", violation.path, violation.message));
        }
        let texts = o.blocked_on.iter().map(|b| &b.description).chain(&o.blocked_reason);
        faults.unless(storable(texts), &at, "a text in it has a NUL");
        let blocked = o.status == ObjectiveStatus::Blocked;
        faults.unless(blocked == o.blocked_reason.is_some(), &at, "its status and its blocked_reason differ");
        let blockers: BTreeSet<_> = o.blocked_on.iter().map(|b| &b.blocker_id).collect();
        faults.unless(blockers.len() == o.blocked_on.len(), &at, "two of its blockers have the same id");
        let open = o.blocked_on.iter().filter(|b| !b.resolved).count();
        faults.unless(open <= limits::BLOCKERS_MAX, &at, "it has too many open blockers");
        let beside_at = path("beside/objectives", id);
        let done = o.status == ObjectiveStatus::Done;
        faults.unless(!beside.unconfirmed || done, &beside_at, "only what is DONE waits for confirmation");
        let approval = beside.approval.as_ref().map(|approval| all.decisions.get(approval.as_str()));
        match approval {
            Some(Some(d)) if d.approves() && d.objective_id == o.objective_id => {}
            Some(_) => faults.add(&beside_at, "its approval is no approval of it in decisions"),
            None => {
                let needed = matches!(o.status, ObjectiveStatus::Todo | ObjectiveStatus::InProgress);
                faults.unless(!needed, &beside_at, format!("it is {} without an approval", o.status));
            }
        }
        status(index, id, o.status, &at, faults);
    }
}

/// What its runs allow an objective's status to be.
fn status(index: &Index<'_>, id: &str, status: ObjectiveStatus, at: &str, faults: &mut Faults) {
    let works = index.works.get(id).map_or(&[][..], Vec::as_slice);
    let open = works.iter().filter(|work| !work.beside.judged).count();
    faults.unless(open <= 1, at, "it has two workorders under way");
    let fits = match status {
        ObjectiveStatus::InProgress => open == 1,
        // A cancelled one may still be on its way to its end.
        ObjectiveStatus::Blocked => true,
        ObjectiveStatus::New | ObjectiveStatus::Todo | ObjectiveStatus::Done => open == 0,
    };
    faults.unless(fits, at, format!("it is {status}, with {open} workorders under way"));
    if status == ObjectiveStatus::Done {
        let last = works.last().and_then(|work| index.runs.get(work.artifact.work_order_id.as_str()));
        let passed = last.is_some_and(|run| run.gate_result == GateResult::Pass);
        faults.unless(passed, at, "it is DONE, and its last run did not pass");
    }
}

/// PostgreSQL stores no NUL in a text.
fn storable<'a>(texts: impl IntoIterator<Item = &'a String>) -> bool {
    texts.into_iter().all(|text| !text.contains('\0'))
}

fn decisions(all: &Exported, faults: &mut Faults) {
    for (id, decision) in &all.decisions {
        let at = path("decisions", id);
        let known = matches!(decision.kind.as_str(), "APPROVE" | "CONFIRM" | "REOPEN");
        faults.unless(known, &at, "its kind is none of APPROVE, CONFIRM and REOPEN");
        let of = decision.objective_id.as_str();
        faults.unless(all.objectives.contains_key(of), &at, format!("there is no objective {of}"));
        faults.unless(decision.shown["objective_id"] == of, &at, "what was shown is another objective");
        let digest = canonical::digest_of(&decision.shown);
        faults.unless(digest == decision.digest, &at, "its digest is not of what was shown: it was changed");
        faults.unless(storable(decision.note.iter().chain([&decision.who])), &at, "a text in it has a NUL");
    }
}

fn events(all: &Exported, faults: &mut Faults) {
    let mut entries = BTreeSet::new();
    for (id, Kept { artifact: event, beside }) in &all.events {
        let (at, beside_at) = (path("events", id), path("beside/events", id));
        faults.unless(event.event_type == EventType::TicketReady, &at, "only TICKET_READY can be brought in");
        match all.objectives.get(&event.resource_id) {
            Some(of) if of.artifact.azolla_id == event.azolla_id => {}
            Some(_) => faults.add(&at, "its objective belongs to another azolla"),
            None => faults.add(&at, format!("there is no objective {}", event.resource_id)),
        }
        let first = beside.entry >= 1 && entries.insert((&event.resource_id, beside.entry));
        faults.unless(first, &beside_at, "its entry is not counted from 1, or another event's");
        faults.unless(event.processed == beside.reason.is_some(), &at, "processed and its reason differ");
        let scheduled = beside.reason == Some(TerminalReason::Scheduled);
        faults.unless(
            scheduled == beside.work_order_id.is_some(),
            &beside_at,
            "a workorder comes of SCHEDULED, and only of it",
        );
        if let Some(work) = &beside.work_order_id {
            let back = all.workorders.get(work.as_str()).is_some_and(|w| w.beside.event_id.as_str() == id);
            faults.unless(back, &beside_at, format!("workorder {work} is not there, or not of this event"));
        }
    }
}

fn workorders(all: &Exported, index: &Index<'_>, faults: &mut Faults) {
    let (mut snapshots, mut outputs) = (BTreeSet::new(), BTreeSet::new());
    for (id, work) in &all.workorders {
        let Kept { artifact, beside } = work;
        let at = path("workorders", id);
        let of = artifact.objective_id.as_str();
        match all.objectives.get(of) {
            Some(objective) if objective.artifact.azolla_id == beside.azolla_id => {}
            _ => faults.add(&at, format!("there is no objective {of} in azolla {}", beside.azolla_id)),
        }
        let event = all.events.get(beside.event_id.as_str());
        let made = event.is_some_and(|e| {
            e.artifact.resource_id == of && e.beside.work_order_id.as_ref() == Some(&artifact.work_order_id)
        });
        faults.unless(made, &at, format!("event {} is not there, or not its", beside.event_id));
        let snapshot = all.snapshots.get(artifact.context_snapshot_id.as_str());
        let told = snapshot
            .is_some_and(|s| s.objective_id == artifact.objective_id && s.created_at == artifact.created_at);
        faults.unless(
            told && snapshots.insert(artifact.context_snapshot_id.as_str()),
            &at,
            format!("context_snapshot {} is not there, or not its", artifact.context_snapshot_id),
        );
        allowed(all, index, work, &at, faults);
        let executed = artifact.status == WorkorderStatus::Executed;
        faults.unless(
            executed == beside.output_id.is_some() && executed == beside.executed_at.is_some(),
            &at,
            "its status, its output and when it was executed differ",
        );
        if let Some(output) = &beside.output_id {
            let known = all.bundles.get(output.as_str()).is_some_and(|b| {
                b.objective_id == artifact.objective_id && Some(b.created_at) == beside.executed_at
            });
            let why = format!("output_bundle {output} is not there, or not its");
            faults.unless(known && outputs.insert(output.as_str()), &at, why);
        }
        let recorded = index.runs.contains_key(id.as_str());
        faults.unless(beside.judged == recorded, &at, "whether it was judged and its run_record differ");
    }
    for id in all.snapshots.keys().filter(|id| !snapshots.contains(id.as_str())) {
        faults.add(path("context_snapshots", id), "no workorder leads to it");
    }
    for (id, bundle) in &all.bundles {
        let at = path("output_bundles", id);
        faults.unless(outputs.contains(id.as_str()), &at, "no workorder leads to it");
        let mut metadata = bundle.metadata.clone();
        metadata.remove("outcome");
        let parts = json!({"title": bundle.title, "content": bundle.content, "notes": bundle.notes, "metadata": metadata});
        for violation in membrane::parts(&parts).err().into_iter().flatten() {
            faults.add(&at, format!("{}: {}", violation.path, violation.message));
        }
    }
}

/// A person approved that this blueprint decides what runs and how it is judged.
fn allowed(
    all: &Exported,
    index: &Index<'_>,
    work: &Kept<Workorder, BesideWorkorder>,
    at: &str,
    faults: &mut Faults,
) {
    let Kept { artifact, beside } = work;
    let Some(blueprint) = all.blueprints.get(&beside.blueprint.to_string()) else {
        return faults.add(at, format!("blueprints/{}.json is missing", beside.blueprint));
    };
    let same =
        blueprint.azolla_id == beside.azolla_id && blueprint.diazotroph_type == artifact.diazotroph_type;
    faults.unless(same, at, "its blueprint is for another azolla or another kind of executor");
    let budget = u64::try_from(blueprint.budget.as_millis()).unwrap_or(u64::MAX);
    let bounded =
        artifact.budget_ms <= budget && artifact.branch_name == blueprint.branch_name(&artifact.objective_id);
    faults.unless(bounded, at, "its budget or its branch is not what its blueprint gives");
    let decisive = blueprint.decisive();
    let approvals = index.approvals.get(artifact.objective_id.as_str());
    // Not by their instants: a clock may have been set back between them.
    let approved = approvals.into_iter().flatten().any(|decision| decision.shown["blueprint"] == decisive);
    faults.unless(approved, at, "no decision approves it under its blueprint");
}

fn runs(all: &Exported, faults: &mut Faults) {
    let mut judged = BTreeSet::new();
    for (id, Kept { artifact: run, beside }) in &all.runs {
        let at = path("run_records", id);
        faults.unless(judged.insert(run.work_order_id.as_str()), &at, "its workorder has another run_record");
        let Some(work) = all.workorders.get(run.work_order_id.as_str()) else {
            faults.add(&at, format!("there is no workorder {}", run.work_order_id));
            continue;
        };
        let same = work.beside.output_id.as_ref() == Some(&run.output_id)
            && work.artifact.objective_id == run.objective_id;
        faults.unless(same, &at, "its output and its objective are not those of its workorder");
        let bundle = all.bundles.get(run.output_id.as_str());
        let blueprint = all.blueprints.get(&work.beside.blueprint.to_string());
        let (Some(bundle), Some(blueprint)) = (bundle, blueprint) else { continue };
        let beside_at = path("beside/run_records", id);
        evidence(&blueprint.gates, &beside.evidence, &beside_at, faults);
        // The result and not its words, which another version may put otherwise. The journal has them.
        let (result, reason) = verdict_again(&blueprint.gates, &beside.evidence, bundle).recorded();
        let again = result == run.gate_result;
        faults.unless(again, &at, format!("judged again it comes out otherwise: {result}, {reason}"));
    }
}

/// Evidence is of the blueprint's gates in their order, and says what a gate can have said: it may be shown to people and
/// told to the next executor.
fn evidence(gates: &[Gate], evidence: &[Evidence], at: &str, faults: &mut Faults) {
    let named = evidence.iter().zip(gates).all(|(found, gate)| found.gate == gate.name());
    let rest = evidence.get(gates.len()..).unwrap_or_default();
    let of_gates = named && rest.len() <= 1 && rest.iter().all(|after| after.gate == BRANCH);
    faults.unless(of_gates, at, "its evidence is not of the gates of its blueprint, in their order");
    let fits = |text: &str| text.len() <= limits::EVIDENCE_BYTES_MAX && is_showable(text);
    let said = evidence.iter().flat_map(|found| found.trouble.iter().chain([&found.log_tail]));
    let why = format!("a gate says at most {} bytes, without control characters", limits::EVIDENCE_BYTES_MAX);
    faults.unless(said.into_iter().all(|text| fits(text)), at, why);
}

fn pauses(all: &Exported, faults: &mut Faults) {
    let mut next = BTreeMap::new();
    for ((of, number), pause) in &all.pauses {
        let at = path("pause_states", format!("{of}.{number}"));
        let due = next.entry(of.as_str()).or_insert(1);
        faults.unless(number == due, &at, format!("{of}.{due}.json is missing"));
        *due = number.saturating_add(1);
        let azolla = all.objectives.get(of).map(|o| &o.artifact.azolla_id);
        faults.unless(azolla == Some(&pause.azolla_id), &at, "its objective is not there, or elsewhere");
    }
}

/// Entries are shown and looked for by these, and name blueprints that a reader must find.
fn journal(all: &Exported, faults: &mut Faults) {
    let fits = |name: &str| {
        (1..=limits::JOURNAL_NAME_CHARS_MAX).contains(&name.chars().count())
            && !name.chars().any(is_unprintable)
    };
    for entry in &all.journal {
        let at = of_entry(entry);
        faults.unless(RecordId::new(&entry.entry_id).is_ok(), &at, "its entry_id is no id");
        let plain = [&entry.actor, &entry.act, &entry.subject].into_iter().all(|name| fits(name));
        let most = limits::JOURNAL_NAME_CHARS_MAX;
        faults.unless(plain, &at, format!("actor, act and subject are plain text of 1 to {most} characters"));
        if entry.act == "blueprint_in_force" {
            let named = entry.why["blueprint"].as_str().unwrap_or("");
            let there = all.blueprints.get(named).is_some_and(|b| b.azolla_id.as_str() == entry.subject);
            faults.unless(there, &at, format!("blueprints/{named}.json is missing, or of another azolla"));
        }
    }
}

/// What is stored must not drag the clock of its reader along.
fn instants(all: &Exported, now: Timestamp, faults: &mut Faults) {
    let latest = now.after(limits::IMPORT_AHEAD_MAX);
    let mut each = |at: Timestamp, folder: &str, id: &str| {
        faults.unless(at <= latest, &path(folder, id), format!("{at} has not come yet; it is {now}"));
    };
    for (id, o) in &all.objectives {
        each(o.artifact.created_at.max(o.artifact.updated_at), "objectives", id);
    }
    all.decisions.iter().for_each(|(id, d)| each(d.created_at, "decisions", id));
    all.events.iter().for_each(|(id, e)| each(e.artifact.created_at, "events", id));
    all.snapshots.iter().for_each(|(id, s)| each(s.created_at, "context_snapshots", id));
    for (id, w) in &all.workorders {
        each(w.artifact.created_at.max(w.beside.executed_at.unwrap_or_default()), "workorders", id);
    }
    all.bundles.iter().for_each(|(id, b)| each(b.created_at, "output_bundles", id));
    all.runs.iter().for_each(|(id, r)| each(r.artifact.created_at, "run_records", id));
    for ((of, number), pause) in &all.pauses {
        each(pause.created_at, "pause_states", &format!("{of}.{number}"));
    }
    all.journal.iter().for_each(|entry| each(entry.created_at, "journal", &entry.entry_id));
}

//! What artifacts say of each other: every id leads to something that leads back.

use super::{BesideWorkorder, Exported, Faults, Kept, gates_of, inbox_references};
use crate::Timestamp;
use crate::artifact::{
    EventType, GateResult, Objective, ObjectiveStatus, ObjectiveType, RecordId, RunRecord, TerminalReason,
    Workorder, WorkorderStatus,
};
use crate::blueprint::Gate;
use crate::calendar::duration::millis;
use crate::canonical;
use crate::journal::{Act, Entry};
use crate::limits;
use crate::names::is_unprintable;
use crate::pipeline::approval::Decision;
use crate::pipeline::draft::Draft;
use crate::pipeline::evidence::{BRANCH, Evidence};
use crate::pipeline::judging::verdict_again;
use crate::pipeline::protection::Protected;
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
    /// The run of each workorder.
    runs: BTreeMap<&'a str, &'a RunRecord>,
    /// The workorders of each objective, in the order of its entries into TODO.
    works: BTreeMap<&'a str, Vec<&'a Kept<Workorder, BesideWorkorder>>>,
    /// The approvals of each objective.
    approvals: BTreeMap<&'a str, Vec<&'a Decision>>,
    /// Runs that an operator confirmed.
    confirmed: BTreeSet<&'a str>,
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
        let confirmed = all.decisions.values().filter(|decision| decision.kind == "CONFIRM");
        let confirmed = confirmed.filter_map(|of| of.shown["run"]["run_record"]["run_id"].as_str()).collect();
        Self { runs, works, approvals, confirmed }
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
    for (id, kept) in &all.objectives {
        let Kept { artifact: o, beside } = kept;
        let at = path("objectives", id);
        if o.objective_type == ObjectiveType::Standing {
            inbox_references::standing(all, kept, &at, faults);
            status(index, o, &at, faults);
            continue;
        }
        for violation in Draft::from(o).violations() {
            faults.add(&at, format!("{}: {}", violation.path, violation.message));
        }
        let texts = o.blocked_on.iter().map(|b| &b.description).chain(&o.blocked_reason);
        faults.unless(storable(texts), &at, "it contains a NUL character");
        let blocked = o.status == ObjectiveStatus::Blocked;
        faults.unless(
            blocked == o.blocked_reason.is_some(),
            &at,
            "its status does not fit its blocked_reason",
        );
        let blockers: BTreeSet<_> = o.blocked_on.iter().map(|b| &b.blocker_id).collect();
        faults.unless(blockers.len() == o.blocked_on.len(), &at, "two of its blockers have the same id");
        let open = o.blocked_on.iter().filter(|b| !b.resolved).count();
        faults.unless(open <= limits::BLOCKERS_MAX, &at, "it has too many open blockers");
        let beside_at = path("beside/objectives", id);
        let done = o.status == ObjectiveStatus::Done;
        faults.unless(!beside.unconfirmed || done, &beside_at, "it is unconfirmed, but not DONE");
        let approval = beside.approval.as_ref().map(|approval| all.decisions.get(approval.as_str()));
        match approval {
            Some(Some(d)) if d.approves() && d.objective_id == o.objective_id => {}
            Some(_) => faults.add(&beside_at, "its approval is not in decisions, or is for something else"),
            None => {
                let needed = matches!(o.status, ObjectiveStatus::Todo | ObjectiveStatus::InProgress);
                faults.unless(!needed, &beside_at, format!("it is {} without an approval", o.status));
            }
        }
        status(index, o, &at, faults);
    }
}

/// What its runs allow an objective's status to be.
fn status(index: &Index<'_>, objective: &Objective, at: &str, faults: &mut Faults) {
    let (id, status) = (objective.objective_id.as_str(), objective.status);
    let is_standing = objective.objective_type == ObjectiveType::Standing;
    let works = index.works.get(id).map_or(&[][..], Vec::as_slice);
    let open = works.iter().filter(|work| !work.beside.judged).count();
    faults.unless(open <= 1, at, "it has two unfinished workorders");
    let fits = match status {
        // A standing objective is IN_PROGRESS for good.
        ObjectiveStatus::InProgress => open == 1 || is_standing,
        // A cancelled one may still be on its way to its end.
        ObjectiveStatus::Blocked => true,
        ObjectiveStatus::New | ObjectiveStatus::Todo | ObjectiveStatus::Done => open == 0,
    };
    faults.unless(fits, at, format!("it is {status}, with {open} unfinished workorders"));
    if status == ObjectiveStatus::Done {
        let runs =
            || works.iter().rev().filter_map(|work| index.runs.get(work.artifact.work_order_id.as_str()));
        let passed = |run: &&&RunRecord| run.gate_result == GateResult::Pass;
        // One that passed before may have been kept: then it was confirmed. The journal tells whether that came last.
        let kept = runs().find(passed).is_some_and(|run| index.confirmed.contains(run.run_id.as_str()));
        let fits = kept || runs().next().as_ref().is_some_and(passed);
        faults.unless(fits, at, "it is DONE, but its last run did not pass, and no earlier one was kept");
    }
}

/// PostgreSQL stores no NUL in a text.
pub(super) fn storable<'a>(texts: impl IntoIterator<Item = &'a String>) -> bool {
    texts.into_iter().all(|text| !text.contains('\0'))
}

fn decisions(all: &Exported, faults: &mut Faults) {
    for (id, decision) in &all.decisions {
        let at = path("decisions", id);
        let known = matches!(decision.kind.as_str(), "APPROVE" | "CONFIRM" | "REOPEN" | "ANSWER" | "MERGE");
        faults.unless(known, &at, "its kind is not APPROVE, CONFIRM, REOPEN, ANSWER or MERGE");
        let of = decision.objective_id.as_str();
        let ticket = all.objectives.contains_key(of) && !all.is_standing(of);
        faults.unless(ticket, &at, format!("there is no ticket {of}"));
        faults.unless(decision.shown["objective_id"] == of, &at, "`shown` is about another objective");
        let digest = canonical::digest_of(&decision.shown);
        faults.unless(digest == decision.digest, &at, "its digest does not match `shown`: it was changed");
        faults.unless(
            storable(decision.note.iter().chain([&decision.who])),
            &at,
            "it contains a NUL character",
        );
    }
}

fn events(all: &Exported, faults: &mut Faults) {
    let (mut entries, mut requests, mut stand_ins) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (id, Kept { artifact: event, beside }) in &all.events {
        let (at, beside_at) = (path("events", id), path("beside/events", id));
        match event.event_type {
            EventType::TicketReady => match all.objectives.get(&event.resource_id) {
                Some(of) if of.artifact.azolla_id == event.azolla_id => {
                    let ticket = of.artifact.objective_type == ObjectiveType::Ticket;
                    faults.unless(ticket, &at, "a standing objective is never TODO");
                }
                Some(_) => faults.add(&at, "its objective belongs to another azolla"),
                None => faults.add(&at, format!("there is no objective {}", event.resource_id)),
            },
            _ => inbox_references::event(all, event, &at, faults),
        }
        let first =
            beside.entry >= 1 && entries.insert((event.event_type, event.resource_id.as_str(), beside.entry));
        faults.unless(first, &beside_at, "its `entry` is less than 1, or another event has the same");
        let of_request = event.event_type == EventType::ManifestRequested;
        if let Some(request) = &beside.request_id {
            let plain = of_request && storable([request]) && requests.insert(request.as_str());
            faults.unless(
                plain,
                &beside_at,
                "another event has the same request_id, or it is not a request for a manifest",
            );
        }
        if let Some(work) = &beside.stands_in_for {
            let there =
                all.workorders.get(work.as_str()).is_some_and(|w| w.beside.azolla_id == event.azolla_id);
            let once = there && of_request && stand_ins.insert(work.as_str());
            faults.unless(
                once,
                &beside_at,
                "it stands in for no workorder of its azolla, or for one that another event stands in for",
            );
        }
        faults.unless(event.processed == beside.reason.is_some(), &at, "`processed` does not fit its reason");
        let scheduled = beside.reason == Some(TerminalReason::Scheduled);
        faults.unless(
            scheduled == beside.work_order_id.is_some(),
            &beside_at,
            "it must name a workorder if its reason is SCHEDULED, and only then",
        );
        if let Some(work) = &beside.work_order_id {
            let back = all.workorders.get(work.as_str()).is_some_and(|w| w.beside.event_id.as_str() == id);
            faults.unless(
                back,
                &beside_at,
                format!("workorder {work} is missing or was made from another event"),
            );
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
            let of_ticket = e.artifact.event_type == EventType::TicketReady;
            e.beside.work_order_id.as_ref() == Some(&artifact.work_order_id)
                && of_ticket != all.is_standing(of)
                && (e.artifact.resource_id == of || !of_ticket)
                && e.artifact.azolla_id == beside.azolla_id
        });
        faults.unless(
            made,
            &at,
            format!("event {} is missing or belongs to something else", beside.event_id),
        );
        let snapshot = all.snapshots.get(artifact.context_snapshot_id.as_str());
        let told = snapshot
            .is_some_and(|s| s.objective_id == artifact.objective_id && s.created_at == artifact.created_at);
        faults.unless(
            told && snapshots.insert(artifact.context_snapshot_id.as_str()),
            &at,
            format!(
                "context_snapshot {} is missing or belongs to something else",
                artifact.context_snapshot_id
            ),
        );
        allowed(all, index, work, &at, faults);
        let executed = artifact.status == WorkorderStatus::Executed;
        faults.unless(
            executed == beside.output_id.is_some() && executed == beside.executed_at.is_some(),
            &at,
            "its status, output_id and executed_at do not fit together",
        );
        if let Some(output) = &beside.output_id {
            let known = all.bundles.get(output.as_str()).is_some_and(|b| {
                b.objective_id == artifact.objective_id && Some(b.created_at) == beside.executed_at
            });
            let why = format!("output_bundle {output} is missing or belongs to something else");
            faults.unless(known && outputs.insert(output.as_str()), &at, why);
        }
        let recorded = index.runs.contains_key(id.as_str());
        faults.unless(beside.judged == recorded, &at, "`judged` does not fit its run_record");
    }
    for id in all.snapshots.keys().filter(|id| !snapshots.contains(id.as_str())) {
        faults.add(path("context_snapshots", id), "no workorder names it");
    }
    for (id, bundle) in &all.bundles {
        let at = path("output_bundles", id);
        faults.unless(outputs.contains(id.as_str()), &at, "no workorder names it");
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
    let same = blueprint.azolla_id == beside.azolla_id
        && blueprint.workorders_for().contains(&artifact.diazotroph_type);
    faults.unless(same, at, "its blueprint is for another azolla or another kind of executor");
    let is_standing = all.is_standing(artifact.objective_id.as_str());
    let branch = if is_standing { None } else { blueprint.branch_name(&artifact.objective_id) };
    let budget = millis(blueprint.budget);
    let bounded = artifact.budget_ms <= budget && artifact.branch_name == branch;
    faults.unless(bounded, at, "its budget or branch does not match its blueprint");
    if is_standing {
        // Nobody approves a look through the inbox: what may come of it is a candidate, and no more.
        let duty = blueprint.standing.as_ref().map(|standing| &standing.objective_id);
        faults.unless(
            duty == Some(&artifact.objective_id),
            at,
            "its blueprint has another standing objective",
        );
        return;
    }
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
        faults.unless(
            judged.insert(run.work_order_id.as_str()),
            &at,
            "its workorder has a second run_record",
        );
        let Some(work) = all.workorders.get(run.work_order_id.as_str()) else {
            faults.add(&at, format!("there is no workorder {}", run.work_order_id));
            continue;
        };
        let same = work.beside.output_id.as_ref() == Some(&run.output_id)
            && work.artifact.objective_id == run.objective_id;
        faults.unless(same, &at, "its output or objective does not match its workorder");
        let bundle = all.bundles.get(run.output_id.as_str());
        let blueprint = all.blueprints.get(&work.beside.blueprint.to_string());
        let (Some(bundle), Some(blueprint)) = (bundle, blueprint) else { continue };
        let beside_at = path("beside/run_records", id);
        let asked = all.snapshots.get(work.artifact.context_snapshot_id.as_str());
        let gates = gates_of(blueprint, all.is_standing(run.objective_id.as_str()), asked, &beside.evidence);
        evidence(&gates, &beside.evidence, &beside_at, faults);
        // The result and not its words, which another version may put otherwise. The journal has them.
        let (result, reason) = verdict_again(&gates, &beside.evidence, bundle).recorded();
        let again = result == run.gate_result;
        faults.unless(again, &at, format!("judged again, the verdict differs: {result}, {reason}"));
    }
}

/// Evidence is of the blueprint's gates in their order, and says what a gate can have said: it may be shown to people and
/// told to the next executor.
fn evidence(gates: &[Gate], evidence: &[Evidence], at: &str, faults: &mut Faults) {
    let named = evidence.iter().zip(gates).all(|(found, gate)| found.gate == gate.name());
    let rest = evidence.get(gates.len()..).unwrap_or_default();
    let of_gates = named && rest.len() <= 1 && rest.iter().all(|after| after.gate == BRANCH);
    faults.unless(of_gates, at, "its evidence does not match the gates of its blueprint");
    let fits = |text: &str| text.len() <= limits::EVIDENCE_BYTES_MAX && is_showable(text);
    let said = evidence.iter().flat_map(|found| found.trouble.iter().chain([&found.log_tail]));
    let why = format!(
        "a gate's text may have at most {} bytes, without control characters",
        limits::EVIDENCE_BYTES_MAX
    );
    faults.unless(said.into_iter().all(|text| fits(text)), at, why);
    let plausible = evidence.iter().filter_map(|found| found.protected.as_ref()).all(Protected::is_plausible);
    faults.unless(plausible, at, "no gate can have reported these protected files");
}

fn pauses(all: &Exported, faults: &mut Faults) {
    let mut next = BTreeMap::new();
    for ((of, number), pause) in &all.pauses {
        let at = path("pause_states", format!("{of}.{number}"));
        let due = next.entry(of.as_str()).or_insert(1);
        faults.unless(number == due, &at, format!("{of}.{due}.json is missing"));
        *due = number.saturating_add(1);
        let azolla = all.objectives.get(of).map(|o| &o.artifact.azolla_id);
        faults.unless(
            azolla == Some(&pause.azolla_id),
            &at,
            "its objective is missing or belongs to another azolla",
        );
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
        faults.unless(RecordId::new(&entry.entry_id).is_ok(), &at, "its entry_id is not a valid id");
        let plain = [&entry.actor, &entry.act, &entry.subject].into_iter().all(|name| fits(name));
        let most = limits::JOURNAL_NAME_CHARS_MAX;
        faults.unless(
            plain,
            &at,
            format!("actor, act and subject must be plain text of 1 to {most} characters"),
        );
        if entry.is(Act::BlueprintInForce) {
            let named = entry.why["blueprint"].as_str().unwrap_or("");
            let there = all.blueprints.get(named).is_some_and(|b| b.azolla_id.as_str() == entry.subject);
            faults.unless(
                there,
                &at,
                format!("blueprints/{named}.json is missing or belongs to another azolla"),
            );
        }
    }
}

/// What is stored must not drag the clock of its reader along.
fn instants(all: &Exported, now: Timestamp, faults: &mut Faults) {
    let latest = now.after(limits::IMPORT_AHEAD_MAX);
    let mut each = |at: Timestamp, folder: &str, id: &str| {
        faults.unless(at <= latest, &path(folder, id), format!("{at} is in the future; now is {now}"));
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

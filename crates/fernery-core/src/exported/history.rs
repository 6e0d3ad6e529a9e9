//! What the journal says of the artifacts. Its chain covers every entry, and an entry names what it tells of with a digest:
//! so the chain covers titles, decisions, verdicts, and what executors were told and handed in.

use super::references::{of_entry, path};
use super::{Exported, Faults, Kept, inbox_history};
use crate::Timestamp;
use crate::artifact::{AzollaId, EventType, Objective, ObjectiveStatus, RunRecord};
use crate::blueprint::Blueprint;
use crate::canonical::Digest;
use crate::journal::{Act, Entry};
use crate::limits;
use crate::pipeline::approval::shown;
use crate::pipeline::evidence::Evidence;
use crate::pipeline::exhibits::Exhibits;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Two who act on one objective at once may take its lock in another order than they looked at the clock.
const AT_ONCE: Duration = Duration::from_secs(1);

pub(super) fn check(all: &Exported, faults: &mut Faults) {
    let told = Told::by_journal(all, faults);
    told.check_complete(all, faults);
    check_objectives(all, &told.about, faults);
    inbox_history::check(all, faults);
    for (id, event) in all.events.iter().filter(|(_, e)| e.artifact.event_type == EventType::TicketReady) {
        // Whatever leads to TODO is told of.
        let steps = told.about.get(event.artifact.resource_id.as_str()).map_or(0, Vec::len);
        let counted = usize::try_from(event.beside.entry).is_ok_and(|entry| entry <= steps);
        faults.unless(
            counted,
            &path("beside/events", id),
            "its objective entered TODO less often than `entry` says",
        );
    }
    for ((of, number), pause) in &all.pauses {
        let told = told.instants.contains(&(of.as_str(), pause.created_at));
        let why = format!("the journal has no entry at {}: it was inserted or changed", pause.created_at);
        faults.unless(told, &path("pause_states", format!("{of}.{number}")), why);
    }
}

/// What the entries of the journal tell of.
#[derive(Default)]
struct Told<'a> {
    /// The entries about each ticket, in their order.
    about: BTreeMap<&'a str, Vec<&'a Entry>>,
    decided: BTreeSet<&'a str>,
    processed: BTreeSet<&'a str>,
    judged: BTreeSet<&'a str>,
    /// When each subject was told of.
    instants: BTreeSet<(&'a str, Timestamp)>,
}

impl<'a> Told<'a> {
    /// Goes through the journal; each artifact that an entry names has to be there, and as it says.
    fn by_journal(all: &'a Exported, faults: &mut Faults) -> Self {
        let mut known = Self::default();
        let duties = duties(all);
        for entry in all.journal.iter().filter(|entry| all.with_inbox || !is_left_out(entry, &duties)) {
            known.instants.insert((&entry.subject, entry.created_at));
            // Ids of captures and of requests come from outside: what is told of them is not told of a ticket of the same name.
            if !tells_of_inbox(entry.act(), &entry.why) {
                known.about.entry(&entry.subject).or_default().push(entry);
            }
            match entry.act() {
                Some(Act::Created) => {
                    let there = all.objectives.contains_key(&entry.subject);
                    let why = format!("it is missing, but {} records its creation", of_entry(entry));
                    faults.unless(there, &path("objectives", &entry.subject), why);
                }
                Some(Act::Approved | Act::Confirmed | Act::Reopened | Act::Answered | Act::Merge) => {
                    told(&mut known.decided, "decisions", "record_id", entry, faults, |id| {
                        all.decisions.get(id).is_some_and(|d| {
                            d.kind.to_lowercase() == entry.act
                                && d.objective_id.as_str() == entry.subject
                                && d.who == entry.actor
                                && d.created_at == entry.created_at
                                && entry.why["digest"] == json!(d.digest)
                                && entry.why["note"] == json!(d.note)
                        })
                    })
                }
                Some(Act::EventProcessed) => {
                    told(&mut known.processed, "events", "event_id", entry, faults, |id| {
                        all.events.get(id).is_some_and(|Kept { artifact, beside }| {
                            artifact.processed
                                && artifact.resource_id == entry.subject
                                && entry.why["reason"] == json!(beside.reason)
                                && entry.why["work_order_id"] == json!(beside.work_order_id)
                        })
                    })
                }
                Some(Act::Judged) => told(&mut known.judged, "run_records", "run_id", entry, faults, |id| {
                    all.runs.get(id).is_some_and(|run| {
                        verdict(&run.artifact, entry)
                            && exhibits_same(all, &run.artifact, &run.beside.evidence, entry)
                    })
                }),
                _ => {}
            }
        }
        known
    }

    /// Whatever the journal would have told of, it told of.
    fn check_complete(&self, all: &Exported, faults: &mut Faults) {
        let mut untold = |folder: &str, id: &str, is_told: bool| {
            faults.unless(
                is_told,
                &path(folder, id),
                "the journal has no record of it: it was inserted or changed",
            );
        };
        all.decisions.keys().for_each(|id| untold("decisions", id, self.decided.contains(id.as_str())));
        all.runs.keys().for_each(|id| untold("run_records", id, self.judged.contains(id.as_str())));
        for (id, event) in &all.events {
            untold("events", id, self.processed.contains(id.as_str()) == event.artifact.processed);
        }
    }
}

fn check_objectives(all: &Exported, about: &BTreeMap<&str, Vec<&Entry>>, faults: &mut Faults) {
    let mut blueprints = Distinct::of(all, faults);
    for (id, objective) in &all.objectives {
        let entries = about.get(id.as_str()).map_or(&[][..], Vec::as_slice);
        let at = path("objectives", id);
        if all.is_standing(id) {
            // It comes with a blueprint, and never moves.
            let moved = entries.iter().find(|entry| leads_to(entry).is_some());
            let why = "the journal records a ticket with this id";
            faults.unless(moved.is_none(), &at, why);
            continue;
        }
        content(&mut blueprints, &objective.artifact, entries, &at, faults);
        status(&objective.artifact, entries, &at, faults);
        blockers(&objective.artifact, entries, &at, faults);
        if objective.artifact.status == ObjectiveStatus::Done {
            let why = "`unconfirmed` does not match the journal";
            faults.unless(
                is_unconfirmed(entries).contains(&objective.beside.unconfirmed),
                &path("beside/objectives", id),
                why,
            );
        }
    }
}

/// The standing objectives of the folder's blueprints. One that is named like a ticket is none: that ticket's verdicts need
/// their runs. No ticket can be left out of the folder for it, because the journal tells that it was created.
fn duties(all: &Exported) -> BTreeSet<&str> {
    let created: BTreeSet<&str> = all
        .journal
        .iter()
        .filter(|entry| entry.is(Act::Created))
        .map(|entry| entry.subject.as_str())
        .collect();
    let named = all.blueprints.values().filter_map(|blueprint| blueprint.standing.as_ref());
    let named = named.map(|standing| standing.objective_id.as_str());
    named.filter(|id| !all.objectives.contains_key(*id) && !created.contains(id)).collect()
}

/// Whether an entry of the journal tells of an inbox: of a capture's or a request's event, a verdict for a standing objective,
/// or what an operator decided about captures and candidates.
pub fn tells_of_inbox(act: Option<Act>, why: &Value) -> bool {
    match act {
        Some(Act::EventProcessed) => serde_json::from_value::<EventType>(why["type"].clone())
            .is_ok_and(|of| of != EventType::TicketReady),
        Some(Act::Judged) => !why["came_to"].is_null(),
        Some(
            Act::Promoted
            | Act::CandidateEdited
            | Act::Discarded
            | Act::Restored
            | Act::Merged
            | Act::CapturesReleased
            | Act::RecurrenceStopped,
        ) => true,
        Some(Act::Snoozed) => why["kind"] == "candidate",
        _ => false,
    }
}

/// Whether an entry tells of an inbox that is not in the folder, because the folder is of a version that left it out. Ids
/// may be those of tickets, of which it tells nothing.
fn is_left_out(entry: &Entry, duties: &BTreeSet<&str>) -> bool {
    match entry.act() {
        Some(Act::Judged) => duties.contains(entry.subject.as_str()),
        act => tells_of_inbox(act, &entry.why),
    }
}

/// An entry tells of one artifact, of which no other tells, and says the same of it.
fn told<'a>(
    seen: &mut BTreeSet<&'a str>,
    folder: &str,
    key: &str,
    entry: &'a Entry,
    faults: &mut Faults,
    same: impl Fn(&str) -> bool,
) {
    let id = entry.why[key].as_str().unwrap_or("");
    let as_told = seen.insert(id) && same(id);
    let why = format!("it is missing or changed: it does not match {}", of_entry(entry));
    faults.unless(as_told, &path(folder, id), why);
}

fn verdict(run: &RunRecord, entry: &Entry) -> bool {
    run.objective_id.as_str() == entry.subject
        && run.created_at == entry.created_at
        && entry.why["work_order_id"] == json!(run.work_order_id)
        && entry.why["gate_result"] == json!(run.gate_result)
        && entry.why["gate_reason"] == json!(run.gate_reason)
}

/// Entries of earlier versions say nothing of the artifacts.
fn exhibits_same(all: &Exported, run: &RunRecord, evidence: &[Evidence], entry: &Entry) -> bool {
    let Some(said) = entry.why["by"].as_object().filter(|said: &&Map<_, _>| !said.is_empty()) else {
        return true;
    };
    let Some(work) = all.workorders.get(run.work_order_id.as_str()) else { return false };
    let Some(bundle) = all.bundles.get(run.output_id.as_str()) else { return false };
    let snapshot = all.snapshots.get(work.artifact.context_snapshot_id.as_str());
    let exhibits = Exhibits { workorder: &work.artifact, snapshot, bundle, evidence };
    json!(said) == exhibits.digests()
}

/// What is wanted is what was last written down, under a blueprint that was in force then.
fn content(
    blueprints: &mut Distinct<'_>,
    objective: &Objective,
    entries: &[&Entry],
    at: &str,
    faults: &mut Faults,
) {
    let created = entries.iter().filter(|entry| entry.is(Act::Created)).count();
    let of_then =
        entries.iter().any(|entry| entry.is(Act::Created) && entry.created_at == objective.created_at);
    let why = "the journal does not record its creation at that time: it was inserted or changed";
    faults.unless(created == 1 && of_then, at, why);
    let lasts = last_of(entries, |entry| matches!(entry.act(), Some(Act::Created | Act::Edited)));
    let Some(last) = lasts.first() else { return };
    if lasts.iter().any(|last| last.why["digest"].is_null()) {
        return;
    }
    let of_it = |digest: Digest| lasts.iter().any(|last| last.why["digest"] == json!(digest));
    let same = blueprints.find(&objective.azolla_id, |blueprint| of_it(shown(objective, blueprint).digest));
    let why =
        format!("title, criteria or metadata do not match {}, or their blueprint is missing", of_entry(last));
    faults.unless(same, at, why);
}

/// The blueprints of each azolla, one of those that decide the same.
struct Distinct<'a>(BTreeMap<&'a AzollaId, VecDeque<&'a Blueprint>>);

impl<'a> Distinct<'a> {
    fn of(all: &'a Exported, faults: &mut Faults) -> Self {
        let (mut known, mut seen) = (BTreeMap::<_, VecDeque<_>>::new(), BTreeSet::new());
        for (name, blueprint) in &all.blueprints {
            if !seen.insert((&blueprint.azolla_id, blueprint.digest().to_string())) {
                continue;
            }
            let of_azolla = known.entry(&blueprint.azolla_id).or_default();
            if of_azolla.len() == limits::IMPORT_BLUEPRINTS_MAX {
                let why = format!(
                    "azolla {} has more than {} different blueprints",
                    blueprint.azolla_id,
                    of_azolla.len()
                );
                faults.add(path("blueprints", name), why);
                return Self(BTreeMap::new());
            }
            of_azolla.push_back(blueprint);
        }
        Self(known)
    }

    /// Looks first at the one that was found last: most tickets were written down under the same.
    fn find(&mut self, azolla: &AzollaId, is_it: impl Fn(&Blueprint) -> bool) -> bool {
        let Some(known) = self.0.get_mut(azolla) else { return false };
        let found = known.iter().position(|blueprint| is_it(blueprint));
        let first = found.and_then(|n| known.remove(n));
        if let Some(first) = first {
            known.push_front(first);
        }
        found.is_some()
    }
}

/// What a person put in the way is there as they said it, and what they took away is resolved.
fn blockers(objective: &Objective, entries: &[&Entry], at: &str, faults: &mut Faults) {
    let blocked = entries.iter().filter(|entry| entry.is(Act::Blocked) && !entry.why["blocker_id"].is_null());
    let created = entries.iter().filter(|entry| entry.is(Act::Created));
    let from_the_start = created.filter_map(|entry| entry.why["blocked_on"].as_array()).flatten();
    let mut put = blocked.map(|entry| &entry.why).chain(from_the_start);
    let taken: BTreeSet<&str> = entries
        .iter()
        .filter(|entry| matches!(entry.act(), Some(Act::Unblocked | Act::Answered | Act::Confirmed)))
        .flat_map(|entry| entry.why["resolved"].as_array().into_iter().flatten())
        .filter_map(|id| id.as_str())
        .collect();
    let same = put.all(|told| {
        objective.blocked_on.iter().any(|blocker| {
            told["blocker_id"] == blocker.blocker_id.as_str()
                && told["kind"] == json!(blocker.kind)
                && told["description"] == blocker.description.as_str()
        })
    });
    faults.unless(same, at, "a blocker is missing or does not match the journal");
    let resolved = objective.blocked_on.iter().all(|b| b.resolved == taken.contains(b.blocker_id.as_str()));
    faults.unless(resolved, at, "the resolved blockers do not match the journal");
}

/// Two orders of what happened: by the chain, and by the clock. The clock may have been set back; the chain follows ids
/// where many entries were sealed at once, and those may come from outside. What neither order leads to did not happen.
fn orders(entries: &[&Entry]) -> [Vec<(Timestamp, usize)>; 2] {
    let by_chain: Vec<_> = entries.iter().enumerate().map(|(n, entry)| (entry.created_at, n)).collect();
    let mut by_clock = by_chain.clone();
    by_clock.sort();
    [by_chain, by_clock]
}

/// The last entry of a kind, in each order.
fn last_of<'a>(entries: &[&'a Entry], kind: impl Fn(&Entry) -> bool) -> Vec<&'a Entry> {
    let last = |order: &Vec<(Timestamp, usize)>| {
        order.iter().rev().filter_map(|(_, n)| entries.get(*n)).find(|entry| kind(entry)).copied()
    };
    orders(entries).iter().filter_map(last).collect()
}

/// Whether nobody has looked since the gates last spoke, or since a person took it up again, in each order.
fn is_unconfirmed(entries: &[&Entry]) -> Vec<bool> {
    let taken_up =
        |entry: &Entry| entry.is(Act::Unblocked) && entry.why["status"] == json!(ObjectiveStatus::Done);
    let tells = |entry: &Entry| matches!(entry.act(), Some(Act::Confirmed | Act::Judged)) || taken_up(entry);
    let of_both = last_of(entries, tells);
    // Whoever does it confirms with the same act, so neither chain nor clock has an order of the two.
    let by_doing = |judged: &Entry| {
        let done = |entry: &Entry| entry.is(Act::Confirmed) && entry.why["done"] == true;
        entries.iter().any(|entry| done(entry) && entry.why["run_id"] == judged.why["run_id"])
    };
    of_both.iter().map(|last| taken_up(last) || last.is(Act::Judged) && !by_doing(last)).collect()
}

/// The status is where the last step led, and that step is of the instant at which the objective last changed.
fn status(objective: &Objective, entries: &[&Entry], at: &str, faults: &mut Faults) {
    let (status, changed) = (objective.status, objective.updated_at);
    let led = |entry: &Entry| leads_to(entry).is_some_and(|to| to.contains(&status));
    let here = entries.iter().rposition(|entry| entry.created_at == changed && led(entry));
    let Some(here) = here else {
        return faults.add(at, format!("no journal entry at {changed} leads to {status}"));
    };
    // Later in both orders.
    let later = entries
        .iter()
        .skip(here)
        .find(|entry| entry.created_at > changed.after(AT_ONCE) && leads_to(entry).is_some() && !led(entry));
    if let Some(later) = later {
        faults.add(at, format!("it is {status}, but {} leads elsewhere", of_entry(later)));
    }
}

/// Where a step may lead; `None`: it moves nothing.
fn leads_to(entry: &Entry) -> Option<Vec<ObjectiveStatus>> {
    use ObjectiveStatus::{Blocked, Done, InProgress, New, Todo};
    let said = || serde_json::from_value::<ObjectiveStatus>(entry.why["status"].clone()).ok();
    Some(match entry.act()? {
        Act::Created | Act::ApprovalLapsed => vec![New],
        Act::Edited => vec![New, Todo, Blocked],
        Act::Approved | Act::Reopened => vec![Todo],
        Act::Blocked | Act::Cancelled => vec![Blocked],
        Act::Confirmed => vec![Done],
        Act::EventProcessed => match entry.why["reason"].as_str()? {
            "SCHEDULED" => vec![InProgress],
            "BLOCKED" => vec![Blocked],
            _ => return None,
        },
        Act::Unblocked | Act::Answered | Act::Judged | Act::Imported => vec![said()?],
        Act::Promoted
        | Act::CandidateEdited
        | Act::Discarded
        | Act::Restored
        | Act::Snoozed
        | Act::RecurrenceStopped
        | Act::Merged
        | Act::CapturesReleased
        | Act::Merge
        | Act::Landed
        | Act::NotLanded
        | Act::AfterCancelled
        | Act::Commented
        | Act::CommentEdited
        | Act::CommentDeleted
        | Act::BulkStarted
        | Act::BulkEnded
        | Act::BulkStopped
        | Act::StreamSet
        | Act::BlueprintInForce => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(act: Act, at: i64, why: serde_json::Value) -> Entry {
        Entry {
            entry_id: format!("{act}-{at}"),
            created_at: Timestamp::from_millis(at),
            actor: "a".into(),
            act: act.to_string(),
            subject: "t".into(),
            why,
        }
    }

    fn ticket(status: ObjectiveStatus, updated_at: i64) -> Objective {
        let document = json!({"objective_id": "t", "azolla_id": "mec", "title": "x", "acceptance_criteria": "",
            "objective_type": "TICKET", "status": status, "importance": 2, "urgency": 2, "blocked_on": [],
            "blocked_reason": null, "metadata": {}, "created_at": Timestamp::from_millis(0),
            "updated_at": Timestamp::from_millis(updated_at)});
        serde_json::from_value(document).expect("an objective")
    }

    fn faults(objective: &Objective, entries: &[Entry]) -> Vec<super::super::Fault> {
        let (entries, mut faults): (Vec<&Entry>, _) = (entries.iter().collect(), Faults::default());
        status(objective, &entries, "t", &mut faults);
        faults.0
    }

    #[test]
    fn a_clock_that_was_set_back_refuses_no_history() {
        let hour = 3_600_000;
        let steps = [
            entry(Act::Created, 10 * hour, json!({})),
            entry(Act::Approved, 10 * hour + 5, json!({})),
            // Here somebody set the clock back.
            entry(Act::EventProcessed, 2 * hour, json!({"reason": "SCHEDULED"})),
            entry(Act::Judged, 2 * hour + 5, json!({"status": "DONE"})),
        ];
        assert_eq!(faults(&ticket(ObjectiveStatus::Done, 2 * hour + 5), &steps), []);
        let before = ticket(ObjectiveStatus::InProgress, 2 * hour);
        assert_eq!(faults(&before, &steps), [], "at once");
        let late = [&steps[..], &[entry(Act::Cancelled, 3 * hour, json!({}))]].concat();
        assert_eq!(faults(&ticket(ObjectiveStatus::Done, 2 * hour + 5), &late).len(), 1);
        let looked = [&steps[..], &[entry(Act::Confirmed, hour, json!({}))]].concat();
        let looked: Vec<&Entry> = looked.iter().collect();
        assert!(is_unconfirmed(&looked).contains(&false));
        assert_eq!(is_unconfirmed(&steps.iter().collect::<Vec<_>>()), [true, true]);
        let again = [
            entry(Act::Cancelled, 11 * hour, json!({})),
            entry(Act::Unblocked, 12 * hour, json!({"status": "DONE"})),
        ];
        let again: Vec<&Entry> = looked.iter().copied().chain(&again).collect();
        assert_eq!(is_unconfirmed(&again), [true, true], "what is taken up again is confirmed again");
    }

    #[test]
    fn blueprints_that_decide_the_same_are_one_and_others_have_a_bound() {
        let mut all = Exported {
            digest: Digest::of_bytes(b""),
            with_inbox: true,
            head: None,
            blueprints: BTreeMap::new(),
            objectives: BTreeMap::new(),
            decisions: BTreeMap::new(),
            events: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            workorders: BTreeMap::new(),
            bundles: BTreeMap::new(),
            runs: BTreeMap::new(),
            pauses: BTreeMap::new(),
            captures: BTreeMap::new(),
            candidates: BTreeMap::new(),
            manifests: BTreeMap::new(),
            queries: BTreeMap::new(),
            responses: BTreeMap::new(),
            overdue: BTreeMap::new(),
            attempts: BTreeMap::new(),
            dependencies: BTreeMap::new(),
            recurrences: BTreeMap::new(),
            snoozes: BTreeMap::new(),
            journal: Vec::new(),
        };
        let most = limits::IMPORT_BLUEPRINTS_MAX as u32;
        for n in 0..2 * most {
            let mut same = Blueprint::mec();
            same.limits.concurrency = n;
            all.blueprints.insert(format!("{n}"), same);
        }
        let mut faults = Faults::default();
        let known = Distinct::of(&all, &mut faults);
        assert_eq!((known.0.values().map(VecDeque::len).sum::<usize>(), faults.0.len()), (1, 0));
        for n in 0..most {
            let mut other = Blueprint::mec();
            other.retry.gate_failures = 1_000 + n;
            all.blueprints.insert(format!("other {n}"), other);
        }
        Distinct::of(&all, &mut faults);
        assert_eq!(faults.0.len(), 1);
    }
}

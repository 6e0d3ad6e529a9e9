//! Imports an exported folder into an instance without tickets: all of it or nothing.
//!
//! Reads: whether there are tickets, and whether this very folder came in before. Writes: history as it was, what
//! [`arrival::settle`] made of what was under way, and who brought it in. It writes no job, no claim, no notice, no event that
//! is not processed, no workorder that is not judged, no capture that waits and no line that comes again that is not held, and
//! puts nothing into TODO.

use super::acts::Actor;
use super::inbox::import;
use super::judging::sizes;
use super::{Cell, Sql, after, azollas, journal, snoozes};
use crate::door;
use crate::error::{StoreError, StoreResult};
use fernery_core::Timestamp;
use fernery_core::artifact::{AzollaId, EventType, Objective, ObjectiveId, ObjectiveType, WorkorderId};
use fernery_core::canonical::{self, Digest};
use fernery_core::exported::arrival;
use fernery_core::exported::{BesideObjective, Exported, Fault, Kept};
use fernery_core::journal::Act;
use fernery_core::limits;
use fernery_core::pipeline::membrane::outcome;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Imported {
    /// The digest of the folder.
    pub digest: Digest,
    /// How many artifacts of each kind.
    pub counts: BTreeMap<String, u64>,
    /// Objectives that were TODO or IN_PROGRESS and are NEW here.
    pub as_new: Vec<ObjectiveId>,
    /// Workorders that were under way and have ended here.
    pub ended: Vec<WorkorderId>,
    /// Captures that wait for triage and are held here.
    #[serde(default)]
    pub held: u64,
    /// Lines that come again and are held here.
    #[serde(default)]
    pub held_recurrences: u64,
    /// The head of the journal's chain in the instance that exported it.
    pub journal: Option<journal::Head>,
    /// The first seal of this instance: an imported journal may contain imports into other instances.
    pub into: Option<Digest>,
}

/// What became of an import.
#[derive(Clone, Debug, PartialEq)]
pub enum Importing {
    Done(Imported),
    /// It was imported before; nothing was written.
    Before(Imported),
    /// There is an objective here already.
    NotEmpty(ObjectiveId),
    /// These files name azollas that are not here; those are.
    UnknownAzollas(Vec<Fault>, Vec<AzollaId>),
}

pub fn import(sql: &mut dyn Sql, actor: &Actor, exported: &Exported) -> StoreResult<Importing> {
    let known = azollas::ids(sql)?;
    // If two imports run at once, one waits here and then finds what the other imported.
    for id in &known {
        sql.query(include_str!("sql/azolla_lock.sql"), &[id.as_str().into()])?;
    }
    let into = first_seal(sql)?;
    if let Some(before) = before(sql, &exported.digest)?.filter(|before| before.into == into) {
        return Ok(Importing::Before(before));
    }
    if let Some(row) = sql.one(include_str!("sql/objective_any.sql"), &[])? {
        return Ok(Importing::NotEmpty(row.word(0)?));
    }
    let strange: Vec<Fault> = strangers(exported, &known);
    if !strange.is_empty() {
        return Ok(Importing::UnknownAzollas(strange, known));
    }
    let (mut all, now) = (exported.clone(), sql.now());
    let arrival = arrival::settle(&mut all, now, door::artifact_id);
    write(sql, &all, now)?;
    for note in &arrival.notes {
        journal::note(sql, &actor.0, note.act, &note.subject, &note.why)?;
    }
    let imported = Imported {
        digest: all.digest,
        counts: counts(exported),
        as_new: arrival.as_new,
        ended: arrival.ended,
        held: arrival.held,
        held_recurrences: arrival.held_recurrences,
        journal: all.head,
        into,
    };
    journal::note(sql, &actor.0, Act::Imported, &imported.digest.to_string(), &json!(imported))?;
    Ok(Importing::Done(imported))
}

fn before(sql: &mut dyn Sql, digest: &Digest) -> StoreResult<Option<Imported>> {
    let entries = journal::of_subject(sql, &digest.to_string())?;
    let last = entries.into_iter().rfind(|entry| entry.is(Act::Imported));
    Ok(last.and_then(|entry| serde_json::from_value(entry.why).ok()))
}

/// The seal of the first entry. It belongs to this instance: it is made before any import.
fn first_seal(sql: &mut dyn Sql) -> StoreResult<Option<Digest>> {
    let look = |sql: &mut dyn Sql| {
        sql.one(include_str!("sql/seal_at.sql"), &[1.into()])?.map(|row| row.word(1)).transpose()
    };
    match look(sql)? {
        Some(seal) => Ok(Some(seal)),
        None => {
            journal::seal(sql, SEALED_FIRST)?;
            look(sql)
        }
    }
}

/// An empty instance has an entry for each of its azollas, and few others.
const SEALED_FIRST: i64 = 256;

/// Files that belong to azollas which are not here.
fn strangers(exported: &Exported, known: &[AzollaId]) -> Vec<Fault> {
    let objectives = exported.objectives.iter().map(|(id, o)| ("objectives", id, &o.artifact.azolla_id));
    let others = import::belongings(exported);
    let strange = objectives.chain(others).filter(|(_, _, azolla)| !known.contains(azolla));
    strange
        .take(limits::IMPORT_FAULTS_MAX)
        .map(|(folder, id, azolla)| Fault {
            path: format!("{folder}/{id}.json"),
            why: format!("this server does not host azolla {azolla}"),
        })
        .collect()
}

fn counts(all: &Exported) -> BTreeMap<String, u64> {
    [
        ("objectives", all.objectives.len()),
        ("decisions", all.decisions.len()),
        ("events", all.events.len()),
        ("context_snapshots", all.snapshots.len()),
        ("workorders", all.workorders.len()),
        ("output_bundles", all.bundles.len()),
        ("run_records", all.runs.len()),
        ("pause_states", all.pauses.len()),
        ("capture_buffers", all.captures.len()),
        ("candidates", all.candidates.len()),
        ("session_manifests", all.manifests.len()),
        ("substrate_queries", all.queries.len()),
        ("substrate_query_responses", all.responses.len()),
        ("overdue_pause_states", all.overdue.len()),
        ("attempts", all.attempts.len()),
        ("dependencies", all.dependencies.len()),
        ("recurrences", all.recurrences.len()),
        ("snoozes", all.snoozes.len()),
        ("blueprints", all.blueprints.len()),
        ("journal", all.journal.len()),
    ]
    .into_iter()
    .map(|(name, count)| (name.to_string(), count as u64))
    .collect()
}

/// Writes one row that nobody may have written before.
pub(super) fn put(
    sql: &mut dyn Sql,
    statement: &'static str,
    cells: &[Cell<'_>],
    what: &str,
) -> StoreResult<()> {
    match sql.touched(statement, cells)? {
        1 => Ok(()),
        // An error rolls the whole transaction back.
        _ => {
            Err(StoreError::Refused(format!("{what} already exists in this instance; nothing was imported")))
        }
    }
}

fn write(sql: &mut dyn Sql, all: &Exported, now: Timestamp) -> StoreResult<()> {
    for (digest, blueprint) in &all.blueprints {
        let document = blueprint.to_json();
        let cells = [digest.into(), blueprint.azolla_id.as_str().into(), (&document).into(), now.into()];
        // The same blueprint may be in force here.
        sql.touched(include_str!("sql/blueprint_insert.sql"), &cells)?;
    }
    let mut entries: BTreeMap<(EventType, &str), i64> = BTreeMap::new();
    for event in all.events.values() {
        let last = entries.entry((event.artifact.event_type, &event.artifact.resource_id)).or_default();
        *last = (*last).max(event.beside.entry);
    }
    let last = |of: EventType, id: &str| entries.get(&(of, id)).copied().unwrap_or(0);
    for (id, kept) in &all.objectives {
        match kept.artifact.objective_type {
            ObjectiveType::Ticket => write_objective(sql, kept, last(EventType::TicketReady, id))?,
            ObjectiveType::Standing => import::write_standing(sql, kept)?,
        }
    }
    for (id, decision) in &all.decisions {
        let (digest, shown) = (decision.digest.to_string(), canonical::text_of(&decision.shown));
        let cells: [Cell<'_>; 8] = [
            id.into(),
            decision.objective_id.as_str().into(),
            (&decision.kind).into(),
            (&digest).into(),
            (&shown).into(),
            (&decision.who).into(),
            decision.note.as_deref().into(),
            decision.created_at.into(),
        ];
        put(sql, include_str!("sql/decision_insert.sql"), &cells, id)?;
    }
    for link in all.dependencies.values() {
        after::link(sql, link)?;
    }
    for snooze in all.snoozes.values() {
        snoozes::put(sql, snooze)?;
    }
    write_events(sql, all, now)?;
    write_snapshots(sql, all)?;
    write_workorders(sql, all)?;
    write_runs(sql, all)?;
    write_pauses(sql, all)?;
    import::write(sql, all, |capture| last(EventType::CaptureReady, capture))?;
    journal::seal_all(sql)?;
    for entry in &all.journal {
        let (id, why) = (&entry.entry_id, canonical::text_of(&entry.why));
        let cells: [Cell<'_>; 6] = [
            id.into(),
            entry.created_at.into(),
            (&entry.actor).into(),
            (&entry.act).into(),
            (&entry.subject).into(),
            (&why).into(),
        ];
        put(sql, include_str!("sql/journal_arrives.sql"), &cells, &format!("entry {id} of the journal"))?;
        sql.touched(include_str!("sql/unsealed_insert.sql"), &[id.into()])?;
    }
    journal::seal_in_order(sql, &all.journal)
}

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(super) fn write_objective(
    sql: &mut dyn Sql,
    kept: &Kept<Objective, BesideObjective>,
    entry: i64,
) -> StoreResult<()> {
    let Kept { artifact: o, beside } = kept;
    let metadata = canonical::text_of(&o.metadata);
    let cells: [Cell<'_>; 19] = [
        o.objective_id.as_str().into(),
        o.azolla_id.as_str().into(),
        (&o.title).into(),
        (&o.acceptance_criteria).into(),
        o.objective_type.as_str().into(),
        o.status.as_str().into(),
        i64::from(o.importance).into(),
        i64::from(o.urgency).into(),
        o.blocked_reason.as_deref().into(),
        (&metadata).into(),
        o.created_at.into(),
        o.updated_at.into(),
        entry.into(),
        beside.unconfirmed.into(),
        i64::from(beside.failures).into(),
        i64::from(beside.spent.attempts).into(),
        number(beside.spent.wall_ms).into(),
        number(beside.spent.tokens).into(),
        number(beside.spent.cost_usd_micros).into(),
    ];
    put(sql, include_str!("sql/objective_arrives.sql"), &cells, o.objective_id.as_str())?;
    for (place, blocker) in (1_i64..).zip(&o.blocked_on) {
        let cells: [Cell<'_>; 6] = [
            o.objective_id.as_str().into(),
            place.into(),
            blocker.blocker_id.as_str().into(),
            blocker.kind.as_str().into(),
            (&blocker.description).into(),
            blocker.resolved.into(),
        ];
        sql.touched(include_str!("sql/blocker_arrives.sql"), &cells)?;
    }
    Ok(())
}

/// Whether an event here has this request.
fn is_taken(sql: &mut dyn Sql, request_id: &str) -> StoreResult<bool> {
    Ok(sql.one(include_str!("sql/request_taken.sql"), &[request_id.into()])?.is_some())
}

fn write_events(sql: &mut dyn Sql, all: &Exported, now: Timestamp) -> StoreResult<()> {
    let processed: BTreeMap<&str, Timestamp> = all
        .journal
        .iter()
        .filter(|entry| entry.is(Act::EventProcessed))
        .filter_map(|entry| Some((entry.why["event_id"].as_str()?, entry.created_at)))
        .collect();
    let mut counted: BTreeMap<&str, i64> = BTreeMap::new();
    for (id, Kept { artifact: event, beside }) in &all.events {
        // Requests for a manifest are counted by azolla, and this instance may have had some of its own.
        let before = match event.event_type {
            EventType::ManifestRequested => match counted.get(event.resource_id.as_str()) {
                Some(before) => *before,
                None => {
                    let key = [event.event_type.as_str().into(), (&event.resource_id).into()];
                    let row = sql.one(include_str!("sql/event_last_entry.sql"), &key)?;
                    let before = row.map_or(Ok(0), |row| row.int(0))?;
                    counted.insert(&event.resource_id, before);
                    before
                }
            },
            _ => 0,
        };
        // Requests of a schedule have the same ids on every instance: the request that was here before keeps its id.
        let request_id = match beside.request_id.as_deref() {
            Some(request) if is_taken(sql, request)? => None,
            request => request,
        };
        let cells: [Cell<'_>; 11] = [
            id.into(),
            event.azolla_id.as_str().into(),
            event.event_type.as_str().into(),
            (&event.resource_id).into(),
            (before + beside.entry).into(),
            event.created_at.into(),
            processed.get(id.as_str()).copied().unwrap_or(now).into(),
            beside.reason.map(|reason| reason.as_str()).into(),
            beside.work_order_id.as_ref().map(WorkorderId::as_str).into(),
            request_id.into(),
            beside.stands_in_for.as_ref().map(WorkorderId::as_str).into(),
        ];
        put(sql, include_str!("sql/event_arrives.sql"), &cells, id)?;
    }
    Ok(())
}

fn write_snapshots(sql: &mut dyn Sql, all: &Exported) -> StoreResult<()> {
    for (id, snapshot) in &all.snapshots {
        let document = canonical::text_of(snapshot);
        let cells = [
            id.into(),
            snapshot.objective_id.as_str().into(),
            snapshot.created_at.into(),
            (&document).into(),
        ];
        put(sql, include_str!("sql/snapshot_insert.sql"), &cells, id)?;
    }
    Ok(())
}

/// Workorders, each with the bundle that counts.
fn write_workorders(sql: &mut dyn Sql, all: &Exported) -> StoreResult<()> {
    for (id, Kept { artifact: work, beside }) in &all.workorders {
        let blueprint = beside.blueprint.to_string();
        let cells: [Cell<'_>; 16] = [
            id.into(),
            work.objective_id.as_str().into(),
            beside.azolla_id.as_str().into(),
            beside.event_id.as_str().into(),
            work.diazotroph_type.as_str().into(),
            work.context_snapshot_id.as_str().into(),
            work.branch_name.as_deref().into(),
            number(work.budget_ms).into(),
            work.created_at.into(),
            (&blueprint).into(),
            number(beside.spent_ms).into(),
            beside.executed_at.into(),
            beside.output_id.as_ref().map(|id| id.as_str()).into(),
            i64::from(beside.gate_tries).into(),
            beside.cancelled.into(),
            beside.claim_version.into(),
        ];
        put(sql, include_str!("sql/workorder_arrives.sql"), &cells, id)?;
        let output = beside.output_id.as_ref().and_then(|id| all.bundles.get(id.as_str()));
        let Some(bundle) = output else { continue };
        let document = canonical::text_of(bundle);
        let cells: [Cell<'_>; 5] = [
            bundle.output_id.as_str().into(),
            id.into(),
            bundle.objective_id.as_str().into(),
            bundle.created_at.into(),
            (&document).into(),
        ];
        put(sql, include_str!("sql/bundle_insert.sql"), &cells, bundle.output_id.as_str())?;
    }
    Ok(())
}

fn write_runs(sql: &mut dyn Sql, all: &Exported) -> StoreResult<()> {
    for (id, Kept { artifact: run, beside }) in &all.runs {
        let (document, evidence) = (canonical::text_of(run), canonical::text_of(&beside.evidence));
        let azolla =
            all.workorders.get(run.work_order_id.as_str()).map(|work| work.beside.azolla_id.as_str());
        let bundle = all.bundles.get(run.output_id.as_str());
        let sizes = bundle.map(|bundle| sizes(&bundle.content));
        let size = |nth: usize| sizes.map_or(Cell::Null, |sizes| Cell::Int(sizes[nth]));
        let cells: [Cell<'_>; 11] = [
            id.into(),
            run.work_order_id.as_str().into(),
            run.objective_id.as_str().into(),
            azolla.into(),
            run.created_at.into(),
            (&document).into(),
            (&evidence).into(),
            bundle.map(|bundle| outcome(&bundle.metadata).as_str()).into(),
            size(0),
            size(1),
            size(2),
        ];
        put(sql, include_str!("sql/run_insert.sql"), &cells, id)?;
    }
    Ok(())
}

fn write_pauses(sql: &mut dyn Sql, all: &Exported) -> StoreResult<()> {
    for ((of, number), pause) in &all.pauses {
        // What it was about has its pause; under this name it keeps its place among those of its objective.
        let (key, document) = (format!("imported:{of}:{number:06}"), canonical::text_of(pause));
        let cells: [Cell<'_>; 5] = [
            (&key).into(),
            of.into(),
            pause.azolla_id.as_str().into(),
            pause.created_at.into(),
            (&document).into(),
        ];
        put(sql, include_str!("sql/pause_insert.sql"), &cells, &key)?;
    }
    Ok(())
}

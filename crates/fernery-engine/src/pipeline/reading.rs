//! Artifacts as they are read back.

use super::objectives::{self, ObjectiveRow};
use super::{Cell, Row, Sql, Statement, azollas};
use crate::error::StoreResult;
use fernery_core::Timestamp;
use fernery_core::artifact::{
    AzollaId, BlockerRef, ContextSnapshot, Event, EventId, EventType, ObjectiveId, ObjectiveStatus,
    OutputBundle, OutputId, PauseState, RecordId, RunId, RunRecord, SnapshotId, TerminalReason, Workorder,
    WorkorderId,
};
use fernery_core::canonical::Digest;
use fernery_core::exported::AttemptRecord;
pub use fernery_core::pipeline::approval::Decision;
use fernery_core::pipeline::evidence::Evidence;
use fernery_core::pipeline::happened::{PauseKind, Ran, happened};
use fernery_core::pipeline::membrane::Outcome;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

pub(super) fn decision(row: &Row) -> StoreResult<Decision> {
    Ok(Decision {
        record_id: row.word("record_id")?,
        objective_id: row.word("objective_id")?,
        kind: row.text("kind")?.to_string(),
        digest: row.word("digest")?,
        shown: row.json("shown")?,
        who: row.text("who")?.to_string(),
        note: row.maybe_text("note")?.map(str::to_string),
        created_at: row.at("created_at")?,
    })
}

pub fn decision_by_id(sql: &mut dyn Sql, id: &RecordId) -> StoreResult<Option<Decision>> {
    let row = sql.one(include_str!("sql/decision_by_id.sql"), &[id.as_str().into()])?;
    row.map(|row| decision(&row)).transpose()
}

pub(super) fn event(row: &Row) -> StoreResult<Event> {
    Ok(Event {
        event_id: row.word("event_id")?,
        event_type: row.word("type")?,
        resource_id: row.text("resource_id")?.to_string(),
        azolla_id: row.word("azolla_id")?,
        created_at: row.at("created_at")?,
        processed: row.flag("processed")?,
    })
}

/// An event with what became of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EventView {
    #[serde(flatten)]
    pub event: Event,
    /// Why it needs no more looking at.
    pub reason: Option<TerminalReason>,
    /// The workorder that was made of it.
    pub work_order_id: Option<WorkorderId>,
    /// Which entry of its objective into TODO it tells of.
    pub entry: i64,
    /// The request that a MANIFEST_REQUESTED tells of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The workorder whose run failed, if a MANIFEST_REQUESTED asks the built-in rules in its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stands_in_for: Option<WorkorderId>,
}

fn event_view(row: &Row) -> StoreResult<EventView> {
    Ok(EventView {
        event: event(row)?,
        reason: row.maybe_word("reason")?,
        work_order_id: row.maybe_word("work_order_id")?,
        entry: row.int("entry")?,
        request_id: row.maybe_word("request_id")?,
        stands_in_for: row.maybe_word("stands_in_for")?,
    })
}

/// A workorder with what the control plane keeps beside it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkorderView {
    #[serde(flatten)]
    pub workorder: Workorder,
    pub azolla_id: AzollaId,
    /// What it was made of.
    pub event_id: EventId,
    /// The blueprint that it was made under, and is judged by.
    pub blueprint: Digest,
    /// Wall time of its attempts so far.
    pub spent_ms: u64,
    /// When it was executed.
    pub executed_at: Option<Timestamp>,
    pub output_id: Option<OutputId>,
    /// Whether the gates have spoken.
    pub judged: bool,
    /// How often a gate could not run.
    pub gate_tries: u32,
    /// Whether an operator wants it ended.
    pub cancelled: bool,
    /// Orders all writes to it.
    pub claim_version: i64,
}

pub(super) fn workorder(row: &Row) -> StoreResult<WorkorderView> {
    Ok(WorkorderView {
        workorder: Workorder {
            work_order_id: row.word("work_order_id")?,
            objective_id: row.word("objective_id")?,
            diazotroph_type: row.word("diazotroph_type")?,
            context_snapshot_id: row.word("snapshot_id")?,
            branch_name: row.maybe_text("branch_name")?.map(str::to_string),
            budget_ms: row.count("budget_ms")?,
            created_at: row.at("created_at")?,
            status: row.word("status")?,
        },
        azolla_id: row.word("azolla_id")?,
        event_id: row.word("event_id")?,
        blueprint: row.word("blueprint")?,
        spent_ms: row.count("spent_ms")?,
        executed_at: row.maybe_at("executed_at")?,
        output_id: row.maybe_word("output_id")?,
        judged: row.flag("judged")?,
        gate_tries: row.count("gate_tries")?,
        cancelled: row.flag("cancelled")?,
        claim_version: row.int("claim_version")?,
    })
}

/// A run record with its evidence.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Run {
    #[serde(flatten)]
    pub record: RunRecord,
    /// What each gate found.
    pub evidence: Vec<Evidence>,
}

pub(super) fn run(row: &Row) -> StoreResult<Run> {
    Ok(Run { record: row.json(0)?, evidence: row.json(1)? })
}

/// A place in a list that goes from the newest down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Below {
    /// The instant of the last row that was seen.
    pub at: Timestamp,
    pub id: String,
}

impl Below {
    /// From the newest on.
    pub fn newest() -> Self {
        // The last instant that a timestamp can have, and a text above every id.
        Self { at: Timestamp::from_millis(253_370_764_800_000), id: "~".to_string() }
    }
}

/// Which objectives are meant; all that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectiveFilter {
    pub azolla_id: Option<AzollaId>,
    pub status: Option<ObjectiveStatus>,
}

/// Objectives, newest first.
pub fn objectives(
    sql: &mut dyn Sql,
    filter: &ObjectiveFilter,
    below: &Below,
    limit: i64,
) -> StoreResult<Vec<ObjectiveRow>> {
    let (rows, mut blockers) = objective_rows(sql, filter, below, limit)?;
    rows.iter()
        .map(|row| objectives::objective_row(row, blockers.remove(row.text(0)?).unwrap_or_default()))
        .collect()
}

/// The blockers of the objectives of a page, by objective.
type Blockers = HashMap<String, Vec<BlockerRef>>;

fn gather(into: &mut Blockers, rows: &[Row]) -> StoreResult<()> {
    for row in rows {
        into.entry(row.text(4)?.to_string()).or_default().push(objectives::blocker(row)?);
    }
    Ok(())
}

/// The index leads with azolla and status. Where only one is given, the page is merged from the pages of all the other can
/// be: each is read off the index, however many objectives there are.
fn objective_rows(
    sql: &mut dyn Sql,
    filter: &ObjectiveFilter,
    below: &Below,
    limit: i64,
) -> StoreResult<(Vec<Row>, Blockers)> {
    let mut blockers = Blockers::new();
    let place: [Cell<'_>; 3] = [below.at.into(), (&below.id).into(), limit.into()];
    if *filter == ObjectiveFilter::default() {
        gather(&mut blockers, &sql.query(include_str!("sql/objectives_page_blockers.sql"), &place)?)?;
        return Ok((sql.query(include_str!("sql/objectives_page.sql"), &place)?, blockers));
    }
    let azollas = match &filter.azolla_id {
        Some(azolla_id) => vec![azolla_id.clone()],
        None => azollas::ids(sql)?,
    };
    let statuses = filter.status.as_ref().map_or(ObjectiveStatus::ALL, std::slice::from_ref);
    let mut rows = Vec::new();
    for azolla_id in &azollas {
        for status in statuses {
            let [at, id, limit] = place;
            let cells = [at, id, limit, azolla_id.as_str().into(), status.as_str().into()];
            let found = sql.query(include_str!("sql/objectives_page_by_status.sql"), &cells)?;
            if !found.is_empty() {
                let of = sql.query(include_str!("sql/objectives_page_by_status_blockers.sql"), &cells)?;
                gather(&mut blockers, &of)?;
            }
            for row in found {
                rows.push((row.at(10)?, row.text(0)?.to_string(), row));
            }
        }
    }
    rows.sort_by(|(at, id, _), (other_at, other_id, _)| (other_at, other_id).cmp(&(at, id)));
    rows.truncate(usize::try_from(limit).unwrap_or(0));
    Ok((rows.into_iter().map(|(_, _, row)| row).collect(), blockers))
}

/// Events, newest first.
pub fn events(sql: &mut dyn Sql, below: &Below, limit: i64) -> StoreResult<Vec<EventView>> {
    let cells = [below.at.into(), (&below.id).into(), limit.into()];
    sql.query(include_str!("sql/events_page.sql"), &cells)?.iter().map(event_view).collect()
}

/// Workorders, newest first.
pub fn workorders(sql: &mut dyn Sql, below: &Below, limit: i64) -> StoreResult<Vec<WorkorderView>> {
    let cells = [below.at.into(), (&below.id).into(), limit.into()];
    sql.query(include_str!("sql/workorders_page.sql"), &cells)?.iter().map(workorder).collect()
}

/// Run records, newest first.
pub fn runs(sql: &mut dyn Sql, below: &Below, limit: i64) -> StoreResult<Vec<Run>> {
    let cells = [below.at.into(), (&below.id).into(), limit.into()];
    sql.query(include_str!("sql/runs_page.sql"), &cells)?.iter().map(run).collect()
}

/// Pauses, newest first.
pub fn pauses(sql: &mut dyn Sql, below: &Below, limit: i64) -> StoreResult<Vec<Paused>> {
    let cells = [below.at.into(), (&below.id).into(), limit.into()];
    sql.query(include_str!("sql/pauses_page.sql"), &cells)?.iter().map(paused).collect()
}

/// Workorders above `after` whose cancel has not reached their job for certain.
pub fn to_cancel(sql: &mut dyn Sql, after: &str, limit: i64) -> StoreResult<Vec<WorkorderId>> {
    let rows = sql.query(include_str!("sql/workorders_to_cancel.sql"), &[after.into(), limit.into()])?;
    rows.iter().map(|row| row.word(0)).collect()
}

pub fn workorder_by_id(sql: &mut dyn Sql, id: &WorkorderId) -> StoreResult<Option<WorkorderView>> {
    let row = sql.one(include_str!("sql/workorder_by_id.sql"), &[id.as_str().into()])?;
    row.map(|row| workorder(&row)).transpose()
}

/// The workorder of an objective that has no verdict yet.
pub fn active_workorder(sql: &mut dyn Sql, id: &ObjectiveId) -> StoreResult<Option<WorkorderView>> {
    let row = sql.one(include_str!("sql/workorder_active_of_objective.sql"), &[id.as_str().into()])?;
    row.map(|row| workorder(&row)).transpose()
}

/// The workorders of these objectives that have no verdict yet, in one snapshot.
pub fn active_workorders(sql: &mut dyn Sql, ids: &[ObjectiveId]) -> StoreResult<Vec<WorkorderView>> {
    let active = include_str!("sql/workorder_active_of_objective.sql");
    let asked: Vec<Statement<'_>> = ids.iter().map(|id| (active, vec![id.as_str().into()])).collect();
    let found = sql.query_all(&asked)?;
    found.iter().flatten().map(workorder).collect()
}

/// The last run of an objective.
pub fn last_run(sql: &mut dyn Sql, id: &ObjectiveId) -> StoreResult<Option<Run>> {
    let row = sql.one(include_str!("sql/run_last_of_objective.sql"), &[id.as_str().into()])?;
    row.map(|row| run(&row)).transpose()
}

/// The last run of an objective that passed: the one that counts, unless an operator wanted it done again.
pub fn passed_run(sql: &mut dyn Sql, id: &ObjectiveId) -> StoreResult<Option<Run>> {
    let row = sql.one(include_str!("sql/run_passed_of_objective.sql"), &[id.as_str().into()])?;
    row.map(|row| run(&row)).transpose()
}

pub fn snapshot(sql: &mut dyn Sql, id: &SnapshotId) -> StoreResult<Option<ContextSnapshot>> {
    let row = sql.one(include_str!("sql/snapshot_by_id.sql"), &[id.as_str().into()])?;
    row.map(|row| row.json(0)).transpose()
}

/// The bundle of a workorder.
pub fn bundle(sql: &mut dyn Sql, id: &WorkorderId) -> StoreResult<Option<OutputBundle>> {
    let row = sql.one(include_str!("sql/bundle_of_workorder.sql"), &[id.as_str().into()])?;
    row.map(|row| row.json(0)).transpose()
}

/// The run record of a workorder.
pub fn run_of(sql: &mut dyn Sql, id: &WorkorderId) -> StoreResult<Option<Run>> {
    let row = sql.one(include_str!("sql/run_of_workorder.sql"), &[id.as_str().into()])?;
    row.map(|row| run(&row)).transpose()
}

pub fn run_by_id(sql: &mut dyn Sql, id: &RunId) -> StoreResult<Option<Run>> {
    let row = sql.one(include_str!("sql/run_by_id.sql"), &[id.as_str().into()])?;
    row.map(|row| run(&row)).transpose()
}

/// The runs of an objective, in the order of its attempts.
pub fn runs_of(sql: &mut dyn Sql, id: &ObjectiveId) -> StoreResult<Vec<Run>> {
    sql.query(include_str!("sql/runs_of_objective.sql"), &[id.as_str().into()])?.iter().map(run).collect()
}

/// Attempts of a workorder that came with an import: their job was in another instance.
pub fn past_attempts(sql: &mut dyn Sql, id: &WorkorderId) -> StoreResult<Vec<AttemptRecord>> {
    let rows = sql.query(include_str!("sql/past_attempts_of_workorder.sql"), &[id.as_str().into()])?;
    rows.iter().map(|row| row.json(0)).collect()
}

/// A pause, with what the control plane keeps beside it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Paused {
    #[serde(flatten)]
    pub pause: PauseState,
    /// There is one pause for each key.
    #[serde(skip)]
    pub key: String,
    /// What really happened, in words.
    pub happened: String,
}

/// A pause from a row with its run, if it is of one.
pub(super) fn paused(row: &Row) -> StoreResult<Paused> {
    let (pause, key): (PauseState, String) = (row.json("document")?, row.text("pause_key")?.to_string());
    let ran = match row.maybe_text("run")? {
        None => None,
        Some(_) => {
            let record: RunRecord = row.json("run")?;
            let outcome = match row.maybe_text("outcome")? {
                None => Outcome::Output,
                Some(word) => word.parse().unwrap_or(Outcome::Protocol),
            };
            Some(Ran { result: record.gate_result, reason: record.gate_reason, outcome })
        }
    };
    let happened = happened(pause.reason, PauseKind::of(&key), ran.as_ref());
    Ok(Paused { pause, key, happened })
}

/// Everything that led to an objective's state, and came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chain {
    pub decisions: Vec<Decision>,
    /// Its entries into TODO.
    pub events: Vec<EventView>,
    /// What was made of them.
    pub workorders: Vec<WorkorderView>,
    /// What executors were told.
    pub context_snapshots: Vec<ContextSnapshot>,
    pub output_bundles: Vec<OutputBundle>,
    /// What the gates said.
    pub runs: Vec<Run>,
    pub pauses: Vec<Paused>,
}

/// Reads the chain of an objective.
pub fn chain(sql: &mut dyn Sql, id: &ObjectiveId) -> StoreResult<Chain> {
    let key = [id.as_str().into()];
    let mut documents = |statement| sql.query(statement, &key);
    let snapshots = documents(include_str!("sql/snapshots_of_objective.sql"))?;
    let bundles = documents(include_str!("sql/bundles_of_objective.sql"))?;
    Ok(Chain {
        context_snapshots: snapshots.iter().map(|row| row.json(0)).collect::<StoreResult<_>>()?,
        output_bundles: bundles.iter().map(|row| row.json(0)).collect::<StoreResult<_>>()?,
        ..brief_chain(sql, id)?
    })
}

/// As [`chain`], without what executors were told and what came out: that is most of the bytes.
pub fn brief_chain(sql: &mut dyn Sql, id: &ObjectiveId) -> StoreResult<Chain> {
    let key = [id.as_str().into()];
    let decisions = sql
        .query(include_str!("sql/decisions_of_objective.sql"), &key)?
        .iter()
        .map(decision)
        .collect::<StoreResult<_>>()?;
    let of = [EventType::TicketReady.as_str().into(), id.as_str().into()];
    let events = sql
        .query(include_str!("sql/events_of_resource.sql"), &of)?
        .iter()
        .map(event_view)
        .collect::<StoreResult<_>>()?;
    let workorders: Vec<WorkorderView> = sql
        .query(include_str!("sql/workorders_of_objective.sql"), &key)?
        .iter()
        .map(workorder)
        .collect::<StoreResult<_>>()?;
    let runs = runs_of(sql, id)?;
    let pauses = sql
        .query(include_str!("sql/pauses_of_objective.sql"), &key)?
        .iter()
        .map(paused)
        .collect::<StoreResult<_>>()?;
    Ok(Chain {
        decisions,
        events,
        workorders,
        context_snapshots: Vec::new(),
        output_bundles: Vec::new(),
        runs,
        pauses,
    })
}

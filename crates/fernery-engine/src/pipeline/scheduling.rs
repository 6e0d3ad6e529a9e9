//! Makes a workorder from an event, or says why not.
//!
//! Reads: the event, its objective, the blueprint in force, room in the azolla. Claims: the event (before, by itself).
//! Writes, all or nothing: snapshot, workorder and its job, the objective, a pause, the event; and gives the claim back.
//! Does nothing where the claim was taken over or there is no room.

use super::azollas::{self, Registered};
use super::claims::{self, HeldClaim};
use super::issuing::{Issue, issue};
use super::objectives::{self, ObjectiveRow, shown};
use super::pauses::pause;
use super::rework::Earlier;
use super::room::{Room, room};
use super::{Cell, Row, Sql, Stage, Statement, after, journal, reading};
use crate::error::{StoreError, StoreResult};
use fernery_core::JobId;
use fernery_core::artifact::{
    AzollaId, ContextSnapshot, Event, EventType, ObjectiveStatus, SnapshotId, TerminalReason, WorkorderId,
};
use fernery_core::blueprint::Limits;
use fernery_core::journal::Act;
use fernery_core::pipeline::envelope;
use fernery_core::pipeline::ground::{Ground, groundless, repo_ref};
use fernery_core::pipeline::prompt::{self, PromptParts, TITLE};
use fernery_core::pipeline::rework::EarlierPatch;
use fernery_core::pipeline::scheduling::{self, Scheduling, Stop, decide};
use serde_json::json;
use std::collections::{BTreeMap, HashMap, HashSet};

/// What became of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scheduled {
    /// A workorder was made.
    Workorder(WorkorderId),
    /// It is processed, for this reason.
    Closed(TerminalReason),
    /// It was processed before.
    Before(TerminalReason),
    /// There is no room in the azolla: it waits.
    NoRoom(Room),
    /// The objective now names another repository than the scheduler looked at: the event waits for the next pass.
    Changed,
    /// Somebody has taken over.
    ClaimLost,
}

impl Scheduled {
    /// The name under which a worker's pass counts it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Workorder(_) => "SCHEDULED",
            Self::Closed(reason) | Self::Before(reason) => reason.as_str(),
            Self::NoRoom(room) => room.name(),
            Self::Changed => "repository_changed",
            Self::ClaimLost => "claim_lost",
        }
    }
}

/// Ids for what may be made. They come from outside, so that a repeated transaction makes the same rows.
#[derive(Clone, Debug)]
pub struct Ids {
    /// The id of the workorder and of its job.
    pub job_id: JobId,
    /// The id of the snapshot.
    pub snapshot_id: SnapshotId,
}

/// An event that a scheduler has claimed.
#[derive(Clone, Debug)]
pub struct ClaimedEvent {
    pub event: Event,
    pub held: HeldClaim,
    /// The ids for its workorder.
    pub ids: Ids,
    /// Where its work starts, if its azolla works on repositories.
    pub ground: Option<Ground>,
}

/// Deals with one claimed event of an azolla that works on no repository.
pub fn schedule(sql: &mut dyn Sql, event: &Event, held: &HeldClaim, ids: &Ids) -> StoreResult<Scheduled> {
    let claimed = [ClaimedEvent { event: event.clone(), held: held.clone(), ids: ids.clone(), ground: None }];
    let done = schedule_all(sql, &event.azolla_id, &claimed)?.pop();
    done.ok_or_else(|| StoreError::Corrupt("an event got no answer".into()))
}

/// Deals with claimed events of one azolla, in this order; answers for each.
pub fn schedule_all(
    sql: &mut dyn Sql,
    azolla_id: &AzollaId,
    claimed: &[ClaimedEvent],
) -> StoreResult<Vec<Scheduled>> {
    let gone = || StoreError::Corrupt(format!("azolla {azolla_id} has no blueprint"));
    let mut registered = azollas::in_force(sql, azolla_id)?.ok_or_else(gone)?;
    // Lock order everywhere: azolla, event, objective. Without limits there is no need for the lock of the azolla.
    if registered.blueprint.limits != (Limits { concurrency: 0, review_limit: 0 }) {
        sql.query(include_str!("sql/azolla_lock.sql"), &[azolla_id.as_str().into()])?;
        registered = azollas::in_force(sql, azolla_id)?.ok_or_else(gone)?;
    }
    let mut room = room(sql, &registered)?;
    let mut done: BTreeMap<usize, Scheduled> = BTreeMap::new();
    while done.len() < claimed.len() {
        // Two events of one objective go one after the other: the second must see the result of the first.
        let mut objectives = HashSet::new();
        let next: Vec<usize> = (0..claimed.len())
            .filter(|n| !done.contains_key(n) && objectives.insert(claimed[*n].event.resource_id.as_str()))
            .collect();
        let cases = load_all(sql, claimed, &next)?;
        for (n, case) in next.into_iter().zip(cases) {
            let scheduled = schedule_one(sql, &claimed[n], case, &registered, room)?;
            if let (Scheduled::Workorder(_), Room::Left(left)) = (&scheduled, room) {
                room = if left > 1 { Room::Left(left - 1) } else { Room::Concurrency };
            }
            done.insert(n, scheduled);
        }
    }
    Ok(done.into_values().collect())
}

/// The rows of a claimed event, under lock.
struct Seen {
    stored: Option<Row>,
    /// Whether the claim was still held; it is given back.
    released: bool,
    row: Option<ObjectiveRow>,
    approval: Option<reading::Decision>,
    last_run: Option<reading::Run>,
}

/// Reads and locks the rows of these claimed events, each of another objective.
fn load_all(sql: &mut dyn Sql, claimed: &[ClaimedEvent], of: &[usize]) -> StoreResult<Vec<Seen>> {
    // Batches lock in the order of ids.
    let mut by_event = of.to_vec();
    by_event.sort_by_key(|n| &claimed[*n].event.event_id);
    let mut by_objective = of.to_vec();
    by_objective.sort_by_key(|n| &claimed[*n].event.resource_id);
    let mut asked: Vec<Statement<'_>> = Vec::with_capacity(of.len() * 6);
    for n in &by_event {
        let event_id = claimed[*n].event.event_id.as_str();
        asked.push((include_str!("sql/event_lock.sql"), vec![event_id.into()]));
        asked.push(claims::releasing(&claimed[*n].held));
    }
    for n in &by_objective {
        let id = claimed[*n].event.resource_id.as_str();
        asked.extend(objectives::locking(id));
        asked.push((include_str!("sql/decision_in_force.sql"), vec![id.into()]));
        asked.push((include_str!("sql/run_last_of_objective.sql"), vec![id.into()]));
    }
    let mut answers = sql.query_all(&asked)?.into_iter();
    let mut events = HashMap::new();
    for n in by_event {
        let stored = answers.next().unwrap_or_default().into_iter().next();
        events.insert(n, (stored, answers.next().unwrap_or_default().len() == 1));
    }
    let mut seen = HashMap::new();
    for n in by_objective {
        let (stored, released) = events.remove(&n).unwrap_or_default();
        let row = objectives::loaded(&mut answers)?;
        let approval = answers.next().unwrap_or_default().first().map(reading::decision).transpose()?;
        let last_run = answers.next().unwrap_or_default().first().map(reading::run).transpose()?;
        seen.insert(n, Seen { stored, released, row, approval, last_run });
    }
    Ok(of.iter().filter_map(|n| seen.remove(n)).collect())
}

/// Why the event of this row of `event_lock.sql` was processed; `None`: it was not.
pub(super) fn processed(stored: &Row) -> StoreResult<Option<TerminalReason>> {
    if stored.flag("processed")? { stored.word("reason").map(Some) } else { Ok(None) }
}

fn schedule_one(
    sql: &mut dyn Sql,
    claimed: &ClaimedEvent,
    seen: Seen,
    registered: &Registered,
    room: Room,
) -> StoreResult<Scheduled> {
    let (event, ids) = (&claimed.event, &claimed.ids);
    let Some(stored) = seen.stored else { return Ok(Scheduled::ClaimLost) };
    if let Some(reason) = processed(&stored)? {
        return Ok(Scheduled::Before(reason));
    }
    if !matches!(room, Room::Left(_)) {
        return Ok(Scheduled::NoRoom(room));
    }
    if !seen.released {
        return Ok(Scheduled::ClaimLost);
    }
    let mut row = seen.row.filter(|s| s.objective.azolla_id == event.azolla_id);
    let approval = match &row {
        Some(row) => seen.approval.filter(|decision| covers(decision, row, registered)),
        None => None,
    };
    let waits_for = match &row {
        Some(row) => after::waits_of(sql, &row.objective)?,
        None => Vec::new(),
    };
    let looked_at = scheduling::Seen {
        objective: row.as_ref().map(|row| &row.objective),
        waits_for: &waits_for,
        approved: approval.is_some(),
        envelope: &registered.blueprint.envelope,
        spent: row.as_ref().map(|row| row.spent).unwrap_or_default(),
    };
    match (decide(&looked_at), &mut row) {
        (Scheduling::Schedule, Some(row)) => {
            let base = match grounded(row, registered, claimed.ground.as_ref()) {
                Grounded::On(base) => base,
                Grounded::Elsewhere => return Ok(Scheduled::Changed),
                Grounded::Nowhere(why) => {
                    let stop = groundless(&row.objective, &why);
                    block(sql, row, &stop, event.event_id.as_str())?;
                    close(sql, event, TerminalReason::Blocked, None)?;
                    return Ok(Scheduled::Closed(TerminalReason::Blocked));
                }
            };
            let mut earlier = Earlier::read(sql, seen.last_run)?;
            // A start from scratch is for the first attempt of its approval; those after it build on that one.
            let from_scratch = approval.as_ref().is_some_and(|decision| decision.terms().from_scratch);
            if base.is_none() || from_scratch && row.spent.attempts == 0 {
                earlier.candidate = None;
            }
            let workorder = make(sql, event, row, registered, (approval.as_ref(), earlier, base), ids)?;
            close(sql, event, TerminalReason::Scheduled, Some(&workorder))?;
            Ok(Scheduled::Workorder(workorder))
        }
        (Scheduling::Lapse, Some(row)) => {
            row.objective.status = ObjectiveStatus::New;
            row.objective.updated_at = sql.now();
            row.approval = None;
            objectives::update(sql, row)?;
            let why = json!({"reason": "the approval does not cover the current content"});
            journal::note(sql, "scheduler", Act::ApprovalLapsed, event.resource_id.as_str(), &why)?;
            close(sql, event, TerminalReason::NonExecutableStatus, None)?;
            Ok(Scheduled::Closed(TerminalReason::NonExecutableStatus))
        }
        (Scheduling::Block(stop), Some(row)) => {
            block(sql, row, &stop, event.event_id.as_str())?;
            close(sql, event, TerminalReason::Blocked, None)?;
            Ok(Scheduled::Closed(TerminalReason::Blocked))
        }
        (Scheduling::Close(reason), _) => {
            close(sql, event, reason, None)?;
            Ok(Scheduled::Closed(reason))
        }
        _ => {
            close(sql, event, TerminalReason::MissingTicket, None)?;
            Ok(Scheduled::Closed(TerminalReason::MissingTicket))
        }
    }
}

/// Where the work on an objective starts.
enum Grounded<'a> {
    /// On this branch and commit; `None`: it needs no repository.
    On(Option<(&'a str, &'a str)>),
    /// The objective names another repository now than the one that was looked at.
    Elsewhere,
    /// There is no commit to start from, for this reason.
    Nowhere(String),
}

fn grounded<'a>(row: &ObjectiveRow, registered: &Registered, ground: Option<&'a Ground>) -> Grounded<'a> {
    if !registered.blueprint.needs_repository() {
        return Grounded::On(None);
    }
    match ground {
        Some(ground) if ground.repo_ref.as_deref() == repo_ref(&row.objective) => match &ground.base {
            Ok((branch, commit)) => Grounded::On(Some((branch, commit))),
            Err(why) => Grounded::Nowhere(why.clone()),
        },
        _ => Grounded::Elsewhere,
    }
}

/// Whether the approval of an objective covers exactly its current content (invariant 10).
pub(super) fn covers(decision: &reading::Decision, row: &ObjectiveRow, registered: &Registered) -> bool {
    let now = shown(&row.objective, &registered.blueprint);
    decision.objective_id == row.objective.objective_id && decision.covers(&now)
}

pub(super) fn close(
    sql: &mut dyn Sql,
    event: &Event,
    reason: TerminalReason,
    workorder: Option<&WorkorderId>,
) -> StoreResult<()> {
    let cells: [Cell<'_>; 4] = [
        event.event_id.as_str().into(),
        sql.now().into(),
        reason.as_str().into(),
        workorder.map(WorkorderId::as_str).into(),
    ];
    sql.write(event.event_id.as_str(), include_str!("sql/event_processed.sql"), &cells)?;
    let mut why = json!({"event_id": event.event_id, "reason": reason, "work_order_id": workorder});
    // The journal alone must show that the event is of no ticket: callers choose the ids of captures and requests.
    if event.event_type != EventType::TicketReady {
        why["type"] = json!(event.event_type);
    }
    journal::note(sql, "scheduler", Act::EventProcessed, &event.resource_id, &why)?;
    // A closed event leaves its room to the next one.
    sql.wakes(Stage::Scheduler);
    Ok(())
}

/// Blocks an objective, with its pause; the cause makes that the only one of its kind.
pub(super) fn block(sql: &mut dyn Sql, row: &mut ObjectiveRow, stop: &Stop, cause: &str) -> StoreResult<()> {
    if let Some((kind, description)) = &stop.blocker {
        objectives::block_on(sql, row, None, *kind, description)?;
    }
    row.objective.status = ObjectiveStatus::Blocked;
    row.objective.blocked_reason = Some(stop.why.clone());
    row.objective.updated_at = sql.now();
    objectives::update(sql, row)?;
    let objective = &row.objective;
    let why = json!({"why": stop.why});
    journal::note(sql, "scheduler", Act::Blocked, objective.objective_id.as_str(), &why)?;
    pause(sql, &stop.kind.key(cause), objective, stop.reason, stop.actions.clone())
}

/// Makes the workorder of an event, and IN_PROGRESS.
pub(super) fn make(
    sql: &mut dyn Sql,
    event: &Event,
    row: &mut ObjectiveRow,
    registered: &Registered,
    (approval, earlier, base): (Option<&reading::Decision>, Earlier, Option<(&str, &str)>),
    ids: &Ids,
) -> StoreResult<WorkorderId> {
    let (now, blueprint) = (sql.now(), &registered.blueprint);
    let objective = &row.objective;
    let mut metadata = objective.metadata.clone();
    metadata.insert("azolla_id".into(), json!(objective.azolla_id));
    metadata.insert(TITLE.into(), json!(objective.title));
    metadata.insert("attempt".into(), json!(row.spent.attempts + 1));
    EarlierPatch::tell(earlier.candidate.as_ref(), &mut metadata);
    if let Some((branch, commit)) = base {
        metadata.insert("base_branch".into(), json!(branch));
        metadata.insert("commit_sha".into(), json!(commit));
    }
    let branch_name = blueprint.branch_name(&objective.objective_id);
    let told = PromptParts {
        objective,
        note: approval.and_then(|decision| decision.note.as_deref()),
        answered: earlier.answered.as_ref(),
        earlier: earlier.failed.as_ref(),
        candidate: earlier.candidate.as_ref(),
        attempt: row.spent.attempts + 1,
        branch_name: branch_name.as_deref(),
        base,
    };
    let full_prompt_text = prompt::full_text(&told, blueprint.prompt());
    let snapshot = ContextSnapshot {
        snapshot_id: ids.snapshot_id.clone(),
        objective_id: objective.objective_id.clone(),
        metadata,
        related_yield_refs: earlier.outputs(),
        full_prompt_text,
        created_at: now,
    };
    let issued = issue(
        sql,
        Issue {
            stands_in: false,
            event,
            registered,
            job_id: ids.job_id,
            diazotroph_type: &blueprint.diazotroph_type,
            snapshot,
            branch_name,
            budget: envelope::budget(&blueprint.envelope, &row.spent, blueprint.budget),
            repo_ref: base.and(repo_ref(objective)),
        },
    )?;
    row.objective.status = ObjectiveStatus::InProgress;
    row.objective.updated_at = now;
    row.spent.attempts += 1;
    objectives::update(sql, row)?;
    Ok(issued)
}

//! Operators stop an objective and let it continue: block, unblock, cancel.

use super::acts::{Actor, Answer, Asked, Refusal, check_note, fields};
use super::objectives::{self, ObjectiveRow, locked};
use super::pauses::pause;
use super::reading::{self, Run};
use super::{Sql, Stage, after, azollas, decisions, journal, landing, ticket_state};
use crate::error::{StoreError, StoreResult};
use fernery_core::artifact::{
    BlockerId, BlockerKind, BlockerRef, ObjectiveId, ObjectiveStatus, PauseReason, RecordId,
};
use fernery_core::inbox::deadline::{CANCELLED, is_cancelled};
use fernery_core::journal::Act;
use fernery_core::limits;
use fernery_core::pipeline::Violation;
use fernery_core::pipeline::draft::blocker_fault;
use fernery_core::pipeline::envelope::exhausted;
use fernery_core::pipeline::happened::PauseKind;
use fernery_core::pipeline::lifecycle::{Step, after as leads_to};
use fernery_core::pipeline::scheduling::blocked;
use serde::Serialize;
use serde_json::json;

/// Adds a blocker. While a workorder is in progress, the objective cannot be blocked.
pub fn block(
    sql: &mut dyn Sql,
    actor: &Actor,
    (id, record_id): (&ObjectiveId, &RecordId),
    blocker_id: Option<BlockerId>,
    kind: BlockerKind,
    description: &str,
) -> Answer<ObjectiveRow> {
    if let Some(message) = blocker_fault(description) {
        return Ok(Err(Refusal::Unfit(vec![Violation { path: "/description".into(), message }])));
    }
    let mut what = fields([("kind", json!(kind)), ("description", json!(description))]);
    what.extend(blocker_id.as_ref().map(|named| ("blocker_id".to_string(), json!(named))));
    let asked = Asked { actor, act: Act::Blocked, id: id.as_str(), record_id, what };
    let mut row = accepted!(locked(sql, id)?);
    if accepted!(asked.is_repeat(sql)?) {
        return Ok(Ok(row));
    }
    let status = row.objective.status;
    let blocked_already = status == ObjectiveStatus::Blocked;
    if !blocked_already && leads_to(row.objective.objective_type, status, Step::Block).is_none() {
        return ticket_state::refused(sql, &row);
    }
    let held = &row.objective.blocked_on;
    if let Some(wanted) = &blocker_id
        && let Some(known) = held.iter().find(|b| b.blocker_id == *wanted)
    {
        let same = known.kind == kind && known.description == description && !known.resolved;
        return Ok(if same { Ok(row) } else { Err(Refusal::Taken) });
    }
    // The same blocker again, for example because the first answer was lost, is still one blocker.
    let said = |b: &BlockerRef| !b.resolved && b.kind == kind && b.description == description;
    if blocker_id.is_none() && blocked_already && held.iter().any(said) {
        return Ok(Ok(row));
    }
    let open = held.iter().filter(|b| !b.resolved).count();
    if open >= limits::BLOCKERS_MAX {
        return Ok(Err(Refusal::Conflict(format!(
            "it already has {open} open blockers, which is the limit"
        ))));
    }
    let blocker_id = objectives::block_on(sql, &mut row, blocker_id, kind, description)?;
    row.objective.status = ObjectiveStatus::Blocked;
    row.objective.blocked_reason.get_or_insert_with(|| format!("blocked on {blocker_id}"));
    row.objective.updated_at = sql.now();
    objectives::update(sql, &row)?;
    asked.done(sql, json!({"blocker_id": blocker_id}))?;
    let actions = blocked(&ticket_state::of(sql, &row)?).actions;
    let key = PauseKind::Block.key(format_args!("{id}:{blocker_id}"));
    pause(sql, &key, &row.objective, PauseReason::GateFailed, actions)?;
    Ok(Ok(row))
}

/// The blockers that an operator resolves.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolved {
    These(Vec<BlockerId>),
    All,
}

/// Resolves blockers. When none is open, a BLOCKED objective continues: as TODO if its approval still covers it, else
/// as NEW. An approval whose envelope is used up covers nothing more; otherwise the rest of the envelope stays. What was DONE when
/// it was cancelled, and is still approved as it is, is DONE again: nothing is worked on, and its run is to be confirmed. An
/// objective that is not BLOCKED yet (NEW or TODO with blockers from the start) keeps its status.
pub fn unblock(
    sql: &mut dyn Sql,
    actor: &Actor,
    (id, record_id): (&ObjectiveId, &RecordId),
    resolved: &Resolved,
) -> Answer<ObjectiveRow> {
    let asked = Asked {
        actor,
        act: Act::Unblocked,
        id: id.as_str(),
        record_id,
        what: fields([("asked", json!(resolved))]),
    };
    let mut row = accepted!(locked(sql, id)?);
    if accepted!(asked.is_repeat(sql)?) {
        return Ok(Ok(row));
    }
    let status = row.objective.status;
    let not_stopped_yet =
        matches!(status, ObjectiveStatus::New | ObjectiveStatus::Todo) && row.objective.has_open_blockers();
    if status != ObjectiveStatus::Blocked && !not_stopped_yet {
        return ticket_state::refused(sql, &row);
    }
    if reading::active_workorder(sql, id)?.is_some() {
        return Ok(Err(Refusal::Conflict("its last run has not ended yet; try again in a moment".into())));
    }
    let open: Vec<BlockerId> =
        row.objective.blocked_on.iter().filter(|b| !b.resolved).map(|b| b.blocker_id.clone()).collect();
    let wanted = match resolved {
        Resolved::All => open.clone(),
        Resolved::These(ids) => ids.clone(),
    };
    if let Some(unknown) =
        wanted.iter().find(|of| row.objective.blocked_on.iter().all(|b| b.blocker_id != **of))
    {
        return Ok(Err(Refusal::Conflict(format!("it has no blocker {unknown}"))));
    }
    let spent = resolve(sql, &mut row, &wanted, Some(record_id.as_str()))?;
    let status = row.objective.status;
    asked.done(sql, json!({"resolved": wanted, "status": status, "envelope_spent": spent}))?;
    Ok(Ok(row))
}

/// Resolves these blockers of a locked objective. When none is open and it may continue, a BLOCKED one does; answers which part
/// of its envelope is used up, if that keeps it from TODO. `continues`: what makes its pause the only one; `None`: it stays where
/// it is.
pub(super) fn resolve(
    sql: &mut dyn Sql,
    row: &mut ObjectiveRow,
    wanted: &[BlockerId],
    continues: Option<&str>,
) -> StoreResult<Option<String>> {
    for known in row.objective.blocked_on.iter_mut().filter(|b| wanted.contains(&b.blocker_id)) {
        known.resolved = true;
    }
    for blocker in wanted {
        let cells = [row.objective.objective_id.as_str().into(), blocker.as_str().into()];
        sql.touched(include_str!("sql/blocker_resolve.sql"), &cells)?;
    }
    row.objective.updated_at = sql.now();
    let Some(by) = continues.filter(|_| row.objective.status == ObjectiveStatus::Blocked) else {
        objectives::update(sql, row)?;
        return Ok(None);
    };
    if row.objective.has_open_blockers() {
        still_blocked(sql, row, by)?;
        return Ok(None);
    }
    let in_force = azollas::in_force(sql, &row.objective.azolla_id)?;
    let approved = match &in_force {
        Some(registered) => decisions::covering(sql, row, registered)?.is_some(),
        None => false,
    };
    if approved && let Some(run) = done_before(sql, row)? {
        take_up(sql, row, &run, by)?;
        return Ok(None);
    }
    let spent = in_force.and_then(|of| exhausted(&of.blueprint.envelope, &row.spent));
    if approved && spent.is_none() {
        row.failures = 0;
        row.enter_todo(sql.now());
        sql.wakes(Stage::Readiness);
    } else {
        row.objective.status = ObjectiveStatus::New;
        row.objective.blocked_reason = None;
        row.approval = None;
    }
    objectives::update(sql, row)?;
    Ok(spent)
}

/// Writes a BLOCKED objective of which some blockers are resolved: reason and pause name what is still open. A cancelled one stays
/// cancelled.
pub(super) fn still_blocked(sql: &mut dyn Sql, row: &mut ObjectiveRow, by: &str) -> StoreResult<()> {
    if is_cancelled(&row.objective) {
        return objectives::update(sql, row);
    }
    let stop = blocked(&ticket_state::of(sql, row)?);
    row.objective.blocked_reason = Some(stop.why);
    objectives::update(sql, row)?;
    let kind = if stop.kind == PauseKind::Waits { PauseKind::Waits } else { PauseKind::Unblock };
    let key = kind.key(format_args!("{}:{by}", row.objective.objective_id));
    pause(sql, &key, &row.objective, stop.reason, stop.actions)
}

/// Cancellings that are looked at for the one that counts.
const CANCELS_READ: i64 = 20;

/// The run that passed, if the objective is cancelled and was DONE before that. The journal tells so with how often it had entered
/// TODO: a reopening since then counts one more.
fn done_before(sql: &mut dyn Sql, row: &ObjectiveRow) -> StoreResult<Option<Run>> {
    let id = &row.objective.objective_id;
    if !is_cancelled(&row.objective) {
        return Ok(None);
    }
    let was = |entry: &journal::Entry| {
        entry.why["was"] == json!(ObjectiveStatus::Done) && entry.why["entry"] == json!(row.entry)
    };
    match journal::cancels(sql, id.as_str(), CANCELS_READ)?.iter().any(was) {
        true => reading::passed_run(sql, id),
        false => Ok(None),
    }
}

/// A cancelled objective is DONE again, with its run to confirm: it takes a review place, and its patch can be merged.
fn take_up(sql: &mut dyn Sql, row: &mut ObjectiveRow, run: &Run, by: &str) -> StoreResult<()> {
    let (status, id) = (row.objective.status, row.objective.objective_id.clone());
    let Some(next) = leads_to(row.objective.objective_type, status, Step::TakeUp) else {
        return Err(StoreError::Corrupt(format!("{id} is {status} and cannot be taken up again")));
    };
    row.objective.status = next;
    row.objective.blocked_reason = None;
    row.unconfirmed = true;
    objectives::update(sql, row)?;
    landing::found(sql, &id, run)?;
    let actions = ticket_state::of(sql, row)?.next();
    let key = PauseKind::TakenUp.key(format_args!("{id}:{by}"));
    pause(sql, &key, &row.objective, PauseReason::RunComplete, actions)
}

/// Cancels an objective: BLOCKED, "cancelled". A workorder in progress still ends with a bundle, a run record and a
/// pause. Of a DONE one, the patch is not merged any more; what is confirmed and has no patch to merge stays DONE.
pub fn cancel(
    sql: &mut dyn Sql,
    actor: &Actor,
    (id, record_id): (&ObjectiveId, &RecordId),
    note: Option<&str>,
) -> Answer<ObjectiveRow> {
    accepted!(check_note(note));
    let asked = Asked {
        actor,
        act: Act::Cancelled,
        id: id.as_str(),
        record_id,
        what: fields([("note", json!(note))]),
    };
    let mut row = accepted!(locked(sql, id)?);
    if accepted!(asked.is_repeat(sql)?) {
        return Ok(Ok(row));
    }
    let status = row.objective.status;
    if is_cancelled(&row.objective) {
        return Ok(Ok(row));
    }
    let Some(next) = leads_to(row.objective.objective_type, status, Step::Cancel) else {
        return ticket_state::refused(sql, &row);
    };
    if status == ObjectiveStatus::Done {
        accepted!(landing::given_up(sql, id, row.unconfirmed)?);
        // It takes no review place any more.
        row.unconfirmed = false;
        sql.wakes(Stage::Scheduler);
    }
    row.objective.status = next;
    row.objective.blocked_reason = Some(CANCELLED.to_string());
    row.objective.updated_at = sql.now();
    objectives::update(sql, &row)?;
    asked.done(sql, json!({"was": status, "entry": row.entry}))?;
    after::cancelled(sql, id, record_id.as_str())?;
    let running = sql.touched(include_str!("sql/workorder_cancel.sql"), &[id.as_str().into()])?;
    if running > 0 {
        sql.wakes(Stage::Canceller);
    } else {
        let actions = vec![ticket_state::of(sql, &row)?.taken_up()];
        // It may be cancelled more than once, each time with a pause. No gate has failed: an operator ended it.
        let key = PauseKind::Cancel.key(format_args!("{id}:{record_id}"));
        pause(sql, &key, &row.objective, PauseReason::RunComplete, actions)?;
    }
    Ok(Ok(row))
}

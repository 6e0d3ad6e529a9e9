//! Operators' decisions about an objective: approve, confirm, reopen, block, unblock, cancel. No worker calls these: only a
//! person's decision about exactly what was shown leads to TODO (invariant 10).

use super::acts::{Actor, Answer, Asked, Refusal, check_note, fields};
use super::difference::since;
use super::objectives::{self, ObjectiveRow, Shown, locked, shown, shown_now};
use super::reading::{self, Decision};
use super::scheduling::pause;
use super::{Cell, Sql, Stage, azollas, journal};
use crate::error::StoreResult;
use fernery_core::artifact::{
    BlockerId, BlockerKind, BlockerRef, ObjectiveId, ObjectiveStatus, PauseReason, RecordId, RunId,
};
use fernery_core::canonical::{self, Digest};
use fernery_core::journal::Act;
use fernery_core::limits;
use fernery_core::pipeline::Violation;
use fernery_core::pipeline::draft::blocker_fault;
use fernery_core::pipeline::envelope::exhausted;
use fernery_core::pipeline::ground::{Premises, unstartable};
use fernery_core::pipeline::lifecycle::{Step, after};
use serde::Serialize;
use serde_json::json;

/// What an operator decides.
#[derive(Clone, Debug)]
pub struct Deciding {
    /// The id of the record: from outside, so that the same try makes the same record.
    pub record_id: RecordId,
    /// Of what was shown; `None`: whatever is there.
    pub digest: Option<Digest>,
    /// Why, in their words.
    pub note: Option<String>,
    /// What the process that was asked could start work on; `None`: nobody knows.
    pub premises: Option<Premises>,
}

impl Deciding {
    /// The decision as it is asked for, over a run if it is about one.
    fn asked<'a>(
        &'a self,
        actor: &'a Actor,
        act: Act,
        id: &'a ObjectiveId,
        run_id: Option<&RunId>,
    ) -> Asked<'a> {
        let mut what = fields([("note", json!(self.note))]);
        what.extend(self.digest.map(|digest| ("digest".to_string(), json!(digest))));
        what.extend(run_id.map(|run_id| ("run_id".to_string(), json!(run_id))));
        Asked { actor, act, id: id.as_str(), record_id: &self.record_id, what }
    }
}

/// The record of this very decision, if it was made before.
fn decided(sql: &mut dyn Sql, asked: &Asked<'_>) -> Answer<Option<Decision>> {
    Ok(Ok(if accepted!(asked.is_repeat(sql)?) { by_record(sql, asked.record_id)? } else { None }))
}

fn by_record(sql: &mut dyn Sql, record_id: &RecordId) -> StoreResult<Option<Decision>> {
    let row = sql.one(include_str!("sql/decision_by_id.sql"), &[record_id.as_str().into()])?;
    row.map(|row| reading::decision(&row)).transpose()
}

/// NEW → TODO, over exactly what was shown. Approving the same again answers the same record.
pub fn approve(sql: &mut dyn Sql, actor: &Actor, id: &ObjectiveId, deciding: &Deciding) -> Answer<Decision> {
    accepted!(check_note(deciding.note.as_deref()));
    let asked = deciding.asked(actor, Act::Approved, id, None);
    let mut questions = objectives::locking(id.as_str()).to_vec();
    questions.push((include_str!("sql/journal_by_id.sql"), vec![deciding.record_id.as_str().into()]));
    questions.push((include_str!("sql/azolla_of_objective.sql"), vec![id.as_str().into()]));
    let mut answers = sql.query_all(&questions)?.into_iter();
    let Some(mut row) = objectives::loaded(&mut answers)? else { return Ok(Err(Refusal::Unknown)) };
    let entry = answers.next().unwrap_or_default().first().map(|row| journal::entry(row, 0)).transpose()?;
    if accepted!(asked.is_repeat_of(entry))
        && let Some(before) = by_record(sql, &deciding.record_id)?
    {
        return Ok(Ok(before));
    }
    let Some(in_force) = answers.next().unwrap_or_default().into_iter().next() else {
        return Ok(Err(Refusal::Unknown));
    };
    let Some(registered) = azollas::by_digest(sql, &in_force.word(0)?)? else {
        return Ok(Err(Refusal::Unknown));
    };
    let now = shown(&row.objective, &registered.blueprint);
    if let Some(digest) = &deciding.digest
        && *digest != now.digest
    {
        let difference = since(sql, &row.objective, digest, &now)?;
        return Ok(Err(Refusal::Changed { now: Box::new(now), difference }));
    }
    if let Some(before) = current(sql, &row)?
        && before.digest == now.digest
        && row.objective.status != ObjectiveStatus::New
    {
        return Ok(Ok(before));
    }
    let status = row.objective.status;
    if after(row.objective.objective_type, status, Step::Approve).is_none() {
        return Ok(Err(Refusal::Status(status)));
    }
    if let Some(why) = unstartable(&row.objective, &registered.blueprint, deciding.premises.as_ref()) {
        return Ok(Err(Refusal::NoRepository(why)));
    }
    let decision = decide(sql, &asked, deciding, &now)?;
    row.approval = Some(decision.record_id.clone());
    row.starts_over();
    row.enter_todo(sql.now());
    objectives::update(sql, &row)?;
    sql.wakes(Stage::Readiness);
    Ok(Ok(decision))
}

fn current(sql: &mut dyn Sql, row: &ObjectiveRow) -> StoreResult<Option<Decision>> {
    match &row.approval {
        Some(approval) => by_record(sql, approval),
        None => Ok(None),
    }
}

fn decide(sql: &mut dyn Sql, asked: &Asked<'_>, deciding: &Deciding, shown: &Shown) -> StoreResult<Decision> {
    let decision = Decision {
        record_id: deciding.record_id.clone(),
        objective_id: ObjectiveId::stored(asked.id),
        kind: asked.act.as_str().to_uppercase(),
        digest: shown.digest,
        shown: shown.content.clone(),
        who: asked.actor.0.clone(),
        note: deciding.note.clone(),
        created_at: sql.now(),
    };
    let (digest, content) = (decision.digest.to_string(), canonical::text_of(&decision.shown));
    let cells: [Cell<'_>; 8] = [
        decision.record_id.as_str().into(),
        decision.objective_id.as_str().into(),
        (&decision.kind).into(),
        (&digest).into(),
        (&content).into(),
        (&decision.who).into(),
        decision.note.as_deref().into(),
        decision.created_at.into(),
    ];
    // The journal entry is written first: if two requests use one id at once, the second finds it.
    asked.done(sql, json!({"record_id": decision.record_id, "digest": decision.digest}))?;
    sql.write("the decision", include_str!("sql/decision_insert.sql"), &cells)?;
    Ok(decision)
}

/// A person has looked at what the gates passed in this run. Changes no status.
pub fn confirm(
    sql: &mut dyn Sql,
    actor: &Actor,
    (id, run_id): (&ObjectiveId, &RunId),
    deciding: &Deciding,
) -> Answer<Decision> {
    accepted!(check_note(deciding.note.as_deref()));
    let asked = deciding.asked(actor, Act::Confirmed, id, Some(run_id));
    let mut row = accepted!(locked(sql, id)?);
    if let Some(before) = accepted!(decided(sql, &asked)?) {
        return Ok(Ok(before));
    }
    let status = row.objective.status;
    if status != ObjectiveStatus::Done {
        return Ok(Err(Refusal::Status(status)));
    }
    let Some(run) = reading::last_run(sql, id)? else {
        return Ok(Err(Refusal::Conflict("there is no finished run to confirm".into())));
    };
    if run.record.run_id != *run_id {
        return Ok(Err(Refusal::OtherRun(Box::new(run.record))));
    }
    if !row.unconfirmed {
        let before = sql
            .query(include_str!("sql/decisions_of_objective.sql"), &[id.as_str().into()])?
            .iter()
            .rev()
            .map(reading::decision)
            .find(|d| d.as_ref().is_ok_and(|d| d.kind == "CONFIRM"));
        return match before {
            Some(before) => Ok(Ok(before?)),
            None => Ok(Err(Refusal::Conflict("there is nothing to confirm".into()))),
        };
    }
    let Some(mut now) = shown_now(sql, &row.objective)? else { return Ok(Err(Refusal::Unknown)) };
    let bundle = reading::bundle(sql, &run.record.work_order_id)?.map(|bundle| canonical::digest_of(&bundle));
    now.content["run"] = json!({"run_record": run.record, "output_bundle_sha256": bundle});
    now.digest = canonical::digest_of(&now.content);
    let decision = decide(sql, &asked, deciding, &now)?;
    row.unconfirmed = false;
    row.objective.updated_at = sql.now();
    objectives::update(sql, &row)?;
    sql.wakes(Stage::Scheduler);
    Ok(Ok(decision))
}

/// DONE → TODO, with a note that the next executor reads. It is an approval of what is there now.
pub fn reopen(sql: &mut dyn Sql, actor: &Actor, id: &ObjectiveId, deciding: &Deciding) -> Answer<Decision> {
    accepted!(check_note(deciding.note.as_deref()));
    if deciding.note.as_deref().is_none_or(|note| note.trim().is_empty()) {
        let message = "say in the note what is missing: the next executor reads it".to_string();
        return Ok(Err(Refusal::Unfit(vec![Violation { path: "/note".into(), message }])));
    }
    let asked = deciding.asked(actor, Act::Reopened, id, None);
    let mut row = accepted!(locked(sql, id)?);
    if let Some(before) = accepted!(decided(sql, &asked)?) {
        return Ok(Ok(before));
    }
    let status = row.objective.status;
    if after(row.objective.objective_type, status, Step::Reopen).is_none() {
        return Ok(Err(Refusal::Status(status)));
    }
    let Some(registered) = azollas::in_force(sql, &row.objective.azolla_id)? else {
        return Ok(Err(Refusal::Unknown));
    };
    let now = shown(&row.objective, &registered.blueprint);
    if let Some(digest) = &deciding.digest
        && *digest != now.digest
    {
        let difference = since(sql, &row.objective, digest, &now)?;
        return Ok(Err(Refusal::Changed { now: Box::new(now), difference }));
    }
    if let Some(why) = unstartable(&row.objective, &registered.blueprint, deciding.premises.as_ref()) {
        return Ok(Err(Refusal::NoRepository(why)));
    }
    let decision = decide(sql, &asked, deciding, &now)?;
    row.approval = Some(decision.record_id.clone());
    row.unconfirmed = false;
    row.starts_over();
    row.enter_todo(sql.now());
    objectives::update(sql, &row)?;
    sql.wakes(Stage::Readiness);
    sql.wakes(Stage::Scheduler);
    Ok(Ok(decision))
}

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
    if !blocked_already && after(row.objective.objective_type, status, Step::Block).is_none() {
        return Ok(Err(Refusal::Status(status)));
    }
    let held = &row.objective.blocked_on;
    if let Some(wanted) = &blocker_id
        && let Some(known) = held.iter().find(|b| b.blocker_id == *wanted)
    {
        let same = known.kind == kind && known.description == description && !known.resolved;
        return Ok(if same { Ok(row) } else { Err(Refusal::Taken) });
    }
    // Said twice, be it because the first answer was lost, it is still one blocker.
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
    let actions =
        vec![format!("Resolve {blocker_id}, then: fernery ticket unblock {id} --blocker {blocker_id}")];
    let key = format!("block:{id}:{blocker_id}");
    pause(sql, &key, &row.objective, PauseReason::GateFailed, actions)?;
    Ok(Ok(row))
}

/// Which blockers are out of the way.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolved {
    /// These.
    These(Vec<BlockerId>),
    /// All of them.
    All,
}

/// Resolves blockers. When none is open, a BLOCKED objective continues: as TODO if its approval still covers it, else
/// as NEW. An approval whose envelope is used up covers nothing more; otherwise the rest of the envelope stays. An
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
        return Ok(Err(Refusal::Status(status)));
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
    for blocker in &wanted {
        let Some(known) = row.objective.blocked_on.iter_mut().find(|b| b.blocker_id == *blocker) else {
            return Ok(Err(Refusal::Conflict(format!("it has no blocker {blocker}"))));
        };
        known.resolved = true;
    }
    for blocker in &wanted {
        let cells = [id.as_str().into(), blocker.as_str().into()];
        sql.touched(include_str!("sql/blocker_resolve.sql"), &cells)?;
    }
    row.objective.updated_at = sql.now();
    let mut spent = None;
    if status == ObjectiveStatus::Blocked && !row.objective.has_open_blockers() {
        let in_force = azollas::in_force(sql, &row.objective.azolla_id)?;
        let digest = in_force.as_ref().map(|of| objectives::shown(&row.objective, &of.blueprint).digest);
        let approval = current(sql, &row)?;
        let approved = approval.is_some_and(|approval| Some(approval.digest) == digest);
        spent = in_force.and_then(|of| exhausted(&of.blueprint.envelope, &row.spent));
        if approved && spent.is_none() {
            row.failures = 0;
            row.enter_todo(sql.now());
            sql.wakes(Stage::Readiness);
        } else {
            row.objective.status = ObjectiveStatus::New;
            row.objective.blocked_reason = None;
            row.approval = None;
        }
    }
    objectives::update(sql, &row)?;
    let status = row.objective.status;
    asked.done(sql, json!({"resolved": wanted, "status": status, "envelope_spent": spent}))?;
    Ok(Ok(row))
}

/// Cancels an objective: BLOCKED, "cancelled". A workorder in progress still ends with a bundle, a run record and a
/// pause.
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
    if status == ObjectiveStatus::Blocked && row.objective.blocked_reason.as_deref() == Some(CANCELLED) {
        return Ok(Ok(row));
    }
    let Some(next) = after(row.objective.objective_type, status, Step::Cancel) else {
        return Ok(Err(Refusal::Status(status)));
    };
    row.objective.status = next;
    row.objective.blocked_reason = Some(CANCELLED.to_string());
    row.objective.updated_at = sql.now();
    objectives::update(sql, &row)?;
    asked.done(sql, json!({"was": status}))?;
    let running = sql.touched(include_str!("sql/workorder_cancel.sql"), &[id.as_str().into()])?;
    if running > 0 {
        sql.wakes(Stage::Canceller);
    } else {
        let actions = vec![format!("To take it up again: fernery ticket unblock {id} --all")];
        // It may be cancelled more than once, each time with a pause.
        let key = format!("cancel:{id}:{record_id}");
        pause(sql, &key, &row.objective, PauseReason::GateFailed, actions)?;
    }
    Ok(Ok(row))
}

/// Why a cancelled objective is BLOCKED.
pub const CANCELLED: &str = "cancelled";

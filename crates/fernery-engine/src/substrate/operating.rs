//! What operators do to objectives. No worker comes here: what leads to TODO from outside leads through a decision that a
//! person made over exactly what was shown (invariant 10).

use super::asking::{Asked, fields};
use super::deciding::current;
use super::difference::between;
use super::objectives::{self, Shown, Standing, shown_now};
use super::reading;
use super::scheduling::write_pause;
use super::{Sql, Stage, azollas, journal};
use crate::error::StoreResult;
use fernery_core::artifact::{
    AzollaId, BlockerId, BlockerKind, BlockerRef, Objective, ObjectiveId, ObjectiveStatus, ObjectiveType,
    PauseReason, PauseState, RecordId, RunRecord,
};
use fernery_core::limits;
use fernery_core::names::is_unprintable;
use fernery_core::pipeline::Violation;
use fernery_core::pipeline::draft::Draft;
use fernery_core::pipeline::envelope::exhausted;
use fernery_core::pipeline::lifecycle::{Step, after};
use serde::Serialize;
use serde_json::{Value, json};

pub use super::deciding::{Deciding, approve, confirm, reopen};

/// Why an operator's act is refused.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// There is no such objective.
    Unknown,
    /// There is no such azolla; these are.
    UnknownAzolla(Vec<AzollaId>),
    /// Its status does not allow it.
    Status(ObjectiveStatus),
    /// The id belongs to something else.
    Taken,
    /// What was shown is not what is there.
    Changed {
        /// What is there now.
        now: Box<Shown>,
        /// What changed since it was shown: path, before, now.
        difference: Vec<(String, Value, Value)>,
    },
    /// The run that was looked at is not the last one; this is.
    OtherRun(Box<RunRecord>),
    /// Something keeps it.
    Conflict(String),
    /// Nobody here does it; a blueprint may bring who does.
    Nobody(String),
    /// What was sent does not fit.
    Unfit(Vec<Violation>),
}

/// Either what was asked for, or why not.
pub type Answer<T> = StoreResult<Result<T, Refusal>>;

/// Who acts.
#[derive(Clone, Debug)]
pub struct Actor(pub String);

/// Writes an objective down: NEW. The same again under the same id changes nothing.
pub fn create(
    sql: &mut dyn Sql,
    actor: &Actor,
    id: &ObjectiveId,
    azolla_id: &AzollaId,
    draft: &Draft,
) -> Answer<Standing> {
    let violations = draft.violations();
    if !violations.is_empty() {
        return Ok(Err(Refusal::Unfit(violations)));
    }
    let Some(registered) = azollas::in_force(sql, azolla_id)? else {
        let known = azollas::all(sql)?.into_iter().map(|known| known.blueprint.azolla_id.clone()).collect();
        return Ok(Err(Refusal::UnknownAzolla(known)));
    };
    // Its workers look after one duty; a ticket there would wait for ever.
    if registered.blueprint.objective_type == ObjectiveType::Standing {
        return Ok(Err(Refusal::Conflict(format!("azolla {azolla_id} has no tickets: name one that has"))));
    }
    let now = sql.now();
    let objective = Objective {
        objective_id: id.clone(),
        azolla_id: azolla_id.clone(),
        title: draft.title.trim().to_string(),
        acceptance_criteria: draft.acceptance_criteria.clone(),
        objective_type: ObjectiveType::Ticket,
        status: ObjectiveStatus::New,
        importance: draft.importance,
        urgency: draft.urgency,
        blocked_reason: None,
        blocked_on: Vec::new(),
        metadata: draft.metadata.clone(),
        created_at: now,
        updated_at: now,
    };
    if objectives::insert(sql, &objective)? {
        let digest = objectives::shown(&objective, &registered.blueprint).digest;
        let why = json!({"title": objective.title, "azolla_id": azolla_id, "digest": digest});
        journal::note(sql, &actor.0, "created", id.as_str(), &why)?;
        return Ok(Ok(Standing::new(objective)));
    }
    let Some(standing) = objectives::load(sql, id, false)? else { return Ok(Err(Refusal::Unknown)) };
    let same =
        draft_of(&standing.objective) == draft_of(&objective) && standing.objective.azolla_id == *azolla_id;
    Ok(if same { Ok(standing) } else { Err(Refusal::Taken) })
}

fn draft_of(objective: &Objective) -> Draft {
    Draft {
        title: objective.title.clone(),
        acceptance_criteria: objective.acceptance_criteria.clone(),
        importance: objective.importance,
        urgency: objective.urgency,
        metadata: objective.metadata.clone(),
    }
}

pub(super) fn locked(sql: &mut dyn Sql, id: &ObjectiveId) -> Answer<Standing> {
    let Some(standing) = objectives::load(sql, id, true)? else { return Ok(Err(Refusal::Unknown)) };
    if standing.objective.objective_type == ObjectiveType::Standing {
        let why =
            format!("{id} is the standing objective of {}: it never moves", standing.objective.azolla_id);
        return Ok(Err(Refusal::Conflict(why)));
    }
    Ok(Ok(standing))
}

/// Changes it. What an approval covers puts a TODO back to NEW; how much it matters does not.
pub fn edit(sql: &mut dyn Sql, actor: &Actor, id: &ObjectiveId, draft: &Draft) -> Answer<Standing> {
    let violations = draft.violations();
    if !violations.is_empty() {
        return Ok(Err(Refusal::Unfit(violations)));
    }
    let mut standing = accepted!(locked(sql, id)?);
    let before = draft_of(&standing.objective);
    let draft = Draft { title: draft.title.trim().to_string(), ..draft.clone() };
    if before == draft {
        return Ok(Ok(standing));
    }
    let status = standing.objective.status;
    let Some(next) = after(standing.objective.objective_type, status, Step::Edit) else {
        return Ok(Err(Refusal::Status(status)));
    };
    let covered = |d: &Draft| (d.title.clone(), d.acceptance_criteria.clone(), d.metadata.clone());
    let was = shown_now(sql, &standing.objective)?.map(|shown| shown.digest);
    let o = &mut standing.objective;
    o.title = draft.title.clone();
    o.acceptance_criteria = draft.acceptance_criteria.clone();
    o.importance = draft.importance;
    o.urgency = draft.urgency;
    o.metadata = draft.metadata.clone();
    o.updated_at = sql.now();
    if covered(&before) != covered(&draft) {
        o.status = next;
        standing.approval = None;
    }
    objectives::update(sql, &standing)?;
    let is = shown_now(sql, &standing.objective)?.map(|shown| shown.digest);
    let (from, to) = (json!(before), json!(draft));
    let changed: Value = between(&from, &to).into_iter().map(|(p, a, b)| json!([p, a, b])).collect();
    let why = json!({"digest_before": was, "digest": is, "changed": changed});
    journal::note(sql, &actor.0, "edited", id.as_str(), &why)?;
    Ok(Ok(standing))
}

pub(super) fn check_note(note: Option<&str>) -> Result<(), Refusal> {
    match note {
        Some(note) if note.len() > limits::CRITERIA_BYTES_MAX || note.contains('\0') => {
            let message = format!("a note has at most {} bytes and no NUL", limits::CRITERIA_BYTES_MAX);
            Err(Refusal::Unfit(vec![Violation { path: "/note".into(), message }]))
        }
        _ => Ok(()),
    }
}

/// Puts something in its way. While a workorder of it is under way there is nothing to block.
pub fn block(
    sql: &mut dyn Sql,
    actor: &Actor,
    (id, record_id): (&ObjectiveId, &RecordId),
    blocker_id: Option<BlockerId>,
    kind: BlockerKind,
    description: &str,
) -> Answer<Standing> {
    let showable = |c: char| !is_unprintable(c) || matches!(c, '\n' | '\t');
    if description.trim().is_empty()
        || description.len() > limits::CRITERIA_BYTES_MAX
        || !description.chars().all(showable)
    {
        let message = format!(
            "say what is in the way: 1 to {} bytes of text without control characters",
            limits::CRITERIA_BYTES_MAX
        );
        return Ok(Err(Refusal::Unfit(vec![Violation { path: "/description".into(), message }])));
    }
    let mut what = fields([("kind", json!(kind)), ("description", json!(description))]);
    what.extend(blocker_id.as_ref().map(|named| ("blocker_id".to_string(), json!(named))));
    let asked = Asked { actor, act: "blocked", id: id.as_str(), record_id, what };
    let mut standing = accepted!(locked(sql, id)?);
    if accepted!(asked.is_repeat(sql)?) {
        return Ok(Ok(standing));
    }
    let status = standing.objective.status;
    let blocked_already = status == ObjectiveStatus::Blocked;
    if !blocked_already && after(standing.objective.objective_type, status, Step::Block).is_none() {
        return Ok(Err(Refusal::Status(status)));
    }
    let held = &standing.objective.blocked_on;
    if let Some(wanted) = &blocker_id
        && let Some(known) = held.iter().find(|b| b.blocker_id == *wanted)
    {
        let same = known.kind == kind && known.description == description && !known.resolved;
        return Ok(if same { Ok(standing) } else { Err(Refusal::Taken) });
    }
    // Said twice, be it because the first answer was lost, it is still one blocker.
    let said = |b: &BlockerRef| !b.resolved && b.kind == kind && b.description == description;
    if blocker_id.is_none() && blocked_already && held.iter().any(said) {
        return Ok(Ok(standing));
    }
    let open = held.iter().filter(|b| !b.resolved).count();
    if open >= limits::BLOCKERS_MAX {
        return Ok(Err(Refusal::Conflict(format!("{open} blockers are open already"))));
    }
    let blocker_id = objectives::block_on(sql, &mut standing, blocker_id, kind, description)?;
    standing.objective.status = ObjectiveStatus::Blocked;
    standing.objective.blocked_reason.get_or_insert_with(|| format!("blocked on {blocker_id}"));
    standing.objective.updated_at = sql.now();
    objectives::update(sql, &standing)?;
    asked.done(sql, json!({"blocker_id": blocker_id}))?;
    let actions =
        vec![format!("Resolve {blocker_id}, then: fernery ticket unblock {id} --blocker {blocker_id}")];
    pause(sql, &standing, PauseReason::GateFailed, actions, &format!("block:{id}:{blocker_id}"))?;
    Ok(Ok(standing))
}

fn pause(
    sql: &mut dyn Sql,
    standing: &Standing,
    reason: PauseReason,
    prioritized_actions: Vec<String>,
    key: &str,
) -> StoreResult<()> {
    let pause = PauseState {
        objective_id: standing.objective.objective_id.clone(),
        azolla_id: standing.objective.azolla_id.clone(),
        reason,
        prioritized_actions,
        created_at: sql.now(),
    };
    write_pause(sql, key, &pause)
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

/// Takes blockers away. Once none is open it goes on: TODO if its approval still covers it, else NEW. An approval whose
/// envelope is used up covers nothing more; what is left of one that is not goes on to count.
pub fn unblock(
    sql: &mut dyn Sql,
    actor: &Actor,
    (id, record_id): (&ObjectiveId, &RecordId),
    resolved: &Resolved,
) -> Answer<Standing> {
    let asked = Asked {
        actor,
        act: "unblocked",
        id: id.as_str(),
        record_id,
        what: fields([("asked", json!(resolved))]),
    };
    let mut standing = accepted!(locked(sql, id)?);
    if accepted!(asked.is_repeat(sql)?) {
        return Ok(Ok(standing));
    }
    let status = standing.objective.status;
    if status != ObjectiveStatus::Blocked {
        return Ok(Err(Refusal::Status(status)));
    }
    if reading::active_workorder(sql, id)?.is_some() {
        return Ok(Err(Refusal::Conflict(
            "its last run has not come to its end yet; try again in a moment".into(),
        )));
    }
    let open: Vec<BlockerId> =
        standing.objective.blocked_on.iter().filter(|b| !b.resolved).map(|b| b.blocker_id.clone()).collect();
    let wanted = match resolved {
        Resolved::All => open.clone(),
        Resolved::These(ids) => ids.clone(),
    };
    for blocker in &wanted {
        let Some(known) = standing.objective.blocked_on.iter_mut().find(|b| b.blocker_id == *blocker) else {
            return Ok(Err(Refusal::Conflict(format!("it has no blocker {blocker}"))));
        };
        known.resolved = true;
    }
    for blocker in &wanted {
        let cells = [id.as_str().into(), blocker.as_str().into()];
        sql.touched(include_str!("sql/blocker_resolve.sql"), &cells)?;
    }
    standing.objective.updated_at = sql.now();
    let mut spent = None;
    if !standing.objective.has_open_blockers() {
        let in_force = azollas::in_force(sql, &standing.objective.azolla_id)?;
        let digest = in_force.as_ref().map(|of| objectives::shown(&standing.objective, &of.blueprint).digest);
        let approval = current(sql, &standing)?;
        let approved = approval.is_some_and(|approval| Some(approval.digest) == digest);
        spent = in_force.and_then(|of| exhausted(&of.blueprint.envelope, &standing.spent));
        if approved && spent.is_none() {
            standing.failures = 0;
            standing.enter_todo(sql.now());
            sql.wakes(Stage::Readiness);
        } else {
            standing.objective.status = ObjectiveStatus::New;
            standing.objective.blocked_reason = None;
            standing.approval = None;
        }
    }
    objectives::update(sql, &standing)?;
    let status = standing.objective.status;
    asked.done(sql, json!({"resolved": wanted, "status": status, "envelope_spent": spent}))?;
    Ok(Ok(standing))
}

/// Not wanted any more: BLOCKED, "cancelled". A workorder under way still ends in bundle, run record and pause.
pub fn cancel(
    sql: &mut dyn Sql,
    actor: &Actor,
    (id, record_id): (&ObjectiveId, &RecordId),
    note: Option<&str>,
) -> Answer<Standing> {
    accepted!(check_note(note));
    let asked =
        Asked { actor, act: "cancelled", id: id.as_str(), record_id, what: fields([("note", json!(note))]) };
    let mut standing = accepted!(locked(sql, id)?);
    if accepted!(asked.is_repeat(sql)?) {
        return Ok(Ok(standing));
    }
    let status = standing.objective.status;
    if status == ObjectiveStatus::Blocked && standing.objective.blocked_reason.as_deref() == Some(CANCELLED) {
        return Ok(Ok(standing));
    }
    let Some(next) = after(standing.objective.objective_type, status, Step::Cancel) else {
        return Ok(Err(Refusal::Status(status)));
    };
    standing.objective.status = next;
    standing.objective.blocked_reason = Some(CANCELLED.to_string());
    standing.objective.updated_at = sql.now();
    objectives::update(sql, &standing)?;
    asked.done(sql, json!({"was": status}))?;
    let running = sql.touched(include_str!("sql/workorder_cancel.sql"), &[id.as_str().into()])?;
    if running > 0 {
        sql.wakes(Stage::Runner);
    } else {
        let actions = vec![format!("Want it after all? fernery ticket unblock {id} --all")];
        // It may be cancelled more than once, each time with a pause.
        let key = format!("cancel:{id}:{record_id}");
        pause(sql, &standing, PauseReason::GateFailed, actions, &key)?;
    }
    Ok(Ok(standing))
}

/// Why a cancelled objective is BLOCKED.
pub const CANCELLED: &str = "cancelled";

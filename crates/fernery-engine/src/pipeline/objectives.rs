//! Objectives with what the control plane keeps beside them: read, locked and updated; created and edited by an operator. No
//! edit leads to TODO.

use super::acts::{Actor, Answer, Refusal};
use super::difference::between;
use super::{Cell, Row, Sql, Statement, after, azollas, hosts, journal, snoozes, ticket_state};
use crate::error::StoreResult;
use fernery_core::Timestamp;
use fernery_core::artifact::{
    AzollaId, BlockerId, BlockerKind, BlockerRef, Metadata, Objective, ObjectiveId, ObjectiveStatus,
    ObjectiveType, RecordId,
};
use fernery_core::canonical;
use fernery_core::exported::Snoozed;
use fernery_core::inbox::deadline::is_cancelled;
use fernery_core::journal::Act;
pub use fernery_core::pipeline::approval::{Shown, shown};
use fernery_core::pipeline::draft::{Draft, NewBlocker, first_blockers};
use fernery_core::pipeline::envelope::Spent;
use fernery_core::pipeline::lifecycle::{Step, after as leads_to};
use serde_json::{Value, json};

/// A row of `objectives`, with its blockers.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectiveRow {
    pub objective: Objective,
    /// How often it has entered TODO.
    pub entry: i64,
    /// The decision that covers it.
    pub approval: Option<RecordId>,
    /// DONE by the gate, and no person has looked.
    pub unconfirmed: bool,
    /// Gate failures since a person last said go.
    pub failures: u32,
    /// What its attempts have used of the envelope that a person last granted by an approval.
    pub spent: Spent,
}

pub fn load(sql: &mut dyn Sql, id: &ObjectiveId) -> StoreResult<Option<ObjectiveRow>> {
    asked(sql, [(include_str!("sql/objective_by_id.sql"), vec![id.as_str().into()]), blockers(id.as_str())])
}

/// Reads one and locks it for the rest of the transaction.
pub fn lock(sql: &mut dyn Sql, id: &ObjectiveId) -> StoreResult<Option<ObjectiveRow>> {
    asked(sql, locking(id.as_str()))
}

fn asked(sql: &mut dyn Sql, questions: [Statement<'_>; 2]) -> StoreResult<Option<ObjectiveRow>> {
    loaded(&mut sql.query_all(&questions)?.into_iter())
}

const LOCK: &str = include_str!("sql/objective_lock.sql");

/// The statements of [`lock`]; [`loaded`] reads their answers. The blockers are read after the lock, in a statement of their
/// own: a single statement would show them as they were before the previous holder of the lock committed.
pub(super) fn locking(id: &str) -> [Statement<'_>; 2] {
    [(LOCK, vec![id.into()]), blockers(id)]
}

pub(super) fn blockers(id: &str) -> Statement<'_> {
    (include_str!("sql/blockers_of_objective.sql"), vec![id.into()])
}

/// Reads the answers to [`locking`].
pub(super) fn loaded(answers: &mut impl Iterator<Item = Vec<Row>>) -> StoreResult<Option<ObjectiveRow>> {
    let (found, blocked_on) = (answers.next().unwrap_or_default(), answers.next().unwrap_or_default());
    let Some(row) = found.first() else { return Ok(None) };
    objective_row(row, blocked_on.iter().map(blocker).collect::<StoreResult<_>>()?).map(Some)
}

pub(super) fn objective_row(row: &Row, blocked_on: Vec<BlockerRef>) -> StoreResult<ObjectiveRow> {
    Ok(ObjectiveRow {
        objective: Objective {
            objective_id: row.word("objective_id")?,
            azolla_id: row.word("azolla_id")?,
            title: row.text("title")?.to_string(),
            acceptance_criteria: row.text("acceptance_criteria")?.to_string(),
            objective_type: row.word("objective_type")?,
            status: row.word("status")?,
            importance: row.count("importance")?,
            urgency: row.count("urgency")?,
            blocked_reason: row.maybe_text("blocked_reason")?.map(str::to_string),
            blocked_on,
            metadata: row.json("metadata")?,
            created_at: row.at("created_at")?,
            updated_at: row.at("updated_at")?,
        },
        entry: row.int("entry")?,
        approval: row.maybe_word("approval")?,
        unconfirmed: row.flag("unconfirmed")?,
        failures: row.count("failures")?,
        spent: Spent {
            attempts: row.count("attempts")?,
            wall_ms: row.count("wall_ms")?,
            tokens: row.count("tokens")?,
            cost_usd_micros: row.count("cost_usd_micros")?,
        },
    })
}

pub(super) fn blocker(row: &Row) -> StoreResult<BlockerRef> {
    Ok(BlockerRef {
        blocker_id: row.word("blocker_id")?,
        kind: row.word("kind")?,
        description: row.text("description")?.to_string(),
        resolved: row.flag("resolved")?,
    })
}

/// Stores a new one; `false`: its id is taken.
pub(super) fn insert(sql: &mut dyn Sql, objective: &Objective) -> StoreResult<bool> {
    let metadata = canonical::text_of(&json!(objective.metadata));
    let cells: [Cell<'_>; 10] = [
        objective.objective_id.as_str().into(),
        objective.azolla_id.as_str().into(),
        (&objective.title).into(),
        (&objective.acceptance_criteria).into(),
        objective.objective_type.as_str().into(),
        objective.status.as_str().into(),
        i64::from(objective.importance).into(),
        i64::from(objective.urgency).into(),
        (&metadata).into(),
        objective.created_at.into(),
    ];
    Ok(sql.touched(include_str!("sql/objective_insert.sql"), &cells)? == 1)
}

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Writes the changes of a step. [`lock`] must have locked the objective before.
pub(super) fn update(sql: &mut dyn Sql, row: &ObjectiveRow) -> StoreResult<()> {
    let o = &row.objective;
    let metadata = canonical::text_of(&json!(o.metadata));
    let cells: [Cell<'_>; 17] = [
        o.objective_id.as_str().into(),
        (&o.title).into(),
        (&o.acceptance_criteria).into(),
        o.status.as_str().into(),
        i64::from(o.importance).into(),
        i64::from(o.urgency).into(),
        o.blocked_reason.as_deref().into(),
        (&metadata).into(),
        o.updated_at.into(),
        row.entry.into(),
        row.approval.as_ref().map(RecordId::as_str).into(),
        row.unconfirmed.into(),
        i64::from(row.failures).into(),
        i64::from(row.spent.attempts).into(),
        number(row.spent.wall_ms).into(),
        number(row.spent.tokens).into(),
        number(row.spent.cost_usd_micros).into(),
    ];
    sql.write(o.objective_id.as_str(), include_str!("sql/objective_update.sql"), &cells)?;
    let finished = o.status == ObjectiveStatus::Done && !row.unconfirmed;
    if finished || is_cancelled(o) {
        snoozes::drop_of(sql, Snoozed::Objective, o.objective_id.as_str())?;
    }
    Ok(())
}

pub(super) fn block_on(
    sql: &mut dyn Sql,
    row: &mut ObjectiveRow,
    blocker_id: Option<BlockerId>,
    kind: BlockerKind,
    description: &str,
) -> StoreResult<BlockerId> {
    let held = &row.objective.blocked_on;
    let place = held.len() as i64 + 1;
    // An operator may have used the next name already.
    let free = |n: &i64| held.iter().all(|b| b.blocker_id.as_str() != format!("b{n}"));
    let made = || BlockerId::stored(&format!("b{}", (place..).find(free).unwrap_or(place)));
    let blocker_id = blocker_id.unwrap_or_else(made);
    let cells: [Cell<'_>; 5] = [
        row.objective.objective_id.as_str().into(),
        place.into(),
        blocker_id.as_str().into(),
        kind.as_str().into(),
        description.into(),
    ];
    sql.touched(include_str!("sql/blocker_insert.sql"), &cells)?;
    let description = description.to_string();
    let blocker = BlockerRef { blocker_id: blocker_id.clone(), kind, description, resolved: false };
    row.objective.blocked_on.push(blocker);
    Ok(blocker_id)
}

impl ObjectiveRow {
    /// An objective that was just created.
    pub(super) fn new(objective: Objective) -> Self {
        let spent = Spent::default();
        Self { objective, entry: 0, approval: None, unconfirmed: false, failures: 0, spent }
    }

    /// Puts it into TODO: a new entry, for which one event will be emitted.
    pub(super) fn enter_todo(&mut self, now: Timestamp) {
        self.objective.status = ObjectiveStatus::Todo;
        self.objective.blocked_reason = None;
        self.objective.updated_at = now;
        self.entry += 1;
    }

    /// A person approves: a new envelope, and what failed before no longer counts.
    pub(super) fn starts_over(&mut self) {
        self.failures = 0;
        self.spent = Spent::default();
    }
}

/// As [`shown`], by the blueprint in force; `None`: the azolla has none.
pub fn shown_now(sql: &mut dyn Sql, objective: &Objective) -> StoreResult<Option<Shown>> {
    let registered = azollas::in_force(sql, &objective.azolla_id)?;
    Ok(registered.map(|registered| shown(objective, &registered.blueprint)))
}

/// An objective as an operator writes it down.
#[derive(Clone, Debug)]
pub struct NewObjective {
    pub objective_id: ObjectiveId,
    /// The azolla that shall work on it.
    pub azolla_id: AzollaId,
    pub draft: Draft,
    /// The blockers that it has from the start.
    pub blocked_on: Vec<NewBlocker>,
    /// The tickets that it waits for.
    pub after: Vec<ObjectiveId>,
}

impl NewObjective {
    /// One without blockers.
    pub fn new(objective_id: &ObjectiveId, azolla_id: &AzollaId, draft: Draft) -> Self {
        let (objective_id, azolla_id) = (objective_id.clone(), azolla_id.clone());
        Self { objective_id, azolla_id, draft, blocked_on: Vec::new(), after: Vec::new() }
    }
}

/// An objective that was written down.
#[derive(Clone, Debug, PartialEq)]
pub struct Created {
    pub row: ObjectiveRow,
    /// Whether it was there before this call.
    pub was_there: bool,
}

/// Creates an objective: NEW, even with open blockers. It can be approved with them; the scheduler then stops it until
/// they are resolved. The same objective again under the same id changes nothing.
pub fn create(sql: &mut dyn Sql, actor: &Actor, new: &NewObjective) -> Answer<Created> {
    let NewObjective { objective_id: id, azolla_id, draft, blocked_on, after } = new;
    let mut violations = draft.violations_after(&Metadata::new());
    let blockers = first_blockers(blocked_on).unwrap_or_else(|more| {
        violations.extend(more);
        Vec::new()
    });
    if !violations.is_empty() {
        return Ok(Err(Refusal::Unfit(violations)));
    }
    let Some(registered) = azollas::in_force(sql, azolla_id)? else {
        let known = azollas::all(sql)?.into_iter().map(|known| known.blueprint.azolla_id.clone()).collect();
        return Ok(Err(Refusal::UnknownAzolla { named: azolla_id.clone(), known }));
    };
    // Its workers only work on its standing objective; a ticket there would wait for ever.
    if registered.blueprint.objective_type == ObjectiveType::Standing {
        return Ok(Err(Refusal::Conflict(format!(
            "azolla {azolla_id} does not work on tickets: name another azolla"
        ))));
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
    let told: Vec<Value> = blockers
        .iter()
        .map(|b| json!({"blocker_id": b.blocker_id, "kind": b.kind, "description": b.description}))
        .collect();
    // What others may have changed since is asked only of a new one: a repeated call must be answered as the first was.
    let names_others = !after.is_empty() || objective.metadata.contains_key("repo_ref");
    let others = if names_others && load(sql, id)?.is_none() {
        if let Some(wrong) = hosts::wrong_repository(sql, &registered.blueprint, &objective.metadata)? {
            return Ok(Err(Refusal::Unfit(vec![wrong])));
        }
        accepted!(after::check(sql, id, after, blockers.len())?)
    } else {
        Vec::new()
    };
    if insert(sql, &objective)? {
        let digest = shown(&objective, &registered.blueprint).digest;
        let mut why = json!({"title": objective.title, "azolla_id": azolla_id, "digest": digest});
        if !told.is_empty() {
            why["blocked_on"] = json!(told);
        }
        if !after.is_empty() {
            why["after"] = json!(after);
        }
        journal::note(sql, &actor.0, Act::Created, id.as_str(), &why)?;
        let mut row = ObjectiveRow::new(objective);
        for BlockerRef { blocker_id, kind, description, .. } in blockers {
            block_on(sql, &mut row, Some(blocker_id), kind, &description)?;
        }
        after::wait(sql, &mut row, &others)?;
        return Ok(Ok(Created { row, was_there: false }));
    }
    let Some(row) = load(sql, id)? else { return Ok(Err(Refusal::Unknown)) };
    // Blockers change; those that it had from the start are in the journal.
    let entries = journal::of_subject(sql, id.as_str())?;
    let created = entries.iter().find(|entry| entry.is(Act::Created)).map(|entry| &entry.why);
    let listed = |field: &str| created.and_then(|why| why[field].as_array()).map_or(&[][..], Vec::as_slice);
    let same = Draft::from(&row.objective) == Draft::from(&objective)
        && row.objective.azolla_id == *azolla_id
        && listed("blocked_on") == told
        && *listed("after") == after.iter().map(|id| json!(id)).collect::<Vec<_>>();
    Ok(if same { Ok(Created { row, was_there: true }) } else { Err(Refusal::Taken) })
}

pub(super) fn locked(sql: &mut dyn Sql, id: &ObjectiveId) -> Answer<ObjectiveRow> {
    let Some(row) = lock(sql, id)? else { return Ok(Err(Refusal::Unknown)) };
    if row.objective.objective_type == ObjectiveType::Standing {
        let why = format!(
            "{id} is the standing objective of {}: its status cannot be changed",
            row.objective.azolla_id
        );
        return Ok(Err(Refusal::Conflict(why)));
    }
    Ok(Ok(row))
}

/// Edits an objective. A change of what an approval covers puts a TODO back to NEW; a change of importance or urgency does
/// not.
pub fn edit(sql: &mut dyn Sql, actor: &Actor, id: &ObjectiveId, draft: &Draft) -> Answer<ObjectiveRow> {
    let mut row = accepted!(locked(sql, id)?);
    let before = Draft::from(&row.objective);
    let violations = draft.violations_after(&before.metadata);
    if !violations.is_empty() {
        return Ok(Err(Refusal::Unfit(violations)));
    }
    let draft = Draft { title: draft.title.trim().to_string(), ..draft.clone() };
    if before == draft {
        return Ok(Ok(row));
    }
    let status = row.objective.status;
    let Some(next) = leads_to(row.objective.objective_type, status, Step::Edit) else {
        return ticket_state::refused(sql, &row);
    };
    if before.metadata.get("repo_ref") != draft.metadata.get("repo_ref")
        && let Some(registered) = azollas::in_force(sql, &row.objective.azolla_id)?
        && let Some(wrong) = hosts::wrong_repository(sql, &registered.blueprint, &draft.metadata)?
    {
        return Ok(Err(Refusal::Unfit(vec![wrong])));
    }
    let covered = |d: &Draft| (d.title.clone(), d.acceptance_criteria.clone(), d.metadata.clone());
    let was = shown_now(sql, &row.objective)?.map(|shown| shown.digest);
    let o = &mut row.objective;
    o.title = draft.title.clone();
    o.acceptance_criteria = draft.acceptance_criteria.clone();
    o.importance = draft.importance;
    o.urgency = draft.urgency;
    o.metadata = draft.metadata.clone();
    o.updated_at = sql.now();
    if covered(&before) != covered(&draft) {
        o.status = next;
        row.approval = None;
    }
    update(sql, &row)?;
    let is = shown_now(sql, &row.objective)?.map(|shown| shown.digest);
    let (from, to) = (json!(before), json!(draft));
    let changed: Value = between(&from, &to).into_iter().map(|(p, a, b)| json!([p, a, b])).collect();
    let why = json!({"digest_before": was, "digest": is, "changed": changed});
    journal::note(sql, &actor.0, Act::Edited, id.as_str(), &why)?;
    Ok(Ok(row))
}

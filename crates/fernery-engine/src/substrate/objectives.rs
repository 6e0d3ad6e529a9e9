//! An objective with what the control plane keeps beside it.

use super::{Cell, Question, Row, Sql, azollas};
use crate::error::StoreResult;
use fernery_core::Timestamp;
use fernery_core::artifact::{
    BlockerId, BlockerKind, BlockerRef, Objective, ObjectiveId, ObjectiveStatus, RecordId,
};
use fernery_core::canonical;
pub use fernery_core::pipeline::approval::{Shown, shown};
use fernery_core::pipeline::envelope::Spent;
use serde_json::json;

/// An objective as it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// The artifact.
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

/// Reads one; locks it for the rest of the transaction if it is `to_change`.
pub fn load(sql: &mut dyn Sql, id: &ObjectiveId, to_change: bool) -> StoreResult<Option<Standing>> {
    let statement = match to_change {
        true => LOCK,
        false => include_str!("sql/objective_by_id.sql"),
    };
    let read = sql.query_all(&[(statement, vec![id.as_str().into()]), blockers(id.as_str())])?;
    loaded(&mut read.into_iter())
}

const LOCK: &str = include_str!("sql/objective_lock.sql");

/// What [`load`] asks to lock one, for [`loaded`]. What is in its way comes after the lock, in a statement of its own: in the
/// same one it would be as it was before whoever had the lock.
pub(super) fn locking(id: &str) -> [Question<'_>; 2] {
    [(LOCK, vec![id.into()]), blockers(id)]
}

pub(super) fn blockers(id: &str) -> Question<'_> {
    (include_str!("sql/blockers_of_objective.sql"), vec![id.into()])
}

/// The answers to an objective and what is in its way.
pub(super) fn loaded(answers: &mut impl Iterator<Item = Vec<Row>>) -> StoreResult<Option<Standing>> {
    let (found, blocked_on) = (answers.next().unwrap_or_default(), answers.next().unwrap_or_default());
    let Some(row) = found.first() else { return Ok(None) };
    standing(row, blocked_on.iter().map(blocker).collect::<StoreResult<_>>()?).map(Some)
}

pub(super) fn standing(row: &Row, blocked_on: Vec<BlockerRef>) -> StoreResult<Standing> {
    Ok(Standing {
        objective: Objective {
            objective_id: row.word(0)?,
            azolla_id: row.word(1)?,
            title: row.text(2)?.to_string(),
            acceptance_criteria: row.text(3)?.to_string(),
            objective_type: row.word(4)?,
            status: row.word(5)?,
            importance: row.count(6)?,
            urgency: row.count(7)?,
            blocked_reason: row.maybe_text(8)?.map(str::to_string),
            blocked_on,
            metadata: row.json(9)?,
            created_at: row.at(10)?,
            updated_at: row.at(11)?,
        },
        entry: row.int(12)?,
        approval: row.maybe_word(13)?,
        unconfirmed: row.flag(14)?,
        failures: row.count(15)?,
        spent: Spent {
            attempts: row.count(16)?,
            wall_ms: row.count(17)?,
            tokens: row.count(18)?,
            cost_usd_micros: row.count(19)?,
        },
    })
}

pub(super) fn blocker(row: &Row) -> StoreResult<BlockerRef> {
    Ok(BlockerRef {
        blocker_id: row.word(0)?,
        kind: row.word(1)?,
        description: row.text(2)?.to_string(),
        resolved: row.flag(3)?,
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

/// Writes what a step changed. Only what [`load`] has locked.
pub(super) fn update(sql: &mut dyn Sql, standing: &Standing) -> StoreResult<()> {
    let o = &standing.objective;
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
        standing.entry.into(),
        standing.approval.as_ref().map(RecordId::as_str).into(),
        standing.unconfirmed.into(),
        i64::from(standing.failures).into(),
        i64::from(standing.spent.attempts).into(),
        number(standing.spent.wall_ms).into(),
        number(standing.spent.tokens).into(),
        number(standing.spent.cost_usd_micros).into(),
    ];
    sql.write(o.objective_id.as_str(), include_str!("sql/objective_update.sql"), &cells)
}

/// Adds a blocker.
pub(super) fn block_on(
    sql: &mut dyn Sql,
    standing: &mut Standing,
    blocker_id: Option<BlockerId>,
    kind: BlockerKind,
    description: &str,
) -> StoreResult<BlockerId> {
    let held = &standing.objective.blocked_on;
    let place = held.len() as i64 + 1;
    // An operator may have given the next name away.
    let free = |n: &i64| held.iter().all(|b| b.blocker_id.as_str() != format!("b{n}"));
    let made = || BlockerId::stored(&format!("b{}", (place..).find(free).unwrap_or(place)));
    let blocker_id = blocker_id.unwrap_or_else(made);
    let cells: [Cell<'_>; 5] = [
        standing.objective.objective_id.as_str().into(),
        place.into(),
        blocker_id.as_str().into(),
        kind.as_str().into(),
        description.into(),
    ];
    sql.touched(include_str!("sql/blocker_insert.sql"), &cells)?;
    let description = description.to_string();
    let blocker = BlockerRef { blocker_id: blocker_id.clone(), kind, description, resolved: false };
    standing.objective.blocked_on.push(blocker);
    Ok(blocker_id)
}

impl Standing {
    /// One that was just written down.
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

//! What a reviewer has viewed of a ticket's patch, and which of its runs they looked at last. It is theirs alone, changes nothing
//! else, and is not in the journal.

use super::acts::{Actor, Answer, Refusal};
use super::{Cell, Sql, reading};
use crate::error::StoreResult;
use fernery_core::Timestamp;
use fernery_core::artifact::{ObjectiveId, RunId, RunRecord};
use fernery_core::canonical::Digest;
use fernery_core::limits;
use std::collections::BTreeMap;

/// Which run a reviewer looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastLook {
    /// The newest run that they have looked at.
    pub run_id: RunId,
    /// The one that they had looked at before it.
    pub before: Option<RunId>,
    /// When they first looked at the newest.
    pub at: Timestamp,
}

/// A reviewer has viewed this content of a file of the patch of a run, or has not after all.
pub fn view(
    sql: &mut dyn Sql,
    actor: &Actor,
    (id, path, content): (&ObjectiveId, &str, &Digest),
    viewed: bool,
) -> Answer<()> {
    let of: [Cell<'_>; 3] = [id.as_str().into(), (&actor.0).into(), path.into()];
    if !viewed {
        sql.touched(include_str!("sql/viewed_drop.sql"), &of)?;
        return Ok(Ok(()));
    }
    let others = sql.one(include_str!("sql/viewed_others.sql"), &of)?;
    if others.map_or(Ok(0), |row| row.int(0))? >= limits::VIEWED_FILES_MAX {
        let most = limits::VIEWED_FILES_MAX;
        let why =
            format!("you have marked {most} files of {id} as viewed, which is the most; unmark one first");
        return Ok(Err(Refusal::Conflict(why)));
    }
    let content = content.to_string();
    let cells = [id.as_str().into(), (&actor.0).into(), path.into(), (&content).into()];
    sql.write(path, include_str!("sql/viewed_put.sql"), &cells)?;
    Ok(Ok(()))
}

/// The contents that a reviewer has viewed of a ticket, by path.
pub fn viewed(sql: &mut dyn Sql, actor: &Actor, id: &ObjectiveId) -> StoreResult<BTreeMap<String, Digest>> {
    let rows = sql.query(include_str!("sql/viewed_of.sql"), &[id.as_str().into(), (&actor.0).into()])?;
    rows.iter().map(|row| Ok((row.text("path")?.to_string(), row.word("content")?))).collect()
}

/// Which run of a ticket a reviewer looked at last.
pub fn look_of(sql: &mut dyn Sql, actor: &Actor, id: &ObjectiveId) -> StoreResult<Option<LastLook>> {
    read(sql, include_str!("sql/look_of.sql"), actor, id)
}

fn read(
    sql: &mut dyn Sql,
    statement: &'static str,
    actor: &Actor,
    id: &ObjectiveId,
) -> StoreResult<Option<LastLook>> {
    let row = sql.one(statement, &[id.as_str().into(), (&actor.0).into()])?;
    row.map(|row| {
        Ok(LastLook {
            run_id: row.word("run_id")?,
            before: row.maybe_word("before_run_id")?,
            at: row.at("looked_at")?,
        })
    })
    .transpose()
}

/// A reviewer looks at a run. Looking at it again, or at an earlier one, changes nothing.
pub fn look(sql: &mut dyn Sql, actor: &Actor, run: &RunRecord) -> StoreResult<LastLook> {
    let id = &run.objective_id;
    let before = read(sql, include_str!("sql/look_lock.sql"), actor, id)?;
    if let Some(before) = &before {
        if before.run_id == run.run_id {
            return Ok(before.clone());
        }
        let runs = reading::runs_of(sql, id)?;
        let place = |of: &RunId| runs.iter().position(|run| run.record.run_id == *of);
        if place(&run.run_id) <= place(&before.run_id) {
            return Ok(before.clone());
        }
    }
    let look =
        LastLook { run_id: run.run_id.clone(), before: before.map(|before| before.run_id), at: sql.now() };
    let cells: [Cell<'_>; 5] = [
        id.as_str().into(),
        (&actor.0).into(),
        look.run_id.as_str().into(),
        look.before.as_ref().map(|id| id.as_str()).into(),
        look.at.into(),
    ];
    sql.write("the look", include_str!("sql/look_put.sql"), &cells)?;
    Ok(look)
}

//! What waits for a person to look at it: how much, and not what. The time that it takes is `fernery_core::review::time`'s.

use super::{Cell, Row, Sql, azollas};
use crate::error::StoreResult;
use fernery_core::review::time::{Size, Waits};

/// Of each kind and azolla no more are counted: somebody with so much to do is not helped by the exact number.
pub const COUNTED_MAX: i64 = 500;

/// What waits, and whether there is more of it than was counted.
pub fn waits(sql: &mut dyn Sql) -> StoreResult<(Waits, bool)> {
    let (mut waits, mut more) = (Waits::default(), false);
    let most = COUNTED_MAX as usize;
    for registered in azollas::all(sql)? {
        let now = sql.calendar();
        let cells: [Cell<'_>; 3] =
            [registered.blueprint.azolla_id.as_str().into(), COUNTED_MAX.into(), now.into()];
        let runs = sql.query(include_str!("sql/review_to_confirm.sql"), &cells)?;
        more |= runs.len() >= most;
        for row in &runs {
            waits.runs.push(size(row)?);
        }
        let Some(row) = sql.one(include_str!("sql/review_to_decide.sql"), &cells)? else { continue };
        let (approvals, candidates): (u64, u64) = (row.count("approvals")?, row.count("candidates")?);
        more |= approvals.max(candidates) >= most as u64;
        // What people do themselves is approved by whoever does it.
        waits.approvals += if registered.blueprint.is_for_people() { 0 } else { approvals };
        waits.candidates += candidates;
    }
    Ok((waits, more))
}

fn size(row: &Row) -> StoreResult<Option<Size>> {
    let (files, insertions, deletions) =
        (row.maybe_count("files")?, row.maybe_count("insertions")?, row.maybe_count("deletions")?);
    let (Some(files), Some(insertions), Some(deletions)) = (files, insertions, deletions) else {
        return Ok(None);
    };
    Ok(Some(Size { files, insertions, deletions }))
}

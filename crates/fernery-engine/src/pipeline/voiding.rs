//! Which approvals a new blueprint voids: those of waiting tickets that cover what the old one decides.

use super::objectives::{ObjectiveRow, shown};
use super::reading::{self, Below, ObjectiveFilter};
use super::{Sql, decisions};
use crate::error::StoreResult;
use fernery_core::artifact::{ObjectiveId, ObjectiveStatus};
use fernery_core::blueprint::Blueprint;

/// Tickets in TODO or BLOCKED whose approval covers what was shown with the blueprint `before`, and not what is shown with `after`:
/// what is under way goes on under its own. Looks at the newest `limit` tickets of each status.
pub fn voided(
    sql: &mut dyn Sql,
    before: &Blueprint,
    after: &Blueprint,
    limit: i64,
) -> StoreResult<Vec<ObjectiveId>> {
    if before.decisive() == after.decisive() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for status in [ObjectiveStatus::Todo, ObjectiveStatus::Blocked] {
        let filter = ObjectiveFilter { azolla_id: Some(before.azolla_id.clone()), status: Some(status) };
        for row in reading::objectives(sql, &filter, &Below::newest(), limit)? {
            if covered(sql, &row, before)? && !covered(sql, &row, after)? {
                found.push(row.objective.objective_id);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn covered(sql: &mut dyn Sql, row: &ObjectiveRow, blueprint: &Blueprint) -> StoreResult<bool> {
    let now = shown(&row.objective, blueprint);
    Ok(decisions::current(sql, row)?.is_some_and(|approval| approval.covers(&now)))
}

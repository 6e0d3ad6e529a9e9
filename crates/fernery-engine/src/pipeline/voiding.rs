//! Which approvals a new blueprint voids: those of waiting tickets that cover what the old one decides.

use super::objectives::{ObjectiveRow, shown};
use super::reading::{self, Below, ObjectiveFilter};
use super::{Sql, decisions};
use crate::error::StoreResult;
use fernery_core::artifact::{ObjectiveId, ObjectiveStatus};
use fernery_core::blueprint::Blueprint;

/// Tickets in TODO or BLOCKED whose approval covers what was shown with the blueprint `before`, and not what is shown with `after`:
/// what is under way goes on under its own. Looks at the newest `limit` tickets of each status, and answers whether there are more.
pub fn voided(
    sql: &mut dyn Sql,
    before: &Blueprint,
    after: &Blueprint,
    limit: i64,
) -> StoreResult<(Vec<ObjectiveId>, bool)> {
    if before.decisive() == after.decisive() {
        return Ok((Vec::new(), false));
    }
    let (mut found, mut more) = (Vec::new(), false);
    for status in [ObjectiveStatus::Todo, ObjectiveStatus::Blocked] {
        let filter = ObjectiveFilter { azolla_id: Some(before.azolla_id.clone()), status: Some(status) };
        let mut rows = reading::objectives(sql, &filter, &Below::newest(), limit + 1)?;
        let most = usize::try_from(limit).unwrap_or(0);
        more |= rows.len() > most;
        rows.truncate(most);
        for row in rows {
            if covered(sql, &row, before)? && !covered(sql, &row, after)? {
                found.push(row.objective.objective_id);
            }
        }
    }
    found.sort();
    Ok((found, more))
}

fn covered(sql: &mut dyn Sql, row: &ObjectiveRow, blueprint: &Blueprint) -> StoreResult<bool> {
    let now = shown(&row.objective, blueprint);
    Ok(decisions::current(sql, row)?.is_some_and(|approval| approval.covers(&now)))
}

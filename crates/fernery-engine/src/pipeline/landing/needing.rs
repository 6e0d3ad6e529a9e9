//! Patches that passed and wait for a person, for the page that says what needs one. However many have landed, these are found.

use crate::error::StoreResult;
use crate::pipeline::objectives::{ObjectiveRow, objective_row};
use crate::pipeline::{Cell, Sql};
use fernery_core::artifact::AzollaId;
use fernery_core::inbox::facts::{Unlanded, Unmerged};
use fernery_core::pipeline::possible::PatchState;

/// Finished tickets of an azolla whose patch conflicts with its branch, or did not land, the most important first.
pub fn stopped(
    sql: &mut dyn Sql,
    azolla_id: &AzollaId,
    limit: i64,
) -> StoreResult<Vec<(ObjectiveRow, Unlanded)>> {
    let cells: [Cell<'_>; 3] = [azolla_id.as_str().into(), limit.into(), sql.calendar().into()];
    let rows = sql.query(include_str!("../sql/landings_stopped.sql"), &cells)?;
    let each = rows.iter().map(|row| {
        // A finished ticket has no open blockers.
        let of = objective_row(row, Vec::new())?;
        let why = row.maybe_text("why")?.map(str::to_string);
        let patch = PatchState { state: row.word("state")?, fit: row.maybe_word("fit")?, why, waiting: None };
        let confirmed = !of.unconfirmed;
        Ok((of, Unlanded { patch, confirmed }))
    });
    each.collect()
}

/// The confirmed tickets of these azollas that nobody has merged, and the names of the first of them.
pub fn unmerged<'a>(
    sql: &mut dyn Sql,
    azollas: impl IntoIterator<Item = &'a AzollaId>,
    named: usize,
) -> StoreResult<Option<Unmerged>> {
    let (mut first, mut count) = (Vec::new(), 0);
    for azolla_id in azollas {
        let limit = i64::try_from(named).unwrap_or(i64::MAX);
        let cells: [Cell<'_>; 2] = [azolla_id.as_str().into(), limit.into()];
        let rows = sql.query(include_str!("../sql/landings_unmerged.sql"), &cells)?;
        count += rows.first().map_or(Ok(0), |row| row.count::<u64>("all_of_them"))?;
        for row in &rows {
            first.push((row.at("opened_at")?, row.word("objective_id")?));
        }
    }
    first.sort();
    first.truncate(named);
    let Some((since, _)) = first.first() else { return Ok(None) };
    Ok(Some(Unmerged { since: *since, count, first: first.into_iter().map(|(_, id)| id).collect() }))
}

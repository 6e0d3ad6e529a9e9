//! Lists of tickets by what no index tells: a label, words, whether they are cancelled or snoozed; and in another order than by age.
//!
//! A call looks at a bounded number of tickets, however many there are: a list by age goes on where it stopped, a list in another
//! order is of the weightiest open tickets, then of the newest others.

use super::inbox::queries;
use super::objectives::ObjectiveRow;
use super::reading::{self, Below, ObjectiveFilter};
use super::{Sql, azollas, landing, snoozes};
use crate::error::StoreResult;
use fernery_core::Timestamp;
use fernery_core::artifact::{AzollaId, Objective, ObjectiveId, ObjectiveStatus};
use fernery_core::inbox::deadline;
use fernery_core::inbox::label::{Label, is_same};
use std::collections::HashSet;
use std::str::FromStr;

/// Tickets that one call looks at, in the order of their age.
pub const LOOKED_AT_MAX: i64 = 5_000;
/// Open tickets of one azolla, and others of all, that are put into another order.
pub const SORTED_MAX: i64 = 2_000;
/// Tickets that are read at once.
const CHUNK: i64 = 500;

/// What a list has, beyond what an index tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sieve {
    /// Only with this label.
    pub label: Option<Label>,
    /// Only with all of these words, in lower case.
    pub words: Vec<String>,
    /// Also cancelled ones.
    pub cancelled: bool,
    pub only_cancelled: bool,
    /// Also those that are snoozed.
    pub snoozed: bool,
}

impl Default for Sieve {
    fn default() -> Self {
        Self { label: None, words: Vec::new(), cancelled: true, only_cancelled: false, snoozed: true }
    }
}

/// The order of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Newest first.
    Age,
    /// The earliest due date first.
    Due,
    /// The most important first.
    Importance,
}

impl FromStr for Order {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "age" => Ok(Self::Age),
            "due" => Ok(Self::Due),
            "importance" => Ok(Self::Importance),
            _ => Err("age, due or importance"),
        }
    }
}

impl Sieve {
    fn passes(&self, objective: &Objective) -> bool {
        let cancelled = deadline::is_cancelled(objective);
        (if cancelled { self.cancelled } else { !self.only_cancelled })
            && self
                .label
                .as_ref()
                .is_none_or(|label| objective.labels().any(|known| is_same(known, label.as_str())))
            && (self.words.is_empty() || {
                let text = format!("{}\n{}", objective.title, objective.acceptance_criteria).to_lowercase();
                self.words.iter().all(|word| text.contains(word.as_str()))
            })
    }
}

/// So many tickets by age, newest first, below a place; and where the list goes on, if it does.
pub fn by_age(
    sql: &mut dyn Sql,
    filter: &ObjectiveFilter,
    sieve: &Sieve,
    mut below: Below,
    rows: i64,
) -> StoreResult<(Vec<ObjectiveRow>, Option<Below>)> {
    let plain = *sieve == Sieve::default();
    let (mut kept, mut looked_at) = (Vec::new(), 0);
    let place = |row: &ObjectiveRow| Below {
        at: row.objective.created_at,
        id: row.objective.objective_id.to_string(),
    };
    while looked_at < LOOKED_AT_MAX {
        let wanted = if plain { rows + 1 } else { CHUNK };
        let found = reading::objectives(sql, filter, &below, wanted)?;
        let last = (found.len() as i64) < wanted;
        looked_at += found.len() as i64;
        for row in in_sight(sql, sieve, found, &mut below)? {
            if kept.len() as i64 == rows {
                let next = kept.last().map(place);
                return Ok((kept, next));
            }
            kept.push(row);
        }
        if last {
            return Ok((kept, None));
        }
    }
    Ok((kept, Some(below)))
}

/// Those that pass; `below` is moved to the last that was looked at.
fn in_sight(
    sql: &mut dyn Sql,
    sieve: &Sieve,
    found: Vec<ObjectiveRow>,
    below: &mut Below,
) -> StoreResult<Vec<ObjectiveRow>> {
    if let Some(last) = found.last() {
        *below = Below { at: last.objective.created_at, id: last.objective.objective_id.to_string() };
    }
    let passing: Vec<ObjectiveRow> = found.into_iter().filter(|row| sieve.passes(&row.objective)).collect();
    if sieve.snoozed {
        return Ok(passing);
    }
    let ids: Vec<&str> = passing.iter().map(|row| row.objective.objective_id.as_str()).collect();
    let until = snoozes::of_objectives(sql, &ids)?;
    Ok(passing.into_iter().zip(until).filter(|(_, until)| until.is_none()).map(|(row, _)| row).collect())
}

/// The azollas that a list is of.
fn of(sql: &mut dyn Sql, filter: &ObjectiveFilter) -> StoreResult<Vec<AzollaId>> {
    match &filter.azolla_id {
        Some(azolla_id) => Ok(vec![azolla_id.clone()]),
        None => azollas::ids(sql),
    }
}

/// Finished tickets whose patch conflicts with its branch, or did not land, the most important of each azolla first.
pub fn unlanded(
    sql: &mut dyn Sql,
    filter: &ObjectiveFilter,
    sieve: &Sieve,
    rows: i64,
) -> StoreResult<Vec<ObjectiveRow>> {
    if filter.status.is_some_and(|status| status != ObjectiveStatus::Done) {
        return Ok(Vec::new());
    }
    let azollas = of(sql, filter)?;
    let mut all = Vec::new();
    for azolla_id in azollas {
        let stopped = landing::stopped(sql, &azolla_id, SORTED_MAX)?.into_iter().map(|(row, _)| row);
        all.extend(stopped.filter(|row| sieve.passes(&row.objective)));
    }
    all.sort_by_key(|row| row.objective.importance);
    all.truncate(usize::try_from(rows).unwrap_or(0));
    Ok(all)
}

/// Tickets in this order; DONE and cancelled ones stand behind all others, so that they do not hide what is to be done.
pub fn sorted(
    sql: &mut dyn Sql,
    filter: &ObjectiveFilter,
    sieve: &Sieve,
    order: Order,
    rows: i64,
) -> StoreResult<Vec<ObjectiveRow>> {
    let azollas = of(sql, filter)?;
    let status: Vec<ObjectiveStatus> = filter.status.into_iter().collect();
    let mut all = Vec::new();
    for azolla_id in azollas {
        let open = queries::open(sql, &azolla_id, &status, SORTED_MAX, sieve.snoozed)?;
        all.extend(open.into_iter().filter(|row| sieve.passes(&row.objective)));
    }
    let known: HashSet<ObjectiveId> = all.iter().map(|row| row.objective.objective_id.clone()).collect();
    let (others, _) = by_age(sql, filter, sieve, Below::newest(), SORTED_MAX)?;
    all.extend(others.into_iter().filter(|row| !known.contains(&row.objective.objective_id)));
    let is_over = |o: &Objective| o.status == ObjectiveStatus::Done || deadline::is_cancelled(o);
    let weight = |o: &Objective| (o.importance, o.urgency, o.created_at, o.objective_id.clone());
    let never = Timestamp::from_millis(i64::MAX);
    match order {
        Order::Age => all.sort_by_key(|row| std::cmp::Reverse(row.objective.created_at)),
        Order::Due => all.sort_by_cached_key(|row| {
            let o = &row.objective;
            (is_over(o), deadline::due_at(o).unwrap_or(never), weight(o))
        }),
        Order::Importance => all.sort_by_cached_key(|row| (is_over(&row.objective), weight(&row.objective))),
    }
    all.truncate(usize::try_from(rows).unwrap_or(0));
    Ok(all)
}

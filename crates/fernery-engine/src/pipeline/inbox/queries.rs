//! Queries between azollas: what one may read of another. Read-only. A target answers only a known source that has
//! declared this read, and only for artifacts that exist there. Everything else is DENIED, without further details.

use crate::error::{StoreError, StoreResult};
use crate::pipeline::{Cell, Sql, azollas, objectives};
use fernery_core::Timestamp;
use fernery_core::artifact::{
    AzollaId, BlockerRef, PauseState, QueryStatus, ResponseId, SubstrateQuery, SubstrateQueryResponse,
};
use fernery_core::blueprint::{ReadableArtifact, Reads};
use fernery_core::inbox::filter::Filter;
use fernery_core::pipeline::Violation;
use serde_json::{Value, json};
use std::collections::HashMap;

/// Artifacts in one answer.
pub const RESULTS_MAX: i64 = 500;

/// Answers a query to an azolla of this instance. An unknown filter is refused; callers check it before. `visitor`: what a
/// source of another instance may read here; `None`: the source is an azolla of this instance.
pub fn answer(
    sql: &mut dyn Sql,
    query: &SubstrateQuery,
    visitor: Option<&Reads>,
) -> StoreResult<SubstrateQueryResponse> {
    let said = |status, results| SubstrateQueryResponse {
        response_id: ResponseId::stored(&crate::door::artifact_id()),
        query_id: query.query_id.clone(),
        target_azolla_id: query.target_azolla_id.clone(),
        status,
        results,
        created_at: Timestamp::default(),
    };
    let refused = |found: Vec<Violation>| {
        let all: Vec<String> = found.iter().map(|flaw| format!("{}: {}", flaw.path, flaw.message)).collect();
        StoreError::Refused(all.join("; "))
    };
    let filter = Filter::of(query).map_err(refused)?;
    let now = sql.now();
    let at_now = |response: SubstrateQueryResponse| SubstrateQueryResponse { created_at: now, ..response };
    let declared = match visitor {
        Some(reads) => reads.allows(&query.target_azolla_id, query.artifact_type),
        None => azollas::in_force(sql, &query.source_azolla_id)?.is_some_and(|source| {
            source.blueprint.reads.allows(&query.target_azolla_id, query.artifact_type)
        }),
    };
    let target = azollas::in_force(sql, &query.target_azolla_id)?;
    if !declared || target.is_none() {
        return Ok(at_now(said(QueryStatus::Denied, Vec::new())));
    }
    let results = match query.artifact_type {
        ReadableArtifact::Objective => objectives_of(sql, query, &filter)?,
        ReadableArtifact::PauseState => pauses_of(sql, &query.target_azolla_id, &filter)?,
        ReadableArtifact::BlockerRef => blockers_of(sql, &query.target_azolla_id)?,
    };
    Ok(at_now(said(QueryStatus::Ok, results)))
}

fn objectives_of(sql: &mut dyn Sql, query: &SubstrateQuery, filter: &Filter) -> StoreResult<Vec<Value>> {
    let found = found(sql, &query.target_azolla_id, filter)?;
    Ok(found.into_iter().map(|row| json!(row.objective)).collect())
}

/// Instants before and after all that are stored.
const EVER: (Timestamp, Timestamp) =
    (Timestamp::from_millis(-1), Timestamp::from_millis(253_402_300_799_000));

/// A list of words in the form that the statements use.
fn listed<T: ToString>(words: impl IntoIterator<Item = T>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| word.to_string()).collect();
    if words.is_empty() { String::new() } else { format!(",{},", words.join(",")) }
}

/// The objectives of an azolla that match a filter, the most important first, or in the order of their changes.
fn found(
    sql: &mut dyn Sql,
    target: &AzollaId,
    filter: &Filter,
) -> StoreResult<Vec<objectives::ObjectiveRow>> {
    let (status, urgency) = (listed(&filter.status), listed(&filter.urgency));
    let mut cells: Vec<Cell<'_>> = vec![
        target.as_str().into(),
        RESULTS_MAX.into(),
        filter.created_after.unwrap_or(EVER.0).into(),
        filter.created_before.unwrap_or(EVER.1).into(),
        filter.updated_before.unwrap_or(EVER.1).into(),
        (&status).into(),
        (&urgency).into(),
    ];
    if let Some(after) = filter.updated_after {
        cells.extend([Cell::At(after), Cell::Text(&filter.after_id)]);
    } else if filter.is_open() {
        cells.push(sql.calendar().into());
    }
    let statement = match (filter.updated_after.is_some(), filter.is_open()) {
        (true, true) => include_str!("../sql/objectives_open_changed.sql"),
        (true, false) => include_str!("../sql/objectives_changed.sql"),
        (false, true) => include_str!("../sql/objectives_open.sql"),
        (false, false) => include_str!("../sql/objectives_weighed.sql"),
    };
    if filter.updated_after.is_none() && filter.is_open() {
        return open_rows(sql, &cells);
    }
    let rows = sql.query(statement, &cells)?;
    with_blockers(sql, &rows)
}

/// Open objectives of an azolla, the most important first; `snoozed`: also those that are out of sight.
pub(crate) fn open(
    sql: &mut dyn Sql,
    target: &AzollaId,
    status: &[fernery_core::artifact::ObjectiveStatus],
    limit: i64,
    snoozed: bool,
) -> StoreResult<Vec<objectives::ObjectiveRow>> {
    let status = listed(status);
    let seen_at = if snoozed { EVER.1 } else { sql.calendar() };
    let cells: [Cell<'_>; 8] = [
        target.as_str().into(),
        limit.into(),
        EVER.0.into(),
        EVER.1.into(),
        EVER.1.into(),
        (&status).into(),
        "".into(),
        seen_at.into(),
    ];
    open_rows(sql, &cells)
}

/// Open objectives with their blockers, in two statements.
fn open_rows(sql: &mut dyn Sql, cells: &[Cell<'_>]) -> StoreResult<Vec<objectives::ObjectiveRow>> {
    let found = sql.query_all(&[
        (include_str!("../sql/objectives_open.sql"), cells.to_vec()),
        (include_str!("../sql/objectives_open_blockers.sql"), cells.to_vec()),
    ])?;
    let [rows, of_all] = &found[..] else { return Ok(Vec::new()) };
    let mut blockers: HashMap<&str, Vec<BlockerRef>> = HashMap::new();
    for row in of_all {
        blockers.entry(row.text(4)?).or_default().push(objectives::blocker(row)?);
    }
    rows.iter()
        .map(|row| objectives::objective_row(row, blockers.remove(row.text(0)?).unwrap_or_default()))
        .collect()
}

fn with_blockers(
    sql: &mut dyn Sql,
    rows: &[crate::pipeline::Row],
) -> StoreResult<Vec<objectives::ObjectiveRow>> {
    let ids: Vec<&str> = rows.iter().map(|row| row.text(0)).collect::<StoreResult<_>>()?;
    let blockers = sql.query_all(&ids.iter().map(|id| objectives::blockers(id)).collect::<Vec<_>>())?;
    rows.iter()
        .zip(blockers)
        .map(|(row, found)| {
            objectives::objective_row(row, found.iter().map(objectives::blocker).collect::<StoreResult<_>>()?)
        })
        .collect()
}

/// The last pause of each objective that waits for a person.
fn pauses_of(sql: &mut dyn Sql, target: &AzollaId, filter: &Filter) -> StoreResult<Vec<Value>> {
    let reason = listed(&filter.reason);
    let cells: [Cell<'_>; 6] = [
        target.as_str().into(),
        RESULTS_MAX.into(),
        filter.created_after.unwrap_or(EVER.0).into(),
        filter.created_before.unwrap_or(EVER.1).into(),
        (&reason).into(),
        sql.calendar().into(),
    ];
    let rows = sql.query(include_str!("../sql/pauses_waiting.sql"), &cells)?;
    rows.iter().map(|row| Ok(json!(row.json::<PauseState>(0)?))).collect()
}

/// The blockers of open objectives.
fn blockers_of(sql: &mut dyn Sql, target: &AzollaId) -> StoreResult<Vec<Value>> {
    let open = found(sql, target, &Filter::default())?;
    let blockers = open.iter().flat_map(|row| &row.objective.blocked_on);
    Ok(blockers.filter(|blocker| !blocker.resolved).map(|blocker| json!(blocker)).collect())
}

//! The membrane: what one azolla may read of another. Read-only; a target answers only to a source that it knows, that has
//! declared this read, and for artifacts that are kept there. Everything else is DENIED, and says no more than that.

use super::{Sql, azollas, objectives};
use crate::error::StoreResult;
use fernery_core::Timestamp;
use fernery_core::artifact::{
    AzollaId, ObjectiveStatus, PauseState, QueryStatus, ResponseId, SubstrateQuery, SubstrateQueryResponse,
};
use fernery_core::blueprint::{ReadableArtifact, Reads};
use serde_json::{Value, json};

/// Artifacts in one answer.
pub const RESULTS_MAX: i64 = 500;

/// Answers a question to an azolla of this instance. `visitor`: what a source of another instance may read here, if it is one.
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
        ReadableArtifact::Objective => objectives_of(sql, query)?,
        ReadableArtifact::PauseState => pauses_of(sql, &query.target_azolla_id)?,
        ReadableArtifact::BlockerRef => blockers_of(sql, &query.target_azolla_id)?,
    };
    Ok(at_now(said(QueryStatus::Ok, results)))
}

/// `{"updated_after": T}` asks for what changed after an instant, in that order, and with `"open": true` only for what is open;
/// without it, for what is open, the weightiest first.
fn objectives_of(sql: &mut dyn Sql, query: &SubstrateQuery) -> StoreResult<Vec<Value>> {
    let target = &query.target_azolla_id;
    let after =
        query.filter.get("updated_after").and_then(Value::as_str).and_then(|at| at.parse::<Timestamp>().ok());
    let found = match after {
        Some(after) => {
            let past = query.filter.get("after_id").and_then(Value::as_str).unwrap_or("");
            let open = query.filter.get("open") == Some(&Value::Bool(true));
            changed(sql, target, (after, past), open)?
        }
        None => open(sql, target)?,
    };
    Ok(found.into_iter().map(|standing| json!(standing.objective)).collect())
}

fn open(sql: &mut dyn Sql, target: &AzollaId) -> StoreResult<Vec<objectives::Standing>> {
    let cells = [target.as_str().into(), RESULTS_MAX.into()];
    let rows = sql.query(include_str!("sql/objectives_open.sql"), &cells)?;
    with_blockers(sql, &rows)
}

/// Objectives that changed after a place, in that order; all of them, or those that are open.
fn changed(
    sql: &mut dyn Sql,
    target: &AzollaId,
    after: (Timestamp, &str),
    open: bool,
) -> StoreResult<Vec<objectives::Standing>> {
    let cells = [target.as_str().into(), after.0.into(), after.1.into(), RESULTS_MAX.into()];
    let statement = match open {
        true => include_str!("sql/objectives_open_changed.sql"),
        false => include_str!("sql/objectives_changed.sql"),
    };
    let rows = sql.query(statement, &cells)?;
    with_blockers(sql, &rows)
}

fn with_blockers(sql: &mut dyn Sql, rows: &[super::Row]) -> StoreResult<Vec<objectives::Standing>> {
    let ids: Vec<&str> = rows.iter().map(|row| row.text(0)).collect::<StoreResult<_>>()?;
    let blockers = sql.query_all(&ids.iter().map(|id| objectives::blockers(id)).collect::<Vec<_>>())?;
    rows.iter()
        .zip(blockers)
        .map(|(row, found)| {
            objectives::standing(row, found.iter().map(objectives::blocker).collect::<StoreResult<_>>()?)
        })
        .collect()
}

/// The last pause of each objective that waits for a person.
fn pauses_of(sql: &mut dyn Sql, target: &AzollaId) -> StoreResult<Vec<Value>> {
    let waits = |standing: &objectives::Standing| {
        standing.objective.status == ObjectiveStatus::Blocked || standing.unconfirmed
    };
    let waiting: Vec<_> = open(sql, target)?.into_iter().filter(waits).collect();
    let asked = waiting.iter().map(|standing| {
        let cells = vec![standing.objective.objective_id.as_str().into(), target.as_str().into()];
        (include_str!("sql/pause_last_of_objective.sql"), cells)
    });
    let found = sql.query_all(&asked.collect::<Vec<_>>())?;
    let mut pauses = Vec::new();
    for row in found.iter().filter_map(|rows| rows.first()) {
        pauses.push(json!(row.json::<PauseState>(0)?));
    }
    Ok(pauses)
}

/// What is in the way of open objectives.
fn blockers_of(sql: &mut dyn Sql, target: &AzollaId) -> StoreResult<Vec<Value>> {
    let open = open(sql, target)?;
    let blockers = open.iter().flat_map(|standing| &standing.objective.blocked_on);
    Ok(blockers.filter(|blocker| !blocker.resolved).map(|blocker| json!(blocker)).collect())
}

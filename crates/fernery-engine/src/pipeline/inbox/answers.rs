//! Queries of one azolla to others, the answers, and what follows from them. Queries and answers are history; of an
//! answer a limited number of artifacts is kept.

use super::queries;
use crate::error::StoreResult;
use crate::pipeline::reading::Below;
use crate::pipeline::{Cell, Row, Sql};
use fernery_core::artifact::{
    AzollaId, EventId, QueryId, QueryStatus, SubstrateQuery, SubstrateQueryResponse,
};
use fernery_core::blueprint::ReadableArtifact;
use fernery_core::inbox::facts::{Asked, AzollaAnswer};
use fernery_core::inbox::foreign;
use fernery_core::{canonical, limits};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// A query to an azolla, and its response.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    pub query: SubstrateQuery,
    pub response: SubstrateQueryResponse,
    /// The server that answered, if the azolla is not hosted here.
    pub server: Option<String>,
}

/// A query and its response, as they are stored.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueryView {
    pub query: SubstrateQuery,
    /// What was answered, with as many of its artifacts as are kept.
    pub response: SubstrateQueryResponse,
    /// The event that it was asked for.
    pub event_id: EventId,
    /// How many artifacts the response had; `None`: an earlier version stored none of them.
    pub results_told: Option<u64>,
}

fn view(row: &Row) -> StoreResult<QueryView> {
    Ok(QueryView {
        query: row.json(0)?,
        response: row.json(1)?,
        event_id: row.word(2)?,
        results_told: row.maybe_count(3)?,
    })
}

/// Stores queries and their responses.
pub(crate) fn record(
    sql: &mut dyn Sql,
    azolla_id: &AzollaId,
    event_id: &EventId,
    answered: &[Answered],
) -> StoreResult<()> {
    for one in answered {
        let response =
            SubstrateQueryResponse { results: kept(&one.response.results), ..one.response.clone() };
        let told = i64::try_from(one.response.results.len()).unwrap_or(i64::MAX);
        let (query, response) = (canonical::text_of(&one.query), canonical::text_of(&response));
        let cells: [Cell<'_>; 7] = [
            one.query.query_id.as_str().into(),
            azolla_id.as_str().into(),
            event_id.as_str().into(),
            one.query.created_at.into(),
            (&query).into(),
            (&response).into(),
            told.into(),
        ];
        sql.write_new(include_str!("../sql/query_insert.sql"), &cells)?;
    }
    Ok(())
}

/// The first of these artifacts, up to the limit of what is stored.
fn kept(results: &[Value]) -> Vec<Value> {
    let mut bytes = 0;
    let fits = |value: &&Value| {
        bytes += serde_json::to_string(value).map_or(usize::MAX / 2, |text| text.len() + 1);
        bytes <= limits::RESPONSE_KEPT_BYTES_MAX
    };
    results.iter().take_while(fits).cloned().collect()
}

/// The queries for an event, with their responses.
pub fn of_event(sql: &mut dyn Sql, event_id: &EventId) -> StoreResult<Vec<QueryView>> {
    let rows = sql.query(include_str!("../sql/queries_of_event.sql"), &[event_id.as_str().into()])?;
    rows.iter().map(view).collect()
}

pub fn by_id(sql: &mut dyn Sql, id: &QueryId) -> StoreResult<Option<QueryView>> {
    let row = sql.one(include_str!("../sql/query_by_id.sql"), &[id.as_str().into()])?;
    row.map(|row| view(&row)).transpose()
}

/// The queries of an azolla, newest first, below a place.
pub fn page(sql: &mut dyn Sql, by: &AzollaId, below: &Below, limit: i64) -> StoreResult<Vec<QueryView>> {
    let cells = [below.at.into(), (&below.id).into(), limit.into(), by.as_str().into()];
    sql.query(include_str!("../sql/queries_page.sql"), &cells)?.iter().map(view).collect()
}

/// The queries of all azollas, each with its source, newest first, below a place.
pub(crate) fn page_of_all(
    sql: &mut dyn Sql,
    below: &Below,
    limit: i64,
) -> StoreResult<Vec<(QueryView, AzollaId)>> {
    let cells = [below.at.into(), (&below.id).into(), limit.into()];
    let rows = sql.query(include_str!("../sql/queries_of_all.sql"), &cells)?;
    rows.iter().map(|row| Ok((view(row)?, row.word(4)?))).collect()
}

/// Whether an azolla answered everything that it was asked: the worst of its answers.
pub(crate) fn status<'a>(responses: impl Iterator<Item = &'a SubstrateQueryResponse>) -> Option<QueryStatus> {
    responses.map(|response| response.status).max_by_key(|status| match status {
        QueryStatus::Ok => 0,
        QueryStatus::Denied => 1,
        QueryStatus::TargetUnavailable => 2,
    })
}

/// What each azolla answered to all of its queries.
pub(crate) fn told(answered: &[Answered]) -> Vec<AzollaAnswer> {
    let mut by_azolla: BTreeMap<&AzollaId, Vec<&Answered>> = BTreeMap::new();
    for one in answered {
        by_azolla.entry(&one.query.target_azolla_id).or_default().push(one);
    }
    by_azolla.into_iter().filter_map(|(azolla_id, all)| of_one(azolla_id, &all)).collect()
}

fn of_one(azolla_id: &AzollaId, answered: &[&Answered]) -> Option<AzollaAnswer> {
    let status = status(answered.iter().map(|one| &one.response))?;
    let server = answered.iter().find_map(|one| one.server.clone());
    let asked = Asked { azolla_id: azolla_id.clone(), status, server, as_of: None, unread: 0, full: false };
    let mut told = AzollaAnswer {
        asked,
        objectives: Vec::new(),
        pauses: Vec::new(),
        clocks: BTreeMap::new(),
        foreign: BTreeMap::new(),
        waits_for: BTreeMap::new(),
        patches: BTreeMap::new(),
        blueprint: None,
    };
    for Answered { query, response, .. } in answered {
        if response.status != QueryStatus::Ok {
            continue;
        }
        told.asked.as_of = told.asked.as_of.max(Some(response.created_at));
        // Another instance may have another version, or lie: artifacts of the wrong form are only counted.
        let mut read = 0;
        match query.artifact_type {
            ReadableArtifact::Objective => {
                let before = told.objectives.len();
                told.objectives.extend(response.results.iter().filter_map(foreign::objective));
                read += told.objectives.len() - before;
            }
            ReadableArtifact::PauseState => {
                for (pause, own_id) in response.results.iter().filter_map(foreign::pause) {
                    told.foreign.extend(own_id.map(|own| (pause.objective_id.clone(), own)));
                    told.pauses.push(pause);
                    read += 1;
                }
            }
            ReadableArtifact::BlockerRef => read = response.results.len(),
        }
        told.asked.full |= response.results.len() as i64 >= queries::RESULTS_MAX;
        told.asked.unread += (response.results.len() - read) as u64;
    }
    Some(told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fernery_core::Timestamp;
    use fernery_core::artifact::ResponseId;
    use serde_json::json;

    fn answered(artifact_type: ReadableArtifact, status: QueryStatus, results: i64) -> Answered {
        let (query_id, azolla) = (QueryId::stored("q"), AzollaId::stored("mec"));
        let query = SubstrateQuery {
            query_id: query_id.clone(),
            source_azolla_id: AzollaId::stored("task_management"),
            target_azolla_id: azolla.clone(),
            artifact_type,
            filter: Default::default(),
            created_at: Timestamp::default(),
        };
        let response = SubstrateQueryResponse {
            response_id: ResponseId::stored("r"),
            query_id,
            target_azolla_id: azolla,
            status,
            results: vec![json!({}); results as usize],
            created_at: Timestamp::default(),
        };
        Answered { query, response, server: None }
    }

    #[test]
    fn an_azolla_that_told_as_much_as_one_answer_takes_is_not_wholly_seen() {
        for (results, full) in [(queries::RESULTS_MAX - 1, false), (queries::RESULTS_MAX, true)] {
            let told = told(&[answered(ReadableArtifact::BlockerRef, QueryStatus::Ok, results)]);
            assert_eq!((told[0].asked.full, told[0].asked.is_seen()), (full, !full));
        }
    }

    #[test]
    fn an_azolla_that_denies_one_kind_of_artifact_is_not_wholly_seen() {
        use QueryStatus::{Denied, Ok, TargetUnavailable};
        for (objectives, pauses, status) in [
            (Ok, Ok, Ok),
            (Ok, Denied, Denied),
            (Denied, Ok, Denied),
            (Ok, TargetUnavailable, TargetUnavailable),
            (TargetUnavailable, Denied, TargetUnavailable),
        ] {
            let told = told(&[
                answered(ReadableArtifact::Objective, objectives, 0),
                answered(ReadableArtifact::PauseState, pauses, 0),
            ]);
            assert_eq!((told[0].asked.status, told[0].asked.is_seen()), (status, status == Ok));
        }
    }
}

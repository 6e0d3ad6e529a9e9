//! Session manifests: request one, wait for it, read them; and the call by which azollas of other instances send queries.

use super::acting::{optional, record, refused_on};
use super::named::{named, unknown};
use super::paging::Place;
use crate::http::problem::{Code, Refusal, Refused};
use crate::http::wire::answer::{Call, Replied, Reply};
use crate::http::wire::json;
use fernery_client::wire::{
    FieldProblem, ManifestPage, ManifestRequest, ManifestRequestView, ManifestView, QueryPage, QueryView,
};
use fernery_core::artifact::{AzollaId, ManifestId, QueryId, SubstrateQuery};
use fernery_core::inbox::filter::Filter;
use fernery_core::limits;
use fernery_core::pipeline::Violation as Flaw;
use fernery_core::schema::{Schema, Violation};
use fernery_engine::pipeline::acts::Refusal as Refusing;
use fernery_engine::pipeline::azollas;
use fernery_engine::pipeline::inbox::manifests::{self, RequestState};
use fernery_engine::pipeline::inbox::{answers, queries};
use fernery_engine::pipeline::reading::Below;
use serde_json::Value;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How often a waiting call looks: another process may make the manifest, so nothing here tells that it is there. A manifest takes
/// a hundred milliseconds or so; each look comes an eighth later than the last, which is as much as a person waits too long.
const LOOK_FIRST: Duration = Duration::from_millis(5);
const LOOK_LAST: Duration = Duration::from_millis(200);

/// `POST /v1/azollas/{id}/manifests`
pub async fn request(call: Call) -> Replied {
    let id: AzollaId = named(&call)?;
    let ManifestRequest { request_id } = optional(&call)?;
    let _writing = call.writing()?;
    let (request_id, of) = (record(request_id), id.clone());
    let substrate = call.server.engine().substrate();
    let asked = substrate.transact(move |sql| {
        if let Err(refusal) = manifests::maker_of(sql, Some(&of))? {
            return Ok(Err(refusal));
        }
        // The same request again: answer its current state, whatever was requested since.
        if let Some(before) = manifests::state_of(sql, request_id.as_str())? {
            return Ok(if before.event.azolla_id == of { Ok(before) } else { Err(Refusing::Taken) });
        }
        Ok(Ok(manifests::request(sql, &of, request_id.as_str())?))
    });
    match asked.await? {
        Ok(state) => Reply::json(202, &state_view(state)),
        // The path names it, so this is 404 and not a wrong field.
        Err(Refusing::UnknownAzolla { .. }) => Err(unknown(&call, "azolla")()),
        Err(refusal) => Err(refused_on("manifest request", &id, refusal)),
    }
}

/// `GET /v1/manifest_requests/{id}`
pub async fn requested(call: Call) -> Replied {
    let wait_max = limits::JOB_WAIT_MAX.as_millis() as u64;
    let wait = Duration::from_millis(call.query.number("wait_ms", 0..=wait_max)?.unwrap_or(0));
    let _waiting = if wait.is_zero() { None } else { Some(call.waiting()?) };
    // A schedule generates ids that are longer than artifact ids, so any text may be an id; but no database stores NUL.
    if call.param.contains('\0') {
        return Err(unknown(&call, "manifest request")());
    }
    let until = Instant::now() + wait;
    let mut pause = LOOK_FIRST;
    loop {
        let id = call.param.clone();
        let found = call.server.engine().substrate().read(move |sql| manifests::state_of(sql, &id)).await?;
        let state = found.ok_or_else(unknown(&call, "manifest request"))?;
        let left = until.saturating_duration_since(Instant::now());
        if state.manifest.is_some() || state.failed.is_some() || left.is_zero() {
            return Reply::json(200, &state_view(state));
        }
        sleep(left.min(pause)).await;
        pause = (pause * 9 / 8).min(LOOK_LAST);
    }
}

/// `GET /v1/azollas/{id}/manifests`
pub async fn list(call: Call) -> Replied {
    let id: AzollaId = named(&call)?;
    let place = Place::read(&call, format!("manifests {id}"))?;
    let (below, rows) = (place.below.clone(), place.rows_and_one());
    let substrate = call.server.engine().substrate();
    let found = substrate.read(move |sql| {
        if azollas::in_force(sql, &id)?.is_none() {
            return Ok(None);
        }
        manifests::page(sql, &id, &below, rows).map(Some)
    });
    let found = found.await?.ok_or_else(unknown(&call, "azolla"))?;
    let (found, next_cursor) = place
        .page(found, |row| Below { at: row.manifest.created_at, id: row.manifest.manifest_id.to_string() });
    Reply::json(200, &ManifestPage { manifests: found.into_iter().map(view).collect(), next_cursor })
}

/// `GET /v1/manifests/{id}`
pub async fn read(call: Call) -> Replied {
    let id: ManifestId = named(&call)?;
    let found = call.server.engine().substrate().read(move |sql| manifests::by_id(sql, &id)).await?;
    Reply::json(200, &view(found.ok_or_else(unknown(&call, "manifest"))?))
}

/// `POST /v1/azollas/{id}/query`
///
/// The caller is a visitor, even under the name of an azolla of this instance: the rights of that azolla do not count here.
pub async fn query(call: Call) -> Replied {
    let id: AzollaId = named(&call)?;
    let query = asked(&call.body)?;
    if query.target_azolla_id != id {
        let detail = format!("the path names azolla {id}, the query names {}", query.target_azolla_id);
        return Err(Refusal::field(Code::Invalid, "/target_azolla_id", detail));
    }
    if let Some(only) = call.caller.asks_as()
        && only != query.source_azolla_id.as_str()
    {
        let detail = format!("this token belongs to the visitor {only}, not to {}", query.source_azolla_id);
        return Err(Refusal::new(Code::Forbidden, detail));
    }
    let reads = call.server.settings.visitors.get(&query.source_azolla_id).cloned().unwrap_or_default();
    let substrate = call.server.engine().substrate();
    let response = substrate.read(move |sql| queries::answer(sql, &query, Some(&reads))).await?;
    Reply::json(200, &response)
}

/// `GET /v1/azollas/{id}/queries`
pub async fn queries(call: Call) -> Replied {
    let id: AzollaId = named(&call)?;
    let place = Place::read(&call, format!("queries {id}"))?;
    let (below, rows) = (place.below.clone(), place.rows_and_one());
    let substrate = call.server.engine().substrate();
    let found = substrate.read(move |sql| {
        if azollas::in_force(sql, &id)?.is_none() {
            return Ok(None);
        }
        answers::page(sql, &id, &below, rows).map(Some)
    });
    let found = found.await?.ok_or_else(unknown(&call, "azolla"))?;
    let (found, next_cursor) =
        place.page(found, |row| Below { at: row.query.created_at, id: row.query.query_id.to_string() });
    Reply::json(200, &QueryPage { queries: found.into_iter().map(query_view).collect(), next_cursor })
}

/// `GET /v1/queries/{id}`
pub async fn read_query(call: Call) -> Replied {
    let id: QueryId = named(&call)?;
    let found = call.server.engine().substrate().read(move |sql| answers::by_id(sql, &id)).await?;
    Reply::json(200, &query_view(found.ok_or_else(unknown(&call, "query"))?))
}

fn query_view(stored: answers::QueryView) -> QueryView {
    let answers::QueryView { query, response, event_id, results_told } = stored;
    QueryView { query, response, event_id, results_told }
}

fn asked(body: &[u8]) -> Result<SubstrateQuery, Refused> {
    let text = json::text(body)?;
    let document: Value = json::typed(text)?;
    let violations = Schema::named("substrate_query").map(|schema| schema.validate(&document));
    let problem = |found: Violation| FieldProblem { pointer: found.pointer, detail: found.message };
    let problems: Vec<FieldProblem> = violations.unwrap_or_default().into_iter().map(problem).collect();
    if !problems.is_empty() {
        return Err(Refusal::fields(problems));
    }
    let query: SubstrateQuery = json::typed(text)?;
    let problem = |found: Flaw| FieldProblem { pointer: found.path, detail: found.message };
    match Filter::of(&query) {
        Ok(_) => Ok(query),
        Err(found) => Err(Refusal::fields(found.into_iter().map(problem).collect())),
    }
}

fn state_view(state: RequestState) -> ManifestRequestView {
    let RequestState { request_id, event, reason, work_order_id, manifest, failed } = state;
    ManifestRequestView { request_id, event, reason, work_order_id, manifest: manifest.map(view), failed }
}

fn view(stored: manifests::ManifestView) -> ManifestView {
    let manifests::ManifestView { manifest, facts, facts_digest, built_by, work_order_id } = stored;
    ManifestView { manifest, facts, facts_digest: facts_digest.to_string(), built_by, work_order_id }
}

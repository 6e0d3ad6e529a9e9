//! Session manifests: who wants one, what was asked for it, and what it says.

use super::captures::{self, the_one};
use super::operating::Answer;
use super::tracks::COUNTED_MAX;
use super::{Cell, Row, Sql, Stage, azollas, claims, notices, reading};
use crate::error::StoreResult;
use fernery_core::artifact::{
    AzollaId, Event, EventId, EventType, ManifestId, Objective, PauseState, QueryStatus, SessionManifest,
    SubstrateQuery, SubstrateQueryResponse, TerminalReason, WorkorderId,
};
use fernery_core::blueprint::ReadableArtifact;
use fernery_core::canonical::{self, Digest};
use fernery_core::inbox::facts::{Asked, Facts, Told};
use serde::Serialize;
use std::collections::BTreeMap;

/// A question to an azolla, and what came back.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    /// What was asked.
    pub query: SubstrateQuery,
    /// What was answered.
    pub response: SubstrateQueryResponse,
    /// Where it is, if it is not here.
    pub server: Option<String>,
}

/// A manifest with what the control plane keeps beside it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ManifestView {
    /// The artifact.
    #[serde(flatten)]
    pub manifest: SessionManifest,
    /// What it was made of.
    pub facts: Facts,
    /// Of what matters in them.
    pub facts_digest: Digest,
    /// Who made it: `builtin`, a model, a command; and why the built-in one stood in, if it did.
    pub built_by: String,
    /// Its workorder.
    pub work_order_id: WorkorderId,
}

fn view(row: &Row) -> StoreResult<ManifestView> {
    Ok(ManifestView {
        manifest: row.json(0)?,
        facts: row.json(1)?,
        facts_digest: row.word(2)?,
        built_by: row.text(3)?.to_string(),
        work_order_id: row.word(4)?,
    })
}

/// The azolla that makes manifests: the one that is named, or the only one there is.
pub fn maker_of(sql: &mut dyn Sql, named: Option<&AzollaId>) -> Answer<AzollaId> {
    the_one(sql, named, "orientation", |blueprint| blueprint.manifest.is_some())
}

/// Asks for a manifest. While a request waits, that one is it.
pub fn request(sql: &mut dyn Sql, azolla_id: &AzollaId, request_id: &str) -> StoreResult<Event> {
    sql.query(include_str!("sql/azolla_lock.sql"), &[azolla_id.as_str().into()])?;
    let of = EventType::ManifestRequested;
    let cells = [azolla_id.as_str().into(), of.as_str().into()];
    if let Some(row) = sql.one(include_str!("sql/event_open_of_type.sql"), &cells)? {
        return reading::event(&row);
    }
    let now = sql.now();
    emit(sql, azolla_id, request_id)?;
    Ok(Event {
        event_id: state_of(sql, request_id)?.map_or_else(claims::event_id, |state| state.event.event_id),
        event_type: of,
        resource_id: request_id.to_string(),
        azolla_id: azolla_id.clone(),
        created_at: now,
        processed: false,
    })
}

fn emit(sql: &mut dyn Sql, azolla_id: &AzollaId, request_id: &str) -> StoreResult<()> {
    let event_id = claims::event_id();
    let cells: [Cell<'_>; 6] = [
        event_id.as_str().into(),
        azolla_id.as_str().into(),
        EventType::ManifestRequested.as_str().into(),
        request_id.into(),
        1.into(),
        sql.now().into(),
    ];
    sql.query(include_str!("sql/event_insert.sql"), &cells)?;
    sql.wakes(Stage::Manifest);
    Ok(())
}

/// Emits the request that the schedule of an azolla has come to, if it has; whoever else looks finds it by its time.
pub fn fire(sql: &mut dyn Sql, azolla_id: &AzollaId) -> StoreResult<bool> {
    let Some(registered) = azollas::in_force(sql, azolla_id)? else { return Ok(false) };
    let schedule = registered.blueprint.manifest.as_ref().and_then(|manifest| manifest.schedule.as_ref());
    let Some(schedule) = schedule else { return Ok(false) };
    let (now, line) = (sql.calendar(), canonical::text_of(schedule));
    let known = sql.one(include_str!("sql/fire_last.sql"), &[azolla_id.as_str().into()])?;
    // What a schedule would have done before it was there is not made up for.
    let known = match known {
        Some(row) if row.text(1)? == line => row.at(0)?,
        _ => {
            let cells = [azolla_id.as_str().into(), now.into(), (&line).into()];
            sql.touched(include_str!("sql/fire_seen.sql"), &cells)?;
            return Ok(false);
        }
    };
    let Some(due) = schedule.due(known, now) else { return Ok(false) };
    let of = Digest::of_bytes(azolla_id.as_str().as_bytes()).to_string();
    emit(sql, azolla_id, &format!("at-{}-{}", due.as_millis(), &of[..8]))?;
    // Also past times that are left out are looked at once.
    let raised = sql.touched(include_str!("sql/fire_raise.sql"), &[azolla_id.as_str().into(), due.into()])?;
    Ok(raised == 1)
}

/// Where a request stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestState {
    /// The event.
    #[serde(flatten)]
    pub event: Event,
    /// Why it needs no more looking at.
    pub reason: Option<TerminalReason>,
    /// The workorder that was made of it.
    pub work_order_id: Option<WorkorderId>,
    /// What came of it, or what still holds where nothing has changed.
    pub manifest: Option<ManifestView>,
}

/// Where a request stands; `None`: there is none.
pub fn state_of(sql: &mut dyn Sql, request_id: &str) -> StoreResult<Option<RequestState>> {
    let cells = [EventType::ManifestRequested.as_str().into(), request_id.into()];
    let row = sql.one(include_str!("sql/event_processed_by_request.sql"), &cells)?;
    let Some(row) = row else { return Ok(None) };
    let (event, reason) = (reading::event(&row)?, row.maybe_word(7)?);
    let work_order_id: Option<WorkorderId> = row.maybe_word(8)?;
    let manifest = match (&work_order_id, reason) {
        (Some(work), _) => of_workorder(sql, work)?,
        (None, Some(TerminalReason::Unchanged)) => match last(sql, &event.azolla_id)? {
            Some(manifest) => Some(asked_again(sql, &event, manifest)?),
            None => None,
        },
        _ => None,
    };
    Ok(Some(RequestState { event, reason, work_order_id, manifest }))
}

/// The manifest that still holds, with what this request found out: who answered when, and how many captures wait.
fn asked_again(sql: &mut dyn Sql, event: &Event, mut manifest: ManifestView) -> StoreResult<ManifestView> {
    let answers = queries_of(sql, &event.event_id)?;
    for asked in &mut manifest.facts.asked {
        let of_it = answers.iter().filter(|(query, _)| query.target_azolla_id == asked.azolla_id);
        for (n, (query, response)) in of_it.enumerate() {
            if n == 0 {
                (asked.status, asked.as_of) = (QueryStatus::Ok, None);
            }
            match response.status {
                QueryStatus::Ok => asked.as_of = asked.as_of.max(Some(response.created_at)),
                // One that did not tell its objectives did not answer.
                status if query.artifact_type == ReadableArtifact::Objective => asked.status = status,
                _ => {}
            }
        }
    }
    manifest.facts.pending_captures = captures::pending(sql, &event.azolla_id, COUNTED_MAX)?;
    Ok(manifest)
}

/// Writes down what was asked, and how it was answered. What was found is in the snapshot, as far as it matters: kept here as
/// well, it would be every open objective at every look.
pub(super) fn record(
    sql: &mut dyn Sql,
    azolla_id: &AzollaId,
    event_id: &EventId,
    answered: &[Answered],
) -> StoreResult<()> {
    for one in answered {
        let response = SubstrateQueryResponse { results: Vec::new(), ..one.response.clone() };
        let (query, response) = (canonical::text_of(&one.query), canonical::text_of(&response));
        let cells: [Cell<'_>; 6] = [
            one.query.query_id.as_str().into(),
            azolla_id.as_str().into(),
            event_id.as_str().into(),
            one.query.created_at.into(),
            (&query).into(),
            (&response).into(),
        ];
        sql.write_new(include_str!("sql/query_insert.sql"), &cells)?;
    }
    Ok(())
}

/// What was asked for an event, and answered.
pub fn queries_of(
    sql: &mut dyn Sql,
    event_id: &EventId,
) -> StoreResult<Vec<(SubstrateQuery, SubstrateQueryResponse)>> {
    sql.query(include_str!("sql/queries_of_event.sql"), &[event_id.as_str().into()])?
        .iter()
        .map(|row| Ok((row.json(0)?, row.json(1)?)))
        .collect()
}

/// What each azolla told, over all that it was asked. One that did not tell its objectives did not answer.
pub(super) fn told(answered: &[Answered]) -> Vec<Told> {
    let mut by_azolla: BTreeMap<&AzollaId, Told> = BTreeMap::new();
    for Answered { query, response, server } in answered {
        let told = by_azolla.entry(&query.target_azolla_id).or_insert_with(|| Told {
            asked: Asked {
                azolla_id: query.target_azolla_id.clone(),
                status: QueryStatus::Ok,
                server: server.clone(),
                as_of: None,
            },
            objectives: Vec::new(),
            pauses: Vec::new(),
            clocks: BTreeMap::new(),
        });
        if response.status != QueryStatus::Ok {
            if query.artifact_type == ReadableArtifact::Objective {
                told.asked.status = response.status;
            }
            continue;
        }
        told.asked.as_of = Some(response.created_at);
        match query.artifact_type {
            ReadableArtifact::Objective => told.objectives.extend(read::<Objective>(&response.results)),
            ReadableArtifact::PauseState => told.pauses.extend(read::<PauseState>(&response.results)),
            ReadableArtifact::BlockerRef => {}
        }
    }
    by_azolla.into_values().collect()
}

/// What has the form that was asked for: another instance may be of another version, or lie.
fn read<T: serde::de::DeserializeOwned>(results: &[serde_json::Value]) -> Vec<T> {
    results.iter().filter_map(|value| serde_json::from_value(value.clone()).ok()).collect()
}

/// Stores a manifest.
pub(super) fn insert(
    sql: &mut dyn Sql,
    manifest: &SessionManifest,
    facts: &Facts,
    built_by: &str,
    work: &WorkorderId,
) -> StoreResult<()> {
    let (document, digest) = (canonical::text_of(manifest), facts.digest().to_string());
    let facts = canonical::text_of(facts);
    let cells: [Cell<'_>; 8] = [
        manifest.manifest_id.as_str().into(),
        manifest.azolla_id.as_str().into(),
        work.as_str().into(),
        manifest.created_at.into(),
        (&digest).into(),
        (&facts).into(),
        built_by.into(),
        (&document).into(),
    ];
    sql.write(work.as_str(), include_str!("sql/manifest_insert.sql"), &cells)?;
    notices::of_manifest(sql, manifest.manifest_id.as_str())
}

/// What the newest was made of.
pub(super) fn last_digest(sql: &mut dyn Sql, azolla_id: &AzollaId) -> StoreResult<Option<Digest>> {
    let row = sql.one(include_str!("sql/manifest_last.sql"), &[azolla_id.as_str().into()])?;
    row.map(|row| row.word(2)).transpose()
}

/// The newest.
pub fn last(sql: &mut dyn Sql, azolla_id: &AzollaId) -> StoreResult<Option<ManifestView>> {
    let row = sql.one(include_str!("sql/manifest_last.sql"), &[azolla_id.as_str().into()])?;
    row.map(|row| view(&row)).transpose()
}

/// One of them.
pub fn by_id(sql: &mut dyn Sql, id: &ManifestId) -> StoreResult<Option<ManifestView>> {
    let row = sql.one(include_str!("sql/manifest_by_id.sql"), &[id.as_str().into()])?;
    row.map(|row| view(&row)).transpose()
}

fn of_workorder(sql: &mut dyn Sql, id: &WorkorderId) -> StoreResult<Option<ManifestView>> {
    let row = sql.one(include_str!("sql/manifest_of_workorder.sql"), &[id.as_str().into()])?;
    row.map(|row| view(&row)).transpose()
}

/// The newest of an azolla below a place.
pub fn page(
    sql: &mut dyn Sql,
    azolla_id: &AzollaId,
    below: &reading::Below,
    limit: i64,
) -> StoreResult<Vec<ManifestView>> {
    let cells = [below.at.into(), (&below.id).into(), limit.into(), azolla_id.as_str().into()];
    sql.query(include_str!("sql/manifests_page.sql"), &cells)?.iter().map(view).collect()
}

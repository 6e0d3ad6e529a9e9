//! Session manifests: requests for them, the queries to other azollas, and the results.

use super::captures::{self, the_one};
use super::tracks::COUNTED_MAX;
use super::{answers, notices};
use crate::door;
use crate::error::{StoreError, StoreResult};
use crate::pipeline::acts::Answer;
use crate::pipeline::{Cell, Row, Sql, Stage, azollas, reading};
use fernery_core::artifact::{
    AzollaId, Event, EventId, EventType, ManifestId, QueryStatus, SessionManifest, TerminalReason,
    WorkorderId,
};
use fernery_core::canonical::{self, Digest};
use fernery_core::inbox::facts::Facts;
use serde::Serialize;

/// A manifest with what the control plane keeps beside it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ManifestView {
    #[serde(flatten)]
    pub manifest: SessionManifest,
    /// What it was made of.
    pub facts: Facts,
    /// Digest of the facts that matter ([`Facts::digest`]); if it is equal, no new manifest is needed.
    pub facts_digest: Digest,
    /// Who made it: `builtin`, a model, a command; and why the built-in one stood in, if it did.
    pub built_by: String,
    pub work_order_id: WorkorderId,
}

fn view(row: &Row) -> StoreResult<ManifestView> {
    Ok(ManifestView {
        manifest: row.json("document")?,
        facts: row.json("facts")?,
        facts_digest: row.word("facts_digest")?,
        built_by: row.text("built_by")?.to_string(),
        work_order_id: row.word("work_order_id")?,
    })
}

/// The azolla that makes manifests: the one that is named, or the only one there is.
pub fn maker_of(sql: &mut dyn Sql, named: Option<&AzollaId>) -> Answer<AzollaId> {
    the_one(sql, named, "orientation", |blueprint| blueprint.manifest.is_some())
}

/// Asks for a manifest. While a request waits, that one is it.
pub fn request(sql: &mut dyn Sql, azolla_id: &AzollaId, request_id: &str) -> StoreResult<RequestState> {
    sql.query(include_str!("../sql/azolla_lock.sql"), &[azolla_id.as_str().into()])?;
    let of = EventType::ManifestRequested;
    let cells = [azolla_id.as_str().into(), of.as_str().into()];
    let waiting = match sql.one(include_str!("../sql/event_open_request.sql"), &cells)? {
        Some(row) => row.text("asked_as")?.to_string(),
        None => {
            emit(sql, azolla_id, For::Request(request_id))?;
            request_id.to_string()
        }
    };
    state_of(sql, &waiting)?.ok_or_else(|| StoreError::Corrupt(format!("request {waiting} is gone")))
}

/// Who wants a manifest.
enum For<'a> {
    /// A person, or the schedule.
    Request(&'a str),
    /// Nobody new: the run of this workorder failed, and the built-in rules stand in for it.
    StandIn(&'a WorkorderId),
}

/// How often a request looks for a number that nobody else took at the same time.
const NUMBERS_TRIED: usize = 100;

/// Emits MANIFEST_REQUESTED for the azolla, once for each request and each workorder.
fn emit(sql: &mut dyn Sql, azolla_id: &AzollaId, wanted: For<'_>) -> StoreResult<()> {
    let (event_id, of) = (EventId::stored(&door::artifact_id()), EventType::ManifestRequested.as_str());
    let (request, instead) = match wanted {
        For::Request(id) => (Some(id), None),
        For::StandIn(id) => (None, Some(id.as_str())),
    };
    let cells: [Cell<'_>; 6] = [
        event_id.as_str().into(),
        azolla_id.as_str().into(),
        of.into(),
        sql.now().into(),
        request.into(),
        instead.into(),
    ];
    sql.wakes(Stage::Manifest);
    for _ in 0..NUMBERS_TRIED {
        if !sql.query(include_str!("../sql/event_request_insert.sql"), &cells)?.is_empty() {
            return Ok(());
        }
        let known = match wanted {
            For::Request(id) => {
                sql.one(include_str!("../sql/event_by_request.sql"), &[of.into(), id.into()])?
            }
            For::StandIn(id) => {
                sql.one(include_str!("../sql/event_standing_in.sql"), &[id.as_str().into()])?
            }
        };
        if known.is_some() {
            return Ok(());
        }
    }
    Err(StoreError::Unavailable(format!("too many requests for a manifest of {azolla_id} at once")))
}

/// Has the built-in rules stand in for a workorder whose run failed: a request, a workorder and a run of their own.
pub(crate) fn stand_in(sql: &mut dyn Sql, azolla_id: &AzollaId, failed: &WorkorderId) -> StoreResult<()> {
    emit(sql, azolla_id, For::StandIn(failed))
}

/// Emits the request that the schedule of an azolla has come to, if it has; whoever else looks finds it by its time.
pub fn fire(sql: &mut dyn Sql, azolla_id: &AzollaId) -> StoreResult<bool> {
    let Some(registered) = azollas::in_force(sql, azolla_id)? else { return Ok(false) };
    let schedule = registered.blueprint.manifest.as_ref().and_then(|manifest| manifest.schedule.as_ref());
    let Some(schedule) = schedule else { return Ok(false) };
    let (now, line) = (sql.calendar(), canonical::text_of(schedule));
    let known = sql.one(include_str!("../sql/fire_last.sql"), &[azolla_id.as_str().into()])?;
    // What a schedule would have done before it was there is not made up for.
    let known = match known {
        Some(row) if row.text("schedule")? == line => row.at("fired_at")?,
        _ => {
            let cells = [azolla_id.as_str().into(), now.into(), (&line).into()];
            sql.touched(include_str!("../sql/fire_seen.sql"), &cells)?;
            return Ok(false);
        }
    };
    let Some(due) = schedule.due(known, now) else { return Ok(false) };
    let of = Digest::of_bytes(azolla_id.as_str().as_bytes()).to_string();
    emit(sql, azolla_id, For::Request(&format!("at-{}-{}", due.as_millis(), &of[..8])))?;
    // Also past times that are left out are looked at once.
    let raised =
        sql.touched(include_str!("../sql/fire_raise.sql"), &[azolla_id.as_str().into(), due.into()])?;
    Ok(raised == 1)
}

/// Where a request stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestState {
    pub request_id: String,
    #[serde(flatten)]
    pub event: Event,
    /// Why it needs no more looking at.
    pub reason: Option<TerminalReason>,
    /// The workorder that was made of it.
    pub work_order_id: Option<WorkorderId>,
    /// What came of it, or what still holds where nothing has changed.
    pub manifest: Option<ManifestView>,
    /// Why nothing comes of it.
    pub failed: Option<String>,
}

/// Where a request stands; `None`: there is none.
pub fn state_of(sql: &mut dyn Sql, request_id: &str) -> StoreResult<Option<RequestState>> {
    let cells = [EventType::ManifestRequested.as_str().into(), request_id.into()];
    let row = sql.one(include_str!("../sql/event_by_request.sql"), &cells)?;
    let Some(row) = row else { return Ok(None) };
    let mut state = RequestState {
        request_id: request_id.to_string(),
        event: reading::event(&row)?,
        reason: row.maybe_word("reason")?,
        work_order_id: row.maybe_word("work_order_id")?,
        manifest: None,
        failed: None,
    };
    outcome(sql, &row, &mut state)?;
    // Its run failed: what the built-in rules made in its place is what came of it.
    if state.manifest.is_none()
        && let Some(failed) = &state.work_order_id
        && let Some(row) = sql.one(include_str!("../sql/event_standing_in.sql"), &[failed.as_str().into()])?
    {
        outcome(sql, &row, &mut state)?;
    }
    Ok(Some(state))
}

/// What to do where a page has nobody to ask.
const NOBODY_TO_ASK: &str = "no azolla was asked: host one that [reads] in the blueprint names, or add one of another server to [registry]";

/// What came of one event.
fn outcome(sql: &mut dyn Sql, row: &Row, state: &mut RequestState) -> StoreResult<()> {
    let (event, reason, work) =
        (reading::event(row)?, row.maybe_word("reason")?, row.maybe_word("work_order_id")?);
    (state.manifest, state.failed) = match (work, reason) {
        (Some(work), _) => match of_workorder(sql, &work)? {
            Some(manifest) => (Some(manifest), None),
            None => (None, reading::run_of(sql, &work)?.map(|run| run.record.gate_reason)),
        },
        (None, Some(TerminalReason::Unchanged)) => match last(sql, &event.azolla_id)? {
            Some(manifest) => (Some(asked_again(sql, &event, manifest)?), None),
            None => (None, None),
        },
        (None, Some(TerminalReason::NobodyToAsk)) => (None, Some(NOBODY_TO_ASK.to_string())),
        _ => (None, None),
    };
    Ok(())
}

/// The manifest that still holds, with what this request found out: who answered when, and how many captures wait.
fn asked_again(sql: &mut dyn Sql, event: &Event, mut manifest: ManifestView) -> StoreResult<ManifestView> {
    let answers = answers::of_event(sql, &event.event_id)?;
    for asked in &mut manifest.facts.asked {
        let of_it = || answers.iter().filter(|view| view.query.target_azolla_id == asked.azolla_id);
        if let Some(status) = answers::status(of_it().map(|view| &view.response)) {
            let answered = of_it().filter(|view| view.response.status == QueryStatus::Ok);
            asked.as_of = answered.map(|view| view.response.created_at).max();
            asked.status = status;
        }
    }
    manifest.facts.pending_captures = captures::pending(sql, &event.azolla_id, COUNTED_MAX)?.0;
    Ok(manifest)
}

pub(crate) fn insert(
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
    sql.write(work.as_str(), include_str!("../sql/manifest_insert.sql"), &cells)?;
    notices::of_manifest(sql, manifest.manifest_id.as_str())
}

/// What the newest was made of.
pub(crate) fn last_digest(sql: &mut dyn Sql, azolla_id: &AzollaId) -> StoreResult<Option<Digest>> {
    let row = sql.one(include_str!("../sql/manifest_last.sql"), &[azolla_id.as_str().into()])?;
    row.map(|row| row.word("facts_digest")).transpose()
}

pub fn last(sql: &mut dyn Sql, azolla_id: &AzollaId) -> StoreResult<Option<ManifestView>> {
    let row = sql.one(include_str!("../sql/manifest_last.sql"), &[azolla_id.as_str().into()])?;
    row.map(|row| view(&row)).transpose()
}

pub fn by_id(sql: &mut dyn Sql, id: &ManifestId) -> StoreResult<Option<ManifestView>> {
    let row = sql.one(include_str!("../sql/manifest_by_id.sql"), &[id.as_str().into()])?;
    row.map(|row| view(&row)).transpose()
}

fn of_workorder(sql: &mut dyn Sql, id: &WorkorderId) -> StoreResult<Option<ManifestView>> {
    let row = sql.one(include_str!("../sql/manifest_of_workorder.sql"), &[id.as_str().into()])?;
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
    sql.query(include_str!("../sql/manifests_page.sql"), &cells)?.iter().map(view).collect()
}

/// The newest of all azollas below a place.
pub(crate) fn page_of_all(
    sql: &mut dyn Sql,
    below: &reading::Below,
    limit: i64,
) -> StoreResult<Vec<ManifestView>> {
    let cells = [below.at.into(), (&below.id).into(), limit.into()];
    sql.query(include_str!("../sql/manifests_page_all.sql"), &cells)?.iter().map(view).collect()
}

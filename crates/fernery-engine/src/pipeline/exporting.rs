//! The parts of an export other than tickets, as files of its folder: the inbox, the standing objectives with their
//! runs, pauses about objectives of other azollas, imported attempts, links between tickets, snoozes. Read-only.
//!
//! A part is read in pages from the newest row down (those without an instant: from the highest id down); a page ends when it has
//! enough bytes. The journal shows whether something changed meanwhile; then the parts are read again.

use super::inbox::recurrences::{self, Recurrence};
use super::inbox::{answers, candidates, captures, manifests};
use super::reading::{self, Below, Paused, WorkorderView};
use super::{Sql, after, objectives, snoozes};
use crate::error::StoreResult;
use fernery_core::artifact::{AzollaId, EventType, ObjectiveId, WorkorderId};
use fernery_core::canonical::Digest;
use fernery_core::exported::{
    BesideCapture, BesideEvent, BesideManifest, BesideObjective, BesideOverdue, BesideQuery, BesideRun,
    BesideWorkorder, CandidateRecord, File,
};
use fernery_core::pipeline::happened::PauseKind;
use fernery_core::{Timestamp, limits, words};

words!(
    /// The parts, in the order in which an export reads them. Some rows are written without a journal entry; parts that refer
    /// to such rows are read before them.
    Part {
        /// Which ticket waits for which.
        Dependencies = "dependencies",
        /// Lines that come again.
        Recurrences = "recurrences",
        /// What is out of sight.
        Snoozes = "snoozes",
        /// Standing objectives and their pauses; one page.
        Standing = "standing",
        /// Events of captures and of requests for a manifest.
        Events = "events",
        /// Workorders of standing objectives, with what they asked, what came out and what the gates said.
        Workorders = "workorders",
        /// Ended attempts of all workorders.
        Attempts = "attempts",
        /// Candidates.
        Candidates = "candidates",
        /// Captures.
        Captures = "captures",
        /// Session manifests.
        Manifests = "manifests",
        /// Queries between azollas, and the answers.
        Queries = "queries",
        /// Pauses of one azolla about objectives of others.
        Overdue = "overdue",
    }
);

/// Some files, and where the next ones begin.
#[derive(Debug, Default)]
pub struct Page {
    pub files: Vec<File>,
    /// The place below which the next page begins; `None`: this was the last page.
    pub next: Option<Below>,
    /// Workorders of this page whose attempts may belong to a job of this instance.
    pub workorders: Vec<WorkorderId>,
}

impl Page {
    /// Takes rows until there are enough bytes.
    fn of<T>(
        rows: &[T],
        limit: i64,
        place: impl Fn(&T) -> (Timestamp, String),
        mut files: impl FnMut(&T) -> StoreResult<Vec<File>>,
    ) -> StoreResult<Self> {
        let (mut page, mut bytes) = (Self::default(), 0);
        for (n, row) in rows.iter().enumerate() {
            let found = files(row)?;
            bytes += found.iter().map(|file| file.text.len()).sum::<usize>();
            page.files.extend(found);
            let full = bytes >= limits::EXPORT_PAGE_BYTES;
            let last = n + 1 == rows.len();
            if full || last {
                let more = !last || i64::try_from(rows.len()).is_ok_and(|read| read >= limit);
                let (at, id) = place(row);
                page.next = more.then_some(Below { at, id });
                break;
            }
        }
        Ok(page)
    }
}

/// Reads a page of a part, of up to `limit` rows below a place.
pub fn page(sql: &mut dyn Sql, part: Part, below: &Below, limit: i64) -> StoreResult<Page> {
    match part {
        Part::Dependencies => {
            let rows = after::page(sql, below.id.split_once('.').unwrap_or((&below.id, "")), limit)?;
            Page::of(
                &rows,
                limit,
                |row| (below.at, row.name()),
                |row| Ok(vec![File::of("dependencies", row.name(), row)]),
            )
        }
        Part::Recurrences => {
            let rows = recurrences::page(sql, &below.id, limit)?;
            let place = |row: &Recurrence| (below.at, row.recurrence_id.to_string());
            Page::of(&rows, limit, place, |row| Ok(vec![File::of("recurrences", &row.recurrence_id, row)]))
        }
        Part::Snoozes => {
            let rows = snoozes::page(sql, below.id.split_once('.').unwrap_or((&below.id, "")), limit)?;
            Page::of(
                &rows,
                limit,
                |row| (below.at, row.name()),
                |row| Ok(vec![File::of("snoozes", row.name(), row)]),
            )
        }
        Part::Standing => standing(sql),
        Part::Events => events(sql, below, limit),
        Part::Workorders => workorders(sql, below, limit),
        Part::Attempts => attempts(sql, below, limit),
        Part::Captures => {
            let rows = captures::page(sql, below, limit)?;
            Page::of(
                &rows,
                limit,
                |row| (row.capture.created_at, row.capture.capture_id.to_string()),
                |row| Ok(capture(row)),
            )
        }
        Part::Candidates => {
            let rows = candidates::page(sql, below, limit)?;
            Page::of(
                &rows,
                limit,
                |row| (row.created_at, row.candidate_id.to_string()),
                |row| candidate(sql, row),
            )
        }
        Part::Manifests => {
            let rows = manifests::page_of_all(sql, below, limit)?;
            Page::of(
                &rows,
                limit,
                |row| (row.manifest.created_at, row.manifest.manifest_id.to_string()),
                |row| Ok(manifest(row)),
            )
        }
        Part::Queries => {
            let rows = answers::page_of_all(sql, below, limit)?;
            Page::of(
                &rows,
                limit,
                |(row, _)| (row.query.created_at, row.query.query_id.to_string()),
                |(row, by)| Ok(query(row, by)),
            )
        }
        Part::Overdue => overdue(sql, below, limit),
    }
}

/// Events of captures and of requests for a manifest; those of tickets come with their tickets.
fn events(sql: &mut dyn Sql, below: &Below, limit: i64) -> StoreResult<Page> {
    let rows = reading::events(sql, below, limit)?;
    Page::of(
        &rows,
        limit,
        |row| (row.event.created_at, row.event.event_id.to_string()),
        |row| {
            let of_inbox = row.event.event_type != EventType::TicketReady;
            Ok(if of_inbox { event(row) } else { Vec::new() })
        },
    )
}

fn workorders(sql: &mut dyn Sql, below: &Below, limit: i64) -> StoreResult<Page> {
    let duties = duties(sql)?;
    let rows = reading::workorders(sql, below, limit)?;
    Page::of(&rows, limit, place_of_workorder, |row| match duties.contains(&row.workorder.objective_id) {
        true => workorder(sql, row),
        false => Ok(Vec::new()),
    })
}

fn attempts(sql: &mut dyn Sql, below: &Below, limit: i64) -> StoreResult<Page> {
    let rows = reading::workorders(sql, below, limit)?;
    let mut page = Page::of(&rows, limit, place_of_workorder, |row| {
        let past = reading::past_attempts(sql, &row.workorder.work_order_id)?;
        Ok(past.iter().map(|attempt| File::of("attempts", attempt.attempt_id, attempt)).collect())
    })?;
    let end = page.next.as_ref().map(|next| (next.at, next.id.clone()));
    let here = rows.iter().take_while(|row| end.as_ref().is_none_or(|end| place_of_workorder(row) >= *end));
    page.workorders = here.map(|row| row.workorder.work_order_id.clone()).collect();
    Ok(page)
}

fn overdue(sql: &mut dyn Sql, below: &Below, limit: i64) -> StoreResult<Page> {
    let rows = reading::pauses(sql, below, limit)?;
    Page::of(
        &rows,
        limit,
        |row| (row.pause.created_at, row.key.clone()),
        |Paused { pause, key, .. }| {
            if PauseKind::of(key) != Some(PauseKind::Overdue) {
                return Ok(Vec::new());
            }
            let name = Digest::of_bytes(key.as_bytes());
            let beside = BesideOverdue { pause_key: key.clone() };
            Ok(pair("overdue_pause_states", name, pause, &beside))
        },
    )
}

/// The file of an artifact, and the file with what the control plane keeps beside it.
fn pair(
    folder: &str,
    name: impl std::fmt::Display,
    artifact: &impl serde::Serialize,
    beside: &impl serde::Serialize,
) -> Vec<File> {
    vec![File::of(folder, &name, artifact), File::of(&format!("beside/{folder}"), &name, beside)]
}

fn place_of_workorder(row: &WorkorderView) -> (Timestamp, String) {
    (row.workorder.created_at, row.workorder.work_order_id.to_string())
}

fn standing_rows(sql: &mut dyn Sql) -> StoreResult<Vec<objectives::ObjectiveRow>> {
    let rows = sql.query(include_str!("sql/objectives_standing.sql"), &[])?;
    rows.iter().map(|row| objectives::objective_row(row, Vec::new())).collect()
}

fn duties(sql: &mut dyn Sql) -> StoreResult<Vec<ObjectiveId>> {
    Ok(standing_rows(sql)?.into_iter().map(|standing| standing.objective.objective_id).collect())
}

fn standing(sql: &mut dyn Sql) -> StoreResult<Page> {
    let mut page = Page::default();
    for standing in standing_rows(sql)? {
        let objectives::ObjectiveRow { objective, unconfirmed, failures, spent, .. } = standing;
        let id = &objective.objective_id;
        let beside = BesideObjective { approval: None, unconfirmed, failures, spent };
        page.files.extend(pair("objectives", id, &objective, &beside));
        let pauses = sql.query(include_str!("sql/pauses_of_objective.sql"), &[id.as_str().into()])?;
        for (n, row) in (1..).zip(&pauses) {
            let pause: fernery_core::artifact::PauseState = row.json(0)?;
            page.files.push(File::of("pause_states", format!("{id}.{n}"), &pause));
        }
    }
    Ok(page)
}

fn event(row: &reading::EventView) -> Vec<File> {
    let beside = BesideEvent {
        entry: row.entry,
        reason: row.reason,
        work_order_id: row.work_order_id.clone(),
        request_id: row.request_id.clone(),
        stands_in_for: row.stands_in_for.clone(),
    };
    pair("events", &row.event.event_id, &row.event, &beside)
}

fn workorder(sql: &mut dyn Sql, row: &WorkorderView) -> StoreResult<Vec<File>> {
    let id = &row.workorder.work_order_id;
    let beside = BesideWorkorder {
        azolla_id: row.azolla_id.clone(),
        event_id: row.event_id.clone(),
        blueprint: row.blueprint,
        spent_ms: row.spent_ms,
        executed_at: row.executed_at,
        output_id: row.output_id.clone(),
        judged: row.judged,
        gate_tries: row.gate_tries,
        cancelled: row.cancelled,
        claim_version: row.claim_version,
    };
    let mut files = pair("workorders", id, &row.workorder, &beside);
    if let Some(snapshot) = reading::snapshot(sql, &row.workorder.context_snapshot_id)? {
        files.push(File::of("context_snapshots", &snapshot.snapshot_id, &snapshot));
    }
    if let Some(bundle) = reading::bundle(sql, id)? {
        files.push(File::of("output_bundles", &bundle.output_id, &bundle));
    }
    if let Some(run) = reading::run_of(sql, id)? {
        let beside = BesideRun { evidence: run.evidence };
        files.extend(pair("run_records", &run.record.run_id, &run.record, &beside));
    }
    Ok(files)
}

fn capture(row: &captures::CaptureView) -> Vec<File> {
    let beside = BesideCapture {
        raw_hex: row.raw_hex.clone(),
        ready_at: row.ready_at,
        tries: row.tries,
        held: row.held,
        work_order_id: row.work_order_id.clone(),
    };
    pair("capture_buffers", &row.capture.capture_id, &row.capture, &beside)
}

fn candidate(sql: &mut dyn Sql, row: &candidates::CandidateView) -> StoreResult<Vec<File>> {
    let captured = candidates::captures_of(sql, &row.candidate_id)?;
    let (row, draft) = (row.clone(), row.draft.clone());
    let record = CandidateRecord {
        candidate_id: row.candidate_id,
        azolla_id: row.azolla_id,
        work_order_id: row.work_order_id,
        capture_ids: captured.into_iter().map(|captured| captured.capture.capture_id).collect(),
        title: draft.title,
        acceptance_criteria: draft.acceptance_criteria,
        importance: draft.importance,
        urgency: draft.urgency,
        metadata: draft.metadata,
        made_by: row.made_by,
        status: row.status,
        objective_id: row.objective_id,
        merged_into: row.merged_into,
        created_at: row.created_at,
        updated_at: row.updated_at,
    };
    Ok(vec![File::of("candidates", &record.candidate_id, &record)])
}

fn manifest(row: &manifests::ManifestView) -> Vec<File> {
    let beside = BesideManifest {
        facts: row.facts.clone(),
        facts_digest: row.facts_digest,
        built_by: row.built_by.clone(),
        work_order_id: row.work_order_id.clone(),
    };
    pair("session_manifests", &row.manifest.manifest_id, &row.manifest, &beside)
}

fn query(row: &answers::QueryView, azolla_id: &AzollaId) -> Vec<File> {
    let answers::QueryView { query, response, event_id, results_told } = row;
    let beside = BesideQuery {
        azolla_id: azolla_id.clone(),
        event_id: event_id.clone(),
        response_id: response.response_id.clone(),
        results_told: *results_told,
    };
    let mut files = pair("substrate_queries", &query.query_id, query, &beside);
    files.push(File::of("substrate_query_responses", &response.response_id, response));
    files
}

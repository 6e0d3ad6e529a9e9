//! Writes the parts of an exported folder other than tickets.

use super::recurrences;
use crate::error::{StoreError, StoreResult};
use crate::pipeline::importing::{put, write_objective};
use crate::pipeline::{Cell, Sql, objectives};
use fernery_core::artifact::{AzollaId, CandidateId, Objective, ObjectiveId, WorkorderId};
use fernery_core::canonical;
use fernery_core::exported::{BesideObjective, CandidateRecord, Exported, Kept};
use fernery_core::inbox::deadline;

/// Folder, name and azolla of each file that belongs to an azolla, objectives aside.
pub(crate) fn belongings(all: &Exported) -> impl Iterator<Item = (&'static str, &String, &AzollaId)> {
    let captures = all.captures.iter().map(|(id, c)| ("capture_buffers", id, &c.artifact.azolla_id));
    let candidates = all.candidates.iter().map(|(id, c)| ("candidates", id, &c.azolla_id));
    let events = all.events.iter().map(|(id, e)| ("events", id, &e.artifact.azolla_id));
    let manifests = all.manifests.iter().map(|(id, m)| ("session_manifests", id, &m.artifact.azolla_id));
    let queries = all.queries.iter().map(|(id, q)| ("substrate_queries", id, &q.beside.azolla_id));
    let overdue = all.overdue.iter().map(|(id, o)| ("overdue_pause_states", id, &o.artifact.azolla_id));
    let recurrences = all.recurrences.iter().map(|(id, r)| ("recurrences", id, &r.azolla_id));
    captures.chain(recurrences).chain(candidates).chain(events).chain(manifests).chain(queries).chain(overdue)
}

/// A standing objective. The blueprint in force here has written one down already, unless it calls it by another name.
pub(crate) fn write_standing(sql: &mut dyn Sql, kept: &Kept<Objective, BesideObjective>) -> StoreResult<()> {
    let Objective { objective_id, azolla_id, created_at, updated_at, .. } = &kept.artifact;
    if objectives::lock(sql, objective_id)?.is_none() {
        return write_objective(sql, kept, 0);
    }
    let cells =
        [objective_id.as_str().into(), azolla_id.as_str().into(), (*created_at).into(), (*updated_at).into()];
    match sql.touched(include_str!("../sql/standing_arrives.sql"), &cells)? {
        1 => Ok(()),
        _ => Err(StoreError::Refused(format!(
            "{objective_id} is another objective in this instance; nothing was imported"
        ))),
    }
}

/// Writes everything; `entry` tells how often CAPTURE_READY was emitted for a capture.
pub(crate) fn write(sql: &mut dyn Sql, all: &Exported, entry: impl Fn(&str) -> i64) -> StoreResult<()> {
    for (id, Kept { artifact: capture, beside }) in &all.captures {
        let cells: [Cell<'_>; 13] = [
            id.into(),
            capture.azolla_id.as_str().into(),
            (&capture.raw_content).into(),
            beside.raw_hex.as_deref().into(),
            (&capture.source_label).into(),
            capture.status.as_str().into(),
            capture.created_at.into(),
            capture.updated_at.into(),
            beside.ready_at.into(),
            entry(id).into(),
            i64::from(beside.tries).into(),
            beside.work_order_id.as_ref().map(WorkorderId::as_str).into(),
            beside.held.into(),
        ];
        put(sql, include_str!("../sql/capture_arrives.sql"), &cells, &format!("capture {id}"))?;
    }
    for line in all.recurrences.values() {
        recurrences::arrives(sql, line)?;
    }
    for candidate in all.candidates.values() {
        write_candidate(sql, candidate)?;
    }
    for (id, Kept { artifact: manifest, beside }) in &all.manifests {
        let (document, facts) = (canonical::text_of(manifest), canonical::text_of(&beside.facts));
        let digest = beside.facts_digest.to_string();
        let cells: [Cell<'_>; 8] = [
            id.into(),
            manifest.azolla_id.as_str().into(),
            beside.work_order_id.as_str().into(),
            manifest.created_at.into(),
            (&digest).into(),
            (&facts).into(),
            (&beside.built_by).into(),
            (&document).into(),
        ];
        put(sql, include_str!("../sql/manifest_arrives.sql"), &cells, &format!("manifest {id}"))?;
    }
    for (id, Kept { artifact: query, beside }) in &all.queries {
        let response = all.responses.get(beside.response_id.as_str()).map(canonical::text_of);
        let document = canonical::text_of(query);
        let told = beside.results_told.map(|told| i64::try_from(told).unwrap_or(i64::MAX));
        let cells: [Cell<'_>; 7] = [
            id.into(),
            beside.azolla_id.as_str().into(),
            beside.event_id.as_str().into(),
            query.created_at.into(),
            (&document).into(),
            response.as_deref().into(),
            told.map_or(Cell::Null, Cell::Int),
        ];
        put(sql, include_str!("../sql/query_insert.sql"), &cells, &format!("query {id}"))?;
    }
    for Kept { artifact: pause, beside } in all.overdue.values() {
        let document = canonical::text_of(pause);
        let cells: [Cell<'_>; 5] = [
            (&beside.pause_key).into(),
            pause.objective_id.as_str().into(),
            pause.azolla_id.as_str().into(),
            pause.created_at.into(),
            (&document).into(),
        ];
        put(sql, include_str!("../sql/pause_insert.sql"), &cells, &beside.pause_key)?;
    }
    for (id, attempt) in &all.attempts {
        let document = canonical::text_of(attempt);
        let cells: [Cell<'_>; 4] = [
            id.into(),
            attempt.work_order_id.as_str().into(),
            i64::from(attempt.attempt_no).into(),
            (&document).into(),
        ];
        put(sql, include_str!("../sql/attempt_arrives.sql"), &cells, &format!("attempt {id}"))?;
    }
    Ok(())
}

fn write_candidate(sql: &mut dyn Sql, candidate: &CandidateRecord) -> StoreResult<()> {
    let draft = candidate.draft();
    let (id, document) = (candidate.candidate_id.as_str(), canonical::text_of(&draft));
    let cells: [Cell<'_>; 12] = [
        id.into(),
        candidate.azolla_id.as_str().into(),
        candidate.work_order_id.as_ref().map(WorkorderId::as_str).into(),
        (&document).into(),
        (&candidate.made_by).into(),
        candidate.status.as_str().into(),
        candidate.objective_id.as_ref().map(ObjectiveId::as_str).into(),
        candidate.merged_into.as_ref().map(CandidateId::as_str).into(),
        candidate.created_at.into(),
        candidate.updated_at.into(),
        i64::from(draft.urgency).into(),
        deadline::due_of(&draft.metadata).into(),
    ];
    put(sql, include_str!("../sql/candidate_arrives.sql"), &cells, &format!("candidate {id}"))?;
    for capture in &candidate.capture_ids {
        let cells = [capture.as_str().into(), id.into()];
        sql.write(capture.as_str(), include_str!("../sql/candidate_capture_insert.sql"), &cells)?;
    }
    Ok(())
}

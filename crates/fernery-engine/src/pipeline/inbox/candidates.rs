//! Candidates, which triage made from captures, and a person's decisions about them: promote, edit, merge, discard. A
//! promoted candidate becomes a NEW objective and nothing more: it needs an approval like any other (invariants 10,
//! 15).

mod reading;

use crate::error::StoreResult;
use crate::pipeline::acts::{self, Actor, Answer, Asked, Refusal, fields};
use crate::pipeline::objectives::{self, NewObjective, ObjectiveRow};
use crate::pipeline::{Cell, Sql, azollas, snoozes};
use fernery_core::artifact::{AzollaId, CandidateId, Metadata, ObjectiveId, RecordId};
use fernery_core::blueprint::Blueprint;
use fernery_core::canonical;
use fernery_core::exported::Snoozed;
pub use fernery_core::inbox::CandidateStatus;
use fernery_core::inbox::{deadline, destination};
use fernery_core::journal::Act;
use fernery_core::pipeline::draft::{Draft, DraftEdit};
pub(in crate::pipeline) use reading::locked;
pub(crate) use reading::pressing;
pub use reading::{
    CandidateView, by_id, captures_of, captures_of_each, count, page, page_of, waiting, waiting_anywhere,
};
use serde_json::{Map, Value, json};

/// Captures that a promoted objective names.
const CAPTURED_FROM_MAX: usize = 20;

fn still_waits(candidate: &CandidateView) -> Result<(), Refusal> {
    let into = match (candidate.status, &candidate.objective_id, &candidate.merged_into) {
        (CandidateStatus::Waiting, ..) => return Ok(()),
        (_, Some(objective), _) => format!(": it became objective {objective}"),
        (_, _, Some(other)) => format!(": it was merged into {other}"),
        _ => String::new(),
    };
    Err(Refusal::Conflict(format!("it was already {}{into}", candidate.status.as_str().to_lowercase())))
}

fn update(sql: &mut dyn Sql, candidate: &CandidateView) -> StoreResult<()> {
    let document = canonical::text_of(&json!(candidate.draft));
    let cells: [Cell<'_>; 8] = [
        candidate.candidate_id.as_str().into(),
        (&document).into(),
        candidate.status.as_str().into(),
        candidate.objective_id.as_ref().map(ObjectiveId::as_str).into(),
        candidate.merged_into.as_ref().map(CandidateId::as_str).into(),
        candidate.updated_at.into(),
        i64::from(candidate.draft.urgency).into(),
        deadline::due_of(&candidate.draft.metadata).into(),
    ];
    sql.write(candidate.candidate_id.as_str(), include_str!("../sql/candidate_update.sql"), &cells)?;
    match candidate.status {
        CandidateStatus::Waiting => Ok(()),
        _ => snoozes::drop_of(sql, Snoozed::Candidate, candidate.candidate_id.as_str()),
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Promoted {
    pub candidate: CandidateView,
    /// The objective that it became.
    pub row: ObjectiveRow,
    /// Whether it was promoted before this call.
    pub was_there: bool,
    /// Whether a person does it.
    pub for_people: bool,
}

/// The azolla that a candidate is promoted to where nobody names one. `repos`: the repositories of this server.
pub fn destination(sql: &mut dyn Sql, id: &CandidateId, repos: &[String]) -> Answer<AzollaId> {
    let Some(candidate) = by_id(sql, id)? else { return Ok(Err(Refusal::Unknown)) };
    // One that was promoted is where it is: the request may be a repetition.
    if let Some(became) = &candidate.objective_id
        && let Some(row) = objectives::load(sql, became)?
    {
        return Ok(Ok(row.objective.azolla_id));
    }
    let (all, hosting) = (azollas::all(sql)?, azollas::hosting(sql)?);
    let of_tickets = all.iter().map(|known| &*known.blueprint).filter(|of| of.standing.is_none());
    let (hosted, others): (Vec<&Blueprint>, Vec<&Blueprint>) =
        of_tickets.partition(|of| hosting.is_hosted(&of.azolla_id));
    let there = if hosted.is_empty() { others } else { hosted };
    Ok(destination::destination(&candidate.draft.metadata, &there, repos).map_err(Refusal::Conflict))
}

/// Makes the candidate a NEW objective of this azolla, and nothing more. `repos`: the repositories of this server.
pub fn promote(
    sql: &mut dyn Sql,
    actor: &Actor,
    (id, record_id): (&CandidateId, &RecordId),
    (azolla_id, repos): (&AzollaId, &[String]),
    objective_id: &ObjectiveId,
) -> Answer<Promoted> {
    let what = fields([("azolla_id", json!(azolla_id))]);
    let asked = Asked { actor, act: Act::Promoted, id: id.as_str(), record_id, what };
    let mut candidate = accepted!(locked(sql, id)?);
    if accepted!(asked.is_repeat(sql)?)
        && let Some(became) = &candidate.objective_id
        && let Some(row) = objectives::load(sql, became)?
    {
        let in_force = azollas::in_force(sql, &row.objective.azolla_id)?;
        let for_people = in_force.is_some_and(|known| known.blueprint.is_for_people());
        return Ok(Ok(Promoted { candidate, row, was_there: true, for_people }));
    }
    accepted!(still_waits(&candidate));
    let mut draft = candidate.draft.clone();
    // Only as many as fit; the candidate keeps the whole list.
    let captured = captures_of(sql, id)?.into_iter().map(|c| c.capture.capture_id);
    let captured: Vec<_> = captured.take(CAPTURED_FROM_MAX).collect();
    draft.metadata.insert("captured_from".into(), json!(captured));
    // Work on a repository needs one: the one that the candidate names, or the only one there is.
    let in_force = azollas::in_force(sql, azolla_id)?;
    let needs = in_force.as_ref().is_some_and(|known| known.blueprint.needs_repository());
    if needs && !draft.metadata.contains_key("repo_ref") {
        let only = repos.first().filter(|_| repos.len() == 1).map(String::as_str);
        let repo = destination::repository(&draft.metadata, repos).or(only);
        draft.metadata.extend(repo.map(|repo| ("repo_ref".to_string(), json!(repo))));
    }
    let new = NewObjective::new(objective_id, azolla_id, draft);
    let row = accepted!(objectives::create(sql, actor, &new)?).row;
    candidate.status = CandidateStatus::Promoted;
    candidate.objective_id = Some(objective_id.clone());
    candidate.updated_at = sql.now();
    update(sql, &candidate)?;
    asked.done(sql, json!({"objective_id": objective_id}))?;
    let for_people = in_force.is_some_and(|known| known.blueprint.is_for_people());
    Ok(Ok(Promoted { candidate, row, was_there: false, for_people }))
}

/// Edits the draft of a candidate.
pub fn edit(
    sql: &mut dyn Sql,
    actor: &Actor,
    (id, record_id): (&CandidateId, &RecordId),
    edit: &DraftEdit,
) -> Answer<CandidateView> {
    let what = fields([("edit", json!(edit))]);
    let asked = Asked { actor, act: Act::CandidateEdited, id: id.as_str(), record_id, what };
    let mut candidate = accepted!(locked(sql, id)?);
    if accepted!(asked.is_repeat(sql)?) {
        return Ok(Ok(candidate));
    }
    accepted!(still_waits(&candidate));
    let draft = edit.apply(candidate.draft.clone());
    let violations = draft.violations_after(&candidate.draft.metadata);
    if !violations.is_empty() {
        return Ok(Err(Refusal::Unfit(violations)));
    }
    candidate.draft = draft;
    candidate.updated_at = sql.now();
    update(sql, &candidate)?;
    asked.done(sql, json!({}))?;
    Ok(Ok(candidate))
}

fn noted(note: Option<&str>) -> Map<String, Value> {
    fields([("note", json!(note))])
}

/// The candidate of an act with a note, locked, and whether the act was carried out before.
fn begun(
    sql: &mut dyn Sql,
    asked: &Asked<'_>,
    id: &CandidateId,
    note: Option<&str>,
) -> Answer<(CandidateView, bool)> {
    accepted!(acts::check_note(note));
    let candidate = accepted!(locked(sql, id)?);
    Ok(Ok((candidate, accepted!(asked.is_repeat(sql)?))))
}

pub fn discard(
    sql: &mut dyn Sql,
    actor: &Actor,
    (id, record_id): (&CandidateId, &RecordId),
    note: Option<&str>,
) -> Answer<CandidateView> {
    let asked = Asked { actor, act: Act::Discarded, id: id.as_str(), record_id, what: noted(note) };
    let (mut candidate, is_repeat) = accepted!(begun(sql, &asked, id, note)?);
    if is_repeat {
        return Ok(Ok(candidate));
    }
    accepted!(still_waits(&candidate));
    candidate.status = CandidateStatus::Discarded;
    candidate.updated_at = sql.now();
    update(sql, &candidate)?;
    asked.done(sql, json!({}))?;
    Ok(Ok(candidate))
}

/// Takes back that a candidate was discarded: it waits again.
pub fn restore(
    sql: &mut dyn Sql,
    actor: &Actor,
    (id, record_id): (&CandidateId, &RecordId),
    note: Option<&str>,
) -> Answer<CandidateView> {
    let asked = Asked { actor, act: Act::Restored, id: id.as_str(), record_id, what: noted(note) };
    let (mut candidate, is_repeat) = accepted!(begun(sql, &asked, id, note)?);
    if is_repeat {
        return Ok(Ok(candidate));
    }
    match candidate.status {
        CandidateStatus::Discarded => {}
        CandidateStatus::Waiting => return Ok(Err(Refusal::Conflict("it waits already".into()))),
        _ => return Ok(still_waits(&candidate).map(|()| candidate)),
    }
    candidate.status = CandidateStatus::Waiting;
    candidate.updated_at = sql.now();
    let cells = [id.as_str().into(), candidate.updated_at.into()];
    sql.write(id.as_str(), include_str!("../sql/candidate_restore.sql"), &cells)?;
    asked.done(sql, json!({}))?;
    Ok(Ok(candidate))
}

/// Merges other candidates into one: it gets their captures, and their texts are appended to its criteria.
pub fn merge(
    sql: &mut dyn Sql,
    actor: &Actor,
    (into, record_id): (&CandidateId, &RecordId),
    others: &[CandidateId],
) -> Answer<CandidateView> {
    let what = fields([("merged", json!(others))]);
    let asked = Asked { actor, act: Act::Merged, id: into.as_str(), record_id, what };
    if others.contains(into) || others.is_empty() {
        return Ok(Err(Refusal::Conflict(
            "name the candidates to merge into this one, without itself".into(),
        )));
    }
    // Locked in the order of ids: another merge may name them the other way round.
    let mut order: Vec<&CandidateId> = others.iter().chain([into]).collect();
    order.sort();
    order.dedup();
    let mut all = Vec::new();
    for id in order {
        all.push(accepted!(locked(sql, id)?));
    }
    let at = all.iter().position(|candidate| candidate.candidate_id == *into).unwrap_or(0);
    let mut kept = all.remove(at);
    if accepted!(asked.is_repeat(sql)?) {
        return Ok(Ok(kept));
    }
    accepted!(still_waits(&kept));
    for other in &all {
        accepted!(still_waits(other));
        if other.azolla_id != kept.azolla_id {
            return Ok(Err(Refusal::Conflict("the candidates belong to different azollas".into())));
        }
        absorb(&mut kept.draft, &other.draft);
    }
    let violations = kept.draft.violations();
    if !violations.is_empty() {
        return Ok(Err(Refusal::Unfit(violations)));
    }
    for other in &mut all {
        let cells = [other.candidate_id.as_str().into(), into.as_str().into()];
        sql.query(include_str!("../sql/candidate_captures_move.sql"), &cells)?;
        other.status = CandidateStatus::Merged;
        other.merged_into = Some(into.clone());
        other.updated_at = sql.now();
        update(sql, other)?;
    }
    kept.updated_at = sql.now();
    update(sql, &kept)?;
    asked.done(sql, json!({}))?;
    Ok(Ok(kept))
}

/// Merges a draft into another: its texts, the higher importance and urgency, and metadata that the kept one lacks.
fn absorb(kept: &mut Draft, other: &Draft) {
    kept.acceptance_criteria =
        format!("{}\n\n{}\n{}", kept.acceptance_criteria.trim_end(), other.title, other.acceptance_criteria);
    kept.importance = kept.importance.min(other.importance);
    kept.urgency = kept.urgency.min(other.urgency);
    let missing: Metadata = other
        .metadata
        .iter()
        .filter(|(k, _)| !kept.metadata.contains_key(*k))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    kept.metadata.extend(missing);
}

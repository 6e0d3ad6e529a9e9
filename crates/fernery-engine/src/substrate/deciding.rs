//! What operators decide, each on record: approve, confirm, reopen. Two of them lead to TODO (invariant 10).

use super::difference::since;
use super::objectives::{self, Shown, Standing, shown_now};
use super::operating::{Actor, Answer, Refusal, check_note, is_repeat, locked};
use super::reading::{self, Decision};
use super::{Cell, Sql, Stage, journal};
use crate::error::StoreResult;
use fernery_core::artifact::{ObjectiveId, ObjectiveStatus, RecordId, RunId};
use fernery_core::canonical::{self, Digest};
use fernery_core::pipeline::Violation;
use fernery_core::pipeline::lifecycle::{Step, after};
use serde_json::json;

/// What an operator decides.
#[derive(Clone, Debug)]
pub struct Deciding {
    /// The id of the record: from outside, so that the same try makes the same record.
    pub record_id: RecordId,
    /// Of what was shown; `None`: whatever is there.
    pub digest: Option<Digest>,
    /// Why, in their words.
    pub note: Option<String>,
}

/// The record of a decision that was made before under this id.
fn decided(sql: &mut dyn Sql, deciding: &Deciding, kind: &str, id: &ObjectiveId) -> Answer<Option<Decision>> {
    match is_repeat(sql, &deciding.record_id, &kind.to_lowercase(), id)? {
        Ok(true) => Ok(Ok(by_record(sql, &deciding.record_id)?)),
        Ok(false) => Ok(Ok(None)),
        Err(refusal) => Ok(Err(refusal)),
    }
}

fn by_record(sql: &mut dyn Sql, record_id: &RecordId) -> StoreResult<Option<Decision>> {
    let row = sql.one(include_str!("sql/decision_by_id.sql"), &[record_id.as_str().into()])?;
    row.map(|row| reading::decision(&row)).transpose()
}

/// NEW → TODO, over exactly what was shown. Approving the same again answers the same record.
pub fn approve(sql: &mut dyn Sql, actor: &Actor, id: &ObjectiveId, deciding: &Deciding) -> Answer<Decision> {
    accepted!(check_note(deciding.note.as_deref()));
    let mut standing = accepted!(locked(sql, id)?);
    if let Some(before) = accepted!(decided(sql, deciding, "APPROVE", id)?) {
        return Ok(Ok(before));
    }
    let Some(now) = shown_now(sql, &standing.objective)? else { return Ok(Err(Refusal::Unknown)) };
    if let Some(digest) = &deciding.digest
        && *digest != now.digest
    {
        let difference = since(sql, &standing.objective, digest, &now)?;
        return Ok(Err(Refusal::Changed { now: Box::new(now), difference }));
    }
    if let Some(before) = current(sql, &standing)?
        && before.digest == now.digest
        && standing.objective.status != ObjectiveStatus::New
    {
        return Ok(Ok(before));
    }
    let status = standing.objective.status;
    if after(standing.objective.objective_type, status, Step::Approve).is_none() {
        return Ok(Err(Refusal::Status(status)));
    }
    let decision = decide(sql, actor, id, "APPROVE", deciding, &now)?;
    standing.approval = Some(decision.record_id.clone());
    standing.starts_over();
    standing.enter_todo(sql.now());
    objectives::update(sql, &standing)?;
    sql.wakes(Stage::Readiness);
    Ok(Ok(decision))
}

pub(super) fn current(sql: &mut dyn Sql, standing: &Standing) -> StoreResult<Option<Decision>> {
    match &standing.approval {
        Some(approval) => by_record(sql, approval),
        None => Ok(None),
    }
}

fn decide(
    sql: &mut dyn Sql,
    actor: &Actor,
    id: &ObjectiveId,
    kind: &str,
    deciding: &Deciding,
    shown: &Shown,
) -> StoreResult<Decision> {
    let decision = Decision {
        record_id: deciding.record_id.clone(),
        objective_id: id.clone(),
        kind: kind.to_string(),
        digest: shown.digest,
        shown: shown.content.clone(),
        who: actor.0.clone(),
        note: deciding.note.clone(),
        created_at: sql.now(),
    };
    let (digest, content) = (decision.digest.to_string(), canonical::text_of(&decision.shown));
    let cells: [Cell<'_>; 8] = [
        decision.record_id.as_str().into(),
        id.as_str().into(),
        kind.into(),
        (&digest).into(),
        (&content).into(),
        (&actor.0).into(),
        decision.note.as_deref().into(),
        decision.created_at.into(),
    ];
    sql.write_new(include_str!("sql/decision_insert.sql"), &cells)?;
    let why = json!({"record_id": decision.record_id, "digest": decision.digest, "note": decision.note});
    let act = kind.to_lowercase();
    journal::note_as(sql, decision.record_id.as_str(), (&actor.0, &act, id.as_str()), &why)?;
    Ok(decision)
}

/// A person has looked at what the gates passed in this run. Changes no status.
pub fn confirm(
    sql: &mut dyn Sql,
    actor: &Actor,
    (id, run_id): (&ObjectiveId, &RunId),
    deciding: &Deciding,
) -> Answer<Decision> {
    accepted!(check_note(deciding.note.as_deref()));
    let mut standing = accepted!(locked(sql, id)?);
    if let Some(before) = accepted!(decided(sql, deciding, "CONFIRM", id)?) {
        return Ok(Ok(before));
    }
    let status = standing.objective.status;
    if status != ObjectiveStatus::Done {
        return Ok(Err(Refusal::Status(status)));
    }
    let Some(run) = reading::last_run(sql, id)? else {
        return Ok(Err(Refusal::Conflict("there is no run to confirm".into())));
    };
    if run.record.run_id != *run_id {
        return Ok(Err(Refusal::OtherRun(Box::new(run.record))));
    }
    if !standing.unconfirmed {
        let before = sql
            .query(include_str!("sql/decisions_of_objective.sql"), &[id.as_str().into()])?
            .iter()
            .rev()
            .map(reading::decision)
            .find(|d| d.as_ref().is_ok_and(|d| d.kind == "CONFIRM"));
        return match before {
            Some(before) => Ok(Ok(before?)),
            None => Ok(Err(Refusal::Conflict("there is nothing to confirm".into()))),
        };
    }
    let Some(mut now) = shown_now(sql, &standing.objective)? else { return Ok(Err(Refusal::Unknown)) };
    let bundle = reading::bundle(sql, &run.record.work_order_id)?.map(|bundle| canonical::digest_of(&bundle));
    now.content["run"] = json!({"run_record": run.record, "output_bundle_sha256": bundle});
    now.digest = canonical::digest_of(&now.content);
    let decision = decide(sql, actor, id, "CONFIRM", deciding, &now)?;
    standing.unconfirmed = false;
    standing.objective.updated_at = sql.now();
    objectives::update(sql, &standing)?;
    sql.wakes(Stage::Scheduler);
    Ok(Ok(decision))
}

/// DONE → TODO, with a note that the next executor reads. It is an approval of what is there now.
pub fn reopen(sql: &mut dyn Sql, actor: &Actor, id: &ObjectiveId, deciding: &Deciding) -> Answer<Decision> {
    accepted!(check_note(deciding.note.as_deref()));
    if deciding.note.as_deref().is_none_or(|note| note.trim().is_empty()) {
        let message = "say what is missing: the next executor reads it".to_string();
        return Ok(Err(Refusal::Unfit(vec![Violation { path: "/note".into(), message }])));
    }
    let mut standing = accepted!(locked(sql, id)?);
    if let Some(before) = accepted!(decided(sql, deciding, "REOPEN", id)?) {
        return Ok(Ok(before));
    }
    let status = standing.objective.status;
    if after(standing.objective.objective_type, status, Step::Reopen).is_none() {
        return Ok(Err(Refusal::Status(status)));
    }
    let Some(now) = shown_now(sql, &standing.objective)? else { return Ok(Err(Refusal::Unknown)) };
    if let Some(digest) = &deciding.digest
        && *digest != now.digest
    {
        let difference = since(sql, &standing.objective, digest, &now)?;
        return Ok(Err(Refusal::Changed { now: Box::new(now), difference }));
    }
    let decision = decide(sql, actor, id, "REOPEN", deciding, &now)?;
    standing.approval = Some(decision.record_id.clone());
    standing.unconfirmed = false;
    standing.starts_over();
    standing.enter_todo(sql.now());
    objectives::update(sql, &standing)?;
    sql.wakes(Stage::Readiness);
    sql.wakes(Stage::Scheduler);
    Ok(Ok(decision))
}

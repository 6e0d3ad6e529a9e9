//! Operators' decisions about what they were shown: approve, confirm, reopen. No worker calls these: only a person's
//! decision about exactly what was shown leads to TODO (invariant 10).

use super::acts::{Actor, Answer, Asked, Refusal, check_note, fields};
use super::difference::since;
use super::objectives::{self, ObjectiveRow, Shown, locked, shown, shown_now};
use super::reading::{self, Decision};
use super::{Cell, Sql, Stage, azollas, journal};
use crate::error::StoreResult;
use fernery_core::artifact::{ObjectiveId, ObjectiveStatus, RecordId, RunId};
use fernery_core::canonical::{self, Digest};
use fernery_core::journal::Act;
use fernery_core::pipeline::Violation;
use fernery_core::pipeline::ground::{Premises, unstartable};
use fernery_core::pipeline::lifecycle::{Step, after};
use serde_json::json;

/// What an operator decides.
#[derive(Clone, Debug)]
pub struct Deciding {
    /// The id of the record. The caller chooses it, so that a repeated request makes the same record.
    pub record_id: RecordId,
    /// The digest of what the operator was shown; `None`: decide about whatever is there.
    pub digest: Option<Digest>,
    /// The operator's note.
    pub note: Option<String>,
    /// What the process that got the request could start work on; `None`: unknown.
    pub premises: Option<Premises>,
}

impl Deciding {
    /// The request for this decision; with the run if it is about one.
    fn asked<'a>(
        &'a self,
        actor: &'a Actor,
        act: Act,
        id: &'a ObjectiveId,
        run_id: Option<&RunId>,
    ) -> Asked<'a> {
        let mut what = fields([("note", json!(self.note))]);
        what.extend(self.digest.map(|digest| ("digest".to_string(), json!(digest))));
        what.extend(run_id.map(|run_id| ("run_id".to_string(), json!(run_id))));
        Asked { actor, act, id: id.as_str(), record_id: &self.record_id, what }
    }
}

/// The record of this decision, if the same request made it before.
fn decided(sql: &mut dyn Sql, asked: &Asked<'_>) -> Answer<Option<Decision>> {
    Ok(Ok(if accepted!(asked.is_repeat(sql)?) { by_record(sql, asked.record_id)? } else { None }))
}

fn by_record(sql: &mut dyn Sql, record_id: &RecordId) -> StoreResult<Option<Decision>> {
    let row = sql.one(include_str!("sql/decision_by_id.sql"), &[record_id.as_str().into()])?;
    row.map(|row| reading::decision(&row)).transpose()
}

/// NEW → TODO, for exactly what was shown. Approving the same again answers the same record.
pub fn approve(sql: &mut dyn Sql, actor: &Actor, id: &ObjectiveId, deciding: &Deciding) -> Answer<Decision> {
    accepted!(check_note(deciding.note.as_deref()));
    let asked = deciding.asked(actor, Act::Approved, id, None);
    let mut questions = objectives::locking(id.as_str()).to_vec();
    questions.push((include_str!("sql/journal_by_id.sql"), vec![deciding.record_id.as_str().into()]));
    questions.push((include_str!("sql/azolla_of_objective.sql"), vec![id.as_str().into()]));
    let mut answers = sql.query_all(&questions)?.into_iter();
    let Some(mut row) = objectives::loaded(&mut answers)? else { return Ok(Err(Refusal::Unknown)) };
    let entry = answers.next().unwrap_or_default().first().map(journal::entry).transpose()?;
    if accepted!(asked.is_repeat_of(entry))
        && let Some(before) = by_record(sql, &deciding.record_id)?
    {
        return Ok(Ok(before));
    }
    let Some(in_force) = answers.next().unwrap_or_default().into_iter().next() else {
        return Ok(Err(Refusal::Unknown));
    };
    let Some(registered) = azollas::by_digest(sql, &in_force.word(0)?)? else {
        return Ok(Err(Refusal::Unknown));
    };
    let now = shown(&row.objective, &registered.blueprint);
    if let Some(digest) = &deciding.digest
        && *digest != now.digest
    {
        let difference = since(sql, &row.objective, digest, &now)?;
        return Ok(Err(Refusal::Changed { now: Box::new(now), difference }));
    }
    if let Some(before) = current(sql, &row)?
        && before.digest == now.digest
        && row.objective.status != ObjectiveStatus::New
    {
        return Ok(Ok(before));
    }
    let status = row.objective.status;
    if after(row.objective.objective_type, status, Step::Approve).is_none() {
        return Ok(Err(Refusal::Status(status)));
    }
    if let Some(why) = unstartable(&row.objective, &registered.blueprint, deciding.premises.as_ref()) {
        return Ok(Err(Refusal::NoRepository(why)));
    }
    let decision = decide(sql, &asked, deciding, &now)?;
    row.approval = Some(decision.record_id.clone());
    row.starts_over();
    row.enter_todo(sql.now());
    objectives::update(sql, &row)?;
    sql.wakes(Stage::Readiness);
    Ok(Ok(decision))
}

/// The approval of an objective.
pub(super) fn current(sql: &mut dyn Sql, row: &ObjectiveRow) -> StoreResult<Option<Decision>> {
    match &row.approval {
        Some(approval) => by_record(sql, approval),
        None => Ok(None),
    }
}

fn decide(sql: &mut dyn Sql, asked: &Asked<'_>, deciding: &Deciding, shown: &Shown) -> StoreResult<Decision> {
    let decision = Decision {
        record_id: deciding.record_id.clone(),
        objective_id: ObjectiveId::stored(asked.id),
        kind: asked.act.as_str().to_uppercase(),
        digest: shown.digest,
        shown: shown.content.clone(),
        who: asked.actor.0.clone(),
        note: deciding.note.clone(),
        created_at: sql.now(),
    };
    let (digest, content) = (decision.digest.to_string(), canonical::text_of(&decision.shown));
    let cells: [Cell<'_>; 8] = [
        decision.record_id.as_str().into(),
        decision.objective_id.as_str().into(),
        (&decision.kind).into(),
        (&digest).into(),
        (&content).into(),
        (&decision.who).into(),
        decision.note.as_deref().into(),
        decision.created_at.into(),
    ];
    // The journal entry is written first: if two requests use one id at once, the second finds it.
    asked.done(sql, json!({"record_id": decision.record_id, "digest": decision.digest}))?;
    sql.write("the decision", include_str!("sql/decision_insert.sql"), &cells)?;
    Ok(decision)
}

/// Records that a person has looked at the output of a run that passed. Changes no status.
pub fn confirm(
    sql: &mut dyn Sql,
    actor: &Actor,
    (id, run_id): (&ObjectiveId, &RunId),
    deciding: &Deciding,
) -> Answer<Decision> {
    accepted!(check_note(deciding.note.as_deref()));
    let asked = deciding.asked(actor, Act::Confirmed, id, Some(run_id));
    let mut row = accepted!(locked(sql, id)?);
    if let Some(before) = accepted!(decided(sql, &asked)?) {
        return Ok(Ok(before));
    }
    let status = row.objective.status;
    if status != ObjectiveStatus::Done {
        return Ok(Err(Refusal::Status(status)));
    }
    let Some(run) = reading::last_run(sql, id)? else {
        return Ok(Err(Refusal::Conflict("there is no finished run to confirm".into())));
    };
    if run.record.run_id != *run_id {
        return Ok(Err(Refusal::OtherRun(Box::new(run.record))));
    }
    if !row.unconfirmed {
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
    let Some(mut now) = shown_now(sql, &row.objective)? else { return Ok(Err(Refusal::Unknown)) };
    let bundle = reading::bundle(sql, &run.record.work_order_id)?.map(|bundle| canonical::digest_of(&bundle));
    now.content["run"] = json!({"run_record": run.record, "output_bundle_sha256": bundle});
    now.digest = canonical::digest_of(&now.content);
    let decision = decide(sql, &asked, deciding, &now)?;
    row.unconfirmed = false;
    row.objective.updated_at = sql.now();
    objectives::update(sql, &row)?;
    sql.wakes(Stage::Scheduler);
    Ok(Ok(decision))
}

/// DONE → TODO, with a note that the next executor reads. It is an approval of what is there now.
pub fn reopen(sql: &mut dyn Sql, actor: &Actor, id: &ObjectiveId, deciding: &Deciding) -> Answer<Decision> {
    accepted!(check_note(deciding.note.as_deref()));
    if deciding.note.as_deref().is_none_or(|note| note.trim().is_empty()) {
        let message = "say in the note what is missing: the next executor reads it".to_string();
        return Ok(Err(Refusal::Unfit(vec![Violation { path: "/note".into(), message }])));
    }
    let asked = deciding.asked(actor, Act::Reopened, id, None);
    let mut row = accepted!(locked(sql, id)?);
    if let Some(before) = accepted!(decided(sql, &asked)?) {
        return Ok(Ok(before));
    }
    let status = row.objective.status;
    if after(row.objective.objective_type, status, Step::Reopen).is_none() {
        return Ok(Err(Refusal::Status(status)));
    }
    let Some(registered) = azollas::in_force(sql, &row.objective.azolla_id)? else {
        return Ok(Err(Refusal::Unknown));
    };
    let now = shown(&row.objective, &registered.blueprint);
    if let Some(digest) = &deciding.digest
        && *digest != now.digest
    {
        let difference = since(sql, &row.objective, digest, &now)?;
        return Ok(Err(Refusal::Changed { now: Box::new(now), difference }));
    }
    if let Some(why) = unstartable(&row.objective, &registered.blueprint, deciding.premises.as_ref()) {
        return Ok(Err(Refusal::NoRepository(why)));
    }
    let decision = decide(sql, &asked, deciding, &now)?;
    row.approval = Some(decision.record_id.clone());
    row.unconfirmed = false;
    row.starts_over();
    row.enter_todo(sql.now());
    objectives::update(sql, &row)?;
    sql.wakes(Stage::Readiness);
    sql.wakes(Stage::Scheduler);
    Ok(Ok(decision))
}

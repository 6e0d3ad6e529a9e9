//! Operators' decisions about what they were shown: approve, confirm, reopen. No worker calls these: only a person's
//! decision about exactly what was shown leads to TODO (invariant 10).

use super::acts::{Actor, Answer, Asked, Refusal, check_note, fields};
use super::azollas::Registered;
use super::comments::{self, ReadComments};
use super::difference::since;
use super::objectives::{self, ObjectiveRow, Shown, locked, shown, shown_now};
use super::reading::{self, Decision, Run};
use super::{Cell, Sql, Stage, after, azollas, blockers, journal, landing, ticket_state};
use crate::error::{StoreError, StoreResult};
use fernery_core::artifact::{BlockerId, ObjectiveId, ObjectiveStatus, RecordId, RunId};
use fernery_core::canonical::{self, Digest};
use fernery_core::inbox::deadline::is_cancelled;
use fernery_core::journal::Act;
use fernery_core::pipeline::Violation;
use fernery_core::pipeline::approval::Terms;
use fernery_core::pipeline::ground::{Premises, unstartable};
use fernery_core::pipeline::lifecycle::{Step, after as leads_to};
use serde_json::json;

/// What an operator decides.
#[derive(Clone, Debug)]
pub struct Deciding {
    /// The id of the record. The caller chooses it, so that a repeated request makes the same record.
    pub record_id: RecordId,
    /// The digest of what the operator was shown; `None`: decide about whatever is there.
    pub digest: Option<Digest>,
    pub note: Option<String>,
    /// What the process that got the request could start work on; `None`: unknown.
    pub premises: Option<Premises>,
    /// Whether the next attempt starts from the base commit, not from what the last one left.
    pub from_scratch: bool,
}

impl Deciding {
    fn terms(&self) -> Terms {
        Terms { from_scratch: self.from_scratch, answered: None }
    }

    /// The request for this decision; with the run if it is about one.
    pub(super) fn asked<'a>(
        &'a self,
        actor: &'a Actor,
        act: Act,
        id: &'a ObjectiveId,
        run_id: Option<&RunId>,
    ) -> Asked<'a> {
        let mut what = fields([("note", json!(self.note))]);
        // With terms, the digest of the decision is another one than that of what was read.
        let has_terms = self.from_scratch || act == Act::Answered;
        let read = if has_terms { "digest_read" } else { "digest" };
        what.extend(self.digest.map(|digest| (read.to_string(), json!(digest))));
        what.extend(run_id.map(|run_id| ("run_id".to_string(), json!(run_id))));
        what.extend(self.from_scratch.then(|| ("from_scratch".to_string(), json!(true))));
        Asked { actor, act, id: id.as_str(), record_id: &self.record_id, what }
    }
}

/// The record of this decision, if the same request made it before.
pub(super) fn decided(sql: &mut dyn Sql, asked: &Asked<'_>) -> Answer<Option<Decision>> {
    Ok(Ok(if accepted!(asked.is_repeat(sql)?) {
        reading::decision_by_id(sql, asked.record_id)?
    } else {
        None
    }))
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
        && let Some(before) = reading::decision_by_id(sql, &deciding.record_id)?
    {
        return Ok(Ok(before));
    }
    let Some(in_force) = answers.next().unwrap_or_default().into_iter().next() else {
        return Ok(Err(Refusal::Unknown));
    };
    let Some(registered) = azollas::by_digest(sql, &in_force.word(0)?)? else {
        return Ok(Err(Refusal::Unknown));
    };
    let now = accepted!(as_read(sql, &row, &registered, deciding)?);
    let status = row.objective.status;
    // Whoever lost the answer to an approval sends it again, also when the ticket has come to its end meanwhile.
    if status != ObjectiveStatus::New
        && !is_cancelled(&row.objective)
        && let Some(before) = current(sql, &row)?
        && before.covers(&now)
    {
        return Ok(Ok(before));
    }
    if leads_to(row.objective.objective_type, status, Step::Approve).is_none() {
        return ticket_state::refused(sql, &row);
    }
    accepted!(can_start(&row, &registered, deciding));
    let decision = decide(sql, &asked, deciding, &now.on(&deciding.terms()))?;
    row.approval = Some(decision.record_id.clone());
    row.starts_over();
    row.enter_todo(sql.now());
    objectives::update(sql, &row)?;
    sql.wakes(Stage::Readiness);
    Ok(Ok(decision))
}

/// What is there now, if that is what the operator was shown.
pub(super) fn as_read(
    sql: &mut dyn Sql,
    row: &ObjectiveRow,
    registered: &Registered,
    deciding: &Deciding,
) -> Answer<Shown> {
    let now = shown(&row.objective, &registered.blueprint);
    match &deciding.digest {
        Some(digest) if *digest != now.digest => {
            let difference = since(sql, &row.objective, digest, &now)?;
            Ok(Err(Refusal::Changed { now: Box::new(now), difference }))
        }
        _ => Ok(Ok(now)),
    }
}

/// Whether work can start where the request came in: an approval without its repository would lead to nothing.
pub(super) fn can_start(
    row: &ObjectiveRow,
    registered: &Registered,
    deciding: &Deciding,
) -> Result<(), Refusal> {
    match unstartable(&row.objective, &registered.blueprint, deciding.premises.as_ref()) {
        Some(why) => Err(Refusal::NoRepository(why)),
        None => Ok(()),
    }
}

/// The approval of an objective.
pub(super) fn current(sql: &mut dyn Sql, row: &ObjectiveRow) -> StoreResult<Option<Decision>> {
    match &row.approval {
        Some(approval) => reading::decision_by_id(sql, approval),
        None => Ok(None),
    }
}

pub(super) fn decide(
    sql: &mut dyn Sql,
    asked: &Asked<'_>,
    deciding: &Deciding,
    shown: &Shown,
) -> StoreResult<Decision> {
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

/// Records that a person has looked at the output of a run that passed. Of a ticket that was reopened and is BLOCKED since, it takes
/// the reopening back: the run that passed before counts again, and the ticket is DONE. Otherwise it changes no status.
pub fn confirm(
    sql: &mut dyn Sql,
    actor: &Actor,
    (id, run_id): (&ObjectiveId, &RunId),
    deciding: &Deciding,
) -> Answer<Decision> {
    accepted!(check_note(deciding.note.as_deref()));
    let mut asked = deciding.asked(actor, Act::Confirmed, id, Some(run_id));
    let mut row = accepted!(locked(sql, id)?);
    if let Some(before) = accepted!(decided(sql, &asked)?) {
        return Ok(Ok(before));
    }
    let status = row.objective.status;
    let kept = leads_to(row.objective.objective_type, status, Step::Keep);
    let run = match (kept, status) {
        (Some(_), _) => accepted!(keepable(sql, &row)?),
        (None, ObjectiveStatus::Done) => match reading::passed_run(sql, id)? {
            Some(run) => run,
            None => return Ok(Err(Refusal::Conflict("there is no finished run to confirm".into()))),
        },
        (None, _) => return ticket_state::refused(sql, &row),
    };
    if run.record.run_id != *run_id {
        return Ok(Err(Refusal::OtherRun(Box::new(run.record))));
    }
    if let Some(done) = kept {
        let open = row.objective.blocked_on.iter().filter(|blocker| !blocker.resolved);
        let open: Vec<BlockerId> = open.map(|blocker| blocker.blocker_id.clone()).collect();
        blockers::resolve(sql, &mut row, &open, None)?;
        asked.what.insert("resolved".into(), json!(open));
        row.objective.status = done;
        row.objective.blocked_reason = None;
    } else if !row.unconfirmed {
        let before = confirmation(sql, id)?;
        return Ok(before.ok_or_else(|| Refusal::Conflict("there is nothing to confirm".into())));
    }
    confirm_run(sql, &asked, deciding, (row, &run))
}

/// The run of a BLOCKED objective that a confirmation would keep: it passed before the objective was reopened, and was made for the
/// text and the blueprint that are approved now.
fn keepable(sql: &mut dyn Sql, row: &ObjectiveRow) -> Answer<Run> {
    let (id, status) = (&row.objective.objective_id, row.objective.status);
    let keeps = leads_to(row.objective.objective_type, status, Step::Keep).is_some();
    if !keeps || is_cancelled(&row.objective) {
        return ticket_state::refused(sql, row);
    }
    let Some(run) = reading::passed_run(sql, id)? else { return ticket_state::refused(sql, row) };
    if reading::active_workorder(sql, id)?.is_some() {
        return Ok(Err(Refusal::Conflict("its last run has not ended yet; try again in a moment".into())));
    }
    let Some(registered) = azollas::in_force(sql, &row.objective.azolla_id)? else {
        return Ok(Err(Refusal::Unknown));
    };
    if covering(sql, row, &registered)?.is_none() {
        return Ok(Err(Refusal::Conflict(
            "the ticket or its blueprint has changed since it was approved: that run was made for another text".into(),
        )));
    }
    Ok(Ok(run))
}

/// The last confirmation of an objective.
pub(super) fn confirmation(sql: &mut dyn Sql, id: &ObjectiveId) -> StoreResult<Option<Decision>> {
    let rows = sql.query(include_str!("sql/decisions_of_objective.sql"), &[id.as_str().into()])?;
    let mut decisions = rows.iter().rev().map(reading::decision);
    decisions.find(|d| d.as_ref().is_ok_and(|d| d.kind == "CONFIRM")).transpose()
}

/// Writes the confirmation of a run, the one that counts for this locked objective.
pub(super) fn confirm_run(
    sql: &mut dyn Sql,
    asked: &Asked<'_>,
    deciding: &Deciding,
    (mut row, run): (ObjectiveRow, &Run),
) -> Answer<Decision> {
    let record = &run.record;
    let Some(mut now) = shown_now(sql, &row.objective)? else { return Ok(Err(Refusal::Unknown)) };
    let bundle = reading::bundle(sql, &record.work_order_id)?.map(|bundle| canonical::digest_of(&bundle));
    now.content["run"] = json!({"run_record": record, "output_bundle_sha256": bundle});
    now.digest = canonical::digest_of(&now.content);
    let decision = decide(sql, asked, deciding, &now)?;
    row.unconfirmed = false;
    row.objective.updated_at = sql.now();
    objectives::update(sql, &row)?;
    // Who waits for it also waits for its patch, if that is on its way.
    let id = &row.objective.objective_id;
    if !landing::confirmed(sql, asked.actor, &row, run)? {
        after::done(sql, id)?;
    }
    sql.wakes(Stage::Scheduler);
    Ok(Ok(decision))
}

/// DONE → TODO, with a note that the next executor reads. It is an approval of what is there now.
pub fn reopen(sql: &mut dyn Sql, actor: &Actor, id: &ObjectiveId, deciding: &Deciding) -> Answer<Decision> {
    reopen_with(sql, actor, id, (deciding, None))
}

/// As [`reopen`], with a note that was made of comments on a run. If they are not the ones that were read, it is refused: a comment
/// that came meanwhile would be lost.
pub fn reopen_with(
    sql: &mut dyn Sql,
    actor: &Actor,
    id: &ObjectiveId,
    (deciding, comments): (&Deciding, Option<&ReadComments>),
) -> Answer<Decision> {
    accepted!(check_note(deciding.note.as_deref()));
    if deciding.note.as_deref().is_none_or(|note| note.trim().is_empty()) {
        let message = "say in the note what is missing: the next executor reads it".to_string();
        return Ok(Err(Refusal::Unfit(vec![Violation { path: "/note".into(), message }])));
    }
    let mut asked = deciding.asked(actor, Act::Reopened, id, None);
    let of = |read: &ReadComments| json!({"run_id": read.run_id, "digest": read.digest});
    asked.what.extend(comments.map(|read| ("comments".to_string(), of(read))));
    let mut row = accepted!(locked(sql, id)?);
    if let Some(before) = accepted!(decided(sql, &asked)?) {
        return Ok(Ok(before));
    }
    let status = row.objective.status;
    if leads_to(row.objective.objective_type, status, Step::Reopen).is_none() {
        return ticket_state::refused(sql, &row);
    }
    if let Some(read) = comments {
        let count = accepted!(comments::unchanged(sql, id, read)?);
        asked.what.insert("comments_told".into(), json!(count));
    }
    let Some(registered) = azollas::in_force(sql, &row.objective.azolla_id)? else {
        return Ok(Err(Refusal::Unknown));
    };
    let now = accepted!(as_read(sql, &row, &registered, deciding)?);
    accepted!(can_start(&row, &registered, deciding));
    accepted!(landing::closed(sql, id)?);
    let decision = decide(sql, &asked, deciding, &now.on(&deciding.terms()))?;
    row.approval = Some(decision.record_id.clone());
    row.unconfirmed = false;
    row.starts_over();
    row.enter_todo(sql.now());
    objectives::update(sql, &row)?;
    sql.wakes(Stage::Readiness);
    sql.wakes(Stage::Scheduler);
    Ok(Ok(decision))
}

/// What the approval of an objective covers, if that is what is there now.
pub(super) fn covering(
    sql: &mut dyn Sql,
    row: &ObjectiveRow,
    registered: &Registered,
) -> StoreResult<Option<Shown>> {
    let now = shown(&row.objective, &registered.blueprint);
    Ok(current(sql, row)?.filter(|approval| approval.covers(&now)).map(|_| now))
}

/// DONE → TODO without a person: the approved blueprint lets a patch that conflicts be made again, within the envelope that the
/// approval granted. The record has the note that the next executor reads.
pub(super) fn rework(
    sql: &mut dyn Sql,
    row: &mut ObjectiveRow,
    record_id: &RecordId,
    shown: &Shown,
    note: &str,
) -> StoreResult<()> {
    let id = row.objective.objective_id.clone();
    if leads_to(row.objective.objective_type, row.objective.status, Step::Rework).is_none() {
        return Err(StoreError::Corrupt(format!("{id} is {} and cannot be reworked", row.objective.status)));
    }
    let actor = Actor("fernery".into());
    let deciding = Deciding {
        record_id: record_id.clone(),
        digest: Some(shown.digest),
        note: Some(note.into()),
        premises: None,
        from_scratch: false,
    };
    let asked = deciding.asked(&actor, Act::Reopened, &id, None);
    let decision = decide(sql, &asked, &deciding, shown)?;
    row.approval = Some(decision.record_id);
    row.unconfirmed = false;
    row.enter_todo(sql.now());
    objectives::update(sql, row)?;
    sql.wakes(Stage::Readiness);
    sql.wakes(Stage::Scheduler);
    Ok(())
}

//! What a person does not want to see before a later time. It is about what is shown, and changes nothing else.

use super::acts::{Actor, Answer, Asked, Refusal, fields};
use super::inbox::candidates::{self, CandidateStatus};
use super::{Cell, Sql, Statement, azollas, objectives, ticket_state};
use crate::error::StoreResult;
use fernery_core::Timestamp;
use fernery_core::artifact::{CandidateId, ObjectiveId, ObjectiveStatus, RecordId};
use fernery_core::exported::{SnoozeRecord, Snoozed};
use fernery_core::inbox::deadline::is_cancelled;
use fernery_core::inbox::snooze;
use fernery_core::journal::Act;
use fernery_core::pipeline::Violation;
use serde_json::json;

/// Snoozes that have passed and are deleted with one that is new.
const PASSED_DELETED_MAX: i64 = 100;

/// What is put out of sight.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A ticket that is not finished.
    Objective(ObjectiveId),
    /// A candidate that waits.
    Candidate(CandidateId),
}

impl Subject {
    fn kind(&self) -> Snoozed {
        match self {
            Self::Objective(_) => Snoozed::Objective,
            Self::Candidate(_) => Snoozed::Candidate,
        }
    }

    fn id(&self) -> &str {
        match self {
            Self::Objective(id) => id.as_str(),
            Self::Candidate(id) => id.as_str(),
        }
    }
}

/// Puts it out of sight until then, or in sight again; answers until when.
pub fn snooze(
    sql: &mut dyn Sql,
    actor: &Actor,
    (subject, record_id): (&Subject, &RecordId),
    until: Option<&str>,
) -> Answer<Option<Timestamp>> {
    let asked = Asked {
        actor,
        act: Act::Snoozed,
        id: subject.id(),
        record_id,
        what: fields([("kind", json!(subject.kind())), ("until", json!(until))]),
    };
    let may_be = accepted!(may_be_snoozed(sql, subject)?);
    if accepted!(asked.is_repeat(sql)?) {
        return Ok(Ok(until_of(sql, subject)?));
    }
    accepted!(may_be);
    let Some(said) = until else {
        drop_of(sql, subject.kind(), subject.id())?;
        asked.done(sql, json!({}))?;
        return Ok(Ok(None));
    };
    // The calendar is that of the person's inbox.
    let inbox = azollas::all(sql)?.into_iter().find(|known| known.blueprint.triage.is_some());
    let zone = inbox.map(|known| known.blueprint.zone.clone()).unwrap_or_default();
    let until = match snooze::until(said, sql.calendar(), &zone) {
        Ok(until) => until,
        Err(message) => return Ok(Err(Refusal::Unfit(vec![Violation { path: "/until".into(), message }]))),
    };
    // Whoever adds one takes those away that have passed: there are never many more than are in force.
    let passed = [subject.kind().as_str().into(), sql.calendar().into(), PASSED_DELETED_MAX.into()];
    sql.touched(include_str!("sql/snoozes_passed_delete.sql"), &passed)?;
    put(sql, &SnoozeRecord { kind: subject.kind(), subject_id: subject.id().to_string(), until })?;
    asked.done(sql, json!({"until_at": until}))?;
    Ok(Ok(Some(until)))
}

pub(super) fn put(sql: &mut dyn Sql, snooze: &SnoozeRecord) -> StoreResult<()> {
    let cells: [Cell<'_>; 3] =
        [snooze.kind.as_str().into(), (&snooze.subject_id).into(), snooze.until.into()];
    sql.write(&snooze.subject_id, include_str!("sql/snooze_put.sql"), &cells)
}

/// It is in sight again, or has ended.
pub(super) fn drop_of(sql: &mut dyn Sql, kind: Snoozed, id: &str) -> StoreResult<()> {
    sql.touched(include_str!("sql/snooze_drop.sql"), &[kind.as_str().into(), id.into()]).map(drop)
}

/// All of them, below the place of one.
pub(super) fn page(sql: &mut dyn Sql, below: (&str, &str), limit: i64) -> StoreResult<Vec<SnoozeRecord>> {
    let cells = [below.0.into(), below.1.into(), limit.into()];
    let rows = sql.query(include_str!("sql/snoozes_page.sql"), &cells)?;
    rows.iter()
        .map(|row| {
            Ok(SnoozeRecord { kind: row.word(0)?, subject_id: row.text(1)?.to_string(), until: row.at(2)? })
        })
        .collect()
}

/// Whether it is still to be seen at all; `Err` outside: there is no such thing. A repeated request is answered all the same.
fn may_be_snoozed(sql: &mut dyn Sql, subject: &Subject) -> Answer<Result<(), Refusal>> {
    Ok(Ok(match subject {
        Subject::Objective(id) => {
            let row = accepted!(objectives::locked(sql, id)?);
            let finished = row.objective.status == ObjectiveStatus::Done && !row.unconfirmed;
            // A cancelled one is out of sight: put off, it would be in no list at all.
            if finished || is_cancelled(&row.objective) { ticket_state::refused(sql, &row)? } else { Ok(()) }
        }
        Subject::Candidate(id) => {
            let candidate = accepted!(candidates::locked(sql, id)?);
            match candidate.status {
                CandidateStatus::Waiting => Ok(()),
                status => {
                    let why = format!("it was already {}", status.as_str().to_lowercase());
                    Err(Refusal::Conflict(why))
                }
            }
        }
    }))
}

fn asking<'a>(kind: Snoozed, id: &'a str, now: Timestamp) -> Statement<'a> {
    (include_str!("sql/snooze_of.sql"), vec![kind.as_str().into(), id.into(), now.into()])
}

/// Until when it is out of sight; `None`: it is in sight.
pub fn until_of(sql: &mut dyn Sql, subject: &Subject) -> StoreResult<Option<Timestamp>> {
    Ok(untils(sql, subject.kind(), &[subject.id()])?.pop().flatten())
}

/// The same for objectives, in their order.
pub fn of_objectives(sql: &mut dyn Sql, ids: &[&str]) -> StoreResult<Vec<Option<Timestamp>>> {
    untils(sql, Snoozed::Objective, ids)
}

/// The same for candidates, in their order.
pub fn of_candidates(sql: &mut dyn Sql, ids: &[&str]) -> StoreResult<Vec<Option<Timestamp>>> {
    untils(sql, Snoozed::Candidate, ids)
}

fn untils(sql: &mut dyn Sql, kind: Snoozed, ids: &[&str]) -> StoreResult<Vec<Option<Timestamp>>> {
    let now = sql.calendar();
    let asked: Vec<Statement<'_>> = ids.iter().map(|id| asking(kind, id, now)).collect();
    let found = sql.query_all(&asked)?;
    found.iter().map(|rows| rows.first().map(|row| row.at(0)).transpose()).collect()
}

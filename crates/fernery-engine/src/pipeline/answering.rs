//! An operator answers the question of an executor: the answer is recorded, the question's blocker resolved, and the ticket
//! goes on. It is an approval of the ticket with this answer, in one transaction.

use super::acts::{Actor, Answer, Refusal, check_note, fields};
use super::blockers::still_blocked;
use super::decisions::{Deciding, as_read, can_start, decide, decided};
use super::objectives::{self, locked};
use super::reading::{self, Decision};
use super::rework::answer_in_force;
use super::{Sql, Stage, azollas};
use fernery_core::artifact::{ObjectiveId, ObjectiveStatus, RunId};
use fernery_core::journal::Act;
use fernery_core::pipeline::Violation;
use fernery_core::pipeline::approval::Terms;
use fernery_core::pipeline::possible::SeenStatus;
use fernery_core::pipeline::question::{self, Answered};
use serde_json::json;

/// BLOCKED → TODO, with the answer (the note of `deciding`) to the question of this run. Where another blocker is open, it
/// stays BLOCKED, approved with the answer.
pub fn answer(
    sql: &mut dyn Sql,
    actor: &Actor,
    (id, run_id): (&ObjectiveId, &RunId),
    deciding: &Deciding,
) -> Answer<Decision> {
    let text = deciding.note.as_deref().unwrap_or_default();
    let at_answer = |violation: Violation| Violation { path: "/answer".into(), ..violation };
    if let Err(Refusal::Unfit(violations)) = check_note(Some(text)) {
        return Ok(Err(Refusal::Unfit(violations.into_iter().map(at_answer).collect())));
    }
    if text.trim().is_empty() {
        let message = "the answer is empty: the next executor reads it".to_string();
        return Ok(Err(Refusal::Unfit(vec![Violation { path: "/answer".into(), message }])));
    }
    let mut asked = deciding.asked(actor, Act::Answered, id, Some(run_id));
    let mut row = accepted!(locked(sql, id)?);
    if let Some(before) = accepted!(decided(sql, &asked)?) {
        return Ok(Ok(before));
    }
    let conflict = |why: String| Ok(Err(Refusal::Conflict(why)));
    let Some(run) = reading::last_run(sql, id)?.map(|run| run.record) else {
        return conflict(format!("{id} asks nothing: it has no run yet"));
    };
    let bundle = reading::bundle(sql, &run.work_order_id)?;
    let Some(question) = bundle.as_ref().and_then(question::asked) else {
        return conflict(format!(
            "{id} asks nothing: its last run, {}, did not end with a question",
            run.run_id
        ));
    };
    if run.run_id != *run_id {
        return conflict(format!(
            "the last question of {id} is that of run {}, not of run {run_id}",
            run.run_id
        ));
    }
    let status = row.objective.status;
    let blocker = question::blocker(&question, &row.objective.blocked_on).cloned();
    let Some(blocker) = blocker.filter(|blocker| !blocker.resolved && status == ObjectiveStatus::Blocked)
    else {
        let before = answer_in_force(sql, id)?;
        let before = before.filter(|by| by.terms().answered.is_some_and(|of| of.run_id == run_id.as_str()));
        return conflict(match before {
            Some(by) => {
                format!("the question of {id} was answered already, by {} at {}", by.who, by.created_at)
            }
            None => {
                format!("the question of {id} is not open any more: it is {}", SeenStatus::of(&row.objective))
            }
        });
    };
    if reading::active_workorder(sql, id)?.is_some() {
        return conflict("its last run has not ended yet; try again in a moment".into());
    }
    let Some(registered) = azollas::in_force(sql, &row.objective.azolla_id)? else {
        return Ok(Err(Refusal::Unknown));
    };
    let now = accepted!(as_read(sql, &row, &registered, deciding)?);
    accepted!(can_start(&row, &registered, deciding));
    let answered = Answered { run_id: run_id.to_string(), question, answer: text.to_string() };
    let terms = Terms { answered: Some(answered), ..Terms::default() };
    let goes_on =
        row.objective.blocked_on.iter().all(|known| known.resolved || known.blocker_id == blocker.blocker_id);
    let next = if goes_on { ObjectiveStatus::Todo } else { status };
    asked.what.extend(fields([("resolved", json!([blocker.blocker_id])), ("status", json!(next))]));
    let decision = decide(sql, &asked, deciding, &now.on(&terms))?;
    let cells = [id.as_str().into(), blocker.blocker_id.as_str().into()];
    sql.touched(include_str!("sql/blocker_resolve.sql"), &cells)?;
    for known in row.objective.blocked_on.iter_mut().filter(|known| known.blocker_id == blocker.blocker_id) {
        known.resolved = true;
    }
    row.approval = Some(decision.record_id.clone());
    row.starts_over();
    row.objective.updated_at = sql.now();
    if goes_on {
        row.enter_todo(sql.now());
        sql.wakes(Stage::Readiness);
        objectives::update(sql, &row)?;
    } else {
        still_blocked(sql, &mut row, decision.record_id.as_str())?;
    }
    Ok(Ok(decision))
}

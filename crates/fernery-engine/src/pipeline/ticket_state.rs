//! How a ticket stands, read for [`fernery_core::pipeline::possible`], which says what can be done with it.

use super::acts::{Answer, Refusal};
use super::objectives::ObjectiveRow;
use super::{Sql, after, azollas, decisions, landing, reading};
use crate::error::StoreResult;
use fernery_core::artifact::{BlockerId, BlockerKind, BlockerRef, Objective, ObjectiveStatus};
use fernery_core::pipeline::possible::{Approved, PatchState, TicketState, Verb};
use fernery_core::pipeline::question;

/// Why an act is not possible now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotNow {
    pub status: ObjectiveStatus,
    /// What can be done instead.
    pub possible: Vec<Verb>,
    /// All of it in words.
    pub why: String,
}

/// Reads how a ticket stands. Reads only what its status makes count; where it last stopped is left to the caller.
pub fn of<'a>(sql: &mut dyn Sql, row: &'a ObjectiveRow) -> StoreResult<TicketState<'a>> {
    let (objective, id) = (&row.objective, &row.objective.objective_id);
    let in_force = azollas::in_force(sql, &objective.azolla_id)?;
    let approved = match (&row.approval, &in_force) {
        (Some(_), Some(registered)) => match decisions::covering(sql, row, registered)? {
            Some(_) => Approved::Valid,
            None => Approved::Void,
        },
        _ => Approved::Never,
    };
    let mut state = TicketState {
        unconfirmed: row.unconfirmed,
        approved,
        waits_for: after::waits_of(sql, objective)?,
        for_person: in_force.is_some_and(|registered| registered.blueprint.is_for_people()),
        ..TicketState::of(objective)
    };
    match objective.status {
        ObjectiveStatus::Blocked => {
            state.question = open_question(sql, objective)?;
            state.passed = reading::passed_run(sql, id)?.map(|run| run.record.run_id);
            state.running = reading::active_workorder(sql, id)?.is_some();
        }
        ObjectiveStatus::Done => {
            state.patch = landing::of(sql, id)?.map(|landing| PatchState {
                state: landing.state,
                fit: landing.fit,
                why: landing.why,
                waiting: None,
            });
        }
        ObjectiveStatus::New | ObjectiveStatus::Todo | ObjectiveStatus::InProgress => {}
    }
    Ok(state)
}

/// The blocker of the last run's question, if it is open.
fn open_question(sql: &mut dyn Sql, objective: &Objective) -> StoreResult<Option<BlockerId>> {
    let may_ask = |of: &BlockerRef| !of.resolved && of.kind == BlockerKind::UserInput;
    if !objective.blocked_on.iter().any(may_ask) {
        return Ok(None);
    }
    let Some(run) = reading::last_run(sql, &objective.objective_id)? else { return Ok(None) };
    let bundle = reading::bundle(sql, &run.record.work_order_id)?;
    let asked = bundle.as_ref().and_then(question::asked);
    let blocker = asked.and_then(|asked| question::blocker(&asked, &objective.blocked_on));
    Ok(blocker.filter(|of| !of.resolved).map(|of| of.blocker_id.clone()))
}

/// The refusal of an act that is not possible now.
pub(super) fn refused<T>(sql: &mut dyn Sql, row: &ObjectiveRow) -> Answer<T> {
    let state = of(sql, row)?;
    let (status, possible, why) = (row.objective.status, state.possible(), state.refusal());
    Ok(Err(Refusal::Status(Box::new(NotNow { status, possible, why }))))
}

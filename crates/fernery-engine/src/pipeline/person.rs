//! What a person has done: the workorder that no program claims, its output, its verdict and its confirmation, in one act and
//! one transaction.
//!
//! Reads: the objective, its event, its workorder, the blueprint in force. Writes, all or nothing: the approval of a NEW
//! objective, event and workorder where they are not there yet, the end of its job with the bundle, run record, DONE, pause,
//! confirmation. Refuses whatever the gates would not pass: nothing is written then.

use super::acts::{Actor, Answer, Asked, Refusal, check_note, fields};
use super::azollas::{self, Registered};
use super::claims::{self, Claimer};
use super::decisions::{self, Deciding};
use super::judging::{self, Judged};
use super::objectives::{self, ObjectiveRow, locked};
use super::reading::{self, Decision, Run};
use super::rework::Earlier;
use super::scheduling::{self, Ids};
use super::{Sql, ticket_state};
use crate::error::{StoreError, StoreResult};
use fernery_core::artifact::{
    Event, EventId, EventType, Objective, ObjectiveId, ObjectiveStatus, OutputId, RecordId, ResourceType,
    TerminalReason, WorkorderId,
};
use fernery_core::canonical::Digest;
use fernery_core::inbox::deadline::{CANCELLED, is_cancelled};
use fernery_core::journal::Act;
use fernery_core::pipeline::Violation;
use fernery_core::pipeline::evidence::{Evidence, plain_evidence};
use fernery_core::pipeline::execution::{Ended, bundle};
use fernery_core::pipeline::judging::{Verdict, verdict};
use fernery_core::pipeline::membrane::Parts;
use fernery_core::pipeline::possible::TicketState;
use fernery_core::pipeline::scheduling::blocked;
use serde_json::json;
use std::time::Duration;

/// Who holds the job and its workorder for the moment of the act, as attempts and claims have it.
const HOLDER: &str = "person";
/// How long the claim would hold; it is given back in the same transaction.
const HELD_FOR: Duration = Duration::from_secs(60);

/// What a person says is done.
#[derive(Clone, Debug)]
pub struct Doing {
    /// The id of the record. The caller chooses it, so that a repeated request does nothing twice.
    pub record_id: RecordId,
    /// The id of the approval, if the objective is still NEW.
    pub approval_id: RecordId,
    /// The digest of what the person was shown; `None`: whatever is there.
    pub digest: Option<Digest>,
    /// What came of it: the output.
    pub note: Option<String>,
    /// The id of the event, if none was emitted yet.
    pub event_id: EventId,
    /// The ids of the workorder, if it was not made yet.
    pub ids: Ids,
}

/// Ends an objective that a person carries out: DONE and confirmed. The same act again answers the same record.
pub fn done(sql: &mut dyn Sql, actor: &Actor, id: &ObjectiveId, doing: &Doing) -> Answer<Decision> {
    accepted!(check_note(doing.note.as_deref()));
    let what = fields([("note", json!(doing.note)), ("done", json!(true))]);
    let mut asked = Asked { actor, act: Act::Confirmed, id: id.as_str(), record_id: &doing.record_id, what };
    let Some(seen) = objectives::load(sql, id)? else { return Ok(Err(Refusal::Unknown)) };
    let Some(registered) = azollas::in_force(sql, &seen.objective.azolla_id)? else {
        return Ok(Err(Refusal::Unknown));
    };
    accepted!(is_for_people(&seen.objective, &registered));
    // Lock order everywhere: event, objective. So the event of an approved objective is emitted before anything is locked.
    let event = match seen.objective.status {
        ObjectiveStatus::Todo => Some(emitted(sql, &seen, doing)?),
        _ => None,
    };
    let mut row = accepted!(locked(sql, id)?);
    if let Some(before) = accepted!(decisions::decided(sql, &asked)?) {
        return Ok(Ok(before));
    }
    accepted!(may_be_done(&ticket_state::of(sql, &row)?));
    let status = row.objective.status;
    if status == ObjectiveStatus::Todo && row.entry != seen.entry {
        return Ok(Err(Refusal::Conflict(format!("{id} was approved in this very moment; say it again"))));
    }
    if status == ObjectiveStatus::Done {
        let Some(before) = decisions::confirmation(sql, id)? else { return ticket_state::refused(sql, &row) };
        return Ok(said_before(&before, doing.note.as_deref()).map(|()| before));
    }
    let output = output(&row.objective, doing.note.as_deref());
    accepted!(would_pass(sql, &row.objective, &registered, &output));
    if status == ObjectiveStatus::New {
        let approving = Deciding {
            record_id: doing.approval_id.clone(),
            digest: doing.digest,
            note: None,
            premises: None,
            from_scratch: false,
        };
        accepted!(decisions::approve(sql, actor, id, &approving)?);
        row = accepted!(locked(sql, id)?);
    }
    let work = match row.objective.status {
        ObjectiveStatus::InProgress => reading::active_workorder(sql, id)?.map(|w| w.workorder.work_order_id),
        _ => {
            let approval = decisions::current(sql, &row)?;
            if !approval.is_some_and(|approval| scheduling::covers(&approval, &row, &registered)) {
                let why =
                    format!("the approval of {id} does not cover what is there now; try again in a moment");
                return Ok(Err(Refusal::Conflict(why)));
            }
            let event = match event {
                Some(event) => event,
                // Just approved, in this transaction: nobody else knows of this entry.
                None => emitted(sql, &row, doing)?,
            };
            if event.processed {
                let why = format!("{id} is being scheduled in this very moment; say it again");
                return Ok(Err(Refusal::Conflict(why)));
            }
            let told = [id.as_str().into(), row.entry.into()];
            sql.write_new(include_str!("sql/objective_emitted.sql"), &told)?;
            let work = scheduling::make(
                sql,
                &event,
                &mut row,
                &registered,
                (None, Earlier::default(), None),
                &doing.ids,
            )?;
            scheduling::close(sql, &event, TerminalReason::Scheduled, Some(&work))?;
            Some(work)
        }
    };
    let handed_in = match work.as_ref().and_then(WorkorderId::job_id) {
        Some(job_id) => sql.hand_in(job_id, HOLDER, &output)?,
        None => false,
    };
    let (Some(work), true) = (work, handed_in) else {
        let why = format!("the workorder of {id} does not wait any more: fernery ticket show {id}");
        return Ok(Err(Refusal::Conflict(why)));
    };
    let run = judged(sql, &work)?;
    let row = accepted!(locked(sql, id)?);
    asked.what.insert("run_id".into(), json!(run.record.run_id));
    let (record_id, note) = (doing.record_id.clone(), doing.note.clone());
    let confirming = Deciding { record_id, digest: None, note, premises: None, from_scratch: false };
    decisions::confirm_run(sql, &asked, &confirming, (row, &run))
}

/// The event of the last entry into TODO, locked. It is emitted as the readiness worker would, unless that was faster.
fn emitted(sql: &mut dyn Sql, row: &ObjectiveRow, doing: &Doing) -> StoreResult<Event> {
    let objective = &row.objective;
    let cells = [
        doing.event_id.as_str().into(),
        objective.azolla_id.as_str().into(),
        EventType::TicketReady.as_str().into(),
        objective.objective_id.as_str().into(),
        row.entry.into(),
        sql.now().into(),
    ];
    sql.write_new(include_str!("sql/event_insert.sql"), &cells)?;
    let key =
        [EventType::TicketReady.as_str().into(), objective.objective_id.as_str().into(), row.entry.into()];
    let found = sql.one(include_str!("sql/event_of_entry.sql"), &key)?;
    let gone = || StoreError::Corrupt(format!("the event of {} is gone", objective.objective_id));
    reading::event(&found.ok_or_else(gone)?)
}

fn is_for_people(objective: &Objective, registered: &Registered) -> Result<(), Refusal> {
    let (id, azolla) = (&objective.objective_id, &objective.azolla_id);
    match registered.blueprint.is_for_people() {
        true => Ok(()),
        false => Err(Refusal::Conflict(format!(
            "a program does the work of azolla {azolla}, not a person; `fernery ticket show {id}` says how far it is"
        ))),
    }
}

/// Whether a person can say now that it is done; otherwise what to do.
fn may_be_done(state: &TicketState<'_>) -> Result<(), Refusal> {
    let (objective, id) = (&*state.objective, &state.objective.objective_id);
    let stop = match objective.status {
        _ if is_cancelled(objective) => format!("{id} is {CANCELLED}. {}", state.taken_up()),
        _ if objective.has_open_blockers() => {
            let stop = blocked(state);
            format!("{id} is {}. {}", stop.why, stop.actions.join(". "))
        }
        ObjectiveStatus::Blocked => {
            let why = objective.blocked_reason.as_deref().unwrap_or("blocked");
            format!("{id} is BLOCKED ({why}); take it up again first: fernery ticket unblock {id} --all")
        }
        _ => return Ok(()),
    };
    Err(Refusal::Conflict(stop))
}

/// Whether nothing new is said of what is done already: a note would not be kept anywhere.
fn said_before(before: &Decision, note: Option<&str>) -> Result<(), Refusal> {
    match note.filter(|note| before.note.as_deref() != Some(note)) {
        None => Ok(()),
        Some(_) => Err(Refusal::Conflict(format!(
            "{id} is done already, since {at} by {who}: your note was not kept. To do it again: fernery ticket reopen {id} \
             --note \"what is missing\"",
            id = before.objective_id,
            at = before.created_at,
            who = before.who,
        ))),
    }
}

/// The note is the output.
fn output(objective: &Objective, note: Option<&str>) -> Parts {
    let content = note.map(str::trim).filter(|note| !note.is_empty()).unwrap_or("Done.");
    let metadata = [("outcome".to_string(), json!("OUTPUT"))].into();
    Parts { title: objective.title.clone(), content: content.to_string(), notes: String::new(), metadata }
}

/// Refuses what the gates would not let pass, so that a person can mend it before anything is written.
fn would_pass(
    sql: &mut dyn Sql,
    objective: &Objective,
    registered: &Registered,
    output: &Parts,
) -> Result<(), Refusal> {
    let ended = Ended::Completed(output.clone());
    let bundle = bundle(OutputId::stored(HOLDER), objective.objective_id.clone(), ended, sql.now());
    let gates = &registered.blueprint.gates;
    let evidence: Vec<Evidence> =
        gates.iter().map_while(|gate| plain_evidence(gate, &bundle, None)).collect();
    match verdict(gates, &evidence, &bundle) {
        Verdict::Pass => Ok(()),
        Verdict::Fail(message) | Verdict::Trouble(message) => {
            Err(Refusal::Unfit(vec![Violation { path: "/note".into(), message }]))
        }
    }
}

/// Judges the workorder that was just executed.
fn judged(sql: &mut dyn Sql, work: &WorkorderId) -> StoreResult<Run> {
    let lost = || StoreError::Corrupt(format!("workorder {work} changed while it was locked"));
    let version = reading::workorder_by_id(sql, work)?.ok_or_else(lost)?.claim_version;
    let by = Claimer { owner_id: HOLDER.to_string(), ttl: HELD_FOR };
    let held = claims::take(sql, ResourceType::Workorder, &[(work.as_str(), version)], &by)?;
    let held = held.into_iter().flatten().next().ok_or_else(lost)?;
    let gate_input = super::gate_input::gate_input(sql, work)?.ok_or_else(lost)?;
    let gates = &gate_input.blueprint.gates;
    let evidence: Vec<Evidence> =
        gates.iter().map_while(|gate| plain_evidence(gate, &gate_input.bundle, None)).collect();
    match judging::conclude(sql, &held, &evidence)? {
        Judged::Recorded(record) if record.gate_result == fernery_core::artifact::GateResult::Pass => {
            Ok(Run { record, evidence })
        }
        other => Err(StoreError::Corrupt(format!("workorder {work} did not pass its gates: {other:?}"))),
    }
}

//! What operators decide about an objective: approve, block, unblock, confirm, reopen, cancel.
//!
//! Each is one transaction of [`decisions`], which decides; here a refusal becomes a problem that says what to do instead.

use super::objectives::{objective_id, view};
use super::pipeline::missing;
use crate::http::problem::{Code, Refusal, Refused};
use crate::http::wire::answer::{Call, Replied, Reply};
use crate::http::wire::json;
use fernery_client::wire::{
    ApproveRequest, BlockRequest, ConfirmRequest, DecisionResponse, Difference, FieldProblem, NoteRequest,
    ReopenRequest, UnblockRequest,
};
use fernery_core::artifact::{ObjectiveId, ObjectiveStatus, ObjectiveType, RecordId};
use fernery_core::canonical::Digest;
use fernery_core::pipeline::Violation;
use fernery_core::pipeline::lifecycle::{Step, after};
use fernery_engine::door;
use fernery_engine::pipeline::Sql;
use fernery_engine::pipeline::acts::{self, Actor, Refusal as Refusing};
use fernery_engine::pipeline::decisions::{self, Deciding, Resolved};
use fernery_engine::pipeline::objectives::{self, ObjectiveRow};
use fernery_engine::pipeline::reading::Decision;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::fmt::Display;

/// Who acts, as the record has it.
pub(in crate::http) fn actor(call: &Call) -> Actor {
    // The routes let nobody in without a token.
    let token = call.caller.0.as_ref();
    Actor(token.map_or_else(|| "nobody".into(), |t| format!("{} ({})", t.row.name, t.row.token_id)))
}

pub(in crate::http) fn optional<T: DeserializeOwned + Default>(call: &Call) -> Result<T, Refused> {
    if call.body.is_empty() { Ok(T::default()) } else { json::read(&call.body) }
}

/// The caller's id of the act, or one for the tries of this call.
pub(in crate::http) fn record(given: Option<RecordId>) -> RecordId {
    given.unwrap_or_else(|| RecordId::stored(&door::artifact_id()))
}

fn deciding(
    call: &Call,
    record_id: Option<RecordId>,
    digest: Option<Digest>,
    note: Option<String>,
) -> Deciding {
    let premises = call.server.settings.pipeline.premises().cloned();
    Deciding { record_id: record(record_id), digest, note, premises }
}

async fn decide(
    call: Call,
    id: ObjectiveId,
    mut verb: impl FnMut(&mut dyn Sql, &Actor, &ObjectiveId) -> acts::Answer<Decision> + Send + 'static,
) -> Replied {
    let _writing = call.writing()?;
    let (who, named) = (actor(&call), id.clone());
    let substrate = call.server.engine().substrate();
    let decided = substrate.act(&id, move |sql| {
        let decision = match verb(sql, &who, &named)? {
            Ok(decision) => decision,
            Err(refusal) => return Ok(Err(refusal)),
        };
        door::failpoint("act-written");
        Ok(objectives::load(sql, &named)?.map(|row| (decision, row)).ok_or(Refusing::Unknown))
    });
    let (decision, row) = decided.await?.map_err(|refusal| refused(refusal, &id))?;
    door::failpoint("act-durable");
    Reply::json(200, &DecisionResponse { decision: json!(decision), standing: view(&row) })
}

/// `POST /v1/objectives/{id}/approve`
pub async fn approve(call: Call) -> Replied {
    let id = objective_id(&call)?;
    let ApproveRequest { digest, note, record_id } = json::read(&call.body)?;
    let deciding = deciding(&call, record_id, Some(digest), note);
    decide(call, id, move |sql, who, id| decisions::approve(sql, who, id, &deciding)).await
}

/// `POST /v1/objectives/{id}/confirm`
pub async fn confirm(call: Call) -> Replied {
    let id = objective_id(&call)?;
    let ConfirmRequest { run_id, note, record_id } = json::read(&call.body)?;
    let deciding = deciding(&call, record_id, None, note);
    decide(call, id, move |sql, who, id| decisions::confirm(sql, who, (id, &run_id), &deciding)).await
}

/// `POST /v1/objectives/{id}/reopen`
pub async fn reopen(call: Call) -> Replied {
    let id = objective_id(&call)?;
    let ReopenRequest { digest, note, record_id } = json::read(&call.body)?;
    let deciding = deciding(&call, record_id, Some(digest), Some(note));
    decide(call, id, move |sql, who, id| decisions::reopen(sql, who, id, &deciding)).await
}

/// `POST /v1/objectives/{id}/block`
pub async fn block(call: Call) -> Replied {
    let id = objective_id(&call)?;
    let BlockRequest { blocker_id, kind, description, record_id } = json::read(&call.body)?;
    let record = record(record_id);
    act(call, id, move |sql, who, id| {
        decisions::block(sql, who, (id, &record), blocker_id.clone(), kind, &description)
    })
    .await
}

/// `POST /v1/objectives/{id}/unblock`
pub async fn unblock(call: Call) -> Replied {
    let id = objective_id(&call)?;
    let UnblockRequest { blockers, all, record_id } = json::read(&call.body)?;
    let resolved = match (blockers.is_empty(), all) {
        (true, true) => Resolved::All,
        (false, false) => Resolved::These(blockers),
        (true, false) => {
            let detail = "name the blockers that are resolved, or send \"all\": true";
            return Err(Refusal::field(Code::Invalid, "/blockers", detail));
        }
        (false, true) => {
            return Err(Refusal::field(Code::Invalid, "/all", "give blockers or \"all\": true, not both"));
        }
    };
    let record = record(record_id);
    act(call, id, move |sql, who, id| decisions::unblock(sql, who, (id, &record), &resolved)).await
}

/// `POST /v1/objectives/{id}/cancel`
pub async fn cancel(call: Call) -> Replied {
    let id = objective_id(&call)?;
    let NoteRequest { note, record_id } = optional(&call)?;
    let record = record(record_id);
    act(call, id, move |sql, who, id| decisions::cancel(sql, who, (id, &record), note.as_deref())).await
}

async fn act(
    call: Call,
    id: ObjectiveId,
    mut verb: impl FnMut(&mut dyn Sql, &Actor, &ObjectiveId) -> acts::Answer<ObjectiveRow> + Send + 'static,
) -> Replied {
    let _writing = call.writing()?;
    let (who, named) = (actor(&call), id.clone());
    let substrate = call.server.engine().substrate();
    let done = substrate.act(&id, move |sql| {
        let done = verb(sql, &who, &named)?;
        door::failpoint("act-written");
        Ok(done)
    });
    let done = done.await?;
    door::failpoint("act-durable");
    acted(done, &id)
}

/// Where an act left the objective, or why it was refused.
pub(in crate::http) fn acted(done: Result<ObjectiveRow, Refusing>, id: &ObjectiveId) -> Replied {
    Reply::json(200, &view(&done.map_err(|refusal| refused(refusal, id))?))
}

/// A refusal of an act on an objective as the caller hears it.
pub(in crate::http) fn refused(refusal: Refusing, id: &ObjectiveId) -> Refused {
    refused_on("objective", id, refusal)
}

/// A refusal of the substrate as the caller hears it, of an act on what is called so.
pub(in crate::http) fn refused_on(what: &str, id: &impl Display, refusal: Refusing) -> Refused {
    match refusal {
        Refusing::Unknown => missing(what, id)(),
        Refusing::UnknownAzolla(known) => {
            let known: Vec<&str> = known.iter().map(|id| id.as_str()).collect();
            let detail = match known.as_slice() {
                [] => "there is no azolla yet".to_string(),
                known => format!("there is no azolla with this id; there are: {}", known.join(", ")),
            };
            Refusal::field(Code::Invalid, "/azolla_id", detail)
        }
        Refusing::Status(status) => wrong_status(status, id),
        Refusing::Taken => Refusal::new(Code::Conflict, "this id is already used for something else"),
        Refusing::Changed { now, difference } => {
            let detail =
                format!("{id} changed after it was read; read it again, then approve {}", now.digest);
            let mut refused = Refusal::new(Code::Changed, detail);
            let change = |(path, before, now)| Difference { path, before, now };
            refused.more.digest = Some(now.digest.to_string());
            refused.more.shown = Some(now.content);
            refused.more.difference = difference.into_iter().map(change).collect();
            refused
        }
        Refusing::OtherRun(last) => {
            let detail = format!(
                "the last run of {id} is {}, not the one that was checked; check it, then confirm that one",
                last.run_id
            );
            let mut refused = Refusal::new(Code::Changed, detail);
            refused.more.shown = Some(json!({ "run_record": last }));
            refused
        }
        Refusing::Conflict(why) => Refusal::new(Code::Conflict, why),
        Refusing::NoRepository(why) => Refusal::new(Code::NoRepository, why),
        Refusing::Nobody(why) => Refusal::new(Code::NotFound, why),
        Refusing::Unfit(violations) => Refusal::fields(fields(violations)),
    }
}

/// Violations as a problem names them.
pub(in crate::http) fn fields(violations: Vec<Violation>) -> Vec<FieldProblem> {
    violations.into_iter().map(|v| FieldProblem { pointer: v.path, detail: v.message }).collect()
}

fn wrong_status(status: ObjectiveStatus, id: &impl Display) -> Refused {
    let possible = possible(status);
    let detail = format!("{id} is {status}; possible actions: {}", possible.join(", "));
    let mut refused = Refusal::new(Code::WrongStatus, detail);
    refused.more.objective_status = Some(status.to_string());
    refused.more.possible = possible.into_iter().map(str::to_string).collect();
    refused
}

/// What an operator can do to an objective that stands so.
fn possible(status: ObjectiveStatus) -> Vec<&'static str> {
    let leads = |step| after(ObjectiveType::Ticket, status, step).is_some();
    let blocked = status == ObjectiveStatus::Blocked;
    [
        ("approve", leads(Step::Approve)),
        ("edit", leads(Step::Edit)),
        ("block", leads(Step::Block) || blocked),
        ("unblock", blocked),
        ("confirm", status == ObjectiveStatus::Done),
        ("reopen", leads(Step::Reopen)),
        ("cancel", leads(Step::Cancel)),
    ]
    .into_iter()
    .filter_map(|(act, possible)| possible.then_some(act))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_possible_is_what_the_lifecycle_allows() {
        let table: Vec<String> =
            ObjectiveStatus::ALL.iter().map(|s| format!("{s}: {}", possible(*s).join(" "))).collect();
        assert_eq!(
            table,
            [
                "NEW: approve edit block cancel",
                "TODO: edit block cancel",
                "IN_PROGRESS: cancel",
                "BLOCKED: edit block unblock",
                "DONE: confirm reopen",
            ]
        );
    }
}

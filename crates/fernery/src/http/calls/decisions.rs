//! What operators decide about what they were shown: approve, confirm, reopen. Each is one transaction of [`decisions`],
//! which decides.

use super::acting::{actor, record, refused};
use super::named::named;
use super::objectives::view;
use crate::http::wire::answer::{Call, Replied, Reply};
use crate::http::wire::json;
use fernery_client::wire::{ApproveRequest, ConfirmRequest, DecisionResponse, ReopenRequest};
use fernery_core::artifact::{ObjectiveId, RecordId};
use fernery_core::canonical::Digest;
use fernery_engine::door;
use fernery_engine::pipeline::Sql;
use fernery_engine::pipeline::acts::{Actor, Answer, Refusal as Refusing};
use fernery_engine::pipeline::decisions::{self, Deciding};
use fernery_engine::pipeline::objectives;
use fernery_engine::pipeline::reading::Decision;
use serde_json::json;

/// `POST /v1/objectives/{id}/approve`
pub async fn approve(call: Call) -> Replied {
    let id: ObjectiveId = named(&call)?;
    let ApproveRequest { digest, note, record_id } = json::read(&call.body)?;
    let deciding = deciding(&call, record_id, Some(digest), note);
    decide(call, id, move |sql, who, id| decisions::approve(sql, who, id, &deciding)).await
}

/// `POST /v1/objectives/{id}/confirm`
pub async fn confirm(call: Call) -> Replied {
    let id: ObjectiveId = named(&call)?;
    let ConfirmRequest { run_id, note, record_id } = json::read(&call.body)?;
    let deciding = deciding(&call, record_id, None, note);
    decide(call, id, move |sql, who, id| decisions::confirm(sql, who, (id, &run_id), &deciding)).await
}

/// `POST /v1/objectives/{id}/reopen`
pub async fn reopen(call: Call) -> Replied {
    let id: ObjectiveId = named(&call)?;
    let ReopenRequest { digest, note, record_id } = json::read(&call.body)?;
    let deciding = deciding(&call, record_id, Some(digest), Some(note));
    decide(call, id, move |sql, who, id| decisions::reopen(sql, who, id, &deciding)).await
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
    mut verb: impl FnMut(&mut dyn Sql, &Actor, &ObjectiveId) -> Answer<Decision> + Send + 'static,
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
    Reply::json(200, &DecisionResponse { decision: json!(decision), view: view(&row) })
}

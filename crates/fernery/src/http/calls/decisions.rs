//! What operators decide about what they were shown: approve, confirm, reopen, answer, done. Each is one transaction of
//! [`decisions`], [`answering`] or [`person`], which decides.

use super::acting::{actor, optional, record, refused};
use super::landings;
use super::named::named;
use super::objectives::view;
use crate::http::wire::answer::{Call, Replied, Reply};
use crate::http::wire::json;
use fernery_client::wire::{
    AnswerRequest, ApproveRequest, ConfirmRequest, DecisionResponse, DoneRequest, ObjectiveView,
    ReopenRequest,
};
use fernery_core::artifact::{EventId, ObjectiveId, RecordId, SnapshotId};
use fernery_core::canonical::Digest;
use fernery_engine::door;
use fernery_engine::pipeline::acts::{Actor, Answer, Refusal as Refusing};
use fernery_engine::pipeline::answering;
use fernery_engine::pipeline::comments::ReadComments;
use fernery_engine::pipeline::decisions::{self, Deciding};
use fernery_engine::pipeline::objectives;
use fernery_engine::pipeline::person::{self, Doing};
use fernery_engine::pipeline::reading::Decision;
use fernery_engine::pipeline::scheduling::Ids;
use fernery_engine::pipeline::{Sql, after};
use serde_json::json;

/// `POST /v1/objectives/{id}/approve`
pub async fn approve(call: Call) -> Replied {
    let id: ObjectiveId = named(&call)?;
    let ApproveRequest { digest, note, record_id, from_scratch } = json::read(&call.body)?;
    let deciding = Deciding { from_scratch, ..deciding(&call, record_id, Some(digest), note) };
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
    let ReopenRequest { digest, note, record_id, from_scratch, comments } = json::read(&call.body)?;
    let deciding = Deciding { from_scratch, ..deciding(&call, record_id, Some(digest), Some(note)) };
    let read = comments.map(|of| ReadComments { run_id: of.run_id, digest: of.digest });
    decide(call, id, move |sql, who, id| decisions::reopen_with(sql, who, id, (&deciding, read.as_ref())))
        .await
}

/// `POST /v1/objectives/{id}/done`
pub async fn done(call: Call) -> Replied {
    let id: ObjectiveId = named(&call)?;
    let DoneRequest { note, digest, record_id } = optional(&call)?;
    let doing = Doing {
        record_id: record(record_id),
        approval_id: record(None),
        digest,
        note,
        event_id: EventId::stored(&door::artifact_id()),
        ids: Ids {
            job_id: call.server.engine().settings().store.chance.job_id(),
            snapshot_id: SnapshotId::stored(&door::artifact_id()),
        },
    };
    decide(call, id, move |sql, who, id| person::done(sql, who, id, &doing)).await
}

/// `POST /v1/objectives/{id}/answer`
pub async fn answer(call: Call) -> Replied {
    let id: ObjectiveId = named(&call)?;
    let AnswerRequest { digest, run_id, answer, record_id } = json::read(&call.body)?;
    let deciding = deciding(&call, record_id, Some(digest), Some(answer));
    decide(call, id, move |sql, who, id| answering::answer(sql, who, (id, &run_id), &deciding)).await
}

pub(super) fn deciding(
    call: &Call,
    record_id: Option<RecordId>,
    digest: Option<Digest>,
    note: Option<String>,
) -> Deciding {
    let premises = call.server.settings.pipeline.premises();
    Deciding { record_id: record(record_id), digest, note, premises, from_scratch: false }
}

pub(super) async fn decide(
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
        let landing = landings::of_objective(sql, &named)?;
        let Some(row) = objectives::load(sql, &named)? else { return Ok(Err(Refusing::Unknown)) };
        let waits_for = after::waits_of(sql, &row.objective)?;
        Ok(Ok((decision, row, (landing, waits_for))))
    });
    let (decision, row, (landing, waits_for)) = decided.await?.map_err(|refusal| refused(refusal, &id))?;
    door::failpoint("act-durable");
    Reply::json(
        200,
        &DecisionResponse {
            decision: json!(decision),
            view: ObjectiveView { landing, waits_for, ..view(&row) },
        },
    )
}

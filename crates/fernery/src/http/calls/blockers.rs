//! Operators stop an objective and let it continue: block, unblock, cancel. Each is one transaction of [`blockers`], which
//! decides.

use super::acting::{actor, optional, record, refused};
use super::named::named;
use super::objectives::view;
use crate::http::problem::{Code, Refusal};
use crate::http::wire::answer::{Call, Replied, Reply};
use crate::http::wire::json;
use fernery_client::wire::{BlockRequest, NoteRequest, UnblockRequest};
use fernery_core::artifact::ObjectiveId;
use fernery_engine::door;
use fernery_engine::pipeline::Sql;
use fernery_engine::pipeline::acts::{Actor, Answer};
use fernery_engine::pipeline::blockers::{self, Resolved};
use fernery_engine::pipeline::objectives::ObjectiveRow;

/// `POST /v1/objectives/{id}/block`
pub async fn block(call: Call) -> Replied {
    let id: ObjectiveId = named(&call)?;
    let BlockRequest { blocker_id, kind, description, record_id } = json::read(&call.body)?;
    let record = record(record_id);
    act(call, id, move |sql, who, id| {
        blockers::block(sql, who, (id, &record), blocker_id.clone(), kind, &description)
    })
    .await
}

/// `POST /v1/objectives/{id}/unblock`
pub async fn unblock(call: Call) -> Replied {
    let id: ObjectiveId = named(&call)?;
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
    act(call, id, move |sql, who, id| blockers::unblock(sql, who, (id, &record), &resolved)).await
}

/// `POST /v1/objectives/{id}/cancel`
pub async fn cancel(call: Call) -> Replied {
    let id: ObjectiveId = named(&call)?;
    let NoteRequest { note, record_id } = optional(&call)?;
    let record = record(record_id);
    act(call, id, move |sql, who, id| blockers::cancel(sql, who, (id, &record), note.as_deref())).await
}

async fn act(
    call: Call,
    id: ObjectiveId,
    mut verb: impl FnMut(&mut dyn Sql, &Actor, &ObjectiveId) -> Answer<ObjectiveRow> + Send + 'static,
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
    Reply::json(200, &view(&done.map_err(|refusal| refused(refusal, &id))?))
}

//! Acts on all jobs that match: count them, ask for the act, look how far it is, stop it. The engine carries them out.

use super::acting::{actor, record, refused_on};
use super::named::{named, unknown};
use super::paging::Place;
use super::workorder_jobs;
use crate::http::problem::{Refusal, Refused};
use crate::http::wire::answer::{Call, Replied, Reply};
use crate::http::wire::json;
use fernery_client::wire::{BulkCount, BulkPage, BulkRequest, BulkView, FieldProblem};
use fernery_core::artifact::RecordId;
use fernery_core::job::bulk::{BulkFilter, Counted};
use fernery_core::{JobStatus, Timestamp, limits};
use fernery_engine::door;
use fernery_engine::pipeline::bulk::{self, BulkAct, NewBulk};

/// `POST /v1/bulk`
pub async fn start(call: Call) -> Replied {
    let asked: BulkRequest = json::read(&call.body)?;
    check(&asked)?;
    let substrate = call.server.engine().substrate();
    let now = call.server.engine().store().now().await?;
    let before = asked.before.map_or(now, |before| bulk::at_the_latest(before, now));
    let expected = count(&call, &asked, before).await?;
    if asked.dry_run {
        let (matching, counted) = expected;
        return Reply::json(200, &BulkCount { matching, counted, before });
    }
    let new = NewBulk {
        act_id: record(asked.act_id),
        verb: asked.verb,
        status: asked.status,
        stream: asked.stream,
        code: asked.code,
        before: asked.before,
        expected,
    };
    let _writing = call.writing()?;
    let (who, id) = (actor(&call), new.act_id.clone());
    let started = substrate.transact(move |sql| {
        let started = bulk::start(sql, &who, &new)?;
        door::failpoint("act-written");
        Ok(started)
    });
    let (act, made) = started.await?.map_err(|refusal| refused_on("bulk act", &id, refusal))?;
    door::failpoint("act-durable");
    Reply::json(if made { 201 } else { 200 }, &view(act))
}

fn check(asked: &BulkRequest) -> Result<(), Refused> {
    let mut wrong = Vec::new();
    let mut field =
        |pointer: &str, detail: String| wrong.push(FieldProblem { pointer: pointer.into(), detail });
    if let Some(why) = asked.verb.unfit_for(asked.status) {
        field("/status", why);
    }
    if let Some(code) = &asked.code {
        if asked.status != JobStatus::Dead {
            field("/code", format!("only DEAD jobs have an error code; status is {}", asked.status));
        }
        if code.contains('\0') || code.len() > limits::ERROR_CODE_BYTES_MAX {
            let most = limits::ERROR_CODE_BYTES_MAX;
            field("/code", format!("a code has at most {most} bytes and no NUL character"));
        }
    }
    if !wrong.is_empty() {
        return Err(Refusal::fields(wrong));
    }
    match asked.stream.as_ref().filter(|stream| stream.is_workorders()) {
        Some(stream) => Err(workorder_jobs::stream_refused(stream)),
        None => Ok(()),
    }
}

async fn count(call: &Call, asked: &BulkRequest, before: Timestamp) -> Result<(u64, Counted), Refused> {
    let (status, stream, code) = (asked.status, asked.stream.clone(), asked.code.clone());
    let filter = BulkFilter { status, stream, code, before };
    Ok(bulk::matching(&call.server.engine().substrate(), &filter, asked.before.is_none()).await?)
}

/// `GET /v1/bulk`
pub async fn list(call: Call) -> Replied {
    let place = Place::read(&call, "bulk acts".to_string())?;
    let (below, rows) = (place.below.clone(), place.rows_and_one());
    let substrate = call.server.engine().substrate();
    let found = substrate.read(move |sql| bulk::page(sql, &below, rows)).await?;
    let (acts, next_cursor) = place.page(found, BulkAct::place);
    Reply::json(200, &BulkPage { acts: acts.into_iter().map(view).collect(), next_cursor })
}

/// `GET /v1/bulk/{id}`
pub async fn read(call: Call) -> Replied {
    let id: RecordId = named(&call)?;
    let found = call.server.engine().substrate().read(move |sql| bulk::by_id(sql, &id)).await?;
    Reply::json(200, &view(found.ok_or_else(unknown(&call, "bulk act"))?))
}

/// `POST /v1/bulk/{id}/stop`
pub async fn stop(call: Call) -> Replied {
    let id: RecordId = named(&call)?;
    call.no_fields()?;
    let _writing = call.writing()?;
    let (who, of) = (actor(&call), id.clone());
    let substrate = call.server.engine().substrate();
    let stopped = substrate.transact(move |sql| {
        let stopped = bulk::stop(sql, &who, &of)?;
        door::failpoint("act-written");
        Ok(stopped)
    });
    let act = stopped.await?.map_err(|refusal| refused_on("bulk act", &id, refusal))?;
    door::failpoint("act-durable");
    Reply::json(200, &view(act))
}

fn view(act: BulkAct) -> BulkView {
    BulkView {
        verb: act.verb,
        status: act.filter.status,
        stream: act.filter.stream,
        code: act.filter.code,
        before: act.filter.before,
        actor: act.actor,
        state: act.state,
        expected: act.expected.0,
        counted: act.expected.1,
        done: act.done,
        refused: act.refused,
        created_at: act.created_at,
        updated_at: act.updated_at,
        ended_at: act.ended_at,
        trouble: act.trouble,
        act_id: act.act_id,
    }
}

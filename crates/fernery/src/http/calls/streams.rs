//! Streams: their counts, pause and resume.

use crate::config::duration::millis;
use crate::http::problem::{Code, Refusal, Refused};
use crate::http::wire::answer::{Call, Replied, Reply};
use crate::http::wire::cursor;
use fernery_client::wire::{StreamDetail, StreamList};
use fernery_core::{BadName, StreamName, Timestamp, limits};
use fernery_engine::store::StreamView;

/// The list that its cursors belong to.
const LIST: &str = "streams";

/// `GET /v1/streams`
pub async fn list(call: Call) -> Replied {
    let after = call.query.text("cursor").map(|text| cursor::read::<StreamName>(text, LIST)).transpose()?;
    // Without `limit` the answer has as many streams as can be open.
    let rows = call.query.text("limit").map_or(Ok(limits::STREAMS_MAX), |_| call.page_rows())?;
    let store = call.server.engine().store();
    let (mut views, now) = (store.streams(after, rows + 1).await?, store.now().await?);
    let more = views.len() > rows;
    views.truncate(rows);
    let next_cursor = views.last().filter(|_| more).map(|last| cursor::write(&last.name, LIST));
    Reply::json(
        200,
        &StreamList { streams: views.into_iter().map(|view| detail(view, now)).collect(), next_cursor },
    )
}

/// `GET /v1/streams/{name}`
pub async fn read(call: Call) -> Replied {
    let name = name(&call)?;
    shown(&call, name).await
}

/// `POST /v1/streams/{name}/pause`
pub async fn pause(call: Call) -> Replied {
    set_paused(call, true).await
}

/// `POST /v1/streams/{name}/resume`
pub async fn resume(call: Call) -> Replied {
    set_paused(call, false).await
}

async fn set_paused(call: Call, paused: bool) -> Replied {
    let name = name(&call)?;
    call.no_fields()?;
    let _writing = call.writing()?;
    if !call.server.engine().store().set_paused(name.clone(), paused).await? {
        return Err(no_such_stream());
    }
    shown(&call, name).await
}

async fn shown(call: &Call, name: StreamName) -> Replied {
    let store = call.server.engine().store();
    let view = store.stream(name).await?.ok_or_else(no_such_stream)?;
    Reply::json(200, &detail(view, store.now().await?))
}

fn name(call: &Call) -> Result<StreamName, Refused> {
    call.param.parse().map_err(|bad: BadName| Refusal::new(Code::NotFound, bad.to_string()))
}

fn no_such_stream() -> Refused {
    Refusal::new(
        Code::NotFound,
        "this stream does not exist: no job was ever enqueued to it, or it was empty for so long that it was removed",
    )
}

fn detail(view: StreamView, now: Timestamp) -> StreamDetail {
    let counts = view.counts;
    let age = |since: Timestamp| millis(now.since(since));
    StreamDetail {
        stream: view.name,
        paused: view.paused,
        depth: counts.ready + counts.scheduled,
        ready: counts.ready,
        scheduled: counts.scheduled,
        running: counts.running,
        succeeded: counts.succeeded,
        dead: counts.dead,
        cancelled: counts.cancelled,
        oldest_age_ms: view.oldest_ready_at.map(age),
        oldest_ready_at: view.oldest_ready_at,
    }
}

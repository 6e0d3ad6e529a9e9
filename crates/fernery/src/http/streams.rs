//! Streams: their counts, pause and resume.

use super::answer::{Call, Replied, Reply};
use super::problem::{Code, Refusal, Refused};
use fernery_client::wire::{StreamDetail, StreamList};
use fernery_core::{BadName, StreamName, Timestamp};
use fernery_engine::store::StreamView;

/// `GET /v1/streams`
pub async fn list(call: Call) -> Replied {
    let store = call.server.engine().store();
    let (views, now) = (store.streams().await?, store.now().await?);
    Reply::json(200, &StreamList { streams: views.into_iter().map(|view| detail(view, now)).collect() })
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
    Refusal::new(Code::NotFound, "no job was ever enqueued to this stream")
}

fn detail(view: StreamView, now: Timestamp) -> StreamDetail {
    let counts = view.counts;
    let age = |since: Timestamp| u64::try_from(now.since(since).as_millis()).unwrap_or(u64::MAX);
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

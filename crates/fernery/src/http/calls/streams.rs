//! Streams: their counts, what happened in them, what is set for them, pause and resume.

use super::acting::actor;
use super::opened;
use crate::config::duration::millis;
use crate::http::problem::{Code, Refusal, Refused};
use crate::http::wire::answer::{Call, Replied, Reply};
use crate::http::wire::{cursor, json};
use fernery_client::wire::{StatsPoint, StreamDetail, StreamList, StreamSettings, StreamStats};
use fernery_core::job::stats::{Histogram, StatsCounts, StatsRange};
use fernery_core::{BadName, StreamName, Timestamp, limits};
use fernery_engine::pipeline::{Sql, streams};
use fernery_engine::store::{StreamChange, StreamView};

/// The list that its cursors belong to.
const LIST: &str = "streams";

/// `GET /v1/streams`
pub async fn list(call: Call) -> Replied {
    let after = call.query.text("cursor").map(|text| cursor::read::<StreamName>(text, LIST)).transpose()?;
    // Without `limit` the answer has as many streams as can be open.
    let range = call.query.parsed("range")?;
    let all = call.query.text("limit").is_none() && range.is_none();
    let rows = if all { limits::STREAMS_MAX } else { call.page_rows()? };
    let store = call.server.engine().store();
    let (mut views, now) = (store.streams(after, rows + 1).await?, store.now().await?);
    let more = views.len() > rows;
    views.truncate(rows);
    let next_cursor = views.last().filter(|_| more).map(|last| cursor::write(&last.name, LIST));
    let mut streams: Vec<StreamDetail> = views.into_iter().map(|view| detail(view, now)).collect();
    with_stats(&call, range, &mut streams).await?;
    Reply::json(200, &StreamList { streams, next_cursor })
}

/// `GET /v1/streams/{name}`
pub async fn read(call: Call) -> Replied {
    let (name, range) = (name(&call)?, call.query.parsed("range")?);
    shown(&call, name, range).await
}

/// `PUT /v1/streams/{name}`
///
/// Of a stream that is not there too, so that a setting is in force before the first job.
pub async fn set(call: Call) -> Replied {
    let invalid = |bad: BadName| Refusal::new(Code::Invalid, format!("the name of the stream: {bad}"));
    let name: StreamName = call.param.parse().map_err(invalid)?;
    let StreamSettings { redact } = json::read(&call.body)?;
    if name.is_reserved() {
        let why = match name.is_workorders() {
            true => "its jobs carry workorders, which everybody who reads tickets sees",
            false => "only the server itself uses it",
        };
        return Err(Refusal::new(Code::Conflict, format!("nothing can be set for stream {name}: {why}")));
    }
    let _writing = call.writing()?;
    opened::open_one(&call, &name).await?;
    let (who, stream) = (actor(&call), name.clone());
    let set = move |sql: &mut dyn Sql| streams::set(sql, &who, &stream, StreamChange { redact });
    call.server.engine().substrate().transact(set).await?;
    shown(&call, name, None).await
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
    shown(&call, name, None).await
}

async fn shown(call: &Call, name: StreamName, range: Option<StatsRange>) -> Replied {
    let store = call.server.engine().store();
    let view = store.stream(name).await?.ok_or_else(no_such_stream)?;
    let mut found = [detail(view, store.now().await?)];
    with_stats(call, range, &mut found).await?;
    let [stream] = found;
    Reply::json(200, &stream)
}

/// Adds what happened in these streams, if a range was asked for.
async fn with_stats(
    call: &Call,
    range: Option<StatsRange>,
    streams: &mut [StreamDetail],
) -> Result<(), Refused> {
    let Some(range) = range else { return Ok(()) };
    let names = streams.iter().map(|stream| stream.stream.clone()).collect();
    let (since, histories) = call.server.engine().store().stats(names, range).await?;
    for (stream, history) in streams.iter_mut().zip(histories) {
        let mut total = StatsCounts::default();
        history.iter().for_each(|(_, counts)| total.add(counts));
        stream.stats = Some(StreamStats {
            range,
            point_ms: u64::try_from(range.minutes()).unwrap_or_default() * 60_000,
            total: point(since, &total),
            points: history.iter().map(|(at, counts)| point(*at, counts)).collect(),
        });
    }
    Ok(())
}

fn point(at: Timestamp, counts: &StatsCounts) -> StatsPoint {
    let of = |times: &Histogram, percent| times.quantile(percent).map(millis);
    StatsPoint {
        at,
        enqueued: counts.enqueued,
        completed: counts.completed,
        failed: counts.failed,
        dead: counts.dead,
        wait_p50_ms: of(&counts.waits, 50),
        wait_p95_ms: of(&counts.waits, 95),
        run_p50_ms: of(&counts.runs, 50),
        run_p95_ms: of(&counts.runs, 95),
    }
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
        redact: view.redact,
        depth: counts.ready + counts.scheduled,
        ready: counts.ready,
        scheduled: counts.scheduled,
        running: counts.running,
        succeeded: counts.succeeded,
        dead: counts.dead,
        cancelled: counts.cancelled,
        oldest_age_ms: view.oldest_ready_at.map(age),
        oldest_ready_at: view.oldest_ready_at,
        stats: None,
    }
}

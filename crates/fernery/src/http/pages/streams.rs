//! `GET /streams`: where jobs wait: how many, for how long, and whether anybody may claim them.

use super::frame::Frame;
use super::reply::PageReply;
use super::show::{Line, Ways, When};
use super::visit::{Shown, Visit, api, link};
use askama::Template;
use fernery_client::wire::{StreamDetail, StreamList};
use fernery_core::limits;

/// What can be done to a stream.
struct Act {
    /// The path of its form.
    path: String,
    word: &'static str,
    ways: Ways,
}

struct Row {
    name: Line,
    id: String,
    jobs: String,
    dead_jobs: String,
    stream: StreamDetail,
    oldest: Option<When>,
    act: Act,
}

#[derive(Template)]
#[template(path = "streams.html")]
struct Streams {
    frame: Frame,
    rows: Vec<Row>,
    cursor: String,
    next: Option<String>,
}

pub(super) async fn show(visit: Visit) -> Shown {
    let rows = limits::PAGE_ROWS_DEFAULT.to_string();
    let cursor = visit.query.text("cursor").to_string();
    let mut asked = vec![("limit", rows.as_str())];
    asked.extend((!cursor.is_empty()).then_some(("cursor", cursor.as_str())));
    let page: StreamList = visit.get("/v1/streams", &asked).await?;
    let next = page.next_cursor.map(|cursor| link("/streams", &[("cursor", &cursor)]));
    let rows = page.streams.into_iter().map(row).collect();
    visit.show(&Streams { frame: visit.frame("Streams"), rows, cursor, next })
}

fn row(stream: StreamDetail) -> Row {
    let name = stream.stream.as_str();
    let word = if stream.paused { "resume" } else { "pause" };
    let ways = Ways::new(
        format!("fernery stream {word} {name}"),
        "POST",
        &api("/v1/streams/", name, &format!("/{word}")),
        None,
    );
    Row {
        name: Line::of(name),
        id: api("stream-", name, ""),
        jobs: link("/jobs", &[("stream", name)]),
        dead_jobs: link("/dead", &[("stream", name)]),
        oldest: stream.oldest_ready_at.map(When),
        act: Act { path: api("/stream/", name, &format!("/{word}")), word, ways },
        stream,
    }
}

/// `POST /stream/{name}/pause`
pub(super) async fn pause(visit: Visit) -> Shown {
    set(visit, "/pause").await
}

/// `POST /stream/{name}/resume`
pub(super) async fn resume(visit: Visit) -> Shown {
    set(visit, "/resume").await
}

async fn set(visit: Visit, act: &str) -> Shown {
    let _: StreamDetail = visit.post(&api("/v1/streams/", &visit.param, act), &serde_json::json!({})).await?;
    Ok(PageReply::see_other(link("/streams", &[("cursor", visit.form.text("cursor"))])))
}

//! `GET /streams`: where jobs wait: how many, for how long, how fast they are done, and whether anybody may claim them.

use super::frame::Frame;
use super::reply::PageReply;
use super::show::{Line, Ways, When};
use super::sparkline::{Sparkline, took};
use super::visit::{Shown, Visit, api, link};
use askama::Template;
use fernery_client::wire::{StreamDetail, StreamList};
use fernery_core::job::stats::StatsRange;
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
    charts: Option<Charts>,
    act: Act,
}

/// How a stream did within the range.
struct Charts {
    done: Sparkline,
    completed: u64,
    failed: u64,
    waits: Sparkline,
    /// What half of the jobs waited at most, and what 95 % of them did.
    waited: Option<(String, String)>,
}

/// A range that can be looked at.
struct Choice {
    word: &'static str,
    path: String,
    chosen: bool,
}

#[derive(Template)]
#[template(path = "streams.html")]
struct Streams {
    frame: Frame,
    rows: Vec<Row>,
    range: &'static str,
    ranges: Vec<Choice>,
    cursor: String,
    first: String,
    next: Option<String>,
}

pub(super) async fn show(visit: Visit) -> Shown {
    let rows = limits::PAGE_ROWS_DEFAULT.to_string();
    let cursor = visit.query.text("cursor").to_string();
    let range = chosen(visit.query.text("range"));
    let mut asked = vec![("limit", rows.as_str()), ("range", range.as_str())];
    asked.extend((!cursor.is_empty()).then_some(("cursor", cursor.as_str())));
    let page: StreamList = visit.get("/v1/streams", &asked).await?;
    let next = page.next_cursor.map(|cursor| here(range, &cursor));
    let rows = page.streams.into_iter().map(row).collect();
    let ranges = StatsRange::ALL.iter().map(|other| Choice {
        word: match other {
            StatsRange::Hour => "1 hour",
            StatsRange::Day => "24 hours",
            StatsRange::Week => "7 days",
        },
        path: here(*other, &cursor),
        chosen: *other == range,
    });
    let (ranges, first) = (ranges.collect(), here(range, ""));
    visit.show(&Streams {
        frame: visit.frame("Streams"),
        rows,
        range: range.as_str(),
        ranges,
        cursor,
        first,
        next,
    })
}

/// The range of an address: an hour if it names none, or one that is not there.
fn chosen(range: &str) -> StatsRange {
    range.parse().unwrap_or(StatsRange::Hour)
}

/// The address of this page.
fn here(range: StatsRange, cursor: &str) -> String {
    let range = if range == StatsRange::Hour { "" } else { range.as_str() };
    link("/streams", &[("range", range), ("cursor", cursor)])
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
        charts: stream.stats.as_ref().map(|stats| Charts {
            done: Sparkline::throughput(stats),
            completed: stats.total.completed,
            failed: stats.total.failed,
            waits: Sparkline::waits(stats),
            waited: stats
                .total
                .wait_p50_ms
                .zip(stats.total.wait_p95_ms)
                .map(|(p50, p95)| (took(p50), took(p95))),
        }),
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
    Ok(PageReply::see_other(here(chosen(visit.form.text("range")), visit.form.text("cursor"))))
}

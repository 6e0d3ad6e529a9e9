//! `GET /runs`: what was judged, newest first.

use super::frame::Frame;
use super::show::{Id, Line, When};
use super::visit::{Shown, Visit};
use askama::Template;
use fernery_client::wire::RunPage;
use fernery_core::percent::encode;
use serde_json::Value;

struct RunRow {
    run_id: String,
    shown: Id,
    ticket: String,
    ticket_shown: Id,
    result: String,
    reason: Line,
    at: Option<When>,
}

#[derive(Template)]
#[template(path = "runs.html")]
struct Runs {
    frame: Frame,
    runs: Vec<RunRow>,
    /// Where the next page is.
    next: Option<String>,
    /// It is not the first page.
    later: bool,
}

pub(super) async fn show(visit: Visit) -> Shown {
    let cursor = visit.query.text("cursor");
    let asked = [("limit", "50"), ("cursor", cursor)];
    let asked = if cursor.is_empty() { &asked[..1] } else { &asked[..] };
    let page: RunPage = visit.get("/v1/runs", asked).await?;
    visit.show(&Runs {
        frame: visit.frame("Runs"),
        runs: page.runs.iter().map(row).collect(),
        next: page.next_cursor.map(|cursor| format!("/runs?cursor={}", encode(&cursor))),
        later: !cursor.is_empty(),
    })
}

fn row(run: &Value) -> RunRow {
    let text = |name: &str| run[name].as_str().unwrap_or_default();
    RunRow {
        run_id: encode(text("run_id")),
        shown: Id::of(text("run_id")),
        ticket: encode(text("objective_id")),
        ticket_shown: Id::of(text("objective_id")),
        result: text("gate_result").to_string(),
        reason: Line::of(text("gate_reason")),
        at: serde_json::from_value(run["created_at"].clone()).ok().map(When),
    }
}

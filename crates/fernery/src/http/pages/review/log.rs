//! `GET /review/{id}/log`: the log of a run's executor or of one of its gates, part by part.

use super::super::frame::Frame;
use super::super::show::Line;
use super::super::visit::{Shown, Visit, api};
use super::text;
use askama::Template;
use fernery_client::wire::WorkorderLog;
use fernery_core::percent::encode;
use serde_json::Value;

#[derive(Template)]
#[template(path = "review/log.html")]
struct LogPage {
    frame: Frame,
    of: Line,
    back: String,
    /// As the API shows it: without characters that hide or reorder.
    text: String,
    here: bool,
    /// Where the next part is.
    next: Option<String>,
    command: String,
}

pub(in crate::http::pages) async fn show(visit: Visit) -> Shown {
    let run: Value = visit.get(&api("/v1/runs/", &visit.param, ""), &[]).await?;
    let work_id = text(&run, "work_order_id");
    let (gate, from) = (visit.query.text("gate"), visit.query.filled("from").unwrap_or("0"));
    let mut asked = vec![("from", from)];
    if !gate.is_empty() {
        asked.push(("gate", gate));
    }
    let log: WorkorderLog = visit.get(&api("/v1/workorders/", work_id, "/log"), &asked).await?;
    let of = if gate.is_empty() { "the executor".to_string() } else { format!("gate {gate}") };
    let own = api("/review/", &visit.param, "/log");
    let next = (log.here && !log.ended && !log.text.is_empty())
        .then(|| format!("{own}?from={}&gate={}", log.next, encode(gate)));
    let option = if gate.is_empty() { String::new() } else { format!(" --gate {gate}") };
    visit.show(&LogPage {
        frame: visit.frame(format!("Log of {of}")),
        of: Line(of),
        back: api("/review/", &visit.param, ""),
        text: log.text,
        here: log.here,
        next,
        command: format!("fernery run logs {work_id}{option}"),
    })
}

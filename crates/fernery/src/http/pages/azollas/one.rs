//! `GET /azolla/{id}`: one azolla: what its workers saw and did in their last pass, the blueprint in force, and the difference to its
//! file.

use super::super::frame::Frame;
use super::super::show::{Line, Prose, Ways, When};
use super::super::visit::{Shown, Visit, api, link};
use super::files::{Files, look};
use askama::Template;
use fernery_client::wire::AzollaDetail;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The last pass of a worker, as the API tells it.
#[derive(Deserialize)]
struct Told {
    worker: String,
    over_all: bool,
    at: fernery_core::Timestamp,
    ms: u64,
    counts: BTreeMap<String, u64>,
    error: Option<String>,
    passes: u64,
    failed: u64,
}

struct Pass {
    worker: Line,
    over_all: bool,
    at: When,
    ms: u64,
    /// What happened, and how often.
    saw: Vec<(Line, u64)>,
    error: Option<Line>,
    passes: u64,
    failed: u64,
}

#[derive(Template)]
#[template(path = "azollas/one.html")]
struct One {
    frame: Frame,
    id: String,
    description: Line,
    category: Line,
    digest: String,
    hosted: bool,
    seen: Option<When>,
    board: String,
    passes: Vec<Pass>,
    blueprint: Prose,
    files: Option<Files>,
    ways: Ways,
}

pub(in crate::http::pages) async fn show(visit: Visit) -> Shown {
    let path = api("/v1/azollas/", &visit.param, "");
    let AzollaDetail { summary, blueprint, workers } = visit.get(&path, &[]).await?;
    let id = summary.azolla_id.to_string();
    let one = One {
        frame: visit.frame(format!("Azolla {id}")),
        files: look(&visit, Some(&summary.azolla_id)).await?,
        description: Line(summary.description),
        category: Line(summary.category),
        digest: summary.digest.to_string(),
        hosted: summary.hosted,
        seen: summary.hosted_at.map(When),
        board: link("/board", &[("azolla", &id)]),
        passes: workers.into_iter().filter_map(pass).collect(),
        blueprint: Prose(serde_json::to_string_pretty(&blueprint).unwrap_or_default()),
        ways: Ways::new(format!("fernery azolla show {id}"), "GET", &path, None),
        id,
    };
    visit.show(&one)
}

fn pass(told: Value) -> Option<Pass> {
    let Told { worker, over_all, at, ms, counts, error, passes, failed } =
        serde_json::from_value(told).ok()?;
    Some(Pass {
        worker: Line(worker),
        over_all,
        at: When(at),
        ms,
        saw: counts.into_iter().map(|(what, times)| (Line(what.replace('_', " ")), times)).collect(),
        error: error.map(Line),
        passes,
        failed,
    })
}

//! `GET /manifests`: what needed a person and when, newest first. One of them is in [`one`], with what changed since another.

mod changes;
pub(super) mod one;

use super::frame::Frame;
use super::show::{Line, Ways, When};
use super::visit::{Shown, Visit, api, link};
use crate::http::problem::Refused;
use crate::orientation::lines;
use askama::Template;
use fernery_client::wire::{AzollaList, ManifestPage, ManifestView};

/// Manifests of one page.
const ROWS: &str = "25";

struct Row {
    path: String,
    made: When,
    /// What stood first.
    first: Line,
    count: u64,
    unseen: usize,
    built_by: Line,
    /// The page with what changed since the one before.
    changes: Option<String>,
}

#[derive(Template)]
#[template(path = "manifests/manifests.html")]
struct Manifests {
    frame: Frame,
    /// The azollas that make manifests, and the one whose manifests these are.
    makers: Vec<String>,
    azolla: String,
    rows: Vec<Row>,
    /// The first page, if this is a later one.
    first: Option<String>,
    next: Option<String>,
    ways: Ways,
}

pub(super) async fn show(visit: Visit) -> Shown {
    let azollas: AzollaList = visit.get("/v1/azollas", &[]).await?;
    let makers: Vec<String> = azollas
        .azollas
        .into_iter()
        .filter(|azolla| azolla.makes_manifests)
        .map(|azolla| azolla.azolla_id.to_string())
        .collect();
    let named = visit.query.filled("azolla").map(str::to_string);
    let azolla = named.or_else(|| makers.first().cloned()).unwrap_or_default();
    let cursor = visit.query.text("cursor").to_string();
    let page = match azolla.is_empty() {
        true => ManifestPage { manifests: Vec::new(), next_cursor: None },
        false => of(&visit, &azolla, ROWS, &cursor).await?,
    };
    let first = (!cursor.is_empty()).then(|| link("/manifests", &[("azolla", &azolla)]));
    let next = page.next_cursor.map(|next| link("/manifests", &[("azolla", &azolla), ("cursor", &next)]));
    // The one before is the next of the list.
    let before = page.manifests.iter().skip(1).map(|of| Some(of.manifest.manifest_id.to_string()));
    let before: Vec<Option<String>> = before.chain([None]).collect();
    let rows = page.manifests.iter().zip(before).map(|(of, before)| row(of, before)).collect();
    let ways = Ways::new("fernery orient", "POST", &api("/v1/azollas/", &azolla, "/manifests"), None);
    visit.show(&Manifests { frame: visit.frame("Manifests"), makers, azolla, rows, first, next, ways })
}

/// The manifests of an azolla, newest first.
async fn of(visit: &Visit, azolla: &str, limit: &str, cursor: &str) -> Result<ManifestPage, Refused> {
    let asked = [("limit", limit), ("cursor", cursor)];
    let asked = if cursor.is_empty() { &asked[..1] } else { &asked[..] };
    visit.get(&api("/v1/azollas/", azolla, "/manifests"), asked).await
}

fn row(of: &ManifestView, before: Option<String>) -> Row {
    let ManifestView { manifest, facts, built_by, .. } = of;
    let path = api("/manifest/", manifest.manifest_id.as_str(), "");
    let first = lines(&manifest.prioritized_orientation, facts).into_iter().next();
    Row {
        made: When(manifest.created_at),
        first: Line(first.map_or_else(String::new, |line| line.headline)),
        count: facts.items.len() as u64 + facts.more,
        unseen: facts.asked.iter().filter(|asked| !asked.is_seen()).count(),
        built_by: Line::of(built_by),
        changes: before.map(|before| link(&path, &[("since", &before)])),
        path,
    }
}

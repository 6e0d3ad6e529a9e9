//! `GET /manifest/{id}`: what needed a person then, from which answers it was made, and with `?since=` what changed since another one.

use super::super::frame::Frame;
use super::super::is_page;
use super::super::now::lead;
use super::super::show::{Line, Ways, When};
use super::super::suggested;
use super::super::visit::{Shown, Visit, api};
use super::changes::changes;
use crate::http::problem::{Code, Refused};
use crate::orientation::lines;
use askama::Template;
use fernery_client::wire::ManifestView;
use fernery_core::artifact::QueryStatus;
use fernery_core::inbox::facts::{Asked, Item};
use fernery_core::inbox::score;

/// Items that are shown with what their place is the sum of, and lines of a difference.
const ITEMS_MAX: usize = 100;

struct Advised {
    headline: Line,
    why: Line,
    button: &'static str,
    path: String,
    ways: Option<Ways>,
}

struct Weighed {
    title: Line,
    id: Line,
    why: Line,
    score: i64,
    terms: Line,
}

struct Changed {
    title: Line,
    id: Line,
    how: &'static str,
    lines: Vec<Line>,
}

/// A manifest that this one can be compared with.
struct Earlier {
    id: String,
    at: String,
    chosen: bool,
}

/// What changed since another one.
struct Since {
    made: When,
    changed: Vec<Changed>,
    more: usize,
}

#[derive(Template)]
#[template(path = "manifests/one.html")]
struct One {
    frame: Frame,
    id: String,
    azolla: String,
    list: String,
    made: When,
    built_by: Line,
    advice: Vec<Advised>,
    asked: Vec<(Line, Line)>,
    items: Vec<Weighed>,
    items_more: u64,
    earlier: Vec<Earlier>,
    since: Option<Since>,
}

pub(in crate::http::pages) async fn show(visit: Visit) -> Shown {
    let of = read(&visit, &visit.param).await?;
    let since = match visit.query.filled("since") {
        Some(since) => Some(read(&visit, since).await?),
        None => None,
    };
    let ManifestView { manifest, facts, built_by, .. } = &of;
    let azolla = manifest.azolla_id.as_str();
    let one = One {
        frame: visit.frame("Manifest"),
        id: manifest.manifest_id.to_string(),
        azolla: azolla.to_string(),
        list: super::link("/manifests", &[("azolla", azolla)]),
        made: When(manifest.created_at),
        built_by: Line::of(built_by),
        advice: lines(&manifest.prioritized_orientation, facts).into_iter().map(advised).collect(),
        asked: facts.asked.iter().map(asked).collect(),
        items: facts.items.iter().take(ITEMS_MAX).map(weighed).collect(),
        items_more: facts.more + facts.items.len().saturating_sub(ITEMS_MAX) as u64,
        earlier: earlier(&visit, &of, since.as_ref()).await?,
        since: since.map(|before| difference(&before, &of)),
    };
    visit.show(&one)
}

async fn read(visit: &Visit, id: &str) -> Result<ManifestView, Refused> {
    visit.get(&api("/v1/manifests/", id, ""), &[]).await
}

fn advised(line: crate::orientation::Advice<'_>) -> Advised {
    let (button, path) = line.item.map(lead).filter(|(_, path)| is_page(path)).unwrap_or_default();
    Advised {
        headline: Line(line.headline),
        why: Line(line.why_now),
        button,
        path,
        ways: line.item.map(|item| suggested::ways(&item.command)),
    }
}

/// Who was asked, and what came of it.
fn asked(of: &Asked) -> (Line, Line) {
    let how = match (of.status, of.as_of) {
        (QueryStatus::Ok, Some(as_of)) => format!("answered, as of {as_of}"),
        (QueryStatus::Ok, None) => "answered".to_string(),
        (QueryStatus::Denied, _) => "denied it, or a part of it".to_string(),
        (QueryStatus::TargetUnavailable, _) => "could not be reached".to_string(),
    };
    let at = of.server.as_ref().map_or(String::new(), |server| format!(" at {server}"));
    let more = if of.full { "; there may be more than one answer can hold" } else { "" };
    (Line(format!("{}{at}", of.azolla_id)), Line(format!("{how}{more}")))
}

fn weighed(item: &Item) -> Weighed {
    let terms: Vec<String> =
        item.score_terms.iter().map(|(name, points)| format!("{name} {points}")).collect();
    Weighed {
        title: Line::of(&item.title),
        id: Line::of(&item.item_id),
        why: Line(item.why.join("; ")),
        score: score::total(&item.score_terms),
        terms: Line(terms.join(" + ")),
    }
}

/// Manifests of the same azolla to compare with: the newest ones, and the one that was chosen.
async fn earlier(
    visit: &Visit,
    of: &ManifestView,
    since: Option<&ManifestView>,
) -> Result<Vec<Earlier>, Refused> {
    let found = match super::of(visit, of.manifest.azolla_id.as_str(), super::ROWS, "").await {
        Ok(page) => page.manifests,
        // Its azolla is gone; the manifest is not.
        Err(refused) if refused.code == Code::NotFound => Vec::new(),
        Err(refused) => return Err(refused),
    };
    let chosen = since.map(|since| &since.manifest.manifest_id);
    let mut all: Vec<&ManifestView> = found.iter().filter(|other| other.manifest != of.manifest).collect();
    all.extend(since.filter(|since| !found.iter().any(|other| other.manifest == since.manifest)));
    let row = |other: &ManifestView| Earlier {
        id: other.manifest.manifest_id.to_string(),
        at: other.manifest.created_at.to_string(),
        chosen: Some(&other.manifest.manifest_id) == chosen,
    };
    Ok(all.into_iter().map(row).collect())
}

fn difference(before: &ManifestView, now: &ManifestView) -> Since {
    let found = changes(&before.facts, &now.facts);
    Since {
        made: When(before.manifest.created_at),
        more: found.len().saturating_sub(ITEMS_MAX),
        changed: found
            .into_iter()
            .take(ITEMS_MAX)
            .map(|change| Changed {
                title: Line(change.title),
                id: Line(change.item_id),
                how: change.how,
                lines: change.lines.into_iter().map(Line).collect(),
            })
            .collect(),
    }
}

//! `GET /find?q=…`: tickets, jobs, streams and pages by a part of an id, words or a name.

use super::frame::Frame;
use super::is_page;
use super::show::Line;
use super::visit::{Shown, Visit, api};
use crate::http::problem::{Code, Refused};
use askama::Template;
use fernery_client::wire::{IdKind, MeantIds, ObjectivePage, StreamList};
use fernery_core::percent::encode;

/// Rows of each kind.
const ROWS: usize = 10;

/// Something that was found.
#[derive(Debug)]
struct Found {
    kind: &'static str,
    name: Line,
    beside: Line,
    path: String,
}

#[derive(Template)]
#[template(path = "find.html")]
struct Find {
    frame: Frame,
    q: String,
    found: Vec<Found>,
}

pub(super) async fn show(visit: Visit) -> Shown {
    let q = visit.query.text("q").trim().to_string();
    let frame = visit.frame("Find");
    let mut found: Vec<Found> = Vec::new();
    let wanted = q.to_lowercase();
    let pages = frame.links().filter(|link| !q.is_empty() && link.name.to_lowercase().contains(&wanted));
    found.extend(pages.map(|link| Found {
        kind: "page",
        name: Line::of(link.name),
        beside: Line::default(),
        path: link.path.to_string(),
    }));
    if !q.is_empty() {
        found.extend(by_id(&visit, &q).await?);
        found.extend(by_words(&visit, &q).await?);
        found.extend(streams(&visit, &wanted).await?);
    }
    let mut seen = std::collections::HashSet::new();
    found.retain(|found| seen.insert(found.path.clone()) && is_page(&found.path));
    visit.show(&Find { frame, q, found })
}

/// A refusal of a search is an empty answer: what was typed is no id, or no words.
fn or_none<T>(read: Result<T, Refused>) -> Result<Option<T>, Refused> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(refused) if refused.code.status() < 500 && refused.code != Code::Forbidden => Ok(None),
        Err(refused) => Err(refused),
    }
}

async fn by_id(visit: &Visit, q: &str) -> Result<Vec<Found>, Refused> {
    let meant = or_none(visit.get::<MeantIds>(&api("/v1/ids/", q, ""), &[]).await)?;
    let row = |kind: IdKind, id: String| {
        let (kind, page) = match kind {
            IdKind::Ticket => ("ticket", "/ticket/"),
            IdKind::Candidate => ("candidate", "/candidate/"),
            IdKind::Capture => ("capture", "/capture/"),
            IdKind::Workorder => ("workorder", "/workorder/"),
            IdKind::Run => ("run", "/review/"),
            IdKind::Job => ("job", "/job/"),
        };
        Found { kind, path: api(page, &id, ""), name: Line(id), beside: Line::default() }
    };
    Ok(meant
        .into_iter()
        .flat_map(|meant| meant.ids)
        .take(ROWS)
        .map(|meant| row(meant.kind, meant.id))
        .collect())
}

async fn by_words(visit: &Visit, q: &str) -> Result<Vec<Found>, Refused> {
    let asked = [("search", q), ("limit", "10")];
    let page = or_none(visit.get::<ObjectivePage>("/v1/objectives", &asked).await)?;
    let tickets = page.into_iter().flat_map(|page| page.objectives).map(|view| view.objective);
    Ok(tickets
        .map(|ticket| Found {
            kind: "ticket",
            path: api("/ticket/", ticket.objective_id.as_str(), ""),
            name: Line::of(&ticket.title),
            beside: Line::of(format_args!("{} · {}", ticket.objective_id, ticket.status)),
        })
        .collect())
}

async fn streams(visit: &Visit, wanted: &str) -> Result<Vec<Found>, Refused> {
    let list = or_none(visit.get::<StreamList>("/v1/streams", &[("limit", "500")]).await)?;
    let named = list.into_iter().flat_map(|list| list.streams).map(|stream| stream.stream.to_string());
    let fits = named.filter(|name| name.to_lowercase().contains(wanted)).take(ROWS);
    Ok(fits
        .map(|name| Found {
            kind: "stream",
            path: format!("/jobs?stream={}", encode(&name)),
            name: Line(name),
            beside: Line::default(),
        })
        .collect())
}

//! `GET /journal`: who did what, when and why, newest first, by act, subject, actor and day; and the state of the chain over it.
//!
//! Looking costs the same however long the journal is: a page looks at a bounded number of entries, and the end of the chain is
//! checked. All of it is checked by `fernery verify`.

use super::frame::Frame;
use super::show::{Line, Prose, When, shell};
use super::trouble::Said;
use super::visit::{Shown, Visit, api, link};
use crate::http::problem::{Code, Refusal, Refused};
use askama::Template;
use fernery_client::wire::{JournalEntry, JournalPage, JournalVerdict};
use fernery_core::Timestamp;
use fernery_core::journal::Act;
use std::time::Duration;

/// Seals at the end of the chain that the first page checks.
const CHECKED: &str = "1000";
const DAY: Duration = Duration::from_secs(86_400);

struct Row {
    id: String,
    at: When,
    actor: Line,
    act: Line,
    subject: Line,
    path: String,
    /// Why, and what changed.
    why: Prose,
    sealed: Option<i64>,
}

/// What the end of the chain shows.
struct Chain {
    checked: i64,
    place: i64,
    hash: String,
    fault: Option<Line>,
}

/// What a person looks for, as it was typed.
#[derive(Default)]
struct Search {
    act: String,
    subject: String,
    actor: String,
    from: String,
    to: String,
}

#[derive(Template)]
#[template(path = "journal/journal.html")]
struct Journal {
    frame: Frame,
    rows: Vec<Row>,
    search: Search,
    searching: bool,
    acts: Vec<&'static str>,
    /// Only on the first page.
    chain: Option<Chain>,
    first: Option<String>,
    next: Option<String>,
    command: String,
    said: Said,
}

pub(super) async fn show(visit: Visit) -> Shown {
    let typed = |name: &str| visit.query.filled(name).unwrap_or_default().to_string();
    let search = Search {
        act: typed("act"),
        subject: typed("subject"),
        actor: typed("actor"),
        from: typed("from"),
        to: typed("to"),
    };
    let cursor = visit.query.text("cursor").to_string();
    let found = match asked(&search) {
        Ok(asked) => find(&visit, &asked, &cursor).await.map(|page| (page, asked)),
        Err(refused) => Err(refused),
    };
    match found {
        Ok((found, asked)) => {
            let chain = if cursor.is_empty() { Some(chain(&visit).await?) } else { None };
            page(&visit, 200, search, (found, chain, command(&asked)), Said::default())
        }
        // What was typed is wrong: it is said beside it.
        Err(refused) if refused.code == Code::Invalid => {
            let nothing = JournalPage { entries: Vec::new(), next_cursor: None };
            page(&visit, 422, search, (nothing, None, String::new()), Said::of(&refused))
        }
        Err(refused) => Err(refused),
    }
}

/// The query of the API for what was typed.
fn asked(search: &Search) -> Result<Vec<(&'static str, String)>, Refused> {
    let day = |field: &str, text: &str| {
        let wrong = || Refusal::field(Code::Invalid, format!("/{field}"), "a day like 2026-11-20");
        format!("{text}T00:00:00Z").parse::<Timestamp>().map_err(|_| wrong())
    };
    let mut asked = Vec::new();
    for (name, text) in [("act", &search.act), ("subject", &search.subject), ("actor", &search.actor)] {
        if !text.is_empty() {
            asked.push((name, text.clone()));
        }
    }
    if !search.from.is_empty() {
        asked.push(("since", day("from", &search.from)?.to_string()));
    }
    if !search.to.is_empty() {
        // The day is meant with its last second.
        asked.push(("until", day("to", &search.to)?.after(DAY).to_string()));
    }
    Ok(asked)
}

async fn find(visit: &Visit, asked: &[(&str, String)], cursor: &str) -> Result<JournalPage, Refused> {
    let mut query: Vec<(&str, &str)> = asked.iter().map(|(name, value)| (*name, value.as_str())).collect();
    query.extend((!cursor.is_empty()).then_some(("cursor", cursor)));
    visit.get("/v1/journal", &query).await
}

async fn chain(visit: &Visit) -> Result<Chain, Refused> {
    let verdict: JournalVerdict = visit.get("/v1/journal/verify", &[("last", CHECKED)]).await?;
    let (place, hash) = verdict.head.map_or((0, String::new()), |head| (head.place, head.hash.to_string()));
    Ok(Chain { checked: verdict.entries, place, hash, fault: verdict.fault.map(Line) })
}

fn page(
    visit: &Visit,
    status: u16,
    search: Search,
    (found, chain, command): (JournalPage, Option<Chain>, String),
    said: Said,
) -> Shown {
    let here = |cursor: &str| {
        let fields = [
            ("act", search.act.as_str()),
            ("subject", &search.subject),
            ("actor", &search.actor),
            ("from", &search.from),
            ("to", &search.to),
            ("cursor", cursor),
        ];
        link("/journal", &fields)
    };
    let journal = Journal {
        frame: visit.frame("Journal"),
        first: visit.query.filled("cursor").map(|_| here("")),
        next: found.next_cursor.as_deref().map(here),
        searching: here("") != "/journal",
        rows: found.entries.into_iter().map(row).collect(),
        acts: Act::ALL.iter().map(|act| act.as_str()).collect(),
        search,
        chain,
        command,
        said,
    };
    visit.show_as(status, &journal)
}

/// The same list in a terminal.
fn command(asked: &[(&str, String)]) -> String {
    let flags = asked.iter().map(|(name, value)| format!(" --{name} {}", shell(value)));
    format!("fernery journal list{}", flags.collect::<String>())
}

fn row(entry: JournalEntry) -> Row {
    let why = match &entry.why {
        serde_json::Value::Object(fields) => {
            fields.iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    };
    Row {
        path: about(&entry),
        id: entry.entry_id,
        at: When(entry.created_at),
        actor: Line(entry.actor),
        act: Line(entry.act.replace('_', " ")),
        subject: Line(entry.subject),
        why: Prose(why),
        sealed: entry.seal.map(|seal| seal.place),
    }
}

/// The page of what an entry is about, by what was done.
fn about(entry: &JournalEntry) -> String {
    let page = match entry.act.parse() {
        Ok(Act::Promoted | Act::CandidateEdited | Act::Discarded | Act::Merged | Act::Restored) => {
            "/candidate/"
        }
        Ok(Act::BulkStarted | Act::BulkEnded | Act::BulkStopped) => "/bulk/",
        // It has no page of its own.
        Ok(Act::StreamSet) => return link("/streams", &[]),
        Ok(Act::Commented | Act::CommentEdited | Act::CommentDeleted) => "/review/",
        Ok(Act::BlueprintInForce | Act::CapturesReleased) => "/azolla/",
        Ok(Act::EventProcessed | Act::Snoozed | Act::Imported | Act::RecurrenceStopped) | Err(_) => {
            return link("/find", &[("q", &entry.subject)]);
        }
        Ok(_) => "/ticket/",
    };
    api(page, &entry.subject, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_meant_from_its_first_to_its_last_second() {
        let search = Search { from: "2026-11-17".into(), to: "2026-11-18".into(), ..Search::default() };
        let query = asked(&search).unwrap();
        assert_eq!(
            query,
            [
                ("since", "2026-11-17T00:00:00.000Z".to_string()),
                ("until", "2026-11-19T00:00:00.000Z".to_string())
            ]
        );
        assert_eq!(command(&[("actor", "o'neil".to_string())]), r"fernery journal list --actor 'o'\''neil'");
        let wrong = asked(&Search { to: "friday".into(), ..Search::default() }).unwrap_err();
        assert_eq!((wrong.code, wrong.errors[0].pointer.as_str()), (Code::Invalid, "/to"));
    }
}

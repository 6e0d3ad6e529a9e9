//! `GET /triage`: the inbox, one candidate at a time: what was written down beside the ticket that would come of it. The acts are in
//! [`acts`], a merge in [`merge`].
//!
//! A page names its candidate in every form, and is not brought up to date while it shows one: a key never decides about another
//! candidate than the one that was read.

pub(super) mod acts;
pub(super) mod merge;

use super::frame::Frame;
use super::refused::{RefusedAct, WithoutForm};
use super::reply::PageReply;
use super::show::{Id, Line, Prose, Ways, When};
use super::visit::{Shown, Visit, api, link};
use crate::candidate_words as words;
use crate::http::problem::{Code, Refused};
use askama::Template;
use fernery_client::wire::{AzollaList, CandidatePage, CandidateView, IdKind, MeantIds};
use fernery_core::inbox::CandidateStatus;
use fernery_core::inbox::likeness::alike;
use serde_json::json;

/// Waiting candidates that are compared with the one that is shown.
const COMPARED: &str = "100";
/// Those among them that can be ticked to be merged, beside those that say nearly the same.
const OTHERS_MAX: usize = 9;
const NEAR_MAX: usize = 9;
/// Captures of one candidate that are shown.
const CAPTURES_MAX: usize = 20;

/// A text as it was written down.
struct Captured {
    source: Line,
    at: When,
    text: Prose,
}

/// Another candidate that waits.
struct Other {
    id: String,
    shown: Id,
    title: Line,
}

/// The candidate that is to be decided about.
struct Deciding {
    id: String,
    shown: Id,
    title: Line,
    facts: Vec<(&'static str, Line)>,
    criteria: Prose,
    captured: Vec<Captured>,
    captured_more: usize,
    waits: bool,
    discarded: bool,
    /// The page of the ticket that it became.
    ticket: Option<String>,
    edited: Edited,
}

/// Its text, in the form that edits it.
struct Edited {
    title: String,
    criteria: String,
    importance: String,
    urgency: String,
    due: String,
}

/// What has become of the one before.
struct Last {
    said: &'static str,
    title: Line,
    until: Option<When>,
    ticket: Option<String>,
    /// The form that takes it back.
    undo: Option<String>,
    ways: Option<Ways>,
}

#[derive(Template)]
#[template(path = "triage/triage.html")]
struct Triage {
    frame: Frame,
    candidate: Option<Deciding>,
    last: Option<Last>,
    near: Vec<Other>,
    others: Vec<Other>,
    /// How many wait, as far as they were counted.
    waiting: usize,
    waiting_more: bool,
    pending: u64,
    held: u64,
    azollas: Vec<String>,
    /// Where in the list this page is; the forms send it along.
    cursor: String,
    /// The one after this, which keeps waiting.
    later: String,
    /// The end of the list was reached, and some were left for later.
    seen_all: bool,
    refused: RefusedAct,
}

/// `GET /triage`
pub(super) async fn show(visit: Visit) -> Shown {
    let cursor = visit.query.text("cursor");
    let ended = visit.query.has("end");
    let mut first = if ended { None } else { Some(place(&visit, cursor).await?) };
    let candidate = first.as_mut().and_then(|page| page.candidates.pop());
    let later = after(first.and_then(|page| page.next_cursor));
    page(&visit, Sitting { candidate, cursor: cursor.to_string(), later, ended }, RefusedAct::none()).await
}

/// `GET /candidate/{id}`
pub(super) async fn one(visit: Visit) -> Shown {
    match candidate(&visit, visit.query.text("cursor"), RefusedAct::none()).await {
        // A short id, as commands and the orientation have it.
        Err(refused) if refused.code == Code::NotFound => match &meant(&visit, &visit.param).await?[..] {
            [id] => Ok(PageReply::see_other(api("/candidate/", id, ""))),
            _ => Err(refused),
        },
        shown => shown,
    }
}

/// The candidates that a short id means.
pub(super) async fn meant(visit: &Visit, part: &str) -> Result<Vec<String>, Refused> {
    let meant: MeantIds = visit.get(&api("/v1/ids/", part, ""), &[]).await?;
    let candidates = meant.ids.into_iter().filter(|meant| meant.kind == IdKind::Candidate);
    Ok(candidates.map(|meant| meant.id).collect())
}

/// The page of one candidate, with where the list goes on after it.
async fn candidate(visit: &Visit, cursor: &str, refused: RefusedAct) -> Shown {
    let candidate = read(visit, &visit.param).await?;
    let here = place(visit, cursor).await?;
    let first = here.candidates.first().map(|first| &first.candidate_id);
    // It may be one that stands elsewhere in the list: then the list goes on where it was.
    let later = match first == Some(&candidate.candidate_id) {
        true => after(here.next_cursor),
        false => link("/triage", &[("cursor", cursor)]),
    };
    let sitting = Sitting { candidate: Some(candidate), cursor: cursor.to_string(), later, ended: false };
    page(visit, sitting, refused).await
}

/// The first waiting candidate beyond a place of the list.
async fn place(visit: &Visit, cursor: &str) -> Result<CandidatePage, Refused> {
    let asked = [("limit", "1"), ("cursor", cursor)];
    visit.get("/v1/candidates", if cursor.is_empty() { &asked[..1] } else { &asked[..] }).await
}

pub(super) async fn read(visit: &Visit, id: &str) -> Result<CandidateView, Refused> {
    visit.get(&api("/v1/candidates/", id, ""), &[]).await
}

fn after(cursor: Option<String>) -> String {
    cursor.map_or_else(|| "/triage?end=yes".to_string(), |cursor| link("/triage", &[("cursor", &cursor)]))
}

/// What one page is about.
struct Sitting {
    candidate: Option<CandidateView>,
    cursor: String,
    later: String,
    ended: bool,
}

async fn page(visit: &Visit, sitting: Sitting, refused: RefusedAct) -> Shown {
    let Sitting { candidate, cursor, later, ended } = sitting;
    let waiting: CandidatePage = visit.get("/v1/candidates", &[("limit", COMPARED)]).await?;
    let azollas: AzollaList = visit.get("/v1/azollas", &[]).await?;
    let (near, others) = beside(candidate.as_ref(), &waiting.candidates);
    let title = candidate.as_ref().map_or_else(|| "Triage".to_string(), |of| format!("Triage: {}", of.title));
    let triage = Triage {
        frame: visit.frame(title),
        last: last(visit).await?,
        near,
        others,
        waiting: waiting.candidates.len(),
        waiting_more: waiting.next_cursor.is_some(),
        pending: waiting.pending_captures,
        held: waiting.held_captures,
        azollas: azollas
            .azollas
            .into_iter()
            .filter(|azolla| azolla.takes_tickets)
            .map(|azolla| azolla.azolla_id.to_string())
            .collect(),
        seen_all: candidate.is_none() && (ended || !cursor.is_empty()) && !waiting.candidates.is_empty(),
        candidate: candidate.map(deciding),
        cursor,
        later,
        refused,
    };
    visit.show_as(triage.refused.status(), &triage)
}

/// Those that say nearly the same, and the others that wait.
fn beside(of: Option<&CandidateView>, waiting: &[CandidateView]) -> (Vec<Other>, Vec<Other>) {
    let Some(of) = of else { return (Vec::new(), Vec::new()) };
    let others = waiting.iter().filter(|other| other.candidate_id != of.candidate_id);
    let (near, rest): (Vec<_>, Vec<_>) = others.partition(|other| alike(&other.title, &of.title));
    let row = |other: &CandidateView| Other {
        id: other.candidate_id.to_string(),
        shown: Id::of(&other.candidate_id),
        title: Line::of(&other.title),
    };
    (near.into_iter().take(NEAR_MAX).map(row).collect(), rest.into_iter().take(OTHERS_MAX).map(row).collect())
}

fn deciding(candidate: CandidateView) -> Deciding {
    let facts = words::facts(&candidate).into_iter().map(|(name, fact)| (name, Line(fact))).collect();
    let due = candidate.metadata.get("due_at").and_then(|due| due.as_str()).unwrap_or_default().to_string();
    Deciding {
        id: candidate.candidate_id.to_string(),
        shown: Id::of(&candidate.candidate_id),
        title: Line::of(&candidate.title),
        facts,
        criteria: Prose::of(&candidate.acceptance_criteria),
        captured_more: candidate.captures.len().saturating_sub(CAPTURES_MAX),
        captured: captured(&candidate),
        waits: candidate.status == CandidateStatus::Waiting,
        discarded: candidate.status == CandidateStatus::Discarded,
        ticket: candidate.objective_id.map(|id| api("/ticket/", id.as_str(), "")),
        edited: Edited {
            title: candidate.title,
            criteria: candidate.acceptance_criteria,
            importance: candidate.importance.to_string(),
            urgency: candidate.urgency.to_string(),
            due,
        },
    }
}

fn captured(candidate: &CandidateView) -> Vec<Captured> {
    let each = candidate.captures.iter().take(CAPTURES_MAX).map(|of| Captured {
        source: Line::of(&of.capture.source_label),
        at: When(of.capture.created_at),
        text: Prose::of(&of.capture.raw_content),
    });
    each.collect()
}

/// What has become of the candidate that the address names as the last one: it tells what is so now, not what was asked for.
async fn last(visit: &Visit) -> Result<Option<Last>, Refused> {
    let Some(id) = visit.query.filled("last") else { return Ok(None) };
    let last = match read(visit, id).await {
        Ok(last) => last,
        Err(refused) if refused.code.status() < 500 && refused.code != Code::Forbidden => return Ok(None),
        Err(refused) => return Err(refused),
    };
    let (said, undo) = match last.status {
        CandidateStatus::Promoted => ("Promoted; nothing runs before it is approved", None),
        CandidateStatus::Discarded => ("Discarded", Some("restore")),
        CandidateStatus::Merged => ("Merged", None),
        CandidateStatus::Waiting if last.snoozed_until.is_some() => ("Out of sight", Some("wake")),
        CandidateStatus::Waiting => return Ok(None),
    };
    let id = last.candidate_id.as_str();
    Ok(Some(Last {
        said,
        until: last.snoozed_until.map(When),
        ticket: last.objective_id.as_ref().map(|ticket| api("/ticket/", ticket.as_str(), "")),
        undo: undo.map(|act| api("/candidate/", id, &format!("/{act}"))),
        ways: undo.map(|act| ways(id, act)),
        title: Line(last.title),
    }))
}

/// An act on a candidate from a terminal and by HTTP.
fn ways(id: &str, act: &str) -> Ways {
    let path = api("/v1/candidates/", id, "");
    let (command, body) = match act {
        "edit" => {
            let body = json!({ "title": "…" }).to_string();
            return Ways::new(format!("fernery triage edit {id} --title '…'"), "PATCH", &path, Some(&body));
        }
        "snooze" => (format!("fernery snooze {id} tomorrow"), json!({ "until": "tomorrow" })),
        "wake" => {
            let body = json!({ "until": null }).to_string();
            let path = format!("{path}/snooze");
            return Ways::new(format!("fernery snooze {id} --off"), "POST", &path, Some(&body));
        }
        "merge" => (format!("fernery triage merge {id} OTHER"), json!({ "candidates": ["OTHER"] })),
        act => (format!("fernery triage {act} {id}"), json!({})),
    };
    Ways::new(command, "POST", &format!("{path}/{act}"), Some(&body.to_string()))
}

impl Triage {
    fn ways(&self, act: &str) -> Ways {
        ways(self.candidate.as_ref().map_or("", |of| of.id.as_str()), act)
    }

    /// An azolla that was chosen and is not there any more.
    fn gone_azolla(&self) -> Option<&str> {
        self.refused.gone("promote", "azolla_id", |chosen| self.azollas.iter().any(|azolla| azolla == chosen))
    }

    /// Whether the page has a place where this act is refused: it is possible now, and this person may.
    fn offers(&self, act: &str) -> bool {
        let Some(of) = &self.candidate else { return false };
        let possible = match act {
            "merge" => of.waits && !(self.near.is_empty() && self.others.is_empty()),
            "promote" | "discard" | "wake" | "edit" | "snooze" => of.waits,
            "restore" => of.discarded,
            _ => false,
        };
        self.frame.operator && possible
    }

    /// An act that was refused and is not possible any more.
    fn lost(&self) -> Option<WithoutForm<'_>> {
        self.refused.without_form(self.offers(self.refused.act()))
    }
}

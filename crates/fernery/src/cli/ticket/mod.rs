//! `fernery ticket`: objectives, from the draft to the confirmation.

pub(super) mod act;
mod answer;
pub(super) mod approve;
pub(super) mod due;
pub(super) mod editor;
mod flags;
pub(super) mod follow;
mod home;
pub(super) mod merge;
pub(super) mod show;
pub(super) mod text;
mod unblock;
mod under_way;
pub(super) mod unmanned;
pub(super) mod write;

pub(super) use flags::Ticket;

use super::failure::Outcome;
use super::ids;
use super::pages::{self, Listing};
use super::screen::{Cell, Screen, when};
use crate::ticket_words::landing_brief;
use act::{act, record};
use fernery_client::client::{Query, Reply};
use fernery_client::wire::{BlockRequest, NoteRequest, ObjectiveDetail, ObjectivePage, ObjectiveView};
use fernery_client::{Client, ClientError};
use fernery_core::Timestamp;
use fernery_core::artifact::{Objective, ObjectiveId, ObjectiveStatus};
use fernery_core::inbox::deadline::{due_at as due_of, is_open};
use fernery_core::inbox::label::Label;
use fernery_core::pipeline::possible::SeenStatus;
use fernery_core::pipeline::waiting::Waiting;
use fernery_engine::door;
use std::time::Duration;
use under_way::UnderWay;

pub(super) fn path(id: &ObjectiveId, act: &str) -> String {
    format!("/v1/objectives/{id}{}{act}", if act.is_empty() { "" } else { "/" })
}

/// Like [`detail`], without the large documents.
pub(super) async fn brief(client: &Client, id: &ObjectiveId) -> Result<ObjectiveDetail, ClientError> {
    let query = Query::new().with("documents", Some(false));
    let reply: Reply<ObjectiveDetail> = client.get(&path(id, ""), &query, Duration::ZERO).await?;
    reply.read()
}

pub(super) async fn detail(client: &Client, id: &ObjectiveId) -> Result<Reply<ObjectiveDetail>, ClientError> {
    client.get(&path(id, ""), &Query::new(), Duration::ZERO).await
}

pub(super) async fn run(mut ticket: Ticket, client: &Client, screen: Screen) -> Outcome {
    if let Some(id) = ticket.named() {
        ids::ticket(client, id).await?;
    }
    match ticket {
        Ticket::New(text) => write::new(text, client, screen).await,
        Ticket::List { status, azolla, label, search, sort, paging } => {
            // What was cancelled or put off is not in the way, unless everything is asked for.
            let hidden = (!paging.all).then_some(false);
            let fetch = async |limit, cursor: Option<String>| {
                let query = Query::new().with("status", status).with("azolla_id", azolla.as_ref());
                let query =
                    query.with("label", label.as_ref().map(Label::as_str)).with("search", search.as_ref());
                let query =
                    query.with("sort", sort.as_ref()).with("cancelled", hidden).with("snoozed", hidden);
                let query = query.with("limit", Some(limit)).with("cursor", cursor);
                client.get("/v1/objectives", &query, Duration::ZERO).await
            };
            let listing = match sort.as_deref() {
                Some("due") => &BY_DUE,
                Some("importance") => &BY_IMPORTANCE,
                _ => &TICKETS,
            };
            pages::list(screen, listing, &paging, fetch).await
        }
        Ticket::Show { id, .. } => {
            let reply = detail(client, &id).await?;
            if screen.json {
                return screen.json_body(&reply.body);
            }
            let detail = reply.read()?;
            let more = UnderWay::default().time(&detail, client).await;
            show::show(screen, &detail, more)
        }
        Ticket::Edit { id, text } => write::edit(&id, text, client, screen).await,
        Ticket::Approve { id, yes, digest, note, from_scratch } => {
            approve::approve(&id, yes, digest, (note, from_scratch), client, screen).await
        }
        Ticket::Answer { id, answer, yes } => answer::answer(&id, answer, yes, client, screen).await,
        Ticket::Block { id, description, kind, blocker } => {
            let body = BlockRequest { blocker_id: blocker, kind, description, record_id: record() };
            act(&id, "block", &body, client, screen).await
        }
        Ticket::Unblock { id, blockers, all, yes } => {
            unblock::unblock(&id, (blockers, all), yes, client, screen).await
        }
        Ticket::Confirm { id, run, note } => act::confirm(&id, run, note, client, screen).await,
        Ticket::Reopen { id, note, with_comments, from_scratch, yes } => {
            act::reopen(&id, (note, with_comments), (from_scratch, yes), client, screen).await
        }
        Ticket::Merge { id, yes, note } => merge::merge(&id, yes, note, client, screen).await,
        Ticket::Cancel { id, note } => {
            act(&id, "cancel", &NoteRequest { note, record_id: record() }, client, screen).await
        }
    }
}

const TICKETS: Listing<ObjectivePage> = Listing {
    key: "objectives",
    heads: &["TICKET", "STATUS", "CREATED", "TITLE…", "NOW…"],
    rows: |page| {
        let row = |view| {
            let due = due_at(&view).map(|at| when::due(at, door::wall_clock()));
            row(&view, view.objective.created_at.into(), due)
        };
        page.objectives.into_iter().map(row).collect()
    },
};

/// With what it is sorted by.
const BY_DUE: Listing<ObjectivePage> = Listing {
    heads: &["TICKET", "STATUS", "DUE", "TITLE…", "NOW…"],
    rows: |page| {
        page.objectives.iter().map(|view| row(view, Cell::maybe(due_of(&view.objective)), None)).collect()
    },
    ..TICKETS
};

/// With what it is sorted by.
const BY_IMPORTANCE: Listing<ObjectivePage> = Listing {
    heads: &["TICKET", "STATUS", "IMPORTANCE", "TITLE…", "NOW…"],
    rows: |page| {
        let matters = |of: &Objective| format!("{} (urgency {})", of.importance, of.urgency).into();
        page.objectives.iter().map(|view| row(view, matters(&view.objective), None)).collect()
    },
    ..TICKETS
};

/// When a ticket is due that somebody still has to do something for.
fn due_at(view: &ObjectiveView) -> Option<Timestamp> {
    due_of(&view.objective).filter(|_| is_open(&view.objective))
}

/// A row, with what the list is sorted by, and what stands before what the ticket does or waits for.
fn row(view: &ObjectiveView, sorted_by: Cell, first: Option<String>) -> Vec<Cell> {
    let objective = &view.objective;
    let word = SeenStatus::of(objective).as_str();
    let status = match &view.waiting {
        _ if view.unconfirmed => format!("{word} (confirm?)").into(),
        Some(waiting) if waiting.code == Waiting::NOT_HOSTED => format!("{word} (not hosted)").into(),
        Some(waiting) if Waiting::needs_a_person(&waiting.code) => format!("{word} (waits)").into(),
        _ => Cell::state(word),
    };
    let landing = view.landing.as_ref().and_then(landing_brief);
    let now = match (&view.progress, &view.waiting) {
        (Some(progress), _) => show::doing(progress),
        (None, _) if view.snoozed_until.is_some() => "snoozed".to_string(),
        (None, Some(waiting)) => waiting.why.clone(),
        (None, None) if objective.status == ObjectiveStatus::InProgress => "under way".to_string(),
        (None, None) => landing.unwrap_or_else(|| show::kept_by(objective, &view.waits_for)),
    };
    let now = first.into_iter().chain((!now.is_empty()).then_some(now)).collect::<Vec<_>>().join("; ");
    let title = show::titled(objective);
    vec![Cell::id(&objective.objective_id), status, sorted_by, title.into(), now.into()]
}

//! Acts of a person on a candidate, each with an id of its own, so that an act whose answer was lost can be sent again.

use super::Changes;
use crate::candidate_words::due_date;
use crate::cli::failure::{Failure, Outcome};
use crate::cli::input;
use crate::cli::ticket::act::{record, send};
use crate::cli::ticket::due;
use crate::cli::ticket::editor::{self, Draft};
use crate::cli::ticket::text::{self, Text};
use crate::cli::ticket::write::Page;
use fernery_client::client::Reply;
use fernery_client::wire::{
    CandidateView, EditCandidateRequest, MergeRequest, NoteRequest, PromoteRequest, ReleaseResponse,
    SnoozeRequest,
};
use fernery_client::{Client, ClientError};
use fernery_core::artifact::{AzollaId, CandidateId, ObjectiveId};
use serde_json::Value;

fn path(id: &CandidateId, act: &str) -> String {
    format!("/v1/candidates/{id}/{act}")
}

pub(super) async fn promote(
    client: &Client,
    id: &CandidateId,
    azolla_id: Option<AzollaId>,
    objective_id: Option<ObjectiveId>,
) -> Result<Reply<Value>, ClientError> {
    let body = PromoteRequest { azolla_id, objective_id, record_id: record() };
    send(client, &path(id, "promote"), &body).await
}

/// What to type next about a ticket that was just promoted.
pub(super) fn what_next(reply: &Reply<Value>) -> Outcome<String> {
    let ticket = ticket_of(reply)?;
    let promoted = reply.read()?;
    let azolla = promoted["objective"]["azolla_id"].as_str().unwrap_or("its azolla").to_string();
    Ok(match promoted["for_people"].as_bool() {
        Some(true) => format!("it is in {azolla}; when you have done it: fernery done {ticket}"),
        _ => format!("it is NEW in {azolla}; to let it run: fernery ticket approve {ticket}"),
    })
}

/// The ticket that came of a promotion.
pub(super) fn ticket_of(reply: &Reply<Value>) -> Outcome<ObjectiveId> {
    let id = reply.read()?["candidate"]["objective_id"].as_str().and_then(|id| id.parse().ok());
    id.ok_or_else(|| Failure::failed("unexpected_answer", "the server's answer names no ticket"))
}

pub(super) async fn discard(
    client: &Client,
    id: &CandidateId,
    note: Option<String>,
) -> Result<Reply<CandidateView>, ClientError> {
    send(client, &path(id, "discard"), &NoteRequest { note, record_id: record() }).await
}

pub(super) async fn restore(
    client: &Client,
    id: &CandidateId,
    note: Option<String>,
) -> Result<Reply<CandidateView>, ClientError> {
    send(client, &path(id, "restore"), &NoteRequest { note, record_id: record() }).await
}

pub(super) async fn snooze(
    client: &Client,
    id: &CandidateId,
    until: String,
) -> Result<Reply<CandidateView>, ClientError> {
    send(client, &path(id, "snooze"), &SnoozeRequest { until: Some(until), record_id: record() }).await
}

pub(super) async fn release(
    client: &Client,
    azolla: &AzollaId,
    note: Option<String>,
) -> Result<Reply<ReleaseResponse>, ClientError> {
    let path = format!("/v1/azollas/{azolla}/captures/release");
    send(client, &path, &NoteRequest { note, record_id: record() }).await
}

pub(super) async fn merge(
    client: &Client,
    into: &CandidateId,
    others: Vec<CandidateId>,
) -> Result<Reply<CandidateView>, ClientError> {
    send(client, &path(into, "merge"), &MergeRequest { candidates: others, record_id: record() }).await
}

/// Changes what flags name, or without flags what the person edits.
pub(super) async fn edit(
    client: &Client,
    before: &CandidateView,
    mut changes: Changes,
) -> Outcome<Reply<CandidateView>> {
    let flags = changes.title.is_some()
        || changes.criteria.is_some()
        || changes.importance.is_some()
        || changes.urgency.is_some()
        || changes.due.is_some()
        || !changes.metadata.is_empty()
        || !changes.unset.is_empty();
    if let Some(file) = changes.file.take() {
        if flags {
            return Err(Failure::usage("--file has the whole text: leave out the other flags"));
        }
        let reply = change(client, before, written(before, &Page::read(&file)?, client).await?).await?;
        if let Some(draft) = Draft::found(&file) {
            draft.forget();
        }
        return Ok(reply);
    }
    if flags {
        if let Some(said) = changes.due.take() {
            let at = due_as(&said, client).await?.map_err(|why| Failure::usage(format!("--due: {why}")))?;
            changes.due = Some(at);
        }
        return change(client, before, changes).await;
    }
    if !input::can_ask() {
        return Err(Failure::usage(
            "name a change: --title, --criteria, --importance, --urgency, --due, --meta, --unset or --file FILE",
        ));
    }
    let command = format!("fernery triage edit {} --file", before.candidate_id);
    let send = async |draft: &Draft| {
        let page = Page::of(draft, &command)?;
        change(client, before, written(before, &page, client).await?).await
    };
    editor::until_taken(&form(before), &command, send).await
}

async fn change(client: &Client, before: &CandidateView, changes: Changes) -> Outcome<Reply<CandidateView>> {
    let mut metadata = before.metadata.clone();
    metadata.extend(changes.due.map(|due| ("due_at".to_string(), due.into())));
    metadata.extend(changes.metadata);
    metadata.retain(|key, _| !changes.unset.contains(key));
    let body = EditCandidateRequest {
        title: changes.title,
        acceptance_criteria: changes.criteria,
        importance: changes.importance,
        urgency: changes.urgency,
        metadata: (metadata != before.metadata).then_some(metadata),
        record_id: record(),
    };
    let path = format!("/v1/candidates/{}", before.candidate_id);
    Ok(match client.patch(&path, &body).await {
        Err(ClientError::Broken { .. } | ClientError::TimedOut { .. }) => client.patch(&path, &body).await?,
        answer => answer?,
    })
}

fn form(before: &CandidateView) -> String {
    text::form(&Text {
        title: &before.title,
        criteria: &before.acceptance_criteria,
        importance: before.importance,
        urgency: before.urgency,
        metadata: &before.metadata,
    })
}

/// A date as it is kept: a day stays a day.
async fn due_as(said: &str, client: &Client) -> Outcome<Result<String, String>> {
    match due_date(said) {
        Ok(day) => Ok(Ok(day)),
        Err(_) => Ok(due::said_as(said, client).await?.map(|at| at.to_string())),
    }
}

/// What a text says. A metadata line that was deleted there is removed.
async fn written(before: &CandidateView, page: &Page, client: &Client) -> Outcome<Changes> {
    let (shown, _) = text::read(&form(before));
    let (mut written, mut mistakes) = text::read(&page.text);
    if let Some(Err(why)) = written.metadata.get("due_at").and_then(Value::as_str).map(due_date) {
        mistakes.push(written.mistake("due_at", format!("due_at: {why}")));
    }
    if let Some(said) = written.due.take() {
        match due_as(&said, client).await? {
            Ok(at) => written.due = Some(at),
            Err(why) => mistakes.push(written.mistake("due", format!("due: {why}"))),
        }
    }
    mistakes.sort();
    page.refuse(mistakes)?;
    let gone = shown.metadata.keys().filter(|key| !written.metadata.contains_key(*key));
    Ok(Changes {
        unset: gone.cloned().collect(),
        title: written.title,
        criteria: written.criteria,
        importance: written.importance,
        urgency: written.urgency,
        due: written.due,
        metadata: written.metadata.into_iter().collect(),
        file: None,
    })
}

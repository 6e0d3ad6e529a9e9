//! Acts of an operator on a ticket, each with an id of its own, so that an act whose answer was lost can be sent again.

use super::{brief, merge, path, show};
use crate::cli::failure::{Failure, Outcome};
use crate::cli::run::comments_of;
use crate::cli::screen::{Screen, counted, plain, remark};
use crate::cli::{ids, input};
use crate::ticket_words::{Revised, approved_before, changes, is_as_approved};
use fernery_client::client::Reply;
use fernery_client::wire::{
    ApprovalView, ConfirmRequest, DecisionResponse, ObjectiveDetail, ObjectiveView, ReadComments,
    ReopenRequest,
};
use fernery_client::{Client, ClientError};
use fernery_core::artifact::{Objective, ObjectiveId, RecordId, RunId};
use fernery_core::inbox::deadline::is_cancelled;
use fernery_core::pipeline::dependency::{Dependency, asks_somebody};
use fernery_core::pipeline::possible::Verb;
use fernery_engine::door;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::Duration;

/// The id of a new act.
pub(in crate::cli) fn record() -> Option<RecordId> {
    Some(RecordId::stored(&door::artifact_id()))
}

/// Sends an act; again if it is unknown whether it was carried out. Its id makes sure that it is carried out once.
pub(in crate::cli) async fn send<T: DeserializeOwned>(
    client: &Client,
    path: &str,
    body: &impl Serialize,
) -> Result<Reply<T>, ClientError> {
    match client.post(path, body, Duration::ZERO).await {
        Err(ClientError::Broken { .. } | ClientError::TimedOut { .. }) => {
            client.post(path, body, Duration::ZERO).await
        }
        answer => answer,
    }
}

/// Carries out an act and reports the new state of the ticket.
pub(in crate::cli) async fn act(
    id: &ObjectiveId,
    act: &str,
    body: &impl Serialize,
    client: &Client,
    screen: Screen,
) -> Outcome {
    let reply: Reply<ObjectiveView> = send(client, &path(id, act), body).await?;
    left_at(&reply, screen)
}

pub(in crate::cli) fn left_at(reply: &Reply<ObjectiveView>, screen: Screen) -> Outcome {
    if screen.json {
        return screen.json_body(&reply.body);
    }
    let objective = reply.read()?.objective;
    if is_cancelled(&objective) {
        return screen.say(&format!("{} is cancelled", objective.objective_id));
    }
    let why = objective.blocked_reason.map_or(String::new(), |why| format!(": {}", plain(&why)));
    screen.say(&format!("{} is {}{why}", objective.objective_id, objective.status))
}

/// After an act that lets it go on: what is still in its way, and what to do about that.
pub(super) async fn still_blocked(
    objective: &Objective,
    waits_for: &[Dependency],
    client: &Client,
) -> Outcome {
    if !objective.has_open_blockers() {
        return Ok(());
    }
    let open: Vec<&str> = asks_somebody(objective, waits_for).map(|of| of.blocker_id.as_str()).collect();
    if !open.is_empty() {
        remark(&format!("still blocked by: {}", open.join(", ")));
    }
    brief(client, &objective.objective_id).await?.next.iter().for_each(|next| remark(&plain(next)));
    Ok(())
}

/// Confirms the named run, or the last one.
pub(in crate::cli) async fn confirm(
    id: &ObjectiveId,
    run: Option<RunId>,
    note: Option<String>,
    client: &Client,
    screen: Screen,
) -> Outcome {
    let run_id = match run {
        Some(run) => ids::only_run(client, run).await?,
        None => {
            let read = brief(client, id).await?;
            if is_cancelled(&read.view.objective) {
                let next = read.next.first().map(|next| plain(next)).unwrap_or_default();
                return Err(Failure::conflict(format!("{id} is cancelled")).hint(next));
            }
            if let Some(run) = &read.kept_run {
                return Err(Failure::conflict(format!(
                    "{id} is BLOCKED: run {run} passed, but what came after it did not pass"
                ))
                .hint(format_args!("to keep that run: fernery ticket confirm {id} --run {run}")));
            }
            // Where nothing can be confirmed, the server says what can be done with the last run's ticket.
            let last = read.runs.last().and_then(|run| run["run_id"].as_str()).and_then(|id| id.parse().ok());
            let status = read.view.objective.status;
            read.confirms
                .or(last)
                .ok_or_else(|| Failure::conflict(format!("{id} is {status} and has no run to confirm")))?
        }
    };
    let body = ConfirmRequest { run_id: run_id.clone(), note, record_id: record() };
    let reply: Reply<DecisionResponse> = send(client, &path(id, "confirm"), &body).await?;
    if screen.json {
        screen.json_body(&reply.body)
    } else {
        screen.say(&format!("{id} is confirmed: run {run_id}"))?;
        merge::after_confirm(id, &reply.read()?)
    }
}

/// Reopens the current content: this is an approval of it. What differs from what was last approved is shown first, and asked.
pub(in crate::cli) async fn reopen(
    id: &ObjectiveId,
    (note, with_comments): (Option<String>, bool),
    (from_scratch, yes): (bool, bool),
    client: &Client,
    screen: Screen,
) -> Outcome {
    let ticket = brief(client, id).await?;
    let Some(approval) = &ticket.approval else {
        return Err(Failure::conflict(format!("the azolla of {id} does not exist any more")));
    };
    let digest = approval.digest;
    let (said, comments) = if with_comments { commented(id, &ticket, client).await? } else { (None, None) };
    let note: Vec<String> = [note, said].into_iter().flatten().collect();
    // The server refuses the rest, and says what can be done. A server of an earlier version names nothing.
    let allowed = ticket.possible.is_empty() || ticket.allows(Verb::Reopen);
    if allowed && !is_as_approved(&ticket) {
        read_again(id, approval, approved_before(&ticket), yes, screen)?;
    }
    let body = ReopenRequest { digest, note: note.join("\n\n"), record_id: record(), from_scratch, comments };
    act(id, "reopen", &body, client, screen).await
}

/// Nobody was shown what this reopening would approve: shows it, with what changed, and asks.
fn read_again(
    id: &ObjectiveId,
    approval: &ApprovalView,
    before: Option<&Value>,
    yes: bool,
    screen: Screen,
) -> Outcome {
    if !yes && (screen.json || !input::can_ask()) {
        let changed = before.map(|before| changes(before, &approval.shown)).unwrap_or_default();
        changed.iter().flat_map(Revised::lines).for_each(|line| remark(&plain(&line)));
        return Err(Failure::usage(format!(
            "what would run for {id} has changed since it was last approved, and there is no terminal to ask on: \
            read it at /approve/{id} or with `fernery ticket show {id} --json`, and pass --yes"
        )));
    }
    if !screen.json {
        show::approval(screen, approval, before)?;
    }
    if !yes {
        screen.line("")?;
        let question = format!("it has changed since it was last approved: reopen {id} as shown? [y/N] ");
        input::confirmed(&question, "nothing was reopened")?;
    }
    Ok(())
}

/// The note that the comments on the last run make, and which comments these are.
async fn commented(
    id: &ObjectiveId,
    ticket: &ObjectiveDetail,
    client: &Client,
) -> Outcome<(Option<String>, Option<ReadComments>)> {
    let last =
        ticket.runs.last().and_then(|run| run["run_id"].as_str()).and_then(|id| id.parse::<RunId>().ok());
    let run_id = last.ok_or_else(|| Failure::conflict(format!("{id} has no run with comments")))?;
    let list = comments_of(client, run_id.as_str()).await?.read()?;
    if list.comments.is_empty() {
        return Err(Failure::conflict(format!("the last run of {id} has no comments"))
            .hint(format_args!("fernery run comments {id} --file PATH --line N --text TEXT adds one")));
    }
    remark(&format!("{} in the note", counted(list.comments.len() - list.left_out, "comment")));
    if list.left_out > 0 {
        remark(&format!("{} did not fit; the note says so at its end", counted(list.left_out, "comment")));
    }
    Ok((Some(list.note), Some(ReadComments { run_id, digest: list.digest })))
}

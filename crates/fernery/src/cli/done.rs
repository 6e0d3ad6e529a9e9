//! `fernery done`: a person has done it. One act approves it if it is NEW, hands in the note, has the gates judge and confirms.

use super::failure::{Failure, Outcome};
use super::ids;
use super::screen::{Screen, plain};
use super::ticket::{act, brief, path};
use clap::Args;
use fernery_client::Client;
use fernery_client::client::Reply;
use fernery_client::wire::{DecisionResponse, DoneRequest};
use fernery_core::artifact::{ObjectiveId, ObjectiveStatus};

/// Finish a ticket that you have done yourself
///
/// For tickets that a person does, like those of the azolla `tasks`. A ticket that is still NEW is shown and approved by the same
/// command. The note is kept as the output.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fernery done tasks-h3kq7vza
  fernery done tasks-h3kq7vza --note 'oat milk, two litres'
  fernery done tasks-h3kq7vza tasks-m2xw9bcd")]
pub(super) struct Done {
    /// The tickets
    #[arg(value_name = "ID", required = true, value_parser = ids::ticket_name)]
    ids: Vec<ObjectiveId>,
    /// What came of it
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    note: Option<String>,
}

pub(super) async fn run(mut done: Done, client: &Client, screen: Screen) -> Outcome {
    let several = done.ids.len() > 1;
    // All are looked up first, so that a wrong name changes nothing.
    for id in &mut done.ids {
        ids::ticket(client, id).await?;
    }
    for id in &done.ids {
        let one = one(id, done.note.clone(), client, screen).await;
        one.map_err(|failure| if several { failure.context(id.as_str()) } else { failure })?;
    }
    Ok(())
}

async fn one(id: &ObjectiveId, note: Option<String>, client: &Client, screen: Screen) -> Outcome {
    let read = brief(client, id).await?;
    let Some(approval) = &read.approval else {
        return Err(Failure::conflict(format!("the azolla of {id} does not exist any more")));
    };
    let objective = &read.view.objective;
    // What is approved by this act is shown; what was approved before was shown then.
    let is_new = objective.status == ObjectiveStatus::New;
    if is_new && !screen.json {
        screen.say(&format!("{id}: {}", plain(&objective.title)))?;
        let criteria = plain(&objective.acceptance_criteria);
        criteria.trim_end().lines().try_for_each(|line| screen.say(format!("  {line}").trim_end()))?;
    }
    let digest = is_new.then_some(approval.digest);
    let body = DoneRequest { note, digest, record_id: act::record() };
    let reply: Reply<DecisionResponse> = act::send(client, &path(id, "done"), &body).await?;
    if screen.json {
        return screen.json_body(&reply.body);
    }
    screen.line(&format!("{id} is {}", reply.read()?.view.objective.status))
}

//! `fernery triage recurring`: lines that are captured again and again.

use super::show;
use crate::cli::failure::{Failure, Outcome};
use crate::cli::screen::{Cell, Screen};
use crate::cli::ticket::act::{record, send};
use fernery_client::Client;
use fernery_client::client::{Query, Reply};
use fernery_client::wire::{NoteRequest, RecurrenceList, RecurrenceView};
use fernery_core::artifact::AzollaId;
use fernery_core::id_part::IdPart;
use std::time::Duration;

pub(super) async fn run(
    stop: Option<String>,
    azolla: Option<AzollaId>,
    client: &Client,
    screen: Screen,
) -> Outcome {
    let query = Query::new().with("azolla_id", azolla.as_ref());
    let reply: Reply<RecurrenceList> = client.get("/v1/recurrences", &query, Duration::ZERO).await?;
    let Some(named) = stop else {
        if screen.json {
            return screen.json_body(&reply.body);
        }
        let row = |line: RecurrenceView| -> Vec<Cell> {
            let next: Cell = if line.held { "held".into() } else { line.next_at.into() };
            vec![Cell::id(&line.recurrence_id), line.every.into(), next, line.text.into()]
        };
        let lines = reply.read()?.recurrences;
        let held = lines.iter().any(|line| line.held);
        screen.table(&["ID", "EVERY…", "NEXT", "TEXT…"], lines.into_iter().map(row).collect())?;
        if held {
            screen.say("held lines were imported; to let them come again: fernery triage release")?;
        }
        return Ok(());
    };
    let there = reply.read()?.recurrences;
    let parts = IdPart::meanings(&named);
    let mut meant = there.iter().filter(|line| {
        let id = line.recurrence_id.as_str();
        id == named || parts.iter().any(|part| part.means(id))
    });
    let id = match (meant.next(), meant.next()) {
        (Some(one), None) => &one.recurrence_id,
        (Some(_), Some(_)) => {
            return Err(Failure::usage(format!("{named} is the short form of several: give one whole")));
        }
        (None, _) => {
            return Err(Failure::not_found(format!(
                "nothing comes again as {named}; `fernery triage recurring` lists all"
            )));
        }
    };
    let body = NoteRequest { note: None, record_id: record() };
    let reply: Reply<RecurrenceView> = send(client, &format!("/v1/recurrences/{id}/stop"), &body).await?;
    if screen.json {
        return screen.json_body(&reply.body);
    }
    screen.line(&format!("{} comes no more", show::short(id.as_str())))
}

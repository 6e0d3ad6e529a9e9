//! Finds a run by any of its ids: the ticket's, the workorder's or its own.

use crate::cli::failure::{Failure, Outcome};
use crate::cli::ids;
use fernery_client::client::{Query, Reply};
use fernery_client::wire::{ObjectiveDetail, WorkorderDetail};
use fernery_client::{Client, ClientError};
use fernery_core::artifact::ObjectiveId;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::Duration;

/// Gets a path; `None` if there is nothing.
pub(super) async fn found<T: DeserializeOwned>(client: &Client, path: &str) -> Outcome<Option<T>> {
    let reply: Result<Reply<T>, ClientError> = client.get(path, &Query::new(), Duration::ZERO).await;
    match reply {
        Ok(reply) => Ok(Some(reply.read()?)),
        Err(error) if error.status() == Some(404) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The workorder with everything that belongs to it; for a ticket, its last one. All kinds of ids look alike.
pub(super) async fn workorder(client: &Client, id: &ObjectiveId) -> Outcome<WorkorderDetail> {
    let mut id = id.clone();
    ids::run(client, &mut id).await?;
    let ticket: Option<ObjectiveDetail> =
        found(client, &format!("/v1/objectives/{id}?documents=false")).await?;
    let named = match ticket {
        Some(ticket) => match ticket.workorders.last() {
            Some(last) => last["work_order_id"].as_str().unwrap_or_default().to_string(),
            None => {
                return Err(Failure::not_found(format!("ticket {id} has no run yet"))
                    .hint(format_args!("fernery ticket show {id} says what it is waiting for")));
            }
        },
        None => id.to_string(),
    };
    if let Some(detail) = found(client, &format!("/v1/workorders/{named}")).await? {
        return Ok(detail);
    }
    let run: Option<Value> = found(client, &format!("/v1/runs/{named}")).await?;
    let unknown = || Failure::not_found(format!("there is no ticket, workorder or run {id}"));
    let run = run.ok_or_else(unknown)?;
    let of = run["work_order_id"].as_str().unwrap_or_default();
    found(client, &format!("/v1/workorders/{of}")).await?.ok_or_else(unknown)
}

/// The workorder of another attempt at the same ticket: by its number, counted from 1, or by any of its ids.
pub(super) async fn attempt(client: &Client, work: &Value, named: &ObjectiveId) -> Outcome<String> {
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_string();
    if let Ok(number) = named.as_str().parse::<usize>() {
        let ticket = text(work, "objective_id");
        let of: Option<ObjectiveDetail> =
            found(client, &format!("/v1/objectives/{ticket}?documents=false")).await?;
        let all = of.map(|ticket| ticket.workorders).unwrap_or_default();
        let nth = number.checked_sub(1).and_then(|nth| all.get(nth));
        return nth.map(|work| text(work, "work_order_id")).ok_or_else(|| {
            Failure::not_found(format!("ticket {ticket} has no attempt {number}; it has had {}", all.len()))
        });
    }
    Ok(text(&workorder(client, named).await?.workorder, "work_order_id"))
}

//! Reads candidates, and finds the azolla that tickets go to.

use crate::cli::failure::{Failure, Outcome};
use crate::cli::screen::{counted, remark};
use fernery_client::client::{Query, Reply};
use fernery_client::wire::{AzollaDetail, AzollaList, CandidatePage, CandidateView};
use fernery_client::{Client, ClientError};
use fernery_core::artifact::{AzollaId, CandidateId};
use fernery_core::limits;
use fernery_engine::door;
use serde_json::Value;
use std::time::Duration;

pub(in crate::cli) use crate::cli::ids::candidate;

pub(in crate::cli) async fn read(
    client: &Client,
    id: &CandidateId,
) -> Result<Reply<CandidateView>, ClientError> {
    client.get(&format!("/v1/candidates/{id}"), &Query::new(), Duration::ZERO).await
}

/// Candidates, `status` WAITING or ALL, up to `max`; and whether there are more.
pub(in crate::cli) async fn candidates(
    client: &Client,
    status: &str,
    azolla: Option<&AzollaId>,
    max: usize,
) -> Outcome<(Vec<CandidateView>, bool)> {
    let mut found = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let query = Query::new().with("status", Some(status)).with("azolla_id", azolla);
        let rows = u32::try_from(max - found.len()).unwrap_or(u32::MAX).min(limits::PAGE_ROWS_MAX);
        let query = query.with("limit", Some(rows)).with("cursor", cursor.take());
        let page = client.get::<CandidatePage>("/v1/candidates", &query, Duration::ZERO).await?.read()?;
        found.extend(page.candidates);
        cursor = page.next_cursor;
        if cursor.is_none() || found.len() >= max {
            return Ok((found, cursor.is_some()));
        }
    }
}

/// The remark about what came with an import and is held; `None`: there is nothing.
pub(in crate::cli) async fn held(client: &Client, azolla: Option<&AzollaId>) -> Outcome<Option<String>> {
    let query = Query::new().with("azolla_id", azolla).with("limit", Some(1));
    let page = client.get::<CandidatePage>("/v1/candidates", &query, Duration::ZERO).await?.read()?;
    let some = |n: u64, one: &str| (n > 0).then(|| counted(n, one));
    let captures = some(page.held_captures, "imported capture");
    let lines = some(page.held_recurrences, "imported recurring line");
    let all = captures.into_iter().chain(lines).collect::<Vec<_>>().join(" and ");
    Ok(match page.held_captures + page.held_recurrences {
        0 => None,
        1 => Some(format!("{all} is held: fernery triage release")),
        _ => Some(format!("{all} are held: fernery triage release")),
    })
}

/// How long a list waits for captures that triage has in hand, and how often it looks.
const SORTED_WITHIN: Duration = Duration::from_secs(3);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Waits a moment for captures that triage has still to look through, and says so: whoever has just captured something wants to
/// see it.
pub(in crate::cli) async fn sorted_out(client: &Client, azolla: Option<&AzollaId>) -> Outcome {
    let by = door::stop_watch() + SORTED_WITHIN;
    let query = Query::new().with("azolla_id", azolla).with("limit", Some(1));
    let mut told = false;
    loop {
        let page = client.get::<CandidatePage>("/v1/candidates", &query, Duration::ZERO).await?.read()?;
        let left = counted(page.pending_captures, "capture");
        if page.pending_captures == 0 {
            return Ok(());
        }
        if door::stop_watch() >= by {
            remark(&format!("{left} still on the way through triage: look again in a moment"));
            return Ok(());
        }
        if !told {
            remark(&format!("{left} on the way through triage; waiting for a moment"));
            told = true;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// The azollas with such a blueprint.
pub(in crate::cli) async fn azollas(
    client: &Client,
    is_so: impl Fn(&Value) -> bool,
) -> Outcome<Vec<AzollaId>> {
    let list = client.get::<AzollaList>("/v1/azollas", &Query::new(), Duration::ZERO).await?.read()?;
    let mut found = Vec::new();
    for azolla in list.azollas {
        let path = format!("/v1/azollas/{}", azolla.azolla_id);
        let detail = client.get::<AzollaDetail>(&path, &Query::new(), Duration::ZERO).await?.read()?;
        if is_so(&detail.blueprint) {
            found.push(azolla.azolla_id);
        }
    }
    Ok(found)
}

/// The azollas that have tickets.
pub(in crate::cli) async fn ticket_azollas(client: &Client) -> Outcome<Vec<AzollaId>> {
    azollas(client, |blueprint| blueprint["objective_type"] != "STANDING").await
}

/// The inbox if none is named.
pub(in crate::cli) async fn only_inbox(client: &Client) -> Outcome<AzollaId> {
    let found = azollas(client, |blueprint| !blueprint["triage"].is_null()).await?;
    match found.iter().find(|azolla| azolla.as_str() == "task_management") {
        Some(default) => Ok(default.clone()),
        None => only(found, "an inbox"),
    }
}

fn only(found: Vec<AzollaId>, what: &str) -> Outcome<AzollaId> {
    match &found[..] {
        [only] => Ok(only.clone()),
        [] => Err(Failure::conflict(format!("no azolla of this server has {what}"))),
        several => {
            let several: Vec<_> = several.iter().map(AzollaId::as_str).collect();
            Err(Failure::usage(format!(
                "several azollas have {what}: choose one with --azolla {}",
                several.join(" or ")
            )))
        }
    }
}

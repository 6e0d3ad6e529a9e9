//! Finds a candidate by a part of its id, and the azolla that tickets go to.

use crate::cli::failure::{Failure, Outcome};
use fernery_client::client::{Query, Reply};
use fernery_client::wire::{AzollaDetail, AzollaList, CandidatePage, CandidateView};
use fernery_client::{Client, ClientError};
use fernery_core::artifact::{AzollaId, CandidateId};
use fernery_core::limits;
use serde_json::Value;
use std::time::Duration;

/// Candidates searched for a part of an id.
const LOOKED_THROUGH_MAX: usize = 10_000;
/// Characters of a whole id, as they are made.
const WHOLE_CHARS: usize = 36;
/// Shortest part of an id: a shorter one would soon be ambiguous.
const PART_CHARS_MIN: usize = 4;

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

/// The remark about held captures; `None`: there are none.
pub(in crate::cli) async fn held(client: &Client, azolla: Option<&AzollaId>) -> Outcome<Option<String>> {
    let query = Query::new().with("azolla_id", azolla).with("limit", Some(1));
    let page = client.get::<CandidatePage>("/v1/candidates", &query, Duration::ZERO).await?.read()?;
    Ok(match page.held_captures {
        0 => None,
        1 => Some("1 imported capture is held: fernery triage release".to_string()),
        n => Some(format!("{n} imported captures are held: fernery triage release")),
    })
}

/// The candidate with this id or part of it: waiting ones are searched first, then all.
pub(in crate::cli) async fn candidate(client: &Client, named: &str) -> Outcome<CandidateId> {
    let not_one = |error: String| Failure::usage(format!("{named:?} is not a candidate's id: {error}"));
    let id: CandidateId = named.parse().map_err(|e: fernery_core::names::BadName| not_one(e.to_string()))?;
    if named.len() >= WHOLE_CHARS {
        return Ok(id);
    }
    for status in ["WAITING", "ALL"] {
        let (there, _) = candidates(client, status, None, LOOKED_THROUGH_MAX).await?;
        let ids: Vec<CandidateId> = there.into_iter().map(|candidate| candidate.candidate_id).collect();
        match &meant(named, &ids)[..] {
            [] => {}
            [one] => return Ok((*one).clone()),
            several => {
                let several: Vec<_> = several.iter().take(5).map(|id| id.as_str()).collect();
                return Err(Failure::usage(format!(
                    "{named} matches several candidates ({}): give more characters",
                    several.join(", ")
                )));
            }
        }
    }
    Err(Failure::not_found(format!(
        "there is no candidate {named}; `fernery triage list` shows those that wait"
    )))
}

/// The ids that it equals, begins or ends.
fn meant<'a>(named: &str, ids: &'a [CandidateId]) -> Vec<&'a CandidateId> {
    if let Some(whole) = ids.iter().find(|id| id.as_str() == named) {
        return vec![whole];
    }
    if named.len() < PART_CHARS_MIN {
        return Vec::new();
    }
    let is_part = |id: &&CandidateId| id.as_str().ends_with(named) || id.as_str().starts_with(named);
    ids.iter().filter(is_part).collect()
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

/// The azolla of a ticket if none is named.
pub(in crate::cli) async fn only_ticket_azolla(client: &Client) -> Outcome<AzollaId> {
    only(ticket_azollas(client).await?, "tickets")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_candidate_is_named_by_a_unique_prefix_or_suffix() {
        let ids: Vec<CandidateId> =
            ["0190aaaa-1", "0190aaaa-2", "abcd"].into_iter().map(CandidateId::stored).collect();
        assert_eq!(meant("aa-2", &ids), [&ids[1]]);
        assert_eq!(meant("0190", &ids), [&ids[0], &ids[1]]);
        assert_eq!(meant("abcd", &ids), [&ids[2]]);
        assert!(meant("a-2", &ids).is_empty(), "too short");
        assert!(meant("ffff", &ids).is_empty());
    }
}

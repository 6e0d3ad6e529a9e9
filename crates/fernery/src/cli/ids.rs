//! Whole ids for what people type: a whole id, or a short form as tables show it.

use super::failure::{Failure, Outcome};
use fernery_client::client::Query;
use fernery_client::wire::{IdKind, MeantIds};
use fernery_client::{Client, ClientError};
use fernery_core::artifact::{CandidateId, ObjectiveId, RunId};
use fernery_core::id_part::{IdPart, is_made};
use fernery_core::percent::encode;
use fernery_core::{BadName, JobId};
use std::str::FromStr;
use std::time::Duration;

/// A job as it is named on the command line: its id or a short form of it.
#[derive(Clone, Debug)]
pub(super) struct NamedJob(String);

impl FromStr for NamedJob {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        let whole = text.parse::<JobId>();
        if whole.is_err() && IdPart::meanings(text).is_empty() {
            return Err(BadName(
                "a job is named by its id, like 019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f, or as lists show it, like \
                 019a8c5e-07398f"
                    .to_string(),
            ));
        }
        Ok(Self(text.to_string()))
    }
}

/// A ticket's id on the command line; of a long one also the `beginning…end` that tables show.
pub(super) fn ticket_name(text: &str) -> Result<ObjectiveId, BadName> {
    if text.contains('…') && !IdPart::meanings(text).is_empty() {
        return Ok(ObjectiveId::stored(text));
    }
    text.parse()
}

/// The whole id of a ticket.
pub(super) async fn ticket(client: &Client, named: &mut ObjectiveId) -> Outcome {
    if let Some(whole) = meant(client, &[IdKind::Ticket], named.as_str()).await? {
        *named = ObjectiveId::stored(&whole);
    }
    Ok(())
}

/// The whole id of a ticket, a workorder or a run.
pub(super) async fn run(client: &Client, named: &mut ObjectiveId) -> Outcome {
    let kinds = [IdKind::Ticket, IdKind::Workorder, IdKind::Run];
    if let Some(whole) = meant(client, &kinds, named.as_str()).await? {
        *named = ObjectiveId::stored(&whole);
    }
    Ok(())
}

/// The whole id of a run.
pub(super) async fn only_run(client: &Client, named: RunId) -> Outcome<RunId> {
    let whole = meant(client, &[IdKind::Run], named.as_str()).await?;
    Ok(whole.map_or(named, |whole| RunId::stored(&whole)))
}

/// The whole id of a candidate.
pub(super) async fn candidate(client: &Client, named: &str) -> Outcome<CandidateId> {
    let unknown = || {
        let why = format!("there is no candidate {named}; `fernery triage list` shows those that wait");
        Failure::not_found(why)
    };
    match meant(client, &[IdKind::Candidate], named).await? {
        Some(whole) => Ok(CandidateId::stored(&whole)),
        None if is_made(named) => Ok(CandidateId::stored(named)),
        None => {
            let not_one =
                |error: BadName| Failure::usage(format!("{named:?} is not a candidate's id: {error}"));
            named.parse::<CandidateId>().map_err(not_one)?;
            Err(unknown())
        }
    }
}

/// The whole id of a job.
pub(super) async fn job(client: &Client, named: &NamedJob) -> Outcome<JobId> {
    let whole = meant(client, &[IdKind::Job], &named.0).await?;
    let unknown = |_| Failure::not_found(format!("there is no job {}", named.0));
    whole.as_deref().unwrap_or(&named.0).parse().map_err(unknown)
}

/// The whole ids of jobs.
pub(super) async fn jobs(client: &Client, named: &[NamedJob]) -> Outcome<Vec<JobId>> {
    let mut found = Vec::new();
    for named in named {
        found.push(job(client, named).await?);
    }
    Ok(found)
}

/// The one whole id of these kinds that a text means; `None` if it can only mean itself, or means nothing.
pub(super) async fn meant(client: &Client, kinds: &[IdKind], text: &str) -> Outcome<Option<String>> {
    if is_made(text) || IdPart::meanings(text).is_empty() {
        return Ok(None);
    }
    let path = format!("/v1/ids/{}", encode(text));
    let answer = client.get::<MeantIds>(&path, &Query::new(), Duration::ZERO).await;
    let mut ids: Vec<String> = match answer.and_then(|reply| reply.read()) {
        Ok(meant) => {
            meant.ids.into_iter().filter(|meant| kinds.contains(&meant.kind)).map(|meant| meant.id).collect()
        }
        // A server of an earlier version, or a token that may not look: then the text is taken as it is.
        Err(ClientError::Refused { problem, .. }) if matches!(problem.status, 403 | 404) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    // A workorder and its job have one id.
    ids.sort();
    ids.dedup();
    if ids.iter().any(|id| id == text) {
        return Ok(None);
    }
    match &ids[..] {
        [] => Ok(None),
        [one] => Ok(Some(one.clone())),
        several => Err(Failure::usage(format!(
            "{text} is the short form of several ids; give one of them whole:\n  {}",
            several.join("\n  ")
        ))),
    }
}

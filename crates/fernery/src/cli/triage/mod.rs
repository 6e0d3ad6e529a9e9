//! `fernery triage`: decide about the candidates. Nothing here starts work: a promoted candidate is a NEW ticket.

mod act;
pub(super) mod find;
mod keys;
mod show;
mod terminal;

use super::failure::{Failure, Outcome};
use super::job::stream;
use super::pages::{self, Listing, Paging};
use super::screen::{Cell, Screen, counted, remark};
use super::ticket::text::{degree, meta};
use clap::{Args, Subcommand};
use fernery_client::Client;
use fernery_client::client::Query;
use fernery_client::wire::{CandidatePage, CandidateView};
use fernery_core::artifact::{AzollaId, ObjectiveId};
use fernery_engine::door;
use serde_json::Value;
use std::io::IsTerminal;
use std::time::Duration;

/// Go through the inbox: promote, edit, merge or discard candidates
///
/// On a terminal it shows one candidate at a time and waits for a key: p promote, e edit, m merge, d discard, s skip, q
/// quit. Without a terminal it lists them.
#[derive(Debug, Args)]
#[command(after_help = "\
Name a candidate by its id, or by a unique beginning or end of it: lists show the last 8 characters.

Examples:
  fernery triage                            one at a time, with single keys
  fernery triage list
  fernery triage promote 0c07398f           then: fernery ticket approve ID
  fernery triage discard 0c07398f 5e21aa90 --note 'done already'
  fernery triage merge 0c07398f 5e21aa90    the second is merged into the first
  fernery triage release                    imported captures go to triage")]
pub(super) struct Triage {
    #[command(subcommand)]
    act: Option<Act>,
    /// Only from the inbox of this azolla
    #[arg(long, value_name = "ID")]
    azolla: Option<AzollaId>,
}

#[derive(Debug, Subcommand)]
enum Act {
    /// List candidates that wait for your decision, oldest first
    #[command(after_help = "\
Examples:
  fernery triage list
  fernery triage list --all    also decided ones, newest first
  fernery triage list --json")]
    List {
        /// Only from the inbox of this azolla
        #[arg(long, value_name = "ID")]
        azolla: Option<AzollaId>,
        #[command(flatten)]
        paging: Paging,
    },
    /// Show a candidate and its captures
    #[command(after_help = "\
Example:
  fernery triage show 0c07398f")]
    Show {
        /// The candidate
        #[arg(value_name = "CANDIDATE")]
        id: String,
    },
    /// Turn candidates into tickets; they are NEW, and nothing runs before they are approved
    #[command(after_help = "\
Examples:
  fernery triage promote 0c07398f
  fernery triage promote 0c07398f --azolla mec --id WEB-17
  fernery triage promote 0c07398f 5e21aa90")]
    Promote {
        /// The candidates
        #[arg(value_name = "CANDIDATE", required = true)]
        ids: Vec<String>,
        /// The azolla (project) of the ticket [default: the only one that works on tickets]
        #[arg(long, value_name = "ID")]
        azolla: Option<AzollaId>,
        /// The ticket's id [default: a new one]
        #[arg(long = "id", value_name = "ID")]
        objective: Option<ObjectiveId>,
    },
    /// Edit a candidate
    #[command(after_help = "\
Without flags on a terminal, $EDITOR opens. Fields that are not named stay unchanged; --unset removes metadata.

Examples:
  fernery triage edit 0c07398f --title 'Buy oat milk' --due 2026-11-20
  fernery triage edit 0c07398f --importance 1 --urgency 0
  fernery triage edit 0c07398f --unset due_at")]
    Edit {
        /// The candidate
        #[arg(value_name = "CANDIDATE")]
        id: String,
        #[command(flatten)]
        changes: Changes,
    },
    /// Merge candidates into another one, with their captures
    #[command(after_help = "\
Example:
  fernery triage merge 0c07398f 5e21aa90 77d1f0c2    the first one stays")]
    Merge {
        /// The candidate that stays
        into: String,
        /// The candidates that are merged into it
        #[arg(value_name = "OTHER", required = true)]
        others: Vec<String>,
    },
    /// Discard candidates; their captures stay stored
    #[command(after_help = "\
Example:
  fernery triage discard 0c07398f --note 'done already'")]
    Discard {
        /// The candidates
        #[arg(value_name = "CANDIDATE", required = true)]
        ids: Vec<String>,
        /// Why, for the record
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        note: Option<String>,
    },
    /// Release imported captures to triage; until then they are held
    #[command(after_help = "\
Examples:
  fernery triage release
  fernery triage release --azolla task_management")]
    Release {
        /// The azolla with the inbox [default: the only one, or task_management]
        #[arg(long, value_name = "ID")]
        azolla: Option<AzollaId>,
        /// Why, for the record
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        note: Option<String>,
    },
}

/// What is to change.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct Changes {
    /// The title: what is wanted, in one line
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(super) title: Option<String>,
    /// The acceptance criteria: how to see that it is done
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(super) criteria: Option<String>,
    /// Importance: 0 (most) to 4 (least)
    #[arg(long, value_name = "0-4", value_parser = degree)]
    pub(super) importance: Option<u8>,
    /// Urgency: 0 (now) to 4 (some day)
    #[arg(long, value_name = "0-4", value_parser = degree)]
    pub(super) urgency: Option<u8>,
    /// The deadline: a date like 2026-11-20, or a time like 2026-11-20T17:00:00Z
    #[arg(long, value_name = "DATE", value_parser = act::due)]
    pub(super) due: Option<String>,
    /// Set metadata: key=text or key:=json
    #[arg(long = "meta", value_name = "KEY=VALUE", value_parser = meta)]
    pub(super) metadata: Vec<(String, Value)>,
    /// Remove metadata
    #[arg(long, value_name = "KEY")]
    pub(super) unset: Vec<String>,
}

pub(super) async fn run(triage: Triage, client: &Client, screen: Screen) -> Outcome {
    let Some(act) = triage.act else {
        let person = std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && !screen.json;
        return match person {
            true => terminal::run(triage.azolla.as_ref(), client, screen).await,
            false => list(triage.azolla, &Paging::first(), client, screen).await,
        };
    };
    match act {
        Act::List { azolla, paging } => list(azolla.or(triage.azolla), &paging, client, screen).await,
        // Before the subcommand the flag would name an inbox, but a person may mean the azolla of the ticket.
        _ if triage.azolla.is_some() => Err(Failure::usage("--azolla must follow the subcommand")),
        Act::Show { id } => {
            let id = find::candidate(client, &id).await?;
            let reply = find::read(client, &id).await?;
            if screen.json {
                return screen.json_body(&reply.body);
            }
            show::card(&reply.read()?, None, usize::MAX).iter().try_for_each(|line| screen.line(line))
        }
        Act::Promote { ids, azolla, objective } => {
            if objective.is_some() && ids.len() > 1 {
                return Err(Failure::usage("--id names one ticket: promote one candidate with it"));
            }
            let azolla = match azolla {
                Some(azolla) => azolla,
                None => find::only_ticket_azolla(client).await?,
            };
            each(&ids, client, async |id| {
                let reply = act::promote(client, id, &azolla, objective.clone()).await?;
                if screen.json {
                    return screen.json_body(&reply.body);
                }
                let ticket = act::ticket_of(&reply)?;
                screen.line(ticket.as_str())?;
                remark(&format!("it is NEW; to let it run: fernery ticket approve {ticket}"));
                Ok(())
            })
            .await
        }
        Act::Edit { id, changes } => {
            let id = find::candidate(client, &id).await?;
            let before = find::read(client, &id).await?.read()?;
            let reply = act::edit(client, &before, changes).await?;
            if screen.json {
                return screen.json_body(&reply.body);
            }
            show::card(&reply.read()?, None, usize::MAX).iter().try_for_each(|line| screen.line(line))
        }
        Act::Merge { into, others } => {
            let into = find::candidate(client, &into).await?;
            let mut named = Vec::new();
            for other in &others {
                named.push(find::candidate(client, other).await?);
            }
            let count = named.len();
            let reply = act::merge(client, &into, named).await?;
            if screen.json {
                return screen.json_body(&reply.body);
            }
            let merged = counted(count, "candidate");
            screen.line(&format!("{merged} merged into {}", show::short(into.as_str())))
        }
        Act::Release { azolla, note } => {
            let azolla = match azolla {
                Some(azolla) => azolla,
                None => find::only_inbox(client).await?,
            };
            let reply = act::release(client, &azolla, note).await?;
            if screen.json {
                return screen.json_body(&reply.body);
            }
            screen.line(&format!("{} released to triage", counted(reply.read()?.released, "capture")))
        }
        Act::Discard { ids, note } => {
            each(&ids, client, async |id| {
                let reply = act::discard(client, id, note.clone()).await?;
                if screen.json {
                    return screen.json_body(&reply.body);
                }
                screen.line(&format!("{} is discarded", show::short(id.as_str())))
            })
            .await
        }
    }
}

/// Does the same to each. All are looked up first, so that a wrong name changes nothing.
async fn each(
    ids: &[String],
    client: &Client,
    act: impl AsyncFn(&fernery_core::artifact::CandidateId) -> Outcome,
) -> Outcome {
    let mut found = Vec::new();
    for id in ids {
        let id = find::candidate(client, id).await?;
        if !found.contains(&id) {
            found.push(id);
        }
    }
    for id in &found {
        let name = show::short(id.as_str());
        act(id).await.map_err(|failure| if found.len() > 1 { failure.context(name) } else { failure })?;
    }
    Ok(())
}

async fn list(azolla: Option<AzollaId>, paging: &Paging, client: &Client, screen: Screen) -> Outcome {
    let status = if paging.all { "ALL" } else { "WAITING" };
    let fetch = async |limit, cursor: Option<String>| {
        let query = Query::new().with("status", Some(status)).with("azolla_id", azolla.as_ref());
        let query = query.with("limit", Some(limit)).with("cursor", cursor);
        client.get("/v1/candidates", &query, Duration::ZERO).await
    };
    pages::list(screen, &CANDIDATES, paging, fetch).await?;
    if !screen.json
        && let Some(held) = find::held(client, azolla.as_ref()).await?
    {
        remark(&held);
    }
    Ok(())
}

const CANDIDATES: Listing<CandidatePage> = Listing {
    key: "candidates",
    heads: &["CANDIDATE", "STATUS", "AGE", "IMP/URG", "DUE", "TITLE"],
    rows: |page| {
        let now = door::wall_clock();
        let row = |candidate: CandidateView| {
            let status = match &candidate.objective_id {
                Some(ticket) => format!("{} {ticket}", candidate.status).into(),
                None => Cell::state(candidate.status.as_str()),
            };
            vec![
                show::short(candidate.candidate_id.as_str()).into(),
                status,
                stream::age(now.since(candidate.created_at)).into(),
                format!("{}/{}", candidate.importance, candidate.urgency).into(),
                Cell::maybe(show::due(&candidate)),
                candidate.title.into(),
            ]
        };
        page.candidates.into_iter().map(row).collect()
    },
};

//! `fernery triage`: what became of captures, and what you want of it. Nothing here runs anything: a promoted candidate is a
//! NEW ticket.

use super::failure::{Failure, Outcome};
use super::pages::{self, Listing, Paging};
use super::screen::{Cell, Screen, remark};
use super::ticket_text::{degree, meta};
use super::{stream, triage_act, triage_find, triage_screen, triage_show};
use clap::{Args, Subcommand};
use fernery_client::Client;
use fernery_client::client::Query;
use fernery_client::wire::{CandidatePage, CandidateView};
use fernery_core::artifact::{AzollaId, ObjectiveId};
use fernery_engine::door;
use serde_json::Value;
use std::io::IsTerminal;
use std::time::Duration;

/// Look through the inbox: promote, edit, merge or discard what triage made of captures
///
/// On a terminal it shows one candidate after the other and takes a key for each: p promote, e edit, m merge, d discard,
/// s skip, q quit. Elsewhere it lists them.
#[derive(Debug, Args)]
#[command(after_help = "\
A candidate is named by its id, or by an end or a beginning of it that no other has: lists show the last 8 characters.

Examples:
  fernery triage                                     one after the other, with single keys
  fernery triage list
  fernery triage promote 0c07398f --azolla mec       a NEW ticket; then: fernery ticket approve ID
  fernery triage discard 0c07398f 5e21aa90 --note 'done already'
  fernery triage merge 0c07398f 5e21aa90             the second goes into the first")]
pub(super) struct Triage {
    #[command(subcommand)]
    act: Option<Act>,
    /// Only of this inbox
    #[arg(long, value_name = "ID")]
    azolla: Option<AzollaId>,
}

#[derive(Debug, Subcommand)]
enum Act {
    /// List what waits for you, the oldest first
    #[command(after_help = "\
Examples:
  fernery triage list
  fernery triage list --all          also what was promoted, merged and discarded, the newest first
  fernery triage list --json")]
    List {
        /// Only of this inbox
        #[arg(long, value_name = "ID")]
        azolla: Option<AzollaId>,
        #[command(flatten)]
        paging: Paging,
    },
    /// Show a candidate and what was captured
    #[command(after_help = "\
Example:
  fernery triage show 0c07398f")]
    Show {
        /// The candidate
        #[arg(value_name = "CANDIDATE")]
        id: String,
    },
    /// Make tickets of candidates; they are NEW, and nothing runs before they are approved
    #[command(after_help = "\
Examples:
  fernery triage promote 0c07398f
  fernery triage promote 0c07398f --azolla mec --id WEB-17
  fernery triage promote 0c07398f 5e21aa90")]
    Promote {
        /// The candidates
        #[arg(value_name = "CANDIDATE", required = true)]
        ids: Vec<String>,
        /// Where it is to belong [default: the only azolla that has tickets]
        #[arg(long, value_name = "ID")]
        azolla: Option<AzollaId>,
        /// Its id as a ticket; one is made if you name none
        #[arg(long = "id", value_name = "ID")]
        objective: Option<ObjectiveId>,
    },
    /// Change what a candidate would become
    #[command(after_help = "\
Without flags on a terminal, $EDITOR opens. What is not named stays; --unset takes metadata away.

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
    /// Put candidates into another one, with their captures
    #[command(after_help = "\
Example:
  fernery triage merge 0c07398f 5e21aa90 77d1f0c2     the last two go into the first")]
    Merge {
        /// The one that stays
        into: String,
        /// Those that go into it
        #[arg(value_name = "OTHER", required = true)]
        others: Vec<String>,
    },
    /// Not want candidates; what was captured stays stored
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
}

/// What is to change.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct Changes {
    /// What is wanted, in a line
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(super) title: Option<String>,
    /// How to tell that it is done
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(super) criteria: Option<String>,
    /// How much it matters: 0 (most) to 4 (least)
    #[arg(long, value_name = "0-4", value_parser = degree)]
    pub(super) importance: Option<u8>,
    /// How soon: 0 (now) to 4 (whenever)
    #[arg(long, value_name = "0-4", value_parser = degree)]
    pub(super) urgency: Option<u8>,
    /// Until when: a date like 2026-11-20, or an instant like 2026-11-20T17:00:00Z
    #[arg(long, value_name = "DATE", value_parser = triage_act::due)]
    pub(super) due: Option<String>,
    /// Set metadata: key=text or key:=json
    #[arg(long = "meta", value_name = "KEY=VALUE", value_parser = meta)]
    pub(super) metadata: Vec<(String, Value)>,
    /// Take metadata away
    #[arg(long, value_name = "KEY")]
    pub(super) unset: Vec<String>,
}

pub(super) async fn run(triage: Triage, client: &Client, screen: Screen) -> Outcome {
    let Some(act) = triage.act else {
        let person = std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && !screen.json;
        return match person {
            true => triage_screen::run(triage.azolla.as_ref(), client, screen).await,
            false => list(triage.azolla, &Paging::first(), client, screen).await,
        };
    };
    match act {
        Act::List { azolla, paging } => list(azolla.or(triage.azolla), &paging, client, screen).await,
        // Before the act it would name an inbox, and a person may mean where a ticket goes.
        _ if triage.azolla.is_some() => Err(Failure::usage("--azolla stands after what is to be done")),
        Act::Show { id } => {
            let id = triage_find::candidate(client, &id).await?;
            let reply = triage_find::read(client, &id).await?;
            if screen.json {
                return screen.json_body(&reply.body);
            }
            triage_show::card(&reply.read()?, None, usize::MAX).iter().try_for_each(|line| screen.line(line))
        }
        Act::Promote { ids, azolla, objective } => {
            if objective.is_some() && ids.len() > 1 {
                return Err(Failure::usage("--id names one ticket: promote one candidate with it"));
            }
            let azolla = match azolla {
                Some(azolla) => azolla,
                None => triage_find::only_ticket_azolla(client).await?,
            };
            each(&ids, client, async |id| {
                let reply = triage_act::promote(client, id, &azolla, objective.clone()).await?;
                if screen.json {
                    return screen.json_body(&reply.body);
                }
                let ticket = triage_act::ticket_of(&reply)?;
                screen.line(ticket.as_str())?;
                remark(&format!("it is NEW; nothing runs before: fernery ticket approve {ticket}"));
                Ok(())
            })
            .await
        }
        Act::Edit { id, changes } => {
            let id = triage_find::candidate(client, &id).await?;
            let before = triage_find::read(client, &id).await?.read()?;
            let reply = triage_act::edit(client, &before, changes).await?;
            if screen.json {
                return screen.json_body(&reply.body);
            }
            triage_show::card(&reply.read()?, None, usize::MAX).iter().try_for_each(|line| screen.line(line))
        }
        Act::Merge { into, others } => {
            let into = triage_find::candidate(client, &into).await?;
            let mut named = Vec::new();
            for other in &others {
                named.push(triage_find::candidate(client, other).await?);
            }
            let count = named.len();
            let reply = triage_act::merge(client, &into, named).await?;
            if screen.json {
                return screen.json_body(&reply.body);
            }
            screen.line(&format!("{} has {count} more in it now", triage_show::short(into.as_str())))
        }
        Act::Discard { ids, note } => {
            each(&ids, client, async |id| {
                let reply = triage_act::discard(client, id, note.clone()).await?;
                if screen.json {
                    return screen.json_body(&reply.body);
                }
                screen.line(&format!("{} is discarded", triage_show::short(id.as_str())))
            })
            .await
        }
    }
}

/// Does the same to each. All are found before anything is done to the first, so that a wrong name changes nothing.
async fn each(
    ids: &[String],
    client: &Client,
    act: impl AsyncFn(&fernery_core::artifact::CandidateId) -> Outcome,
) -> Outcome {
    let mut found = Vec::new();
    for id in ids {
        let id = triage_find::candidate(client, id).await?;
        if !found.contains(&id) {
            found.push(id);
        }
    }
    for id in &found {
        let name = triage_show::short(id.as_str());
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
    pages::list(screen, &CANDIDATES, paging, fetch).await
}

const CANDIDATES: Listing<CandidatePage> = Listing {
    key: "candidates",
    heads: &["CANDIDATE", "STATUS", "AGE", "IMP/URG", "DUE", "TITLE"],
    rows: |page| {
        let now = door::wall_clock();
        let row = |candidate: CandidateView| {
            let status = match &candidate.objective_id {
                Some(ticket) => format!("{} {ticket}", candidate.status).into(),
                None => Cell::state(&candidate.status),
            };
            vec![
                triage_show::short(candidate.candidate_id.as_str()).into(),
                status,
                stream::age(now.since(candidate.created_at)).into(),
                format!("{}/{}", candidate.importance, candidate.urgency).into(),
                Cell::maybe(triage_show::due(&candidate)),
                candidate.title.into(),
            ]
        };
        page.candidates.into_iter().map(row).collect()
    },
};

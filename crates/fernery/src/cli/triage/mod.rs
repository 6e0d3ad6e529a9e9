//! `fernery triage`: decide about the candidates. Nothing here starts work: a promoted candidate is a NEW ticket.

mod act;
pub(super) mod find;
mod keys;
mod recurring;
mod show;
mod terminal;

use super::failure::{Failure, Outcome};
use super::input;
use super::pages::{self, Listing, Paging};
use super::screen::{Cell, Screen, counted, plain, remark};
use super::ticket::text::{degree, meta};
use crate::candidate_words;
use clap::{Args, Subcommand};
use fernery_client::Client;
use fernery_client::client::Query;
use fernery_client::wire::{CandidatePage, CandidateView};
use fernery_core::artifact::{AzollaId, CandidateId, ObjectiveId};
use fernery_core::inbox::likeness::alike;
use serde_json::Value;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

/// Go through the inbox: promote, edit, merge or discard candidates
///
/// On a terminal it shows one candidate at a time and waits for a key: p promote, e edit, m merge, d discard, u undo a
/// discard, z snooze, s skip, q quit, ? help. Without a terminal it lists them.
#[derive(Debug, Args)]
#[command(after_help = "\
Name a candidate by its id, or by the short form that lists show.

Examples:
  fernery triage                            one at a time, with single keys
  fernery triage list
  fernery triage promote 019a8c5e-07398f    then: fernery ticket approve ID
  fernery triage discard 019a8c5e-07398f --note 'done already'
  fernery triage restore 019a8c5e-07398f    a discard is taken back
  fernery triage merge 019a8c5e-07398f 019a8c5f-21aa90    into the first
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
  fernery triage show 019a8c5e-07398f")]
    Show {
        /// The candidate
        #[arg(value_name = "CANDIDATE")]
        id: String,
    },
    /// Turn candidates into tickets; they are NEW, and nothing runs before they are approved
    #[command(after_help = "\
Examples:
  fernery triage promote 019a8c5e-07398f
  fernery triage promote 019a8c5e-07398f --azolla mec --id WEB-17
  fernery triage promote 019a8c5e-07398f 019a8c5f-21aa90")]
    Promote {
        /// The candidates
        #[arg(value_name = "CANDIDATE", required = true)]
        ids: Vec<String>,
        /// The azolla (project) of the ticket [default: by what it names; `tasks` if it names no repository or agent]
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
  fernery triage edit 019a8c5e-07398f --title 'Buy oat milk' --due 2026-11-20
  fernery triage edit 019a8c5e-07398f --importance 1 --urgency 0
  fernery triage edit 019a8c5e-07398f --unset due_at")]
    Edit {
        /// The candidate
        #[arg(value_name = "CANDIDATE")]
        id: String,
        #[command(flatten)]
        changes: Changes,
    },
    /// Merge candidates into another one, with their captures; it shows them and asks
    #[command(after_help = "\
Examples:
  fernery triage merge 019a8c5e-07398f 019a8c5f-21aa90    the first one stays
  fernery triage merge 019a8c5e-07398f 019a8c5f-21aa90 --yes")]
    Merge {
        /// The candidate that stays
        into: String,
        /// The candidates that are merged into it
        #[arg(value_name = "OTHER", required = true)]
        others: Vec<String>,
        /// Merge without asking
        #[arg(long)]
        yes: bool,
    },
    /// Discard candidates; `restore` brings them back
    #[command(after_help = "\
Example:
  fernery triage discard 019a8c5e-07398f --note 'done already'")]
    Discard {
        /// The candidates
        #[arg(value_name = "CANDIDATE", required = true)]
        ids: Vec<String>,
        /// Why, for the record
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        note: Option<String>,
    },
    /// Bring discarded candidates back; they wait again
    #[command(after_help = "\
Examples:
  fernery triage restore 019a8c5e-07398f
  fernery triage list --all        shows discarded ones too")]
    Restore {
        /// The candidates
        #[arg(value_name = "CANDIDATE", required = true)]
        ids: Vec<String>,
        /// Why, for the record
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        note: Option<String>,
    },
    /// List notes that come again by themselves, and stop them
    #[command(after_help = "\
A capture that begins or ends with `every monday`, `every weekday at 9`, `every month on the 1st` and the like comes again: \
each time is a new candidate. What passed while no server ran comes once.

Examples:
  fernery capture every monday water the plants
  fernery triage recurring
  fernery triage recurring --stop 019a8c5e-07398f")]
    Recurring {
        /// Stop this line; what it brought so far stays
        #[arg(long, value_name = "ID")]
        stop: Option<String>,
        /// The azolla with the inbox [default: the only one, or task_management]
        #[arg(long, value_name = "ID")]
        azolla: Option<AzollaId>,
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
    /// Read the candidate from this file, as the editor shows it
    #[arg(long, value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
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
    /// The deadline: friday, tomorrow 17:00, in 2 weeks, a date like 2026-11-20, or a time like 2026-11-20T17:00:00Z
    #[arg(long, value_name = "DATE")]
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
            show::card(&reply.read()?, screen.width(), usize::MAX)
                .iter()
                .try_for_each(|line| screen.line(line))
        }
        Act::Promote { ids, azolla, objective } => {
            if objective.is_some() && ids.len() > 1 {
                return Err(Failure::usage("--id names one ticket: promote one candidate with it"));
            }
            each(&ids, client, async |id| {
                let reply = act::promote(client, id, azolla.clone(), objective.clone()).await?;
                if screen.json {
                    return screen.json_body(&reply.body);
                }
                screen.line(act::ticket_of(&reply)?.as_str())?;
                remark(&act::what_next(&reply)?);
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
            show::card(&reply.read()?, screen.width(), usize::MAX)
                .iter()
                .try_for_each(|line| screen.line(line))
        }
        Act::Merge { into, others, yes } => {
            let into = find::candidate(client, &into).await?;
            let mut named = Vec::new();
            for other in &others {
                named.push(find::candidate(client, other).await?);
            }
            let count = named.len();
            if !yes {
                merge_shown(client, &into, &named, screen).await?;
            }
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
            let released = reply.read()?;
            screen.line(&format!("{} released to triage", counted(released.released, "capture")))?;
            if released.recurrences > 0 {
                let lines = counted(released.recurrences, "recurring line");
                screen.line(&format!("{lines} released: from now on captured again"))?;
            }
            Ok(())
        }
        Act::Discard { ids, note } => {
            each(&ids, client, async |id| {
                let reply = act::discard(client, id, note.clone()).await?;
                if screen.json {
                    return screen.json_body(&reply.body);
                }
                let name = show::short(id.as_str());
                screen.line(&format!("{name} is discarded; to take it back: fernery triage restore {name}"))
            })
            .await
        }
        Act::Restore { ids, note } => {
            each(&ids, client, async |id| {
                let reply = act::restore(client, id, note.clone()).await?;
                if screen.json {
                    return screen.json_body(&reply.body);
                }
                screen.line(&format!("{} waits again", show::short(id.as_str())))
            })
            .await
        }
        Act::Recurring { stop, azolla } => recurring::run(stop, azolla, client, screen).await,
    }
}

/// Shows what is merged into what, and asks.
async fn merge_shown(client: &Client, into: &CandidateId, others: &[CandidateId], screen: Screen) -> Outcome {
    if !input::can_ask() {
        return Err(Failure::usage(
            "a merge cannot be undone, and there is no terminal to ask on: pass --yes",
        ));
    }
    let title = async |id: &CandidateId| -> Outcome<String> {
        let title = find::read(client, id).await?.read()?.title;
        Ok(format!("{} {}", show::short(id.as_str()), plain(&title)))
    };
    for other in others {
        screen.line(&format!("merge  {}", title(other).await?))?;
    }
    screen.line(&format!("into   {}", title(into).await?))?;
    input::confirmed("merge? [y/N] ", "nothing was merged")
}

/// Does the same to each. All are looked up first, so that a wrong name changes nothing.
async fn each(ids: &[String], client: &Client, act: impl AsyncFn(&CandidateId) -> Outcome) -> Outcome {
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
    find::sorted_out(client, azolla.as_ref()).await?;
    let fetch = async |limit, cursor: Option<String>| {
        let query = Query::new().with("status", Some(status)).with("azolla_id", azolla.as_ref());
        let query = query.with("limit", Some(limit)).with("cursor", cursor);
        client.get("/v1/candidates", &query, Duration::ZERO).await
    };
    pages::list(screen, &CANDIDATES, paging, fetch).await?;
    if !screen.json {
        let (waiting, _) = find::candidates(client, "WAITING", azolla.as_ref(), COMPARED_MAX).await?;
        near(&waiting).iter().take(NEAR_SHOWN).for_each(|said| remark(said));
    }
    if !screen.json
        && let Some(held) = find::held(client, azolla.as_ref()).await?
    {
        remark(&held);
    }
    Ok(())
}

/// Waiting candidates that are compared with each other.
const COMPARED_MAX: usize = 200;
/// Pairs of them that are pointed out.
const NEAR_SHOWN: usize = 5;

/// The candidates that say nearly the same, in words, with the command that makes one of two.
fn near(waiting: &[CandidateView]) -> Vec<String> {
    let mut said = Vec::new();
    for (n, other) in waiting.iter().enumerate() {
        if let Some(one) = waiting[..n].iter().find(|one| alike(&one.title, &other.title)) {
            let (one, other) =
                (show::short(one.candidate_id.as_str()), show::short(other.candidate_id.as_str()));
            said.push(format!(
                "{one} and {other} say nearly the same; to make one of them: fernery triage merge {one} {other}"
            ));
        }
    }
    said
}

const CANDIDATES: Listing<CandidatePage> = Listing {
    key: "candidates",
    heads: &["CANDIDATE", "STATUS…", "CREATED", "IMP/URG", "DUE", "TITLE…"],
    rows: |page| {
        let row = |candidate: CandidateView| {
            let title = show::titled(&candidate);
            let status = match &candidate.objective_id {
                Some(ticket) => format!("{} {ticket}", candidate.status).into(),
                None => Cell::state(candidate.status.as_str()),
            };
            vec![
                Cell::id(&candidate.candidate_id),
                status,
                candidate.created_at.into(),
                format!("{}/{}", candidate.importance, candidate.urgency).into(),
                Cell::maybe(candidate_words::due(&candidate).map(|due| plain(&due))),
                title.into(),
            ]
        };
        page.candidates.into_iter().map(row).collect()
    },
};

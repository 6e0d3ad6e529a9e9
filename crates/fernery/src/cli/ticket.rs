//! `fernery ticket`: objectives, from what is wanted to what a person has confirmed.

use super::failure::{Failure, Outcome};
use super::pages::{self, Listing, Paging};
use super::screen::{Cell, Screen, remark};
use super::ticket_act::{act, left_at, record};
use super::ticket_text::{self, Written, degree, meta};
use super::{input, stream, ticket_act, ticket_approve, ticket_show};
use clap::{Args, Subcommand};
use fernery_client::client::{Query, Reply};
use fernery_client::wire::{
    BlockRequest, EditObjectiveRequest, NewObjectiveRequest, NoteRequest, ObjectiveDetail, ObjectivePage,
    ObjectiveView, UnblockRequest,
};
use fernery_client::{Client, ClientError};
use fernery_core::artifact::{AzollaId, BlockerId, BlockerKind, ObjectiveId, ObjectiveStatus, RunId};
use fernery_core::canonical::Digest;
use fernery_core::limits;
use fernery_engine::door;
use serde_json::Value;
use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

#[derive(Debug, Subcommand)]
pub(super) enum Ticket {
    /// Write a ticket down; nothing runs before it is approved
    #[command(after_help = "\
Without flags on a terminal, $EDITOR opens. As Markdown: `key: value` lines between --- (title, importance, urgency,
azolla, id; other keys are metadata), the first `# heading` is the title, the rest the acceptance criteria.

Examples:
  fernery ticket new --title 'Name the field that is wrong' --criteria '- the message names it' --meta repo_ref=web
  fernery ticket new - < ticket.md
  fernery ticket new --id WEB-17 --importance 1 --title 'Fix the footer'")]
    New(Text),
    /// List tickets, newest first; of those that an agent works on, how much of the budget is spent and its last line
    #[command(after_help = "\
Examples:
  fernery ticket list
  fernery ticket list --status BLOCKED --azolla mec
  fernery ticket list --all --json")]
    List {
        /// Only in this state: NEW, TODO, IN_PROGRESS, BLOCKED or DONE
        #[arg(long, value_parser = status)]
        status: Option<ObjectiveStatus>,
        /// Only of this azolla
        #[arg(long, value_name = "ID")]
        azolla: Option<AzollaId>,
        #[command(flatten)]
        paging: Paging,
    },
    /// Show a ticket, all that happened to it, and what to do next
    #[command(after_help = "\
Example:
  fernery ticket show WEB-17")]
    Show {
        /// The ticket's id
        id: ObjectiveId,
    },
    /// Change a ticket; what an approval covers must be approved again
    #[command(after_help = "\
Without flags on a terminal, $EDITOR opens. What is not named stays; --unset takes metadata away.

Examples:
  fernery ticket edit WEB-17 --title 'Fix the footer on phones'
  fernery ticket edit WEB-17 --urgency 0
  fernery ticket edit WEB-17 - < ticket.md")]
    Edit {
        /// The ticket's id
        id: ObjectiveId,
        #[command(flatten)]
        text: EditText,
    },
    /// Approve exactly what is shown: work on it may start
    #[command(after_help = "\
It shows what is approved: the ticket, and what of the blueprint decides what runs and how it is judged. If any of that
changes before the approval arrives, the approval is refused.

Examples:
  fernery ticket approve WEB-17
  fernery ticket approve WEB-17 --yes
  fernery ticket approve WEB-17 --digest 3c5e…    exactly what was read elsewhere")]
    Approve {
        /// The ticket's id
        id: ObjectiveId,
        /// Approve what is there without being asked
        #[arg(long, conflicts_with = "digest")]
        yes: bool,
        /// Approve only if this is its digest
        #[arg(long, value_name = "SHA256")]
        digest: Option<Digest>,
        /// Why, for the record
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        note: Option<String>,
    },
    /// Put something in a ticket's way
    #[command(after_help = "\
Kinds: USER_INPUT, EXTERNAL_SYSTEM, DEPENDENCY_CHANGE, DESIGN_DECISION, ENVIRONMENT_ACCESS

Example:
  fernery ticket block WEB-17 --kind DESIGN_DECISION --description 'Which colour?'")]
    Block {
        /// The ticket's id
        id: ObjectiveId,
        /// What is in the way
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        description: String,
        /// What kind of thing
        #[arg(long, value_parser = kind, default_value = "USER_INPUT")]
        kind: BlockerKind,
        /// Its id within the ticket
        #[arg(long, value_name = "ID")]
        blocker: Option<BlockerId>,
    },
    /// Take blockers away; once none is open the ticket goes on
    #[command(after_help = "\
Examples:
  fernery ticket unblock WEB-17 --blocker b1
  fernery ticket unblock WEB-17 --all")]
    Unblock {
        /// The ticket's id
        id: ObjectiveId,
        /// These are out of the way
        #[arg(long = "blocker", value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
        blockers: Vec<BlockerId>,
        /// All are
        #[arg(long)]
        all: bool,
    },
    /// Say that you have looked at what the gates passed
    #[command(after_help = "\
Examples:
  fernery ticket confirm WEB-17 --note 'works on my phone'
  fernery ticket confirm WEB-17 --run 0190…    only if that is still its last run")]
    Confirm {
        /// The ticket's id
        id: ObjectiveId,
        /// The run that you have looked at [default: the last one]
        #[arg(long, value_name = "ID")]
        run: Option<RunId>,
        /// What you found
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        note: Option<String>,
    },
    /// Want a finished ticket done again
    #[command(after_help = "\
Example:
  fernery ticket reopen WEB-17 --note 'the footer still overlaps on small screens'")]
    Reopen {
        /// The ticket's id
        id: ObjectiveId,
        /// What is missing: the next executor reads it
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        note: String,
    },
    /// Not want a ticket any more; a run under way comes to its end
    #[command(after_help = "\
Example:
  fernery ticket cancel WEB-17 --note 'solved otherwise'")]
    Cancel {
        /// The ticket's id
        id: ObjectiveId,
        /// Why
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        note: Option<String>,
    },
}

/// What a ticket says.
#[derive(Clone, Debug, Args)]
pub(super) struct Text {
    /// `-`: read the ticket from stdin, as Markdown
    #[arg(value_name = "-", value_parser = ["-"])]
    stdin: Option<String>,
    /// What is wanted, in a line
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    title: Option<String>,
    /// How to tell that it is done
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    criteria: Option<String>,
    /// More that an executor should know: key=text or key:=json
    #[arg(long = "meta", value_name = "KEY=VALUE", value_parser = meta)]
    metadata: Vec<(String, Value)>,
    /// How much it matters: 0 (most) to 4 (least) [default: 2]
    #[arg(long, value_name = "0-4", value_parser = degree)]
    importance: Option<u8>,
    /// How soon: 0 (now) to 4 (whenever) [default: 2]
    #[arg(long, value_name = "0-4", value_parser = degree)]
    urgency: Option<u8>,
    /// Where it belongs [default: mec]
    #[arg(long, value_name = "ID")]
    azolla: Option<AzollaId>,
    /// Its id; one is made if you name none
    #[arg(long, value_name = "ID")]
    id: Option<ObjectiveId>,
}

/// What is to change.
#[derive(Clone, Debug, Args)]
pub(super) struct EditText {
    /// `-`: read the ticket from stdin, as Markdown
    #[arg(value_name = "-", value_parser = ["-"])]
    stdin: Option<String>,
    /// What is wanted, in a line
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    title: Option<String>,
    /// How to tell that it is done
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    criteria: Option<String>,
    /// Set metadata: key=text or key:=json
    #[arg(long = "meta", value_name = "KEY=VALUE", value_parser = meta)]
    metadata: Vec<(String, Value)>,
    /// Take metadata away
    #[arg(long, value_name = "KEY")]
    unset: Vec<String>,
    /// How much it matters: 0 (most) to 4 (least)
    #[arg(long, value_name = "0-4", value_parser = degree)]
    importance: Option<u8>,
    /// How soon: 0 (now) to 4 (whenever)
    #[arg(long, value_name = "0-4", value_parser = degree)]
    urgency: Option<u8>,
}

/// Small letters and hyphens mean the same here.
fn status(text: &str) -> Result<ObjectiveStatus, String> {
    text.to_ascii_uppercase().replace('-', "_").parse()
}

fn kind(text: &str) -> Result<BlockerKind, String> {
    text.to_ascii_uppercase().replace('-', "_").parse()
}

pub(super) fn path(id: &ObjectiveId, act: &str) -> String {
    format!("/v1/objectives/{id}{}{act}", if act.is_empty() { "" } else { "/" })
}

/// As [`detail`], without the documents that only whoever reads them needs.
pub(super) async fn brief(client: &Client, id: &ObjectiveId) -> Result<ObjectiveDetail, ClientError> {
    let query = Query::new().with("documents", Some(false));
    let reply: Reply<ObjectiveDetail> = client.get(&path(id, ""), &query, Duration::ZERO).await?;
    reply.read()
}

pub(super) async fn detail(client: &Client, id: &ObjectiveId) -> Result<Reply<ObjectiveDetail>, ClientError> {
    client.get(&path(id, ""), &Query::new(), Duration::ZERO).await
}

pub(super) async fn run(ticket: Ticket, client: &Client, screen: Screen) -> Outcome {
    match ticket {
        Ticket::New(text) => new(text, client, screen).await,
        Ticket::List { status, azolla, paging } => {
            let fetch = async |limit, cursor: Option<String>| {
                let query = Query::new().with("status", status).with("azolla_id", azolla.as_ref());
                let query = query.with("limit", Some(limit)).with("cursor", cursor);
                client.get("/v1/objectives", &query, Duration::ZERO).await
            };
            pages::list(screen, &TICKETS, &paging, fetch).await
        }
        Ticket::Show { id } => {
            let reply = detail(client, &id).await?;
            if screen.json {
                screen.json_body(&reply.body)
            } else {
                ticket_show::show(screen, &reply.read()?)
            }
        }
        Ticket::Edit { id, text } => edit(&id, text, client, screen).await,
        Ticket::Approve { id, yes, digest, note } => {
            ticket_approve::approve(&id, yes, digest, note, client, screen).await
        }
        Ticket::Block { id, description, kind, blocker } => {
            let body = BlockRequest { blocker_id: blocker, kind, description, record_id: record() };
            act(&id, "block", &body, client, screen).await
        }
        Ticket::Unblock { id, blockers, all } => {
            let body = UnblockRequest { blockers, all, record_id: record() };
            act(&id, "unblock", &body, client, screen).await
        }
        Ticket::Confirm { id, run, note } => ticket_act::confirm(&id, run, note, client, screen).await,
        Ticket::Reopen { id, note } => ticket_act::reopen(&id, note, client, screen).await,
        Ticket::Cancel { id, note } => {
            act(&id, "cancel", &NoteRequest { note, record_id: record() }, client, screen).await
        }
    }
}

const TICKETS: Listing<ObjectivePage> = Listing {
    key: "objectives",
    heads: &["TICKET", "STATUS", "AGE", "TITLE", "NOW"],
    rows: |page| {
        let now = door::wall_clock();
        let row = |view: ObjectiveView| {
            let objective = view.objective;
            let word = objective.status.as_str();
            let status = match &view.waiting {
                _ if view.unconfirmed => format!("{word} (confirm?)").into(),
                Some(waiting) if waiting.code == "azolla_not_hosted" => format!("{word} (not hosted)").into(),
                _ => Cell::state(word),
            };
            let age = stream::age(now.since(objective.created_at));
            let now = match &view.progress {
                Some(progress) => ticket_show::doing(progress),
                None => ticket_show::kept_by(&objective),
            };
            vec![objective.objective_id.into(), status, age.into(), objective.title.into(), now.into()]
        };
        page.objectives.into_iter().map(row).collect()
    },
};

/// What stdin or the editor says, unless flags say it all.
fn written(stdin: bool, flags: bool, before: Option<&str>) -> Outcome<Written> {
    let text = if stdin {
        let bytes_max = limits::CRITERIA_BYTES_MAX + limits::METADATA_BYTES_MAX;
        input::read_text(Path::new("-"), bytes_max)?
    } else if flags {
        return Ok(Written::default());
    } else if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        ticket_text::from_editor(before)?
    } else {
        return Err(Failure::usage("say what it is: --title TEXT, or - and the ticket on stdin"));
    };
    ticket_text::parse(&text).map_err(|why| Failure::usage(format!("the ticket cannot be read: {why}")))
}

async fn new(text: Text, client: &Client, screen: Screen) -> Outcome {
    let written = written(text.stdin.is_some(), text.title.is_some(), None)?;
    let title = text.title.or(written.title).filter(|title| !title.trim().is_empty());
    let title = title
        .ok_or_else(|| Failure::usage("a ticket needs a title: --title TEXT, or a first `# heading`"))?;
    let mut metadata = written.metadata;
    metadata.extend(text.metadata);
    let request = NewObjectiveRequest {
        objective_id: text.id.or(written.id),
        azolla_id: text.azolla.or(written.azolla).unwrap_or_else(|| AzollaId::stored("mec")),
        title,
        acceptance_criteria: text.criteria.or(written.criteria).unwrap_or_default(),
        importance: text.importance.or(written.importance).unwrap_or(2),
        urgency: text.urgency.or(written.urgency).unwrap_or(2),
        metadata,
    };
    let reply: Reply<ObjectiveView> = client.post("/v1/objectives", &request, Duration::ZERO).await?;
    if screen.json {
        return screen.json_body(&reply.body);
    }
    let objective = reply.read()?.objective;
    let id = objective.objective_id;
    screen.line(id.as_str())?;
    if objective.status == ObjectiveStatus::New {
        remark(&format!("it is NEW; nothing runs before: fernery ticket approve {id}"));
    }
    Ok(())
}

async fn edit(id: &ObjectiveId, text: EditText, client: &Client, screen: Screen) -> Outcome {
    let flags = text.title.is_some()
        || text.criteria.is_some()
        || text.importance.is_some()
        || text.urgency.is_some()
        || !text.metadata.is_empty()
        || !text.unset.is_empty();
    let before = brief(client, id).await?.standing.objective;
    let written = written(text.stdin.is_some(), flags, Some(&ticket_text::as_text(&before)))?;
    let mut metadata = before.metadata.clone();
    metadata.extend(written.metadata);
    metadata.extend(text.metadata);
    metadata.retain(|key, _| !text.unset.contains(key));
    let request = EditObjectiveRequest {
        title: text.title.or(written.title),
        acceptance_criteria: text.criteria.or(written.criteria),
        importance: text.importance.or(written.importance),
        urgency: text.urgency.or(written.urgency),
        metadata: (metadata != before.metadata).then_some(metadata),
    };
    left_at(&client.patch(&path(id, ""), &request).await?, screen)
}

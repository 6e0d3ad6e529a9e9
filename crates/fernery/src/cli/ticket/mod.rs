//! `fernery ticket`: objectives, from the draft to the confirmation.

pub(super) mod act;
pub(super) mod approve;
pub(super) mod show;
pub(super) mod text;

use super::failure::{Failure, Outcome};
use super::input;
use super::job::stream;
use super::pages::{self, Listing, Paging};
use super::screen::{Cell, Screen, remark};
use act::{act, left_at, record};
use clap::{Args, Subcommand};
use fernery_client::client::{Query, Reply};
use fernery_client::wire::{
    BlockRequest, EditObjectiveRequest, NewBlockerRequest, NewObjectiveRequest, NoteRequest, ObjectiveDetail,
    ObjectivePage, ObjectiveView, UnblockRequest,
};
use fernery_client::{Client, ClientError};
use fernery_core::artifact::{AzollaId, BlockerId, BlockerKind, ObjectiveId, ObjectiveStatus, RunId};
use fernery_core::canonical::Digest;
use fernery_core::limits;
use fernery_core::pipeline::waiting::Waiting;
use fernery_engine::door;
use serde_json::Value;
use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;
use text::{Written, blocker, degree, kind, meta};

#[derive(Debug, Subcommand)]
pub(super) enum Ticket {
    /// Create a ticket; nothing runs before it is approved
    #[command(after_help = "\
Without flags on a terminal, $EDITOR opens. The form is Markdown: `key: value` lines between --- (title, importance, \
urgency, azolla, id, and blocked_on once per blocker; other keys are metadata), the first `# heading` is the title, \
the rest the acceptance criteria. A ticket with an open blocker can be approved: it becomes BLOCKED, and continues \
after `ticket unblock`.

Examples:
  fernery ticket new --title 'Name the field that is wrong' \\
    --criteria '- the message names it' --meta repo_ref=web
  fernery ticket new - < ticket.md
  fernery ticket new --id WEB-17 --importance 1 --title 'Fix the footer'
  fernery ticket new --title 'Paint it' \\
    --blocked-on 'DESIGN_DECISION: which colour?'")]
    New(Text),
    /// List tickets, newest first; for those in progress, with the spent budget and the agent's last line
    #[command(after_help = "\
Examples:
  fernery ticket list
  fernery ticket list --status BLOCKED --azolla mec
  fernery ticket list --all --json")]
    List {
        /// Only with this status: NEW, TODO, IN_PROGRESS, BLOCKED or DONE
        #[arg(long, value_parser = status)]
        status: Option<ObjectiveStatus>,
        /// Only from this azolla
        #[arg(long, value_name = "ID")]
        azolla: Option<AzollaId>,
        #[command(flatten)]
        paging: Paging,
    },
    /// Show a ticket, its history and what to do next
    #[command(after_help = "\
Example:
  fernery ticket show WEB-17")]
    Show {
        /// The ticket's id
        id: ObjectiveId,
    },
    /// Edit a ticket; a change to what the approval covers needs a new approval
    #[command(after_help = "\
Without flags on a terminal, $EDITOR opens. Fields that are not named stay unchanged; --unset removes metadata.

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
    /// Approve a ticket exactly as shown, so that work can start
    #[command(after_help = "\
It shows what the approval covers: the ticket, and the parts of the blueprint that decide what runs and how it is \
judged. If any of that changes before the approval arrives, the approval is refused.

Examples:
  fernery ticket approve WEB-17
  fernery ticket approve WEB-17 --yes
  fernery ticket approve WEB-17 --digest 3c5e…    what you read elsewhere")]
    Approve {
        /// The ticket's id
        id: ObjectiveId,
        /// Approve without asking
        #[arg(long, conflicts_with = "digest")]
        yes: bool,
        /// Approve only if the digest is this one
        #[arg(long, value_name = "SHA256")]
        digest: Option<Digest>,
        /// Why, for the record
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        note: Option<String>,
    },
    /// Add a blocker to a ticket
    #[command(after_help = "\
Kinds: USER_INPUT, EXTERNAL_SYSTEM, DEPENDENCY_CHANGE, DESIGN_DECISION, ENVIRONMENT_ACCESS

Example:
  fernery ticket block WEB-17 --kind DESIGN_DECISION --description 'Colour?'")]
    Block {
        /// The ticket's id
        id: ObjectiveId,
        /// What blocks the ticket
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        description: String,
        /// The kind of blocker
        #[arg(long, value_parser = kind, default_value = "USER_INPUT")]
        kind: BlockerKind,
        /// The blocker's id within the ticket
        #[arg(long, value_name = "ID")]
        blocker: Option<BlockerId>,
    },
    /// Resolve blockers; when none is open, the ticket continues
    #[command(after_help = "\
Examples:
  fernery ticket unblock WEB-17 --blocker b1
  fernery ticket unblock WEB-17 --all")]
    Unblock {
        /// The ticket's id
        id: ObjectiveId,
        /// Resolve these blockers
        #[arg(long = "blocker", value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
        blockers: Vec<BlockerId>,
        /// Resolve all blockers
        #[arg(long)]
        all: bool,
    },
    /// Confirm that you have checked the result that passed the gates
    #[command(after_help = "\
Examples:
  fernery ticket confirm WEB-17 --note 'works on my phone'
  fernery ticket confirm WEB-17 --run 0190…    only if this is its last run")]
    Confirm {
        /// The ticket's id
        id: ObjectiveId,
        /// The run that you have checked [default: the last one]
        #[arg(long, value_name = "ID")]
        run: Option<RunId>,
        /// What you found
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        note: Option<String>,
    },
    /// Reopen a finished ticket: it is worked on again
    #[command(after_help = "\
Example:
  fernery ticket reopen WEB-17 --note 'the footer overlaps on small screens'")]
    Reopen {
        /// The ticket's id
        id: ObjectiveId,
        /// What is missing: the next executor reads it
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        note: String,
    },
    /// Cancel a ticket; a run in progress is stopped
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
    /// The title: what is wanted, in one line
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    title: Option<String>,
    /// The acceptance criteria: how to see that it is done
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    criteria: Option<String>,
    /// Metadata for the executor: key=text or key:=json
    #[arg(long = "meta", value_name = "KEY=VALUE", value_parser = meta)]
    metadata: Vec<(String, Value)>,
    /// Importance: 0 (most) to 4 (least) [default: 2]
    #[arg(long, value_name = "0-4", value_parser = degree)]
    importance: Option<u8>,
    /// Urgency: 0 (now) to 4 (some day) [default: 2]
    #[arg(long, value_name = "0-4", value_parser = degree)]
    urgency: Option<u8>,
    /// The azolla (project) of the ticket [default: mec]
    #[arg(long, value_name = "ID")]
    azolla: Option<AzollaId>,
    /// The ticket's id [default: a new one]
    #[arg(long, value_name = "ID")]
    id: Option<ObjectiveId>,
    /// A blocker to resolve before the work starts; repeatable. KIND as for `ticket block` [default: USER_INPUT]
    #[arg(long = "blocked-on", value_name = "[KIND:]TEXT", value_parser = blocker)]
    blocked_on: Vec<NewBlockerRequest>,
}

/// What is to change.
#[derive(Clone, Debug, Args)]
pub(super) struct EditText {
    /// `-`: read the ticket from stdin, as Markdown
    #[arg(value_name = "-", value_parser = ["-"])]
    stdin: Option<String>,
    /// The title: what is wanted, in one line
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    title: Option<String>,
    /// The acceptance criteria: how to see that it is done
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    criteria: Option<String>,
    /// Set metadata: key=text or key:=json
    #[arg(long = "meta", value_name = "KEY=VALUE", value_parser = meta)]
    metadata: Vec<(String, Value)>,
    /// Remove metadata
    #[arg(long, value_name = "KEY")]
    unset: Vec<String>,
    /// Importance: 0 (most) to 4 (least)
    #[arg(long, value_name = "0-4", value_parser = degree)]
    importance: Option<u8>,
    /// Urgency: 0 (now) to 4 (some day)
    #[arg(long, value_name = "0-4", value_parser = degree)]
    urgency: Option<u8>,
}

/// Lower case and hyphens are accepted too.
fn status(text: &str) -> Result<ObjectiveStatus, String> {
    text.to_ascii_uppercase().replace('-', "_").parse()
}

pub(super) fn path(id: &ObjectiveId, act: &str) -> String {
    format!("/v1/objectives/{id}{}{act}", if act.is_empty() { "" } else { "/" })
}

/// Like [`detail`], without the large documents.
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
            if screen.json { screen.json_body(&reply.body) } else { show::show(screen, &reply.read()?) }
        }
        Ticket::Edit { id, text } => edit(&id, text, client, screen).await,
        Ticket::Approve { id, yes, digest, note } => {
            approve::approve(&id, yes, digest, note, client, screen).await
        }
        Ticket::Block { id, description, kind, blocker } => {
            let body = BlockRequest { blocker_id: blocker, kind, description, record_id: record() };
            act(&id, "block", &body, client, screen).await
        }
        Ticket::Unblock { id, blockers, all } => {
            let body = UnblockRequest { blockers, all, record_id: record() };
            act::unblock(&id, &body, client, screen).await
        }
        Ticket::Confirm { id, run, note } => act::confirm(&id, run, note, client, screen).await,
        Ticket::Reopen { id, note } => act::reopen(&id, note, client, screen).await,
        Ticket::Cancel { id, note } => {
            act(&id, "cancel", &NoteRequest { note, record_id: record() }, client, screen).await
        }
    }
}

const TICKETS: Listing<ObjectivePage> = Listing {
    key: "objectives",
    heads: &["TICKET", "STATUS", "AGE", "TITLE…", "NOW"],
    rows: |page| {
        let now = door::wall_clock();
        let row = |view: ObjectiveView| {
            let objective = view.objective;
            let word = objective.status.as_str();
            let status = match &view.waiting {
                _ if view.unconfirmed => format!("{word} (confirm?)").into(),
                Some(waiting) if waiting.code == Waiting::NOT_HOSTED => format!("{word} (not hosted)").into(),
                _ => Cell::state(word),
            };
            let age = stream::age(now.since(objective.created_at));
            let now = match &view.progress {
                Some(progress) => show::doing(progress),
                None => show::kept_by(&objective),
            };
            vec![objective.objective_id.into(), status, age.into(), objective.title.into(), now.into()]
        };
        page.objectives.into_iter().map(row).collect()
    },
};

/// The text from stdin or the editor, unless flags give everything.
fn written(stdin: bool, flags: bool, before: Option<&str>) -> Outcome<Written> {
    let text = if stdin {
        let bytes_max = limits::CRITERIA_BYTES_MAX + limits::METADATA_BYTES_MAX;
        input::read_text(Path::new("-"), bytes_max)?
    } else if flags {
        return Ok(Written::default());
    } else if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        text::from_editor(before)?
    } else {
        return Err(Failure::usage("give a title: --title TEXT, or - and the ticket on stdin"));
    };
    text::parse(&text).map_err(|why| Failure::usage(format!("the ticket cannot be read: {why}")))
}

async fn new(text: Text, client: &Client, screen: Screen) -> Outcome {
    let written = written(text.stdin.is_some(), text.title.is_some(), None)?;
    let title = text.title.or(written.title).filter(|title| !title.trim().is_empty());
    let title = title
        .ok_or_else(|| Failure::usage("a ticket needs a title: --title TEXT, or a first `# heading`"))?;
    let mut metadata = written.metadata;
    metadata.extend(text.metadata);
    let mut blocked_on = written.blocked_on;
    blocked_on.extend(text.blocked_on);
    let request = NewObjectiveRequest {
        objective_id: text.id.or(written.id),
        azolla_id: text.azolla.or(written.azolla).unwrap_or_else(|| AzollaId::stored("mec")),
        title,
        acceptance_criteria: text.criteria.or(written.criteria).unwrap_or_default(),
        importance: text.importance.or(written.importance).unwrap_or(2),
        urgency: text.urgency.or(written.urgency).unwrap_or(2),
        metadata,
        blocked_on,
    };
    let reply: Reply<ObjectiveView> = client.post("/v1/objectives", &request, Duration::ZERO).await?;
    if screen.json {
        return screen.json_body(&reply.body);
    }
    let objective = reply.read()?.objective;
    let id = objective.objective_id;
    screen.line(id.as_str())?;
    if objective.status == ObjectiveStatus::New {
        remark(&format!("it is NEW; to let it run: fernery ticket approve {id}"));
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
    let before = brief(client, id).await?.view.objective;
    let written = written(text.stdin.is_some(), flags, Some(&text::as_text(&before)))?;
    if !written.blocked_on.is_empty() {
        return Err(Failure::usage(
            "blocked_on works only for a new ticket; use `fernery ticket block` and `fernery ticket unblock` here",
        ));
    }
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

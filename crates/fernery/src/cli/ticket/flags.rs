//! The commands of `fernery ticket` and their flags, as people type and read them.

use super::text::{blocker, degree, kind, meta};
use crate::cli::ids;
use crate::cli::pages::Paging;
use clap::{Args, Subcommand};
use fernery_client::wire::NewBlockerRequest;
use fernery_core::artifact::{AzollaId, BlockerId, BlockerKind, ObjectiveId, RunId};
use fernery_core::canonical::Digest;
use fernery_core::inbox::label::Label;
use fernery_core::pipeline::possible::SeenStatus;
use serde_json::Value;
use std::path::PathBuf;
use std::str::FromStr;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Ticket {
    /// Create a ticket; nothing runs before it is approved
    #[command(after_help = "\
Without flags on a terminal, $EDITOR opens, and a text that is refused is kept in a file. The form is Markdown: `key: value` lines between --- (title, importance, \
urgency, due, azolla, id, and blocked_on once per blocker; other keys are metadata), the first `# heading` is the title, \
the rest the acceptance criteria. A ticket with an open blocker can be approved: it becomes BLOCKED, and continues \
after `ticket unblock`. Where there are several repositories, the one of the current folder is meant; --meta \
repo_ref=NAME names another.

Examples:
  fernery ticket new --title 'Name the field that is wrong' \\
    --criteria '- the message names it'
  fernery ticket new --file ticket.md
  fernery ticket new --id WEB-17 --importance 1 --title 'Fix the footer'
  fernery ticket new --title 'Pay the rent' --due friday
  fernery ticket new --title 'Paint it' \\
    --blocked-on 'DESIGN_DECISION: which colour?'
  fernery ticket new --title 'Paint the door too' --after WEB-17")]
    New(Text),
    /// List tickets, newest first, each with what it does or waits for now
    #[command(after_help = "\
Examples:
  fernery ticket list
  fernery ticket list --status BLOCKED --azolla mec
  fernery ticket list --sort due
  fernery ticket list --label home --search plants
  fernery ticket list --all --json         also cancelled and snoozed ones

A search and a label look through the newest tickets first, 5000 at a time; --sort due and --sort importance are of open \
tickets, at most 2000 of each azolla, the most important ones, then of those among the newest 2000 that are DONE or cancelled.")]
    List {
        /// Only with this status: NEW, TODO, IN_PROGRESS, BLOCKED, DONE or CANCELLED
        #[arg(long, value_parser = status)]
        status: Option<SeenStatus>,
        /// Only from this azolla
        #[arg(long, value_name = "ID")]
        azolla: Option<AzollaId>,
        /// Only with this label
        #[arg(long, value_name = "NAME", value_parser = Label::from_str)]
        label: Option<Label>,
        /// Only with all these words in the title or the acceptance criteria
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        search: Option<String>,
        /// The order: age (newest first), due (earliest first) or importance
        #[arg(long, value_name = "ORDER", value_parser = ["age", "due", "importance"])]
        sort: Option<String>,
        #[command(flatten)]
        paging: Paging,
    },
    /// Show a ticket, its history and what to do next
    #[command(after_help = "\
With --follow the exit code tells how it ended: 0 DONE, 1 it stopped otherwise, 4 nothing was approved.

Examples:
  fernery ticket show WEB-17
  fernery ticket show WEB-17 -f    follow its run until it stops")]
    Show {
        /// The ticket's id
        #[arg(value_parser = ids::ticket_name)]
        id: ObjectiveId,
        /// Follow it live, step by step, until it stops
        #[arg(long, short)]
        follow: bool,
    },
    /// Edit a ticket; if it was approved, it may need a new approval
    #[command(after_help = "\
Without flags on a terminal, $EDITOR opens. Fields that are not named stay unchanged; --unset removes metadata. A ticket waits for \
another one only from its beginning (`ticket new --after`).

Examples:
  fernery ticket edit WEB-17 --title 'Fix the footer on phones'
  fernery ticket edit WEB-17 --urgency 0
  fernery ticket edit WEB-17 --due 'next monday 9:00'
  fernery ticket edit WEB-17 - < ticket.md")]
    Edit {
        /// The ticket's id
        #[arg(value_parser = ids::ticket_name)]
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
        #[arg(value_parser = ids::ticket_name)]
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
        /// Start from the base branch, not from what the last attempt left
        #[arg(long)]
        from_scratch: bool,
    },
    /// Answer the question of an agent; the ticket continues
    #[command(after_help = "\
It shows what is approved by that: the ticket, with the question and your answer. The next attempt starts from what the \
last one left, and is told both.

Examples:
  fernery ticket answer WEB-17 'the blue one'
  fernery ticket answer WEB-17 --yes - < answer.txt")]
    Answer {
        /// The ticket's id
        id: ObjectiveId,
        /// The answer; `-`: read it from stdin
        #[arg(value_name = "TEXT", allow_hyphen_values = true)]
        answer: String,
        /// Continue without asking
        #[arg(long)]
        yes: bool,
    },
    /// Add a blocker to a ticket
    #[command(after_help = "\
Kinds: USER_INPUT, EXTERNAL_SYSTEM, DEPENDENCY_CHANGE, DESIGN_DECISION, ENVIRONMENT_ACCESS

Example:
  fernery ticket block WEB-17 --kind DESIGN_DECISION --description 'Colour?'")]
    Block {
        /// The ticket's id
        #[arg(value_parser = ids::ticket_name)]
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
Without a flag it resolves the one open blocker; if several are open, say which. If an agent has asked a question, answer it \
with `ticket answer`: unblocked, the next agent starts without an answer.

Examples:
  fernery ticket unblock WEB-17
  fernery ticket unblock WEB-17 --blocker b1
  fernery ticket unblock WEB-17 --all")]
    Unblock {
        /// The ticket's id
        #[arg(value_parser = ids::ticket_name)]
        id: ObjectiveId,
        /// Resolve these blockers
        #[arg(long = "blocker", value_name = "ID", conflicts_with = "all")]
        blockers: Vec<BlockerId>,
        /// Resolve all blockers
        #[arg(long)]
        all: bool,
        /// Go on without an answer to the agent's question
        #[arg(long)]
        yes: bool,
    },
    /// Confirm a result that passed the gates: you have checked it
    #[command(after_help = "\
Examples:
  fernery ticket confirm WEB-17 --note 'works on my phone'
  fernery ticket confirm WEB-17 --run 0190…    only if this is its last run")]
    Confirm {
        /// The ticket's id
        #[arg(value_parser = ids::ticket_name)]
        id: ObjectiveId,
        /// The run that you have checked [default: the last one]
        #[arg(long, value_name = "ID")]
        run: Option<RunId>,
        /// What you found
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        note: Option<String>,
    },
    /// Let a finished ticket be worked on again, starting from its last patch
    #[command(after_help = "\
Examples:
  fernery ticket reopen WEB-17 --note 'the footer overlaps on small screens'
  fernery ticket reopen WEB-17 --from-scratch --note 'use the grid instead'
  fernery ticket reopen WEB-17 --with-comments    what reviewers say of it")]
    Reopen {
        /// The ticket's id
        #[arg(value_parser = ids::ticket_name)]
        id: ObjectiveId,
        /// What is missing: the next executor reads it
        #[arg(
            long,
            value_name = "TEXT",
            allow_hyphen_values = true,
            required_unless_present = "with_comments"
        )]
        note: Option<String>,
        /// Add the comments on its last run to the note
        #[arg(long)]
        with_comments: bool,
        /// Start from the base branch, not from the last patch
        #[arg(long)]
        from_scratch: bool,
        /// Do not ask if the ticket or its blueprint has changed since it was last approved
        #[arg(long)]
        yes: bool,
    },
    /// Merge the patch of a finished ticket into its base branch
    #[command(after_help = "\
It shows the run, the patch, and the base branch with its tip, and confirms a run that nobody has confirmed yet. Then, in a \
clean clone, the patch is merged with the tip, and the gates run again on the merged files. If that passes, the branch moves to \
the result, unless somebody else has moved it meanwhile. A working tree that has the branch checked out follows, unless it \
has changes in the same files. Nothing is ever forced.

Examples:
  fernery ticket merge WEB-17
  fernery ticket merge WEB-17 --yes")]
    Merge {
        /// The ticket's id
        #[arg(value_parser = ids::ticket_name)]
        id: ObjectiveId,
        /// Merge without asking
        #[arg(long)]
        yes: bool,
        /// Why, for the record
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        note: Option<String>,
    },
    /// Cancel a ticket; a run in progress is stopped
    #[command(after_help = "\
Everything can be cancelled that is not finished: also a ticket that is BLOCKED, or DONE and not confirmed or not merged. `ticket \
list --all` still shows it, and `ticket unblock` takes it up again.

Example:
  fernery ticket cancel WEB-17 --note 'solved otherwise'")]
    Cancel {
        /// The ticket's id
        #[arg(value_parser = ids::ticket_name)]
        id: ObjectiveId,
        /// Why
        #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
        note: Option<String>,
    },
}

/// What a ticket says.
#[derive(Clone, Debug, Args)]
pub(in crate::cli) struct Text {
    /// `-`: read the ticket from stdin, as Markdown
    #[arg(value_name = "-", value_parser = ["-"])]
    pub(super) stdin: Option<String>,
    /// Read the ticket from this file, as Markdown
    #[arg(long, value_name = "FILE", conflicts_with = "stdin")]
    pub(super) file: Option<PathBuf>,
    /// The title: what is wanted, in one line
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(super) title: Option<String>,
    /// The acceptance criteria: how to see that it is done
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(super) criteria: Option<String>,
    /// Metadata for the executor: key=text or key:=json
    #[arg(long = "meta", value_name = "KEY=VALUE", value_parser = meta)]
    pub(super) metadata: Vec<(String, Value)>,
    /// Importance: 0 (most) to 4 (least) [default: 2]
    #[arg(long, value_name = "0-4", value_parser = degree)]
    pub(super) importance: Option<u8>,
    /// Urgency: 0 (now) to 4 (some day) [default: 2]
    #[arg(long, value_name = "0-4", value_parser = degree)]
    pub(super) urgency: Option<u8>,
    /// When it is due: friday, tomorrow 17:00, in 2 weeks, 2026-12-01. Days are those of the inbox's time zone
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    pub(super) due: Option<String>,
    /// The azolla (project) of the ticket [default: the only one that takes tickets]
    #[arg(long, value_name = "ID")]
    pub(super) azolla: Option<AzollaId>,
    /// The ticket's id [default: a new one]
    #[arg(long, value_name = "ID")]
    pub(super) id: Option<ObjectiveId>,
    /// A label; repeatable. `+label` in the title is one too
    #[arg(long = "label", value_name = "NAME", value_parser = Label::from_str)]
    pub(super) labels: Vec<Label>,
    /// A blocker to resolve before the work starts; repeatable. KIND as for `ticket block` [default: USER_INPUT]
    #[arg(long = "blocked-on", value_name = "[KIND:]TEXT", value_parser = blocker)]
    pub(super) blocked_on: Vec<NewBlockerRequest>,
    /// Wait for another ticket: this one goes on by itself when the other is confirmed or has landed; repeatable
    #[arg(long, value_name = "ID", value_parser = ids::ticket_name)]
    pub(super) after: Vec<ObjectiveId>,
}

/// What is to change.
#[derive(Clone, Debug, Args)]
pub(in crate::cli) struct EditText {
    /// `-`: read the ticket from stdin, as Markdown
    #[arg(value_name = "-", value_parser = ["-"])]
    pub(super) stdin: Option<String>,
    /// Read the ticket from this file, as Markdown
    #[arg(long, value_name = "FILE", conflicts_with = "stdin")]
    pub(super) file: Option<PathBuf>,
    /// The title: what is wanted, in one line
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(super) title: Option<String>,
    /// The acceptance criteria: how to see that it is done
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(super) criteria: Option<String>,
    /// Set metadata: key=text or key:=json
    #[arg(long = "meta", value_name = "KEY=VALUE", value_parser = meta)]
    pub(super) metadata: Vec<(String, Value)>,
    /// Remove metadata
    #[arg(long, value_name = "KEY")]
    pub(super) unset: Vec<String>,
    /// Add a label; repeatable. `+label` in a new title is one too. To remove all: --unset labels
    #[arg(long = "label", value_name = "NAME", value_parser = Label::from_str)]
    pub(super) labels: Vec<Label>,
    /// Importance: 0 (most) to 4 (least)
    #[arg(long, value_name = "0-4", value_parser = degree)]
    pub(super) importance: Option<u8>,
    /// Urgency: 0 (now) to 4 (some day)
    #[arg(long, value_name = "0-4", value_parser = degree)]
    pub(super) urgency: Option<u8>,
    /// When it is due: friday, tomorrow 17:00, in 2 weeks, 2026-12-01. Days are those of the inbox's time zone; --unset due_at
    /// takes it away
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    pub(super) due: Option<String>,
    /// Only a new ticket can be told to wait for another one
    #[arg(long, hide = true, value_parser = after_is_for_new)]
    pub(super) after: Option<ObjectiveId>,
}

/// Two tickets can never wait for each other, because only a new one can be told to wait.
fn after_is_for_new(other: &str) -> Result<ObjectiveId, String> {
    Err(format!(
        "only `ticket new` can make a ticket wait for another one; to stop this one until you resolve it: fernery ticket block ID \
         --kind DEPENDENCY_CHANGE --description 'after {other}'"
    ))
}

/// Lower case and hyphens are accepted too.
fn status(text: &str) -> Result<SeenStatus, String> {
    text.to_ascii_uppercase().replace('-', "_").parse()
}

impl Ticket {
    /// The ticket that it is about; a new one has no id yet.
    pub(super) fn named(&mut self) -> Option<&mut ObjectiveId> {
        match self {
            Self::New(_) | Self::List { .. } => None,
            Self::Show { id, .. }
            | Self::Answer { id, .. }
            | Self::Edit { id, .. }
            | Self::Approve { id, .. }
            | Self::Block { id, .. }
            | Self::Unblock { id, .. }
            | Self::Confirm { id, .. }
            | Self::Reopen { id, .. }
            | Self::Merge { id, .. }
            | Self::Cancel { id, .. } => Some(id),
        }
    }
}

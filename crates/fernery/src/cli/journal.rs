//! `fernery journal` and `fernery verify`: who did what, and whether the record is unchanged.

use super::Global;
use super::failure::{Failure, Outcome};
use super::pages::{self, Listing, Paging};
use super::screen::{Cell, Screen, counted, plain};
use crate::block_on::block_on;
use crate::workers::HEAD_FILE;
use clap::{Args, Subcommand};
use fernery_client::Client;
use fernery_client::client::{Query, Reply};
use fernery_client::wire::{JournalEntry, JournalHead, JournalPage, JournalVerdict};
use fernery_core::Timestamp;
use fernery_core::journal::Act;
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// How long the server may walk the chain.
const WALK_WITHIN: Duration = Duration::from_secs(600);

#[derive(Debug, Subcommand)]
pub(super) enum Journal {
    /// List who did what, when and why, newest first
    #[command(after_help = "\
Examples:
  fernery journal list
  fernery journal list --subject WEB-17
  fernery journal list --act approve --actor anna --since 2026-11-17T00:00:00Z
  fernery journal list --all --json")]
    List {
        /// Only entries with this act, as the list shows it
        #[arg(long, value_name = "ACT")]
        act: Option<Act>,
        /// Only about this: the id of a ticket, a candidate, an azolla
        #[arg(long, value_name = "ID")]
        subject: Option<String>,
        /// Only by those whose name has this part
        #[arg(long, value_name = "NAME")]
        actor: Option<String>,
        /// Only from this time on, like 2026-11-17T00:00:00Z
        #[arg(long, value_name = "TIME")]
        since: Option<Timestamp>,
        /// Only before this time
        #[arg(long, value_name = "TIME")]
        until: Option<Timestamp>,
        #[command(flatten)]
        paging: Paging,
    },
}

/// Check that nobody has changed the journal
///
/// Checks the chain of seals over all entries. On the server's machine it also compares the chain with the head that
/// the server keeps in a file, and so detects a chain that was truncated or rebuilt.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: 0 intact, 1 not intact; the first fault is named.

Examples:
  fernery verify
  fernery verify --json")]
pub(super) struct Verify {}

const ENTRIES: Listing<JournalPage> = Listing {
    key: "entries",
    heads: &["AT", "WHO…", "ACT…", "SUBJECT…"],
    rows: |page| {
        let row = |e: JournalEntry| -> Vec<Cell> {
            vec![e.created_at.into(), e.actor.into(), e.act.into(), e.subject.into()]
        };
        page.entries.into_iter().map(row).collect()
    },
};

pub(super) async fn run(journal: Journal, client: &Client, screen: Screen) -> Outcome {
    let Journal::List { act, subject, actor, since, until, paging } = journal;
    let fetch = async |limit, cursor: Option<String>| {
        let query = Query::new().with("limit", Some(limit)).with("cursor", cursor);
        let query = query.with("act", act).with("subject", subject.as_ref()).with("actor", actor.as_ref());
        let query = query.with("since", since).with("until", until);
        client.get("/v1/journal", &query, Duration::ZERO).await
    };
    pages::list(screen, &ENTRIES, &paging, fetch).await
}

pub(super) fn verify(_: &Verify, global: &Global, screen: Screen) -> Outcome {
    let server = global.server()?;
    // Read before the chain is walked: the chain only grows, so the saved head must still be in it.
    let kept = server.found_in.as_deref().map(kept_head).transpose()?.flatten();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let walk = async {
        let query = Query::new().with("place", kept.as_ref().map(|head| head.place));
        let reply: Reply<JournalVerdict> =
            server.client.get("/v1/journal/verify", &query, WALK_WITHIN).await.map_err(Failure::from)?;
        Ok(reply.read()?)
    };
    let verdict = block_on(&runtime, walk).map_err(|failure: Failure| server.explain_refusal(failure))?;
    let fault = verdict.fault.clone().or_else(|| against(kept.as_ref(), &verdict));
    if screen.json {
        let answer = json!({ "entries": verdict.entries, "head": verdict.head, "fault": fault,
            "compared_with_file": kept.is_some() });
        screen.line(&answer.to_string())?;
        return if fault.is_some() { Err(Failure::told()) } else { Ok(()) };
    }
    match fault {
        Some(fault) => {
            Err(Failure::failed("journal", format!("the journal is not intact: {}", plain(&fault))))
        }
        None => {
            let with = if kept.is_some() { ", and it matches the saved head" } else { "" };
            screen.say(&format!("the journal is intact: {}{with}", counted(verdict.entries, "entry")))
        }
    }
}

fn kept_head(data: &Path) -> Outcome<Option<JournalHead>> {
    let path = data.join(HEAD_FILE);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(Failure::failed("journal", format!("cannot read {}: {error}", path.display())));
        }
    };
    let head = serde_json::from_str(&text);
    head.map(Some)
        .map_err(|e| Failure::failed("journal", format!("{} is not a valid head file: {e}", path.display())))
}

/// The conflict with the saved head, if any.
fn against(kept: Option<&JournalHead>, verdict: &JournalVerdict) -> Option<String> {
    let kept = kept.filter(|kept| kept.place > 0)?;
    match &verdict.at {
        None => Some(format!(
            "the chain was truncated: {} sealed, {} exist",
            counted(kept.place, "entry"),
            verdict.head.as_ref().map_or(0, |head| head.place)
        )),
        Some(at) if at.hash != kept.hash => {
            Some(format!("seal {} differs from the saved one: the chain was rebuilt", kept.place))
        }
        Some(_) => None,
    }
}

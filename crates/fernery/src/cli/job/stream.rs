//! `fernery stream`: where jobs wait.

use crate::cli::failure::Outcome;
use crate::cli::pages::{self, Listing, Paging};
use crate::cli::screen::{Cell, Screen};
use clap::Subcommand;
use fernery_client::Client;
use fernery_client::client::Query;
use fernery_client::wire::{StreamDetail, StreamList};
use fernery_core::StreamName;
use std::time::Duration;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Stream {
    /// List streams with their number of jobs and the age of the oldest
    #[command(after_help = "\
Examples:
  fernery stream list
  fernery stream list --json")]
    List,
    /// Pause a stream: nobody can claim from it; running jobs continue
    #[command(after_help = "\
Example:
  fernery stream pause build")]
    Pause {
        /// The stream
        name: StreamName,
    },
    /// Resume a paused stream
    #[command(after_help = "\
Example:
  fernery stream resume build")]
    Resume {
        /// The stream
        name: StreamName,
    },
}

pub(in crate::cli) async fn run(stream: Stream, client: &Client, screen: Screen) -> Outcome {
    let (name, paused) = match stream {
        Stream::List => return list(client, screen).await,
        Stream::Pause { name } => (name, true),
        Stream::Resume { name } => (name, false),
    };
    let reply = client.set_paused(&name, paused).await?;
    let now = if paused { "is paused" } else { "can be claimed from" };
    if screen.json { screen.json_body(&reply.body) } else { screen.line(&format!("{name} {now}")) }
}

const LISTING: Listing<StreamList> = Listing {
    key: "streams",
    heads: &["STREAM…", "READY", "LATER", "RUNNING", "DONE", "DEAD", "CANCELLED", "OLDEST", "STATE"],
    rows: |page| page.streams.into_iter().map(row).collect(),
};

fn row(s: StreamDetail) -> Vec<Cell> {
    vec![
        s.stream.into(),
        s.ready.into(),
        s.scheduled.into(),
        s.running.into(),
        s.succeeded.into(),
        s.dead.into(),
        s.cancelled.into(),
        Cell::maybe(s.oldest_age_ms.map(|ms| age(Duration::from_millis(ms)))),
        if s.paused { "paused" } else { "open" }.into(),
    ]
}

async fn list(client: &Client, screen: Screen) -> Outcome {
    let fetch = async |limit: u32, cursor: Option<String>| {
        client.streams_page(&Query::new().with("limit", Some(limit)).with("cursor", cursor)).await
    };
    pages::list(screen, &LISTING, &Paging::everything(), fetch).await
}

/// An age as a person says it: two units at most.
pub(in crate::cli) fn age(age: Duration) -> String {
    let s = age.as_secs();
    match s {
        0..60 => format!("{s}s"),
        60..3_600 => format!("{}m {}s", s / 60, s % 60),
        3_600..86_400 => format!("{}h {}m", s / 3_600, s / 60 % 60),
        _ => format!("{}d {}h", s / 86_400, s / 3_600 % 24),
    }
}

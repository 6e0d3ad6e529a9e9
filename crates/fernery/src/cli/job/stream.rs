//! `fernery stream`: where jobs wait.

use crate::cli::failure::Outcome;
use crate::cli::pages::{self, Listing, Paging};
use crate::cli::screen::{Cell, Screen};
use clap::{ArgAction, Subcommand};
use fernery_client::Client;
use fernery_client::client::Query;
use fernery_client::wire::{StreamDetail, StreamList, StreamSettings};
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
    /// Set what viewers see of a stream; this can be done before its first job
    #[command(after_help = "\
With --redact on, viewers see that jobs are there, and not what they hold: payloads, results, what errors say and \
notes of progress are replaced. Operators and the producer of a job still see them.

Example:
  fernery stream set salaries --redact on")]
    Set {
        /// The stream
        name: StreamName,
        /// Hide from viewers what its jobs hold: on or off
        #[arg(long, value_name = "on|off", value_parser = on_or_off, action = ArgAction::Set, required = true)]
        redact: bool,
    },
}

fn on_or_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("write on or off".to_string()),
    }
}

pub(in crate::cli) async fn run(stream: Stream, client: &Client, screen: Screen) -> Outcome {
    let (name, paused) = match stream {
        Stream::List => return list(client, screen).await,
        Stream::Pause { name } => (name, true),
        Stream::Resume { name } => (name, false),
        Stream::Set { name, redact } => return set(client, screen, &name, redact).await,
    };
    let reply = client.set_paused(&name, paused).await?;
    let now = if paused { "is paused" } else { "can be claimed from" };
    if screen.json { screen.json_body(&reply.body) } else { screen.line(&format!("{name} {now}")) }
}

async fn set(client: &Client, screen: Screen, name: &StreamName, redact: bool) -> Outcome {
    let reply = client.set_stream(name, &StreamSettings { redact: Some(redact) }).await?;
    let now = if redact { "viewers do not see what its jobs hold" } else { "viewers see what its jobs hold" };
    if screen.json { screen.json_body(&reply.body) } else { screen.line(&format!("{name}: {now}")) }
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
        match (s.paused, s.redact) {
            (true, true) => "paused, redacted",
            (true, false) => "paused",
            (false, true) => "redacted",
            (false, false) => "open",
        }
        .into(),
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

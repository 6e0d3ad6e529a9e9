//! `fernery stream`: where jobs wait.

use super::failure::Outcome;
use super::screen::{Cell, Screen};
use clap::Subcommand;
use fernery_client::Client;
use fernery_core::StreamName;
use std::time::Duration;

#[derive(Debug, Subcommand)]
pub(super) enum Stream {
    /// List streams with their depth and the age of their oldest job
    #[command(after_help = "\
Examples:
  fernery stream list
  fernery stream list --json")]
    List,
    /// Let nobody claim from a stream; what runs goes on
    #[command(after_help = "\
Example:
  fernery stream pause build")]
    Pause {
        /// The stream
        name: StreamName,
    },
    /// Let workers claim from a stream again
    #[command(after_help = "\
Example:
  fernery stream resume build")]
    Resume {
        /// The stream
        name: StreamName,
    },
}

pub(super) async fn run(stream: Stream, client: &Client, screen: Screen) -> Outcome {
    let (name, paused) = match stream {
        Stream::List => return list(client, screen).await,
        Stream::Pause { name } => (name, true),
        Stream::Resume { name } => (name, false),
    };
    let reply = client.set_paused(&name, paused).await?;
    let now = if paused { "is paused" } else { "can be claimed from" };
    if screen.json { screen.json_body(&reply.body) } else { screen.line(&format!("{name} {now}")) }
}

async fn list(client: &Client, screen: Screen) -> Outcome {
    let reply = client.streams().await?;
    if screen.json {
        return screen.json_body(&reply.body);
    }
    let rows: Vec<Vec<Cell>> = reply
        .read()?
        .streams
        .into_iter()
        .map(|s| {
            vec![
                s.stream.into(),
                s.ready.into(),
                s.scheduled.into(),
                s.running.into(),
                s.succeeded.into(),
                s.dead.into(),
                s.cancelled.into(),
                Cell::maybe(s.oldest_age_ms.map(|ms| age(Duration::from_millis(ms)))),
                if s.paused { "paused".into() } else { "".into() },
            ]
        })
        .collect();
    let heads = ["STREAM", "READY", "SCHEDULED", "RUNNING", "SUCCEEDED", "DEAD", "CANCELLED", "OLDEST", ""];
    screen.table(&heads, &rows)
}

/// An age as a person says it: two units at most.
pub(super) fn age(age: Duration) -> String {
    let s = age.as_secs();
    match s {
        0..60 => format!("{s}s"),
        60..3_600 => format!("{}m {}s", s / 60, s % 60),
        3_600..86_400 => format!("{}h {}m", s / 3_600, s / 60 % 60),
        _ => format!("{}d {}h", s / 86_400, s / 3_600 % 24),
    }
}

//! `fernery process`: the servers on the database.

use super::failure::Outcome;
use super::screen::{Cell, Screen};
use crate::config::duration::show;
use clap::Subcommand;
use fernery_client::Client;
use std::time::Duration;

#[derive(Debug, Subcommand)]
pub(super) enum Process {
    /// List the live processes that serve the server's database
    #[command(after_help = "\
A killed process is listed for up to 15 seconds. `fernery doctor` says where the settings of processes differ.

Examples:
  fernery process list
  fernery process list --json")]
    List,
}

pub(super) async fn run(Process::List: Process, client: &Client, screen: Screen) -> Outcome {
    let reply = client.processes().await?;
    if screen.json {
        return screen.json_body(&reply.body);
    }
    let rows: Vec<Vec<Cell>> = reply
        .read()?
        .processes
        .into_iter()
        .map(|process| {
            vec![
                format!("{}:{}", process.host, process.pid).into(),
                process.url.into(),
                process.version.into(),
                process.schema_version.into(),
                show(Duration::from_millis(process.lease_ttl_ms)).into(),
                process.transport.into(),
                process.started_at.into(),
                process.seen_at.into(),
            ]
        })
        .collect();
    screen.table(&["PROCESS…", "URL…", "VERSION…", "SCHEMA", "LEASE", "TRANSPORT", "STARTED", "SEEN"], rows)
}

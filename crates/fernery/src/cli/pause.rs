//! `fernery pause`: all pauses, and what a person may do next.

use super::failure::Outcome;
use super::pages::{self, Listing, Paging};
use super::screen::{Cell, Screen};
use clap::Subcommand;
use fernery_client::Client;
use fernery_client::client::Query;
use fernery_client::wire::PausePage;
use fernery_core::artifact::PauseState;
use std::time::Duration;

#[derive(Debug, Subcommand)]
pub(super) enum Pause {
    /// List pauses with their next actions, newest first
    #[command(after_help = "\
Examples:
  fernery pause list
  fernery pause list --all --json")]
    List {
        #[command(flatten)]
        paging: Paging,
    },
}

const PAUSES: Listing<PausePage> = Listing {
    key: "pauses",
    heads: &["STOPPED", "TICKET", "REASON", "NEXT"],
    rows: |page| {
        let row = |pause: PauseState| -> Vec<Cell> {
            let next = Cell::maybe(pause.prioritized_actions.first());
            vec![
                pause.created_at.into(),
                Cell::id(pause.objective_id),
                Cell::state(pause.reason.as_str()),
                next,
            ]
        };
        page.pauses.into_iter().map(row).collect()
    },
};

pub(super) async fn run(pause: Pause, client: &Client, screen: Screen) -> Outcome {
    let Pause::List { paging } = pause;
    let fetch = async |limit, cursor: Option<String>| {
        let query = Query::new().with("limit", Some(limit)).with("cursor", cursor);
        client.get("/v1/pauses", &query, Duration::ZERO).await
    };
    pages::list(screen, &PAUSES, &paging, fetch).await
}

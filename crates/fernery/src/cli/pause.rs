//! `fernery pause`: where tickets stopped, and what a person may do next.

use super::failure::Outcome;
use super::pages::{self, Listing, Paging};
use super::screen::{Cell, Screen};
use clap::Subcommand;
use fernery_client::Client;
use fernery_client::client::Query;
use fernery_client::wire::{PausePage, PauseView};
use std::time::Duration;

#[derive(Debug, Subcommand)]
pub(super) enum Pause {
    /// List the pauses that wait for you, newest first
    #[command(after_help = "\
A pause waits for you until its ticket goes on, is confirmed or is cancelled. Of each ticket, the last pause is shown. With --all, \
all pauses are shown, also those of long ago.

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
    heads: &["STOPPED", "TICKET", "WHAT HAPPENED…", "NEXT↵"],
    rows: |page| {
        let row = |PauseView { pause, happened }: PauseView| -> Vec<Cell> {
            let next = Cell::maybe(pause.prioritized_actions.first());
            vec![pause.created_at.into(), Cell::id(pause.objective_id), happened.into(), next]
        };
        page.pauses.into_iter().map(row).collect()
    },
};

pub(super) async fn run(pause: Pause, client: &Client, screen: Screen) -> Outcome {
    let Pause::List { paging } = pause;
    let waiting = (!paging.all).then_some(true);
    let fetch = async |limit, cursor: Option<String>| {
        let query = Query::new().with("waiting", waiting).with("limit", Some(limit)).with("cursor", cursor);
        client.get("/v1/pauses", &query, Duration::ZERO).await
    };
    pages::list(screen, &PAUSES, &paging, fetch).await
}

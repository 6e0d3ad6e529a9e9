//! `fernery dlq`: jobs that were given up.

use crate::cli::failure::{Failure, Outcome};
use crate::cli::ids::{self, NamedJob};
use crate::cli::input;
use crate::cli::pages::{self, Listing, Paging};
use crate::cli::screen::{Cell, Screen, counted};
use clap::{Args, Subcommand};
use fernery_client::Client;
use fernery_client::client::Query;
use fernery_client::wire::{DeadLetterFilter, DeadLetterPage, DeadLetterRequest};
use fernery_core::{JobStatus, StreamName, Timestamp};
use std::time::Duration;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Dlq {
    /// List dead jobs, newest first
    #[command(after_help = "\
Examples:
  fernery dlq list
  fernery dlq list --stream build --all --json")]
    List {
        #[command(flatten)]
        filter: Filter,
        #[command(flatten)]
        paging: Paging,
    },
    /// Start dead jobs over, with counters at zero; without a filter, all of them
    #[command(after_help = "\
Examples:
  fernery dlq redrive --stream build --code E_TIMEOUT --dry-run    how many?
  fernery dlq redrive --stream build --code E_TIMEOUT
  fernery dlq redrive 019a8c5e-07398f    a listed job")]
    Redrive(Which),
    /// Delete dead jobs and their history permanently; without a filter, all of them
    #[command(after_help = "\
It asks first; without a terminal it needs --yes.

Examples:
  fernery dlq purge --before 2026-11-01T00:00:00Z --dry-run
  fernery dlq purge --stream build --yes")]
    Purge {
        #[command(flatten)]
        which: Which,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Clone, Debug, Args)]
pub(in crate::cli) struct Filter {
    /// Only from this stream
    #[arg(long, value_name = "NAME")]
    stream: Option<StreamName>,
    /// Only with this error code
    #[arg(long)]
    code: Option<String>,
    /// Only those that died before this time, as in 2026-11-15T09:30:00Z
    #[arg(long, value_name = "INSTANT", value_parser = input::instant)]
    before: Option<Timestamp>,
}

#[derive(Clone, Debug, Args)]
pub(in crate::cli) struct Which {
    /// Only these jobs
    #[arg(value_name = "ID")]
    ids: Vec<NamedJob>,
    #[command(flatten)]
    filter: Filter,
    /// At most this many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    limit: Option<u64>,
    /// Only count them
    #[arg(long)]
    dry_run: bool,
}

impl Which {
    async fn request(&self, client: &Client) -> Outcome<DeadLetterRequest> {
        let Filter { stream, code, before } = self.filter.clone();
        let unfiltered = stream.is_none() && code.is_none() && before.is_none() && self.ids.is_empty();
        let job_ids = ids::jobs(client, &self.ids).await?;
        for id in &job_ids {
            // A filter that means nothing changes nothing; a name that means nothing is a mistake.
            let status = client.job(*id, Duration::ZERO).await?.read()?.status;
            if status != JobStatus::Dead {
                return Err(Failure::conflict(format!("job {id} is {status}, not DEAD")));
            }
        }
        Ok(DeadLetterRequest {
            filter: DeadLetterFilter { stream, code, before, job_ids },
            all: unfiltered,
            dry_run: self.dry_run,
            limit: self.limit,
        })
    }
}

const DEAD_LETTERS: Listing<DeadLetterPage> = Listing {
    key: "dead_letters",
    heads: &["JOB", "STREAM…", "DIED", "REASON…", "ERROR…"],
    rows: |page| {
        let row = |d: fernery_client::wire::DeadLetterInfo| -> Vec<Cell> {
            let error = match &d.message {
                Some(message) => format!("{}: {message}", d.code),
                None => d.code,
            };
            vec![d.job_id.into(), d.stream.into(), d.buried_at.into(), d.reason.into(), error.into()]
        };
        page.dead_letters.into_iter().map(row).collect()
    },
};

pub(in crate::cli) async fn run(dlq: Dlq, client: &Client, screen: Screen) -> Outcome {
    match dlq {
        Dlq::List { filter, paging } => {
            let fetch = async |limit, cursor: Option<String>| {
                let query = Query::new()
                    .with("stream", filter.stream.as_ref())
                    .with("code", filter.code.as_ref())
                    .with("before", filter.before);
                client.dead_letters(&query.with("limit", Some(limit)).with("cursor", cursor)).await
            };
            pages::list(screen, &DEAD_LETTERS, &paging, fetch).await
        }
        Dlq::Redrive(which) => {
            let reply = client.redrive(&which.request(client).await?).await?;
            let answer = reply.read()?;
            match answer.matched {
                _ if screen.json => screen.json_body(&reply.body),
                Some(n) => screen.line(&format!("{} would be started over", counted(n, "dead job"))),
                None => {
                    screen.line(&format!("{} queued again", counted(answer.moved.unwrap_or(0), "dead job")))
                }
            }
        }
        Dlq::Purge { which, yes } => {
            let request = which.request(client).await?;
            if !yes && !request.dry_run {
                confirm_purge(&request, client).await?;
            }
            let reply = client.purge(&request).await?;
            let answer = reply.read()?;
            match answer.matched {
                _ if screen.json => screen.json_body(&reply.body),
                Some(n) => screen.line(&format!("{} would be deleted", counted(n, "dead job"))),
                None => screen.line(&format!("{} deleted", counted(answer.moved.unwrap_or(0), "dead job"))),
            }
        }
    }
}

async fn confirm_purge(request: &DeadLetterRequest, client: &Client) -> Outcome {
    if !input::can_ask() {
        return Err(Failure::usage(
            "purging deletes jobs permanently, and there is no terminal to ask on: pass --yes",
        ));
    }
    let found = client.purge(&DeadLetterRequest { dry_run: true, ..request.clone() }).await?.read()?;
    let matched = found.matched.unwrap_or(0).min(request.limit.unwrap_or(u64::MAX));
    let question = format!("permanently delete {} with all history? [y/N] ", counted(matched, "dead job"));
    input::confirmed(&question, "nothing was deleted")
}

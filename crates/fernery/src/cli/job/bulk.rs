//! `fernery job bulk`: acts on all jobs that match.

use crate::bulk_words;
use crate::cli::failure::{Failure, Outcome};
use crate::cli::input;
use crate::cli::pages::{self, Listing, Paging};
use crate::cli::screen::{Cell, Screen, remark};
use clap::{Args, Subcommand};
use fernery_client::Client;
use fernery_client::client::{Query, Reply};
use fernery_client::wire::{BulkPage, BulkRequest, BulkView};
use fernery_core::artifact::RecordId;
use fernery_core::job::bulk::{BulkState, BulkVerb};
use fernery_core::{JobStatus, StreamName, Timestamp};
use fernery_engine::door;
use std::time::Duration;

/// How often it is looked how far an act is.
const LOOK_EVERY: Duration = Duration::from_millis(200);

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum Bulk {
    /// Cancel all jobs that match: queued ones end, running ones are asked to end
    #[command(after_help = "\
It counts, asks, and shows how far it is; without a terminal it needs --yes. The \
act goes on by itself: after Ctrl-C too. Jobs that come, or begin to run, later \
are not meant.

Examples:
  fernery job bulk cancel --status QUEUED --stream mail --dry-run    how many?
  fernery job bulk cancel --status QUEUED --stream mail")]
    Cancel(WithStatus),
    /// Start all DEAD or CANCELLED jobs over that match, with counters at zero
    #[command(after_help = "\
A job whose unique key another unfinished job has stays as it is.

Example:
  fernery job bulk retry --status DEAD --stream mail --code SMTP_550")]
    Retry(WithStatus),
    /// Delete all DEAD jobs that match, with their history, permanently
    #[command(after_help = "\
Example:
  fernery job bulk purge --stream mail --before 2026-11-01T00:00:00Z")]
    Purge(Matching),
    /// List such acts, newest first
    #[command(after_help = "\
Example:
  fernery job bulk list")]
    List {
        #[command(flatten)]
        paging: Paging,
    },
    /// Show how far such an act is
    #[command(after_help = "\
Example:
  fernery job bulk show 019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f --follow")]
    Show {
        /// The act's id
        id: RecordId,
        /// Follow it until it ends
        #[arg(long, short)]
        follow: bool,
    },
    /// Stop such an act; what was done stays done
    #[command(after_help = "\
Example:
  fernery job bulk stop 019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f")]
    Stop {
        /// The act's id
        id: RecordId,
    },
}

#[derive(Debug, Args)]
pub(in crate::cli) struct WithStatus {
    /// Jobs that stand so: QUEUED or RUNNING to cancel, DEAD or CANCELLED to retry
    #[arg(long, value_parser = super::status)]
    status: JobStatus,
    #[command(flatten)]
    which: Matching,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Matching {
    /// Only from this stream
    #[arg(long, value_name = "NAME")]
    stream: Option<StreamName>,
    /// DEAD jobs only: only with this error code
    #[arg(long)]
    code: Option<String>,
    /// Only QUEUED ones that came, RUNNING ones that began, others that ended before this time
    #[arg(long, value_name = "INSTANT", value_parser = input::instant)]
    before: Option<Timestamp>,
    /// Only count them
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

pub(super) async fn run(bulk: Bulk, client: &Client, screen: Screen) -> Outcome {
    match bulk {
        Bulk::Cancel(WithStatus { status, which }) => {
            start(BulkVerb::Cancel, status, which, client, screen).await
        }
        Bulk::Retry(WithStatus { status, which }) => {
            start(BulkVerb::Retry, status, which, client, screen).await
        }
        Bulk::Purge(which) => start(BulkVerb::Purge, JobStatus::Dead, which, client, screen).await,
        Bulk::List { paging } => {
            let fetch = async |limit, cursor: Option<String>| {
                client.bulk_acts(&Query::new().with("limit", Some(limit)).with("cursor", cursor)).await
            };
            pages::list(screen, &ACTS, &paging, fetch).await
        }
        Bulk::Show { id, follow } => {
            let mut reply = client.bulk_act(id.as_str()).await?;
            if follow {
                reply = followed(client, screen, reply).await?;
            }
            show(screen, &reply)
        }
        Bulk::Stop { id } => {
            let reply = client.stop_bulk(id.as_str()).await?;
            if screen.json {
                return screen.json_body(&reply.body);
            }
            let act = reply.read()?;
            let ended = if act.state == BulkState::Stopped { "stopped" } else { "it had ended before" };
            screen.say(&format!("{ended}: {}", bulk_words::progress(&act)))
        }
    }
}

const ACTS: Listing<BulkPage> = Listing {
    key: "acts",
    heads: &["ACT", "STATE", "ASKED", "WHAT…", "DONE"],
    rows: |page| {
        let row = |act: BulkView| -> Vec<Cell> {
            vec![
                Cell::id(&act.act_id),
                Cell::state(act.state.as_str()),
                act.created_at.into(),
                bulk_words::sentence(&bulk_words::request(&act)).into(),
                bulk_words::progress(&act).into(),
            ]
        };
        page.acts.into_iter().map(row).collect()
    },
};

async fn start(
    verb: BulkVerb,
    status: JobStatus,
    which: Matching,
    client: &Client,
    screen: Screen,
) -> Outcome {
    let Matching { stream, code, before, dry_run, yes } = which;
    let act_id = RecordId::stored(&door::artifact_id());
    let asked = BulkRequest { verb, status, stream, code, before, act_id: Some(act_id.clone()), dry_run };
    let sentence = bulk_words::sentence(&asked);
    let reply = client.count_bulk(&asked).await?;
    let count = reply.read()?;
    let jobs = bulk_words::jobs(count.matching, count.counted);
    if dry_run {
        return if screen.json {
            screen.json_body(&reply.body)
        } else {
            screen.line(&format!("{jobs} would be {}", bulk_words::done(verb, status)))
        };
    }
    if !yes {
        if !input::can_ask() {
            let why = format!("{sentence}: {jobs}; there is no terminal to ask on: pass --yes");
            return Err(Failure::usage(why));
        }
        input::confirmed(&format!("{sentence}: {jobs}? [y/N] "), "nothing was done")?;
    }
    // What was counted is what is meant: no job that came while the question stood.
    let reply = client.start_bulk(&BulkRequest { before: Some(count.before), ..asked }).await?;
    if !screen.json {
        remark(&format!(
            "it goes on by itself, after Ctrl-C too; to stop it: fernery job bulk stop {act_id}"
        ));
    }
    let reply = followed(client, screen, reply).await?;
    if screen.json {
        return screen.json_body(&reply.body);
    }
    let act = reply.read()?;
    let stopped = if act.state == BulkState::Stopped { "stopped by an operator: " } else { "" };
    screen.say(&format!("{stopped}{}", bulk_words::progress(&act)))
}

/// An act once it has ended. How far it is goes to stderr meanwhile.
async fn followed(client: &Client, screen: Screen, first: Reply<BulkView>) -> Outcome<Reply<BulkView>> {
    let mut reply = first;
    let mut told = None;
    loop {
        let act = reply.read()?;
        if act.state != BulkState::Running {
            return Ok(reply);
        }
        if !screen.json && told != Some(act.done) {
            remark(&bulk_words::progress(&act));
            told = Some(act.done);
        }
        tokio::time::sleep(LOOK_EVERY).await;
        reply = client.bulk_act(act.act_id.as_str()).await?;
    }
}

fn show(screen: Screen, reply: &Reply<BulkView>) -> Outcome {
    if screen.json {
        return screen.json_body(&reply.body);
    }
    let act = reply.read()?;
    let mut facts = vec![
        ("act", Cell::from(act.act_id.as_str())),
        ("what", bulk_words::sentence(&bulk_words::request(&act)).into()),
        ("state", Cell::state(act.state.as_str())),
        ("done", bulk_words::progress(&act).into()),
        ("asked by", act.actor.into()),
        ("asked", act.created_at.into()),
        ("meant", format!("{} {}", bulk_words::bound(act.status), act.before).into()),
        ("ended", Cell::maybe(act.ended_at)),
    ];
    if let Some(trouble) = act.trouble {
        facts.push(("trouble", format!("{trouble}; it is tried again by itself").into()));
    }
    if act.state == BulkState::Running {
        facts.push(("stop", format!("fernery job bulk stop {}", act.act_id).into()));
    }
    screen.facts(&facts)
}

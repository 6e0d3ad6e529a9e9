//! `fernery run`: runs, the findings of their gates, and whether the gates would decide the same again.

mod comments;
pub(super) mod diff;
mod find;
pub(super) mod logs;

pub(in crate::cli) use comments::of_run as comments_of;

use super::failure::{Failure, Outcome};
use super::ids;
use super::pages::{self, Listing, Paging};
use super::screen::{Cell, Screen, counted, json_inert, plain, remark};
use super::ticket::show::{quoted, verdict};
use crate::ticket_words::of_run;
use clap::Subcommand;
use comments::Comments;
use diff::Diff;
use fernery_client::Client;
use fernery_client::client::{Query, Reply};
use fernery_client::wire::{ReplayResponse, RunPage};
use fernery_core::artifact::{ObjectiveId, RunId};
use fernery_core::blueprint::{Blueprint, Sandbox};
use fernery_core::limits;
use fernery_core::pipeline::evidence::BRANCH;
use logs::Logs;
use serde_json::{Value, json};
use std::sync::LazyLock;
use std::time::Duration;

/// Characters of an output that are shown to a person.
const OUTPUT_CHARS_MAX: usize = 20_000;

#[derive(Debug, Subcommand)]
pub(super) enum Run {
    /// List run records, newest first
    #[command(after_help = "\
Runs by which Fernery itself makes candidates and the orientation are listed with --all.

Examples:
  fernery run list
  fernery run list --all --json")]
    List {
        #[command(flatten)]
        paging: Paging,
    },
    /// Show a run: its verdict, executor, cost, the evidence of its gates, and a text output
    #[command(after_help = "\
Examples:
  fernery run show WEB-17                              the last run of a ticket
  fernery run show 019a8c5e-07398f                     a listed run
  fernery run show WEB-17 --json | jq .output_metadata   the executor's report
  fernery run show WEB-17 --json | jq -r .output          all of a text output")]
    Show {
        /// The id of a ticket, a workorder or a run
        #[arg(value_parser = ids::ticket_name)]
        id: ObjectiveId,
    },
    Logs(Logs),
    Diff(Diff),
    Comments(Comments),
    /// Judge stored runs again from their artifacts; exit code 1 if a verdict differs
    #[command(after_help = "\
Examples:
  fernery run replay 019a8c5e-07398f    a listed run
  fernery run replay --all")]
    Replay {
        /// The run's id
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        id: Option<RunId>,
        /// Every run
        #[arg(long)]
        all: bool,
    },
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or("")
}

const RUNS: Listing<RunPage> = Listing {
    key: "runs",
    heads: &["RUN", "TICKET", "RESULT", "JUDGED", "REASON…"],
    rows: |page| page.runs.iter().map(row).collect(),
};

/// The standing objective of the built-in inbox.
static DUTY: LazyLock<String> = LazyLock::new(|| {
    Blueprint::task_management().standing.map_or_else(String::new, |duty| duty.objective_id.to_string())
});

/// Runs of tickets: not those by which Fernery itself makes candidates and the orientation.
const RUNS_OF_TICKETS: Listing<RunPage> = Listing {
    rows: |page| {
        let of_ticket = |run: &&Value| text(run, "objective_id") != DUTY.as_str();
        page.runs.iter().filter(of_ticket).map(row).collect()
    },
    ..RUNS
};

fn row(run: &Value) -> Vec<Cell> {
    vec![
        text(run, "run_id").into(),
        Cell::id(text(run, "objective_id")),
        Cell::state(text(run, "gate_result")),
        text(run, "created_at").into(),
        text(run, "gate_reason").into(),
    ]
}

pub(super) async fn run(run: Run, client: &Client, screen: Screen) -> Outcome {
    match run {
        Run::List { paging } => {
            let fetch = async |limit, cursor: Option<String>| page(client, limit, cursor).await;
            if screen.json || paging.all {
                return pages::list(screen, &RUNS, &paging, fetch).await;
            }
            match pages::list_most(screen, &RUNS_OF_TICKETS, &paging, fetch).await? {
                0 => {}
                n => remark(&format!(
                    "not listed: {} of Fernery itself; --all lists them too",
                    counted(n, "run")
                )),
            }
            Ok(())
        }
        Run::Show { id } => {
            let work = find::workorder(client, &id).await?;
            let mut run = work.run.ok_or_else(|| {
                let named = text(&work.workorder, "work_order_id");
                Failure::not_found(format!("workorder {named} has no verdict yet"))
                    .hint(format_args!("fernery run logs {id} -f shows its progress"))
            })?;
            let bundle = work.output_bundle.unwrap_or_default();
            let metadata = &bundle["metadata"];
            if screen.json {
                run["output_metadata"] = metadata.clone();
                if let Some(output) = output_text(&bundle) {
                    run["output"] = output.into();
                }
                return screen.line(&json_inert(&run.to_string()));
            }
            show(screen, &run, metadata)?;
            output_text(&bundle).map_or(Ok(()), |output| show_output(screen, &id, output))
        }
        Run::Logs(logs) => logs::run(logs, client, screen).await,
        Run::Diff(diff) => diff::run(diff, client, screen).await,
        Run::Comments(comments) => comments::run(comments, client, screen).await,
        Run::Replay { id: Some(id), .. } => {
            let id = ids::only_run(client, id).await?;
            let reply = replay(client, id.as_str()).await?;
            let answer = reply.read()?;
            match answer.same {
                _ if screen.json => screen.json_body(&reply.body)?,
                true => screen.say(&plain(&format!("{id}: {} again", answer.again.gate_result)))?,
                false => screen.say(&differs(id.as_str(), &answer))?,
            }
            if answer.same { Ok(()) } else { Err(Failure::told()) }
        }
        Run::Replay { id: None, .. } => replay_all(client, screen).await,
    }
}

async fn page(
    client: &Client,
    limit: u32,
    cursor: Option<String>,
) -> Result<Reply<RunPage>, fernery_client::ClientError> {
    let query = Query::new().with("limit", Some(limit)).with("cursor", cursor);
    client.get("/v1/runs", &query, Duration::ZERO).await
}

async fn replay(client: &Client, id: &str) -> Result<Reply<ReplayResponse>, fernery_client::ClientError> {
    client.get(&format!("/v1/runs/{id}/replay"), &Query::new(), Duration::ZERO).await
}

fn differs(id: &str, answer: &ReplayResponse) -> String {
    let (stored, again) = (&answer.stored, &answer.again);
    plain(&format!(
        "{id}: recorded {} ({}), now {} ({})",
        stored.gate_result, stored.gate_reason, again.gate_result, again.gate_reason
    ))
}

async fn replay_all(client: &Client, screen: Screen) -> Outcome {
    let (mut runs, mut differ, mut cursor) = (0_u64, Vec::new(), None);
    loop {
        let page = page(client, limits::PAGE_ROWS_MAX, cursor).await?.read()?;
        for run in &page.runs {
            runs += 1;
            let id = text(run, "run_id");
            let answer = replay(client, id).await?.read()?;
            if !answer.same {
                if !screen.json {
                    screen.say(&differs(id, &answer))?;
                }
                differ.push(json!({ "run_id": id, "stored": answer.stored, "again": answer.again }));
            }
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    let count = differ.len();
    match screen.json {
        true => screen.line(&json!({ "runs": runs, "differ": differ }).to_string())?,
        false if count == 0 => {
            screen.line(&format!("{}: all verdicts are the same", counted(runs, "run")))?
        }
        false => remark(&format!("{count} of {} judged differently now", counted(runs, "run"))),
    }
    if count == 0 { Ok(()) } else { Err(Failure::told()) }
}

/// The branch of the run, or why there is none.
fn branch(run: &Value) -> Option<&str> {
    let mut evidence = run["evidence"].as_array()?.iter();
    let found = evidence.find(|found| found["gate"] == BRANCH)?;
    found["trouble"].as_str().or_else(|| found["log_tail"].as_str())?.lines().next()
}

/// The sandbox of a program, with a remark if it does not contain the program.
fn held(tier: &str) -> String {
    match Sandbox::ALL.iter().find(|known| known.as_str() == tier) {
        Some(known) if !known.contains() => format!("{tier} (not contained)"),
        _ => tier.to_string(),
    }
}

/// What an executor did not report is unknown, not 0.
fn reported(value: Option<String>) -> Cell {
    value.map_or_else(|| "not reported".into(), Cell::from)
}

fn cost(metadata: &Value) -> Option<String> {
    let micros = metadata["cost_usd_micros"].as_u64()?;
    Some(format!("{}.{:06} USD", micros / 1_000_000, micros % 1_000_000))
}

fn executor(metadata: &Value) -> Option<String> {
    let name = metadata["executor"].as_str()?;
    Some(match metadata["executor_version"].as_str() {
        Some(version) => format!("{name} ({version})"),
        None => name.to_string(),
    })
}

/// What a run made, if it is text and no patch.
fn output_text(bundle: &Value) -> Option<&str> {
    bundle["content"].as_str().filter(|of| !of.trim().is_empty() && !of.starts_with("diff --git "))
}

/// The beginning of an output: a person can judge most by it, and a terminal is not flooded.
fn show_output(screen: Screen, id: &ObjectiveId, output: &str) -> Outcome {
    let shown: String = output.chars().take(OUTPUT_CHARS_MAX).collect();
    screen.line("")?;
    screen.line("output:")?;
    quoted(screen, &shown)?;
    if shown.len() < output.len() {
        remark(&format!(
            "the output has {} bytes; all of it: fernery run show {id} --json | jq -r .output",
            output.len()
        ));
    }
    Ok(())
}

fn show(screen: Screen, run: &Value, metadata: &Value) -> Outcome {
    screen.facts(&[
        ("run", text(run, "run_id").into()),
        ("ticket", text(run, "objective_id").into()),
        ("workorder", text(run, "work_order_id").into()),
        ("output", text(run, "output_id").into()),
        ("result", Cell::state(text(run, "gate_result"))),
        ("reason", text(run, "gate_reason").into()),
        ("judged", text(run, "created_at").into()),
        ("branch", Cell::maybe(branch(run))),
        ("executor", reported(executor(metadata))),
        ("sandbox", reported(metadata["sandbox"].as_str().map(held))),
        ("tokens", reported(metadata["tokens"].as_u64().map(|tokens| tokens.to_string()))),
        ("cost", reported(cost(metadata))),
    ])?;
    screen.line("")?;
    of_run(run).iter().try_for_each(|line| screen.say_painted(&plain(line), verdict(line)))
}

//! `fernery run logs`: the output of an executor, also while it runs.

use super::find::{self, found};
use crate::cli::failure::{Failure, Outcome};
use crate::cli::ids;
use crate::cli::screen::{Screen, json_inert, plain, remark};
use clap::Args;
use fernery_client::Client;
use fernery_client::client::{Query, Reply};
use fernery_client::wire::{BlueprintDetail, WorkorderLog};
use fernery_core::artifact::ObjectiveId;
use fernery_core::blueprint::{Blueprint, Gate};
use fernery_core::profile::Dialect;
use serde_json::{Value, json};
use std::time::Duration;

/// How often a followed log without news is polled.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Print the log of an agent, or of a gate
///
/// Each event of the agent becomes one line that says what it does; other output is printed unchanged. The process that
/// ran the agent keeps the log of all attempts at the workorder, at most 8 MiB of each.
#[derive(Debug, Args)]
#[command(after_help = "\
With --json: work_order_id, lines (line, says), here and ended.

Examples:
  fernery run logs WEB-17       of the last run of a ticket
  fernery run logs WEB-17 -f    follow it until the run ends
  fernery run logs WEB-17 --gate tests    all that this gate's command wrote
  fernery run logs 019a8c5e-07398f --raw
  fernery run logs WEB-17 --json | jq -r '.lines[].says'")]
pub(in crate::cli) struct Logs {
    /// The id of a ticket, a workorder or a run
    #[arg(value_name = "ID", value_parser = ids::ticket_name)]
    id: ObjectiveId,
    /// Follow the log until the run has ended
    #[arg(long, short)]
    follow: bool,
    /// Print every line unchanged
    #[arg(long)]
    raw: bool,
    /// The log of this gate instead
    #[arg(long, value_name = "NAME")]
    gate: Option<String>,
}

pub(super) async fn run(logs: Logs, client: &Client, screen: Screen) -> Outcome {
    let work = find::workorder(client, &logs.id).await?.workorder;
    let id = work["work_order_id"].as_str().unwrap_or_default();
    let dialect = match &logs.gate {
        Some(gate) => {
            known_gate(client, &work, gate).await?;
            None
        }
        None if logs.raw => None,
        None => dialect(client, &work).await?,
    };
    let mut paper = Paper { screen, dialect, unfinished: String::new(), printed: 0 };
    if screen.json {
        screen.line(&format!("{{\"work_order_id\":{},\"lines\":[", json!(id)))?;
    }
    let (mut from, mut said) = (0, false);
    let last = loop {
        let query = Query::new().with("from", Some(from)).with("gate", logs.gate.as_ref());
        let reply: Reply<WorkorderLog> =
            client.get(&format!("/v1/workorders/{id}/log"), &query, Duration::ZERO).await?;
        let part = reply.read()?;
        paper.take(&part.text)?;
        let is_all = part.next == from;
        from = part.next;
        if part.ended || is_all && !logs.follow {
            break part;
        }
        if is_all {
            if !part.here && !std::mem::replace(&mut said, true) {
                remark(&format!("there is no log of {id} on this server yet"));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    paper.finish()?;
    if screen.json {
        return screen.line(&format!("],\"here\":{},\"ended\":{}}}", last.here, last.ended));
    }
    if !last.here {
        let why = match &logs.gate {
            Some(gate) => format!(
                "of gate {gate} over {id} on this server: it runs no program, has not run, or another process ran it"
            ),
            None => format!(
                "of {id} on this server: the run has not started, its executor keeps no log, or another process ran it"
            ),
        };
        remark(&format!("there is no log {why}"));
    }
    Ok(())
}

/// Refuses a name that no gate of the workorder's blueprint has.
async fn known_gate(client: &Client, work: &Value, named: &str) -> Outcome {
    let Some(blueprint) = blueprint(client, work).await? else { return Ok(()) };
    let mut gates: Vec<&str> = blueprint.gates.iter().map(Gate::name).collect();
    if gates.contains(&named) {
        return Ok(());
    }
    gates.dedup();
    let id = work["work_order_id"].as_str().unwrap_or_default();
    Err(Failure::not_found(plain(&format!(
        "workorder {id} has no gate {named}; it has: {}",
        gates.join(", ")
    ))))
}

/// The blueprint that a workorder was made under; `None` if it cannot be read.
async fn blueprint(client: &Client, work: &Value) -> Outcome<Option<Blueprint>> {
    let digest = work["blueprint"].as_str().unwrap_or_default();
    let detail: Option<BlueprintDetail> = found(client, &format!("/v1/blueprints/{digest}")).await?;
    Ok(detail.and_then(|detail| Blueprint::from_json(detail.blueprint.get()).ok()))
}

/// The dialect of a workorder's agent; `None` if it had no agent.
pub(in crate::cli) async fn dialect(client: &Client, work: &Value) -> Outcome<Option<Dialect>> {
    let blueprint = blueprint(client, work).await?;
    let agent = blueprint.as_ref().and_then(Blueprint::executor).and_then(|of| of.agent.as_ref());
    Ok(agent.map(|profile| profile.dialect))
}

/// Prints complete lines.
struct Paper {
    screen: Screen,
    dialect: Option<Dialect>,
    unfinished: String,
    printed: u64,
}

impl Paper {
    fn take(&mut self, text: &str) -> Outcome {
        self.unfinished.push_str(text);
        let Some(end) = self.unfinished.rfind('\n') else { return Ok(()) };
        let whole: String = self.unfinished.drain(..=end).collect();
        whole.lines().try_for_each(|line| self.print(line))
    }

    /// The log is at its end, and so is its last line.
    fn finish(&mut self) -> Outcome {
        let rest = std::mem::take(&mut self.unfinished);
        if rest.is_empty() { Ok(()) } else { self.print(&rest) }
    }

    fn print(&mut self, line: &str) -> Outcome {
        let says = self.dialect.and_then(|dialect| dialect.last_line(line));
        if self.screen.json {
            let comma = if self.printed > 0 { "," } else { "" };
            self.printed += 1;
            let item = json!({ "line": line, "says": says }).to_string();
            return self.screen.line(&format!("{comma}{}", json_inert(&item)));
        }
        self.screen.line(&plain(says.as_deref().unwrap_or(line)))
    }
}

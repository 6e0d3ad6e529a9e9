//! All commands and the flags that each of them takes.

use super::{
    agent, azolla, capture, config, database, demo, doctor, done, down, export, import, init, job, journal,
    manual, mock_agent, open, orient, pause, process, run, schema, snooze, ticket, token, trash, triage, up,
    worker,
};
use crate::bench::BenchArgs;
use clap::{Args, Parser, Subcommand};
use fernery_exec::guard::GUARD_COMMAND;
use std::path::PathBuf;

const AFTER_HELP: &str = "\
Environment:
  FERNERY_TOKEN  token to use instead of operator.token in the data directory
  FERNERY_CA     certificates (PEM) to trust over HTTPS instead of the system's

Exit codes: 0 ok, 1 failed, 2 called wrongly, 3 not found, 4 conflict.

Examples:
  fernery demo                                   see it work in its own folder
  fernery init                                   set up this repository
  fernery up --detach                            start the server here
  fernery open                                   its pages in a browser
  fernery down                                   stop it
  fernery job enqueue --stream build --payload '{\"ref\":\"main\"}'
  fernery job list --status QUEUED
  fernery ticket new --title 'Fix the footer'    then: fernery ticket approve ID
  fernery capture buy milk tomorrow              then: fernery triage
  fernery orient                                 what needs you now
  fernery done ID                                you have done it
  fernery config                                 every setting and its origin";

/// A durable job engine and control plane for tickets and agents, in one binary.
#[derive(Debug, Parser)]
#[command(name = "fernery", version, after_help = AFTER_HELP, arg_required_else_help = true)]
#[command(infer_subcommands = false, disable_help_subcommand = true, max_term_width = 80)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// Flags of every command.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(super) struct Global {
    /// Data directory: tokens, the SQLite database and the server's URL [default: .fernery here or in the nearest folder
    /// above, else ~/.local/share/fernery if it exists] [env: FERNERY_DATA]
    #[arg(long, global = true, value_name = "DIR")]
    pub(super) data: Option<String>,
    /// Configuration file [default: fernery.toml here or in the nearest folder above] [env: FERNERY_CONFIG]
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// URL of the server [default: the server of the data directory] [env: FERNERY_URL]
    #[arg(long, global = true, value_name = "URL")]
    pub(super) url: Option<String>,
    /// Print JSON on stdout, also for errors
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Print whole times in UTC instead of `3 min ago`
    #[arg(long, global = true)]
    pub(super) utc: bool,
    /// Whether to wait for a server that is starting.
    #[arg(skip = true)]
    pub(super) waits: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Start the server
    Up(up::Up),
    Down(down::Down),
    Open(open::Open),
    Demo(demo::Demo),
    Init(init::Init),
    Capture(capture::Capture),
    Triage(triage::Triage),
    Orient(orient::Orient),
    Done(done::Done),
    Snooze(snooze::Snooze),
    /// Create, approve and follow tickets
    #[command(
        subcommand,
        visible_alias = "objective",
        after_help = "\
Examples:
  fernery ticket new --title 'Fix the footer'
  fernery ticket list
  fernery ticket approve WEB-17    reads it to you, and asks
  fernery ticket show WEB-17       what happened, and what to do next
  fernery ticket confirm WEB-17    you have checked the result"
    )]
    Ticket(ticket::Ticket),
    /// Show the log, patch and verdict of a run, and judge it again
    #[command(
        subcommand,
        after_help = "\
Examples:
  fernery run list
  fernery run logs WEB-17 -f       what the agent does now
  fernery run diff WEB-17          the patch of the last run
  fernery run show WEB-17          what each gate found"
    )]
    Run(run::Run),
    /// List pauses: why work stopped, and what to do next
    #[command(
        subcommand,
        after_help = "\
Example:
  fernery pause list"
    )]
    Pause(pause::Pause),
    /// List who did what, when and why
    #[command(
        subcommand,
        after_help = "\
Example:
  fernery journal list"
    )]
    Journal(journal::Journal),
    Verify(journal::Verify),
    Export(export::Export),
    Import(import::Import),
    /// Enqueue, read, cancel and retry jobs
    #[command(
        subcommand,
        after_help = "\
Examples:
  fernery job enqueue --stream build --payload '{\"ref\":\"main\"}'
  fernery job list --status QUEUED
  fernery job show 019a8c5e-07398f
  fernery job explain 019a8c5e-07398f    why it is not running"
    )]
    Job(job::Job),
    /// List, redrive (start over) and purge (delete) dead jobs
    #[command(
        subcommand,
        after_help = "\
Examples:
  fernery dlq list
  fernery dlq redrive --stream build
  fernery dlq purge --before 2026-11-01T00:00:00Z"
    )]
    Dlq(job::dlq::Dlq),
    /// List, pause and resume streams
    #[command(
        subcommand,
        after_help = "\
Examples:
  fernery stream list
  fernery stream pause build
  fernery stream resume build"
    )]
    Stream(job::stream::Stream),
    /// List the processes that serve the database
    #[command(
        subcommand,
        after_help = "\
Example:
  fernery process list"
    )]
    Process(process::Process),
    /// Create, list and revoke tokens
    #[command(
        subcommand,
        after_help = "\
Examples:
  fernery token new --role worker --name ci --streams 'build,deploy:*'
  fernery token list
  fernery token revoke 4f1c2a9d8e7b"
    )]
    Token(token::Token),
    Worker(worker::WorkerArgs),
    /// Print every setting, its value and where the value comes from
    Config(config::Config),
    /// List azollas (projects), and check and show their blueprints
    #[command(
        subcommand,
        after_help = "\
Examples:
  fernery azolla list
  fernery azolla show --default > azollas/own.toml
  fernery azolla check azollas/"
    )]
    Azolla(azolla::Azolla),
    /// List coding agents, and check whether they can be used here
    #[command(
        subcommand,
        after_help = "\
Examples:
  fernery agent list
  fernery agent check claude    what is missing, and how to get it"
    )]
    Agent(agent::Agent),
    /// List, restore and remove the folders of finished runs
    #[command(
        subcommand,
        after_help = "\
Examples:
  fernery trash list
  fernery trash restore 1790000000…c0c07398f --to work    a listed name"
    )]
    Trash(trash::TrashCommand),
    /// Check files against the schemas of the artifacts
    #[command(
        subcommand,
        after_help = "\
Examples:
  fernery schema list
  fernery schema check export/"
    )]
    Schema(schema::Schema),
    Doctor(doctor::Doctor),
    Backup(database::backup::Backup),
    Bench(BenchArgs),
    Fence(database::fence::Fence),
    /// Confirm that the clock is right
    #[command(
        subcommand,
        after_help = "\
Example:
  date && fernery clock confirm"
    )]
    Clock(database::clock::Clock),
    #[command(name = GUARD_COMMAND, hide = true)]
    WorkerGuard(worker::WorkerGuard),
    #[command(hide = true)]
    MockAgent(mock_agent::MockAgent),
    Completions(manual::completions::Completions),
    #[command(hide = true)]
    Complete(manual::complete::Complete),
    Man(manual::man::ManArgs),
}

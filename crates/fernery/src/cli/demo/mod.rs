//! `fernery demo`: one ticket from a failing test to a gated patch, in its own folder; it needs only git.
//!
//! Server, pipeline, sandbox, gates and interface are the real ones; only the agent is scripted. Environment and other
//! configuration files are ignored: the demo touches only its folder.

mod folder;
mod story;

use super::Global;
use super::failure::{Failure, Outcome};
use super::screen::Screen;
use crate::block_on::block_on;
use crate::config::table::setting;
use crate::config::{Given, Inputs, Settings, Source};
use crate::serve;
use clap::Args;
use fernery_exec::sandbox::{Probe, Tier};
use folder::Folder;
use std::io::IsTerminal;
use std::path::PathBuf;
use story::Story;

/// Watch a ticket being approved, worked on by a scripted agent, and judged
///
/// The demo makes a folder with a small repository whose test fails, starts a server in it, creates a ticket and asks
/// you to approve it. A scripted agent then works on the ticket twice: its first patch fails a gate; it is told why,
/// and the second patch passes. The patch is left as a branch, and all artifacts as files. It takes a few seconds and
/// needs no network.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: 0 the patch passed, 1 it did not, 2 there is no terminal to ask on or no sandbox works here, 4 the \
folder exists.

Examples:
  fernery demo
  fernery demo --yes --dir /tmp/fernery-demo    where nobody can be asked
  fernery demo --yes --json    ticket, runs with evidence, patch, branch, export")]
pub(super) struct Demo {
    /// Approve the ticket without asking
    #[arg(long)]
    yes: bool,
    /// The folder to create
    #[arg(long, value_name = "DIR", default_value = "fernery-demo")]
    dir: PathBuf,
    /// Sandbox for the agent and the tests: bubblewrap or landlock; landlock-partial and none do not contain [default:
    /// the best that works here]
    #[arg(long, value_name = "TIER")]
    sandbox: Option<Tier>,
}

pub(super) fn run(demo: Demo, global: &Global, screen: Screen) -> Outcome {
    if global.data.is_some() || global.config.is_some() || global.url.is_some() {
        return Err(Failure::usage(
            "the demo has its own server, settings and data: of the global flags it takes only --json; \
            --dir names its folder",
        ));
    }
    let terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if !demo.yes && (screen.json || !terminal) {
        let who = if screen.json { "a program reads the output" } else { "stdin is not a terminal" };
        return Err(Failure::usage(format!(
            "the demo asks a person to approve a ticket, but {who}: --yes approves it without asking"
        )));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tier = block_on(&runtime, contained(demo.sandbox))?;
    let folder = block_on(&runtime, Folder::make(&demo.dir, demo.sandbox))?;
    drop(runtime);
    let settings = settings(&folder)?;
    let story = Story { folder: &folder, tier, yes: demo.yes, screen };
    let mut told = None;
    serve::host(&settings, async |url| {
        told = Some(story.tell(url).await);
        Ok::<(), Failure>(())
    })?;
    told.unwrap_or_else(|| {
        let why = format!(
            "stopped before it was done; {} stays: delete it, or run `fernery up` in it",
            folder.shown()
        );
        Err(Failure::failed("ended_early", why))
    })
}

/// The sandbox tier for the programs of the demo.
async fn contained(wanted: Option<Tier>) -> Outcome<Tier> {
    if wanted == Some(Tier::Unconfined) {
        return Ok(Tier::Unconfined);
    }
    Probe::look().await.choose(wanted).map_err(|why| {
        Failure::usage(why).hint(
            "or pass --sandbox none: then the demo's agent and tests run without a sandbox, as your user",
        )
    })
}

/// The settings: the folder's own configuration, a free port, and a log of warnings and errors only.
fn settings(folder: &Folder) -> Outcome<Settings> {
    let flag = |key: &str, value: &str| Given {
        setting: setting(key).expect("it is in the table"),
        values: vec![value.to_string()],
        source: Source::Flag,
    };
    let flags = vec![flag("listen", "127.0.0.1:0"), flag("log_level", "warn")];
    let inputs = Inputs { flags, config: Some(folder.config()), env: &|_| None, here: None };
    Ok(inputs.resolve()?.check()?)
}

//! `fernery demo`: one ticket from a failing test to a gated patch, in a folder of its own, with nothing installed but git.
//!
//! Server, pipeline, sandbox, gates and interface are those of every day; only the agent is scripted. What is in the
//! environment and in configuration files elsewhere is not looked at: the demo touches its folder and nothing else.

mod folder;
mod story;

use super::Global;
use super::failure::{Failure, Outcome};
use super::screen::Screen;
use super::up;
use crate::config::table::setting;
use crate::config::{Given, Inputs, Settings, Source};
use crate::sandbox::{Probe, Tier};
use clap::Args;
use folder::Folder;
use std::io::IsTerminal;
use std::path::PathBuf;
use story::Story;

/// See it work: a ticket, an approval, an agent, gates, a patch
///
/// It makes a folder with a small repository whose test fails, starts a server in it, writes a ticket down and asks you to
/// approve it. A scripted agent then works on it twice: its first patch fails a gate, the second, which was told why, passes.
/// The patch is left as a branch, and every artifact in a folder to read. It takes some seconds, and needs no network.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: 0 the patch passed, 1 it did not, 2 nobody can be asked or nothing here contains a program, 4 the folder is there.

Examples:
  fernery demo
  fernery demo --yes --dir /tmp/fernery-demo      where nobody can be asked
  fernery demo --yes --json                       ticket, runs with evidence, patch, branch, export")]
pub(super) struct Demo {
    /// Approve the ticket without being asked
    #[arg(long)]
    yes: bool,
    /// The folder to make
    #[arg(long, value_name = "DIR", default_value = "fernery-demo")]
    dir: PathBuf,
    /// What contains the agent and the tests: bubblewrap, landlock, or none at all [default: the best one here]
    #[arg(long, value_name = "TIER")]
    sandbox: Option<Tier>,
}

pub(super) fn run(demo: Demo, global: &Global, screen: Screen) -> Outcome {
    if global.data.is_some() || global.config.is_some() || global.url.is_some() {
        return Err(Failure::usage(
            "the demo has a server, settings and data of its own: of the global flags it takes --json; --dir says where",
        ));
    }
    let terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if !demo.yes && (screen.json || !terminal) {
        let who = if screen.json { "a program reads this" } else { "this is no terminal" };
        return Err(Failure::usage(format!(
            "the demo asks a person to approve a ticket, and {who}: --yes approves it without asking"
        )));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tier = runtime.block_on(contained(demo.sandbox))?;
    let folder = runtime.block_on(Folder::make(&demo.dir, demo.sandbox))?;
    drop(runtime);
    let settings = settings(&folder)?;
    let story = Story { folder: &folder, tier, yes: demo.yes, screen };
    let mut told = None;
    up::host(&settings, async |url| {
        told = Some(story.tell(url).await);
        Ok(())
    })?;
    told.unwrap_or_else(|| {
        let why =
            format!("ended before it was done; {} stays: delete it, or `fernery up` in it", folder.shown());
        Err(Failure::failed("ended_early", why))
    })
}

/// What will contain the programs of the demo.
async fn contained(wanted: Option<Tier>) -> Outcome<Tier> {
    if wanted == Some(Tier::Unconfined) {
        return Ok(Tier::Unconfined);
    }
    Probe::look().await.choose(wanted).map_err(|why| {
        Failure::usage(why)
            .hint("or say --sandbox none: the demo's agent and tests then run uncontained, as you")
    })
}

/// What is in force: the folder's own configuration, a free port, and no log but of what goes wrong.
fn settings(folder: &Folder) -> Outcome<Settings> {
    let flag = |key: &str, value: &str| Given {
        setting: setting(key).expect("it is in the table"),
        values: vec![value.to_string()],
        source: Source::Flag,
    };
    let flags = vec![flag("listen", "127.0.0.1:0"), flag("log_level", "warn")];
    let inputs = Inputs { flags, config: Some(folder.config()), env: &|_| None };
    Ok(inputs.resolve()?.check()?)
}

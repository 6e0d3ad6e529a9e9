//! `fernery init`: writes a configuration and a blueprint for the current repository.

use super::Global;
use super::failure::{Failure, Outcome};
use super::screen::{Screen, json_inert, plain};
use crate::block_on::block_on;
use crate::init::{self, Repository, Seen};
use clap::Args;
use fernery_core::profile::Profile;
use fernery_exec::profiles::{self, Machine};
use serde_json::json;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const CONFIG: &str = "fernery.toml";
const BLUEPRINT: &str = "azolla.toml";
/// Bytes read from a file to find out how a repository is tested.
const LOOKED_AT_MAX: u64 = 1 << 20;

/// Scripts of the test command that are named in the blueprint.
const SCRIPTS_MAX: usize = 200;

/// Set up this repository: write fernery.toml and azolla.toml
///
/// fernery.toml names the repository for tickets and the base branch of patches. azolla.toml names the agent (the first
/// one that is installed and logged in) and the gates (with the test commands that this repository seems to use). Both
/// files have comments: read and change them. Nothing is overwritten and nothing is committed.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: 0 written, 2 this is not a git repository, 4 one of the files already exists.

Examples:
  fernery init                        then: fernery up
  fernery init --json                 files, azolla_id, base, agent, logged_out
  fernery azolla check azolla.toml    after changing it")]
pub(super) struct Init {}

pub(super) fn run(_: Init, global: &Global, screen: Screen) -> Outcome {
    if global.config.is_some() {
        return Err(Failure::usage("--config: init writes fernery.toml in the root of the repository"));
    }
    let root = root()?;
    let (config, blueprint) = (root.join(CONFIG), root.join(BLUEPRINT));
    let there: Vec<String> = [&config, &blueprint]
        .into_iter()
        .filter(|file| file.symlink_metadata().is_ok())
        .map(|file| file.display().to_string())
        .collect();
    if !there.is_empty() {
        let (is, it) = if there.len() == 1 { ("is", "it") } else { ("are", "them") };
        let why = format!("{} {is} there already, and init overwrites nothing", there.join(" and "));
        return Err(Failure::conflict(why).hint(format!("change {it}, or move {it} away and run it again")));
    }
    let base = branch(&root)?;
    let Agents { agent, logged_out } = agents()?;
    let folder = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let repository = Repository { folder: &folder, base: &base, agent: agent.as_deref(), seen: seen(&root) };
    // Write the configuration last: without it the blueprint has no effect.
    write_new(&blueprint, &init::blueprint(&repository))?;
    write_new(&config, &init::config(&repository, BLUEPRINT))?;
    let azolla_id = init::name_of(&folder);
    if screen.json {
        let files = [config.display().to_string(), blueprint.display().to_string()];
        let written = json!({"files": files, "azolla_id": azolla_id, "base": base, "agent": agent,
            "logged_out": logged_out});
        return screen.line(&json_inert(&written.to_string()));
    }
    for (file, what) in [
        (&config, format!("repository {azolla_id}, base branch {base}")),
        (
            &blueprint,
            match &agent {
                Some(agent) => format!("azolla {azolla_id}, agent {agent}"),
                None => format!(
                    "azolla {azolla_id}, a scripted agent: `fernery agent check` says how to get a real one"
                ),
            },
        ),
    ] {
        screen.say(&plain(&format!("wrote {}: {what}", file.display())).replace('\n', " "))?;
    }
    for name in &logged_out {
        let line = format!("{name} is installed but not logged in: `fernery agent check {name}` says how");
        screen.say(&plain(&line))?;
    }
    if !repository.seen.has_tests() {
        screen.say(&format!(
            "no tests were found: nothing but a patch that applies will be checked; add a command gate to {BLUEPRINT} \
            (its last lines show one)"
        ))?;
    }
    screen.say(&format!(
        "next: read both files, then run `fernery up --detach` and `fernery ticket new`, here or in any folder below {}",
        plain(&root.display().to_string()).replace('\n', " ")
    ))
}

/// The root of the work tree that this is in.
fn root() -> Outcome<PathBuf> {
    let here = Path::new(".");
    if let Some(root) = git(here, &["rev-parse", "--show-toplevel"])? {
        return Ok(root.into());
    }
    Err(if git(here, &["rev-parse", "--is-bare-repository"])?.as_deref() == Some("true") {
        Failure::usage("this repository is bare: it has no work tree that the two files could be in").hint(
            "run it in a clone of this repository; or write the files yourself in another folder, with this one under [repos] \
             (fernery config --default, fernery azolla show --default)",
        )
    } else {
        Failure::usage("this is not a git repository").hint(
            "run it inside a repository, or create one: `git init`, then commit something (patches need a base commit)",
        )
    })
}

/// The branch that is checked out.
fn branch(root: &Path) -> Outcome<String> {
    if git(root, &["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])?.is_none() {
        return Err(Failure::usage("this repository has no commit yet")
            .hint("commit something first: patches need a base commit"));
    }
    git(root, &["symbolic-ref", "--quiet", "--short", "HEAD"])?.ok_or_else(|| {
        Failure::usage("no branch is checked out here")
            .hint("`git switch` to the branch that patches should be based on")
    })
}

/// The output of git; `None` if it fails.
fn git(folder: &Path, args: &[&str]) -> Outcome<Option<String>> {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(args).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure::failed("no_git", "git was not found in PATH; install it first"),
        _ => Failure::failed("no_git", format!("git cannot be started: {error}")),
    })?;
    let text = String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_string();
    Ok((output.status.success() && !text.is_empty()).then_some(text))
}

/// Agents of this machine.
struct Agents {
    /// The first real one that could be used.
    agent: Option<String>,
    /// Those that are installed and only lack a login.
    logged_out: Vec<String>,
}

fn agents() -> Outcome<Agents> {
    let machine = Machine::here()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let real = Profile::names().filter_map(Profile::builtin).filter(|profile| !profile.install.is_empty());
    let mut found = Agents { agent: None, logged_out: Vec::new() };
    for profile in real {
        let usable = block_on(&runtime, profiles::judged(&profile, &machine));
        if usable.lacks.is_empty() {
            found.agent.get_or_insert(profile.name);
        } else if usable.logged_out {
            found.logged_out.push(profile.name);
        }
    }
    Ok(found)
}

fn seen(root: &Path) -> Seen {
    let has = |name: &str| root.join(name).is_file();
    let text = |name: &str| {
        let mut text = String::new();
        let file = fs::File::open(root.join(name)).ok().filter(|_| has(name))?;
        file.take(LOOKED_AT_MAX).read_to_string(&mut text).ok()?;
        Some(text)
    };
    let mut seen = Seen {
        cargo: has("Cargo.toml"),
        package_json: text("package.json"),
        makefile: ["GNUmakefile", "makefile", "Makefile"].into_iter().find_map(text),
        python: ["pyproject.toml", "setup.cfg", "tox.ini", "pytest.ini"].into_iter().any(has),
        go: has("go.mod"),
        scripts: Vec::new(),
    };
    seen.scripts = seen.run_by_test().into_iter().filter(|name| has(name)).collect();
    seen.scripts.truncate(SCRIPTS_MAX);
    seen
}

/// Writes a new file.
fn write_new(file: &Path, text: &str) -> Outcome {
    let refused = |error: std::io::Error| {
        Failure::failed("not_written", format!("cannot write {}: {error}", file.display()))
    };
    let mut new = OpenOptions::new().write(true).create_new(true).open(file).map_err(refused)?;
    new.write_all(text.as_bytes()).map_err(refused)
}

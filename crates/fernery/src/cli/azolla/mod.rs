//! `fernery azolla`: checks and shows blueprints. `list` shows what a server hosts.

pub(super) mod list;

use super::documents::{self, Unread};
use super::failure::{Failure, Outcome};
use super::screen::{Cell, Screen, counted, json_inert, plain};
use clap::{Args, Subcommand};
use fernery_core::artifact::AzollaId;
use fernery_core::blueprint::{BUILTIN, Blueprint, Envelope, Executor, Flaw, Neighbours};
use fernery_core::calendar::duration;
use fernery_core::limits;
use fernery_core::patch::protects;
use fernery_exec::profiles;
use list::Hosted;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(Debug, Subcommand)]
pub(super) enum Azolla {
    /// List the azollas (projects) that the server hosts
    #[command(after_help = "\
Examples:
  fernery azolla list
  fernery azolla list --json")]
    List,
    Check(Check),
    Show(Show),
    /// List the files that command gates protect by default
    ///
    /// A patch that changes one of them is judged with the file of its base commit. A gate that names its own files in
    /// `protects` protects those instead.
    #[command(after_help = "\
Examples:
  fernery azolla protected
  fernery azolla protected --json")]
    Protected,
    /// Read the blueprint files of the server again: all of them are applied, or none
    ///
    /// What runs now goes on under the blueprint that it was made under. Where a part has changed that approvals cover (what runs,
    /// and how it is judged), they are void: a ticket in TODO becomes NEW and has to be approved again, a running one does if it
    /// needs another attempt, a BLOCKED one once it is unblocked. Other changes void nothing. The answer names such tickets. The
    /// configuration file is not read again: a restart does that. SIGHUP to the server does the same as this command.
    #[command(after_help = "\
Exit codes: 0 applied, or nothing has changed, 2 a file has a mistake and nothing was applied.

Examples:
  fernery azolla reload
  fernery azolla reload --dry-run    only say what would change")]
    Reload {
        /// Only say what would change
        #[arg(long)]
        dry_run: bool,
    },
}

impl Azolla {
    /// What only a server can answer; `Err`: what is answered here.
    pub(super) fn of_server(self) -> Result<Hosted, Self> {
        match self {
            Self::List => Ok(Hosted::List),
            Self::Reload { dry_run } => Ok(Hosted::Reload { dry_run }),
            Self::Show(Show { id: Some(id), default: false }) => Ok(Hosted::Show { id }),
            here => Err(here),
        }
    }
}

/// Check blueprints, the files that define azollas
///
/// Lists all mistakes at once, with line and column. A blueprint that a file extends is searched for next to it, as
/// NAME.toml; `mec`, `task_management` and `tasks` are also built in. An agent's profile is searched for as profiles/NAME.toml,
/// then among the built-in ones.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: 0 all are right, 1 one is wrong, 2 a file cannot be read. A warning does not change the exit code.

With --json: file, valid, azolla_id, digest, flaws and warnings of each file.

Examples:
  fernery azolla check azollas/docs.toml
  fernery azolla check azollas/    every .toml file in a folder and below
  fernery azolla check azollas/ --json")]
pub(super) struct Check {
    /// Files to check, or folders to look for .toml files in; - is stdin
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Show the blueprint of an azolla that the server hosts, or a built-in one
///
/// The digest covers what an approval covers: the parts that decide what runs and how it is judged.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fernery azolla show                                 the built-in one
  fernery azolla show mec                             also what its workers did
  fernery azolla show --default > azollas/own.toml    with comments, to change
  fernery azolla show task_management --default       the file of the inbox
  fernery azolla show --json | jq .decisive           what an approval covers")]
pub(super) struct Show {
    /// An azolla that the server hosts; with --default, one that is built in
    id: Option<AzollaId>,
    /// Print the commented file itself
    #[arg(long)]
    default: bool,
}

pub(super) fn run(command: Azolla, screen: Screen) -> Outcome {
    match command {
        Azolla::Check(args) => check(&args, screen),
        Azolla::Show(args) => show(&args, screen),
        Azolla::Protected => protected(screen),
        // Not reached: `of_server` handles it.
        Azolla::List | Azolla::Reload { .. } => Ok(()),
    }
}

fn check(args: &Check, screen: Screen) -> Outcome {
    let files = documents::found(&args.files, "toml")?;
    let (mut failed, mut unreadable, mut rows) = (0, 0, Vec::new());
    for path in &files {
        let file = documents::shown(path);
        let checked = match documents::read(path, limits::BLUEPRINT_BYTES_MAX) {
            Ok(text) => {
                let profile = |name: &str| profiles::beside(folder_of(path), name);
                let beside = Neighbours { blueprint: &|name| beside(path, name), profile: &profile };
                Blueprint::parse_beside(&text, &beside).and_then(guarded)
            }
            Err(Unread { why, place, is_usage }) => {
                unreadable += usize::from(is_usage);
                let (line, column) = place.unwrap_or((1, 1));
                Err(vec![Flaw { line, column, path: String::new(), message: why }])
            }
        };
        failed += usize::from(checked.is_err());
        if screen.json {
            rows.push(row(&file, &checked));
            continue;
        }
        match checked {
            Ok(blueprint) => {
                screen.line(&plain(&format!("{file}: ok, {}", blueprint.azolla_id)).replace('\n', " "))?;
                for (key, why) in blueprint.warnings() {
                    screen.line(&plain(&format!("{file}: warning: {key}: {why}")).replace('\n', " "))?;
                }
            }
            Err(flaws) => flaws.iter().try_for_each(|flaw| screen.line(&told(&file, flaw)))?,
        }
    }
    if screen.json {
        screen.line(&json_inert(&Value::from(rows).to_string()))?;
    } else if files.len() > 1 {
        screen.line(&format!("{} files: {} right, {failed} wrong", files.len(), files.len() - failed))?;
    }
    documents::ended(failed, unreadable)
}

/// Refuses what a server would refuse although the file can be read.
fn guarded(blueprint: Blueprint) -> Result<Blueprint, Vec<Flaw>> {
    match blueprint.unguarded() {
        None => Ok(blueprint),
        Some(why) => Err(vec![Flaw { line: 1, column: 1, path: "gates".into(), message: why.into() }]),
    }
}

fn row(file: &str, checked: &Result<Blueprint, Vec<Flaw>>) -> Value {
    match checked {
        Ok(blueprint) => json!({
            "file": file,
            "valid": true,
            "azolla_id": blueprint.azolla_id,
            "digest": blueprint.digest(),
            "flaws": [],
            "warnings": warnings(blueprint),
        }),
        Err(flaws) => {
            json!({"file": file, "valid": false, "azolla_id": null, "digest": null, "flaws": flaws, "warnings": []})
        }
    }
}

fn warnings(blueprint: &Blueprint) -> Vec<Value> {
    blueprint.warnings().iter().map(|(path, message)| json!({"path": path, "message": message})).collect()
}

/// `FILE:LINE:COLUMN: key: what is wrong`, which editors know how to jump to.
fn told(file: &str, flaw: &Flaw) -> String {
    plain(&flaw.in_file(&file)).replace('\n', " ")
}

/// The text of the blueprint of this name in the same folder.
fn beside(path: &Path, name: &str) -> Option<String> {
    // A name must not be a path: a foreign blueprint must not read files of its choice.
    AzollaId::new(name).ok()?;
    documents::read(&folder_of(path).join(format!("{name}.toml")), limits::BLUEPRINT_BYTES_MAX).ok()
}

/// The folder of the files beside this one; for stdin, the current one.
fn folder_of(path: &Path) -> &Path {
    if path == Path::new("-") { Path::new("") } else { path.parent().unwrap_or(Path::new("")) }
}

fn protected(screen: Screen) -> Outcome {
    if screen.json {
        return screen.line(&json!({ "protected": protects::by_default().collect::<Vec<_>>() }).to_string());
    }
    protects::by_default().try_for_each(|pattern| screen.line(pattern))
}

fn show(args: &Show, screen: Screen) -> Outcome {
    if args.default {
        let name = args.id.as_ref().map_or("mec", AzollaId::as_str);
        let Some((_, text)) = BUILTIN.iter().find(|(builtin, _)| *builtin == name) else {
            let known: Vec<&str> = BUILTIN.iter().map(|(builtin, _)| *builtin).collect();
            return Err(Failure::usage(format!(
                "{name} is not built in; built in are {}",
                known.join(" and ")
            )));
        };
        let text = text.trim_end();
        return if screen.json {
            screen.line(&json!({ "file": text }).to_string())
        } else {
            screen.line(text)
        };
    }
    let mec = Blueprint::mec();
    if screen.json {
        return screen.line(
            &json!({"blueprint": mec, "decisive": mec.decisive(), "digest": mec.digest()}).to_string(),
        );
    }
    let mut facts: Vec<(&str, Cell)> = vec![
        ("azolla", mec.azolla_id.to_string().into()),
        ("description", mec.description.as_str().into()),
        ("category", mec.category.as_str().into()),
        ("objectives", mec.objective_type.to_string().into()),
        ("workorders for", mec.diazotroph_type.to_string().into()),
        ("branches", Cell::maybe(mec.branch_prefix.as_ref().map(|prefix| format!("{prefix}<objective_id>")))),
    ];
    facts.extend(
        mec.executors.iter().map(|(of, executor)| ("executor", described(of.as_str(), executor).into())),
    );
    let gates: Vec<_> = mec.gates.iter().map(|gate| gate.name()).collect();
    let workers: Vec<_> =
        mec.workers.iter().map(|(of, worker)| format!("{of} {}", duration::show(worker.interval))).collect();
    facts.extend([
        ("budget", duration::show(mec.budget).into()),
        ("envelope", envelope(&mec.envelope).into()),
        ("gates", gates.join(", ").into()),
        (
            "retries",
            format!(
                "{} after a gate failed, {} tries of the executor",
                mec.retry.gate_failures, mec.retry.infrastructure
            )
            .into(),
        ),
        ("concurrency", limit(mec.limits.concurrency).into()),
        ("review limit", limit(mec.limits.review_limit).into()),
        ("workers", workers.join(", ").into()),
        ("digest", mec.digest().to_string().into()),
    ]);
    screen.facts(&facts)
}

fn described(of: &str, executor: &Executor) -> String {
    let sandbox = executor.sandbox.map(|sandbox| format!(", sandbox {sandbox}")).unwrap_or_default();
    let program = match &executor.agent {
        Some(agent) => format!("{}: {}", agent.name, agent.argv.join(" ")),
        None => executor.argv.join(" "),
    };
    let network = if executor.network { ", with a network" } else { "" };
    format!("{of}: {} {program}{sandbox}{network}", executor.kind).trim_end().to_string()
}

fn envelope(envelope: &Envelope) -> String {
    let parts = [
        envelope.attempts.map(|n| counted(n, "workorder")),
        envelope.wall_time.map(duration::show),
        envelope.tokens.map(|n| format!("{n} tokens")),
        envelope
            .cost_usd_micros
            .map(|micros| format!("{}.{:06} USD", micros / 1_000_000, micros % 1_000_000)),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "no bound".to_string() } else { parts.join(", ") }
}

fn limit(limit: u32) -> String {
    if limit == 0 { "off".to_string() } else { limit.to_string() }
}

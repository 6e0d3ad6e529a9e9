//! `fernery agent`: lists coding agents and checks whether they can be used here.

use super::Global;
use super::config::in_force;
use super::failure::{Failure, Outcome};
use super::screen::{Cell, Screen, json_inert};
use crate::block_on::block_on;
use clap::{Args, Subcommand};
use fernery_core::names::nearest;
use fernery_core::profile::Profile;
use fernery_exec::profiles::{self, Machine, Sourced, Usable};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tokio::task::JoinSet;

#[derive(Debug, Subcommand)]
pub(super) enum Agent {
    List(List),
    Check(Check),
    Show(Show),
}

/// List the agent profiles, and which agents are installed
///
/// A profile says how an agent is started and how its output is read; an executor in a blueprint names it. Besides the
/// built-in profiles, there can be files profiles/NAME.toml next to a blueprint; a file with the name of a built-in
/// profile replaces it.
#[derive(Debug, Args)]
#[command(after_help = "\
With --json: name, from, description, program, version, usable and lacks of each.

Examples:
  fernery agent list
  fernery agent list --json | jq '.[] | select(.usable)'")]
pub(super) struct List {}

/// Check whether agents can be used here
///
/// Runs the program to learn its version, which may take 10 seconds, and looks for its login: one of its files in the
/// home directory, or one of its keys in the environment. It says what is missing and how to get it. It does not log in
/// for you.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: 0 it can be used, 1 it cannot, 3 there is no such profile. Without a name all are listed, and the code is 0.

Examples:
  fernery agent check claude
  fernery agent check
  fernery agent check codex --json")]
pub(super) struct Check {
    /// The profile to check
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

/// Print the file of a profile
#[derive(Debug, Args)]
#[command(after_help = "\
To change a profile, write it into the folder profiles beside your blueprints: these blueprints then use it.

Examples:
  fernery agent show claude
  fernery agent show claude > profiles/claude.toml")]
pub(super) struct Show {
    /// The profile
    #[arg(value_name = "NAME")]
    name: String,
}

pub(super) fn run(command: Agent, global: &Global, screen: Screen) -> Outcome {
    let profiles = profiles::all(&folders(global)?);
    match command {
        Agent::List(List {}) => list(looked_at(profiles)?, screen),
        Agent::Check(Check { name: None }) => {
            let all = looked_at(profiles)?;
            if screen.json {
                return rows(&all, screen);
            }
            for (nth, (sourced, usable)) in all.iter().enumerate() {
                if nth > 0 {
                    screen.line("")?;
                }
                facts(sourced, usable.as_ref(), screen)?;
            }
            Ok(())
        }
        Agent::Check(Check { name: Some(name) }) => {
            let named = looked_at(vec![chosen(profiles, &name)?])?;
            let (sourced, usable) = &named[0];
            match screen.json {
                true => screen.line(&json_inert(&row(sourced, usable.as_ref()).to_string()))?,
                false => facts(sourced, usable.as_ref(), screen)?,
            }
            match usable.as_ref().is_some_and(|usable| usable.lacks.is_empty()) {
                true => Ok(()),
                false => Err(Failure::told()),
            }
        }
        Agent::Show(Show { name }) => show(&chosen(profiles, &name)?, screen),
    }
}

/// The folders of the blueprints that `fernery up` would read; without any, the current one.
fn folders(global: &Global) -> Outcome<Vec<PathBuf>> {
    let (_, settings) = in_force(global, Vec::new())?;
    let folder = |file: &PathBuf| file.parent().map(Path::to_path_buf).unwrap_or_default();
    let mut folders: Vec<PathBuf> = settings.azollas.iter().map(folder).collect();
    if folders.is_empty() {
        folders.push(PathBuf::new());
    }
    Ok(folders)
}

fn chosen(profiles: Vec<Sourced>, name: &str) -> Outcome<Sourced> {
    let names: Vec<String> = profiles.iter().map(|sourced| sourced.name.clone()).collect();
    profiles.into_iter().find(|sourced| sourced.name == name).ok_or_else(|| {
        let known = || names.iter().map(String::as_str);
        let hint = match nearest(name, known()) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("known: {}", known().collect::<Vec<_>>().join(", ")),
        };
        Failure::not_found(format!("no profile {name}")).hint(hint)
    })
}

/// The findings for each, all checked concurrently; none for a profile with mistakes.
fn looked_at(profiles: Vec<Sourced>) -> Outcome<Vec<(Sourced, Option<Usable>)>> {
    let machine = Machine::here()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut found: Vec<Option<Usable>> = profiles.iter().map(|_| None).collect();
    block_on(&runtime, async {
        let mut looks = JoinSet::new();
        for (nth, sourced) in profiles.iter().enumerate() {
            let Ok(profile) = sourced.profile.clone() else { continue };
            let machine = machine.clone();
            looks.spawn(async move { (nth, profiles::judged(&profile, &machine).await) });
        }
        while let Some(Ok((nth, usable))) = looks.join_next().await {
            found[nth] = Some(usable);
        }
    });
    Ok(profiles.into_iter().zip(found).collect())
}

fn from(sourced: &Sourced) -> String {
    sourced.file.as_ref().map_or_else(|| "built in".to_string(), |file| file.display().to_string())
}

fn list(found: Vec<(Sourced, Option<Usable>)>, screen: Screen) -> Outcome {
    if screen.json {
        return rows(&found, screen);
    }
    let row = |(sourced, usable): &(Sourced, Option<Usable>)| -> Vec<Cell> {
        let state = match usable {
            None => "wrong".into(),
            Some(Usable { program: None, lacks, .. }) if !lacks.is_empty() => "not installed".into(),
            Some(usable) if usable.lacks.is_empty() => Cell::state("ok"),
            Some(_) => "not ready".into(),
        };
        let version = usable.as_ref().and_then(|usable| usable.version.as_deref());
        let about = sourced.profile.as_ref().map_or("", |profile| profile.description.as_str());
        vec![(&sourced.name).into(), state, Cell::maybe(version), from(sourced).into(), about.into()]
    };
    let rows: Vec<Vec<Cell>> = found.iter().map(row).collect();
    screen.table(&["PROFILE", "STATE", "VERSION…", "FROM…", "WHAT IT IS…"], rows)?;
    screen.line("`fernery agent check NAME` says what is missing and how to get it")
}

fn rows(found: &[(Sourced, Option<Usable>)], screen: Screen) -> Outcome {
    let rows: Vec<Value> = found.iter().map(|(sourced, usable)| row(sourced, usable.as_ref())).collect();
    screen.line(&json_inert(&Value::from(rows).to_string()))
}

fn row(sourced: &Sourced, usable: Option<&Usable>) -> Value {
    let lacks = usable.map(|usable| usable.lacks.as_slice()).unwrap_or_default();
    let lacks: Vec<Value> =
        lacks.iter().map(|lack| json!({"missing": lack.missing, "remedy": lack.remedy})).collect();
    json!({
        "name": sourced.name,
        "from": from(sourced),
        "description": sourced.profile.as_ref().ok().map(|profile| &profile.description),
        "program": usable.and_then(|usable| usable.program.as_ref()).map(|path| path.display().to_string()),
        "version": usable.and_then(|usable| usable.version.as_ref()),
        "credentials": usable.map(|usable| &usable.credentials),
        "usable": usable.is_some_and(|usable| usable.lacks.is_empty()),
        "lacks": lacks,
        "flaws": sourced.profile.as_ref().err(),
    })
}

fn facts(sourced: &Sourced, usable: Option<&Usable>, screen: Screen) -> Outcome {
    let mut facts: Vec<(&str, Cell)> =
        vec![("profile", (&sourced.name).into()), ("from", from(sourced).into())];
    match (&sourced.profile, usable) {
        (Ok(profile), Some(usable)) => {
            let program = usable.program.as_ref().map(|path| path.display());
            let list = |names: &[String]| (!names.is_empty()).then(|| names.join(", "));
            facts.extend([
                ("what it is", (&profile.description).into()),
                ("program", Cell::maybe(program)),
                ("version", Cell::maybe(usable.version.as_ref())),
                ("login by", Cell::maybe(list(&usable.credentials))),
                ("may see", Cell::maybe(list(&visible(profile)))),
                ("network", if profile.network { "yes" } else { "no" }.into()),
            ]);
            for lack in &usable.lacks {
                facts.push(("missing", (&lack.missing).into()));
                facts.push(("", format!("→ {}", lack.remedy).into()));
            }
            if usable.lacks.is_empty() {
                facts.push(("state", Cell::state("ok")));
            }
        }
        (Err(flaws), _) => facts.extend(flaws.iter().map(|flaw| ("wrong", flaw.to_string().into()))),
        (Ok(_), None) => {}
    }
    screen.facts(&facts)
}

fn visible(profile: &Profile) -> Vec<String> {
    let files = profile.visible_files().map(|file| format!("~/{file}"));
    profile.visible_env().map(str::to_string).chain(files).collect()
}

fn show(sourced: &Sourced, screen: Screen) -> Outcome {
    let text = match &sourced.file {
        Some(file) => std::fs::read_to_string(file)
            .map_err(|error| Failure::usage(format!("cannot read {}: {error}", file.display())))?,
        None => Profile::builtin_text(&sourced.name).unwrap_or_default().to_string(),
    };
    match screen.json {
        true => screen
            .line(&json_inert(&json!({"file": text, "profile": sourced.profile.as_ref().ok()}).to_string())),
        false => screen.line(super::screen::plain(&text).trim_end()),
    }
}

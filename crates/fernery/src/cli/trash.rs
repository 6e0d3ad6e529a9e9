//! `fernery trash`: the folders of finished runs, in the data directory on this machine. Needs no server.

use super::Global;
use super::failure::{Failure, Outcome};
use super::input;
use super::screen::{Cell, Screen, counted, json_inert, plain, remark};
use clap::{Args, Subcommand};
use fernery_core::id_part::IdPart;
use fernery_core::names::nearest;
use fernery_exec::agent::trash::{Discarded, Removal, Trash};
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(super) enum TrashCommand {
    List(List),
    Restore(Restore),
    Remove(Remove),
}

/// List the folders of finished runs, oldest first
///
/// Folders whose work was handed in are deleted after 3 days. Folders whose work was not handed in stay until an
/// operator removes them: the run was killed or ended early, or its patch could not be taken.
#[derive(Debug, Args)]
#[command(after_help = "\
With --json: name, objective_id, work_order_id, attempt_id, discarded_at, captured, why, path and patch of each.

Examples:
  fernery trash list
  fernery trash list --json | jq '.[] | select(.captured | not)'")]
pub(super) struct List {}

/// Move a folder out of the trash
///
/// Its subfolder `tree` has the agent's files; `captured.patch` has what was taken of them.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: 3 there is no such folder in the trash, 4 DIR already exists.

Example:
  fernery trash restore 1790000000000-019a…0c12 --to work    a listed name")]
pub(super) struct Restore {
    /// The name in the list
    #[arg(value_name = "NAME")]
    name: String,
    /// The destination, which must not exist
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
}

/// Delete folders from the trash permanently
///
/// Work that was not handed in exists nowhere else: read or restore it first. The command says what each folder holds,
/// and asks; without a terminal it needs --yes. If one of the folders cannot be removed, none is.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: 3 there is no such folder in the trash, 4 its run still uses it.

Examples:
  fernery trash remove 1790000000000-019a…0c12    a listed name
  fernery trash list --json |
    jq -r '.[] | select(.objective_id == \"TICKET\") | .name' |
    xargs -r fernery trash remove --yes --json")]
pub(super) struct Remove {
    /// The names in the list
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

pub(super) fn run(command: TrashCommand, global: &Global, screen: Screen) -> Outcome {
    let trash = Trash::of(&global.data_dir()?);
    match command {
        TrashCommand::List(List {}) => list(&trash, screen),
        TrashCommand::Restore(restore) => take_out(&trash, &restore, screen),
        TrashCommand::Remove(removal) => remove(&trash, &removal, screen),
    }
}

fn listed(trash: &Trash) -> Outcome<Vec<Discarded>> {
    let unread = |error| Failure::usage(format!("cannot read the trash: {error}"));
    trash.list().map_err(unread)
}

fn list(trash: &Trash, screen: Screen) -> Outcome {
    let all = listed(trash)?;
    if screen.json {
        let each = |discarded: &Discarded| {
            let mut object = json!(discarded);
            object["path"] = trash.path(&discarded.name).display().to_string().into();
            object["patch"] = json!(trash.patch(&discarded.name).map(|file| file.display().to_string()));
            object
        };
        let all: Vec<Value> = all.iter().map(each).collect();
        return screen.line(&json_inert(&Value::from(all).to_string()));
    }
    let row = |discarded: Discarded| -> Vec<Cell> {
        vec![
            Cell::id(&discarded.name),
            Cell::id(&discarded.objective_id),
            discarded.discarded_at.into(),
            if discarded.captured { "yes" } else { "no" }.into(),
            discarded.why.into(),
        ]
    };
    let rows: Vec<Vec<Cell>> = all.into_iter().map(row).collect();
    screen.table(&["NAME", "TICKET", "SINCE", "CAPTURED", "WHY…"], rows)
}

fn take_out(trash: &Trash, Restore { name, to }: &Restore, screen: Screen) -> Outcome {
    let name = &find(&listed(trash)?, name)?.name.clone();
    trash.restore(name, to).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::conflict(error.to_string()),
        ErrorKind::CrossesDevices => {
            Failure::failed("not_moved", format!("{} is on another file system", to.display())).hint(
                "choose one on the file system of the data directory, or copy it from the path in --json",
            )
        }
        _ => Failure::failed("not_moved", format!("{name} cannot be moved to {}: {error}", to.display())),
    })?;
    if screen.json {
        let answer = json!({ "name": name, "restored_to": to.display().to_string() });
        return screen.line(&json_inert(&answer.to_string()));
    }
    screen.line(&plain(&format!("moved {name} to {}", to.display())))
}

/// The folder of this name, or of the short form that the list shows.
fn find<'a>(all: &'a [Discarded], name: &str) -> Outcome<&'a Discarded> {
    let known = || all.iter().map(|discarded| discarded.name.as_str());
    if let Some(found) = all.iter().find(|discarded| discarded.name == name) {
        return Ok(found);
    }
    let parts = IdPart::meanings(name);
    let short: Vec<_> = all.iter().filter(|of| parts.iter().any(|part| part.means(&of.name))).collect();
    match short[..] {
        [one] => return Ok(one),
        [] => {}
        _ => {
            let names: Vec<&str> = short.iter().map(|of| of.name.as_str()).collect();
            let why = format!("{name} is the short form of several names; give one of them whole:");
            return Err(Failure::usage(format!("{why}\n  {}", names.join("\n  "))));
        }
    }
    let unknown = Failure::not_found(format!("{name} is not in the trash"));
    Err(match meant(name, known()) {
        near if near.is_empty() => unknown.hint("`fernery trash list` lists what is"),
        near => unknown.hint(format_args!("did you mean {}?", near.join(" or "))),
    })
}

fn remove(trash: &Trash, Remove { names, yes }: &Remove, screen: Screen) -> Outcome {
    if !yes && (screen.json || !input::can_ask()) {
        return Err(Failure::usage(
            "removing deletes folders permanently, and there is no terminal to ask on: pass --yes",
        ));
    }
    let all = listed(trash)?;
    let mut wanted: Vec<&Discarded> = Vec::new();
    for name in names {
        let found = find(&all, name)?;
        if !wanted.contains(&found) {
            wanted.push(found);
        }
    }
    let removals: Vec<Removal> = wanted.iter().map(|of| hold(trash, of)).collect::<Outcome<_>>()?;
    if !screen.json {
        for discarded in &wanted {
            remark(&lost(discarded, trash.patch(&discarded.name).is_some()));
        }
    }
    if !yes {
        let lost = wanted.iter().filter(|discarded| !discarded.captured).count();
        let folders = counted(wanted.len(), "folder");
        let question = format!("permanently delete {folders}, {lost} not handed in? [y/N] ");
        input::confirmed(&question, "nothing was removed")?;
    }
    for (removal, discarded) in removals.into_iter().zip(&wanted) {
        let name = &discarded.name;
        removal.carry_out().map_err(|error| {
            Failure::failed("not_removed", format!("{name} cannot be removed completely: {error}"))
        })?;
        if !screen.json {
            screen.line(&plain(&format!("{name} is removed")))?;
        }
    }
    if screen.json {
        return screen.line(&json_inert(&json!(wanted).to_string()));
    }
    Ok(())
}

fn hold(trash: &Trash, discarded: &Discarded) -> Outcome<Removal> {
    let name = &discarded.name;
    trash.hold(name).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => Failure::conflict(format!("{name} is still in use by its run"))
            .hint("try again when the run has ended; `fernery ticket list` shows running tickets"),
        _ => Failure::failed("not_removed", format!("{name} cannot be looked at: {error}")),
    })
}

/// What is lost if a folder is removed.
fn lost(discarded: &Discarded, has_patch: bool) -> String {
    let Discarded { name, objective_id, why, captured, .. } = discarded;
    let ticket = if objective_id.is_empty() { String::new() } else { format!("ticket {objective_id}, ") };
    let lost = match (captured, has_patch) {
        (true, _) => "handed in: only the folder is lost",
        (false, true) => "not handed in: the agent's changes are lost, captured.patch too",
        (false, false) => "not handed in: its content exists nowhere else",
    };
    format!("{name}: {ticket}{lost} ({why})")
}

/// Suggestions: names that contain what was typed, like a workorder's id; else the most similar.
fn meant<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> Vec<&'a str> {
    const TOLD_MAX: usize = 3;
    let holding: Vec<&str> =
        known.clone().filter(|known| !name.is_empty() && known.contains(name)).take(TOLD_MAX).collect();
    if holding.is_empty() { nearest(name, known).into_iter().collect() } else { holding }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_of_a_name_suggests_all_matches_and_a_typo_the_nearest() {
        let known = || ["17-work-a", "18-work-b", "19-other-a"].into_iter();
        assert_eq!(meant("work", known()), ["17-work-a", "18-work-b"]);
        assert_eq!(meant("18-wrok-b", known()), ["18-work-b"]);
        assert!(meant("", known()).is_empty() && meant("zzz", known()).is_empty());
    }
}

//! `fernery trash`: the folders of runs that are over, in the data directory on this machine. No server is needed.

use super::Global;
use super::failure::{Failure, Outcome};
use super::screen::{Cell, Screen, json_inert};
use crate::diazotroph::trash::{Discarded, Trash};
use clap::{Args, Subcommand};
use fernery_core::names::nearest;
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(super) enum TrashCommand {
    List(List),
    Restore(Restore),
}

/// List the folders of runs that are over, oldest first
///
/// What was handed in goes by itself after 3 days. What was not, stays: its run was killed or ended before it was done, or
/// what it left could not be captured.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fernery trash list
  fernery trash list --json | jq '.[] | select(.captured | not)'     name, objective_id, work_order_id, attempt_id,
                                                                     discarded_at, captured, why, path, patch")]
pub(super) struct List {}

/// Take a folder out of the trash
///
/// The agent's files are in `tree` of it, and what was captured of them is `captured.patch`.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: 3 there is no such folder in the trash, 4 DIR is there already.

Example:
  fernery trash restore 1790000000000-019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f-019a8c5e-8d10-7c11-8e55-3b2a1f6f0c12 --to work")]
pub(super) struct Restore {
    /// Its name in the list
    #[arg(value_name = "NAME")]
    name: String,
    /// Where it goes; nothing may be there
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
}

pub(super) fn run(command: TrashCommand, global: &Global, screen: Screen) -> Outcome {
    let trash = Trash::of(&global.data_dir()?);
    match command {
        TrashCommand::List(List {}) => list(&trash, screen),
        TrashCommand::Restore(restore) => take_out(&trash, &restore, screen),
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
            discarded.name.into(),
            discarded.objective_id.into(),
            discarded.discarded_at.into(),
            if discarded.captured { "yes" } else { "no" }.into(),
            discarded.why.into(),
        ]
    };
    let rows: Vec<Vec<Cell>> = all.into_iter().map(row).collect();
    screen.table(&["NAME", "TICKET", "SINCE", "CAPTURED", "WHY"], &rows)
}

fn take_out(trash: &Trash, Restore { name, to }: &Restore, screen: Screen) -> Outcome {
    let all = listed(trash)?;
    let known = || all.iter().map(|discarded| discarded.name.as_str());
    if !known().any(|known| known == name) {
        let unknown = Failure::not_found(format!("{name} is not in the trash"));
        return Err(match meant(name, known()) {
            near if near.is_empty() => unknown.hint("fernery trash list says what is"),
            near => unknown.hint(format_args!("did you mean {}?", near.join(" or "))),
        });
    }
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
    screen.line(&super::screen::plain(&format!("{name} is at {} now", to.display())))
}

/// The names that a person may have meant: those that hold what was written, like a workorder's id; else the most alike.
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
    fn a_part_of_a_name_leads_to_all_that_hold_it_and_a_misspelling_to_the_nearest() {
        let known = || ["17-work-a", "18-work-b", "19-other-a"].into_iter();
        assert_eq!(meant("work", known()), ["17-work-a", "18-work-b"]);
        assert_eq!(meant("18-wrok-b", known()), ["18-work-b"]);
        assert!(meant("", known()).is_empty() && meant("zzz", known()).is_empty());
    }
}

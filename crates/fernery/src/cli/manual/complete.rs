//! `fernery complete`: the values that may stand at the cursor, for completion scripts.
//!
//! A person waits at the prompt: it makes one short call, says nothing about what goes wrong, and ends in time.

use crate::block_on::block_on;
use crate::cli::screen::ids::short;
use crate::cli::screen::plain;
use crate::cli::{Cli, Global};
use clap::{Arg, ArgAction, Args, Command, CommandFactory, FromArgMatches};
use fernery_client::Client;
use fernery_client::client::Query;
use fernery_core::limits;
use fernery_core::profile::Profile;
use fernery_exec::agent::trash::Trash;
use serde_json::Value;
use std::io::Write;
use std::sync::mpsc::channel;
use std::time::Duration;

/// The longest that a person waits for values.
const WITHIN: Duration = Duration::from_millis(500);
/// Characters of what is said about a value.
const ABOUT_CHARS_MAX: usize = 40;

/// Print the values that may stand at the cursor, one a line, each with a tab and what it is.
#[derive(Debug, Args)]
pub(in crate::cli) struct Complete {
    /// The words after `fernery` up to the cursor; the last one is begun, or empty
    #[arg(value_name = "WORD", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// What kind of value is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Tickets,
    TicketsAndRuns,
    Runs,
    Candidates,
    Jobs,
    BulkActs,
    DeadJobs,
    Streams,
    Azollas,
    Profiles,
    Tokens,
    Trash,
}

/// A value, and what it is.
type Listed = (String, String);

/// Prints what it finds in time; nothing otherwise.
pub(in crate::cli) fn run(complete: &Complete) {
    let Some(wanted) = wanted(&complete.words) else { return };
    let (words, begun) = (complete.words.clone(), complete.words.last().cloned().unwrap_or_default());
    let (tell, told) = channel();
    // On its own thread: whatever it waits for, the prompt comes back.
    std::thread::spawn(move || tell.send(values(wanted, &words)));
    let mut out = std::io::stdout().lock();
    for (value, about) in told.recv_timeout(WITHIN).ok().flatten().unwrap_or_default() {
        let shown = short(&value);
        let value =
            [shown, value].into_iter().find(|value| value.starts_with(&begun) && !value.contains('…'));
        if let Some(value) = value {
            let about: String = plain(&about).replace('\n', " ").chars().take(ABOUT_CHARS_MAX).collect();
            let _ = writeln!(out, "{}\t{about}", plain(&value));
        }
    }
}

/// What may stand where the last word is begun.
fn wanted(words: &[String]) -> Option<Wanted> {
    let (begun, before) = words.split_last()?;
    let mut program = Cli::command();
    // Gives every command the flags of all commands.
    program.build();
    let mut command = &program;
    let mut path: Vec<&str> = Vec::new();
    let mut value_of: Option<&Arg> = None;
    for word in before {
        if value_of.take().is_some() {
            continue;
        }
        if word.starts_with('-') {
            value_of = flag(command, word).filter(|arg| takes_value(arg) && !word.contains('='));
        } else if let Some(inner) = command.find_subcommand(word) {
            command = inner;
            path.push(inner.get_name());
        }
    }
    if let Some(arg) = value_of {
        return match arg.get_long()? {
            "stream" | "streams" => Some(Wanted::Streams),
            "azolla" => Some(Wanted::Azollas),
            "profile" => Some(Wanted::Profiles),
            "run" => Some(Wanted::Runs),
            "after" => Some(Wanted::Tickets),
            _ => None,
        };
    }
    if begun.starts_with('-') {
        return None;
    }
    match path[..] {
        ["ticket", "new" | "list"] => None,
        ["ticket", _] | ["done" | "snooze"] => Some(Wanted::Tickets),
        ["run", "show" | "logs" | "diff"] => Some(Wanted::TicketsAndRuns),
        ["run", "replay"] => Some(Wanted::Runs),
        ["triage", "show" | "promote" | "edit" | "merge" | "discard"] => Some(Wanted::Candidates),
        ["job", "show" | "explain" | "cancel" | "retry"] => Some(Wanted::Jobs),
        ["job", "bulk", "show" | "stop"] => Some(Wanted::BulkActs),
        ["dlq", "redrive" | "purge"] => Some(Wanted::DeadJobs),
        ["stream", "pause" | "resume"] => Some(Wanted::Streams),
        ["azolla", "show"] => Some(Wanted::Azollas),
        ["agent", "check" | "show"] => Some(Wanted::Profiles),
        ["token", "revoke"] => Some(Wanted::Tokens),
        ["trash", "restore" | "remove"] => Some(Wanted::Trash),
        _ => None,
    }
}

fn flag<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    let long = word.strip_prefix("--").map(|name| name.split('=').next().unwrap_or_default());
    let short = word.strip_prefix('-').and_then(|name| name.chars().next());
    command.get_arguments().find(|arg| match long {
        Some(long) => arg.get_long() == Some(long),
        None => short.is_some() && arg.get_short() == short,
    })
}

fn takes_value(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
}

fn values(wanted: Wanted, words: &[String]) -> Option<Vec<Listed>> {
    let whole = std::iter::once("fernery").chain(words.iter().map(String::as_str));
    // The words may be a whole command or none: only its global flags matter.
    let matches = Cli::command().ignore_errors(true).try_get_matches_from(whole).ok()?;
    let global = Global::from_arg_matches(&matches).ok()?;
    if wanted == Wanted::Profiles {
        return Some(Profile::names().map(|name| (name.to_string(), String::new())).collect());
    }
    if wanted == Wanted::Trash {
        let all = Trash::of(&global.data_dir().ok()?).list().ok()?;
        return Some(all.into_iter().map(|of| (of.name, of.why)).collect());
    }
    let server = global.now().server().ok()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    Some(block_on(&runtime, async {
        let mut found = Vec::new();
        for (path, rows, id, about) in lists(wanted) {
            found.extend(page(&server.client, path, rows, id, about).await.unwrap_or_default());
        }
        found
    }))
}

/// Where values are listed: the path, the key of the rows, and in a row the id and what it is.
fn lists(wanted: Wanted) -> &'static [(&'static str, &'static str, &'static str, &'static str)] {
    const TICKETS: (&str, &str, &str, &str) = ("/v1/objectives", "objectives", "objective_id", "title");
    const RUNS: (&str, &str, &str, &str) = ("/v1/runs", "runs", "run_id", "gate_result");
    match wanted {
        Wanted::Tickets => &[TICKETS],
        Wanted::TicketsAndRuns => &[TICKETS, RUNS],
        Wanted::Runs => &[RUNS],
        Wanted::Candidates => &[("/v1/candidates", "candidates", "candidate_id", "title")],
        Wanted::Jobs => &[("/v1/jobs", "jobs", "job_id", "stream")],
        Wanted::BulkActs => &[("/v1/bulk", "acts", "act_id", "verb")],
        Wanted::DeadJobs => &[("/v1/dlq", "dead_letters", "job_id", "code")],
        Wanted::Streams => &[("/v1/streams", "streams", "stream", "")],
        Wanted::Azollas => &[("/v1/azollas", "azollas", "azolla_id", "description")],
        Wanted::Tokens => &[("/v1/tokens", "tokens", "token_id", "name")],
        Wanted::Profiles | Wanted::Trash => &[],
    }
}

async fn page(client: &Client, path: &str, rows: &str, id: &str, about: &str) -> Option<Vec<Listed>> {
    let paged = !matches!(path, "/v1/azollas" | "/v1/tokens");
    let query = Query::new().with("limit", paged.then_some(limits::PAGE_ROWS_DEFAULT));
    let answer = client.get::<Value>(path, &query, Duration::ZERO).await.ok()?.read().ok()?;
    let text = |row: &Value, key: &str| {
        // A ticket stands in a row beside what is known about it.
        let row = row.get("objective").filter(|inner| inner.is_object()).unwrap_or(row);
        row[key].as_str().unwrap_or_default().to_string()
    };
    Some(answer[rows].as_array()?.iter().map(|row| (text(row, id), text(row, about))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: &str) -> Option<Wanted> {
        wanted(&line.split(' ').map(str::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn the_place_of_the_cursor_decides_what_is_listed() {
        for (line, expected) in [
            ("ticket show ", Some(Wanted::Tickets)),
            ("ticket show WE", Some(Wanted::Tickets)),
            ("--data x ticket approve ", Some(Wanted::Tickets)),
            ("ticket list --azolla ", Some(Wanted::Azollas)),
            ("ticket confirm WEB-1 --run ", Some(Wanted::Runs)),
            ("objective show ", Some(Wanted::Tickets)),
            ("run logs -f ", Some(Wanted::TicketsAndRuns)),
            ("run replay ", Some(Wanted::Runs)),
            ("job list --stream ", Some(Wanted::Streams)),
            ("job list --stream b", Some(Wanted::Streams)),
            ("dlq redrive ", Some(Wanted::DeadJobs)),
            ("stream pause bu", Some(Wanted::Streams)),
            ("triage merge one ", Some(Wanted::Candidates)),
            ("agent check ", Some(Wanted::Profiles)),
            ("worker --profile ", Some(Wanted::Profiles)),
            ("token revoke ", Some(Wanted::Tokens)),
            ("trash restore ", Some(Wanted::Trash)),
            ("ticket show --", None),
            ("ticket new ", None),
            ("ticket ", None),
            ("", None),
            ("job enqueue --payload ", None),
        ] {
            assert_eq!(at(line), expected, "{line:?}");
        }
    }
}

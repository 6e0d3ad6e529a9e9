//! The command line: finds the server by itself, shows tables to people and JSON to programs, and reports every failure
//! in one line with an exit code.
//!
//! Commands change nothing by themselves: everything that is not about this machine alone is a call to a server, which
//! decides.
//!
//! A file or folder for each noun. Shared parts: `server` finds the server, `input` and `documents` read, `screen` and
//! `pages` write, `failure` reports the end.

mod agent;
mod arrival;
mod azolla;
mod capture;
mod commands;
mod config;
mod database;
mod demo;
mod doctor;
mod documents;
mod done;
mod down;
mod export;
mod failure;
mod groups;
mod ids;
mod import;
mod init;
mod input;
mod job;
mod journal;
mod manual;
mod mock_agent;
mod open;
mod orient;
mod pages;
mod pause;
mod process;
pub(crate) mod run;
mod schema;
mod screen;
mod server;
mod snooze;
pub(crate) mod ticket;
mod token;
mod trash;
pub(crate) mod triage;
mod up;
mod worker;

use crate::bench::{self, BenchArgs, ReaderLeft};
use crate::block_on::block_on;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches};
use commands::{Cli, Command, Global};
use failure::{Failure, Outcome};
use fernery_client::Client;
use fernery_exec::sandbox;
use screen::{Screen, counted};
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// The whole program.
pub fn main() -> ExitCode {
    let args = helped(std::env::args_os().collect());
    // It runs between a guard and every program, twice: set up nothing else for it.
    if args.get(1).is_some_and(|command| command == sandbox::COMMAND) {
        return sandbox::confine::main(&args[2..]);
    }
    let json = args.iter().take_while(|arg| *arg != "--").any(|arg| arg == "--json");
    let parsed = groups::grouped(Cli::command()).try_get_matches_from(&args);
    let outcome = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => run(cli),
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            print_help(&error)
        }
        Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand && !json => {
            let _ = error.print();
            return ExitCode::from(failure::USAGE);
        }
        Err(error) => Err(usage(&error)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(json),
    }
}

/// `fernery help ticket` is `fernery ticket --help`.
fn helped(mut args: Vec<OsString>) -> Vec<OsString> {
    if args.get(1).is_some_and(|word| word == "help") {
        args.remove(1);
        args.push("--help".into());
    }
    args
}

fn run(cli: Cli) -> Outcome {
    let screen = Screen::new(cli.global.json, cli.global.utc);
    let global = cli.global;
    match cli.command {
        Command::Up(up) => up::run(up, &global, screen),
        Command::Down(down) => down::run(&down, &global, screen),
        Command::Config(config) => config::run(config, &global, screen),
        Command::Azolla(azolla) => match azolla.of_server() {
            Err(here) => azolla::run(here, screen),
            Ok(there) => with_server(&global, async |client| azolla::list::run(there, client, screen).await),
        },
        Command::Agent(agent) => agent::run(agent, &global, screen),
        Command::Demo(demo) => demo::run(demo, &global, screen),
        Command::Init(init) => init::run(init, &global, screen),
        Command::Capture(capture) => capture::run(&capture, &global, screen),
        Command::MockAgent(agent) => mock_agent::run(&agent),
        Command::Trash(command) => trash::run(command, &global, screen),
        Command::Schema(schema) => schema::run(schema, screen),
        Command::Doctor(doctor) => doctor::run(doctor, &global, screen),
        Command::Backup(command) => database::backup::run(command, &global, screen),
        Command::Bench(args) => run_bench(args, screen),
        Command::Fence(fence) => database::fence::run(fence, &global, screen),
        Command::Clock(command) => database::clock::run(command, &global, screen),
        Command::Worker(args) => worker::run(args, &global, screen),
        Command::WorkerGuard(guard) => Ok(fernery_exec::guard::main(guard.command)?),
        Command::Completions(completions) => manual::completions::run(completions, screen),
        Command::Complete(complete) => {
            manual::complete::run(&complete);
            Ok(())
        }
        Command::Man(man) => manual::man::run(man, screen),
        Command::Verify(verify) => journal::verify(&verify, &global, screen),
        Command::Ticket(ticket::Ticket::Show { id, follow: true }) => {
            with_server(&global, async |client| ticket::follow::follow(&id, &global, client, screen).await)
        }
        Command::Ticket(ticket) => {
            with_server(&global, async |client| ticket::run(ticket, client, screen).await)
        }
        Command::Triage(triage) => {
            with_server(&global, async |client| triage::run(triage, client, screen).await)
        }
        Command::Open(open) => with_server(&global, async |client| open::run(open, client, screen).await),
        Command::Orient(orient) => {
            with_server(&global, async |client| orient::run(orient, client, screen).await)
        }
        Command::Done(done) => with_server(&global, async |client| done::run(done, client, screen).await),
        Command::Snooze(snooze) => {
            with_server(&global, async |client| snooze::run(snooze, client, screen).await)
        }
        Command::Export(export) => {
            with_server(&global, async |client| export::run(export, client, screen).await)
        }
        Command::Import(import) => {
            with_server(&global, async |client| import::run(import, client, screen).await)
        }
        Command::Run(run) => with_server(&global, async |client| run::run(run, client, screen).await),
        Command::Pause(pause) => with_server(&global, async |client| pause::run(pause, client, screen).await),
        Command::Journal(journal) => {
            with_server(&global, async |client| journal::run(journal, client, screen).await)
        }
        Command::Job(job) => with_server(&global, async |client| job::run(job, client, screen).await),
        Command::Dlq(dlq) => with_server(&global, async |client| job::dlq::run(dlq, client, screen).await),
        Command::Stream(stream) => {
            with_server(&global, async |client| job::stream::run(stream, client, screen).await)
        }
        Command::Process(process) => {
            with_server(&global, async |client| process::run(process, client, screen).await)
        }
        Command::Token(token) => with_server(&global, async |client| token::run(token, client, screen).await),
    }
}

fn run_bench(args: BenchArgs, screen: Screen) -> Outcome {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let check = args.check;
    match block_on(&runtime, bench::run(args, screen.json)) {
        Ok(0) => Ok(()),
        Ok(missed) if check => {
            let missed = counted(missed, "figure");
            Err(Failure::failed("target_missed", format!("{missed} missed the target (\"reached\": false)")))
        }
        Ok(missed) => {
            screen::remark(&format!(
                "{} missed the target; --check makes that an error",
                counted(missed, "figure")
            ));
            Ok(())
        }
        Err(error) if error.is::<ReaderLeft>() => Ok(()),
        Err(error) => Err(Failure::failed("bench", format!("{error:#}"))),
    }
}

fn with_server(global: &Global, command: impl AsyncFnOnce(&Client) -> Outcome) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let server = global.server()?;
    block_on(&runtime, command(&server.client)).map_err(|failure| server.explain_refusal(failure))
}

fn print_help(error: &clap::Error) -> Outcome {
    let mut out = std::io::stdout().lock();
    let text = error.render();
    match Screen::new(false, false).has_colour() {
        true => write!(out, "{}", text.ansi())?,
        false => write!(out, "{text}")?,
    }
    Ok(out.flush()?)
}

fn usage(error: &clap::Error) -> Failure {
    if let Some(ContextValue::String(arg)) = error.get(ContextKind::InvalidArg)
        && error.kind() == ErrorKind::UnknownArgument
        && arg.starts_with("--token")
    {
        return Failure::usage(
            "every process on this machine can read a token on the command line; set FERNERY_TOKEN, or use \
            --data to find operator.token",
        );
    }
    let text = error.render().to_string();
    Failure::usage(text.strip_prefix("error: ").unwrap_or(&text).trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_of_a_command_is_found_by_the_word_help_too() {
        let said = |words: &[&str]| {
            let all = helped(words.iter().map(OsString::from).collect());
            groups::grouped(Cli::command()).try_get_matches_from(all).expect_err("help").to_string()
        };
        assert_eq!(
            said(&["fernery", "help", "ticket", "new"]),
            said(&["fernery", "ticket", "new", "--help"])
        );
        assert_eq!(said(&["fernery", "help"]), said(&["fernery", "--help"]));
    }

    fn check_footers(command: &clap::Command, path: &str, wrong: &mut Vec<String>) {
        let footers = [command.get_after_help(), command.get_after_long_help()];
        for footer in footers.into_iter().flatten().map(ToString::to_string) {
            let lines: Vec<&str> = footer.lines().collect();
            for (line, next) in lines.iter().zip(lines.iter().skip(1).chain([&""])) {
                let example = line.starts_with("  ");
                if example && line.chars().count() > 80 {
                    wrong.push(format!("{path}: an example wider than 80 columns: {line}"));
                }
                if !example && !line.is_empty() && !next.is_empty() && !next.starts_with("  ") {
                    wrong.push(format!("{path}: a line break inside a paragraph: {line}"));
                }
            }
        }
        for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
            check_footers(inner, &format!("{path} {}", inner.get_name()), wrong);
        }
    }

    #[test]
    fn footers_of_help_fit_a_terminal_of_80_columns() {
        let mut wrong = Vec::new();
        check_footers(&Cli::command(), "fernery", &mut wrong);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

//! `fernery completions`: completion scripts for shells.

use crate::cli::failure::Outcome;
use crate::cli::screen::Screen;
use clap::{Args, CommandFactory, ValueEnum};
use serde_json::json;

/// Print a completion script for bash, zsh or fish
///
/// The script is generated from the program's own definitions, so it knows every command and flag. Tickets, runs, jobs,
/// streams, azollas, profiles and other names it asks the server for, if one answers within half a second.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fernery completions bash > ~/.local/share/bash-completion/completions/fernery
  fernery completions zsh > ~/.zfunc/_fernery
  fernery completions fish > ~/.config/fish/completions/fernery.fish
  source <(fernery completions bash)             for this shell only

zsh finds the script if ~/.zfunc is in fpath before compinit runs.")]
pub(in crate::cli) struct Completions {
    /// The shell
    shell: Shell,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

pub(in crate::cli) fn run(completions: Completions, screen: Screen) -> Outcome {
    let shell = match completions.shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut crate::cli::Cli::command(), "fernery", &mut script);
    let script = String::from_utf8_lossy(&script);
    // In zsh the generated part ends by registering itself; the names come first.
    let (script, _) = script.rsplit_once("\nif [ \"$funcstack[1]\"").unwrap_or((&script, ""));
    let script = format!("{}\n{}", script.trim_end(), names(completions.shell).trim_end());
    if screen.json { screen.line(&json!({ "script": script }).to_string()) } else { screen.line(&script) }
}

/// What asks for names: where there are some, they come instead of what the generated part knows.
fn names(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash => include_str!("names.bash"),
        Shell::Zsh => include_str!("names.zsh"),
        Shell::Fish => include_str!("names.fish"),
    }
}

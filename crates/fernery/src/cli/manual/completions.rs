//! `fernery completions`: completion scripts for shells.

use crate::cli::failure::Outcome;
use crate::cli::screen::Screen;
use clap::{Args, CommandFactory, ValueEnum};
use serde_json::json;

/// Print a completion script for bash, zsh or fish
///
/// The script is generated from the program's own definitions, so it knows every command and flag.
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
    let script = script.trim_end();
    if screen.json { screen.line(&json!({ "script": script }).to_string()) } else { screen.line(script) }
}

//! The first page of help: commands grouped by what a person wants to do.

use clap::Command;
use std::fmt::Write;

/// Commands by intent. A command that no group names stands under the last head.
const GROUPS: &[(&str, &[&str])] = &[
    ("Begin", &["demo", "init", "up", "open", "down", "doctor"]),
    ("Every day", &["orient", "capture", "triage", "done", "snooze"]),
    ("Let agents work on tickets", &["ticket", "run", "pause", "azolla", "agent", "trash"]),
    ("Run jobs", &["job", "worker", "stream", "dlq"]),
    ("Operate a server", &["config", "token", "process", "backup", "fence", "clock", "bench"]),
    ("Look back and move", &["journal", "verify", "export", "import", "schema"]),
    ("This program", &["completions", "man"]),
];

/// Columns of a line.
const WIDTH: usize = 80;
/// Columns before what a command does.
const MARGIN: usize = 15;

/// The program with its commands in groups on its first page.
pub(super) fn grouped(program: Command) -> Command {
    let mut text = String::new();
    let mut named = Vec::new();
    for (head, names) in GROUPS {
        let there = names.iter().filter_map(|name| program.find_subcommand(name));
        let lines: Vec<String> = there.inspect(|command| named.push(command.get_name())).map(line).collect();
        if !lines.is_empty() {
            let _ = write!(text, "{head}:\n{}\n", lines.concat());
        }
    }
    let others = program.get_subcommands().filter(|of| !of.is_hide_set() && !named.contains(&of.get_name()));
    let lines: Vec<String> = others.map(line).collect();
    if !lines.is_empty() {
        let _ = write!(text, "More:\n{}\n", lines.concat());
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{text}Options:\n{{options}}{{after-help}}"
    );
    program.help_template(template)
}

/// A command and what it does, on as many lines as it needs.
fn line(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut lines = vec![String::new()];
    for word in about.split(' ') {
        let last = lines.last_mut().expect("there is one");
        if MARGIN + last.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(word.to_string());
        } else {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    let mut text = String::new();
    for (n, line) in lines.iter().enumerate() {
        let name = if n == 0 { command.get_name() } else { "" };
        let _ = writeln!(text, "  {name:width$}{line}", width = MARGIN - 2);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_command_stands_in_one_group_and_no_line_is_wider_than_80_columns() {
        let help = grouped(crate::cli::Cli::command()).render_help().to_string();
        assert!(!help.contains("More:"), "name the command in GROUPS:\n{help}");
        for command in crate::cli::Cli::command().get_subcommands().filter(|of| !of.is_hide_set()) {
            let name = format!("\n  {} ", command.get_name());
            assert_eq!(help.matches(&name).count(), 1, "{name}\n{help}");
        }
    }

    fn wide(command: &mut Command, path: &str, found: &mut Vec<String>) {
        for help in [command.render_help(), command.render_long_help()] {
            let help = help.to_string();
            let lines = help.lines().filter(|line| line.chars().count() > WIDTH);
            found.extend(lines.map(|line| format!("{path}: {line}")));
        }
        let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        if !command.is_hide_set() && !examples.contains("\nExample") && !examples.starts_with("Example") {
            found.push(format!("{path}: no example"));
        }
        for inner in command.get_subcommands_mut() {
            let path = format!("{path} {}", inner.get_name());
            wide(inner, &path, found);
        }
    }

    #[test]
    fn help_of_every_command_fits_80_columns_and_has_an_example() {
        let mut program = grouped(crate::cli::Cli::command()).term_width(WIDTH);
        program.build();
        let mut found = Vec::new();
        wide(&mut program, "fernery", &mut found);
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}

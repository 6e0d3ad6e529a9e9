//! `fernery man`: the manual, one page for each command, made from the program's own definition of its commands.

use crate::cli::failure::{Failure, Outcome};
use crate::cli::screen::Screen;
use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;
use serde_json::json;
use std::path::PathBuf;

/// Print the manual page, or write the pages of all commands
///
/// Without --dir it prints the page of the whole program, in the form that `man` reads.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fernery man | man -l -                       read it now
  fernery man --dir ~/.local/share/man/man1    then: man fernery-job-enqueue")]
pub(in crate::cli) struct ManArgs {
    /// Write fernery.1, fernery-up.1, fernery-job-enqueue.1 and so on into this directory, which is made if needed
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(in crate::cli) fn run(man: ManArgs, screen: Screen) -> Outcome {
    let Some(dir) = man.dir else {
        let page = page(crate::cli::Cli::command())?;
        return if screen.json {
            screen.line(&json!({ "page": page }).to_string())
        } else {
            screen.line(page.trim_end())
        };
    };
    let refused =
        |error: std::io::Error| Failure::usage(format!("cannot write into {}: {error}", dir.display()));
    std::fs::create_dir_all(&dir).map_err(refused)?;
    let mut names = Vec::new();
    for (name, page) in pages()? {
        std::fs::write(dir.join(&name), page).map_err(refused)?;
        names.push(name);
    }
    if screen.json {
        return screen.line(&json!({ "dir": dir.display().to_string(), "pages": names }).to_string());
    }
    screen.line(&format!("{} pages in {}", names.len(), dir.display()))
}

/// File name and text of every page.
fn pages() -> Outcome<Vec<(String, String)>> {
    let mut program = crate::cli::Cli::command();
    // Gives every command its full name and the flags of all commands.
    program.build();
    let mut found = Vec::new();
    collect(&program, "fernery", &mut found);
    found.into_iter().map(|(name, command)| Ok((format!("{name}.1"), page(command)?))).collect()
}

fn collect(command: &Command, name: &str, found: &mut Vec<(String, Command)>) {
    found.push((name.to_string(), command.clone().display_name(name.to_string())));
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help")
    {
        collect(inner, &format!("{name}-{}", inner.get_name()), found);
    }
}

fn page(command: Command) -> Outcome<String> {
    let mut text = Vec::new();
    let source = concat!("fernery ", env!("CARGO_PKG_VERSION"));
    Man::new(command).manual("Fernery").source(source).render(&mut text)?;
    Ok(examples_as_written(&String::from_utf8_lossy(&text)))
}

/// Lines that begin with spaces are commands to paste: `man` must not run them together.
fn examples_as_written(page: &str) -> String {
    let mut out = String::with_capacity(page.len() + 64);
    let mut inside = false;
    for line in page.lines() {
        let command = line.starts_with("  ");
        if command != inside {
            out.push_str(if command { ".nf\n" } else { ".fi\n" });
            inside = command;
        }
        out.push_str(line);
        out.push('\n');
    }
    if inside {
        out.push_str(".fi\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_to_paste_keep_their_lines() {
        assert_eq!(examples_as_written("a\n  b\n  c\nd\n  e\n"), "a\n.nf\n  b\n  c\n.fi\nd\n.nf\n  e\n.fi\n");
        assert_eq!(examples_as_written("a\nb\n"), "a\nb\n");
    }
}

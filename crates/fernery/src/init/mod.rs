//! Decides what `fernery init` writes, from what was found in a repository. Nothing here reads or writes a file.

mod gates;
#[cfg(test)]
mod tests;

pub(crate) use gates::Seen;
use gates::{protects, suggested};

/// Maximum length of a name made from a folder's name.
const NAME_CHARS_MAX: usize = 64;
/// The name if no character of the folder's name is allowed in one.
const NAME_DEFAULT: &str = "repo";

/// What is known about a repository.
pub(crate) struct Repository<'a> {
    /// The name of its folder.
    pub(crate) folder: &'a str,
    /// The branch that patches are made against.
    pub(crate) base: &'a str,
    /// The agent to use, if one is installed.
    pub(crate) agent: Option<&'a str>,
    /// The files that say how it is tested.
    pub(crate) seen: Seen,
}

/// A name for the repository and its azolla: the characters of the folder's name that an id may have.
pub(crate) fn name_of(folder: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '-' };
    let name: String = folder.chars().map(plain).collect();
    let name = name.trim_start_matches(['-', '_']).trim_end_matches('-');
    let name = &name[..name.len().min(NAME_CHARS_MAX)];
    match name {
        "" => NAME_DEFAULT.to_string(),
        // `mec` is built in, and waits for a remote executor.
        "mec" => format!("{NAME_DEFAULT}-mec"),
        name => name.to_string(),
    }
}

/// Bytes of a line of a list.
const LINE_BYTES_MAX: usize = 120;

/// The explanation of `protects`, written once per file.
const RELIES_ON: &str = "\
# What the command relies on. Where a patch touches one of these files, the command runs with the version of the base, and
# that decides; a ticket whose metadata has `allow = [\"tests/\"]` lets its patch change them. Left out, these are tests and
# build files of known kinds (`fernery ticket approve` lists them); a list takes their place.
";

/// A text as TOML writes it.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_string()).to_string()
}

fn list(words: &[impl AsRef<str>]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word.as_ref())).collect();
    format!("[{}]", words.join(", "))
}

/// The text of `fernery.toml`.
pub(crate) fn config(repository: &Repository<'_>, blueprint: &str) -> String {
    let (name, base) = (name_of(repository.folder), quoted(repository.base));
    format!(
        r#"# Settings of `fernery up` in this folder. `fernery config` prints the current values and where each comes from,
# `fernery config --default` every setting.

# Blueprints that this server hosts: how tickets are worked on and judged.
azolla = [{}]

# Repositories that tickets may name. Agents work in private clones, never in this folder.
[repos.{name}]
path = "."
base = {base}
"#,
        quoted(blueprint)
    )
}

/// The text of the blueprint.
pub(crate) fn blueprint(repository: &Repository<'_>) -> String {
    let name = name_of(repository.folder);
    let mut text = format!(
        r#"# How tickets of this repository are worked on and judged. It contains what differs from the built-in blueprint;
# `fernery azolla show --default` prints that one and explains every key, `fernery azolla check FILE` names every mistake.
#
# An approval covers this file: if it changes, tickets have to be approved again.
extends = "mec"
azolla_id = {}
description = {}

"#,
        quoted(&name),
        quoted(&format!("Tickets to patches for {name}"))
    );
    text.push_str(&executor(repository.agent));
    text.push_str(
        r#"
# Wall time of one run. [envelope] limits all runs of a ticket under one approval together. It has room for the first run,
# for those that [retry] allows after it, and for one that could not be finished.
[budget]
workorder = "30m"

[retry]
gate_failures = 2

[envelope]
attempts = 4
wall_time = "2h"
# cost_usd = 5.00

# Gates judge the output, cheap before expensive; the first that fails decides.
[[gates]]
kind = "schema"

[[gates]]
kind = "outcome"

[[gates]]
kind = "size"
max_content_bytes = 1_048_576

# What a patch may touch. Files that control what runs elsewhere, like .github/, must be allowed by name.
[[gates]]
kind = "patch"
max_files = 50

# The patch applies to its base commit in a fresh clone.
[[gates]]
kind = "applies"
"#,
    );
    let suggested = suggested(&repository.seen);
    if suggested.is_empty() {
        text.push_str(
            r#"
# Fernery does not know how to test this repository. Add a command that exits with 0 on success:
#
#     [[gates]]
#     kind = "command"
#     name = "tests"
#     argv = ["make", "test"]
#     timeout = "10m"
#     env = ["PATH"]
#     protects = ["Makefile", "tests/"]
"#,
        );
    }
    for (nth, gate) in suggested.iter().enumerate() {
        text.push_str(&format!(
            "\n# {}\n[[gates]]\nkind = \"command\"\nname = {}\nargv = {}\ntimeout = \"10m\"\nenv = {}\n",
            gate.why,
            quoted(gate.name),
            list(gate.argv),
            list(gate.env)
        ));
        if nth == 0 {
            text.push_str(RELIES_ON);
        }
        match protects(gate, &repository.seen) {
            Some(groups) => text.push_str(&format!(
                "protects = [\n{}]\n",
                groups.iter().map(|names| group(names)).collect::<String>()
            )),
            None => text.push_str("# protects = […]  left out: tests and build files of known kinds\n"),
        }
    }
    text
}

/// Names that belong together, as lines of a list.
fn group(names: &[String]) -> String {
    let mut lines = vec!["   ".to_string()];
    for name in names.iter().map(|name| quoted(name)) {
        let line = lines.last_mut().expect("there is one");
        if line.len() + name.len() + 2 > LINE_BYTES_MAX && !line.trim().is_empty() {
            lines.push(format!("    {name},"));
        } else {
            line.push_str(&format!(" {name},"));
        }
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

fn executor(agent: Option<&str>) -> String {
    let (why, profile) = match agent {
        Some(agent) => ("The agent that works on tickets. `fernery agent list` shows the others.", agent),
        None => (
            "No coding agent can be used here yet, so this is a scripted one that only does what lines like\n\
             # `mock: write hello.txt Hello` in a ticket say. `fernery agent check` tells how to get a real one; then name it\n\
             # here: claude, codex, opencode, gemini, goose or aider.",
            "mock",
        ),
    };
    format!(
        "# {why}\n[executors.PATCH_DIAZOTROPH]\nkind = \"agent\"\nprofile = {}\n# args = [\"--model\", \"…\"]\n",
        quoted(profile)
    )
}

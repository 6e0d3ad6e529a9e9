//! What `fernery init` writes, decided from what it sees of a repository. Nothing here reads or writes a file.

mod gates;
#[cfg(test)]
mod tests;

pub(crate) use gates::Seen;
use gates::suggested;

/// Characters of a name made from a folder's.
const NAME_CHARS_MAX: usize = 64;
/// What the folder's name is taken for when nothing of it can be part of a name.
const NAME_DEFAULT: &str = "repo";

/// What is known of a repository.
pub(crate) struct Repository<'a> {
    /// The name of its folder.
    pub(crate) folder: &'a str,
    /// The branch that patches are made against.
    pub(crate) base: &'a str,
    /// The agent to use, if one is installed.
    pub(crate) agent: Option<&'a str>,
    /// What of its files tells how it is tested.
    pub(crate) seen: Seen,
}

/// A name for the repository and its azolla: of the folder's, what an id may hold.
pub(crate) fn name_of(folder: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '-' };
    let name: String = folder.chars().map(plain).collect();
    let name = name.trim_start_matches(['-', '_']).trim_end_matches('-');
    let name = &name[..name.len().min(NAME_CHARS_MAX)];
    match name {
        "" => NAME_DEFAULT.to_string(),
        // That one is built in, and waits for an executor elsewhere.
        "mec" => format!("{NAME_DEFAULT}-mec"),
        name => name.to_string(),
    }
}

/// A text as TOML writes it.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_string()).to_string()
}

fn list(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    format!("[{}]", words.join(", "))
}

/// The text of `fernery.toml`.
pub(crate) fn config(repository: &Repository<'_>, blueprint: &str) -> String {
    let (name, base) = (name_of(repository.folder), quoted(repository.base));
    format!(
        r#"# Settings of `fernery up` in this folder. `fernery config` prints what is in force and why, `fernery config --default`
# every setting there is.

# What this server hosts: how tickets are worked on and judged.
azolla = [{}]

# Repositories that tickets may name. Agents work in clones of their own, never in this folder.
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
        r#"# How tickets of this repository are worked on and judged. It says what differs from the built-in blueprint;
# `fernery azolla show --default` prints that one with every key explained, `fernery azolla check FILE` names every mistake.
#
# What is in here is part of what you approve: change it, and tickets approved before go back to NEW.
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
# Wall time of one run. What one ticket may use up over all its runs is in [envelope].
[budget]
workorder = "30m"

[envelope]
attempts = 3
wall_time = "2h"
# cost_usd = 5.00

# Gates judge what came out, cheap before expensive; the first that fails decides.
[[gates]]
kind = "schema"

[[gates]]
kind = "outcome"

[[gates]]
kind = "size"
max_content_bytes = 1_048_576

# What a patch may touch. Files that decide what runs elsewhere, like .github/, have to be allowed by name.
[[gates]]
kind = "patch"
max_files = 50

# It applies to the commit that the work started from, in a clone that nobody worked in.
[[gates]]
kind = "applies"
"#,
    );
    let suggested = suggested(&repository.seen);
    if suggested.is_empty() {
        text.push_str(
            r#"
# Nothing here tells how this repository is tested. With a command that ends with 0 when all is well:
#
#     [[gates]]
#     kind = "command"
#     name = "tests"
#     argv = ["make", "test"]
#     timeout = "10m"
#     env = ["PATH"]
"#,
        );
    }
    for gate in suggested {
        text.push_str(&format!(
            "\n# {}\n[[gates]]\nkind = \"command\"\nname = {}\nargv = {}\ntimeout = \"10m\"\nenv = {}\n",
            gate.why,
            quoted(gate.name),
            list(gate.argv),
            list(gate.env)
        ));
    }
    text
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

//! A name means one thing in a crate: whoever looks a type up finds it, and no two.

use super::{files, read};
use std::collections::BTreeMap;

/// Names that a crate has more than once, how often at most, and why that may be. One crate's reason says nothing of another's.
const KNOWN: &[(&str, &str, usize, &str)] = &[
    ("fernery", "Broken", 2, "why no job can be run here, and why a call to the outside has no answer"),
    ("fernery", "Call", 2, "a request that came in, and an answer from outside that is still to be read"),
    ("fernery", "Caller", 2, "who calls the server, and how doctor finds it"),
    ("fernery", "Check", 3, "arguments of `check`, once for each noun of the command line"),
    ("fernery", "Folder", 2, "that an export writes, and that the demo shows"),
    ("fernery", "Found", 2, "messages of a stream, and what a look into the spool came upon"),
    ("fernery", "Journal", 2, "arguments of `journal`, and what an export knows of it"),
    ("fernery", "Kept", 2, "a capture in its spool, and how a SQLite file is kept"),
    ("fernery", "Link", 2, "of the OpenAPI document, and to Redis"),
    ("fernery", "List", 3, "arguments of `list`, once for each noun of the command line"),
    ("fernery", "Page", 3, "of a terminal, of a ticket in the editor, and of a browser"),
    ("fernery", "Place", 2, "where a worker's name is held, and where a page starts"),
    ("fernery", "Process", 2, "arguments of `process`, and one that doctor judges"),
    ("fernery", "Program", 2, "what a gate runs, and one that doctor looks for"),
    ("fernery", "Progress", 2, "of a connection, and of a bench"),
    ("fernery", "Readiness", 2, "what `/readyz` tried, and the polling worker of that name"),
    ("fernery", "Reply", 2, "to a caller, and what doctor was answered"),
    ("fernery", "Seen", 3, "what a step has read before it decides, private to its room"),
    (
        "fernery",
        "Server",
        4,
        "what requests share, one that is called, one under a bench, and one that doctor judges",
    ),
    (
        "fernery",
        "Show",
        4,
        "arguments of `show`, once for each noun of the command line, and how a worker shows events",
    ),
    ("fernery", "Target", 3, "of a copy, of a question, and of a call"),
    ("fernery", "Text", 2, "what a ticket says, and what is shown of it"),
    ("fernery-core", "Entry", 2, "of the journal, and of a TOML table"),
    ("fernery-core", "Flaw", 3, "one for each reader: JSON, TOML, patches"),
    ("fernery-core", "Found", 2, "what is known of a reported attempt, and a TOML value with its place"),
    ("fernery-core", "Kind", 2, "of a TOML value, and of a project, for protecting its files"),
    ("fernery-core", "Left", 2, "what an agent left in its clone, and a capture that triage made nothing of"),
    ("fernery-core", "Lines", 2, "readers of lines: of an agent's output, and of a patch"),
    ("fernery-core", "Place", 2, "lines that a comment is on, and where in a TOML file something stands"),
    ("fernery-core", "Seen", 2, "what a decision is made from, private to its room"),
    ("fernery-core", "Violation", 2, "of a schema, and of the rules for a part of a document"),
    (
        "fernery-engine",
        "AfterCommit",
        2,
        "each store has its own: what to announce once a transaction is durable",
    ),
    ("fernery-engine", "Counts", 2, "of what happened to messages, and of the rows of a copy"),
    (
        "fernery-engine",
        "Ending",
        2,
        "the wait for a job's end, and what an attempt's end means for its workorder",
    ),
    ("fernery-engine", "HolderReport", 2, "each store has its own: what a holder says of an attempt's end"),
    ("fernery-engine", "Page", 3, "of rows, of messages, and of an export"),
    (
        "fernery-engine",
        "Stop",
        3,
        "why held work is given up, why a round of the relay ends, and the end of a copy",
    ),
    ("fernery-engine", "Which", 2, "each store has its own: which leases are settled"),
    ("fernery-exec", "Order", 2, "to the sandbox's stage, and to a guard"),
];

/// The types of a source file that other files can name.
fn declared(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let rest = line.strip_prefix("pub")?;
        let rest =
            rest.strip_prefix('(').map_or(Some(rest), |rest| rest.split_once(')').map(|(_, rest)| rest))?;
        let (kind, name) = rest.trim_start().split_once(' ')?;
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let is_type = ["struct", "enum", "trait", "type", "union"].contains(&kind);
        is_type.then(|| name.split(|c| !is_name(c)).next()).flatten()
    })
}

#[test]
fn no_two_types_of_a_crate_have_one_name() {
    let mut places: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for path in files() {
        let Some((krate, file)) = path.strip_prefix("crates/").and_then(|path| path.split_once("/src/"))
        else {
            continue;
        };
        if file.ends_with(".rs") {
            for name in declared(&read(&path)) {
                places.entry((krate.to_string(), name.to_string())).or_default().push(file.to_string());
            }
        }
    }
    assert!(places.len() > 500, "types are found");
    let known: BTreeMap<_, _> =
        KNOWN.iter().map(|(krate, name, often, _)| ((*krate, *name), *often)).collect();
    let mut broken = Vec::new();
    for ((krate, name), at) in &places {
        if at.len() > known.get(&(krate.as_str(), name.as_str())).copied().unwrap_or(1) {
            broken.push(format!("{krate} {name}: {}", at.join(", ")));
        }
    }
    super::none(&broken, "give one of them a name of its own, or KNOWN a reason:");
    let mut too_many = Vec::new();
    for ((krate, name), often) in known {
        let there = places.get(&(krate.to_string(), name.to_string())).map_or(0, Vec::len);
        if there < often {
            too_many.push(format!("{krate} {name}: {there}, not {often}"));
        }
    }
    super::none(&too_many, "KNOWN allows more than there are; let the entry shrink or go:");
}

#[test]
fn the_list_of_known_names_is_in_order_and_says_why() {
    assert!(KNOWN.is_sorted_by(|a, b| (a.0, a.1) < (b.0, b.1)));
    for (krate, name, often, why) in KNOWN {
        assert!(*often > 1 && why.split(' ').count() > 3, "{krate} {name}");
    }
}

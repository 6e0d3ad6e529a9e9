//! What taste forgets: the tree says of itself only what is so.
//!
//! A rule here reads the sources or asks a running server, and names every place that breaks it. Whoever breaks one on purpose
//! changes the list of the rule, with a reason.

mod documents;
mod openapi;
mod statements;
mod type_names;

use std::fs;
use std::path::{Path, PathBuf};

/// The top of the tree.
fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the tree")
}

/// The hidden folders that are part of the tree.
const HIDDEN: [&str; 3] = [".cargo", ".ci", ".config"];

/// All files of the tree by their paths from its top. What a build leaves is no part of it, nor what tools keep in hidden
/// folders, nor what a link leads to.
fn files() -> Vec<String> {
    let root = root();
    let (mut found, mut folders) = (Vec::new(), vec![root.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let entry = entry.expect("an entry");
            let (path, kind) = (entry.path(), entry.file_type().expect("its type"));
            let within = path.strip_prefix(&root).expect("below the top").to_str().expect("a plain name");
            let name = entry.file_name();
            let hidden = name.to_str().is_some_and(|name| name.starts_with('.') && !HIDDEN.contains(&name));
            match kind.is_dir() {
                true if hidden || within == "target" => {}
                true => folders.push(path),
                false if kind.is_file() => found.push(within.to_string()),
                false => {}
            }
        }
    }
    found.sort();
    assert!(found.len() > 500, "the tree has more files than these: {found:?}");
    found
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Fails with one line for each place that breaks a rule.
#[track_caller]
fn none(broken: &[String], rule: &str) {
    assert!(broken.is_empty(), "{rule}\n  {}\n", broken.join("\n  "));
}

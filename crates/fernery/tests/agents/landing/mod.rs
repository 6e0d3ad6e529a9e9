//! Patches come home, through the real program: merged, refused, queued, killed on the way, and with the owner and the modes that
//! git would have given them.

mod after;
mod by_hand;
mod kept;
mod kills;
mod merges;
mod owners;
mod queue;
mod told;
mod trees;
mod trouble;

use crate::fresh_database::fresh_database;
use crate::program::{Answer, fernery};
use crate::yard::{GATES, Yard, blueprint, git, lay_out};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// The blueprint of these tests, with more of it before its tables.
fn plain() -> String {
    blueprint(GATES)
}

/// As [`plain`], with a gate that runs this shell script in the merged tree.
fn with_check(script: &str) -> String {
    let check = format!(
        "{{ kind = \"command\", name = \"check\", argv = [\"sh\", \"-c\", {}], timeout = \"20s\", protects = [] }}",
        json!(script)
    );
    blueprint(&GATES.replace("}]\n", &format!("}}, {check}]\n")))
}

/// As [`plain`], with a table `[land]`.
fn landing_by(land: &str) -> String {
    format!("{}[land]\n{land}\n", plain())
}

/// A ticket that is done.
fn done(yard: &Yard, id: &str, script: &str) -> Value {
    yard.ticket("yard", id, script);
    yard.until(id, "DONE", |objective| objective["objective"]["status"] == "DONE")
}

/// Waits until the candidate was tried on the tip, and this came of it.
fn fits(yard: &Yard, id: &str, fit: &str) -> Value {
    let tip = git(&yard.repo(), &["rev-parse", "main"]);
    yard.until(id, fit, |objective| {
        objective["landing"]["fit"] == fit && objective["landing"]["tip"] == tip.as_str()
    })
}

fn landed(yard: &Yard, id: &str) -> Value {
    yard.until(id, "landed", |objective| objective["landing"]["state"] == "LANDED")
}

fn merge(yard: &Yard, id: &str) -> Answer {
    yard.server.run(["ticket", "merge", id, "--yes"])
}

/// A command of an operator that nobody waits for: the server may die before it answers.
fn asking(yard: &Yard, args: &[&str]) -> Child {
    let mut command = fernery();
    command.current_dir(yard.server.dir.path()).args(args).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Waits until the server stands still at its failpoint.
fn stands_still(yard: &Yard) {
    assert!(crate::yard::eventually(|| crate::kills::is_stopped(yard.server.pid())), "it never came there");
}

/// The same on both databases, with the flags of a server.
fn on_both(test: impl Fn(&[&str])) {
    test(&[]);
    let database = Runtime::new().unwrap().block_on(fresh_database());
    test(&["--database", &database.url()]);
}

/// Something else comes to main, without touching the working tree of these tests' repository.
fn commit_on_main(repo: &Path, name: &str, text: &str) {
    fs::write(repo.join(name), text).unwrap();
    git(repo, &["add", "-A"]);
    git(repo, &["commit", "-q", "-m", &format!("change {name}")]);
}

fn status(repo: &Path) -> String {
    git(repo, &["status", "--porcelain"])
}

fn decisions(objective: &Value) -> Vec<String> {
    let kind = |decision: &Value| decision["kind"].as_str().unwrap_or_default().to_string();
    objective["decisions"].as_array().unwrap().iter().map(kind).collect()
}

/// A yard whose repository was made ready by `prepare`.
fn yard_with(blueprint: &str, prepare: impl FnOnce(&Path)) -> Yard {
    let dir: TempDir = lay_out(blueprint);
    prepare(&dir.path().join("repo"));
    Yard::open_in(dir)
}

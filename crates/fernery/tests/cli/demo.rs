//! `fernery demo`, run as a person runs it: what it shows, what it leaves, and when it refuses.

use crate::program::{Answer, fernery, run_in, started_by};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

fn git(folder: &Path, args: &[&str]) -> String {
    let output = Command::new("git").arg("-C").arg(folder).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim_end().to_string()
}

fn empty() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_demo_goes_from_a_failing_test_to_a_gated_patch_and_leaves_all_of_it() {
    let dir = empty();
    // What is set elsewhere, another server's database too, is none of the demo's business.
    let mut command = fernery();
    command.env("FERNERY_DATABASE", "postgres://nobody@127.0.0.1:1/x").env("FERNERY_DATA", "elsewhere");
    let said: Answer = command.current_dir(dir.path()).args(["demo", "--yes"]).output().unwrap().into();
    let said = said.exits(0);
    assert_eq!(said.stderr, "", "nothing is logged where nothing goes wrong");
    let mut rest = said.stdout.as_str();
    for text in [
        "a repository with a test that fails",
        "http://127.0.0.1:",
        "nothing runs before you approve exactly this",
        "mock: again fix greet.sh",
        "applies: the patch applies",
        "digest  ",
        "tests: FAIL `sh test.sh` exit 1",
        "greet.sh: said \"Hello, !\", not \"Hello, world!\"",
        "paused: did not pass: gate tests (exit 1)",
        "attempt 2 of 2 is told what failed",
        "tests: PASS `sh test.sh` exit 0",
        "branch: PASS",
        "paused: passed its gates",
        "+echo \"Hello, ${1:-world}!\"",
        "demo-1 is DONE",
        "git -C fernery-demo/repo show azolla/demo-1",
        "ls fernery-demo/export",
        "cd fernery-demo && ",
        "ticket confirm demo-1",
        "ticket reopen demo-1 --note 'mock: fix greet.sh whoever is named => everybody'",
    ] {
        let (_, after) = rest.split_once(text).unwrap_or_else(|| panic!("no {text:?} in {}", said.stdout));
        rest = after;
    }

    let demo = dir.path().join("fernery-demo");
    assert_eq!(entries(dir.path()), std::slice::from_ref(&demo));
    let repo = demo.join("repo");
    assert_eq!(git(&repo, &["for-each-ref", "--format=%(refname:short)"]), "azolla/demo-1\nmain");
    assert_eq!(git(&repo, &["status", "--porcelain"]), "");
    assert_eq!(git(&repo, &["diff", "--stat", "--format=", "main", "azolla/demo-1"]).lines().count(), 2);
    let passes = |branch: &str| {
        git(&repo, &["checkout", "--quiet", branch]);
        Command::new("sh").arg("test.sh").current_dir(&repo).output().unwrap().status.success()
    };
    assert_eq!((passes("main"), passes("azolla/demo-1")), (false, true));

    let whole = run_in(&demo, ["schema", "check", "export"]).exits(0).stdout;
    assert!(whole.contains("16 files: 16 valid"), "{whole}");
    let artifacts = ["objectives", "workorders", "output_bundles", "run_records", "pause_states"];
    for folder in artifacts {
        let files = entries(&demo.join("export").join(folder));
        assert_eq!(files.len(), 2, "{folder}");
        for file in files {
            run_in(&demo, ["schema", "check", file.to_str().unwrap()]).exits(0);
        }
    }
}

#[test]
fn what_a_demo_leaves_is_served_again() {
    let dir = empty();
    let told = run_in(dir.path(), ["demo", "--yes", "--json", "--dir", "tried"]).exits(0).json();
    assert_eq!(
        (told["status"].as_str(), told["branch"].as_str(), told["pause"]["reason"].as_str()),
        (Some("DONE"), Some("azolla/demo-1"), Some("RUN_COMPLETE"))
    );
    let verdicts: Vec<_> = told["runs"].as_array().unwrap().iter().map(|run| &run["gate_result"]).collect();
    assert_eq!(verdicts, ["FAIL", "PASS"]);
    assert_eq!(told["runs"][1]["evidence"].as_array().unwrap().len(), 7, "six gates and the branch");
    assert!(told["patch"].as_str().unwrap().starts_with("diff --git a/greet.sh b/greet.sh\n"));
    assert_eq!(told["export"]["dir"], "tried/export");

    let tried = dir.path().join("tried");
    let mut up = fernery();
    up.current_dir(&tried)
        .args(["up", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut server = up.spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(server.stdout.take().unwrap()), &mut line)
        .unwrap();
    assert!(line.starts_with("listening on "), "{line}");
    // What the demo says about reopening works.
    let note = "mock: fix greet.sh whoever is named => everybody";
    let reopened = run_in(&tried, ["ticket", "reopen", "demo-1", "--note", note]);
    let reworked = run_in(&tried, ["ticket", "show", "-f", "demo-1"]);
    let confirmed = run_in(&tried, ["ticket", "confirm", "demo-1"]);
    let verified = run_in(&tried, ["verify"]);
    server.kill().unwrap();
    server.wait().unwrap();
    reopened.exits(0);
    let said = reworked.exits(0).stdout;
    assert!(said.contains("demo-1 is DONE"), "{said}");
    let left = git(&tried.join("repo"), &["show", "azolla/demo-1:greet.sh"]);
    assert!(left.contains("# Greets everybody.") && left.contains("${1:-world}"), "{left}");
    assert!(confirmed.exits(0).stdout.contains("demo-1 is confirmed"));
    verified.exits(0);
}

/// git keeps the paths of clones' objects in lines, and takes one that begins with # for a comment.
#[test]
fn a_demo_that_comes_to_no_patch_says_why_and_what_to_do() {
    let dir = empty();
    let answer = run_in(dir.path(), ["demo", "--yes", "--json", "--dir", "it's #1"]).exits(1);
    let told = answer.json();
    assert_eq!(
        (told["status"].as_str(), told["pause"]["reason"].as_str(), told["runs"].as_array().map(Vec::len)),
        (Some("BLOCKED"), Some("GATE_FAILED"), Some(0))
    );
    assert!(told["branch"].is_null() && told["patch"].is_null(), "{told}");
    let answer = run_in(dir.path(), ["demo", "--yes", "--dir", "it's #2"]).exits(1);
    assert!(answer.stdout.contains("cannot be shared with a clone"), "{answer:?}");
    assert!(answer.stdout.contains(r"cd 'it'\''s #2' && "), "{answer:?}");
    assert!(answer.stderr.contains("demo-1 is BLOCKED"), "{answer:?}");
}

#[test]
fn a_demo_leaves_an_existing_folder_unchanged() {
    let dir = empty();
    let demo = dir.path().join("fernery-demo");
    fs::create_dir(&demo).unwrap();
    let answer = run_in(dir.path(), ["demo", "--yes"]).exits(4);
    assert!(answer.stderr.contains("already exists") && answer.stderr.contains("--dir"), "{answer:?}");
    assert_eq!(entries(&demo), [] as [PathBuf; 0]);
    let answer = run_in(dir.path(), ["demo", "--yes", "--dir", "not/there"]).exits(2);
    assert!(answer.stderr.contains("cannot create the folder not/there"), "{answer:?}");
}

#[test]
fn a_demo_that_cannot_ask_creates_nothing() {
    let dir = empty();
    for args in [&["demo"][..], &["demo", "--json"]] {
        let answer = run_in(dir.path(), args).exits(2);
        assert!(format!("{}{}", answer.stdout, answer.stderr).contains("--yes"), "{answer:?}");
    }
    for flag in ["--data", "--config", "--url"] {
        let answer = run_in(dir.path(), ["demo", "--yes", flag, "x"]).exits(2);
        assert!(answer.stderr.contains("--dir"), "{answer:?}");
    }
    assert_eq!(entries(dir.path()), [] as [PathBuf; 0]);
}

/// On a terminal that `script` makes.
#[test]
fn a_person_who_says_no_gets_no_run() {
    let dir = empty();
    let demo = format!("{} demo", env!("CARGO_BIN_EXE_fernery"));
    let mut terminal = started_by("script");
    terminal.current_dir(dir.path()).args(["--quiet", "--return", "--command", &demo, "/dev/null"]);
    let mut child =
        terminal.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script(1) is installed");
    child.stdin.take().unwrap().write_all(b"no\n").unwrap();
    let answer: Answer = child.wait_with_output().unwrap().into();
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert!(answer.stdout.contains("approve demo-1 as shown? [y/N] "), "{answer:?}");
    assert!(answer.stdout.contains("nothing was approved; fernery-demo stays"), "{answer:?}");
    let demo = dir.path().join("fernery-demo");
    assert_eq!(git(&demo.join("repo"), &["for-each-ref", "--format=%(refname:short)"]), "main");
    assert!(!demo.join("export").exists());
}

#[test]
fn a_demo_without_a_sandbox_must_be_asked_for_and_says_so() {
    let dir = empty();
    let answer = run_in(dir.path(), ["demo", "--yes", "--sandbox", "none"]).exits(0);
    assert!(answer.stdout.contains("no sandbox around the agent and the tests, as you said"), "{answer:?}");
    assert!(
        answer.stdout.matches(", sandbox none").count() == 2,
        "it is part of what is approved: {answer:?}"
    );
    let answer = run_in(dir.path(), ["demo", "--yes", "--sandbox", "jail"]).exits(2);
    assert!(answer.stderr.contains("bubblewrap"), "{answer:?}");
}

/// A PATH without git, and without bubblewrap where there is no Landlock either.
#[test]
fn what_is_missing_is_named_with_its_remedy() {
    let dir = empty();
    let mut command = fernery();
    command.current_dir(dir.path()).env("PATH", dir.path());
    let answer: Answer = command.args(["demo", "--yes", "--sandbox", "none"]).output().unwrap().into();
    let answer = answer.exits(1);
    assert!(answer.stderr.contains("install the package git"), "{answer:?}");
    assert_eq!(entries(dir.path()), [] as [PathBuf; 0], "nothing half made is left");
}

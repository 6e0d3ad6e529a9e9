//! `kill -9` at every step of a merge, on both databases: it is done or not done, and asked for again it is done once.

use super::{decisions, landed, plain, status, with_check};
use crate::fresh_database::{FreshDatabase, fresh_database};
use crate::program::at_once::at_once;
use crate::program::fernery;
use crate::yard::{Yard, eventually, git, lay_out};
use serde_json::{Value, json};
use std::fs;
use std::process::Stdio;

/// Every step of a merge. The first two acts are the approval and the confirmation.
const STEPS: [&str; 12] = [
    "act-written@2",
    "act-durable@2",
    "act-written@3",
    "act-durable@3",
    "land-claimed",
    "program-started@3",
    "land-moving",
    "land-brought",
    "land-moved",
    "land-followed",
    "land-ended",
    "land-concluded",
];

fn killed(step: &str, database: Option<&FreshDatabase>) {
    let dir = lay_out(&with_check("test -f new.txt"));
    let url = database.map(FreshDatabase::url);
    let flags: Vec<&str> = url.iter().flat_map(|url| ["--database", url]).collect();
    let yard = Yard::open_told(dir, &flags, step);
    let repo = yard.repo();
    yard.ticket("yard", "t", "mock: write new.txt new");
    yard.until("t", "DONE", |objective| objective["objective"]["status"] == "DONE");
    let before = git(&repo, &["rev-parse", "main"]);
    let mut merging = fernery()
        .current_dir(yard.server.dir.path())
        .args(["ticket", "merge", "t", "--yes"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let dir = yard.server.ended().1;
    merging.wait().unwrap();
    // It is done or not done, and nothing in between.
    let tip = git(&repo, &["rev-parse", "main"]);
    let candidate = git(&repo, &["rev-parse", "azolla/t"]);
    assert!(tip == before || tip == candidate, "killed at {step}: main is at {tip}");
    let yard = Yard::open_in_with(dir, &flags);
    super::merge(&yard, "t").exits(0);
    let done = landed(&yard, "t");
    assert_eq!(git(&repo, &["rev-parse", "main"]), candidate, "killed at {step}");
    assert_eq!(git(&repo, &["rev-list", "--count", "main"]), "2", "killed at {step}");
    assert_eq!(fs::read_to_string(repo.join("new.txt")).unwrap(), "new\n", "killed at {step}");
    assert_eq!(status(&repo), "", "killed at {step}");
    assert_eq!(decisions(&done), ["APPROVE", "CONFIRM", "MERGE"], "killed at {step}");
    let journal = yard.server.read("/v1/journal?limit=200").1;
    let ends = journal["entries"].as_array().unwrap().iter().filter(|entry| entry["act"] == "landed");
    assert_eq!(ends.count(), 1, "killed at {step}");
    assert_eq!(yard.server.read("/v1/journal/verify").1["fault"], Value::Null, "killed at {step}");
    let work = yard.server.data().join("work");
    let left = || {
        let databases = fs::read_dir(&work).unwrap().flatten();
        let folders = databases.flat_map(|of| fs::read_dir(of.path()).into_iter().flatten().flatten());
        folders.filter(|of| of.file_name().to_string_lossy().contains("-land.git")).count()
    };
    let _ = eventually(|| left() == 0);
}

#[test]
fn campaign_a_merge_killed_at_any_step_is_done_or_not_done_on_sqlite() {
    at_once(&STEPS, |step| killed(step, None));
}

#[test]
fn campaign_a_merge_killed_at_any_step_is_done_or_not_done_on_postgres() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    at_once(&STEPS, |step| {
        let database = runtime.block_on(fresh_database());
        killed(step, Some(&database));
    });
}

/// A conflict in the queue that is worked on again by itself, with a ticket behind it that waits.
const QUEUE_STEPS: [&str; 5] =
    ["act-written@2", "act-durable@2", "land-claimed", "land-ended", "land-concluded"];

fn killed_in_the_queue(step: &str, database: Option<&FreshDatabase>) {
    let dir = lay_out(&super::landing_by("on = \"confirm\"\nrework = 1"));
    let url = database.map(FreshDatabase::url);
    let flags: Vec<&str> = url.iter().flat_map(|url| ["--database", url]).collect();
    let yard = Yard::open_told(dir, &flags, step);
    let repo = yard.repo();
    yard.ticket(
        "yard",
        "t",
        "mock: first append greeting.txt t\nmock: again write greeting.txt Good morning\\nt",
    );
    let seen = yard.until("t", "DONE", |objective| objective["objective"]["status"] == "DONE");
    let mut behind = crate::yard::new_ticket("yard", "behind", "mock: write b.txt b");
    behind["after"] = json!(["t"]);
    yard.post("/v1/objectives", behind);
    super::commit_on_main(&repo, "greeting.txt", "Good morning\n");
    let confirm = |seen: &Value, nth: &str| {
        let run = seen["runs"].as_array().unwrap().last().unwrap()["run_id"].clone();
        json!({"run_id": run, "record_id": format!("the-{nth}-confirm")})
    };
    // It may die before it answers.
    let mut sent = fernery()
        .current_dir(yard.server.dir.path())
        .args(["ticket", "confirm", "t"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let dir = yard.server.ended().1;
    sent.wait().unwrap();
    let yard = Yard::open_in_with(dir, &flags);
    if yard.objective("t")["unconfirmed"] == true
        && yard.objective("t")["runs"].as_array().map(Vec::len) == Some(1)
    {
        yard.post("/v1/objectives/t/confirm", confirm(&seen, "first"));
    }
    let again = yard.until("t", "done again", |objective| {
        objective["objective"]["status"] == "DONE"
            && objective["runs"].as_array().is_some_and(|runs| runs.len() == 2)
    });
    // Those of one instant come in the order of their ids.
    let mut of_both = decisions(&again);
    of_both.sort();
    assert_eq!(of_both, ["APPROVE", "CONFIRM", "MERGE", "REOPEN"], "killed at {step}");
    let open = |objective: &Value| objective["objective"]["blocked_on"][0]["resolved"] == false;
    assert!(open(&yard.objective("behind")), "killed at {step}: it waits for the landing");
    yard.post("/v1/objectives/t/confirm", confirm(&again, "second"));
    landed(&yard, "t");
    assert!(!open(&yard.objective("behind")), "killed at {step}");
    assert_eq!(git(&repo, &["show", "main:greeting.txt"]), "Good morning\nt", "killed at {step}");
    assert_eq!(
        (git(&repo, &["rev-list", "--count", "main"]), status(&repo)),
        ("3".into(), String::new()),
        "killed at {step}"
    );
    let journal = yard.server.read("/v1/journal?limit=200").1;
    let count =
        |act: &str| journal["entries"].as_array().unwrap().iter().filter(|entry| entry["act"] == act).count();
    assert_eq!((count("not_landed"), count("landed"), count("reopen")), (1, 1, 1), "killed at {step}");
}

#[test]
fn campaign_a_conflict_in_the_queue_killed_at_any_step_is_worked_on_once_on_sqlite() {
    at_once(&QUEUE_STEPS, |step| killed_in_the_queue(step, None));
}

#[test]
fn campaign_a_conflict_in_the_queue_killed_at_any_step_is_worked_on_once_on_postgres() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    at_once(&QUEUE_STEPS, |step| {
        let database = runtime.block_on(fresh_database());
        killed_in_the_queue(step, Some(&database));
    });
}

/// A server that is asked to end while the branch moves lets git finish: no lock file is left, and nothing is half done.
#[test]
fn a_server_that_ends_while_it_lands_leaves_no_lock() {
    for step in ["land-moving", "land-brought", "land-moved"] {
        let yard = Yard::open_to_hold(&plain(), step);
        let repo = yard.repo();
        super::done(&yard, "t", "mock: write new.txt new");
        let mut merging = fernery()
            .current_dir(yard.server.dir.path())
            .args(["ticket", "merge", "t", "--yes"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        assert!(eventually(|| crate::kills::is_stopped(yard.server.pid())), "it never came to {step}");
        yard.server.signal(rustix::process::Signal::TERM);
        yard.server.signal(rustix::process::Signal::CONT);
        let dir = yard.server.ended().1;
        merging.wait().unwrap();
        let locked = || {
            let refs = fs::read_dir(repo.join(".git/refs/heads")).unwrap().flatten();
            let found = refs.chain(fs::read_dir(repo.join(".git")).unwrap().flatten());
            found.filter(|entry| entry.file_name().to_string_lossy().ends_with(".lock")).count()
        };
        assert!(eventually(|| locked() == 0), "{step}: a lock file is left");
        let yard = Yard::open_in(dir);
        super::merge(&yard, "t").exits(0);
        assert_eq!(
            (git(&repo, &["show", "main:new.txt"]), status(&repo)),
            ("new".into(), String::new()),
            "{step}"
        );
    }
}

/// A server that stood still while another took over its landing changes nothing when it wakes.
#[test]
fn a_lander_that_slept_through_its_claim_moves_nothing_twice() {
    let yard = Yard::open_to_hold(&plain(), "land-moving");
    let repo = yard.repo();
    super::done(&yard, "t", "mock: write new.txt new");
    let seen = yard.objective("t")["landing"].clone();
    yard.post("/v1/objectives/t/confirm", serde_json::json!({"run_id": seen["run_id"]}));
    let body = serde_json::json!({"run_id": seen["run_id"], "patch_sha256": seen["patch_sha256"],
        "tip": seen["base_commit"]});
    yard.post("/v1/objectives/t/merge", body);
    assert!(eventually(|| crate::kills::is_stopped(yard.server.pid())), "it never came there");
    // Somebody does by hand what it was about to do.
    git(&repo, &["merge", "-q", "--ff-only", "azolla/t"]);
    super::commit_on_main(&repo, "after.txt", "after\n");
    let tip = git(&repo, &["rev-parse", "main"]);
    yard.server.signal(rustix::process::Signal::CONT);
    landed(&yard, "t");
    assert_eq!((git(&repo, &["rev-parse", "main"]), status(&repo)), (tip, String::new()));
}

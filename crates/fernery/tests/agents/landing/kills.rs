//! `kill -9` at every step of a merge, on both databases: it is done or not done, and asked for again it is done once.

use super::{asking, decisions, done, landed, plain, stands_still, status, with_check};
use crate::fresh_database::fresh_database;
use crate::program::at_once::at_once;
use crate::yard::{Yard, eventually, git, lay_out};
use serde_json::{Value, json};
use std::fs;

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

/// A server that dies at a step, with the flags of its database.
fn dying(blueprint: &str, step: &str, flags: &[&str]) -> Yard {
    Yard::open_told(lay_out(blueprint), flags, step)
}

/// An operator asks for something, the server dies of it, and is started again.
fn died_of(yard: Yard, asked: &[&str], flags: &[&str]) -> Yard {
    let mut asking = asking(&yard, asked);
    let dir = yard.server.ended().1;
    asking.wait().unwrap();
    Yard::open_in_with(dir, flags)
}

fn on_sqlite(steps: &[&str], killed: impl Fn(&str, &[&str]) + Sync) {
    at_once(steps, |step| killed(step, &[]));
}

fn on_postgres(steps: &[&str], killed: impl Fn(&str, &[&str]) + Sync) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    at_once(steps, |step| {
        let database = runtime.block_on(fresh_database());
        killed(step, &["--database", &database.url()]);
    });
}

/// How often the journal has this act.
fn journalled(yard: &Yard, act: &str) -> usize {
    let journal = yard.server.read("/v1/journal?limit=200").1;
    journal["entries"].as_array().unwrap().iter().filter(|entry| entry["act"] == act).count()
}

fn killed(step: &str, flags: &[&str]) {
    let yard = dying(&with_check("test -f new.txt"), step, flags);
    let repo = yard.repo();
    done(&yard, "t", "mock: write new.txt new");
    let before = git(&repo, &["rev-parse", "main"]);
    let yard = died_of(yard, &["ticket", "merge", "t", "--yes"], flags);
    // It is done or not done, and nothing in between.
    let tip = git(&repo, &["rev-parse", "main"]);
    let candidate = git(&repo, &["rev-parse", "azolla/t"]);
    assert!(tip == before || tip == candidate, "killed at {step}: main is at {tip}");
    super::merge(&yard, "t").exits(0);
    let landed = landed(&yard, "t");
    assert_eq!(git(&repo, &["rev-parse", "main"]), candidate, "killed at {step}");
    assert_eq!(git(&repo, &["rev-list", "--count", "main"]), "2", "killed at {step}");
    assert_eq!(fs::read_to_string(repo.join("new.txt")).unwrap(), "new\n", "killed at {step}");
    assert_eq!(status(&repo), "", "killed at {step}");
    assert_eq!(decisions(&landed), ["APPROVE", "CONFIRM", "MERGE"], "killed at {step}");
    assert_eq!(journalled(&yard, "landed"), 1, "killed at {step}");
    assert_eq!(yard.server.read("/v1/journal/verify").1["fault"], Value::Null, "killed at {step}");
    let work = yard.server.data().join("work");
    let left = || -> Vec<_> {
        let databases = fs::read_dir(&work).unwrap().flatten();
        let folders = databases.flat_map(|of| fs::read_dir(of.path()).into_iter().flatten().flatten());
        folders.map(|of| of.file_name()).filter(|of| of.to_string_lossy().contains("-land.git")).collect()
    };
    assert!(eventually(|| left().is_empty()), "killed at {step}: it left {:?}", left());
}

#[test]
fn campaign_a_merge_killed_at_any_step_is_done_or_not_done_on_sqlite() {
    on_sqlite(&STEPS, killed);
}

#[test]
fn campaign_a_merge_killed_at_any_step_is_done_or_not_done_on_postgres() {
    on_postgres(&STEPS, killed);
}

/// A conflict in the queue that is worked on again by itself, with a ticket behind it that waits.
const QUEUE_STEPS: [&str; 5] =
    ["act-written@2", "act-durable@2", "land-claimed", "land-ended", "land-concluded"];

fn killed_in_the_queue(step: &str, flags: &[&str]) {
    let yard = dying(&super::landing_by("on = \"confirm\"\nrework = 1"), step, flags);
    let repo = yard.repo();
    let script = "mock: first append greeting.txt t\nmock: again write greeting.txt Good morning\\nt";
    let seen = done(&yard, "t", script);
    let mut behind = crate::yard::new_ticket("yard", "behind", "mock: write b.txt b");
    behind["after"] = json!(["t"]);
    yard.post("/v1/objectives", behind);
    super::commit_on_main(&repo, "greeting.txt", "Good morning\n");
    let confirm = |seen: &Value, nth: &str| {
        let run = seen["runs"].as_array().unwrap().last().unwrap()["run_id"].clone();
        json!({"run_id": run, "record_id": format!("the-{nth}-confirm")})
    };
    let yard = died_of(yard, &["ticket", "confirm", "t"], flags);
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
    for act in ["not_landed", "landed", "reopen"] {
        assert_eq!(journalled(&yard, act), 1, "killed at {step}: {act}");
    }
}

#[test]
fn campaign_a_conflict_in_the_queue_killed_at_any_step_is_worked_on_once_on_sqlite() {
    on_sqlite(&QUEUE_STEPS, killed_in_the_queue);
}

#[test]
fn campaign_a_conflict_in_the_queue_killed_at_any_step_is_worked_on_once_on_postgres() {
    on_postgres(&QUEUE_STEPS, killed_in_the_queue);
}

/// The steps of a confirmation that keeps an earlier run: the acts before it are the approval and the reopening.
const KEEP_STEPS: [&str; 2] = ["act-written@3", "act-durable@3"];

fn killed_while_it_keeps_a_run(step: &str, flags: &[&str]) {
    let yard = dying(&plain(), step, flags);
    let run = super::kept::reopen_in_vain(&yard);
    let keep = ["ticket", "confirm", "t", "--run", &run];
    let yard = died_of(yard, &keep, flags);
    let seen = yard.objective("t");
    let kept = decisions(&seen).contains(&"CONFIRM".to_string());
    let status = if kept { "DONE" } else { "BLOCKED" };
    assert_eq!(seen["objective"]["status"], status, "killed at {step}: all of it or nothing");
    // Whoever got no answer asks once more.
    yard.server.run(keep).exits(0);
    super::merge(&yard, "t").exits(0);
    let landed = landed(&yard, "t");
    assert_eq!(decisions(&landed), ["APPROVE", "REOPEN", "CONFIRM", "MERGE"], "killed at {step}");
    assert_eq!(landed["landing"]["run_id"], run.as_str(), "killed at {step}");
    assert_eq!(git(&yard.repo(), &["show", "main:new.txt"]), "new", "killed at {step}");
    assert_eq!((journalled(&yard, "confirm"), journalled(&yard, "landed")), (1, 1), "killed at {step}");
}

#[test]
fn campaign_a_run_that_is_kept_is_kept_once_whenever_the_server_is_killed_on_sqlite() {
    on_sqlite(&KEEP_STEPS, killed_while_it_keeps_a_run);
}

#[test]
fn campaign_a_run_that_is_kept_is_kept_once_whenever_the_server_is_killed_on_postgres() {
    on_postgres(&KEEP_STEPS, killed_while_it_keeps_a_run);
}

/// A server that is asked to end while the branch moves lets git finish: no lock file is left, and nothing is half done.
#[test]
fn a_server_that_ends_while_it_lands_leaves_no_lock() {
    for step in ["land-moving", "land-brought", "land-moved"] {
        let yard = Yard::open_to_hold(&plain(), step);
        let repo = yard.repo();
        done(&yard, "t", "mock: write new.txt new");
        let mut merging = asking(&yard, &["ticket", "merge", "t", "--yes"]);
        stands_still(&yard);
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
    done(&yard, "t", "mock: write new.txt new");
    let seen = yard.objective("t")["landing"].clone();
    yard.post("/v1/objectives/t/confirm", serde_json::json!({"run_id": seen["run_id"]}));
    let body = serde_json::json!({"run_id": seen["run_id"], "patch_sha256": seen["patch_sha256"],
        "tip": seen["base_commit"]});
    yard.post("/v1/objectives/t/merge", body);
    stands_still(&yard);
    // Somebody does by hand what it was about to do.
    git(&repo, &["merge", "-q", "--ff-only", "azolla/t"]);
    super::commit_on_main(&repo, "after.txt", "after\n");
    let tip = git(&repo, &["rev-parse", "main"]);
    yard.server.signal(rustix::process::Signal::CONT);
    landed(&yard, "t");
    assert_eq!((git(&repo, &["rev-parse", "main"]), status(&repo)), (tip, String::new()));
}

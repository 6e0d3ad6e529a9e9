//! The same agent on another machine: it claims for the repositories that it has, and for no other.

use crate::program::fernery;
use crate::rework::is_done;
use crate::yard::{GATES, Yard, eventually, git, lay_out};
use fernery_engine::door::stop_watch;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::{Child, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// A worker with a clone of the server's repository, in a folder of its own.
fn worker(yard: &Yard, elsewhere: &TempDir) -> Child {
    worker_told(yard, elsewhere, None)
}

/// The same, with this in its environment.
pub(crate) fn worker_told(yard: &Yard, elsewhere: &TempDir, told: Option<(&str, &str)>) -> Child {
    let data = yard.server.data();
    let read = |file: &str| fs::read_to_string(data.join(file)).unwrap().trim().to_string();
    let mut command = fernery();
    command
        .current_dir(elsewhere.path())
        .env("FERNERY_URL", read("url"))
        .env("FERNERY_TOKEN", read("worker.token"));
    command.env("FERNERY_REPOS", "app=app#main").envs(told);
    command.args([
        "worker",
        "--diazotroph",
        "PATCH_DIAZOTROPH",
        "--profile",
        "mock",
        "--json",
        "--drain",
        "0s",
    ]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().expect("it starts")
}

#[test]
fn a_worker_elsewhere_starts_from_what_the_attempt_before_it_left() {
    let blueprint = format!("extends = \"mec\"\nazolla_id = \"yard\"\n{GATES}");
    let yard = Yard::open(&blueprint);
    let elsewhere = tempfile::tempdir().unwrap();
    git(elsewhere.path(), &["clone", "-q", yard.repo().to_str().unwrap(), "app"]);
    let mut worker = worker(&yard, &elsewhere);
    yard.ticket("yard", "t", "mock: first write one.txt 1");
    yard.until("t", "done", |objective| is_done(objective, 1));
    yard.server.run(["ticket", "reopen", "t", "--note", "mock: write two.txt 2"]).exits(0);
    let done = yard.until("t", "done again", |objective| is_done(objective, 2));
    assert_eq!(done["output_bundles"][1]["metadata"]["started_from"]["how"], "candidate", "{done:#}");
    let patch = done["output_bundles"][1]["content"].as_str().unwrap();
    assert!(patch.contains("b/one.txt") && patch.contains("b/two.txt"), "{patch}");
    worker.kill().unwrap();
    worker.wait().unwrap();
}

#[test]
fn a_worker_elsewhere_makes_the_patch_and_the_server_judges_it() {
    let blueprint = format!("extends = \"mec\"\nazolla_id = \"yard\"\n{GATES}");
    let dir = lay_out(&blueprint);
    git(dir.path(), &["clone", "-q", "--bare", "repo", "other"]);
    let yard = Yard::open_in_with(dir, &["--repos", "other=other#main"]);
    let elsewhere = tempfile::tempdir().unwrap();
    git(elsewhere.path(), &["clone", "-q", yard.repo().to_str().unwrap(), "app"]);
    yard.ticket("yard", "t", "mock: write far.txt far\\n");
    let mut lacking = crate::yard::new_ticket("yard", "lacking", "mock: ok");
    lacking["metadata"]["repo_ref"] = "other".into();
    yard.post("/v1/objectives", lacking);
    yard.approve("lacking");
    let mut worker = worker(&yard, &elsewhere);
    let done = yard.until("t", "done", |objective| objective["objective"]["status"] == "DONE");
    let said = &done["output_bundles"][0]["metadata"];
    assert_eq!(
        (said["executor"].as_str(), said["outcome"].as_str()),
        (Some("mock"), Some("PATCH")),
        "{said}"
    );
    assert_eq!(git(&yard.repo(), &["show", "azolla/t:far.txt"]), "far");
    assert_eq!(
        git(&elsewhere.path().join("app"), &["branch", "--list", "azolla/*"]),
        "",
        "the worker leaves no branch"
    );
    let waits =
        yard.until("lacking", "nobody claims it", |objective| objective["waiting"]["code"] == "no_worker");
    assert_eq!(waits["objective"]["status"], "IN_PROGRESS", "{waits:#}");

    // Cancelled while it runs, and deaf to that: a heartbeat and the grace later its tree is gone, and its work is captured.
    yard.ticket("yard", "c", "mock: write half.txt half\\n\nmock: deaf");
    let home = format!("HOME={}", elsewhere.path().canonicalize().unwrap().join(".fernery").display());
    assert!(eventually(|| !crate::yard::marked(&home).is_empty()), "the agent is at work");
    let began = || {
        fs::read_dir(elsewhere.path().join(".fernery/work/elsewhere"))
            .is_ok_and(|all| all.flatten().any(|run| run.path().join("tree/half.txt").exists()))
    };
    assert!(eventually(began), "it has changed something");
    let since = stop_watch();
    yard.server.run(["ticket", "cancel", "c"]).exits(0);
    assert!(eventually(|| crate::yard::marked(&home).is_empty()), "nothing of it lives");
    // A lease of two seconds has its heartbeats, an agent has a grace of five; the rest is for a busy machine.
    let took = since.elapsed();
    assert!(took < Duration::from_secs(2 + 5 + 20), "it took {took:?}");
    let ended = yard.judged("c");
    assert!(ended["output_bundles"][0]["content"].as_str().unwrap().contains("+half"), "{ended:#}");
    let kept = |captured: bool| {
        let trash =
            fernery().current_dir(elsewhere.path()).args(["trash", "list", "--json"]).output().unwrap();
        let all: Vec<serde_json::Value> = serde_json::from_slice(&trash.stdout).unwrap();
        all.iter().filter(|of| of["captured"] == captured).count()
    };
    assert!(eventually(|| kept(true) == 2), "the server has taken both");
    // Ended while it runs: what it had made was handed in nowhere, and stays.
    yard.ticket("yard", "d", "mock: write half.txt half\\n\nmock: hang");
    assert!(eventually(began), "it has changed something");
    kill_process(Pid::from_raw(worker.id() as i32).unwrap(), Signal::TERM).unwrap();
    assert!(worker.wait().unwrap().success());
    assert_eq!((kept(true), kept(false)), (2, 1));

    // Killed while it runs: its agent dies with it, and the next worker keeps what was made and goes on.
    let mut killed = self::worker(&yard, &elsewhere);
    assert!(eventually(began), "it has changed something");
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(eventually(|| crate::yard::marked(&home).is_empty()), "nothing of it lives");
    let mut next = self::worker(&yard, &elsewhere);
    assert!(eventually(|| kept(false) == 2), "its work is in the trash");
    yard.server.run(["ticket", "cancel", "d"]).exits(0);
    assert_eq!(yard.judged("d")["runs"].as_array().unwrap().len(), 1);
    kill_process(Pid::from_raw(next.id() as i32).unwrap(), Signal::TERM).unwrap();
    assert!(next.wait().unwrap().success());
}

#[test]
fn a_worker_without_repository_or_profile_says_what_is_missing() {
    let elsewhere = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let answer = fernery().current_dir(elsewhere.path()).args(args).output().unwrap();
        assert_eq!(answer.status.code(), Some(2), "{args:?}");
        String::from_utf8_lossy(&answer.stderr).into_owned()
    };
    let said = run(&["worker", "--diazotroph", "PATCH_DIAZOTROPH", "--profile", "mock"]);
    assert!(said.contains("[repos]"), "{said}");
    let said = run(&["worker", "--diazotroph", "PATCH_DIAZOTROPH"]);
    assert!(said.contains("--profile"), "{said}");
    let said = run(&["worker", "--diazotroph", "TRIAGE_DIAZOTROPH", "--profile", "mock"]);
    assert!(said.contains("PATCH_DIAZOTROPH"), "{said}");
    let ignored = [["--", "true"], ["--output", "json"], ["--no-retry-exit", "3"], ["--kill-grace", "1s"]];
    for words in ignored {
        let all = ["worker", "--diazotroph", "PATCH_DIAZOTROPH", "--profile", "mock"];
        let said = run(&[&all[..], &words].concat());
        assert!(said.contains("cannot be used with") && said.contains("--diazotroph"), "{said}");
    }
}

//! `up` killed at every step of an agent's run: no process of it lives on, its work is captured or in the trash, one run
//! record ends it, and the operator's repository has no new ref but possibly the one branch.

use crate::yard::{Doomed, GATES, Yard, blueprint, branches, eventually, git, lay_out, marked};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;

const STEPS: [&str; 10] = [
    "event-scheduled",
    "workorder-claimed",
    "agent-cloned",
    "agent-ended",
    "agent-captured",
    "workorder-ran",
    "workorder-handed-in",
    "gate-passed",
    "gate-branched",
    "gate-judged",
];

const SCRIPT: &str = "mock: write new.txt new\\n";

fn comes_to_one_end(dir: tempfile::TempDir, step: &str) -> Yard {
    let yard = Yard::open_in(dir);
    yard.ticket("yard", "t", SCRIPT);
    let done = yard.until("t", step, |objective| objective["objective"]["status"] == "DONE");
    assert_eq!(done["runs"].as_array().unwrap().len(), 1, "killed at {step}: {done:#}");
    assert_eq!(done["output_bundles"].as_array().unwrap().len(), 1, "killed at {step}");
    assert_eq!(yard.branches(), ["refs/heads/azolla/t"], "killed at {step}");
    assert_eq!(git(&yard.repo(), &["show", "azolla/t:new.txt"]), "new", "killed at {step}");
    let said = done["runs"][0]["evidence"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
    let named = said["log_tail"].as_str().unwrap_or_default();
    let commit = git(&yard.repo(), &["rev-parse", "azolla/t"]);
    assert_eq!(named, format!("azolla/t at {commit}"), "killed at {step}: {done:#}");
    yard
}

#[test]
fn campaign_agents_killed_at_every_step_come_to_one_end() {
    for step in STEPS {
        let dir = lay_out(&blueprint(GATES));
        let mut doomed = Doomed::start(step, dir.path());
        doomed.ticket(dir.path(), "yard", "t", SCRIPT);
        assert!(eventually(|| doomed.is_dead()), "it never came to {step}");
        comes_to_one_end(dir, step);
    }
}

/// The guards of a server: its children that start programs.
fn guards(of: u32) -> Vec<i32> {
    let children = fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap_or_default();
    let all = fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten().flatten();
    let all = all.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    all.chain([children])
        .flat_map(|line| line.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>())
        .collect()
}

#[test]
fn agents_that_survive_the_death_of_server_and_guard_are_ended_before_anybody_takes_over() {
    for with_guard in [false, true] {
        let dir = lay_out(&blueprint(GATES));
        let mut doomed = Doomed::start("never", dir.path());
        doomed.ticket(dir.path(), "yard", "t", "mock: first write new.txt new\\n\nmock: first wait 300s");
        let home = format!("HOME={}", dir.path().canonicalize().unwrap().join(".fernery").display());
        let work = dir.path().join(".fernery/work");
        let wrote = || find(&work, "new.txt");
        assert!(eventually(wrote), "the agent is at work");
        assert!(!marked(&home).is_empty());
        let server = doomed.child.id();
        let mut kill = vec![server as i32];
        if with_guard {
            kill.extend(guards(server));
        }
        // Stopped first, so that none sees the other die.
        for pid in &kill {
            kill_process(Pid::from_raw(*pid).unwrap(), Signal::STOP).unwrap();
        }
        for pid in kill.iter().rev() {
            kill_process(Pid::from_raw(*pid).unwrap(), Signal::KILL).unwrap();
        }
        assert!(eventually(|| doomed.is_dead()));
        let yard = Yard::open_in(dir);
        assert!(
            marked(&home).is_empty(),
            "it serves, and nothing of the run before lives (with the guard: {with_guard})"
        );
        // The next attempt does not wait: it is told nothing of the first, which says nothing about the work.
        yard.server.run(["ticket", "cancel", "t"]).exits(0);
        let ended = yard.judged("t");
        assert_eq!(ended["runs"].as_array().unwrap().len(), 1, "{ended:#}");
        let rescued = || {
            let trash = yard.server.run(["trash", "list", "--json"]).exits(0).json();
            trash.to_string().contains("captured.patch")
        };
        assert!(eventually(rescued), "what it had made is kept");
        assert_eq!(branches(&yard.repo()), Vec::<String>::new());
    }
}

fn find(folder: &std::path::Path, name: &str) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| {
        entry.file_name() == name
            || entry.file_type().is_ok_and(|of| of.is_dir()) && find(&entry.path(), name)
    })
}

#[test]
fn a_server_that_is_asked_to_end_hands_the_ticket_back_and_keeps_the_work() {
    let yard = Yard::open(&blueprint(GATES));
    yard.ticket("yard", "t", "mock: first write new.txt new\\n\nmock: first wait 300s");
    let work = yard.server.data().join("work");
    assert!(eventually(|| find(&work, "new.txt")), "the agent is at work");
    yard.server.signal(Signal::TERM);
    let (status, dir) = yard.server.ended();
    assert!(status.success(), "{status}");
    let trash =
        fs::read_dir(dir.path().join(".fernery/trash")).unwrap().flatten().next().expect("a folder").path();
    assert!(fs::read_to_string(trash.join("captured.patch")).unwrap().contains("+new"));
    let yard = Yard::open_in(dir);
    let again = yard.until("t", "another attempt", |objective| {
        objective["workorders"].as_array().is_some_and(|all| all.len() == 1)
            && find(&yard.server.data().join("work"), "new.txt")
    });
    assert_eq!(again["runs"].as_array().map(Vec::len), Some(0), "{again:#}");
    yard.server.run(["ticket", "cancel", "t"]).exits(0);
    let ended: Value = yard.judged("t");
    assert_eq!(ended["output_bundles"][0]["metadata"]["outcome"], "CANCELLED");
    assert!(ended["output_bundles"][0]["content"].as_str().unwrap().contains("+new"), "{ended:#}");
}

#[test]
fn a_guard_that_is_killed_takes_its_agent_along_and_the_work_is_kept() {
    let yard = Yard::open(&blueprint(GATES));
    yard.ticket("yard", "t", "mock: first write new.txt new\\n\nmock: first wait 300s");
    let (work, home) = (yard.server.data().join("work"), format!("HOME={}", yard.server.data().display()));
    assert!(eventually(|| find(&work, "new.txt")), "the agent is at work");
    let before = marked(&home);
    for pid in guards(yard.server.pid()) {
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    }
    assert!(eventually(|| marked(&home).iter().all(|pid| !before.contains(pid))), "nothing of it lives");
    let kept = || {
        let trash = yard.server.run(["trash", "list", "--json"]).exits(0).json();
        trash.to_string().contains("an end that anybody saw")
    };
    assert!(eventually(kept), "its work is in the trash");
    yard.server.run(["ticket", "cancel", "t"]).exits(0);
    assert_eq!(yard.judged("t")["runs"].as_array().unwrap().len(), 1);
    assert!(eventually(|| marked(&home).is_empty()));
    assert!(yard.branches().is_empty());
}

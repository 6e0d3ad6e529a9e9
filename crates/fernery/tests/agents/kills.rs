//! `kill -9` at every step of an agent's run: of `up`, of the guard that the agent runs under, and of both. Each time nothing
//! of the old run lives on, its work is in the trash, one run record ends it, and the operator's repository has no new ref but
//! the one branch.

use crate::program::at_once::at_once;
use crate::program::{fernery, run_in};
use crate::yard::{GATES, Yard, blueprint, eventually, git, has_text, marks, written};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// How far a run is at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    /// No program of it runs.
    Quiet,
    /// A guard waits.
    Guarded,
    /// A program runs under a guard.
    Running,
    /// The agent runs under a guard, and has changed something.
    AtWork,
}

/// Every step of a run that a failpoint marks, in their order. The second guard is that of the gate's program.
const STEPS: [(&str, Run); 20] = [
    ("readiness-emitted", Run::Quiet),
    ("event-claimed", Run::Quiet),
    ("event-scheduled", Run::Quiet),
    ("workorder-claimed", Run::Quiet),
    ("agent-cloned", Run::Quiet),
    ("guard-ready", Run::Guarded),
    ("program-started", Run::Running),
    ("agent-heard", Run::AtWork),
    ("agent-ended", Run::Quiet),
    ("agent-captured", Run::Quiet),
    ("workorder-ran", Run::Quiet),
    ("bundle-written", Run::Quiet),
    ("workorder-handed-in", Run::Quiet),
    ("gate-claimed", Run::Quiet),
    ("guard-ready@2", Run::Guarded),
    ("program-started@2", Run::Running),
    ("gate-passed", Run::Quiet),
    ("gate-branched", Run::Quiet),
    ("gate-evidence", Run::Quiet),
    ("gate-judged", Run::Quiet),
];

/// Who is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Victim {
    /// The process that the executor is in: `up`, or a worker.
    Host,
    Guard,
    Both,
}

/// It leaves a process behind in a session of its own, and is at work long enough to be found there, where it is looked for.
pub(crate) fn script(run: Run) -> String {
    format!(
        "mock: write new.txt new\\n\nmock: daemon\nmock: wait {}",
        if run == Run::Quiet { "100ms" } else { "3s" }
    )
}

/// Gates with a program that takes long enough to be found at work, where it is looked for.
fn gates(run: Run) -> String {
    let takes = if run == Run::Quiet { "0.1" } else { "3" };
    let check = format!(
        "{{ kind = \"command\", name = \"check\", argv = [\"sh\", \"-c\", \"sleep {takes}; grep -q new new.txt\"], timeout = \"20s\" }}"
    );
    GATES.replace("}]\n", &format!("}}, {check}]\n"))
}

/// What must not change in the operator's repository: everything but objects and the one branch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RepoState {
    git: Vec<Option<Vec<u8>>>,
    refs: Vec<String>,
    files: Vec<(PathBuf, Vec<u8>)>,
}

pub(crate) fn repo_state(repo: &Path) -> RepoState {
    let git = ["HEAD", "index", "config", "packed-refs", "ORIG_HEAD", "logs/HEAD"];
    let git = git.map(|file| fs::read(repo.join(".git").join(file)).ok()).to_vec();
    let refs = crate::yard::git(repo, &["for-each-ref", "--format=%(refname) %(objectname)"]);
    let refs =
        refs.lines().filter(|line| !line.starts_with("refs/heads/azolla/t ")).map(str::to_string).collect();
    let entries = fs::read_dir(repo).unwrap().flatten().filter(|entry| entry.file_name() != ".git");
    let mut files: Vec<_> =
        entries.map(|entry| (entry.path(), fs::read(entry.path()).unwrap_or_default())).collect();
    files.sort();
    RepoState { git, refs, files }
}

/// The guards of a server: its children that start programs.
pub(crate) fn guards(of: u32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten().flatten();
    let children = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let pids: BTreeSet<i32> = children
        .flat_map(|line| line.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>())
        .collect();
    let is_guard = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.starts_with(b"fernery\0worker-guard\0")
    };
    pids.into_iter().filter(is_guard).collect()
}

pub(crate) fn is_stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
}

pub(crate) fn kill(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// Attempts that have changed something in their folders, where those still are.
pub(crate) fn with_work(data: &Path) -> Vec<String> {
    let databases = fs::read_dir(data.join("work")).into_iter().flatten().flatten();
    let runs = databases.flat_map(|of| fs::read_dir(of.path()).into_iter().flatten().flatten());
    let changed = runs.filter(|run| has_text(&run.path().join("tree/new.txt")));
    let names = changed.filter_map(|run| run.file_name().into_string().ok());
    // run-, the workorder's id, -, the attempt's id.
    names
        .filter_map(|name| name.strip_prefix("run-").and_then(|rest| rest.get(37..)).map(str::to_string))
        .collect()
}

/// Whether what an attempt had made is in the trash of the data directory in this folder.
pub(crate) fn kept(dir: &Path, attempt: &str) -> bool {
    let trash = run_in(dir, ["trash", "list", "--json"]).exits(0).json();
    let found = trash.as_array().unwrap().iter().find(|of| of["attempt_id"] == *attempt).cloned();
    let patch = found.and_then(|of| fs::read_to_string(dir.join(of["patch"].as_str()?)).ok());
    patch.is_some_and(|patch| patch.contains("+new"))
}

/// One killing, and what there is afterwards.
fn killed(victim: Victim, step: &str, run: Run) {
    let at = format!("{victim:?} killed at {step}");
    let yard = Yard::open_to_hold(&blueprint(&gates(run)), step);
    let (server, data, repo) = (yard.server.pid(), yard.server.data(), yard.repo());
    let before = repo_state(&repo);
    yard.post("/v1/objectives", crate::yard::new_ticket("yard", "t", &script(run)));
    // It may be stopped before it has answered.
    let mut approving = fernery()
        .current_dir(yard.server.dir.path())
        .args(["ticket", "approve", "t", "--yes"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert!(eventually(|| is_stopped(server)), "{at}: it never came there");
    if run == Run::AtWork {
        assert!(eventually(|| !with_work(&data).is_empty()), "{at}: the agent has changed nothing");
    }
    // A program comes a moment after its guard has the order, which is when the server stops.
    if !matches!(run, Run::Quiet | Run::Guarded) {
        assert!(eventually(|| !marks(&data).is_empty()), "{at}: nothing runs");
    }
    let (work, alive, guards) = (with_work(&data), marks(&data), guards(server));
    assert_eq!(!guards.is_empty(), run != Run::Quiet, "{at}: {guards:?}");
    let lives = || marks(&data).iter().any(|mark| alive.contains(mark));
    if victim != Victim::Host {
        guards.iter().for_each(|guard| kill(*guard, Signal::KILL));
    }
    let yard = match victim {
        Victim::Guard => {
            kill(server as i32, Signal::CONT);
            yard
        }
        Victim::Host | Victim::Both => {
            kill(server as i32, Signal::KILL);
            let dir = yard.server.ended().1;
            let _ = approving.kill();
            let yard = Yard::open_in(dir);
            assert!(!lives(), "{at}: it serves again, and something of the run before lives");
            // The approval may have been lost with the answer to it.
            yard.approve("t");
            yard
        }
    };
    approving.wait().unwrap();
    let done = yard.until("t", &at, |objective| objective["objective"]["status"] == "DONE");
    assert!(!lives(), "{at}: something of the run before lives");
    let count = |list: &str| done[list].as_array().map(Vec::len);
    let counts = ["workorders", "runs", "output_bundles"].map(count);
    assert_eq!(counts, [Some(1); 3], "{at}: {done:#}");
    assert_eq!(yard.branches(), ["refs/heads/azolla/t"], "{at}");
    assert_eq!(git(&repo, &["show", "azolla/t:new.txt"]), "new", "{at}");
    let said = done["runs"][0]["evidence"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
    let commit = git(&repo, &["rev-parse", "azolla/t"]);
    assert_eq!(said["log_tail"], format!("azolla/t at {commit}"), "{at}: {done:#}");
    assert_eq!(repo_state(&repo), before, "{at}: the operator's repository");
    let dir = yard.server.dir.path();
    for attempt in work {
        let trash = || yard.server.run(["trash", "list", "--json"]).stdout;
        assert!(
            eventually(|| kept(dir, &attempt)),
            "{at}: what attempt {attempt} had made is not in the trash: {}",
            trash()
        );
    }
}

fn all_killed(victim: Victim) {
    let steps: Vec<_> =
        STEPS.into_iter().filter(|(_, run)| victim == Victim::Host || *run != Run::Quiet).collect();
    at_once(&steps, |(step, run)| killed(victim, step, *run));
}

#[test]
fn campaign_agents_whose_server_is_killed_at_any_step_come_to_one_end() {
    all_killed(Victim::Host);
}

#[test]
fn campaign_agents_whose_guard_is_killed_at_any_step_come_to_one_end() {
    all_killed(Victim::Guard);
}

#[test]
fn campaign_agents_whose_server_and_guard_are_killed_at_any_step_come_to_one_end() {
    all_killed(Victim::Both);
}

#[test]
fn a_server_that_is_asked_to_end_hands_the_ticket_back_and_keeps_the_work() {
    let yard = Yard::open(&blueprint(GATES));
    yard.ticket("yard", "t", "mock: first write new.txt new\\n\nmock: first wait 300s");
    let work = yard.server.data().join("work");
    assert!(eventually(|| written(&work, "new.txt")), "the agent is at work");
    yard.server.signal(Signal::TERM);
    let (status, dir) = yard.server.ended();
    assert!(status.success(), "{status}");
    let trash =
        fs::read_dir(dir.path().join(".fernery/trash")).unwrap().flatten().next().expect("a folder").path();
    assert!(fs::read_to_string(trash.join("captured.patch")).unwrap().contains("+new"));
    let yard = Yard::open_in(dir);
    let again = yard.until("t", "another attempt", |objective| {
        objective["workorders"].as_array().is_some_and(|all| all.len() == 1)
            && written(&yard.server.data().join("work"), "new.txt")
    });
    assert_eq!(again["runs"].as_array().map(Vec::len), Some(0), "{again:#}");
    yard.server.run(["ticket", "cancel", "t"]).exits(0);
    let ended: Value = yard.judged("t");
    assert_eq!(ended["output_bundles"][0]["metadata"]["outcome"], "CANCELLED");
    assert!(ended["output_bundles"][0]["content"].as_str().unwrap().contains("+new"), "{ended:#}");
}

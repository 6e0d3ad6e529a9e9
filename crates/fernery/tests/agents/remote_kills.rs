//! `kill -9` at every step of an agent's run on another machine: of the worker, of the guard, and of both. The server is as it
//! was; the next worker keeps what was made, and the ticket comes to one end.

use crate::kills::{Run, Victim, guards, is_stopped, kept, kill, repo_state, script, with_work};
use crate::program::at_once::at_once;
use crate::remote::worker_told;
use crate::yard::{GATES, Yard, eventually, git, lay_out, marks};
use rustix::process::Signal;

/// The steps of a run that are taken where the worker is.
const STEPS: [(&str, Run); 6] = [
    ("agent-cloned", Run::Quiet),
    ("guard-ready", Run::Guarded),
    ("program-started", Run::Running),
    ("agent-heard", Run::AtWork),
    ("agent-ended", Run::Quiet),
    ("agent-captured", Run::Quiet),
];

fn killed(victim: Victim, step: &str, run: Run) {
    let at = format!("elsewhere, {victim:?} killed at {step}");
    let yard = Yard::open_in(lay_out(&format!("extends = \"mec\"\nazolla_id = \"yard\"\n{GATES}")));
    let elsewhere = tempfile::tempdir().unwrap();
    git(elsewhere.path(), &["clone", "-q", yard.repo().to_str().unwrap(), "app"]);
    let (repo, before) = (yard.repo(), [repo_state(&yard.repo()), repo_state(&elsewhere.path().join("app"))]);
    yard.ticket("yard", "t", &script(run));
    let hold = format!("hold:{step}");
    let mut worker = worker_told(&yard, &elsewhere, Some(("FERNERY_FAILPOINT", hold.as_str())));
    let data = elsewhere.path().join(".fernery");
    assert!(eventually(|| is_stopped(worker.id())), "{at}: it never came there");
    if run == Run::AtWork {
        assert!(eventually(|| !with_work(&data).is_empty()), "{at}: the agent has changed nothing");
    }
    let (work, alive, guards) = (with_work(&data), marks(&data), guards(worker.id()));
    assert_eq!(!guards.is_empty(), run != Run::Quiet, "{at}: {guards:?}");
    let lives = || marks(&data).iter().any(|mark| alive.contains(mark));
    if victim != Victim::Guard {
        kill(worker.id() as i32, Signal::KILL);
    }
    if victim != Victim::Host {
        guards.iter().for_each(|guard| kill(*guard, Signal::KILL));
    }
    if victim == Victim::Guard {
        kill(worker.id() as i32, Signal::CONT);
    } else {
        worker.wait().unwrap();
        worker = worker_told(&yard, &elsewhere, None);
    }
    let done = yard.until("t", &at, |objective| objective["objective"]["status"] == "DONE");
    assert!(!lives(), "{at}: something of the run before lives");
    let counts = ["workorders", "runs", "output_bundles"].map(|list| done[list].as_array().map(Vec::len));
    assert_eq!(counts, [Some(1); 3], "{at}: {done:#}");
    assert_eq!(yard.branches(), ["refs/heads/azolla/t"], "{at}");
    let after = [repo_state(&repo), repo_state(&elsewhere.path().join("app"))];
    assert_eq!(after, before, "{at}: the operator's repositories");
    for attempt in work {
        assert!(eventually(|| kept(elsewhere.path(), &attempt)), "{at}: the work of {attempt} is not kept");
    }
    kill(worker.id() as i32, Signal::TERM);
    assert!(worker.wait().unwrap().success(), "{at}");
}

#[test]
fn campaign_agents_elsewhere_killed_at_any_step_come_to_one_end() {
    let of = |victim| STEPS.into_iter().map(move |(step, run)| (victim, step, run));
    let all: Vec<_> = [Victim::Host, Victim::Guard, Victim::Both].into_iter().flat_map(of).collect();
    let there = |(victim, _, run): &(Victim, &str, Run)| *victim == Victim::Host || *run != Run::Quiet;
    at_once(&all.into_iter().filter(there).collect::<Vec<_>>(), |(victim, step, run)| {
        killed(*victim, step, *run);
    });
}

//! An attempt that repeats the one before it stops its ticket, whatever is left of retries and envelope.

use crate::pipeline::patches::{named, scheduled};
use crate::pipeline::world::{World, bad, deciding, draft};
use crate::support::backend::Backend;
use fernery_core::artifact::{GateResult, ObjectiveId, ObjectiveStatus, PauseReason};
use fernery_core::patch::protects::Touched;
use fernery_core::pipeline::evidence::Evidence;
use fernery_core::pipeline::protection::{Informing, Protected, Version};
use fernery_engine::pipeline::decisions;
use fernery_engine::pipeline::objectives;
use fernery_engine::pipeline::scheduling::Scheduled;
use fernery_engine::pipeline::{judging, reading};
use serde_json::{Value, json};

on_both_backends!(
    a_failure_that_repeats_itself_stops_the_ticket_at_one_action,
    a_failure_of_an_earlier_approval_is_not_repeated,
    the_same_patch_on_the_same_commit_stops_the_ticket,
    a_gate_that_fails_in_the_same_way_stops_the_ticket,
    evidence_of_both_runs_is_kept_and_the_verdict_of_the_base_comes_out_again,
);

const PATIENT: &str = "[retry]\ngate_failures = 9\n[envelope]\nattempts = 9\n";

fn failing(title: &str) -> Value {
    json!({"title": title, "content": "", "notes": "", "metadata": {"outcome": "FAILED"}})
}

async fn attempt<B: Backend>(world: &World<B>, ticket: &ObjectiveId, result: Value) -> ObjectiveStatus {
    assert!(matches!(world.pass().await[..], [Scheduled::Workorder(_)]));
    let job = world.claim().await.expect("its job");
    world.hand_in(&job, result).await;
    world.judge().await;
    world.status(ticket).await
}

/// It is BLOCKED at a pause with one action, and says why.
async fn stopped<B: Backend>(world: &World<B>, ticket: &ObjectiveId, why: &str) {
    let row = world.row(ticket).await;
    assert_eq!(row.objective.status, ObjectiveStatus::Blocked);
    let open: Vec<_> = row.objective.blocked_on.iter().filter(|b| !b.resolved).collect();
    assert_eq!(open.len(), 1);
    assert!(open[0].description.contains(why), "{open:?}");
    let last = world.chain(ticket).await.pauses.pop().expect("a pause").pause;
    assert_eq!(last.reason, PauseReason::GateFailed);
    assert_eq!(last.prioritized_actions.len(), 1, "{last:?}");
    assert!(last.prioritized_actions[0].contains("ticket edit t"), "{last:?}");
}

async fn a_failure_that_repeats_itself_stops_the_ticket_at_one_action<B: Backend>() {
    let (world, ticket) = World::<B>::with_ticket(PATIENT).await;
    assert_eq!(attempt(&world, &ticket, failing("3 of 9 in 1.5s")).await, ObjectiveStatus::Todo);
    assert_eq!(attempt(&world, &ticket, failing("something else")).await, ObjectiveStatus::Todo);
    assert_eq!(
        attempt(&world, &ticket, failing("3 of 9 in 1.5s")).await,
        ObjectiveStatus::Todo,
        "not the last"
    );
    attempt(&world, &ticket, failing("4 of 9 in 20ms")).await;
    stopped(&world, &ticket, "gate outcome failed in the same way").await;
    assert_eq!(world.row(&ticket).await.spent.attempts, 4, "five of the envelope are left");
    let run = world.chain(&ticket).await.runs.pop().expect("a run");
    let again = world.substrate.read(move |sql| judging::replay(sql, &run)).await.expect("read");
    let (record, verdict) = again.expect("judged again");
    assert_eq!((record.gate_result, record.gate_reason), verdict.recorded());
    // Unblocked without a change it comes to the same, and stops again; with another failure it goes on.
    assert_eq!(world.unblock(&ticket).await.expect("unblocked").objective.status, ObjectiveStatus::Todo);
    attempt(&world, &ticket, failing("5 of 9 in 3s")).await;
    stopped(&world, &ticket, "gate outcome failed in the same way").await;
    world.unblock(&ticket).await.expect("unblocked");
    assert_eq!(attempt(&world, &ticket, failing("another")).await, ObjectiveStatus::Todo);
}

async fn a_failure_of_an_earlier_approval_is_not_repeated<B: Backend>() {
    let (world, ticket) = World::<B>::with_ticket(PATIENT).await;
    for _ in 0..2 {
        attempt(&world, &ticket, bad()).await;
    }
    stopped(&world, &ticket, "in the same way").await;
    let (of, other) = (ticket.clone(), draft("Do it otherwise"));
    world.act(move |sql, who| objectives::edit(sql, who, &of, &other)).await.expect("edited");
    assert_eq!(world.unblock(&ticket).await.expect("unblocked").objective.status, ObjectiveStatus::New);
    let (of, plain) = (ticket.clone(), deciding(None, None));
    world.act(move |sql, who| decisions::approve(sql, who, &of, &plain)).await.expect("approved");
    assert_eq!(attempt(&world, &ticket, bad()).await, ObjectiveStatus::Todo, "the first of this approval");
    attempt(&world, &ticket, bad()).await;
    stopped(&world, &ticket, "in the same way").await;
}

/// With a repository, and a command that judges.
async fn on_a_repository<B: Backend>() -> (World<B>, ObjectiveId) {
    let gates = "gates = [{kind = \"applies\"}, {kind = \"command\", name = \"tests\", argv = [\"x\"]}]\n";
    let world = World::<B>::new(&format!("{gates}{PATIENT}")).await;
    let ticket = named(&world, "t", json!({"repo_ref": "app"})).await;
    world.approve(&ticket).await.expect("approved");
    (world, ticket)
}

/// An attempt from this commit with this patch, which the command fails with this log.
async fn patched<B: Backend>(
    world: &World<B>,
    ticket: &ObjectiveId,
    (commit, patch): (&str, &str),
    (exit, log): (i32, &str),
) -> ObjectiveStatus {
    let job = scheduled(world, commit).await;
    let result = json!({"title": "a patch", "content": patch, "notes": "", "metadata": {"outcome": "PATCH"}});
    world.hand_in(&job, result).await;
    let held = world.take_executed("gate").await.pop().expect("executed");
    let found =
        |gate: &str, result| Evidence { gate: gate.into(), result: Some(result), ..Evidence::default() };
    let (exit, log_tail) = (Some(exit), log.to_string());
    let touched = Touched { kept: vec!["Makefile".into()], allowed: vec!["tests/a".into()] };
    let informing = Informing { exit: Some(0), result: Some(GateResult::Pass), ..Informing::default() };
    let protected = Protected::of(&touched, Some(informing));
    let evidence = [
        found("applies", GateResult::Pass),
        Evidence { exit, log_tail, protected, ..found("tests", GateResult::Fail) },
    ];
    world.substrate.transact(move |sql| judging::conclude(sql, &held, &evidence)).await.expect("judged");
    world.status(ticket).await
}

async fn the_same_patch_on_the_same_commit_stops_the_ticket<B: Backend>() {
    let (world, ticket) = on_a_repository::<B>().await;
    assert_eq!(patched(&world, &ticket, ("c1", "p1"), (1, "a")).await, ObjectiveStatus::Todo);
    assert_eq!(patched(&world, &ticket, ("c1", "p2"), (1, "b")).await, ObjectiveStatus::Todo);
    assert_eq!(patched(&world, &ticket, ("c2", "p2"), (1, "c")).await, ObjectiveStatus::Todo, "another base");
    patched(&world, &ticket, ("c2", "p2"), (2, "d")).await;
    stopped(&world, &ticket, "the same patch").await;
    let of = ticket.clone();
    let last = world.substrate.read(move |sql| reading::last_run(sql, &of)).await.expect("read");
    assert_eq!(last.expect("a run").record.gate_result, GateResult::Fail);
}

async fn a_gate_that_fails_in_the_same_way_stops_the_ticket<B: Backend>() {
    let (world, ticket) = on_a_repository::<B>().await;
    let log = "running\n/tmp/x1/t.rs:3:1: wrong\nfailed after 1.2s";
    assert_eq!(patched(&world, &ticket, ("c", "p1"), (1, log)).await, ObjectiveStatus::Todo);
    assert_eq!(patched(&world, &ticket, ("c", "p2"), (2, log)).await, ObjectiveStatus::Todo, "another exit");
    patched(&world, &ticket, ("c", "p3"), (2, "running\n/tmp/y/t.rs:14:1: wrong\nfailed after 800ms\n"))
        .await;
    stopped(&world, &ticket, "gate tests failed in the same way").await;
}

async fn evidence_of_both_runs_is_kept_and_the_verdict_of_the_base_comes_out_again<B: Backend>() {
    let (world, ticket) = on_a_repository::<B>().await;
    patched(&world, &ticket, ("c", "p"), (2, "no rule")).await;
    let run = world.chain(&ticket).await.runs.pop().expect("a run");
    assert_eq!(run.record.gate_reason, "gate tests (exit 2, with the base's Makefile): no rule");
    let protected = run.evidence[1].protected.clone().expect("it touches what the gate relies on");
    assert_eq!((protected.decided_by, &protected.kept[..]), (Version::Base, &["Makefile".to_string()][..]));
    assert_eq!(protected.patched.expect("a second run").result, Some(GateResult::Pass));
    let again = world.substrate.read(move |sql| judging::replay(sql, &run)).await.expect("read");
    let (record, verdict) = again.expect("judged again");
    assert_eq!(verdict.recorded(), (GateResult::Fail, record.gate_reason));
}

//! From NEW to DONE and every other way out.

use crate::pipeline::world::{World, bad, deciding, good};
use crate::support::backend::Backend;
use fernery_core::artifact::{GateResult, ObjectiveStatus, PauseReason, TerminalReason, WorkorderStatus};
use fernery_core::job::report::Answer;
use fernery_engine::pipeline::acts::Refusal;
use fernery_engine::pipeline::decisions;
use fernery_engine::pipeline::judging::Judged;
use fernery_engine::pipeline::objectives;
use fernery_engine::pipeline::room::Room;
use fernery_engine::pipeline::scheduling::Scheduled;
use serde_json::json;
use std::time::Duration;

on_both_backends!(
    an_approved_ticket_becomes_one_judged_run,
    a_result_that_is_no_bundle_is_refused_and_the_attempt_stays_open,
    a_failed_gate_tries_again_with_what_failed_and_then_blocks,
    an_executor_that_never_comes_back_still_leads_to_a_pause,
    an_expired_workorder_goes_to_whoever_asks_next,
    a_workorder_that_fails_for_infrastructure_blocks_with_its_own_reason,
    what_is_spent_of_the_budget_is_not_given_again,
    a_full_azolla_schedules_nothing,
    an_approval_covers_exactly_what_was_shown,
);

/// Invariants 1, 2, 13, 16.
async fn an_approved_ticket_becomes_one_judged_run<B: Backend>() {
    let world = World::<B>::new("").await;
    let ticket = world.create("t").await;
    assert_eq!(world.emit().await, 0, "nothing is ready before it is approved");
    let first = world.approve(&ticket).await.expect("approved");
    let again = world.approve(&ticket).await.expect("approved before");
    assert_eq!(first, again);
    let made = world.pass().await;
    assert!(matches!(made[..], [Scheduled::Workorder(_)]), "{made:?}");
    assert_eq!(world.pass().await, [], "one event, one workorder");
    assert_eq!(world.status(&ticket).await, ObjectiveStatus::InProgress);
    let job = world.claim().await.expect("its job");
    let payload: serde_json::Value = serde_json::from_str(job.payload.get()).expect("JSON");
    assert_eq!(payload["workorder"]["work_order_id"], json!(job.job_id));
    assert!(payload["context_snapshot"]["full_prompt_text"].as_str().expect("a prompt").contains("Do it"));
    let accepted = world.hand_in(&job, good()).await;
    assert!(matches!(accepted, Answer::Accepted { .. }), "{accepted:?}");
    assert!(matches!(world.hand_in(&job, good()).await, Answer::Duplicate { .. }));
    let judged = world.judge().await;
    assert!(
        matches!(&judged[..], [Judged::Recorded(run)] if run.gate_result == GateResult::Pass),
        "{judged:?}"
    );
    assert_eq!(world.judge().await, [], "one workorder, one run");
    assert_eq!(world.status(&ticket).await, ObjectiveStatus::Done);
    let chain = world.chain(&ticket).await;
    assert_eq!(
        [
            chain.decisions.len(),
            chain.events.len(),
            chain.workorders.len(),
            chain.output_bundles.len(),
            chain.runs.len(),
            chain.pauses.len()
        ],
        [1; 6]
    );
    assert_eq!(chain.workorders[0].workorder.status, WorkorderStatus::Executed);
    assert_eq!(chain.events[0].reason, Some(TerminalReason::Scheduled));
    assert_eq!(chain.events[0].work_order_id, Some(chain.workorders[0].workorder.work_order_id.clone()));
    assert_eq!(chain.pauses[0].pause.reason, PauseReason::RunComplete);
    assert!((1..=3).contains(&chain.pauses[0].pause.prioritized_actions.len()));
}

async fn a_result_that_is_no_bundle_is_refused_and_the_attempt_stays_open<B: Backend>() {
    let world = World::<B>::new("").await;
    let ticket = world.create("t").await;
    world.approve(&ticket).await.expect("approved");
    world.pass().await;
    let job = world.claim().await.expect("its job");
    assert_eq!(world.hand_in(&job, json!({"content": 1})).await, Answer::Unfit);
    assert_eq!(world.hand_in(&job, json!({"anything": true})).await, Answer::Unfit);
    assert!(matches!(world.hand_in(&job, good()).await, Answer::Accepted { .. }));
    assert_eq!(world.chain(&ticket).await.output_bundles.len(), 1);
}

async fn a_failed_gate_tries_again_with_what_failed_and_then_blocks<B: Backend>() {
    let world = World::<B>::new("[retry]\ngate_failures = 1\n").await;
    let ticket = world.create("t").await;
    world.approve(&ticket).await.expect("approved");
    world.pass().await;
    let job = world.claim().await.expect("its job");
    world.hand_in(&job, bad()).await;
    world.judge().await;
    assert_eq!(world.status(&ticket).await, ObjectiveStatus::Todo, "the policy allows another attempt");
    assert!(matches!(world.pass().await[..], [Scheduled::Workorder(_)]));
    let job = world.claim().await.expect("its second job");
    let payload: serde_json::Value = serde_json::from_str(job.payload.get()).expect("JSON");
    let prompt = payload["context_snapshot"]["full_prompt_text"].as_str().expect("a prompt");
    assert!(prompt.contains("the outcome is FAILED"), "{prompt}");
    let chain = world.chain(&ticket).await;
    assert_eq!(payload["context_snapshot"]["related_yield_refs"], json!([chain.output_bundles[0].output_id]));
    world.hand_in(&job, bad()).await;
    world.judge().await;
    let row = world.row(&ticket).await;
    assert_eq!(row.objective.status, ObjectiveStatus::Blocked);
    assert!(row.objective.has_open_blockers());
    assert_eq!(world.chain(&ticket).await.pauses.len(), 2);
    let free = world.unblock(&ticket).await;
    assert_eq!(
        free.expect("unblocked").objective.status,
        ObjectiveStatus::Todo,
        "its approval still covers it"
    );
    assert!(matches!(world.pass().await[..], [Scheduled::Workorder(_)]));
}

/// Invariants 13 and 17: by lease, retry policy and DLQ to bundle, run record and pause.
async fn an_executor_that_never_comes_back_still_leads_to_a_pause<B: Backend>() {
    lost_three_times::<B>(true).await;
}

/// As above, where no reaper comes by: whoever asks for the next job settles the lease of the last.
async fn an_expired_workorder_goes_to_whoever_asks_next<B: Backend>() {
    lost_three_times::<B>(false).await;
}

async fn lost_three_times<B: Backend>(a_reaper_comes: bool) {
    let world = World::<B>::new("").await;
    let ticket = world.create("t").await;
    world.approve(&ticket).await.expect("approved");
    world.pass().await;
    for _ in 0..3 {
        world.claim().await.expect("its job");
        world.backend.advance(Duration::from_secs(60)).await;
        if a_reaper_comes {
            assert_eq!(world.backend.store().reap(10).await.expect("reaped").moved, 1);
        }
    }
    assert!(world.claim().await.is_none());
    let judged = world.judge().await;
    assert!(
        matches!(&judged[..], [Judged::Recorded(run)] if run.gate_result == GateResult::Fail),
        "{judged:?}"
    );
    let chain = world.chain(&ticket).await;
    assert_eq!(chain.output_bundles[0].metadata["outcome"], "INFRA");
    assert_eq!(chain.workorders[0].spent_ms, 180_000, "a lost attempt counts to the end of its lease");
    assert_eq!(world.status(&ticket).await, ObjectiveStatus::Blocked);
    assert_eq!(chain.pauses.len(), 1);
}

async fn a_workorder_that_fails_for_infrastructure_blocks_with_its_own_reason<B: Backend>() {
    let world = World::<B>::new("").await;
    let ticket = world.create("t").await;
    world.approve(&ticket).await.expect("approved");
    world.pass().await;
    for _ in 0..3 {
        let job = world.claim().await.expect("its job");
        world.fail(&job).await;
        world.backend.advance(Duration::from_secs(30)).await;
        world.backend.store().promote(10).await.expect("promoted");
    }
    world.judge().await;
    let row = world.row(&ticket).await;
    assert_eq!(row.objective.status, ObjectiveStatus::Blocked);
    assert!(row.objective.blocked_on[0].description.contains("broken"), "{row:?}");
}

async fn what_is_spent_of_the_budget_is_not_given_again<B: Backend>() {
    let world = World::<B>::new("[budget]\nworkorder = \"90s\"\n").await;
    let ticket = world.create("t").await;
    world.approve(&ticket).await.expect("approved");
    world.pass().await;
    let first = world.claim().await.expect("its job");
    assert_eq!(first.timeout_at.map(|at| at.since(first.claimed_at)), Some(Duration::from_secs(90)));
    world.backend.advance(Duration::from_secs(61)).await;
    let second = world.claim().await.expect("its job again");
    assert_eq!(second.timeout_at.map(|at| at.since(second.claimed_at)), Some(Duration::from_secs(30)));
    world.backend.advance(Duration::from_secs(31)).await;
    assert!(world.claim().await.is_none(), "its budget is spent");
    world.judge().await;
    let chain = world.chain(&ticket).await;
    assert_eq!(chain.output_bundles[0].metadata["outcome"], "BUDGET");
    assert_eq!(chain.pauses[0].pause.reason, PauseReason::BudgetExhausted);
}

/// Invariant 12.
async fn a_full_azolla_schedules_nothing<B: Backend>() {
    let world = World::<B>::new("[limits]\nconcurrency = 1\nreview_limit = 1\n").await;
    let (one, two) = (world.create("one").await, world.create("two").await);
    world.approve(&one).await.expect("approved");
    world.approve(&two).await.expect("approved");
    let made = world.pass().await;
    assert!(matches!(made[..], [Scheduled::Workorder(_), Scheduled::NoRoom(Room::Concurrency)]), "{made:?}");
    let job = world.claim().await.expect("its job");
    world.hand_in(&job, good()).await;
    world.judge().await;
    assert_eq!(world.pass().await, [Scheduled::NoRoom(Room::Review)]);
    world.confirm(&one).await.expect("confirmed");
    assert!(matches!(world.pass().await[..], [Scheduled::Workorder(_)]));
}

/// Invariant 10.
async fn an_approval_covers_exactly_what_was_shown<B: Backend>() {
    let world = World::<B>::new("").await;
    let ticket = world.create("t").await;
    let row = world.row(&ticket).await;
    let shown =
        fernery_engine::pipeline::objectives::shown(&row.objective, &crate::pipeline::world::blueprint(""));
    let of = ticket.clone();
    let draft = crate::pipeline::world::draft("Do something else");
    world.act(move |sql, who| objectives::edit(sql, who, &of, &draft)).await.expect("edited");
    let (of, stale) = (ticket.clone(), deciding(Some(shown.digest), None));
    let refused = world.act(move |sql, who| decisions::approve(sql, who, &of, &stale)).await;
    let Err(Refusal::Changed { difference, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(difference, [("/title".to_string(), json!("Do it"), json!("Do something else"))]);
    world.approve(&ticket).await.expect("approved as it is");
    // Another blueprint judges otherwise: what was approved is not what would run.
    world.put_in_force(crate::pipeline::world::blueprint("[retry]\ngate_failures = 0\n")).await;
    assert_eq!(world.pass().await, [Scheduled::Closed(TerminalReason::NonExecutableStatus)]);
    assert_eq!(world.status(&ticket).await, ObjectiveStatus::New);
}

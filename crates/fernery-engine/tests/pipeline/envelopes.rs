//! One envelope for one approval: retries and unblocking go on within it, and only a person's new approval grants another.

use crate::pipeline::world::{World, bad, deciding, draft, good};
use crate::support::backend::Backend;
use fernery_core::artifact::{ObjectiveId, ObjectiveStatus, PauseReason};
use fernery_core::pipeline::envelope::Spent;
use fernery_engine::pipeline::decisions;
use fernery_engine::pipeline::objectives;
use fernery_engine::pipeline::scheduling::Scheduled;
use serde_json::{Value, json};

on_both_backends!(
    unblocking_keeps_the_spent_envelope_and_a_used_up_one_needs_a_new_approval,
    what_never_began_costs_no_attempt,
    what_executors_report_counts_over_all_attempts,
    wall_time_that_is_left_bounds_the_next_attempt,
    reopening_grants_a_new_envelope,
    an_edit_that_is_approved_grants_a_new_envelope,
);

async fn attempt<B: Backend>(world: &World<B>, result: Value) {
    let made = world.pass().await;
    assert!(matches!(made[..], [Scheduled::Workorder(_)]), "{made:?}");
    let job = world.claim().await.expect("its job");
    world.hand_in(&job, result).await;
    world.judge().await;
}

async fn spent<B: Backend>(world: &World<B>, ticket: &ObjectiveId) -> Spent {
    world.row(ticket).await.spent
}

async fn unblocking_keeps_the_spent_envelope_and_a_used_up_one_needs_a_new_approval<B: Backend>() {
    let (world, ticket) =
        World::<B>::with_ticket("[retry]\ngate_failures = 0\n[envelope]\nattempts = 2\n").await;
    attempt(&world, bad()).await;
    assert_eq!(world.unblock(&ticket).await.expect("unblocked").objective.status, ObjectiveStatus::Todo);
    assert_eq!(spent(&world, &ticket).await.attempts, 1, "unblocking alone gives nothing back");
    attempt(&world, bad()).await;
    let row = world.row(&ticket).await;
    assert_eq!(row.objective.status, ObjectiveStatus::Blocked);
    assert!(row.objective.blocked_on.iter().any(|b| b.description.contains("(all 2 attempts are used)")));
    let last = world.chain(&ticket).await.pauses.pop().expect("a pause").pause;
    assert_eq!(last.reason, PauseReason::BudgetExhausted);
    assert!(last.prioritized_actions.iter().any(|a| a.contains("ticket approve")), "{last:?}");
    let row = world.unblock(&ticket).await.expect("unblocked");
    assert_eq!(row.objective.status, ObjectiveStatus::New, "its approval covers nothing more");
    assert_eq!(spent(&world, &ticket).await.attempts, 2);
    let decision = world.approve(&ticket).await.expect("approved anew");
    let row = world.row(&ticket).await;
    assert_eq!((row.spent, row.approval), (Spent::default(), Some(decision.record_id)));
    assert_eq!(world.chain(&ticket).await.decisions.len(), 2);
    attempt(&world, good()).await;
    assert_eq!(world.status(&ticket).await, ObjectiveStatus::Done);
}

async fn what_never_began_costs_no_attempt<B: Backend>() {
    let (world, ticket) =
        World::<B>::with_ticket("[retry]\ngate_failures = 0\n[envelope]\nattempts = 1\n").await;
    let unready = json!({"title": "The run could not start", "content": "", "notes": "no such program",
                         "metadata": {"outcome": "INFRA", "preflight": "program"}});
    for _ in 0..3 {
        attempt(&world, unready.clone()).await;
        let row = world.row(&ticket).await;
        assert_eq!((row.objective.status, row.spent.attempts), (ObjectiveStatus::Blocked, 0));
        assert!(row.objective.blocked_on.iter().any(|b| b.description.contains("no such program")));
        let row = world.unblock(&ticket).await.expect("unblocked");
        assert_eq!(row.objective.status, ObjectiveStatus::Todo, "its approval covers it still");
    }
    // What broke while it ran counts, whoever broke it.
    let broken = json!({"title": "It broke", "content": "", "notes": "", "metadata": {"outcome": "INFRA"}});
    attempt(&world, broken).await;
    assert_eq!(spent(&world, &ticket).await.attempts, 1);
    assert_eq!(world.unblock(&ticket).await.expect("unblocked").objective.status, ObjectiveStatus::New);
}

async fn what_executors_report_counts_over_all_attempts<B: Backend>() {
    let bounds = "[retry]\ngate_failures = 9\n[envelope]\ntokens = 100\ncost_usd = 1.00\n";
    for (name, each, times) in [("tokens", 40, 3), ("cost_usd_micros", 600_000, 2)] {
        let (world, ticket) = World::<B>::with_ticket(bounds).await;
        for n in 1..=times {
            // Each in its own way: an attempt that repeats the one before would end it sooner.
            let title = format!("not done{}", "!".repeat(n));
            let result = json!({"title": title, "content": "", "notes": "",
                                "metadata": {"outcome": "FAILED", (name): each}});
            attempt(&world, result).await;
            let wanted = if n < times { ObjectiveStatus::Todo } else { ObjectiveStatus::Blocked };
            assert_eq!(world.status(&ticket).await, wanted, "{name} after {n}");
        }
        let row = world.unblock(&ticket).await.expect("unblocked");
        assert_eq!(row.objective.status, ObjectiveStatus::New);
    }
}

async fn wall_time_that_is_left_bounds_the_next_attempt<B: Backend>() {
    let bounds =
        "[retry]\ngate_failures = 0\n[budget]\nworkorder = \"50s\"\n[envelope]\nwall_time = \"60s\"\n";
    let (world, ticket) = World::<B>::with_ticket(bounds).await;
    world.pass().await;
    let job = world.claim().await.expect("its job");
    world.advance(40).await;
    world.hand_in(&job, bad()).await;
    world.judge().await;
    world.unblock(&ticket).await.expect("unblocked");
    world.pass().await;
    let budget = world.chain(&ticket).await.workorders[1].workorder.budget_ms;
    assert_eq!(budget, 20_000, "checked before dispatch, and live by the time-out of the job");
}

async fn reopening_grants_a_new_envelope<B: Backend>() {
    let (world, ticket) = World::<B>::with_ticket("[envelope]\nattempts = 1\n").await;
    attempt(&world, good()).await;
    let (of, noted) = (ticket.clone(), deciding(None, Some("more")));
    world.act(move |sql, who| decisions::reopen(sql, who, &of, &noted)).await.expect("reopened");
    attempt(&world, good()).await;
    assert_eq!(world.status(&ticket).await, ObjectiveStatus::Done);
    assert_eq!(spent(&world, &ticket).await.attempts, 1);
}

async fn an_edit_that_is_approved_grants_a_new_envelope<B: Backend>() {
    let (world, ticket) =
        World::<B>::with_ticket("[retry]\ngate_failures = 0\n[envelope]\nattempts = 1\n").await;
    attempt(&world, bad()).await;
    let (of, other) = (ticket.clone(), draft("Do less"));
    world.act(move |sql, who| objectives::edit(sql, who, &of, &other)).await.expect("edited");
    assert_eq!(world.unblock(&ticket).await.expect("unblocked").objective.status, ObjectiveStatus::New);
    world.approve(&ticket).await.expect("approved");
    assert_eq!(spent(&world, &ticket).await, Spent::default());
}

//! What one transaction does for many is what it would do for each alone.

use crate::pipeline::world::{World, bad, deciding, draft, good};
use crate::support::backend::Backend;
use fernery_core::artifact::{GateResult, ObjectiveId, ObjectiveStatus, TerminalReason};
use fernery_core::job::report::Answer;
use fernery_engine::StoreError;
use fernery_engine::pipeline::acts::Actor;
use fernery_engine::pipeline::decisions;
use fernery_engine::pipeline::judging::Judged;
use fernery_engine::pipeline::objectives::{self, NewObjective};
use fernery_engine::pipeline::room::Room;
use fernery_engine::pipeline::scheduling::Scheduled;
use fernery_engine::store::{Claimed, Completion};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::task::JoinSet;

on_both_backends!(
    a_batch_makes_workorders_while_there_is_room,
    in_a_batch_a_lost_claim_is_lost_alone,
    two_events_of_one_objective_in_a_batch_make_one_workorder,
    a_batch_of_verdicts_has_each_its_own,
    a_batch_of_results_has_each_its_own_answer,
    of_acts_at_once_one_that_fails_fails_alone,
    acts_on_one_objective_at_once_come_one_after_the_other,
);

const NO_BOUNDS: &str = "[limits]\nconcurrency = 0\nreview_limit = 0\n";

async fn with_tickets<B: Backend>(more: &str, count: usize) -> (World<B>, Vec<ObjectiveId>) {
    let world = World::<B>::new(more).await;
    let mut tickets = Vec::new();
    for n in 0..count {
        let ticket = world.create(&format!("t{n}")).await;
        world.approve(&ticket).await.expect("approved");
        tickets.push(ticket);
    }
    world.emit().await;
    (world, tickets)
}

fn made(scheduled: &[Scheduled]) -> usize {
    scheduled.iter().filter(|one| matches!(one, Scheduled::Workorder(_))).count()
}

/// Invariant 12.
async fn a_batch_makes_workorders_while_there_is_room<B: Backend>() {
    let (world, _) = with_tickets::<B>("[limits]\nconcurrency = 2\nreview_limit = 0\n", 4).await;
    let taken = world.take_events("scheduler").await;
    assert_eq!(taken.len(), 4);
    let done = world.schedule_all(taken).await;
    assert_eq!(made(&done[..2]), 2, "the oldest first: {done:?}");
    assert_eq!(done[2..], [Scheduled::NoRoom(Room::Concurrency), Scheduled::NoRoom(Room::Concurrency)]);
    assert_eq!(world.take_events("another").await.len(), 2, "those that found no room are free again");
}

/// Invariants 1 and 3.
async fn in_a_batch_a_lost_claim_is_lost_alone<B: Backend>() {
    let (world, tickets) = with_tickets::<B>(NO_BOUNDS, 3).await;
    let mut taken = world.take_events("scheduler").await;
    let lost = taken[1].0.resource_id.clone();
    taken[1].1.claim_version -= 1;
    let done = world.schedule_all(taken).await;
    assert_eq!((made(&done), &done[1]), (2, &Scheduled::ClaimLost));
    for ticket in &tickets {
        let wanted =
            if ticket.as_str() == lost { ObjectiveStatus::Todo } else { ObjectiveStatus::InProgress };
        assert_eq!(world.status(ticket).await, wanted, "{ticket}");
    }
}

/// Invariant 1.
async fn two_events_of_one_objective_in_a_batch_make_one_workorder<B: Backend>() {
    let (world, tickets) = with_tickets::<B>(NO_BOUNDS, 1).await;
    let (of, other) = (tickets[0].clone(), draft("Do something else"));
    world.act(move |sql, who| objectives::edit(sql, who, &of, &other)).await.expect("edited");
    world.approve(&tickets[0]).await.expect("approved");
    world.emit().await;
    let taken = world.take_events("scheduler").await;
    assert_eq!(taken.len(), 2);
    let done = world.schedule_all(taken).await;
    assert_eq!((made(&done), &done[1]), (1, &Scheduled::Closed(TerminalReason::NonExecutableStatus)));
    assert_eq!(world.chain(&tickets[0]).await.workorders.len(), 1);
}

/// Invariants 2 and 3.
async fn a_batch_of_verdicts_has_each_its_own<B: Backend>() {
    let (world, tickets) = with_tickets::<B>(NO_BOUNDS, 3).await;
    let taken = world.take_events("scheduler").await;
    world.schedule_all(taken).await;
    for result in [good(), bad(), good()] {
        let job = world.claim().await.expect("a job");
        world.hand_in(&job, result).await;
    }
    let mut held = world.take_executed("gate").await;
    assert_eq!(held.len(), 3);
    held[2].claim_version -= 1;
    let judged = world.judge_all(held.clone()).await;
    let result = |judged: &Judged| match judged {
        Judged::Recorded(run) => Some(run.gate_result),
        _ => None,
    };
    assert_eq!(result(&judged[0]), Some(GateResult::Pass));
    assert_eq!(result(&judged[1]), Some(GateResult::Fail));
    assert_eq!(judged[2], Judged::ClaimLost);
    let mut runs = 0;
    for ticket in &tickets {
        runs += world.chain(ticket).await.runs.len();
    }
    assert_eq!(runs, 2);
    held[2].claim_version += 1;
    let judged = world.judge_all(held).await;
    assert_eq!(judged[..2], [Judged::ClaimLost, Judged::ClaimLost], "their claims are gone");
    assert_eq!(result(&judged[2]), Some(GateResult::Pass));
}

/// Invariants 2 and 4.
async fn a_batch_of_results_has_each_its_own_answer<B: Backend>() {
    let (world, _) = with_tickets::<B>(NO_BOUNDS, 3).await;
    let taken = world.take_events("scheduler").await;
    world.schedule_all(taken).await;
    let mut jobs = Vec::new();
    while let Some(job) = world.claim().await {
        jobs.push(job);
    }
    let item = |job: &Claimed, result: Value| Completion {
        proof: crate::pipeline::hands::proof(job),
        result: RawValue::from_string(result.to_string()).expect("JSON"),
    };
    let mut stranger = item(&jobs[2], good());
    stranger.proof.token_hash = jobs[0].lease_token.hash();
    let items = vec![
        item(&jobs[0], good()),
        item(&jobs[1], json!({"no": "bundle"})),
        item(&jobs[0], good()),
        stranger,
    ];
    let answers = world.store.complete(items).await.expect("answers");
    assert!(matches!(answers[0], Answer::Accepted { .. }), "{answers:?}");
    assert_eq!(answers[1], Answer::Unfit);
    assert!(matches!(answers[2], Answer::Duplicate { .. }), "{answers:?}");
    assert!(matches!(answers[3], Answer::LeaseLost { .. }), "{answers:?}");
    assert_eq!(world.take_executed("gate").await.len(), 1);
}

/// Invariant 18.
async fn of_acts_at_once_one_that_fails_fails_alone<B: Backend>() {
    let world = World::<B>::new(NO_BOUNDS).await;
    let fails = |n: usize| n % 10 == 3;
    let mut acts = JoinSet::new();
    for n in 0..40 {
        let (substrate, azolla) = (world.substrate.clone(), world.azolla.clone());
        acts.spawn(async move {
            let ticket = ObjectiveId::stored(&format!("t{n}"));
            let (who, of) = (Actor("operator".into()), ticket.clone());
            let made = substrate.act(&ticket, move |sql| {
                let made = objectives::create(sql, &who, &NewObjective::new(&of, &azolla, draft("Do it")))?;
                if fails(n) { Err(StoreError::Corrupt(format!("{of}"))) } else { Ok(made) }
            });
            (n, made.await, ticket)
        });
    }
    for (n, made, ticket) in acts.join_all().await {
        let of = ticket.clone();
        let stored = world.substrate.read(move |sql| objectives::load(sql, &of)).await.expect("read");
        if fails(n) {
            assert_eq!((made, stored), (Err(StoreError::Corrupt(ticket.to_string())), None));
        } else {
            assert_eq!(made.expect("stored").expect("created").row, stored.expect("an objective"));
        }
    }
}

async fn acts_on_one_objective_at_once_come_one_after_the_other<B: Backend>() {
    let world = World::<B>::new(NO_BOUNDS).await;
    let ticket = world.create("t").await;
    let mut acts = JoinSet::new();
    for _ in 0..40 {
        let (substrate, of, deciding) = (world.substrate.clone(), ticket.clone(), deciding(None, None));
        acts.spawn(async move {
            let (who, on) = (Actor("operator".into()), of.clone());
            let approved = substrate.act(&of, move |sql| decisions::approve(sql, &who, &on, &deciding));
            approved.await.expect("stored").expect("approved")
        });
    }
    let approvals = acts.join_all().await;
    assert!(approvals.iter().all(|one| *one == approvals[0]), "one record for all");
    assert_eq!(world.row(&ticket).await.entry, 1);
}

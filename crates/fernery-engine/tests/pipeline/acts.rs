//! What operators may do, in every status; and how a cancelled ticket ends.

use crate::pipeline::world::{Hands, World, deciding, draft, good, record};
use crate::support::backend::Backend;
use fernery_core::artifact::{BlockerKind, ObjectiveId, ObjectiveStatus, WorkorderStatus};
use fernery_core::inbox::deadline::is_cancelled;
use fernery_core::job::report::Answer;
use fernery_engine::pipeline::Sql;
use fernery_engine::pipeline::acts::{Actor, Refusal};
use fernery_engine::pipeline::blockers::{self, Resolved};
use fernery_engine::pipeline::decisions;
use fernery_engine::pipeline::objectives;
use fernery_engine::pipeline::scheduling::Scheduled;
use fernery_engine::store::Claimed;

on_both_backends!(
    every_act_is_allowed_or_refused_by_status_and_a_refused_one_writes_nothing,
    approving_twice_gives_the_same_record,
    a_ticket_that_is_cancelled_while_it_waits_ends_in_bundle_run_and_pause,
    a_ticket_that_is_cancelled_while_it_runs_ends_in_bundle_run_and_pause,
    a_cancelled_ticket_whose_executor_is_lost_ends_as_well,
    a_ticket_is_cancelled_as_often_as_somebody_wants_with_a_pause_each_time,
    a_finished_ticket_can_be_cancelled_until_it_is_confirmed,
    a_stopped_ticket_that_is_cancelled_keeps_its_blockers,
    a_blocker_said_twice_is_one_blocker,
    blockers_never_share_a_name,
);

pub(crate) async fn block(hands: &Hands, of: &ObjectiveId, name: Option<&str>) -> Result<(), Refusal> {
    let (of, name) = (of.clone(), name.map(|name| name.parse().expect("an id")));
    let kind = BlockerKind::UserInput;
    let record = record();
    let done = hands
        .act(move |sql, who| blockers::block(sql, who, (&of, &record), name.clone(), kind, "a question"))
        .await;
    done.map(drop)
}

const ACTS: [&str; 7] = ["approve", "edit", "confirm", "reopen", "cancel", "block", "unblock"];

async fn act(hands: &Hands, of: &ObjectiveId, act: &str) -> Result<(), Refusal> {
    let (id, noted) = (of.clone(), deciding(None, Some("more")));
    let draft = draft("Do something else");
    match act {
        "approve" => hands.approve(of).await.map(drop),
        "edit" => hands.act(move |sql, who| objectives::edit(sql, who, &id, &draft)).await.map(drop),
        "confirm" => hands.confirm(of).await.map(drop),
        "reopen" => hands.act(move |sql, who| decisions::reopen(sql, who, &id, &noted)).await.map(drop),
        "cancel" => hands.cancel(of).await.map(drop),
        "block" => block(hands, of, None).await,
        _ => hands.unblock(of).await.map(drop),
    }
}

/// A ticket that has come into this status by the ways that lead there.
async fn ticket_in(hands: &Hands, name: &str, status: ObjectiveStatus) -> ObjectiveId {
    let ticket = hands.create(name).await;
    if status != ObjectiveStatus::New {
        hands.approve(&ticket).await.expect("approved");
    }
    match status {
        ObjectiveStatus::InProgress | ObjectiveStatus::Done => {
            hands.pass().await;
        }
        ObjectiveStatus::Blocked => block(hands, &ticket, Some("q")).await.expect("blocked"),
        _ => {}
    }
    // Jobs of tickets from before may come first.
    while status == ObjectiveStatus::Done && hands.status(&ticket).await != status {
        let job = hands.claim().await.expect("a job");
        hands.hand_in(&job, good()).await;
        hands.judge().await;
    }
    assert_eq!(hands.status(&ticket).await, status);
    ticket
}

async fn every_act_is_allowed_or_refused_by_status_and_a_refused_one_writes_nothing<B: Backend>() {
    use ObjectiveStatus::{Blocked, Done, InProgress, New, Todo};
    // As the design's list of transitions has it; `None`: refused. An approval that stands is answered, not refused.
    let wanted = [
        (New, [Some(Todo), Some(New), None, None, Some(Blocked), Some(Blocked), None]),
        (Todo, [Some(Todo), Some(New), None, None, Some(Blocked), Some(Blocked), None]),
        (InProgress, [Some(InProgress), None, None, None, Some(Blocked), None, None]),
        (Blocked, [Some(Blocked), Some(Blocked), None, None, Some(Blocked), Some(Blocked), Some(Todo)]),
        (Done, [Some(Done), None, Some(Done), Some(Todo), Some(Blocked), None, None]),
    ];
    let world = World::<B>::new("[limits]\nconcurrency = 0\nreview_limit = 0\n").await;
    for (status, row) in wanted {
        let refusing = ticket_in(&world, &format!("{status}"), status).await;
        for (name, next) in ACTS.into_iter().zip(row) {
            let Some(next) = next else {
                let before = world.dump().await;
                let refused = act(&world, &refusing, name).await;
                assert!(
                    matches!(&refused, Err(Refusal::Status(now)) if now.status == status),
                    "{name}: {refused:?}"
                );
                assert_eq!(world.dump().await, before, "{name} in {status} is refused and writes nothing");
                continue;
            };
            let ticket = ticket_in(&world, &format!("{status}-{name}"), status).await;
            assert_eq!(act(&world, &ticket, name).await, Ok(()), "{name} in {status}");
            assert_eq!(world.status(&ticket).await, next, "{name} in {status}");
        }
    }
}

async fn approving_twice_gives_the_same_record<B: Backend>() {
    let (world, ticket) = World::<B>::with_ticket("").await;
    let first = world.approve(&ticket).await.expect("approved");
    let before = world.dump().await;
    for n in 0..3 {
        assert_eq!(world.approve(&ticket).await.as_ref(), Ok(&first), "approval {n}");
        assert_eq!(world.dump().await, before);
    }
    world.pass().await;
    assert_eq!(world.approve(&ticket).await, Ok(first), "also while it runs");
    assert_eq!(world.chain(&ticket).await.decisions.len(), 1);
}

/// What every cancelled ticket comes to (invariant 13).
async fn has_ended_cancelled<B: Backend>(world: &World<B>, ticket: &ObjectiveId) {
    let refused = world.unblock(ticket).await;
    assert!(matches!(refused, Err(Refusal::Conflict(_))), "its run has not come to its end: {refused:?}");
    assert_eq!(world.judge().await.len(), 1);
    let (row, chain) = (world.row(ticket).await, world.chain(ticket).await);
    assert_eq!(row.objective.status, ObjectiveStatus::Blocked);
    assert_eq!(row.objective.blocked_reason.as_deref(), Some("cancelled"));
    assert_eq!(chain.workorders[0].workorder.status, WorkorderStatus::Executed);
    assert_eq!(chain.output_bundles[0].metadata["outcome"], "CANCELLED");
    assert_eq!([chain.output_bundles.len(), chain.runs.len(), chain.pauses.len()], [1; 3]);
    assert_eq!(world.cancel_jobs().await, 0, "nothing is left to cancel");
    assert_eq!(world.unblock(ticket).await.expect("unblocked").objective.status, ObjectiveStatus::Todo);
    assert!(matches!(world.pass().await[..], [Scheduled::Workorder(_)]));
}

async fn a_ticket_that_is_cancelled_while_it_waits_ends_in_bundle_run_and_pause<B: Backend>() {
    let (world, ticket) = World::<B>::with_ticket("").await;
    world.pass().await;
    world.cancel(&ticket).await.expect("cancelled");
    assert_eq!(world.chain(&ticket).await.pauses, [], "its run will say it");
    assert!(matches!(world.unblock(&ticket).await, Err(Refusal::Conflict(_))));
    assert_eq!(world.cancel_jobs().await, 1);
    assert!(world.claim().await.is_none());
    has_ended_cancelled(&world, &ticket).await;
}

async fn running_and_cancelled<B: Backend>() -> (World<B>, ObjectiveId, Claimed) {
    let (world, ticket) = World::<B>::with_ticket("").await;
    world.pass().await;
    let job = world.claim().await.expect("its job");
    world.cancel(&ticket).await.expect("cancelled");
    assert_eq!(world.cancel_jobs().await, 1);
    assert_eq!(world.cancel_jobs().await, 1, "it is told until it has ended");
    (world, ticket, job)
}

async fn a_ticket_that_is_cancelled_while_it_runs_ends_in_bundle_run_and_pause<B: Backend>() {
    let (world, ticket, job) = running_and_cancelled::<B>().await;
    let answer = world.fail(&job).await;
    assert!(matches!(answer, Answer::Accepted { .. }), "{answer:?}");
    has_ended_cancelled(&world, &ticket).await;
    // One that hands in all the same has its output kept, and the ticket stays where the operator put it.
    let (world, ticket, job) = running_and_cancelled::<B>().await;
    world.hand_in(&job, good()).await;
    world.judge().await;
    let (row, chain) = (world.row(&ticket).await, world.chain(&ticket).await);
    assert_eq!(row.objective.blocked_reason.as_deref(), Some("cancelled"));
    assert_eq!([chain.output_bundles.len(), chain.runs.len(), chain.pauses.len()], [1; 3]);
}

async fn a_cancelled_ticket_whose_executor_is_lost_ends_as_well<B: Backend>() {
    let (world, ticket, _) = running_and_cancelled::<B>().await;
    world.advance(61).await;
    assert_eq!(world.store.reap(10).await.expect("reaped").moved, 1);
    has_ended_cancelled(&world, &ticket).await;
}

/// Invariant 13, twice within a millisecond.
async fn a_ticket_is_cancelled_as_often_as_somebody_wants_with_a_pause_each_time<B: Backend>() {
    let (world, ticket) = World::<B>::with_ticket("").await;
    for n in 1..=3 {
        world.cancel(&ticket).await.expect("cancelled");
        world.cancel(&ticket).await.expect("cancelled before");
        assert_eq!(world.chain(&ticket).await.pauses.len(), n);
        world.unblock(&ticket).await.expect("unblocked");
    }
}

async fn a_finished_ticket_can_be_cancelled_until_it_is_confirmed<B: Backend>() {
    let world = World::<B>::new("[limits]\nconcurrency = 0\nreview_limit = 1\n").await;
    let ticket = ticket_in(&world, "one", ObjectiveStatus::Done).await;
    world.advance(1).await;
    let (of, record) = (ticket.clone(), record());
    let cancel = move |sql: &mut dyn Sql, who: &Actor| blockers::cancel(sql, who, (&of, &record), None);
    world.act(cancel.clone()).await.expect("cancelled");
    let row = world.row(&ticket).await;
    assert!(is_cancelled(&row.objective) && !row.unconfirmed, "{row:?}");
    assert_eq!(world.chain(&ticket).await.pauses.last().map(|of| of.happened.as_str()), Some("cancelled"));
    let before = world.dump().await;
    world.act(cancel).await.expect("the same act again, because its answer was lost");
    assert_eq!(world.dump().await, before);
    // Its review place is free: the next one is worked on, although the limit is one.
    let confirmed = ticket_in(&world, "two", ObjectiveStatus::Done).await;
    world.confirm(&confirmed).await.expect("confirmed");
    let before = world.dump().await;
    let Err(Refusal::Conflict(why)) = world.cancel(&confirmed).await else { panic!("it is finished") };
    assert!(why.contains("confirmed") && why.contains("fernery ticket reopen two --note"), "{why}");
    assert_eq!(world.dump().await, before, "what is refused writes nothing");
}

async fn a_stopped_ticket_that_is_cancelled_keeps_its_blockers<B: Backend>() {
    let (world, ticket) = World::<B>::with_ticket("").await;
    block(&world, &ticket, Some("q")).await.expect("blocked");
    world.cancel(&ticket).await.expect("cancelled");
    let row = world.row(&ticket).await;
    assert!(is_cancelled(&row.objective) && row.objective.has_open_blockers(), "{row:?}");
    let these = Resolved::These(vec!["q".parse().expect("an id")]);
    let row = world.unblock_from(&ticket, these).await.expect("unblocked");
    assert_eq!(row.objective.status, ObjectiveStatus::Todo);
}

async fn a_blocker_said_twice_is_one_blocker<B: Backend>() {
    let (world, ticket) = World::<B>::with_ticket("").await;
    for name in [None, None, Some("mine"), Some("mine")] {
        block(&world, &ticket, name).await.expect("blocked");
    }
    let row = world.row(&ticket).await;
    let names: Vec<_> = row.objective.blocked_on.iter().map(|b| b.blocker_id.to_string()).collect();
    assert_eq!(names, ["b1", "mine"]);
}

async fn blockers_never_share_a_name<B: Backend>() {
    let (world, ticket) = World::<B>::with_ticket("").await;
    block(&world, &ticket, Some("b2")).await.expect("blocked");
    let (of, record) = (ticket.clone(), record());
    let kind = BlockerKind::DesignDecision;
    world
        .act(move |sql, who| blockers::block(sql, who, (&of, &record), None, kind, "which one"))
        .await
        .expect("blocked");
    let these = Resolved::These(vec!["b2".parse().expect("an id")]);
    let row = world.unblock_from(&ticket, these).await.expect("one");
    let open = |s: &fernery_engine::pipeline::objectives::ObjectiveRow| {
        s.objective.blocked_on.iter().map(|b| (b.blocker_id.to_string(), b.resolved)).collect::<Vec<_>>()
    };
    assert_eq!(open(&row), [("b2".to_string(), true), ("b3".to_string(), false)]);
    assert_eq!(open(&world.row(&ticket).await), open(&row), "what is answered is what is stored");
}

//! Every way that an event can go.

use crate::acts::block;
use crate::support::backend::Backend;
use crate::world::{Hands, LEASE, World, good};
use fernery_core::artifact::{ObjectiveStatus, PauseReason, TerminalReason};
use fernery_engine::substrate::claims;
use fernery_engine::substrate::operating::Resolved;
use fernery_engine::substrate::scheduling::Scheduled;
use std::collections::BTreeSet;
use tokio::task::JoinSet;

on_both_backends!(
    without_an_event_the_scheduler_does_nothing,
    a_claimed_event_is_skipped_until_its_lease_runs_out,
    whoever_lost_a_claim_writes_nothing_with_it,
    a_version_that_was_read_before_somebody_else_had_the_event_takes_nothing,
    an_event_without_its_ticket_is_processed_as_missing,
    an_event_of_a_ticket_that_is_not_to_do_is_processed_as_such,
    open_blockers_stop_a_ticket_at_a_pause_that_names_them,
    resolved_blockers_stop_nothing,
    five_schedulers_never_make_more_work_than_there_is_room_for,
    a_lost_race_for_review_room_admits_nobody,
);

async fn without_an_event_the_scheduler_does_nothing<B: Backend>() {
    let world = World::<B>::new("").await;
    world.create("t").await;
    let before = world.dump().await;
    assert_eq!(world.pass().await, []);
    assert_eq!(world.judge().await, []);
    assert_eq!(world.cancel_jobs().await, 0);
    assert_eq!(world.dump().await, before);
}

/// Invariant 3.
async fn a_claimed_event_is_skipped_until_its_lease_runs_out<B: Backend>() {
    let (world, _) = World::<B>::with_ticket("").await;
    world.emit().await;
    let first = world.take_events("one").await.pop().expect("an event");
    assert_eq!(world.take_events("two").await, []);
    world.backend.advance(LEASE - std::time::Duration::from_millis(1)).await;
    assert_eq!(world.take_events("two").await, [], "the lease holds to its last millisecond");
    world.backend.advance(std::time::Duration::from_millis(1)).await;
    let second = world.take_events("two").await.pop().expect("free at its expiry");
    assert!(second.1.claim_version > first.1.claim_version);
    assert_eq!(world.schedule(first.0, first.1).await, Scheduled::ClaimLost);
    assert!(matches!(world.schedule(second.0, second.1).await, Scheduled::Workorder(_)));
}

/// Invariants 3, 9, 11.
async fn whoever_lost_a_claim_writes_nothing_with_it<B: Backend>() {
    let (world, ticket) = World::<B>::with_ticket("").await;
    world.emit().await;
    let (event, stale) = world.take_events("one").await.pop().expect("an event");
    let held = stale.clone();
    let renewed = world.substrate.transact(move |sql| claims::renew(sql, &held, LEASE)).await;
    let current = renewed.expect("stored").expect("still the holder");
    assert_eq!(current.claim_version, stale.claim_version + 1);
    let before = world.dump().await;
    assert_eq!(world.schedule(event.clone(), stale.clone()).await, Scheduled::ClaimLost, "an old version");
    world.advance(61).await;
    let (_, theirs) = world.take_events("two").await.pop().expect("taken over");
    let after = world.dump().await;
    assert_ne!(before, after);
    for held in [stale, current] {
        assert_eq!(world.schedule(event.clone(), held.clone()).await, Scheduled::ClaimLost);
        let (one, two) = (held.clone(), held);
        let renewed = world.substrate.transact(move |sql| claims::renew(sql, &one, LEASE)).await;
        assert_eq!(renewed.expect("stored"), None);
        assert!(!world.substrate.transact(move |sql| claims::release(sql, &two)).await.expect("stored"));
    }
    assert_eq!(world.dump().await, after);
    // The same at the gate.
    assert!(matches!(world.schedule(event, theirs).await, Scheduled::Workorder(_)));
    let job = world.claim().await.expect("its job");
    world.hand_in(&job, good()).await;
    let stale = world.take_executed("one").await.pop().expect("executed");
    assert_eq!(world.take_executed("two").await, []);
    world.advance(61).await;
    let theirs = world.take_executed("two").await.pop().expect("taken over");
    let before = world.dump().await;
    assert_eq!(world.judge_one(stale).await, fernery_engine::substrate::judging::Judged::ClaimLost);
    assert_eq!(world.dump().await, before);
    world.judge_one(theirs).await;
    assert_eq!(world.status(&ticket).await, ObjectiveStatus::Done);
    let left = world.substrate.read(move |sql| claims::all(sql, 10)).await.expect("read");
    assert_eq!(left, [], "what is done is in nobody's hands");
}

/// Invariant 9: a claim that came and went between look and grasp shows in the version.
async fn a_version_that_was_read_before_somebody_else_had_the_event_takes_nothing<B: Backend>() {
    let (world, _) = World::<B>::with_ticket("").await;
    world.emit().await;
    let mut seen = BTreeSet::new();
    for round in 0..20 {
        let mut takers = JoinSet::new();
        for n in 0..5 {
            let hands = if n % 2 == 0 { (*world).clone() } else { world.elsewhere().await };
            takers.spawn(async move {
                let mut had = Vec::new();
                for (_, held) in hands.take_events(&format!("{round}-{n}")).await {
                    had.push(held.claim_version);
                    hands.substrate.transact(move |sql| claims::release(sql, &held)).await.expect("stored");
                }
                had
            });
        }
        while let Some(had) = takers.join_next().await {
            for version in had.expect("no panic") {
                assert!(seen.insert(version), "version {version} was given out twice");
            }
        }
    }
    assert!(seen.len() >= 20, "each round somebody had it: {seen:?}");
}

async fn an_event_without_its_ticket_is_processed_as_missing<B: Backend>() {
    let world = World::<B>::new("").await;
    let insert = "INSERT INTO events (event_id, azolla_id, type, resource_id, entry, created_at)
                  SELECT $1, azolla_id, 'TICKET_READY', $2, 1, updated_at FROM azollas RETURNING event_id";
    assert_eq!(world.sql(insert, &["e1", "nowhere"]).await, 1);
    assert_eq!(world.sql(insert, &["e2", "not an id"]).await, 1);
    assert_eq!(world.pass().await, vec![Scheduled::Closed(TerminalReason::MissingTicket); 2]);
    assert_eq!(world.pass().await, []);
}

async fn an_event_of_a_ticket_that_is_not_to_do_is_processed_as_such<B: Backend>() {
    let set = "UPDATE objectives SET status = $1 RETURNING objective_id";
    let statuses: [&'static [&'static str]; 4] = [&["NEW"], &["IN_PROGRESS"], &["DONE"], &["BLOCKED"]];
    for status in statuses {
        let (world, ticket) = World::<B>::with_ticket("").await;
        world.emit().await;
        world.sql(set, status).await;
        let before = world.standing(&ticket).await;
        assert_eq!(world.pass().await, [Scheduled::Closed(TerminalReason::NonExecutableStatus)]);
        assert_eq!(world.standing(&ticket).await, before, "nothing else changes");
        let chain = world.chain(&ticket).await;
        assert!(chain.events[0].event.processed && chain.workorders.is_empty());
    }
}

/// Invariants 13 and 16.
async fn open_blockers_stop_a_ticket_at_a_pause_that_names_them<B: Backend>() {
    let (world, ticket) = World::<B>::with_ticket("").await;
    let insert = "INSERT INTO blockers (objective_id, place, blocker_id, kind, description, resolved)
                  SELECT objective_id, CASE $1 WHEN 'key' THEN 1 ELSE 2 END, $1, 'USER_INPUT', $2, false
                  FROM objectives RETURNING place";
    world.sql(insert, &["key", "the API key"]).await;
    world.sql(insert, &["host", "a host name"]).await;
    assert_eq!(world.pass().await, [Scheduled::Closed(TerminalReason::Blocked)]);
    let (standing, chain) = (world.standing(&ticket).await, world.chain(&ticket).await);
    assert_eq!(standing.objective.status, ObjectiveStatus::Blocked);
    assert_eq!(
        standing.objective.blocked_reason.as_deref(),
        Some("blocked on key (the API key), host (a host name)")
    );
    assert_eq!(chain.pauses.len(), 1);
    assert_eq!(chain.pauses[0].reason, PauseReason::GateFailed);
    let actions = &chain.pauses[0].prioritized_actions;
    assert!(actions.len() == 2 && actions[0].contains("key") && actions[1].contains("host"), "{actions:?}");
    assert_eq!(chain.workorders, []);
    // What the actions say leads on: one blocker is not enough, both re-emit the event.
    for (name, status) in [("key", ObjectiveStatus::Blocked), ("host", ObjectiveStatus::Todo)] {
        let these = Resolved::These(vec![name.parse().expect("an id")]);
        let standing = world.unblock_from(&ticket, these).await;
        assert_eq!(standing.expect("unblocked").objective.status, status);
    }
    assert!(matches!(world.pass().await[..], [Scheduled::Workorder(_)]));
    assert_eq!(world.chain(&ticket).await.events.len(), 2);
}

async fn resolved_blockers_stop_nothing<B: Backend>() {
    let (world, ticket) = World::<B>::with_ticket("").await;
    block(&world, &ticket, None).await.expect("blocked");
    world.unblock(&ticket).await.expect("unblocked");
    assert!(matches!(world.pass().await[..], [Scheduled::Workorder(_)]));
}

/// Invariant 12.
async fn five_schedulers_never_make_more_work_than_there_is_room_for<B: Backend>() {
    let world = World::<B>::new("[limits]\nconcurrency = 2\nreview_limit = 0\n").await;
    for n in 0..12 {
        let ticket = world.create(&format!("t{n}")).await;
        world.approve(&ticket).await.expect("approved");
    }
    world.emit().await;
    let mut finished = 0;
    while finished < 12 {
        let mut schedulers = JoinSet::new();
        for n in 0..5 {
            let hands = if n % 2 == 0 { (*world).clone() } else { world.elsewhere().await };
            schedulers.spawn(async move { scheduler(&hands, n).await });
        }
        schedulers.join_all().await;
        let active = world.backend.rows(&["SELECT count(*) FROM workorders WHERE NOT judged"]).await;
        let active: usize = active[0].parse().expect("a number");
        assert_eq!(active, (12 - finished).min(2), "as many as there is room for, and no more");
        let job = world.claim().await.expect("a job");
        world.hand_in(&job, good()).await;
        assert_eq!(world.judge().await.len(), 1);
        finished += 1;
        // Whoever took an event and found no room has given it back.
        assert_eq!(world.substrate.read(move |sql| claims::all(sql, 10)).await.expect("read"), []);
    }
    assert!(world.claim().await.is_none());
}

async fn scheduler(hands: &Hands, n: usize) {
    for (event, held) in hands.take_events(&format!("scheduler {n}")).await {
        hands.schedule(event, held).await;
    }
}

async fn a_lost_race_for_review_room_admits_nobody<B: Backend>() {
    let world = World::<B>::new("[limits]\nconcurrency = 5\nreview_limit = 1\n").await;
    for n in 0..6 {
        let ticket = world.create(&format!("t{n}")).await;
        world.approve(&ticket).await.expect("approved");
    }
    world.emit().await;
    let taken = world.take_events("slow").await;
    let mut taken = taken.into_iter();
    let (event, held) = taken.next().expect("an event");
    world.schedule(event, held).await;
    let job = world.claim().await.expect("a job");
    world.hand_in(&job, good()).await;
    world.judge().await;
    for (event, held) in taken {
        let answer = world.schedule(event, held).await;
        assert!(matches!(answer, Scheduled::NoRoom(_)), "{answer:?}");
    }
}

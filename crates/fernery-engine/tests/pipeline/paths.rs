//! Every way that an event can go.

use crate::pipeline::acts::block;
use crate::pipeline::hands::id;
use crate::pipeline::world::{Hands, LEASE, World, blueprint, draft, good};
use crate::support::backend::Backend;
use fernery_core::artifact::{
    BlockerKind, EventType, ObjectiveId, ObjectiveStatus, PauseReason, TerminalReason,
};
use fernery_core::pipeline::draft::NewBlocker;
use fernery_core::pipeline::prompt::title_of;
use fernery_engine::StoreError;
use fernery_engine::pipeline::Sql;
use fernery_engine::pipeline::acts::Refusal;
use fernery_engine::pipeline::blockers::Resolved;
use fernery_engine::pipeline::claims::{self, Claimer, HeldClaim};
use fernery_engine::pipeline::objectives::{self, NewObjective};
use fernery_engine::pipeline::scheduling::Scheduled;
use std::collections::BTreeSet;
use tokio::task::JoinSet;

on_both_backends!(
    without_an_event_the_scheduler_does_nothing,
    a_claimed_event_is_skipped_until_its_lease_runs_out,
    a_claim_record_is_checked_before_every_write,
    whoever_lost_a_claim_writes_nothing_with_it,
    a_stale_version_cannot_claim_an_event,
    an_event_without_its_ticket_is_processed_as_missing,
    an_event_of_a_ticket_that_is_not_todo_is_closed_with_that_reason,
    open_blockers_stop_a_ticket_at_a_pause_that_names_them,
    a_blocker_can_be_resolved_before_anything_has_stopped,
    a_ticket_with_invalid_blockers_is_not_stored,
    resolved_blockers_stop_nothing,
    an_executor_is_told_in_the_words_that_were_approved,
    a_key_title_of_a_ticket_stays_what_it_is,
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

async fn a_claim_record_is_checked_before_every_write<B: Backend>() {
    let (world, _) = World::<B>::with_ticket("").await;
    world.emit().await;
    let refused = async |owner: &str| {
        let (azolla, by) = (world.azolla.clone(), Claimer { owner_id: owner.into(), ttl: LEASE });
        let take = move |sql: &mut dyn Sql| {
            claims::take_events(sql, &azolla, EventType::TicketReady, &by, 100).map(|taken| taken.len())
        };
        let before = world.dump().await;
        let answer = world.substrate.transact(take).await;
        assert!(
            matches!(&answer, Err(StoreError::Corrupt(why)) if why.contains("claim_record")),
            "{answer:?}"
        );
        assert_eq!(world.dump().await, before);
    };
    let long = "x".repeat(201);
    refused("").await;
    refused(&long).await;
    let (_, held) = world.take_events("one").await.pop().expect("an event");
    world.backend.raw(&format!("UPDATE claims SET owner_id = '{long}'")).await.expect("damaged");
    let before = world.dump().await;
    let held = HeldClaim { owner_id: long.clone(), ..held };
    let renewed = world.substrate.transact(move |sql| claims::renew(sql, &held, LEASE)).await;
    assert!(matches!(&renewed, Err(StoreError::Corrupt(why)) if why.contains("claim_record")), "{renewed:?}");
    assert_eq!(world.dump().await, before, "renewal");
    world.backend.advance(LEASE).await;
    refused(&long).await;
    assert_eq!(world.take_events("two").await.len(), 1, "a take-over that is fit");
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
    assert_eq!(world.judge_one(stale).await, fernery_engine::pipeline::judging::Judged::ClaimLost);
    assert_eq!(world.dump().await, before);
    world.judge_one(theirs).await;
    assert_eq!(world.status(&ticket).await, ObjectiveStatus::Done);
    let left = world.substrate.read(move |sql| claims::all(sql, 10)).await.expect("read");
    assert_eq!(left, [], "what is done is in nobody's hands");
}

/// Invariant 9: a claim that came and went between look and grasp shows in the version.
async fn a_stale_version_cannot_claim_an_event<B: Backend>() {
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

/// No call leads here, so its row is another program's: readiness writes events for objectives that it has read, nothing deletes an
/// objective, and a folder whose event has no ticket is not imported.
async fn an_event_without_its_ticket_is_processed_as_missing<B: Backend>() {
    let world = World::<B>::new("").await;
    let insert = "INSERT INTO events (event_id, azolla_id, type, resource_id, entry, created_at)
                  SELECT $1, azolla_id, 'TICKET_READY', $2, 1, updated_at FROM azollas RETURNING event_id";
    assert_eq!(world.sql(insert, &["e1", "nowhere"]).await, 1);
    assert_eq!(world.sql(insert, &["e2", "not an id"]).await, 1);
    assert_eq!(world.pass().await, vec![Scheduled::Closed(TerminalReason::MissingTicket); 2]);
    assert_eq!(world.pass().await, []);
}

async fn an_event_of_a_ticket_that_is_not_todo_is_closed_with_that_reason<B: Backend>() {
    let set = "UPDATE objectives SET status = $1 RETURNING objective_id";
    let statuses: [&'static [&'static str]; 4] = [&["NEW"], &["IN_PROGRESS"], &["DONE"], &["BLOCKED"]];
    for status in statuses {
        let (world, ticket) = World::<B>::with_ticket("").await;
        world.emit().await;
        world.sql(set, status).await;
        let before = world.row(&ticket).await;
        assert_eq!(world.pass().await, [Scheduled::Closed(TerminalReason::NonExecutableStatus)]);
        assert_eq!(world.row(&ticket).await, before, "nothing else changes");
        let chain = world.chain(&ticket).await;
        assert!(chain.events[0].event.processed && chain.workorders.is_empty());
    }
}

fn blocker(id: Option<&str>, description: &str) -> NewBlocker {
    let blocker_id = id.map(|id| id.parse().expect("an id"));
    NewBlocker { blocker_id, kind: BlockerKind::UserInput, description: description.into() }
}

/// Writes a ticket down with these in its way.
async fn create_blocked<B: Backend>(
    world: &World<B>,
    name: &str,
    blocked_on: Vec<NewBlocker>,
) -> Result<ObjectiveId, Refusal> {
    let (ticket, azolla) = (id(name), world.azolla.clone());
    let new = NewObjective { blocked_on, ..NewObjective::new(&ticket, &azolla, draft("Do it")) };
    world.act(move |sql, who| objectives::create(sql, who, &new)).await.map(|_| ticket)
}

/// Invariants 13 and 16.
async fn open_blockers_stop_a_ticket_at_a_pause_that_names_them<B: Backend>() {
    let world = World::<B>::new("").await;
    let blockers = || vec![blocker(Some("key"), "the API key"), blocker(Some("host"), "a host name")];
    let ticket = create_blocked(&world, "t", blockers()).await.expect("created");
    assert_eq!(world.status(&ticket).await, ObjectiveStatus::New);
    world.approve(&ticket).await.expect("what is in its way keeps nobody from approving it");
    assert_eq!(world.status(&ticket).await, ObjectiveStatus::Todo);
    assert_eq!(world.pass().await, [Scheduled::Closed(TerminalReason::Blocked)]);
    let (row, chain) = (world.row(&ticket).await, world.chain(&ticket).await);
    assert_eq!(row.objective.status, ObjectiveStatus::Blocked);
    assert_eq!(
        row.objective.blocked_reason.as_deref(),
        Some("blocked on key (the API key), host (a host name)")
    );
    assert_eq!(chain.pauses.len(), 1);
    assert_eq!(chain.pauses[0].pause.reason, PauseReason::GateFailed);
    let actions = &chain.pauses[0].pause.prioritized_actions;
    assert!(actions.len() == 2 && actions[0].contains("key") && actions[1].contains("host"), "{actions:?}");
    assert_eq!(chain.workorders, []);
    // What the actions say leads on: one blocker is not enough, both re-emit the event.
    for (name, status) in [("key", ObjectiveStatus::Blocked), ("host", ObjectiveStatus::Todo)] {
        let these = Resolved::These(vec![name.parse().expect("an id")]);
        let row = world.unblock_from(&ticket, these).await;
        assert_eq!(row.expect("unblocked").objective.status, status);
    }
    assert!(matches!(world.pass().await[..], [Scheduled::Workorder(_)]));
    assert_eq!(world.chain(&ticket).await.events.len(), 2);
    // Written down again, as by somebody whose answer was lost, it is the same; with other blockers it is not.
    create_blocked(&world, "t", blockers()).await.expect("the same");
    for other in [vec![], blockers()[..1].to_vec(), vec![blocker(Some("key"), "the API key"); 1]] {
        assert_eq!(create_blocked(&world, "t", other).await, Err(Refusal::Taken));
    }
    assert_eq!(world.row(&ticket).await.objective.blocked_on.len(), 2);
}

async fn a_blocker_can_be_resolved_before_anything_has_stopped<B: Backend>() {
    let world = World::<B>::new("").await;
    for approved_first in [false, true] {
        let name = format!("t-{approved_first}");
        let two = vec![blocker(None, "one"), blocker(None, "two")];
        let ticket = create_blocked(&world, &name, two).await.expect("created");
        let (status, these) = match approved_first {
            true => {
                world.approve(&ticket).await.expect("approved");
                (ObjectiveStatus::Todo, Resolved::All)
            }
            false => (
                ObjectiveStatus::New,
                Resolved::These(["b1", "b2"].map(|b| b.parse().expect("an id")).to_vec()),
            ),
        };
        let row = world.unblock_from(&ticket, these).await.expect("resolved").objective;
        assert_eq!((row.status, row.has_open_blockers()), (status, false));
        let refused = world.unblock(&ticket).await;
        assert!(
            matches!(&refused, Err(Refusal::Status(now)) if now.status == status),
            "there is nothing more to resolve: {refused:?}"
        );
        if !approved_first {
            world.approve(&ticket).await.expect("approved");
        }
        assert!(matches!(world.pass().await[..], [Scheduled::Workorder(_)]), "{name}");
        assert_eq!(world.chain(&ticket).await.pauses, []);
    }
}

async fn a_ticket_with_invalid_blockers_is_not_stored<B: Backend>() {
    let world = World::<B>::new("").await;
    let before = world.dump().await;
    for bad in [
        vec![blocker(None, " ")],
        vec![blocker(Some("a"), "x"), blocker(Some("a"), "y")],
        vec![blocker(None, "x"); fernery_core::limits::BLOCKERS_MAX + 1],
    ] {
        assert!(matches!(create_blocked(&world, "t", bad).await, Err(Refusal::Unfit(_))));
    }
    assert_eq!(world.dump().await, before);
}

async fn an_executor_is_told_in_the_words_that_were_approved<B: Backend>() {
    let words = |text: &str| format!("[prompts]\nTEXT_DIAZOTROPH = \"{text}\"\n");
    let (world, ticket) =
        World::<B>::with_ticket(&words("Attempt {attempt} at {objective_id}.\\n\\n{ticket}")).await;
    // Other words are not what was approved.
    world.put_in_force(blueprint(&words("Do this:\\n{ticket}"))).await;
    assert_eq!(world.pass().await, [Scheduled::Closed(TerminalReason::NonExecutableStatus)]);
    world.approve(&ticket).await.expect("approved");
    assert!(matches!(world.pass().await[..], [Scheduled::Workorder(_)]));
    let told = &world.chain(&ticket).await.context_snapshots[0];
    assert_eq!(told.full_prompt_text, "Do this:\n# Do it\n\n## Done when\n```text\nit works\n```\n");
    assert_eq!(title_of(told), "Do it");
}

async fn a_key_title_of_a_ticket_stays_what_it_is<B: Backend>() {
    let (world, ticket) = World::<B>::with_ticket("").await;
    let (of, mut edited) = (ticket.clone(), draft("Do it"));
    edited.metadata.insert("title".into(), "Dr.".into());
    world.act(move |sql, who| objectives::edit(sql, who, &of, &edited)).await.expect("edited");
    world.approve(&ticket).await.expect("approved");
    assert!(world.pass().await.iter().any(|done| matches!(done, Scheduled::Workorder(_))));
    let told = &world.chain(&ticket).await.context_snapshots[0];
    assert_eq!((told.metadata["title"].as_str(), title_of(told).as_str()), (Some("Dr."), "Do it"));
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

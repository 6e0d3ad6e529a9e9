//! Everything done by several at once, or broken off between any two steps, ends as one undisturbed run does.

use crate::pipeline::world::{Hands, World, good};
use crate::support::backend::Backend;
use fernery_core::artifact::ObjectiveId;
use fernery_core::job::report::Answer;
use fernery_engine::pipeline::judging::Judged;
use fernery_engine::pipeline::objectives;
use fernery_engine::pipeline::objectives::ObjectiveRow;
use fernery_engine::pipeline::reading::Chain;
use fernery_engine::pipeline::scheduling::Scheduled;
use fernery_engine::store::Claimed;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::future::Future;
use tokio::task::JoinSet;

on_both_backends!(
    what_several_do_at_once_comes_to_what_one_does_alone,
    a_crash_between_any_two_steps_changes_nothing_in_the_end,
    a_cancel_and_a_verdict_at_once_both_come_through,
    an_edit_and_an_approval_at_once_never_leave_an_approval_of_something_else,
    a_take_over_and_a_late_renewal_at_once_leave_one_holder,
    readiness_takes_no_claim_and_emits_once_whoever_looks_and_however_late,
);

/// Runs the same on `count` tasks at once, every other one in another process where there can be one.
async fn at_once<B: Backend, T, F>(world: &World<B>, count: usize, act: impl Fn(Hands, usize) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    let elsewhere = world.elsewhere().await;
    for n in 0..count {
        let hands = if n % 2 == 0 { (**world).clone() } else { elsewhere.clone() };
        tasks.spawn(act(hands, n));
    }
    tasks.join_all().await
}

/// What came out, with ids and instants named in the order in which they come.
async fn artifacts(hands: &Hands, ticket: &ObjectiveId) -> String {
    let (row, chain): (ObjectiveRow, Chain) = (hands.row(ticket).await, hands.chain(ticket).await);
    let all = json!({"objective": row.objective, "entry": row.entry, "failures": row.failures,
        "attempts": row.spent.attempts, "unconfirmed": row.unconfirmed, "chain": chain});
    let mut names = HashMap::new();
    format!("{:#}", normal(&all, "", &mut names))
}

fn normal(value: &Value, key: &str, names: &mut HashMap<String, usize>) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(k, v)| (k.clone(), normal(v, k, names)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(|item| normal(item, key, names)).collect(),
        Value::String(text) if key.ends_with("_id") || key.ends_with("_ref") || key.ends_with("_refs") => {
            let next = names.len();
            json!(format!("#{}", names.entry(text.clone()).or_insert(next)))
        }
        _ if key.ends_with("_at") => json!("an instant"),
        // How often it was taken, and how long that took, is not what came out.
        _ if key == "claim_version" || key == "spent_ms" => json!(0),
        other => other.clone(),
    }
}

async fn undisturbed<B: Backend>() -> String {
    let (world, ticket) = World::<B>::with_ticket("").await;
    world.pass().await;
    let job = world.claim().await.expect("its job");
    world.hand_in(&job, good()).await;
    world.judge().await;
    artifacts(&world, &ticket).await
}

/// Invariants 1, 2, 10.
async fn what_several_do_at_once_comes_to_what_one_does_alone<B: Backend>() {
    let wanted = undisturbed::<B>().await;
    for count in [2, 5] {
        let world = World::<B>::new("").await;
        let ticket = world.create("t").await;
        let of = ticket.clone();
        let approvals = at_once(&world, count, move |hands, _| {
            let of = of.clone();
            async move { hands.approve(&of).await.expect("approved") }
        })
        .await;
        assert!(approvals.iter().all(|one| *one == approvals[0]), "one record for all");
        at_once(&world, count, |hands, _| async move { hands.emit().await }).await;
        let made = at_once(&world, count, |hands, n| async move { schedule(&hands, n).await }).await;
        assert_eq!(made.iter().flatten().filter(|m| matches!(m, Scheduled::Workorder(_))).count(), 1);
        let jobs: Vec<Option<Claimed>> =
            at_once(&world, count, |hands, _| async move { hands.claim().await }).await;
        let jobs: Vec<Claimed> = jobs.into_iter().flatten().collect();
        assert_eq!(jobs.len(), 1, "one job, one holder");
        let handed = at_once(&world, count, |hands, _| {
            let job = jobs[0].clone();
            async move { hands.hand_in(&job, good()).await }
        })
        .await;
        assert_eq!(handed.iter().filter(|a| matches!(a, Answer::Accepted { .. })).count(), 1, "{handed:?}");
        assert!(handed.iter().all(|a| matches!(a, Answer::Accepted { .. } | Answer::Duplicate { .. })));
        let judged = at_once(&world, count, |hands, n| async move { judge(&hands, n).await }).await;
        let recorded = judged.iter().flatten().filter(|j| matches!(j, Judged::Recorded(_))).count();
        assert_eq!(recorded, 1, "{judged:?}");
        assert_eq!(artifacts(&world, &ticket).await, wanted);
    }
}

async fn schedule(hands: &Hands, n: usize) -> Vec<Scheduled> {
    let mut done = Vec::new();
    for (event, held) in hands.take_events(&format!("scheduler {n}")).await {
        done.push(hands.schedule(event, held).await);
    }
    done
}

async fn judge(hands: &Hands, n: usize) -> Vec<Judged> {
    let mut done = Vec::new();
    for held in hands.take_executed(&format!("gate {n}")).await {
        done.push(hands.judge_one(held).await);
    }
    done
}

/// Invariant 17. After each step the process dies; leases that it had run out before the next one goes on.
async fn a_crash_between_any_two_steps_changes_nothing_in_the_end<B: Backend>() {
    let wanted = undisturbed::<B>().await;
    let mut world = World::<B>::new("").await;
    let ticket = world.create("t").await;
    for step in 0.. {
        world.crash().await;
        world.advance(61).await;
        world.store.reap(10).await.expect("reaped");
        world.store.promote(10).await.expect("promoted");
        // Each step is taken, thrown away with its process, and taken again.
        match step {
            0 | 1 => drop(world.approve(&ticket).await.expect("approved")),
            2 | 3 => drop(world.emit().await),
            4 => assert_eq!(world.take_events("dies").await.len(), 1),
            5 | 6 => drop(world.pass().await),
            7 => drop(world.claim().await.expect("its job")),
            8 => {
                let job = world.claim().await.expect("its job again");
                let first = world.hand_in(&job, good()).await;
                assert!(matches!(first, Answer::Accepted { .. }), "{first:?}");
                world.crash().await;
                let again = world.hand_in(&job, good()).await;
                assert!(matches!(again, Answer::Duplicate { .. }), "{again:?}");
            }
            9 => assert_eq!(world.take_executed("dies").await.len(), 1),
            10 | 11 => drop(world.judge().await),
            _ => break,
        }
    }
    assert_eq!(artifacts(&world, &ticket).await, wanted);
}

/// Whoever cancels comes from the objective, whoever judges from the workorder: neither waits for the other for good.
async fn a_cancel_and_a_verdict_at_once_both_come_through<B: Backend>() {
    let world = World::<B>::new("[limits]\nconcurrency = 0\nreview_limit = 0\n").await;
    for round in 0..8 {
        let ticket = world.create(&format!("t{round}")).await;
        world.approve(&ticket).await.expect("approved");
        world.pass().await;
        let job = world.claim().await.expect("its job");
        world.hand_in(&job, good()).await;
        let of = ticket.clone();
        at_once(&world, 4, move |hands, n| {
            let of = of.clone();
            async move {
                match n {
                    0 | 1 => drop(judge(&hands, n).await),
                    _ => drop(hands.cancel(&of).await),
                }
            }
        })
        .await;
        let chain = world.chain(&ticket).await;
        // A cancel that comes after the verdict makes a pause of its own; one that comes before it leaves that to the verdict.
        let made = [chain.runs.len(), chain.pauses.len()];
        assert!(matches!(made, [1, 1 | 2]), "{made:?} runs and pauses");
        let objective = world.row(&ticket).await.objective;
        let ended = (objective.status.as_str(), objective.blocked_reason.as_deref());
        assert_eq!(ended, ("BLOCKED", Some("cancelled")), "a cancel is taken in every status");
    }
}

/// Invariant 10.
async fn an_edit_and_an_approval_at_once_never_leave_an_approval_of_something_else<B: Backend>() {
    let world = World::<B>::new("").await;
    for round in 0..8 {
        let ticket = world.create(&format!("t{round}")).await;
        let of = ticket.clone();
        at_once(&world, 4, move |hands, n| {
            let of = of.clone();
            async move {
                if n < 2 {
                    return drop(hands.approve(&of).await);
                }
                let draft = crate::pipeline::world::draft(&format!("Edited by {n}"));
                drop(hands.act(move |sql, who| objectives::edit(sql, who, &of, &draft)).await);
            }
        })
        .await;
        let (row, chain) = (world.row(&ticket).await, world.chain(&ticket).await);
        let shown = fernery_engine::pipeline::objectives::shown(
            &row.objective,
            &crate::pipeline::world::blueprint(""),
        );
        match row.approval {
            Some(approval) => {
                assert_eq!(row.objective.status.as_str(), "TODO");
                let decision = chain.decisions.iter().find(|d| d.record_id == approval).expect("its record");
                assert_eq!(decision.digest, shown.digest);
            }
            None => assert_eq!(row.objective.status.as_str(), "NEW"),
        }
    }
}

/// Invariants 3 and 9.
async fn a_take_over_and_a_late_renewal_at_once_leave_one_holder<B: Backend>() {
    use fernery_engine::pipeline::claims;
    let (world, _) = World::<B>::with_ticket("").await;
    world.emit().await;
    let (event, mut held) = world.take_events("first").await.pop().expect("an event");
    for round in 0..10 {
        world.advance(61).await;
        let late = held.clone();
        let holders = at_once(&world, 4, move |hands, n| {
            let late = late.clone();
            async move {
                if n > 0 {
                    return hands.take_events(&format!("{round}-{n}")).await.pop().map(|(_, held)| held);
                }
                let renewed = hands
                    .substrate
                    .transact(move |sql| claims::renew(sql, &late, crate::pipeline::world::LEASE));
                renewed.await.expect("stored")
            }
        })
        .await;
        let holders: Vec<_> = holders.into_iter().flatten().collect();
        assert_eq!(holders.len(), 1, "{holders:?}");
        assert!(holders[0].claim_version > held.claim_version);
        assert_eq!(world.schedule(event.clone(), held).await, Scheduled::ClaimLost);
        held = holders[0].clone();
    }
    assert!(matches!(world.schedule(event, held).await, Scheduled::Workorder(_)));
}

/// Both kinds of readiness, by many at once from two processes, and by one who saw it before and comes when all is over. A claim
/// would keep others away until it runs out; the key of the event keeps a second one away for ever.
async fn readiness_takes_no_claim_and_emits_once_whoever_looks_and_however_late<B: Backend>() {
    let world = crate::pipeline::desk::office::<B>("").await;
    let (shop, named) = World::<B>::with_ticket("").await;
    world.capture_many(10).await;
    let announced = at_once(&world, 8, |hands, _| async move { hands.announce(100).await }).await;
    assert_eq!(announced.iter().sum::<usize>(), 10, "one event for each capture");
    at_once(&shop, 8, |hands, _| async move { hands.emit().await }).await;
    assert_eq!(shop.chain(&named).await.events.len(), 1, "one event for one entry into TODO");
    let events = |hands: &Hands| {
        let newest = fernery_engine::pipeline::reading::Below::newest();
        let substrate = hands.substrate.clone();
        async move {
            let all = move |sql: &mut dyn fernery_engine::pipeline::Sql| {
                fernery_engine::pipeline::reading::events(sql, &newest, 1_000)
            };
            substrate.read(all).await.expect("read")
        }
    };
    shop.pass().await;
    while world.pending().await > 0 {
        world.round().await;
    }
    for hands in [&*world, &*shop] {
        let before = events(hands).await;
        // Long after any lease, one who decided to emit before any of this writes what it decided then.
        for view in before.clone() {
            let late = move |sql: &mut dyn fernery_engine::pipeline::Sql| {
                let event = &view.event;
                let cells = [
                    "late".into(),
                    event.azolla_id.as_str().into(),
                    event.event_type.as_str().into(),
                    (&event.resource_id).into(),
                    view.entry.into(),
                    sql.now().into(),
                ];
                sql.query(include_str!("../../src/pipeline/sql/event_insert.sql"), &cells)
            };
            let written = hands.substrate.transact(late).await.expect("answered");
            assert!(written.is_empty(), "the key is taken, also by an event that is processed");
        }
        assert_eq!(events(hands).await, before);
    }
}

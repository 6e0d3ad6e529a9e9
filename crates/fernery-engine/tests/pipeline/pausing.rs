//! What people read about pauses: what really happened, which of them still wait for somebody, and who waits for another ticket.

use crate::pipeline::acts::block;
use crate::pipeline::hands::id;
use crate::pipeline::world::{Hands, World, draft, good};
use crate::support::backend::Backend;
use fernery_core::artifact::{ObjectiveId, ObjectiveStatus};
use fernery_core::pipeline::dependency::Stands;
use fernery_engine::pipeline::objectives::{self, NewObjective};
use fernery_engine::pipeline::reading::{self, Below};
use fernery_engine::pipeline::{after, pauses};
use serde_json::json;

on_both_backends!(
    a_pause_says_what_really_happened,
    a_pause_waits_for_somebody_until_its_ticket_goes_on,
    a_ticket_that_waits_for_another_one_asks_nobody,
);

/// Nothing is tried again, and nothing waits for room.
const ONCE: &str = "[limits]\nconcurrency = 0\nreview_limit = 0\n[retry]\ngate_failures = 0\n";

/// A ticket whose executor hands this in.
async fn ended(hands: &Hands, name: &str, result: serde_json::Value) -> ObjectiveId {
    let ticket = hands.create(name).await;
    hands.approve(&ticket).await.expect("approved");
    hands.pass().await;
    let job = hands.claim().await.expect("its job");
    hands.hand_in(&job, result).await;
    hands.judge().await;
    ticket
}

async fn happened(hands: &Hands, of: &ObjectiveId) -> Vec<String> {
    let all = hands.chain(of).await.pauses;
    all.into_iter().map(|pause| format!("{}: {}", pause.pause.reason, pause.happened)).collect()
}

async fn a_pause_says_what_really_happened<B: Backend>() {
    let world = World::<B>::new(ONCE).await;
    for (outcome, said) in [
        ("NO_CHANGE", "GATE_FAILED: the executor changed nothing"),
        ("FAILED", "GATE_FAILED: the executor failed"),
        ("BUDGET", "BUDGET_EXHAUSTED: its budget is spent"),
        ("BLOCKED", "GATE_FAILED: the executor asks a question"),
        ("INFRA", "GATE_FAILED: it could not be executed"),
    ] {
        let mut result = good();
        result["metadata"] = json!({ "outcome": outcome });
        let ticket = ended(&world, outcome, result).await;
        assert_eq!(happened(&world, &ticket).await, [said]);
    }
    let passed = ended(&world, "good", good()).await;
    assert_eq!(happened(&world, &passed).await, ["RUN_COMPLETE: passed its gates"]);
    let stopped = world.create("stopped").await;
    block(&world, &stopped, None).await.expect("blocked");
    world.cancel(&stopped).await.expect("cancelled");
    assert_eq!(
        happened(&world, &stopped).await,
        ["GATE_FAILED: a person blocked it", "RUN_COMPLETE: cancelled"]
    );
    // The list of all says the same.
    let page = world.substrate.read(|sql| reading::pauses(sql, &Below::newest(), 100)).await.expect("read");
    let mut all = page.into_iter().rev().map(|of| of.happened).collect::<Vec<_>>();
    all.sort();
    let mut wanted = Vec::new();
    for name in ["NO_CHANGE", "FAILED", "BUDGET", "BLOCKED", "INFRA", "good", "stopped"] {
        wanted.extend(world.chain(&id(name)).await.pauses.into_iter().map(|of| of.happened));
    }
    wanted.sort();
    assert_eq!(all, wanted);
}

async fn waiting(hands: &Hands) -> Vec<String> {
    let found = hands.substrate.read(|sql| pauses::unanswered(sql, 100)).await.expect("read");
    let mut names: Vec<_> = found.iter().map(|of| of.pause.objective_id.to_string()).collect();
    names.sort();
    names
}

async fn a_pause_waits_for_somebody_until_its_ticket_goes_on<B: Backend>() {
    let world = World::<B>::new(ONCE).await;
    let done = ended(&world, "done", good()).await;
    let failed = ended(
        &world,
        "failed",
        json!({"title": "t", "content": "", "notes": "",
        "metadata": {"outcome": "FAILED"}}),
    )
    .await;
    let blocked = world.create("blocked").await;
    block(&world, &blocked, None).await.expect("blocked");
    block(&world, &blocked, Some("again")).await.expect("blocked");
    assert_eq!(waiting(&world).await, ["blocked", "done", "failed"], "of each ticket the last pause");
    world.confirm(&done).await.expect("confirmed");
    world.unblock(&blocked).await.expect("unblocked");
    assert_eq!(waiting(&world).await, ["failed"]);
    world.cancel(&failed).await.expect("cancelled");
    assert_eq!(waiting(&world).await, [""; 0]);
}

async fn a_ticket_that_waits_for_another_one_asks_nobody<B: Backend>() {
    let world = World::<B>::new(ONCE).await;
    let (first, second) = (world.create("first").await, id("second"));
    let new = NewObjective {
        after: vec![first.clone()],
        ..NewObjective::new(&second, &world.azolla, draft("Then"))
    };
    world.act(move |sql, who| objectives::create(sql, who, &new)).await.expect("created");
    world.approve(&second).await.expect("approved");
    world.pass().await;
    assert_eq!(world.status(&second).await, ObjectiveStatus::Blocked);
    let [pause] = &world.chain(&second).await.pauses[..] else { panic!("one pause") };
    assert_eq!(pause.happened, "it waits for another ticket");
    let [action] = &pause.pause.prioritized_actions[..] else { panic!("{pause:?}") };
    assert!(action.contains("fernery ticket approve first") && !action.contains("unblock"), "{action}");
    assert_eq!(waiting(&world).await, [""; 0], "it waits for nobody");
    let stands = async || {
        let objective = world.row(&second).await.objective;
        let found = world.substrate.read(move |sql| after::waits_of(sql, &objective)).await.expect("read");
        found.iter().map(|of| (of.on.to_string(), of.stands)).collect::<Vec<_>>()
    };
    assert_eq!(stands().await, [("first".to_string(), Stands::NotApproved)]);
    world.approve(&first).await.expect("approved");
    world.pass().await;
    assert_eq!(stands().await, [("first".to_string(), Stands::UnderWay)]);
    let job = world.claim().await.expect("its job");
    world.hand_in(&job, good()).await;
    world.judge().await;
    assert_eq!(stands().await, [("first".to_string(), Stands::NotConfirmed)]);
    world.advance(1).await;
    world.cancel(&first).await.expect("cancelled");
    assert_eq!(stands().await, [("first".to_string(), Stands::Cancelled)]);
    assert_eq!(waiting(&world).await, ["second"], "now a person has to decide");
    // A blocker that somebody wrote down in the same words is no such thing.
    let third = world.create("third").await;
    let kind = fernery_core::artifact::BlockerKind::DependencyChange;
    let (of, record) = (third.clone(), crate::pipeline::world::record());
    let words = "waits until first is confirmed or has landed: Do it";
    world
        .act(move |sql, who| {
            fernery_engine::pipeline::blockers::block(sql, who, (&of, &record), None, kind, words)
        })
        .await
        .expect("blocked");
    let objective = world.row(&third).await.objective;
    let found = world.substrate.read(move |sql| after::waits_of(sql, &objective)).await.expect("read");
    assert_eq!(found, []);
}

//! What people read about pauses: what really happened, which of them still wait for somebody, and who waits for another ticket.

use crate::pipeline::acts::block;
use crate::pipeline::hands::id;
use crate::pipeline::world::{Hands, World, draft, good};
use crate::support::backend::Backend;
use fernery_core::artifact::{AzollaId, ObjectiveId, ObjectiveStatus};
use fernery_core::blueprint::Blueprint;
use fernery_core::pipeline::dependency::Stands;
use fernery_engine::pipeline::inbox::deadlines;
use fernery_engine::pipeline::objectives::{self, NewObjective};
use fernery_engine::pipeline::reading::{self, Below, Paused};
use fernery_engine::pipeline::snoozes::{self, Subject};
use fernery_engine::pipeline::{after, pauses};
use serde_json::json;

on_both_backends!(
    a_pause_says_what_really_happened,
    a_pause_waits_for_somebody_until_its_ticket_goes_on,
    a_ticket_that_waits_for_another_one_asks_nobody,
    what_is_overdue_asks_too_but_hides_no_question_and_not_while_it_is_snoozed,
    pauses_that_wait_come_in_pages_each_once,
    a_pause_says_what_happened_without_the_bundle_of_its_run,
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
    let found = hands.substrate.read(|sql| pauses::unanswered(sql, &Below::newest(), 100)).await;
    let found = found.expect("read");
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

/// An azolla with an inbox watches these tickets until they are late, and tells so.
async fn tell_overdue<B: Backend>(world: &World<B>, tickets: &[ObjectiveId]) {
    let desk = "extends = \"task_management\"\nazolla_id = \"desk\"\n";
    world.put_in_force(Blueprint::parse(desk, &|_| None).expect("a blueprint")).await;
    let mut objectives = Vec::new();
    for ticket in tickets {
        objectives.push(world.row(ticket).await.objective);
    }
    let (by, source) = (AzollaId::stored("desk"), world.azolla.clone());
    let watch = world.substrate.transact(move |sql| deadlines::watch(sql, &by, (&source, None), &objectives));
    watch.await.expect("watched");
    world.advance(30 * 24 * 3_600).await;
    let by = AzollaId::stored("desk");
    let told = world.substrate.transact(move |sql| deadlines::tell(sql, &by, 100)).await.expect("told");
    assert_eq!(told, tickets.len());
}

fn asks() -> serde_json::Value {
    json!({"title": "t", "content": "", "notes": "", "metadata": {"outcome": "BLOCKED", "question": "Which?"}})
}

async fn what_is_overdue_asks_too_but_hides_no_question_and_not_while_it_is_snoozed<B: Backend>() {
    let world = World::<B>::new(ONCE).await;
    let asking = ended(&world, "asking", asks()).await;
    let (late, snoozed) = (world.create("late").await, world.create("snoozed").await);
    tell_overdue(&world, &[asking, late, snoozed.clone()]).await;
    assert_eq!(waiting(&world).await, ["asking", "late", "snoozed"], "each once");
    let all = world.substrate.read(|sql| pauses::unanswered(sql, &Below::newest(), 100)).await.expect("read");
    let of = |name: &str| all.iter().find(|of| of.pause.objective_id.as_str() == name).expect("a pause");
    assert_eq!(of("asking").happened, "the executor asks a question");
    assert!(of("late").key.starts_with("overdue:desk:a/late:"), "{}", of("late").key);
    let record = crate::pipeline::world::record();
    let hide = move |sql: &mut dyn fernery_engine::pipeline::Sql, who: &_| {
        snoozes::snooze(sql, who, (&Subject::Objective(snoozed.clone()), &record), Some("2d"))
    };
    world.act(hide).await.expect("snoozed");
    assert_eq!(waiting(&world).await, ["asking", "late"]);
    world.advance(3 * 24 * 3_600).await;
    assert_eq!(waiting(&world).await, ["asking", "late", "snoozed"], "it is in sight again");
}

async fn pauses_that_wait_come_in_pages_each_once<B: Backend>() {
    let world = World::<B>::new(ONCE).await;
    let mut tickets = Vec::new();
    for n in 0..5 {
        let ticket = world.create(&format!("t{n}")).await;
        if n < 3 {
            block(&world, &ticket, None).await.expect("blocked");
        }
        tickets.push(ticket);
    }
    tell_overdue(&world, &tickets).await;
    let page = async |below: Below, rows: i64| -> Vec<Paused> {
        world.substrate.read(move |sql| pauses::unanswered(sql, &below, rows)).await.expect("read")
    };
    let all = page(Below::newest(), 100).await;
    assert_eq!(all.len(), 5);
    let (mut found, mut below) = (Vec::new(), Below::newest());
    loop {
        let next = page(below.clone(), 2).await;
        let Some(last) = next.last() else { break };
        below = Below { at: last.pause.created_at, id: last.key.clone() };
        found.extend(next);
    }
    assert_eq!(found, all);
}

async fn a_pause_says_what_happened_without_the_bundle_of_its_run<B: Backend>() {
    let world = World::<B>::new(ONCE).await;
    let ticket = ended(&world, "asking", asks()).await;
    // A run whose bundle is nowhere, and one that an earlier version judged: its bundle alone has the outcome.
    for copy in [
        "INSERT INTO runs (run_id, work_order_id, objective_id, azolla_id, created_at, document, evidence, outcome)
         SELECT 'r-new', 'w-new', objective_id, azolla_id, created_at, document, evidence, 'FAILED' FROM runs RETURNING run_id;",
        "INSERT INTO runs (run_id, work_order_id, objective_id, azolla_id, created_at, document, evidence)
         SELECT 'r-old', 'w-old', objective_id, azolla_id, created_at, document, evidence FROM runs WHERE run_id = 'r-new'
         RETURNING run_id;",
        "INSERT INTO bundles (output_id, work_order_id, objective_id, created_at, document)
         SELECT 'o-old', 'w-old', objective_id, created_at, document FROM bundles RETURNING output_id;",
        "INSERT INTO pauses (pause_key, objective_id, azolla_id, created_at, document)
         SELECT key, objective_id, azolla_id, created_at, document
         FROM pauses, (SELECT 'run:w-new' AS key UNION ALL SELECT 'run:w-old') named RETURNING pause_key;",
    ] {
        assert!(world.sql(copy, &[]).await > 0, "{copy}");
    }
    let mut said = happened(&world, &ticket).await;
    said.sort();
    let asked = "GATE_FAILED: the executor asks a question";
    assert_eq!(said, [asked, asked, "GATE_FAILED: the executor failed"]);
    let lists = world.substrate.read(|sql| {
        let all = reading::pauses(sql, &Below::newest(), 10)?;
        Ok((all, pauses::unanswered(sql, &Below::newest(), 10)?))
    });
    let (all, unanswered) = lists.await.expect("read");
    let of = |all: &[Paused], key: &str| all.iter().find(|of| of.key == key).map(|of| of.happened.clone());
    assert_eq!(of(&all, "run:w-new").as_deref(), Some("the executor failed"));
    assert_eq!(of(&all, "run:w-old").as_deref(), Some("the executor asks a question"));
    let last = unanswered.first().expect("the last one waits");
    assert_eq!(Some(&last.happened), of(&all, &last.key).as_ref());
}

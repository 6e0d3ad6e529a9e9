//! What one azolla reads of another: what the membrane lets through, which of it, and what is kept of the answers.

use crate::pipeline::desk::{office, query};
use crate::pipeline::hands::id;
use crate::pipeline::manifests::{state, ticket};
use crate::pipeline::world::World;
use crate::support::backend::Backend;
use fernery_core::artifact::{AzollaId, EventType, QueryStatus, ResponseId, SubstrateQueryResponse};
use fernery_core::blueprint::{ReadableArtifact, Reads};
use fernery_engine::pipeline::acts;
use fernery_engine::pipeline::blockers;
use fernery_engine::pipeline::inbox::answers::{self, Answered};
use fernery_engine::pipeline::inbox::queries;
use serde_json::{Value, json};

on_both_backends!(
    the_membrane_lets_through_what_is_declared,
    pauses_are_on_the_page_where_objectives_are_denied,
    of_an_answer_a_bounded_part_is_kept_and_can_be_read,
    a_filter_lets_through_what_it_says,
);

async fn the_membrane_lets_through_what_is_declared<B: Backend>() {
    let world = office::<B>("[reads]\nazollas = [\"mec\"]\nartifact_types = [\"objective\"]\n").await;
    ticket(&world, "t1").await;
    let ask = |source: &str, target: &str, of, visitor: Option<Reads>| {
        let (query, substrate) = (query(&AzollaId::stored(source), target, of), world.substrate.clone());
        async move {
            substrate.read(move |sql| queries::answer(sql, &query, visitor.as_ref())).await.expect("answered")
        }
    };
    use ReadableArtifact::{BlockerRef, Objective, PauseState};
    let fine = ask("a", "mec", Objective, None).await;
    assert_eq!((fine.status, fine.results.len()), (QueryStatus::Ok, 1));
    let mut reads = Reads { azollas: vec![AzollaId::stored("mec")], ..Reads::default() };
    reads.artifact_types.push(PauseState);
    for (source, target, of, visitor) in [
        ("a", "mec", PauseState, None),
        ("a", "mec", BlockerRef, None),
        ("a", "none", Objective, None),
        ("mec", "a", Objective, None),
        ("stranger", "mec", Objective, None),
        ("stranger", "mec", Objective, Some(Reads::default())),
        ("stranger", "mec", Objective, Some(reads.clone())),
        ("stranger", "a", PauseState, Some(reads.clone())),
    ] {
        let denied = ask(source, target, of, visitor).await;
        assert_eq!((denied.status, denied.results.len()), (QueryStatus::Denied, 0), "{source} {target} {of}");
    }
    assert_eq!(ask("stranger", "mec", PauseState, Some(reads)).await.status, QueryStatus::Ok);
}

/// Two questions to `mec` as they might have been answered.
fn answered<B: Backend>(world: &World<B>, of: [(QueryStatus, Vec<Value>); 2]) -> Vec<Answered> {
    let kinds = [ReadableArtifact::Objective, ReadableArtifact::PauseState];
    let all = kinds.into_iter().zip(of).map(|(kind, (status, results))| {
        let query = query(&world.azolla, "mec", kind);
        let response = SubstrateQueryResponse {
            response_id: ResponseId::stored(&fernery_engine::door::artifact_id()),
            query_id: query.query_id.clone(),
            target_azolla_id: query.target_azolla_id.clone(),
            status,
            results,
            created_at: query.created_at,
        };
        Answered { query, response, server: None }
    });
    all.collect()
}

async fn schedule_with<B: Backend>(world: &World<B>, request: &str, answered: Vec<Answered>) {
    world.request(request).await;
    for (event, held) in world.take(EventType::ManifestRequested, "m", 1).await {
        world.schedule_asked(event, held, answered.clone()).await;
    }
}

async fn pauses_are_on_the_page_where_objectives_are_denied<B: Backend>() {
    let world = office::<B>("").await;
    let pause = json!({"objective_id": "t1", "azolla_id": "mec", "reason": "GATE_FAILED",
        "prioritized_actions": ["look"], "created_at": "2026-01-01T00:00:00Z"});
    let nothing = [(QueryStatus::Denied, vec![]), (QueryStatus::Ok, vec![])];
    let paused = [(QueryStatus::Denied, vec![]), (QueryStatus::Ok, vec![pause])];
    for (request, of, said) in
        [("r1", nothing, "mec denied a part of it"), ("r2", paused, "fernery ticket show t1")]
    {
        schedule_with(&world, request, answered(&world, of)).await;
        world.round().await;
        let page = state(&world, request).await.manifest.expect("made").manifest;
        let text = page.prioritized_orientation.join("");
        assert!(text.contains(said) && text.contains("mec denied a part of it"), "{text}");
        assert!(!text.to_lowercase().contains("nothing needs you"), "{text}");
        assert_eq!(page.pause_state_summary.len(), usize::from(request == "r2"));
    }
}

async fn of_an_answer_a_bounded_part_is_kept_and_can_be_read<B: Backend>() {
    let world = office::<B>("").await;
    let large: Vec<Value> = (0..500).map(|n| json!({"n": n, "text": "x".repeat(1_000)})).collect();
    let (ok, kept_max) = (QueryStatus::Ok, fernery_core::limits::RESPONSE_KEPT_BYTES_MAX);
    schedule_with(&world, "r", answered(&world, [(ok, large), (ok, vec![json!({"n": 1})])])).await;
    let (by, newest) = (world.azolla.clone(), fernery_engine::pipeline::reading::Below::newest());
    let all = world.substrate.read(move |sql| answers::page(sql, &by, &newest, 10)).await.expect("read");
    let told: Vec<_> = all.iter().map(|view| view.results_told.expect("counted")).collect();
    assert_eq!(told.iter().sum::<u64>(), 501);
    for view in all {
        let id = view.query.query_id.clone();
        let found = world.substrate.read(move |sql| answers::by_id(sql, &id)).await.expect("read");
        assert_eq!(found.as_ref(), Some(&view));
        let kept = view.response.results.len();
        assert!(
            kept > 0 && serde_json::to_string(&view.response.results).expect("JSON").len() <= kept_max + 2
        );
        assert_eq!(kept < 500, view.results_told == Some(500) || kept == 1);
    }
    // What nobody here can read is counted, and no page says that nothing waits.
    world.round().await;
    let page = state(&world, "r").await.manifest.expect("made").manifest;
    assert!(page.prioritized_orientation[0].contains("mec told of 501 that cannot be read"), "{page:?}");
}

async fn a_filter_lets_through_what_it_says<B: Backend>() {
    let world = office::<B>("").await;
    for name in ["t1", "t2", "t3"] {
        ticket(&world, name).await;
        world.advance(10).await;
    }
    let of = id("t2");
    let (kind, act) = (fernery_core::artifact::BlockerKind::UserInput, crate::pipeline::hands::record());
    let block = move |sql: &mut dyn fernery_engine::pipeline::Sql, who: &acts::Actor| {
        blockers::block(sql, who, (&of, &act), None, kind, "which?")
    };
    world.act(block).await.expect("blocked");
    let second = world.row(&id("t2")).await.objective;
    let ask = |of, filter: Value| {
        let mut query = query(&world.azolla, "mec", of);
        query.filter = serde_json::from_value(filter).expect("an object");
        let substrate = world.substrate.clone();
        async move {
            let answer = substrate.read(move |sql| queries::answer(sql, &query, None)).await;
            answer.map(|answer| {
                let id = |result: &Value| result["objective_id"].as_str().unwrap_or_default().to_string();
                answer.results.iter().map(id).collect::<Vec<_>>().join(" ")
            })
        }
    };
    use ReadableArtifact::{BlockerRef, Objective, PauseState};
    for (of, filter, expected) in [
        (Objective, json!({}), "t1 t2 t3"),
        (Objective, json!({"status": "BLOCKED"}), "t2"),
        (Objective, json!({"status": ["NEW", "DONE"]}), "t1 t3"),
        (Objective, json!({"status": "IN_PROGRESS"}), ""),
        (Objective, json!({"urgency": second.urgency}), "t1 t2 t3"),
        (Objective, json!({"urgency": [(second.urgency + 1) % 5]}), ""),
        (Objective, json!({"created_after": second.created_at}), "t3"),
        (Objective, json!({"created_before": second.created_at}), "t1"),
        (Objective, json!({"updated_before": second.updated_at, "status": "NEW"}), "t1 t3"),
        (Objective, json!({"updated_after": "1970-01-01T00:00:00Z"}), "t1 t3 t2"),
        (Objective, json!({"updated_after": second.updated_at, "after_id": "t1"}), "t2"),
        (Objective, json!({"updated_after": "1970-01-01T00:00:00Z", "open": true, "status": "NEW"}), "t1 t3"),
        (Objective, json!({"open": false}), "t1 t2 t3"),
        (Objective, json!({"open": false, "created_after": second.created_at}), "t3"),
        (Objective, json!({"open": false, "status": "DONE"}), ""),
        (PauseState, json!({}), "t2"),
        (PauseState, json!({"reason": ["GATE_FAILED"]}), "t2"),
        (PauseState, json!({"reason": "RUN_COMPLETE"}), ""),
        (PauseState, json!({"created_after": second.updated_at}), ""),
        (
            PauseState,
            json!({"created_before": second.updated_at.after(std::time::Duration::from_secs(1))}),
            "t2",
        ),
    ] {
        assert_eq!(ask(of, filter.clone()).await.as_deref(), Ok(expected), "{of} {filter}");
    }
    let refused = ask(BlockerRef, json!({"status": "NEW"})).await;
    assert!(format!("{refused:?}").contains("/filter/status"), "{refused:?}");
}

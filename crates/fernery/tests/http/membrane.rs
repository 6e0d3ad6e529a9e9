//! What azollas of other instances are answered over HTTP: those that are known here, what they may read, and nothing else.

use crate::inbox::register;
use crate::server::{Backend, TestServer};
use fernery::config::Visitors;
use fernery_core::artifact::AzollaId;
use fernery_core::blueprint::{ReadableArtifact, Reads};
use serde_json::{Value, json};

fn laptop(visitors: &mut Visitors) {
    let reads = Reads {
        every_azolla: false,
        azollas: vec![AzollaId::stored("mec"), AzollaId::stored("gone")],
        artifact_types: vec![ReadableArtifact::Objective, ReadableArtifact::BlockerRef],
    };
    visitors.insert(AzollaId::stored("laptop"), reads);
}

async fn the_membrane_answers_to_whom_it_knows(backend: Backend) {
    let server = TestServer::build(backend, |settings| laptop(&mut settings.visitors)).await;
    register(&server).await;
    let ticket = server.post("/v1/objectives", &json!({ "objective_id": "T-1", "title": "One" })).await;
    assert_eq!(ticket.status, 201, "{ticket:?}");
    let block = json!({ "kind": "USER_INPUT", "description": "Which?", "blocker_id": "b" });
    assert_eq!(server.post("/v1/objectives/T-1/block", &block).await.status, 200);
    let ask = |source: &str, target: &str, artifact: &str| {
        json!({ "query_id": "q-1", "source_azolla_id": source, "target_azolla_id": target,
            "artifact_type": artifact, "filter": {}, "created_at": "2026-01-01T00:00:00Z" })
    };
    let viewer = server.token("viewer").await;
    // A visitor's token asks as the azolla that it is for, and is answered as that.
    let visitor = server.token("visitor").await;
    for (source, target, artifact, status, results) in [
        ("laptop", "mec", "objective", "OK", 1),
        ("laptop", "mec", "blocker_ref", "OK", 1),
        ("laptop", "mec", "pause_state", "DENIED", 0),
        ("laptop", "task_management", "objective", "DENIED", 0),
        ("laptop", "gone", "objective", "DENIED", 0),
        ("stranger", "mec", "objective", "DENIED", 0),
        // It may read here, and is no visitor.
        ("task_management", "mec", "objective", "DENIED", 0),
    ] {
        let asked = ask(source, target, artifact);
        let path = format!("/v1/azollas/{target}/query");
        let by_visitor = server.call(&visitor, "POST", &path, &asked.to_string()).await;
        let answer = server.call(&viewer, "POST", &path, &asked.to_string()).await;
        match source {
            "laptop" => {
                let (theirs, ours) = (by_visitor.json(), answer.json());
                for field in ["status", "query_id", "results"] {
                    assert_eq!(theirs[field], ours[field], "{asked} {by_visitor:?}");
                }
            }
            _ => assert_eq!((by_visitor.status, by_visitor.code()), (403, "forbidden".into()), "{asked}"),
        }
        assert_eq!(answer.status, 200, "{answer:?}");
        let answer = answer.json();
        assert_eq!(
            (&answer["status"], &answer["query_id"]),
            (&json!(status), &json!("q-1")),
            "{asked} {answer}"
        );
        assert_eq!(answer["results"].as_array().map(Vec::len), Some(results), "{asked} {answer}");
        assert_eq!(answer["target_azolla_id"], target);
    }
    let mut since = ask("laptop", "mec", "objective");
    for (filter, results) in [
        (json!({ "updated_after": "1970-01-01T00:00:00Z" }), 1),
        (json!({ "updated_after": "9000-01-01T00:00:00Z", "after_id": "x" }), 0),
        (json!({ "status": "BLOCKED", "urgency": [0, 1, 2, 3, 4] }), 1),
        (json!({ "status": ["NEW", "DONE"] }), 0),
    ] {
        since["filter"] = filter;
        let answer = server.post("/v1/azollas/mec/query", &since).await;
        assert_eq!(answer.json()["results"].as_array().map(Vec::len), Some(results), "{since} {answer:?}");
    }
    let changed = |field: &str, value: Value| {
        let mut asked = ask("laptop", "mec", "objective");
        asked[field] = value;
        asked
    };
    for (asked, pointer) in [
        (changed("target_azolla_id", json!("task_management")), "/target_azolla_id"),
        (changed("artifact_type", json!("run_record")), "/artifact_type"),
        (changed("filter", json!([])), "/filter"),
        (
            changed("filter", json!({ "updated_after": "2020-01-01T00:00:00Z", "after_id": "\u{0}" })),
            "/filter/after_id",
        ),
        (changed("filter", json!({ "reason": "GATE_FAILED" })), "/filter/reason"),
        (changed("filter", json!({ "priority": 1 })), "/filter/priority"),
        (changed("query_id", json!("a b")), "/query_id"),
        (changed("source_azolla_id", json!(null)), "/source_azolla_id"),
        (changed("created_at", json!("now")), "/created_at"),
        (changed("created_at", json!("1900-01-01T00:00:00Z")), "/created_at"),
        (changed("x", json!(1)), "/x"),
        (json!([]), ""),
        (json!("x"), ""),
    ] {
        let refused = server.post("/v1/azollas/mec/query", &asked).await;
        assert_eq!((refused.status, refused.pointers()), (422, vec![pointer.into()]), "{asked} {refused:?}");
    }
    assert_eq!(server.post("/v1/azollas/mec/query", &json!({})).await.status, 422);
    for path in ["a%00b", "..", "a%20b"] {
        let asked = ask("laptop", "mec", "objective");
        assert_eq!(server.post(&format!("/v1/azollas/{path}/query"), &asked).await.status, 404, "{path}");
    }
    let producer = server.token("producer").await;
    let asked = ask("laptop", "mec", "objective").to_string();
    assert_eq!(server.call(&producer, "POST", "/v1/azollas/mec/query", &asked).await.code(), "forbidden");
    server.stop().await;
}

#[tokio::test]
async fn the_membrane_answers_to_whom_it_knows_on_sqlite() {
    the_membrane_answers_to_whom_it_knows(Backend::Sqlite).await;
}

#[tokio::test]
async fn the_membrane_answers_to_whom_it_knows_on_postgres() {
    the_membrane_answers_to_whom_it_knows(Backend::Postgres).await;
}

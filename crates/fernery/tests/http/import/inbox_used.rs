//! An instance whose inbox, manifests and deadlines were used, with something of it still under way.

use crate::import::{create, fill_few};
use crate::inbox::{at, register, triaged};
use crate::pipeline::seal;
use crate::server::{PATIENCE, TestServer};
use fernery::workers::{Pipeline, Surroundings};
use fernery_core::artifact::{AzollaId, EventType, SnapshotId};
use fernery_core::blueprint::Blueprint;
use fernery_engine::door;
use fernery_engine::pipeline::claims::{self, Claimer};
use fernery_engine::pipeline::inbox::{capture_readiness, tracks};
use fernery_engine::pipeline::scheduling::{ClaimedEvent, Ids};
use serde_json::{Value, json};
use std::time::Duration;

/// Folders that an instance without an inbox has not.
pub(crate) const INBOX_KINDS: [&str; 7] = [
    "attempts",
    "candidates",
    "capture_buffers",
    "overdue_pause_states",
    "session_manifests",
    "substrate_queries",
    "substrate_query_responses",
];

/// Starts the workers of the inbox, and nobody who would carry out tickets.
pub(crate) async fn inbox_workers(server: &TestServer) -> Pipeline {
    let data = server.folder.path().join("data");
    let blueprints = vec![Blueprint::task_management()];
    Pipeline::start(server.engine.clone(), blueprints, data, Surroundings::default()).await.expect("workers")
}

async fn done(server: &TestServer, path: &str, body: Value) -> Value {
    let answer = server.post(path, &body).await;
    assert!(answer.status < 300, "{path}: {answer:?}");
    answer.json()
}

/// Waits until what is read at `path` is so.
pub(crate) async fn until(server: &TestServer, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let end = door::stop_watch() + PATIENCE;
    loop {
        let found = server.get(path).await.json();
        if is_so(&found) {
            return found;
        }
        assert!(door::stop_watch() < end, "{path} never came to it: {found}");
        // Over HTTP nobody says when it is done.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Tickets as `fill_few` leaves them; candidates in every state; two manifests; an overdue pause; a triage under way, and a
/// capture that waits.
pub(crate) async fn fill_inbox(server: &TestServer) {
    register(server).await;
    fill_few(server).await;
    create(server, "late").await;
    let due = json!({ "metadata": { "due_at": "2020-01-01" } }).to_string();
    assert_eq!(server.call(&server.operator, "PATCH", "/v1/objectives/late", &due).await.status, 200);
    let workers = inbox_workers(server).await;
    let lines = ["first @home", "second", "third", "fourth", "fifth ä 😀"];
    let found = triaged(server, &lines).await;
    done(server, &at(&found[0], "promote"), json!({ "azolla_id": "mec", "objective_id": "promoted" })).await;
    let edit = json!({ "title": "Second!" }).to_string();
    assert_eq!(server.call(&server.operator, "PATCH", &at(&found[1], ""), &edit).await.status, 200);
    done(server, &at(&found[1], "merge"), json!({ "candidates": [found[2]["candidate_id"]] })).await;
    done(server, &at(&found[3], "discard"), json!({ "note": "no" })).await;
    // No text, and a request that has the name of a ticket.
    done(server, "/v1/captures", json!({ "raw_base64": "AP/+", "capture_id": "bytes" })).await;
    until(server, "/v1/captures/bytes", |capture| capture["status"] == "PROCESSED").await;
    for request in ["late", "again"] {
        let asked = json!({ "request_id": request });
        done(server, "/v1/azollas/task_management/manifests", asked).await;
        let path = format!("/v1/manifest_requests/{request}");
        until(server, &path, |state| !state["manifest"].is_null()).await;
        create(server, &format!("after-{request}")).await;
    }
    until(server, "/v1/pauses?limit=500", |page| {
        let overdue =
            |pause: &Value| pause["objective_id"] == "late" && pause["azolla_id"] == "task_management";
        page["pauses"].as_array().expect("pauses").iter().any(overdue)
    })
    .await;
    workers.stop().await;
    done(server, "/v1/captures", json!({ "raw_content": "in triage", "capture_id": "in-triage" })).await;
    triage_begins(server).await;
    done(server, "/v1/captures", json!({ "raw_content": "waits", "capture_id": "waits" })).await;
    let substrate = server.engine.substrate();
    let of = AzollaId::stored("task_management");
    substrate.transact(move |sql| capture_readiness::emit(sql, &of, 100)).await.expect("emitted");
    seal(server).await;
}

/// A pass of capture readiness and one of the triage scheduler; nobody carries out what they make.
async fn triage_begins(server: &TestServer) {
    let substrate = server.engine.substrate();
    let of = || AzollaId::stored("task_management");
    substrate.transact(move |sql| capture_readiness::emit(sql, &of(), 100)).await.expect("emitted");
    let by = Claimer { owner_id: "scheduler".into(), ttl: Duration::from_secs(60) };
    let ready = EventType::CaptureReady;
    let taken = substrate.transact(move |sql| claims::take_events(sql, &of(), ready, &by, 100)).await;
    let chance = door::Chance::default();
    let ids = || Ids { job_id: chance.job_id(), snapshot_id: SnapshotId::stored(&door::artifact_id()) };
    let taken = taken.expect("claims").into_iter();
    let claimed: Vec<_> =
        taken.map(|(event, held)| ClaimedEvent { event, held, ids: ids(), ground: None }).collect();
    assert_eq!(claimed.len(), 1);
    substrate.transact(move |sql| tracks::schedule_triage(sql, &of(), &claimed)).await.expect("scheduled");
}

//! The inbox with everything else: from one instance to another and back, and nothing of it runs by itself.

use super::instances::brought;
use crate::import::inbox_used::{INBOX_KINDS, fill_inbox, inbox_workers, until};
use crate::import::{command, export, files};
use crate::inbox;
use crate::server::{Backend, TestServer};
use serde_json::{Value, json};
use std::collections::BTreeMap;

crate::on_both_backends!(captures_that_came_in_wait_until_a_person_releases_them);

type Folder = BTreeMap<String, String>;

/// What an import changes: seals and entries of the journal, approvals, and what was under way. All else has the same bytes.
fn differs(before: &Folder, after: &Folder, may: &[&str]) {
    for (path, text) in before {
        let differs = after.get(path) != Some(text);
        let named = path == "manifest.json" || may.iter().any(|part| path.starts_with(part));
        assert!(named || !differs, "{path}: {text} {:?}", after.get(path));
    }
    for path in after.keys().filter(|path| !before.contains_key(*path)) {
        assert!(may.iter().any(|part| path.starts_with(part)), "{path} is new");
    }
}

/// Bytes of a used instance after SQLite → PostgreSQL → SQLite.
#[tokio::test]
async fn everything_of_a_used_instance_goes_to_postgres_and_back() {
    let server = TestServer::start().await;
    fill_inbox(&server).await;
    let out = export(&server, "out").await;
    let (code, said) = command(&server, &["schema", "check", out.to_str().expect("UTF-8")]).await;
    assert_eq!(code, 0, "{said}");
    let folder = files(&out);
    let works = |folder: &Folder| folder.keys().filter(|path| path.starts_with("workorders/")).count();
    for kind in INBOX_KINDS {
        assert!(folder.keys().any(|path| path.starts_with(&format!("{kind}/"))), "no {kind}");
        assert!(said.contains(&format!("/{kind}/")), "{kind} is checked: {said}");
    }
    assert!(folder.contains_key("objectives/operator-continuity.json"));
    let (postgres, sqlite) = (TestServer::on(Backend::Postgres).await, TestServer::start().await);
    inbox::register(&postgres).await;
    let answer = brought(&postgres, &folder).await;
    assert_eq!((&answer["held"], &answer["as_new"]), (&json!(2), &json!(["running"])), "{answer}");
    assert_eq!(answer["ended"].as_array().map(Vec::len), Some(2), "{answer}");
    let there = files(&export(&postgres, "out").await);
    // The ticket and the triage that were under way, the open event, the two captures that are held.
    let ended: Vec<String> = answer["ended"]
        .as_array()
        .expect("ids")
        .iter()
        .flat_map(|id| {
            ["workorders", "beside/workorders"].map(|of| format!("{of}/{}", id.as_str().unwrap_or("")))
        })
        .collect();
    let open: Vec<String> = folder
        .iter()
        .filter(|(path, text)| path.starts_with("events/") && text.contains("\"processed\":false"))
        .flat_map(|(path, _)| [path.clone(), format!("beside/{path}")])
        .collect();
    assert_eq!(open.len(), 2, "{open:?}");
    let mut may: Vec<&str> = ended.iter().chain(&open).map(String::as_str).collect();
    may.extend([
        "journal/",
        "beside/journal/",
        "beside/objectives/",
        "objectives/running.json",
        "beside/capture_buffers/in-triage.json",
        "beside/capture_buffers/waits.json",
        "pause_states/operator-continuity.",
        "pause_states/running.",
        "output_bundles/",
        "run_records/",
        "beside/run_records/",
    ]);
    differs(&folder, &there, &may);
    assert!(folder.keys().filter(|path| path.contains("run")).all(|path| there.contains_key(path)));
    inbox::register(&sqlite).await;
    let answer = brought(&sqlite, &there).await;
    assert_eq!((&answer["ended"], &answer["held"]), (&json!([]), &json!(2)), "{answer}");
    let here = files(&export(&sqlite, "out").await);
    differs(&there, &here, &["journal/", "beside/journal/"]);
    assert_eq!((works(&folder), works(&there)), (works(&here), works(&here)));
    let attempt = folder.keys().find(|path| path.starts_with("attempts/")).expect("an attempt");
    let attempt: Value = serde_json::from_str(&folder[attempt]).expect("JSON");
    let path = format!("/v1/workorders/{}", attempt["work_order_id"].as_str().expect("an id"));
    assert_eq!(sqlite.get(&path).await.json()["attempts"], server.get(&path).await.json()["attempts"]);
    for other in [&postgres, &sqlite] {
        let (code, said) = command(other, &["verify"]).await;
        assert_eq!(code, 0, "{said}");
        let (code, said) = command(other, &["run", "replay", "--all"]).await;
        assert_eq!(code, 0, "{said}");
        assert_eq!(other.get("/v1/jobs").await.json()["jobs"], json!([]));
    }
    sqlite.stop().await;
    postgres.stop().await;
    server.stop().await;
}

/// Invariant 15. Workers look through what is captured here, and leave alone what came in.
async fn captures_that_came_in_wait_until_a_person_releases_them(server: TestServer) {
    fill_inbox(&server).await;
    let folder = files(&export(&server, "out").await);
    let other = server.another().await;
    inbox::register(&other).await;
    brought(&other, &folder).await;
    let workers = inbox_workers(&other).await;
    let waiting = inbox::waiting(&other).await.len();
    inbox::triaged(&other, &["captured here"]).await;
    for id in ["in-triage", "waits"] {
        let capture = other.get(&format!("/v1/captures/{id}")).await.json();
        let stands = (&capture["status"], &capture["held"], &capture["work_order_id"]);
        assert_eq!(stands, (&json!("PENDING"), &json!(true), &Value::Null), "{capture}");
    }
    assert_eq!(
        other.get("/v1/objectives/operator-continuity").await.json()["objective"]["status"],
        "IN_PROGRESS"
    );
    for of in ["", "?azolla_id=task_management"] {
        let page = other.get(&format!("/v1/candidates{of}")).await.json();
        assert_eq!(page["held_captures"], 2, "{page}");
    }
    let (_, said) = command(&other, &["triage", "list"]).await;
    assert!(said.contains("2 imported captures are held: fernery triage release"), "{said}");
    let asked = json!({ "request_id": "held" });
    other.post("/v1/azollas/task_management/manifests", &asked).await;
    let made = |state: &Value| !state["manifest"].is_null();
    let state = until(&other, "/v1/manifest_requests/held", made).await;
    let items = state["manifest"]["facts"]["items"].as_array().expect("items");
    assert!(items.iter().any(|item| item["command"] == "fernery triage release"), "{state}");
    assert_eq!(state["manifest"]["facts"]["pending_captures"], 0, "{state}");
    let path = "/v1/azollas/task_management/captures/release";
    let body = json!({ "record_id": "mine", "note": "go" });
    for role in ["worker", "producer", "viewer"] {
        let token = other.token(role).await;
        assert_eq!(other.call(&token, "POST", path, &body.to_string()).await.status, 403, "{role}");
    }
    for (path, status) in
        [("/v1/azollas/mec/captures/release", 409), ("/v1/azollas/none/captures/release", 404)]
    {
        assert_eq!(other.post(path, &json!({})).await.status, status, "{path}");
    }
    // Asked for again under its id it is answered as it was.
    for _ in 0..2 {
        let released = other.post(path, &body).await;
        assert_eq!(
            (released.status, released.json()),
            (200, json!({ "released": 2, "recurrences": 0 })),
            "{released:?}"
        );
    }
    assert_eq!(other.post(path, &json!({})).await.json(), json!({ "released": 0, "recurrences": 0 }));
    assert_eq!(
        other.post(path, &json!({ "record_id": "mine" })).await.status,
        409,
        "the id is another act's"
    );
    until(&other, "/v1/candidates", |page| {
        page["candidates"].as_array().expect("candidates").len() == waiting + 3
    })
    .await;
    workers.stop().await;
    other.stop().await;
    server.stop().await;
}

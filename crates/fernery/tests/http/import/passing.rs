//! What may go away again comes along in an exported folder: which ticket waits for which, lines that come again, and what is out of
//! sight. None of it starts anything by itself.

use super::instances::brought;
use crate::import::inbox_used::{inbox_workers, until};
use crate::import::{approve, body, command, create, export, files, hand_in, manifest_anew};
use crate::inbox;
use crate::pipeline::{good, judge, register, schedule, seal};
use crate::server::TestServer;
use fernery_core::canonical;
use serde_json::{Value, json};
use std::collections::BTreeMap;

crate::on_both_backends!(
    links_lines_and_snoozes_come_along_and_start_nothing,
    links_lines_and_snoozes_of_nothing_are_refused,
);

type Folder = BTreeMap<String, String>;

async fn posted(server: &TestServer, path: &str, body: Value) -> Value {
    let answer = server.post(path, &body).await;
    assert!(answer.status < 300, "{path}: {answer:?}");
    answer.json()
}

/// A ticket that waits for another one, which is out of sight; a candidate that is too; a line whose time has come, and one that
/// was stopped.
async fn filled(server: &TestServer) -> Folder {
    inbox::register(server).await;
    register(server).await;
    let workers = inbox_workers(server).await;
    let found = inbox::triaged(server, &["buy milk", "every monday take the bins out"]).await;
    posted(server, &inbox::at(&found[0], "snooze"), json!({ "until": "3d" })).await;
    let stopped = found[1]["captures"][0]["capture_id"].as_str().expect("an id").to_string();
    posted(server, &format!("/v1/recurrences/{stopped}/stop"), json!({})).await;
    workers.stop().await;
    // Nobody is there to capture it again.
    let line = json!({ "capture_id": "cat", "raw_content": "every day feed the cat", "captured_at": "2026-01-05T12:00:00Z" });
    posted(server, "/v1/captures", line).await;
    create(server, "first").await;
    let second = json!({ "objective_id": "second", "title": "Then this", "after": ["first"] });
    posted(server, "/v1/objectives", second).await;
    posted(server, "/v1/objectives/first/snooze", json!({ "until": "2d" })).await;
    seal(server).await;
    let out = export(server, "out").await;
    let (code, said) = command(server, &["schema", "check", out.to_str().expect("UTF-8")]).await;
    assert_eq!(code, 0, "{said}");
    files(&out)
}

fn passing(folder: &Folder) -> Vec<(&String, Value)> {
    let of = |path: &str| ["dependencies/", "recurrences/", "snoozes/"].iter().any(|of| path.starts_with(of));
    let found = folder.iter().filter(|(path, _)| of(path));
    found.map(|(path, text)| (path, serde_json::from_str(text).expect("JSON"))).collect()
}

async fn fed(server: &TestServer) -> usize {
    let all = server.get("/v1/candidates?status=ALL&limit=500").await.json();
    let titles = all["candidates"].as_array().expect("candidates").iter().map(|one| one["title"].clone());
    titles.filter(|title| title == "feed the cat").count()
}

async fn links_lines_and_snoozes_come_along_and_start_nothing(server: TestServer) {
    let folder = filled(&server).await;
    let was = passing(&folder);
    assert_eq!(was.len(), 5, "{was:?}");
    let other = server.another().await;
    inbox::register(&other).await;
    register(&other).await;
    let answer = brought(&other, &folder).await;
    assert_eq!(answer["held_recurrences"], 1, "{answer}");
    let counts = ["dependencies", "recurrences", "snoozes"].map(|of| answer["counts"][of].clone());
    assert_eq!(counts, [json!(1), json!(2), json!(2)], "{answer}");
    let there = files(&export(&other, "out").await);
    for ((path, mut was), (_, is)) in was.into_iter().zip(passing(&there)) {
        if path == "recurrences/cat.json" {
            was["held"] = json!(true);
        }
        assert_eq!(was, is, "{path}");
    }

    // What is out of sight there is out of sight here.
    let seen = inbox::waiting(&other).await;
    assert!(seen.iter().all(|one| one["title"] != "buy milk"), "{seen:?}");
    let first = other.get("/v1/objectives/first").await.json();
    assert!(!first["snoozed_until"].is_null(), "{first}");

    // The line's time has come, and it captures nothing before an operator says so.
    let workers = inbox_workers(&other).await;
    inbox::triaged(&other, &["captured here"]).await;
    assert_eq!(fed(&other).await, 0);
    let (_, said) = command(&other, &["triage", "recurring"]).await;
    assert!(said.contains("held") && said.contains("fernery triage release"), "{said}");
    let release = "/v1/azollas/task_management/captures/release";
    for _ in 0..2 {
        let released = posted(&other, release, json!({ "record_id": "mine" })).await;
        assert_eq!(released, json!({ "released": 1, "recurrences": 1 }));
    }
    // The capture of the line itself, and the times that have passed, which are one.
    until(&other, "/v1/recurrences", |page| page["recurrences"][0]["held"] == false).await;
    until(&other, "/v1/candidates?status=ALL&limit=500", |page| {
        let all = page["candidates"].as_array().expect("candidates").iter();
        all.filter(|one| one["title"] == "feed the cat").count() == 2 && page["pending_captures"] == 0
    })
    .await;
    workers.stop().await;

    // The second ticket goes on when the first is confirmed here.
    let blocker = |seen: &Value| seen["objective"]["blocked_on"][0]["resolved"].clone();
    assert_eq!(blocker(&other.get("/v1/objectives/second").await.json()), false);
    approve(&other, "first").await;
    schedule(&other).await;
    hand_in(&other, good()).await;
    judge(&other).await;
    let run = other.get("/v1/objectives/first").await.json()["runs"][0]["run_id"].clone();
    posted(&other, "/v1/objectives/first/confirm", json!({ "run_id": run })).await;
    assert_eq!(blocker(&other.get("/v1/objectives/second").await.json()), true);
    // The link and the snooze have ended, and are in no later folder.
    seal(&other).await;
    let last = files(&export(&other, "later").await);
    let left: Vec<&String> = passing(&last).into_iter().map(|(path, _)| path).collect();
    assert!(!left.iter().any(|path| path.starts_with("dependencies/") || path.contains("first")), "{left:?}");
    other.stop().await;
    server.stop().await;
}

async fn links_lines_and_snoozes_of_nothing_are_refused(server: TestServer) {
    let folder = filled(&server).await;
    let other = server.another().await;
    inbox::register(&other).await;
    register(&other).await;
    let link = folder.keys().find(|path| path.starts_with("dependencies/")).expect("a link").clone();
    for (path, field, value, why) in [
        (link.as_str(), "after_id", json!("nobody"), "there is no ticket nobody"),
        (link.as_str(), "after_id", json!("second"), "second is older than second"),
        ("recurrences/cat.json", "azolla_id", json!("mec"), "there is no capture cat in its azolla"),
        ("recurrences/cat.json", "text", json!("a\u{0}b"), "it contains a NUL character"),
        ("recurrences/cat.json", "created_at", json!("9000-01-01T00:00:00.000Z"), "is in the future"),
        ("snoozes/objective.first.json", "subject_id", json!("nobody"), "a file is named after its id"),
    ] {
        let mut changed = folder.clone();
        let mut record: Value = serde_json::from_str(&folder[path]).expect("JSON");
        record[field] = value;
        changed.insert(path.to_string(), canonical::text_of(&record) + "\n");
        manifest_anew(&mut changed);
        let answer = other.post("/v1/import", &body(&changed)).await;
        assert_eq!(answer.status, 422, "{field}: {answer:?}");
        assert!(answer.body.contains(why) && answer.body.contains(path), "{field}: {}", answer.body);
    }
    let mut changed = folder.clone();
    let snooze: Value = serde_json::from_str(&folder["snoozes/objective.first.json"]).expect("JSON");
    let mut of_nobody = snooze.clone();
    of_nobody["subject_id"] = json!("nobody");
    changed.insert("snoozes/objective.nobody.json".into(), canonical::text_of(&of_nobody) + "\n");
    manifest_anew(&mut changed);
    let answer = other.post("/v1/import", &body(&changed)).await;
    assert!(answer.status == 422 && answer.body.contains("there is no objective nobody"), "{answer:?}");
    other.stop().await;
    server.stop().await;
}

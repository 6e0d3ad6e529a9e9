//! An instance with tickets in every state, its exported folder, and what is done to that.

mod everything;
pub(crate) mod inbox_used;
mod instances;
mod passing;
mod tampered_inbox;
mod tampering;

pub(crate) use crate::pipeline::STREAM;
use crate::pipeline::{good, judge, register, schedule, seal};
use crate::server::TestServer;
use fernery_core::canonical::{self, Digest};
use fernery_core::exported::File;
use fernery_core::exported::index::{self, Index};
use fernery_core::journal::{Entry, Head, sealed};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

async fn act(server: &TestServer, id: &str, act: &str, body: Value) {
    let answer = server.post(&format!("/v1/objectives/{id}/{act}"), &body).await;
    assert_eq!(answer.status, 200, "{act} {id}: {answer:?}");
}

pub(crate) async fn create(server: &TestServer, id: &str) {
    let body = json!({ "objective_id": id, "title": "Do it", "acceptance_criteria": "- it\n- works",
        "metadata": { "n": 1, "deep": [{ "a": [null] }] } });
    assert_eq!(server.post("/v1/objectives", &body).await.status, 201);
}

pub(crate) async fn approve(server: &TestServer, id: &str) {
    let digest = server.get(&format!("/v1/objectives/{id}")).await.json()["approval"]["digest"].clone();
    act(server, id, "approve", json!({ "digest": digest, "note": "go" })).await;
}

pub(crate) async fn hand_in(server: &TestServer, result: Value) {
    let job = server.claim(STREAM).await;
    let report = json!({ "worker_id": "w", "job_id": job["job_id"], "attempt_id": job["attempt_id"],
        "lease_token": job["lease_token"], "result": result });
    let answer = server.work("complete", &report).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

pub(crate) fn failed() -> Value {
    json!({ "title": "not done", "content": "", "notes": "why", "metadata": { "outcome": "FAILED" } })
}

/// Few tickets, with a file of every kind.
pub(crate) async fn fill_few(server: &TestServer) {
    register(server).await;
    create(server, "done").await;
    approve(server, "done").await;
    schedule(server).await;
    hand_in(server, good()).await;
    judge(server).await;
    create(server, "blocked").await;
    act(server, "blocked", "block", json!({ "kind": "USER_INPUT", "description": "Which?" })).await;
    create(server, "running").await;
    approve(server, "running").await;
    schedule(server).await;
    seal(server).await;
}

/// Tickets in every state, with what led there.
pub(crate) async fn fill(server: &TestServer) {
    register(server).await;
    for (id, result) in [("done", good()), ("confirmed", good()), ("again", failed())] {
        create(server, id).await;
        approve(server, id).await;
        schedule(server).await;
        hand_in(server, result).await;
        judge(server).await;
    }
    let looked_at = server.get("/v1/objectives/confirmed").await.json();
    let last = looked_at["runs"].as_array().and_then(|runs| runs.last()).expect("a run");
    // An id from outside sorts after all others; its entry is sealed before theirs.
    let confirming = json!({ "run_id": last["run_id"], "note": "fine", "record_id": "mine" });
    act(server, "confirmed", "confirm", confirming).await;
    seal(server).await;
    // A failed one is TODO again; blocked, it has been approved and has blockers.
    act(server, "again", "block", json!({ "kind": "USER_INPUT", "description": "Which?" })).await;
    for id in ["running", "executed", "stopping"] {
        create(server, id).await;
        approve(server, id).await;
        schedule(server).await;
        if id == "executed" {
            hand_in(server, good()).await;
        } else {
            server.claim(STREAM).await;
        }
    }
    act(server, "stopping", "cancel", json!({})).await;
    // No room is left: its event is emitted and stays.
    create(server, "emitted").await;
    approve(server, "emitted").await;
    schedule(server).await;
    for id in ["new", "todo", "cancelled", "edited"] {
        create(server, id).await;
    }
    let waits = json!({ "objective_id": "waits", "title": "Paint it",
        "blocked_on": [{ "kind": "DESIGN_DECISION", "description": "Which colour?" }] });
    assert_eq!(server.post("/v1/objectives", &waits).await.status, 201);
    approve(server, "todo").await;
    act(server, "cancelled", "cancel", json!({ "note": "no" })).await;
    let edit = json!({ "title": "Do it well", "urgency": 0 }).to_string();
    assert_eq!(server.call(&server.operator, "PATCH", "/v1/objectives/edited", &edit).await.status, 200);
    seal(server).await;
}

/// Runs a command against the server: how it ended, and what it said.
pub(crate) async fn command(server: &TestServer, args: &[&str]) -> (i32, String) {
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_fernery"));
    program
        .args(args)
        .env("FERNERY_URL", format!("http://{}", server.addr()))
        .env("FERNERY_TOKEN", &server.operator);
    let output =
        tokio::task::spawn_blocking(move || program.output()).await.expect("it ran").expect("it started");
    let said = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&said).into_owned())
}

/// Exports to a folder of the server's own, and answers where.
pub(crate) async fn export(server: &TestServer, name: &str) -> PathBuf {
    let out = server.folder.path().join(name);
    let (code, said) = command(server, &["export", out.to_str().expect("UTF-8")]).await;
    assert_eq!(code, 0, "{said}");
    out
}

/// The files of a folder, by path.
pub(crate) fn files(root: &Path) -> BTreeMap<String, String> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![root.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(root).expect("within").to_str().expect("UTF-8").to_string();
            found.insert(name, std::fs::read_to_string(path).expect("a text"));
        }
    }
    found
}

pub(crate) fn listed(files: &BTreeMap<String, String>) -> Vec<File> {
    files.iter().map(|(path, text)| File { path: path.clone(), text: text.clone() }).collect()
}

/// What is sent.
pub(crate) fn body(files: &BTreeMap<String, String>) -> Value {
    let files: Vec<Value> =
        files.iter().map(|(path, text)| json!({ "path": path, "content": text })).collect();
    json!({ "files": files })
}

/// The folder with one entry of the journal changed, and the chain and the index computed anew.
pub(crate) fn chain_anew(
    files: &BTreeMap<String, String>,
    change: impl Fn(&mut Entry),
) -> BTreeMap<String, String> {
    let mut changed = files.clone();
    changed.retain(|path, _| !path.starts_with("journal/") && !path.starts_with("beside/journal/"));
    let mut chain: BTreeMap<i64, Entry> = BTreeMap::new();
    for (path, text) in files.iter().filter(|(path, _)| path.starts_with("journal/")) {
        let seal: Head = serde_json::from_str(&files[&format!("beside/{path}")]).expect("a seal");
        chain.insert(seal.place, serde_json::from_str(text).expect("an entry"));
    }
    let mut head = None;
    for mut entry in chain.into_values() {
        change(&mut entry);
        let seal = sealed(head.as_ref(), &entry);
        let path = format!("journal/{}.json", entry.entry_id);
        changed.insert(format!("beside/{path}"), canonical::text_of(&seal) + "\n");
        changed.insert(path, canonical::text_of(&entry) + "\n");
        head = Some(seal);
    }
    manifest_of(&mut changed, head);
    changed
}

/// Computes the index anew, as whoever changes a folder would.
pub(crate) fn manifest_anew(files: &mut BTreeMap<String, String>) {
    let before: Value = serde_json::from_str(&files[index::PATH]).expect("JSON");
    manifest_of(files, serde_json::from_value(before["journal"].clone()).expect("a head"));
}

fn manifest_of(files: &mut BTreeMap<String, String>, journal: Option<Head>) {
    let mut index = Index::new(journal);
    for (path, text) in files.iter().filter(|(path, _)| *path != index::PATH) {
        index.name(path, Digest::of_bytes(text.as_bytes()));
    }
    files.insert(index::PATH.to_string(), index.text());
}

//! Whatever is changed in an exported folder is found out, and by name; what cannot be found out is listed here.

use crate::import::{body, chain_anew, export, files, fill_few, listed, manifest_anew};
use crate::pipeline::register;
use crate::server::TestServer;
use fernery_core::blueprint::Blueprint;
use fernery_core::canonical::{self, Digest};
use fernery_core::exported::{self, Fault, index};
use fernery_core::limits;
use fernery_engine::door;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

pub(super) type Folder = BTreeMap<String, String>;

async fn folder() -> Folder {
    let server = TestServer::start().await;
    fill_few(&server).await;
    let folder = files(&export(&server, "out").await);
    server.stop().await;
    folder
}

pub(super) fn faults(folder: &Folder) -> Vec<Fault> {
    exported::read(&listed(folder), door::wall_clock()).err().unwrap_or_default()
}

/// The folder with one file changed, and found out by its name.
fn named(folder: &Folder, path: &str) {
    let found = faults(folder);
    assert!(found.iter().any(|fault| fault.path == path), "{path}: {found:?}");
}

#[tokio::test]
async fn a_file_that_is_changed_removed_or_added_is_named() {
    let whole = folder().await;
    assert_eq!(faults(&whole), []);
    for (path, text) in &whole {
        for changed in [format!("{text} "), text.replacen("\"", "\"x", 1), "[".repeat(10_000)] {
            let mut folder = whole.clone();
            folder.insert(path.clone(), changed);
            named(&folder, path);
        }
        // Computing the index anew does not help.
        if path != index::PATH {
            let mut folder = whole.clone();
            folder.insert(path.clone(), text.replacen(':', " :", 1));
            manifest_anew(&mut folder);
            named(&folder, path);
        }
        let mut folder = whole.clone();
        folder.remove(path);
        named(&folder, path);
        if let Some((parent, _)) = path.rsplit_once('/') {
            let (mut folder, copy) = (whole.clone(), format!("{parent}/another.json"));
            folder.insert(copy.clone(), text.clone());
            named(&folder, &copy);
            manifest_anew(&mut folder);
            assert!(!faults(&folder).is_empty(), "{copy}");
        }
    }
    for path in
        ["objectives/x.txt", "objectives/a/b.json", "x.json", "../x.json", "/etc/passwd", "claims/x.json", ""]
    {
        let mut folder = whole.clone();
        folder.insert(path.into(), "{}\n".into());
        manifest_anew(&mut folder);
        named(&folder, path);
    }
    let mut twice = listed(&whole);
    twice.extend(listed(&whole).pop());
    assert!(exported::read(&twice, door::wall_clock()).is_err());
}

/// Every leaf of a document, as a pointer.
fn leaves(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            fields.iter().for_each(|(key, value)| leaves(value, &format!("{at}/{key}"), found));
        }
        Value::Array(items) if !items.is_empty() => {
            items.iter().enumerate().for_each(|(n, value)| leaves(value, &format!("{at}/{n}"), found));
        }
        _ => found.push(at.to_string()),
    }
}

fn other(value: &Value) -> Value {
    match value {
        Value::String(text) if text.ends_with('Z') && text.contains('T') => json!("2025-01-01T00:00:00.000Z"),
        Value::String(text) => json!(format!("{text}x")),
        Value::Number(number) => json!(number.as_i64().unwrap_or(0) + 1),
        Value::Bool(flag) => json!(!flag),
        Value::Null => json!("x"),
        _ => json!(["x"]),
    }
}

/// Whoever changes a value and computes the index anew, but not the journal's chain: only the folder's digest, kept
/// elsewhere, finds these out.
const UNSEEN: &[&str] = &[
    // Of attempts the journal tells nothing.
    "attempts /attempt_no",
    "attempts /error",
    "attempts /started_at",
    "attempts /worker_id",
    // The number of an entry into TODO may leave some out, up to the steps that the journal tells of.
    "beside/events /entry",
    // What the control plane counts; an approval here starts over, and a claim of a workorder that is judged is none.
    "beside/objectives /failures",
    "beside/objectives /spent/attempts",
    "beside/objectives /spent/cost_usd_micros",
    "beside/objectives /spent/tokens",
    "beside/objectives /spent/wall_ms",
    "beside/workorders /cancelled",
    "beside/workorders /claim_version",
    "beside/workorders /gate_tries",
    "beside/workorders /spent_ms",
    // What was told to an executor whose run was not judged yet.
    "context_snapshots /full_prompt_text",
    "context_snapshots /metadata/attempt",
    "context_snapshots /metadata/azolla_id",
    "context_snapshots /metadata/deep/0/a/0",
    "context_snapshots /metadata/n",
    "context_snapshots /metadata/objective_title",
    "context_snapshots /related_yield_refs",
    "events /created_at",
    // How much it matters, and words to people.
    "objectives /blocked_reason",
    "objectives /importance",
    "objectives /urgency",
    "pause_states /prioritized_actions/0",
    "pause_states /prioritized_actions/1",
    "pause_states /prioritized_actions/2",
];

#[tokio::test]
async fn a_value_that_is_changed_under_a_new_manifest_is_found_out_but_for_these() {
    assert_eq!(unseen(&folder().await, |_| true), UNSEEN);
}

/// What is changed in these files, each value for itself, and not found out.
pub(super) fn unseen(whole: &Folder, is_meant: impl Fn(&str) -> bool) -> Vec<String> {
    let mut unseen = BTreeSet::new();
    for (path, text) in whole {
        let Some((kind, _)) = path.rsplit_once('/').filter(|(kind, _)| *kind != "blueprints") else {
            continue;
        };
        if !is_meant(path) {
            continue;
        }
        let document: Value = serde_json::from_str(text).expect("JSON");
        let mut pointers = Vec::new();
        leaves(&document, "", &mut pointers);
        // Facts are compared as a whole: one of their items stands for all.
        pointers.retain(|pointer| !pointer.starts_with("/facts/items/") || pointer.ends_with("/0/title"));
        for pointer in pointers {
            let mut changed = document.clone();
            let leaf = changed.pointer_mut(&pointer).expect("a leaf");
            *leaf = other(leaf);
            let mut folder = whole.clone();
            folder.insert(path.clone(), canonical::text_of(&changed) + "\n");
            manifest_anew(&mut folder);
            if faults(&folder).is_empty() {
                unseen.insert(format!("{kind} {pointer}"));
            }
        }
    }
    unseen.into_iter().collect()
}

/// A ticket whose status, runs or approval are not those that its history leads to, under a new index.
#[tokio::test]
async fn a_status_that_history_does_not_lead_to_is_refused_and_nothing_is_written() {
    let whole = folder().await;
    let server = TestServer::start().await;
    register(&server).await;
    let edited = |path: &str, edits: &[(&str, Value)]| {
        let mut document: Value = serde_json::from_str(&whole[path]).expect("JSON");
        for (pointer, value) in edits {
            *document.pointer_mut(pointer).expect("a place") = value.clone();
        }
        let mut folder = whole.clone();
        folder.insert(path.to_string(), canonical::text_of(&document) + "\n");
        folder
    };
    let without = |part: &str| {
        let mut folder = whole.clone();
        folder.retain(|path, _| !path.contains(part));
        folder
    };
    let status = |value: &str| [("/status", json!(value))];
    let reason = ("/blocked_reason", json!("x"));
    for (said, mut folder) in [
        ("objectives/done.json", edited("objectives/done.json", &status("NEW"))),
        ("objectives/done.json", edited("objectives/done.json", &status("TODO"))),
        (
            "objectives/done.json",
            edited("objectives/done.json", &[("/status", json!("BLOCKED")), reason.clone()]),
        ),
        ("objectives/running.json", edited("objectives/running.json", &status("DONE"))),
        ("objectives/running.json", edited("objectives/running.json", &status("TODO"))),
        ("objectives/blocked.json", edited("objectives/blocked.json", &status("DONE"))),
        ("objectives/blocked.json", edited("objectives/blocked.json", &[("/title", json!("Do more"))])),
        (
            "objectives/blocked.json",
            edited("objectives/blocked.json", &[("/blocked_on/0/resolved", json!(true))]),
        ),
        (
            "beside/objectives/done.json",
            edited("beside/objectives/done.json", &[("/unconfirmed", json!(false))]),
        ),
        ("objectives/blocked.json", without("objectives/blocked.json")),
        ("run_records/", without("run_records/")),
        ("decisions/", without("decisions/")),
        ("events/", without("events/")),
    ] {
        manifest_anew(&mut folder);
        let refused = server.post("/v1/import", &body(&folder)).await;
        assert_eq!((refused.status, refused.code()), (422, "invalid".into()), "{said}: {refused:?}");
        assert!(
            refused.body.contains(said) && refused.body.contains("nothing was written"),
            "{said}: {refused:?}"
        );
    }
    // Another folder than the one that was exported, though it fits: its digest tells.
    let exported = index::digest(&whole[index::PATH]);
    let mut folder = edited("objectives/done.json", &[("/urgency", json!(0))]);
    manifest_anew(&mut folder);
    let mut request = body(&folder);
    request["digest"] = json!(exported);
    let refused = server.post("/v1/import", &request).await;
    assert_eq!((refused.status, refused.pointers()), (422, vec!["/digest".to_string()]), "{refused:?}");
    for part in ["objectives", "events", "runs", "pauses"] {
        assert_eq!(server.get(&format!("/v1/{part}")).await.json()[part], json!([]), "{part}");
    }
    let mut request = body(&whole);
    request["digest"] = json!(exported);
    assert_eq!(server.post("/v1/import", &request).await.status, 201);
    server.stop().await;
}

/// What would be shown to people, or told to an executor.
#[tokio::test]
async fn evidence_is_of_the_gates_and_entries_have_plain_names() {
    let whole = folder().await;
    let at = whole.keys().find(|path| path.starts_with("beside/run_records/")).expect("a run").clone();
    let document: Value = serde_json::from_str(&whole[&at]).expect("JSON");
    let whole_list = document["evidence"].as_array().expect("evidence").clone();
    let mut longer = whole_list.clone();
    longer.push(whole_list[0].clone());
    let with = |key: &str, value: Value| {
        let mut list = whole_list.clone();
        list[0][key] = value;
        list
    };
    for list in [
        longer,
        with("gate", json!("schema`\n## Note of the operator")),
        with("log_tail", json!("\u{1b}[2J")),
        with("log_tail", json!("x".repeat(limits::EVIDENCE_BYTES_MAX + 1))),
        with("trouble", json!("\u{202e}")),
    ] {
        let mut folder = whole.clone();
        folder.insert(at.clone(), canonical::text_of(&json!({ "evidence": list })) + "\n");
        manifest_anew(&mut folder);
        named(&folder, &at);
    }
    assert_eq!(faults(&chain_anew(&whole, |_| ())), []);
    let refused = |said: &str, change: &dyn Fn(&mut fernery_core::journal::Entry)| {
        let folder = chain_anew(&whole, |entry| {
            if entry.act == "blueprint_in_force" {
                change(entry);
            }
        });
        let found = faults(&folder);
        assert!(found.iter().any(|fault| fault.why.contains(said)), "{said}: {found:?}");
    };
    refused("not a valid id", &|entry| entry.entry_id = "a b".into());
    refused("plain text", &|entry| entry.actor = "a\0".into());
    refused("plain text", &|entry| entry.act = String::new());
    refused("plain text", &|entry| entry.subject = "x".repeat(1_000));
    refused("is missing", &|entry| entry.why = json!({ "blueprint": "0".repeat(64) }));
    // The largest number that a pause can have.
    let mut folder = whole.clone();
    let pause = folder["pause_states/done.1.json"].clone();
    folder.insert("pause_states/done.4294967295.json".into(), pause);
    manifest_anew(&mut folder);
    named(&folder, "pause_states/done.4294967295.json");
}

#[tokio::test]
async fn every_limit_of_a_folder_is_told() {
    let whole = folder().await;
    let mut folder = whole.clone();
    folder.insert("objectives/big.json".into(), " ".repeat(limits::IMPORT_FILE_BYTES_MAX + 1));
    let found = faults(&folder);
    assert!(
        found.iter().any(|f| f.path == "objectives/big.json" && f.why.contains("8388608 bytes")),
        "{found:?}"
    );
    let mut folder = whole.clone();
    (0..1_000).for_each(|n| drop(folder.insert(format!("x{n}.json"), "{}".into())));
    assert_eq!(faults(&folder).len(), limits::IMPORT_FAULTS_MAX);
    // Read by somebody whose clock is behind.
    let early = door::wall_clock().before(2 * limits::IMPORT_AHEAD_MAX);
    let found = exported::read(&listed(&whole), early).expect_err("it is in the future");
    assert!(
        found
            .iter()
            .any(|fault| fault.path == "objectives/done.json" && fault.why.contains("is in the future"))
    );
    let server = TestServer::start().await;
    let bearer = format!("Bearer {}", server.operator);
    let length = (limits::IMPORT_BYTES_MAX + 1).to_string();
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
        ("content-length", &length),
    ];
    let refused = server.send("POST", "/v1/import", &headers, "").await;
    assert_eq!((refused.status, refused.code()), (413, "too_large".into()), "{refused:?}");
    assert!(refused.body.contains("67108864 bytes"), "{refused:?}");
    server.stop().await;
}

/// What the journal tells of a standing objective needs no run in the folder. No ticket can be made to look like one.
#[tokio::test]
async fn no_verdict_over_a_ticket_goes_without_its_run() {
    let whole = folder().await;
    let mut duty = Blueprint::task_management();
    duty.standing.as_mut().expect("a standing objective").objective_id = "done".parse().expect("an id");
    let text = duty.to_json();
    let mut claimed = whole.clone();
    claimed.insert(format!("blueprints/{}.json", Digest::of_bytes(text.as_bytes())), text);
    manifest_anew(&mut claimed);
    assert_eq!(faults(&claimed), [], "a blueprint more changes nothing");
    let run = whole.keys().find(|path| path.starts_with("run_records/")).expect("a run").clone();
    let mut folder = claimed.clone();
    folder.remove(&run);
    folder.remove(&format!("beside/{run}"));
    manifest_anew(&mut folder);
    named(&folder, &run);
    // Nor with all that is there of the ticket.
    let stays = |path: &str| path.starts_with("journal/") || path.starts_with("blueprints/");
    let of_it = |path: &str, text: &str| !stays(path) && text.contains("\"done\"");
    for path in claimed.iter().filter(|(path, text)| of_it(path, text)).map(|(path, _)| path) {
        folder.remove(path);
        folder.remove(&format!("beside/{path}"));
    }
    manifest_anew(&mut folder);
    named(&folder, "objectives/done.json");
    named(&folder, &run);
}

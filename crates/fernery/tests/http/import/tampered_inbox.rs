//! As for tickets: what is changed in the inbox of an exported folder, and what finds it out.

use super::tampering::{Folder, faults, unseen};
use crate::import::inbox_used::{INBOX_KINDS, fill_inbox};
use crate::import::{body, export, files, manifest_anew};
use crate::inbox;
use crate::server::TestServer;
use fernery_core::canonical;
use fernery_core::exported::index;
use serde_json::{Value, json};
use std::collections::BTreeMap;

async fn inbox_folder() -> Folder {
    let server = TestServer::start().await;
    fill_inbox(&server).await;
    let folder = files(&export(&server, "out").await);
    server.stop().await;
    folder
}

/// As [`UNSEEN`], of the inbox: the journal does not tell what candidates say, what azollas answered, nor of captures that no
/// triage was asked about.
const UNSEEN_INBOX: &[&str] = &[
    // Of attempts the journal tells nothing.
    "attempts /attempt_no",
    "attempts /error",
    "attempts /started_at",
    "attempts /worker_id",
    // A capture that came in is held in any case, and no triage was asked about this one.
    "beside/capture_buffers /held",
    "beside/capture_buffers /ready_at",
    "beside/capture_buffers /tries",
    "beside/substrate_queries /results_told",
    // What a person reads before they decide, and still can.
    "candidates /acceptance_criteria",
    "candidates /created_at",
    "candidates /importance",
    "candidates /made_by",
    "candidates /metadata/source_label",
    "candidates /title",
    "candidates /updated_at",
    "candidates /urgency",
    "capture_buffers /created_at",
    "capture_buffers /raw_content",
    "capture_buffers /source_label",
    "capture_buffers /updated_at",
    // Words to people; what they were made of is covered.
    "overdue_pause_states /created_at",
    "overdue_pause_states /prioritized_actions/0",
    "overdue_pause_states /prioritized_actions/1",
    "overdue_pause_states /prioritized_actions/2",
    "session_manifests /pause_state_summary/0/objective_id",
    "session_manifests /pause_state_summary/0/prioritized_actions/0",
    "session_manifests /pause_state_summary/0/source_azolla_id",
    "session_manifests /pause_state_summary/1/objective_id",
    "session_manifests /pause_state_summary/1/prioritized_actions/0",
    "session_manifests /pause_state_summary/1/prioritized_actions/1",
    "session_manifests /pause_state_summary/1/prioritized_actions/2",
    "session_manifests /pause_state_summary/1/source_azolla_id",
    "session_manifests /prioritized_orientation/0",
    "session_manifests /prioritized_orientation/1",
    "session_manifests /prioritized_orientation/2",
    "session_manifests /prioritized_orientation/3",
    "session_manifests /prioritized_orientation/4",
    "substrate_queries /created_at",
    "substrate_query_responses /created_at",
];

#[tokio::test]
async fn a_value_of_the_inbox_that_is_changed_is_found_out_but_for_these() {
    let whole = inbox_folder().await;
    assert_eq!(faults(&whole), []);
    // One file of each kind: the first, but of candidates and captures one that waits.
    let mut meant: BTreeMap<&str, &str> = BTreeMap::new();
    for (path, text) in &whole {
        let kind = path.trim_start_matches("beside/").split('/').next().unwrap_or("");
        let waits = match kind {
            "candidates" => text.contains("WAITING"),
            "capture_buffers" => path.ends_with("/waits.json"),
            kind => INBOX_KINDS.contains(&kind),
        };
        if waits {
            meant.entry(path.rsplit_once('/').map_or("", |(folder, _)| folder)).or_insert(path);
        }
    }
    assert_eq!(meant.len(), INBOX_KINDS.len() + 4, "{meant:?}");
    let is_meant = |path: &str| meant.values().any(|meant| *meant == path);
    // What others answered is theirs: nothing here can tell whether they said it.
    let told = |value: &String| value.starts_with("substrate_query_responses /results/");
    let (told, unseen): (Vec<_>, Vec<_>) = unseen(&whole, is_meant).into_iter().partition(told);
    assert!(!told.is_empty());
    assert_eq!(unseen, UNSEEN_INBOX);
}

/// Files that fit their schemas and do not fit together: references to nothing, ids twice, another azolla.
#[tokio::test]
async fn import_names_inconsistencies_of_an_inbox_and_writes_nothing() {
    let whole = inbox_folder().await;
    let server = TestServer::start().await;
    inbox::register(&server).await;
    let first = |folder: &str| whole.keys().find(|path| path.starts_with(folder)).expect("a file").clone();
    let with = |path: &str, status: &str| {
        let of = |(at, text): &(&String, &String)| at.starts_with(path) && text.contains(status);
        whole.iter().find(of).expect("a file").0.clone()
    };
    let read = |path: &str| serde_json::from_str::<Value>(&whole[path]).expect("JSON");
    let edited = |path: &str, edits: &[(&str, Value)]| {
        let mut document = read(path);
        for (pointer, value) in edits {
            *document.pointer_mut(pointer).expect("a place") = value.clone();
        }
        (path.to_string(), canonical::text_of(&document) + "\n")
    };
    let (waiting, promoted) = (with("candidates/", "WAITING"), with("candidates/", "PROMOTED"));
    let merged = with("candidates/", "MERGED");
    let attempt = first("attempts/");
    let twice = |path: &str, key: &str| {
        let mut document = read(path);
        document[key] = json!("00000000-0000-7000-8000-000000000001");
        let folder = path.split_once('/').expect("a folder").0;
        (format!("{folder}/00000000-0000-7000-8000-000000000001.json"), canonical::text_of(&document) + "\n")
    };
    let (none, mut last) = (json!("none"), Folder::new());
    for (path, text) in [
        edited("capture_buffers/waits.json", &[("/azolla_id", json!("mec"))]),
        edited("capture_buffers/in-triage.json", &[("/raw_content", json!("other"))]),
        edited("capture_buffers/in-triage.json", &[("/status", json!("PROCESSED"))]),
        edited("beside/capture_buffers/waits.json", &[("/work_order_id", none.clone())]),
        edited("beside/capture_buffers/bytes.json", &[("/raw_hex", json!("00ff"))]),
        edited("beside/capture_buffers/bytes.json", &[("/held", json!(true))]),
        edited(&waiting, &[("/azolla_id", json!("mec"))]),
        edited(&waiting, &[("/capture_ids", json!(["none"]))]),
        edited(&waiting, &[("/capture_ids", read(&promoted)["capture_ids"].clone())]),
        edited(&waiting, &[("/status", json!("DISCARDED"))]),
        edited(&waiting, &[("/work_order_id", none.clone())]),
        edited(&promoted, &[("/objective_id", none.clone())]),
        edited(&promoted, &[("/objective_id", json!("late"))]),
        edited(&promoted, &[("/objective_id", json!("operator-continuity"))]),
        edited(&merged, &[("/merged_into", none.clone())]),
        edited(&first("session_manifests/"), &[("/azolla_id", json!("mec"))]),
        edited(&first("beside/session_manifests/"), &[("/work_order_id", none.clone())]),
        edited(&first("beside/substrate_queries/"), &[("/event_id", none.clone())]),
        edited(&first("beside/substrate_queries/"), &[("/response_id", none.clone())]),
        edited(&first("substrate_queries/"), &[("/source_azolla_id", json!("mec"))]),
        edited(&first("substrate_query_responses/"), &[("/query_id", none.clone())]),
        edited(&first("overdue_pause_states/"), &[("/objective_id", none.clone())]),
        edited(&first("overdue_pause_states/"), &[("/azolla_id", json!("mec"))]),
        edited(&first("beside/overdue_pause_states/"), &[("/pause_key", none.clone())]),
        edited(&attempt, &[("/work_order_id", none.clone())]),
        edited("objectives/operator-continuity.json", &[("/azolla_id", json!("mec"))]),
        edited("objectives/operator-continuity.json", &[("/status", json!("DONE"))]),
        edited("beside/objectives/operator-continuity.json", &[("/unconfirmed", json!(true))]),
        edited("objectives/late.json", &[("/objective_type", json!("STANDING"))]),
        twice(&attempt, "attempt_id"),
        twice(&first("session_manifests/"), "manifest_id"),
        twice(&first("substrate_query_responses/"), "response_id"),
    ] {
        let mut folder = whole.clone();
        folder.insert(path.clone(), text);
        manifest_anew(&mut folder);
        // The file, the one beside it, or the one whose double it is.
        let said = path.trim_start_matches("beside/");
        let elsewhere = ["attempts/0", "substrate_query_responses/", "session_manifests/"]
            .iter()
            .any(|of| path.starts_with(of));
        let found = faults(&folder);
        let named = found.iter().any(|fault| fault.path.ends_with(said));
        assert!(named || elsewhere && !found.is_empty(), "{path}: {found:?}");
        last = folder;
    }
    let refused = server.post("/v1/import", &body(&last)).await;
    assert_eq!((refused.status, refused.code()), (422, "invalid".into()), "{refused:?}");
    assert!(refused.body.contains("nothing was written"), "{refused:?}");
    for part in ["captures", "candidates", "events", "runs", "pauses"] {
        assert_eq!(server.get(&format!("/v1/{part}")).await.json()[part], json!([]), "{part}");
    }
    server.stop().await;
}

/// A folder of the version before, which left the inbox out though the journal tells of it.
#[tokio::test]
async fn a_folder_with_tickets_only_still_comes_in() {
    let mut folder = inbox_folder().await;
    let duty = |text: &str| {
        text.contains("\"operator-continuity\"") || text.contains("\"azolla_id\":\"task_management\"")
    };
    let gone: Vec<String> = folder
        .iter()
        .filter(|(path, text)| {
            let kind = path.split_once('/').map_or("", |(kind, _)| kind);
            INBOX_KINDS.contains(&kind) || !["journal", "blueprints", "beside"].contains(&kind) && duty(text)
        })
        .map(|(path, _)| path.clone())
        .collect();
    for path in gone {
        folder.remove(&path);
        folder.remove(&format!("beside/{path}"));
    }
    manifest_anew(&mut folder);
    assert!(!faults(&folder).is_empty(), "of this version it is not whole");
    let older = folder[index::PATH].replace("fernery-export-2", "fernery-export-1");
    folder.insert(index::PATH.into(), older);
    assert_eq!(faults(&folder), []);
    let server = TestServer::start().await;
    inbox::register(&server).await;
    let answer = server.post("/v1/import", &body(&folder)).await;
    assert_eq!((answer.status, &answer.json()["held"]), (201, &json!(0)), "{answer:?}");
    server.stop().await;
}

//! An exported folder brought into another instance: whole, once, and with nothing in it that runs.

use crate::import;
use crate::import::{STREAM, approve, body, command, export, files, fill, hand_in, listed};
use crate::inbox;
use crate::pipeline::{good, judge, register, schedule, seal};
use crate::server::TestServer;
use fernery_core::exported;
use fernery_core::pipeline::judging::verdict_again;
use fernery_engine::door;
use serde_json::{Value, json};
use std::collections::BTreeMap;

crate::on_both_backends!(
    history_comes_in_as_it_was_and_what_was_under_way_is_new,
    nothing_that_came_in_runs_before_it_is_approved_here,
    what_came_in_goes_out_again_and_on_to_a_third_instance,
    a_folder_comes_in_once,
    an_instance_with_tickets_takes_no_folder,
    an_import_that_fails_half_way_leaves_nothing,
    an_azolla_that_is_not_here_is_named,
    a_request_that_both_instances_made_by_the_clock_stays_the_one_of_here,
);

/// An instance with tickets, its folder, and an empty instance beside it.
async fn two(server: &TestServer) -> (BTreeMap<String, String>, TestServer) {
    fill(server).await;
    let folder = files(&export(server, "out").await);
    let other = server.another().await;
    register(&other).await;
    (folder, other)
}

pub(super) async fn brought(server: &TestServer, folder: &BTreeMap<String, String>) -> Value {
    let answer = server.post("/v1/import", &body(folder)).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    seal(server).await;
    answer.json()
}

async fn objective(server: &TestServer, id: &str) -> Value {
    server.get(&format!("/v1/objectives/{id}")).await.json()
}

async fn statuses(server: &TestServer) -> BTreeMap<String, String> {
    let page = server.get("/v1/objectives").await.json();
    let rows = page["objectives"].as_array().expect("objectives").iter().map(|row| &row["objective"]);
    rows.map(|o| {
        let text = |key: &str| o[key].as_str().expect("a text").to_string();
        (text("objective_id"), text("status"))
    })
    .collect()
}

/// Entries in the order of the chain.
fn chained(entries: &Value) -> Vec<String> {
    let place = |entry: &Value| entry["seal"]["place"].as_i64().expect("it is sealed");
    let mut entries: Vec<&Value> = entries.as_array().expect("entries").iter().collect();
    entries.sort_by_key(|entry| place(entry));
    entries.iter().map(|entry| entry["entry_id"].as_str().expect("an id").to_string()).collect()
}

/// Without what stands beside a pause: which act or run it was of stays in the instance that wrote it.
fn artifacts(part: &Value) -> Value {
    let mut part = part.clone();
    for row in part.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        row.remove("happened");
    }
    part
}

async fn history_comes_in_as_it_was_and_what_was_under_way_is_new(server: TestServer) {
    let (folder, other) = two(&server).await;
    let answer = brought(&other, &folder).await;
    assert_eq!(answer["as_new"], json!(["emitted", "executed", "running", "todo"]));
    assert_eq!(answer["ended"].as_array().map(Vec::len), Some(3), "{answer}");
    let (was, is) = (statuses(&server).await, statuses(&other).await);
    for (id, status) in &was {
        let expected = if ["TODO", "IN_PROGRESS"].contains(&status.as_str()) { "NEW" } else { status };
        assert_eq!(is[id], expected, "{id}");
    }
    for id in ["done", "confirmed", "again", "cancelled", "new", "edited"] {
        let (was, is) = (objective(&server, id).await, objective(&other, id).await);
        for part in [
            "objective",
            "decisions",
            "events",
            "workorders",
            "context_snapshots",
            "output_bundles",
            "runs",
            "pauses",
            "unconfirmed",
            "failures",
            "spent",
        ] {
            assert_eq!(artifacts(&is[part]), artifacts(&was[part]), "{part} of {id}");
        }
        assert_eq!(is["decision"], Value::Null, "no approval of this instance covers {id}");
    }
    let journal = server.get("/v1/journal?limit=500").await.json()["entries"].clone();
    let kept = other.get("/v1/journal?limit=500").await.json()["entries"].clone();
    let plain = |entry: &Value| {
        let mut entry = entry.clone();
        entry.as_object_mut().expect("an object").remove("seal");
        entry
    };
    let arrived: Vec<String> =
        chained(&kept).into_iter().filter(|id| chained(&journal).contains(id)).collect();
    assert_eq!(arrived, chained(&journal), "in the order that it had");
    let kept: Vec<Value> = kept.as_array().expect("entries").iter().map(plain).collect();
    assert!(journal.as_array().expect("entries").iter().all(|entry| kept.contains(&plain(entry))));
    let told =
        kept.iter().find(|e| e["act"] == "imported" && e["subject"] == answer["digest"]).expect("an entry");
    assert!(told["actor"].as_str().is_some_and(|who| who.contains("operator")), "{told}");
    assert_eq!(told["why"]["counts"], answer["counts"]);
    let (code, said) = command(&other, &["run", "replay", "--all"]).await;
    assert_eq!((code, said.contains("6 runs: all verdicts are the same")), (0, true), "{said}");
    let (code, said) = command(&other, &["verify"]).await;
    assert_eq!(code, 0, "{said}");
    other.stop().await;
    server.stop().await;
}

/// Invariant 10.
async fn nothing_that_came_in_runs_before_it_is_approved_here(server: TestServer) {
    let (folder, other) = two(&server).await;
    brought(&other, &folder).await;
    let before = (statuses(&other).await, other.get("/v1/workorders").await.json());
    schedule(&other).await;
    judge(&other).await;
    assert_eq!((statuses(&other).await, other.get("/v1/workorders").await.json()), before);
    assert_eq!(other.claim(STREAM).await["claimed"], false);
    assert_eq!(other.get("/v1/claims").await.json()["claims"], json!([]));
    assert_eq!(other.get("/v1/jobs").await.json()["jobs"], json!([]));
    for id in ["again", "stopping", "cancelled"] {
        let answer = other.post(&format!("/v1/objectives/{id}/unblock"), &json!({ "all": true })).await;
        assert_eq!(answer.json()["objective"]["status"], "NEW", "{id} was approved elsewhere: {answer:?}");
    }
    schedule(&other).await;
    assert_eq!(other.claim(STREAM).await["claimed"], false);
    for id in ["again", "running", "todo"] {
        approve(&other, id).await;
        schedule(&other).await;
        hand_in(&other, good()).await;
        judge(&other).await;
        assert_eq!(statuses(&other).await[id], "DONE");
        // What gates elsewhere said of it nobody approved here.
        let told = objective(&other, id).await["context_snapshots"].clone();
        let told = told.as_array().and_then(|all| all.last()).expect("a snapshot");
        assert_eq!(told["related_yield_refs"], json!([]), "{id}");
        assert!(!told["full_prompt_text"].as_str().expect("a text").contains("failed"), "{told}");
    }
    let digest = other.get("/v1/objectives/done").await.json()["approval"]["digest"].clone();
    let reopening = json!({ "digest": digest, "note": "more" });
    let reopened = other.post("/v1/objectives/done/reopen", &reopening).await;
    assert_eq!(reopened.json()["objective"]["status"], "TODO", "{reopened:?}");
    other.stop().await;
    server.stop().await;
}

async fn what_came_in_goes_out_again_and_on_to_a_third_instance(server: TestServer) {
    let (folder, other) = two(&server).await;
    let answer = brought(&other, &folder).await;
    let again = files(&export(&other, "again").await);
    let under_way: Vec<&str> = ["as_new", "ended"]
        .iter()
        .flat_map(|part| answer[part].as_array().expect("ids"))
        .map(|id| id.as_str().expect("an id"))
        .collect();
    for (path, text) in &folder {
        // Seals are this instance's, approvals are none, and what was under way is not any more.
        let name = path.rsplit('/').next().expect("a name").trim_end_matches(".json");
        let differs = path == "manifest.json"
            || path.starts_with("beside/journal/")
            || path.starts_with("beside/objectives/")
            || path.contains("events/") && text != &again[path]
            || under_way.contains(&name);
        assert!(differs || again.get(path) == Some(text), "{path}");
    }
    let made: Vec<&String> = again.keys().filter(|path| !folder.contains_key(*path)).collect();
    let known = [
        "journal/",
        "beside/journal/",
        "output_bundles/",
        "run_records/",
        "beside/run_records/",
        "pause_states/",
    ];
    assert!(made.iter().all(|path| known.iter().any(|folder| path.starts_with(folder))), "{made:?}");
    let third = other.another().await;
    register(&third).await;
    let answer = brought(&third, &again).await;
    assert_eq!((&answer["as_new"], &answer["ended"]), (&json!([]), &json!([])));
    assert_eq!(statuses(&third).await, statuses(&other).await);
    // Its journal tells that the first folder came in, but that was elsewhere.
    let refused = third.post("/v1/import", &body(&folder)).await;
    assert_eq!((refused.status, refused.code()), (409, "conflict".into()), "{refused:?}");
    third.stop().await;
    other.stop().await;
    server.stop().await;
}

async fn a_folder_comes_in_once(server: TestServer) {
    let (folder, other) = two(&server).await;
    let request = body(&folder);
    let (one, two) = tokio::join!(other.post("/v1/import", &request), other.post("/v1/import", &request));
    let mut both = [(one.status, one.json()["before"].clone()), (two.status, two.json()["before"].clone())];
    both.sort_by_key(|(status, _)| *status);
    assert_eq!(both, [(200, json!(true)), (201, json!(false))], "{one:?} {two:?}");
    let before = other.get("/v1/journal?limit=500").await.json();
    let again = other.post("/v1/import", &request).await;
    assert_eq!((again.status, &again.json()["counts"]), (200, &one.json()["counts"]));
    assert_eq!(other.get("/v1/journal?limit=500").await.json(), before);
    other.stop().await;
    server.stop().await;
}

async fn an_instance_with_tickets_takes_no_folder(server: TestServer) {
    let (folder, other) = two(&server).await;
    import::create(&other, "here").await;
    let refused = other.post("/v1/import", &body(&folder)).await;
    assert_eq!((refused.status, refused.code()), (409, "conflict".into()), "{refused:?}");
    assert!(refused.body.contains("for example here"), "{refused:?}");
    assert_eq!(statuses(&other).await.len(), 1);
    for role in ["worker", "producer", "viewer"] {
        let token = other.token(role).await;
        let answer = other.call(&token, "POST", "/v1/import", &body(&folder).to_string()).await;
        assert_eq!(answer.status, 403, "{role}: {answer:?}");
    }
    other.stop().await;
    server.stop().await;
}

/// What is written last stands in the way: everything before it is taken back.
async fn an_import_that_fails_half_way_leaves_nothing(server: TestServer) {
    let (folder, other) = two(&server).await;
    let last = folder.keys().rfind(|path| path.starts_with("journal/")).expect("an entry");
    let id = last.trim_start_matches("journal/").trim_end_matches(".json").to_string();
    let substrate = other.engine.substrate();
    let taken = substrate.transact(move |sql| {
        let statement = "INSERT INTO journal (entry_id, created_at, actor, act, subject, why)
                         SELECT $1, created_at, actor, act, subject, why FROM journal LIMIT 1 RETURNING entry_id";
        sql.touched(statement, &[(&id).into()])
    });
    assert_eq!(taken.await.expect("written"), 1);
    let refused = other.post("/v1/import", &body(&folder)).await;
    assert_eq!((refused.status, refused.code()), (422, "refused".into()), "{refused:?}");
    for (path, rows) in [
        ("objectives", "objectives"),
        ("events", "events"),
        ("workorders", "workorders"),
        ("runs", "runs"),
        ("pauses", "pauses"),
    ] {
        assert_eq!(other.get(&format!("/v1/{path}")).await.json()[rows], json!([]), "{path}");
    }
    assert_eq!(other.get("/v1/journal").await.json()["entries"].as_array().map(Vec::len), Some(2));
    other.stop().await;
    server.stop().await;
}

async fn an_azolla_that_is_not_here_is_named(server: TestServer) {
    fill(&server).await;
    let folder = files(&export(&server, "out").await);
    let other = server.another().await;
    let refused = other.post("/v1/import", &body(&folder)).await;
    assert_eq!(refused.status, 422, "{refused:?}");
    assert!(
        refused.body.contains("objectives/again.json: this server does not host azolla mec"),
        "{refused:?}"
    );
    assert!(refused.body.contains("--azolla FILE"), "{refused:?}");
    other.stop().await;
    server.stop().await;
}

/// A reader needs nothing else to know what was asked, allowed, done and judged.
async fn a_request_that_both_instances_made_by_the_clock_stays_the_one_of_here(server: TestServer) {
    inbox::register(&server).await;
    import::create(&server, "T-1").await;
    let other = server.another().await;
    inbox::register(&other).await;
    // Every instance gives the request of the same schedule this name.
    let request = json!({ "request_id": "at-1763424000000-0123abcd" });
    for one in [&server, &other] {
        let asked = one.post("/v1/azollas/task_management/manifests", &request).await;
        assert!(asked.status < 300, "{asked:?}");
    }
    let path = "/v1/manifest_requests/at-1763424000000-0123abcd";
    let before = other.get(path).await.json();
    seal(&server).await;
    brought(&other, &files(&export(&server, "out").await)).await;
    assert_eq!(other.get(path).await.json(), before);
    let third = server.another().await;
    inbox::register(&third).await;
    brought(&third, &files(&export(&other, "on").await)).await;
    for one in [third, other, server] {
        one.stop().await;
    }
}

#[tokio::test]
async fn a_run_is_judged_from_its_folder_alone() {
    let server = TestServer::start().await;
    fill(&server).await;
    let folder = files(&export(&server, "out").await);
    server.stop().await;
    let all = exported::read(&listed(&folder), door::wall_clock()).expect("a whole folder");
    assert_eq!(all.runs.len(), 3);
    for run in all.runs.values() {
        let work = &all.workorders[run.artifact.work_order_id.as_str()];
        let asked = &all.snapshots[work.artifact.context_snapshot_id.as_str()].full_prompt_text;
        assert!(asked.contains("Do it") && asked.contains("- works"), "{asked}");
        let allowed = &all.blueprints[&work.beside.blueprint.to_string()];
        let approval =
            all.decisions.values().find(|d| d.objective_id == run.artifact.objective_id).expect("one");
        assert_eq!(approval.shown["blueprint"], allowed.decisive());
        let done = &all.bundles[run.artifact.output_id.as_str()];
        let (result, reason) = verdict_again(&allowed.gates, &run.beside.evidence, done).recorded();
        assert_eq!((result, &reason), (run.artifact.gate_result, &run.artifact.gate_reason));
    }
}

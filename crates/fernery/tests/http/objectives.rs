//! Objectives over HTTP: what operators may do, what readers see, and that nobody else gets anything done.

use crate::pipeline::{STREAM, TEXT, good, judge, put_in_force, register, schedule};
use crate::server::TestServer;
use fernery::http::WorkerAuth;
use fernery::http::route::Who;
use fernery::http::routes::ROUTES;
use fernery_client::wire::Role;
use serde_json::{Value, json};

crate::on_both_backends!(
    an_objective_is_written_down_once,
    an_approval_covers_exactly_what_was_read,
    what_is_in_the_way_from_the_start_stops_it_after_its_approval,
    a_refusal_says_what_is_possible_instead,
    lists_are_filtered_and_come_in_pages,
    a_run_is_read_with_all_that_led_to_it,
    a_result_that_is_no_bundle_is_told_part_by_part,
    the_job_of_a_workorder_is_left_to_the_scheduler,
    only_what_was_approved_for_executors_elsewhere_is_handed_out,
    a_claim_that_waited_gets_no_workorder_of_a_program,
    nothing_that_is_sent_breaks_the_server,
);

async fn create(server: &TestServer, body: &Value) -> String {
    let answer = server.post("/v1/objectives", body).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()["objective"]["objective_id"].as_str().expect("an id").to_string()
}

async fn approved(server: &TestServer, id: &str) {
    create(server, &json!({ "objective_id": id, "title": "Do it" })).await;
    let digest = server.get(&format!("/v1/objectives/{id}")).await.json()["approval"]["digest"].clone();
    let answer = server.post(&format!("/v1/objectives/{id}/approve"), &json!({ "digest": digest })).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

/// Runs a command against the server and takes what it prints.
async fn command(server: &TestServer, args: &[&str]) -> String {
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_fernery"));
    program
        .args(args)
        .env("FERNERY_URL", format!("http://{}", server.addr()))
        .env("FERNERY_TOKEN", &server.operator);
    let output =
        tokio::task::spawn_blocking(move || program.output()).await.expect("it ran").expect("it started");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

async fn an_objective_is_written_down_once(server: TestServer) {
    register(&server).await;
    let body = json!({ "objective_id": "T-1", "title": " Fix it ", "acceptance_criteria": "- it works",
        "importance": 0, "urgency": 4, "metadata": { "repo_ref": "main" } });
    let made = server.post("/v1/objectives", &body).await;
    assert_eq!(made.status, 201, "{made:?}");
    let objective = &made.json()["objective"];
    assert_eq!((&objective["title"], &objective["status"]), (&json!("Fix it"), &json!("NEW")));
    assert_eq!(objective["azolla_id"], "mec");
    let again = server.post("/v1/objectives", &body).await;
    assert_eq!((again.status, &again.json()["objective"]), (200, objective));
    let other = server.post("/v1/objectives", &json!({ "objective_id": "T-1", "title": "x" })).await;
    assert_eq!((other.status, other.code()), (409, "conflict".into()));
    let id = create(&server, &json!({ "title": "Without an id" })).await;
    assert!(id.starts_with("mec-") && id.len() == 12, "{id}");
    let nowhere = server.post("/v1/objectives", &json!({ "title": "x", "azolla_id": "nowhere" })).await;
    assert_eq!((nowhere.status, nowhere.pointers()), (422, vec!["/azolla_id".into()]));
    assert!(nowhere.body.contains("mec"), "{nowhere:?}");
    let edited = server.call(&server.operator, "PATCH", "/v1/objectives/T-1", r#"{"urgency":1}"#).await;
    assert_eq!((edited.status, &edited.json()["objective"]["urgency"]), (200, &json!(1)));
    assert_eq!(edited.json()["objective"]["acceptance_criteria"], "- it works", "the rest stays");
    server.stop().await;
}

async fn an_approval_covers_exactly_what_was_read(server: TestServer) {
    register(&server).await;
    create(&server, &json!({ "objective_id": "T-1", "title": "One" })).await;
    let read = server.get("/v1/objectives/T-1").await.json();
    assert_eq!((&read["decision"], &read["decisions"]), (&Value::Null, &json!([])));
    let digest = read["approval"]["digest"].clone();
    assert_eq!(read["approval"]["shown"]["title"], "One");
    assert!(read["approval"]["shown"]["blueprint"].is_object());
    let edit = json!({ "title": "Two", "metadata": { "a": "\u{0}" } });
    assert_eq!(
        server.call(&server.operator, "PATCH", "/v1/objectives/T-1", &edit.to_string()).await.status,
        200
    );
    let refused = server.post("/v1/objectives/T-1/approve", &json!({ "digest": digest })).await;
    assert_eq!((refused.status, refused.code()), (409, "changed".into()), "{refused:?}");
    let problem = refused.json();
    assert_eq!(problem["shown"]["title"], "Two");
    assert_eq!(
        problem["difference"],
        json!([{ "path": "/metadata", "before": {}, "now": { "a": "\u{0}" } },
               { "path": "/title", "before": "One", "now": "Two" }])
    );
    let note = json!({ "digest": problem["digest"], "note": "looks right" });
    let approved = server.post("/v1/objectives/T-1/approve", &note).await;
    assert_eq!((approved.status, &approved.json()["objective"]["status"]), (200, &json!("TODO")));
    let decision = approved.json()["decision"].clone();
    assert!(decision["who"].as_str().is_some_and(|who| who.starts_with("operator")), "{decision}");
    assert_eq!(decision["note"], "looks right");
    let again = server.post("/v1/objectives/T-1/approve", &json!({ "digest": problem["digest"] })).await;
    assert_eq!(again.json()["decision"], decision, "the same again is the same record");
    let read = server.get("/v1/objectives/T-1").await.json();
    assert_eq!((&read["decision"], &read["decisions"]), (&decision, &json!([decision])));
    assert_eq!(read["spent"]["attempts"], 0);
    server.stop().await;
}

/// By public calls alone: written down with blockers, approved, stopped, resolved, scheduled.
async fn what_is_in_the_way_from_the_start_stops_it_after_its_approval(server: TestServer) {
    register(&server).await;
    let mut body = json!({ "objective_id": "T-1", "title": "Paint it", "blocked_on": [
        { "kind": "DESIGN_DECISION", "description": "Which colour?" },
        { "blocker_id": "key", "kind": "USER_INPUT", "description": "The API key" },
        { "kind": "EXTERNAL_SYSTEM", "description": "The shop is closed" },
    ] });
    let made = server.post("/v1/objectives", &body).await;
    assert_eq!(made.status, 201, "{made:?}");
    let objective = made.json()["objective"].clone();
    assert_eq!((&objective["status"], &objective["blocked_reason"]), (&json!("NEW"), &Value::Null));
    let ids: Vec<_> =
        objective["blocked_on"].as_array().expect("a list").iter().map(|b| &b["blocker_id"]).collect();
    assert_eq!(ids, ["b1", "key", "b2"]);
    assert_eq!(server.post("/v1/objectives", &body).await.json()["objective"], objective, "the same again");
    let digest = server.get("/v1/objectives/T-1").await.json()["approval"]["digest"].clone();
    let approved = server.post("/v1/objectives/T-1/approve", &json!({ "digest": digest })).await.json();
    assert_eq!(approved["objective"]["status"], "TODO");
    assert_eq!(approved["objective"]["blocked_on"], objective["blocked_on"], "they stay with it");
    schedule(&server).await;
    let read = server.get("/v1/objectives/T-1").await.json();
    assert_eq!((&read["objective"]["status"], &read["workorders"]), (&json!("BLOCKED"), &json!([])));
    assert_eq!(read["events"][0]["reason"], "BLOCKED", "{read:#}");
    let pause = &read["pauses"][0];
    let first = "Resolve b1 (Which colour?), then: fernery ticket unblock T-1 --blocker b1";
    assert_eq!((&pause["reason"], &pause["prioritized_actions"][0]), (&json!("GATE_FAILED"), &json!(first)));
    assert_eq!(pause["prioritized_actions"].as_array().map(Vec::len), Some(3));
    for (blocker, status) in [("b1", "BLOCKED"), ("key", "BLOCKED"), ("b2", "TODO")] {
        let left = server.post("/v1/objectives/T-1/unblock", &json!({ "blockers": [blocker] })).await.json();
        assert_eq!(left["objective"]["status"], status, "{left}");
    }
    schedule(&server).await;
    let read = server.get("/v1/objectives/T-1").await.json();
    let reasons: Vec<_> = read["events"].as_array().expect("events").iter().map(|e| &e["reason"]).collect();
    assert_eq!(reasons, ["BLOCKED", "SCHEDULED"]);
    assert_eq!(read["objective"]["status"], "IN_PROGRESS");
    for (wrong, at) in [
        (json!([{ "kind": "USER_INPUT", "description": "" }]), "/blocked_on/0/description"),
        (json!([{ "kind": "USER_INPUT" }]), "/blocked_on/0/description"),
        (json!([{ "kind": "OTHER", "description": "x" }]), "/blocked_on/0/kind"),
        (json!([{ "kind": "USER_INPUT", "description": "x", "resolved": true }]), "/blocked_on/0/resolved"),
        (json!({}), "/blocked_on"),
    ] {
        body["blocked_on"] = wrong;
        let refused = server.post("/v1/objectives", &body).await;
        assert_eq!((refused.status, refused.pointers()), (422, vec![at.to_string()]), "{refused:?}");
    }
    body["blocked_on"] = json!([]);
    assert_eq!(server.post("/v1/objectives", &body).await.code(), "conflict", "another one under its id");
    server.stop().await;
}

async fn a_refusal_says_what_is_possible_instead(server: TestServer) {
    register(&server).await;
    create(&server, &json!({ "objective_id": "T-1", "title": "One" })).await;
    let at = |act: &str| format!("/v1/objectives/T-1/{act}");
    let some = "0".repeat(64);
    for (act, body) in [
        ("confirm", json!({ "run_id": "r" })),
        ("reopen", json!({ "note": "again", "digest": some })),
        ("unblock", json!({ "all": true })),
    ] {
        let refused = server.post(&at(act), &body).await;
        assert_eq!((refused.status, refused.code()), (409, "wrong_status".into()), "{refused:?}");
        assert_eq!(refused.json()["objective_status"], "NEW");
        assert_eq!(refused.json()["possible"], json!(["approve", "edit", "block", "cancel"]));
    }
    for (act, body, pointer) in [
        ("reopen", json!({ "note": " ", "digest": some }), "/note"),
        ("reopen", json!({ "note": "again" }), "/digest"),
        ("confirm", json!({ "note": "good" }), "/run_id"),
        ("confirm", json!({ "run_id": "../x" }), "/run_id"),
        ("cancel", json!({ "record_id": "a b" }), "/record_id"),
        ("block", json!({ "kind": "USER_INPUT", "description": "" }), "/description"),
        ("block", json!({ "kind": "USER_INPUT", "description": "a\u{0}" }), "/description"),
        ("block", json!({ "kind": "NO", "description": "x" }), "/kind"),
        ("unblock", json!({}), "/blockers"),
        ("unblock", json!({ "all": true, "blockers": ["b1"] }), "/all"),
        ("approve", json!({ "digest": "abc" }), "/digest"),
        ("approve", json!({ "note": "x" }), "/digest"),
        ("approve", json!({ "digest": "0".repeat(64), "note": "\u{0}" }), "/note"),
        ("cancel", json!({ "note": "\u{0}" }), "/note"),
        ("confirm", json!({ "run_id": "r", "x": 1 }), "/x"),
    ] {
        let refused = server.post(&at(act), &body).await;
        assert_eq!((refused.status, refused.pointers()), (422, vec![pointer.into()]), "{act} {refused:?}");
    }
    let block = json!({ "kind": "DESIGN_DECISION", "description": "Which one?", "blocker_id": "q" });
    let blocked = server.post(&at("block"), &block).await;
    assert_eq!((blocked.status, &blocked.json()["objective"]["status"]), (200, &json!("BLOCKED")));
    let unknown = server.post(&at("unblock"), &json!({ "blockers": ["other"] })).await;
    assert_eq!((unknown.status, unknown.code()), (409, "conflict".into()));
    let free = server.post(&at("unblock"), &json!({ "blockers": ["q"] })).await;
    assert_eq!(
        (free.status, &free.json()["objective"]["status"]),
        (200, &json!("NEW")),
        "it was not approved"
    );
    let cancelled = server.call(&server.operator, "POST", &at("cancel"), "").await;
    assert_eq!(cancelled.json()["objective"]["blocked_reason"], "cancelled");
    let shown = json!({ "digest": "0".repeat(64) });
    for (act, body) in [("approve", &shown), ("cancel", &json!({})), ("confirm", &json!({ "run_id": "r" }))] {
        let gone = server.post(&format!("/v1/objectives/nobody/{act}"), body).await;
        assert_eq!((gone.status, gone.code()), (404, "not_found".into()), "{act}");
    }
    server.stop().await;
}

async fn lists_are_filtered_and_come_in_pages(server: TestServer) {
    register(&server).await;
    for n in 0..7 {
        approved(&server, &format!("todo-{n}")).await;
        create(&server, &json!({ "objective_id": format!("new-{n}"), "title": "x" })).await;
    }
    for (filter, count, first) in [
        ("", 14, "new-6"),
        ("status=TODO&", 7, "todo-6"),
        ("azolla_id=mec&", 14, "new-6"),
        ("azolla_id=mec&status=NEW&", 7, "new-6"),
        ("azolla_id=other&", 0, ""),
        ("status=DONE&", 0, ""),
    ] {
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = server.get(&format!("/v1/objectives?{filter}limit=3{cursor}")).await;
            assert_eq!(page.status, 200, "{page:?}");
            let page = page.json();
            let rows = page["objectives"].as_array().expect("rows").clone();
            seen.extend(
                rows.iter().map(|row| row["objective"]["objective_id"].as_str().expect("id").to_string()),
            );
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(seen.len(), count, "{filter}: {seen:?}");
        // Within one millisecond the id decides, so only the sets are sure.
        assert!(count == 0 || seen.contains(&first.to_string()), "{filter}: {seen:?}");
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), count, "none twice");
    }
    let journal = server.get("/v1/journal?limit=2").await.json();
    assert_eq!(journal["entries"].as_array().map(Vec::len), Some(2));
    let cursor = journal["next_cursor"].as_str().expect("more").to_string();
    assert_eq!(server.get(&format!("/v1/journal?limit=2&cursor={cursor}")).await.status, 200);
    let foreign = server.get(&format!("/v1/objectives?cursor={cursor}")).await;
    assert_eq!((foreign.status, foreign.code()), (400, "bad_cursor".into()));
    server.stop().await;
}

async fn a_run_is_read_with_all_that_led_to_it(server: TestServer) {
    register(&server).await;
    approved(&server, "T-1").await;
    schedule(&server).await;
    let job = server.claim(STREAM).await;
    let claims = server.get("/v1/claims").await.json()["claims"].clone();
    assert_eq!(claims[0]["resource_type"], "WORKORDER", "{claims}");
    assert_eq!((&claims[0]["resource_id"], &claims[0]["owner_id"]), (&job["job_id"], &json!("w")));
    let done = json!({ "worker_id": "w", "job_id": job["job_id"], "attempt_id": job["attempt_id"],
        "lease_token": job["lease_token"], "result": good() });
    assert_eq!(server.work("complete", &done).await.status, 200);
    judge(&server).await;
    let read = server.get("/v1/objectives/T-1").await.json();
    assert_eq!((&read["objective"]["status"], &read["unconfirmed"]), (&json!("DONE"), &json!(true)));
    for part in ["decisions", "events", "workorders", "context_snapshots", "output_bundles", "runs", "pauses"]
    {
        assert_eq!(read[part].as_array().map(Vec::len), Some(1), "{part}: {read}");
    }
    let (workorder, run) = (&read["workorders"][0], &read["runs"][0]);
    let at = |path: &str, id: &Value| format!("/v1/{path}/{}", id.as_str().expect("an id"));
    let whole = server.get(&at("workorders", &workorder["work_order_id"])).await.json();
    assert_eq!((&whole["workorder"], &whole["run"]), (workorder, run));
    assert_eq!(server.get(&at("runs", &run["run_id"])).await.json(), *run);
    let replay = server.get(&format!("{}/replay", at("runs", &run["run_id"]))).await.json();
    assert_eq!((&replay["same"], &replay["stored"]), (&json!(true), &replay["again"]));
    for (path, rows) in
        [("events", "events"), ("workorders", "workorders"), ("runs", "runs"), ("pauses", "pauses")]
    {
        let page = server.get(&format!("/v1/{path}")).await.json();
        assert_eq!(page[rows], read[rows], "{path}");
    }
    let verified = server.get("/v1/journal/verify").await.json();
    assert_eq!(verified["fault"], Value::Null, "{verified}");
    let head = &verified["head"];
    assert!(head["place"].as_i64().is_some_and(|place| place > 1), "{verified}");
    let at = server.get(&format!("/v1/journal/verify?place={}", head["place"])).await.json()["at"].clone();
    assert_eq!(at, *head);
    assert_eq!(server.get("/v1/journal/verify?place=1").await.json()["at"]["place"], 1);
    assert_eq!(server.get("/v1/journal/verify?place=1000").await.json()["at"], Value::Null);
    let azolla = server.get("/v1/azollas/mec").await.json();
    assert_eq!((&azolla["azolla_id"], &azolla["workers"]), (&json!("mec"), &json!([])));
    assert_eq!(server.get("/v1/azollas").await.json()["azollas"][0]["digest"], azolla["digest"]);
    let shown = command(&server, &["ticket", "show", "T-1"]).await;
    for part in
        ["SCHEDULED", "OUTPUT: done", "PASS: every gate passed", "schema: PASS", "fernery ticket confirm T-1"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(command(&server, &["run", "replay", "--all"]).await.contains("1 run: all verdicts are the same"));
    let out = server.folder.path().join("out");
    command(&server, &["export", out.to_str().expect("UTF-8")]).await;
    let stored = |folder: &str, id: &Value| {
        let path = out.join(folder).join(format!("{}.json", id.as_str().expect("an id")));
        serde_json::from_slice::<Value>(&std::fs::read(&path).expect("a file")).expect("JSON")
    };
    assert_eq!(stored("output_bundles", &workorder["output_id"]), read["output_bundles"][0]);
    let mut record = stored("run_records", &run["run_id"]);
    assert_eq!(record.as_object().map(serde_json::Map::len), Some(7), "{record}");
    record["evidence"] = stored("beside/run_records", &run["run_id"])["evidence"].clone();
    assert_eq!(record, *run);
    let order = stored("workorders", &workorder["work_order_id"]);
    assert_eq!(
        (order.as_object().map(serde_json::Map::len), &order["status"]),
        (Some(8), &json!("EXECUTED"))
    );
    assert!(
        out.join(format!("blueprints/{}.json", workorder["blueprint"].as_str().expect("a digest"))).exists()
    );
    let brief = server.get("/v1/objectives/T-1?documents=false").await.json();
    assert_eq!((&brief["runs"], &brief["output_bundles"]), (&read["runs"], &json!([])));
    assert_eq!(server.get("/v1/objectives/T-1?documents=x").await.status, 422);
    let stale = server.post("/v1/objectives/T-1/confirm", &json!({ "run_id": "earlier" })).await;
    assert_eq!((stale.status, stale.code()), (409, "changed".into()), "{stale:?}");
    assert_eq!(stale.json()["shown"]["run_record"]["run_id"], run["run_id"]);
    let confirming = json!({ "run_id": run["run_id"], "note": "good", "record_id": "mine" });
    let confirmed = server.post("/v1/objectives/T-1/confirm", &confirming).await;
    assert_eq!((confirmed.status, &confirmed.json()["unconfirmed"]), (200, &json!(false)), "{confirmed:?}");
    let again = server.post("/v1/objectives/T-1/confirm", &confirming).await;
    assert_eq!(again.json(), confirmed.json(), "asked for again, it is answered as it was");
    let digest = read["approval"]["digest"].clone();
    let other = json!({ "note": "x", "digest": digest, "record_id": "mine" });
    assert_eq!(server.post("/v1/objectives/T-1/reopen", &other).await.code(), "conflict");
    let reopening = json!({ "note": "also on Windows", "digest": digest, "record_id": "r-2" });
    let reopened = server.post("/v1/objectives/T-1/reopen", &reopening).await;
    assert_eq!(reopened.json()["objective"]["status"], "TODO", "{reopened:?}");
    assert_eq!(server.post("/v1/objectives/T-1/reopen", &reopening).await.json(), reopened.json());
    server.stop().await;
}

async fn a_result_that_is_no_bundle_is_told_part_by_part(server: TestServer) {
    register(&server).await;
    approved(&server, "T-1").await;
    schedule(&server).await;
    let job = server.claim(STREAM).await;
    let report = |result: Value| {
        json!({ "worker_id": "w", "job_id": job["job_id"], "attempt_id": job["attempt_id"],
            "lease_token": job["lease_token"], "result": result })
    };
    let refused = server.work("complete", &report(json!({ "content": 1, "more": 2 }))).await;
    assert_eq!((refused.status, refused.code()), (422, "unfit_output".into()), "{refused:?}");
    assert_eq!(refused.pointers(), ["/result/more", "/result/title", "/result/content"]);
    assert_eq!((&refused.json()["ok"], &refused.json()["ack"]), (&json!(false), &json!(false)));
    let item = |result: Value| {
        let mut item = report(result);
        item.as_object_mut().expect("an object").remove("worker_id");
        json!({ "worker_id": "w", "items": [item] }).to_string()
    };
    let batch = server.call(&server.worker, "POST", "/v1/worker/complete", &item(json!([]))).await.json();
    assert_eq!((&batch["items"][0]["outcome"], &batch["items"][0]["ack"]), (&json!("unfit"), &json!(false)));
    assert_eq!(batch["items"][0]["errors"][0]["pointer"], "/result", "{batch}");
    // A whole bundle is one as well; its ids and times are ours.
    let mut whole = good();
    for (field, value) in
        [("output_id", "theirs"), ("objective_id", "T-2"), ("created_at", "2020-01-01T00:00:00Z")]
    {
        whole[field] = json!(value);
    }
    let accepted =
        server.call(&server.worker, "POST", "/v1/worker/complete", &item(whole.clone())).await.json();
    assert_eq!(accepted["items"][0]["outcome"], "accepted", "the attempt was open still: {accepted}");
    let stored = server.get("/v1/objectives/T-1").await.json()["output_bundles"][0].clone();
    assert_eq!((&stored["objective_id"], &stored["content"]), (&json!("T-1"), &whole["content"]), "{stored}");
    assert!(stored["output_id"] != "theirs" && stored["created_at"] != whole["created_at"], "{stored}");
    server.stop().await;
}

async fn the_job_of_a_workorder_is_left_to_the_scheduler(server: TestServer) {
    register(&server).await;
    approved(&server, "T-1").await;
    schedule(&server).await;
    let job_id = server.claim(STREAM).await["job_id"].clone();
    let path = |verb: &str| format!("/v1/jobs/{}/{verb}", job_id.as_str().expect("an id"));
    for (path, body) in [
        (path("cancel"), json!({ "force": true })),
        (path("retry"), json!({})),
        ("/v1/dlq/redrive".into(), json!({ "filter": { "job_ids": [job_id] } })),
        ("/v1/dlq/purge".into(), json!({ "filter": { "job_ids": [job_id] } })),
        ("/v1/dlq/purge".into(), json!({ "filter": { "stream": STREAM } })),
    ] {
        let refused = server.post(&path, &body).await;
        assert_eq!((refused.status, refused.code()), (409, "conflict".into()), "{path} {refused:?}");
        assert!(refused.body.contains("fernery ticket"), "{refused:?}");
    }
    assert_eq!(server.get("/v1/objectives/T-1").await.json()["objective"]["status"], "IN_PROGRESS");
    let enqueued = server.post("/v1/jobs", &json!({ "stream": STREAM, "payload": {} })).await;
    assert_eq!((enqueued.status, enqueued.code()), (422, "reserved_stream".into()));
    server.stop().await;
}

/// The same azolla, with a program instead of executors elsewhere.
fn program() -> String {
    format!("{TEXT}kind = \"command\"\nargv = [\"/bin/true\"]\nsandbox = \"none\"\n")
}

fn ask(stream: &str, max_wait_ms: u64) -> Value {
    json!({ "worker_id": "w", "streams": [stream], "max_wait_ms": max_wait_ms })
}

async fn only_what_was_approved_for_executors_elsewhere_is_handed_out(server: TestServer) {
    put_in_force(&server, &program()).await;
    approved(&server, "T-1").await;
    schedule(&server).await;
    for stream in [STREAM, "diazotroph:GONE", "diazotroph:"] {
        let refused = server.work("claim", &ask(stream, 0)).await;
        assert_eq!((refused.status, refused.code()), (403, "forbidden".into()), "{refused:?}");
    }
    // From now on others execute this type, but not what was approved before.
    register(&server).await;
    for path in ["/internal/worker/claim", "/v1/worker/claim"] {
        let mut body = ask(STREAM, 0);
        if path.starts_with("/v1") {
            body["max"] = json!(10);
        }
        let answer = server.call(&server.worker, "POST", path, &body.to_string()).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(!answer.body.contains("lease_token"), "{answer:?}");
    }
    let told = server.get("/v1/objectives/T-1").await.json()["objective"].clone();
    assert_eq!(
        (&told["status"], &told["blocked_on"][0]["kind"]),
        (&json!("BLOCKED"), &json!("DEPENDENCY_CHANGE"))
    );
    approved(&server, "T-2").await;
    schedule(&server).await;
    let mut body = ask(STREAM, 0);
    body["max"] = json!(10);
    let jobs = server.call(&server.worker, "POST", "/v1/worker/claim", &body.to_string()).await.json();
    assert_eq!(jobs["jobs"].as_array().map(Vec::len), Some(1), "{jobs}");
    server.stop().await;
}

async fn a_claim_that_waited_gets_no_workorder_of_a_program(server: TestServer) {
    register(&server).await;
    let waits = ask(STREAM, 20_000);
    let claim = server.work("claim", &waits);
    let meanwhile = async {
        while server.engine.waiting_claims() == 0 {
            tokio::task::yield_now().await;
        }
        put_in_force(&server, &program()).await;
        approved(&server, "T-1").await;
        schedule(&server).await;
    };
    let (answer, ()) = tokio::join!(claim, meanwhile);
    assert_eq!((answer.status, answer.body.contains("lease_token")), (200, false), "{answer:?}");
    let read = server.get("/v1/objectives/T-1").await.json();
    assert_eq!(read["objective"]["status"], "IN_PROGRESS", "its program is to run here: {read}");
    server.stop().await;
}

async fn nothing_that_is_sent_breaks_the_server(server: TestServer) {
    register(&server).await;
    create(&server, &json!({ "objective_id": "T-1", "title": "x" })).await;
    for (body, status) in [
        (json!({ "title": "x".repeat(10 << 20) }), 422),
        (json!({ "title": "" }), 422),
        (json!({ "title": "a\nb" }), 422),
        (json!({ "title": "a\u{0}b" }), 422),
        (json!({ "title": "\u{1b}[2J" }), 422),
        (json!({ "title": "x", "acceptance_criteria": "\u{0}" }), 422),
        (json!({ "title": "x", "acceptance_criteria": "y".repeat(1 << 20) }), 422),
        (json!({ "title": "x", "importance": 5 }), 422),
        (json!({ "title": "x", "urgency": 256 }), 422),
        (json!({ "title": "x", "urgency": -1 }), 422),
        (json!({ "title": "x", "metadata": [] }), 422),
        (json!({ "title": "x", "metadata": { "due_at": "friday" } }), 422),
        (json!({ "title": "x", "metadata": { "k": "y".repeat(1 << 20) } }), 422),
        (json!({ "title": "x", "status": "TODO" }), 422),
        (json!({ "title": "x", "objective_id": "../x" }), 422),
        (json!({ "title": "x", "objective_id": "a\u{0}" }), 422),
        (json!({ "title": "x", "azolla_id": "" }), 422),
        (json!([]), 422),
        (json!({ "title": "x", "metadata": { "\u{0}": "\u{0}", "n": 1e300, "deep": [[[{}]]] } }), 201),
    ] {
        let answer = server.post("/v1/objectives", &body).await;
        assert_eq!(answer.status, status, "{:.200} {:.400}", body.to_string(), answer.body);
    }
    let bad = json!({ "metadata": { "due_at": "friday" } }).to_string();
    let edit = server.call(&server.operator, "PATCH", "/v1/objectives/T-1", &bad).await;
    assert_eq!((edit.status, edit.pointers()), (422, vec!["/metadata/due_at".into()]), "{edit:?}");
    let bearer = format!("Bearer {}", server.operator);
    let head = format!(
        "POST /v1/objectives HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: {bearer}\r\n\
         content-type: application/json\r\ncontent-length: 14\r\n\r\n"
    );
    let latin = server.raw(&[head.as_bytes(), b"{\"title\":\"\xff\xfe\"}"].concat()).await;
    assert_eq!((latin.status, latin.code()), (400, "bad_json".into()), "{latin:?}");
    let long = "x".repeat(200);
    let ids =
        ["..", "%2e%2e", "a%00b", "%00", "a%2Fb", "%ff", "%", "a%0Ab", long.as_str(), "%F0%9F%98%80", "-"];
    for collection in ["objectives", "workorders", "runs", "azollas", "blueprints"] {
        for id in ids {
            let answer = server.get(&format!("/v1/{collection}/{id}")).await;
            assert!(matches!(answer.status, 400 | 404), "{collection}/{id}: {answer:?}");
        }
    }
    for query in [
        "objectives?status=LOST",
        "objectives?azolla_id=%00",
        "objectives?azolla_id=a/b",
        "objectives?limit=0",
        "objectives?cursor=x",
        "objectives?after=x",
        "events?cursor=%00",
        "runs?limit=9999",
        "journal?x=1",
        "claims?a=1",
    ] {
        let answer = server.get(&format!("/v1/{query}")).await;
        assert!(matches!(answer.status, 400 | 422), "{query}: {answer:?}");
    }
    for (method, path) in [("PATCH", "/v1/objectives/T-1"), ("POST", "/v1/objectives/T-1/block")] {
        for body in ["{", "[]", "null", "{\"x\":1}", "\"\"", "{\"title\":null,\"title\":1}", &"[".repeat(100)]
        {
            let answer = server.call(&server.operator, method, path, body).await;
            assert!(matches!(answer.status, 400 | 422), "{method} {body}: {answer:?}");
        }
    }
    server.stop().await;
}

/// Roles that must never start anything, over the whole table. With `--worker-auth none` as without.
#[tokio::test]
async fn workers_producers_and_strangers_get_nothing_approved_or_executed() {
    for worker_auth in [WorkerAuth::Token, WorkerAuth::None] {
        let server = TestServer::start_with(|settings| settings.worker_auth = worker_auth).await;
        register(&server).await;
        create(&server, &json!({ "objective_id": "new", "title": "x" })).await;
        create(&server, &json!({ "objective_id": "blocked", "title": "x" })).await;
        let block = json!({ "kind": "USER_INPUT", "description": "x", "blocker_id": "b1" });
        assert_eq!(server.post("/v1/objectives/blocked/block", &block).await.status, 200);
        approved(&server, "todo").await;
        let before = server.get("/v1/objectives").await.json();
        let callers = [Some(server.token("worker").await), Some(server.token("producer").await), None];
        // Every body that would work for an operator.
        let bodies = [
            json!({}),
            json!({ "title": "mine" }),
            json!({ "note": "go" }),
            json!({ "all": true }),
            json!({ "blockers": ["b1"] }),
            json!({ "role": "operator", "name": "x" }),
            json!({ "stream": STREAM, "payload": {} }),
            json!([{ "stream": STREAM, "payload": {} }]),
            json!({ "worker_id": "w", "streams": [STREAM], "max_wait_ms": 0 }),
            json!({ "worker_id": "w", "streams": [STREAM], "max_wait_ms": 0, "max": 1 }),
        ];
        for route in ROUTES.iter().filter(|route| route.who != Who::Open) {
            let pipeline = route.path.starts_with("/v1/objectives")
                || ["events", "workorders", "runs", "pauses", "claims", "journal", "azollas", "blueprints"]
                    .iter()
                    .any(|part| route.path.starts_with(&format!("/v1/{part}")));
            for id in ["new", "blocked", "todo"] {
                let path = route.path.replace("{id}", id).replace("{name}", "s");
                for caller in &callers {
                    for body in &bodies {
                        let body = if route.method == "GET" { String::new() } else { body.to_string() };
                        let answer = match caller {
                            Some(token) => server.call(token, route.method.as_str(), &path, &body).await,
                            None => {
                                let json = [("content-type", "application/json")];
                                server.send(route.method.as_str(), &path, &json, &body).await
                            }
                        };
                        assert!(
                            !pipeline || matches!(answer.status, 401 | 403),
                            "{} {path}: {answer:?}",
                            route.method
                        );
                        assert!(
                            !answer.body.contains("\"lease_token\""),
                            "{} {path}: {answer:?}",
                            route.method
                        );
                        if route.method == "GET" {
                            break;
                        }
                    }
                }
                if !route.path.contains('{') {
                    break;
                }
            }
            if pipeline {
                assert!(
                    matches!(route.who, Who::Roles(_)) && !route.who.allows(Role::Worker),
                    "{}",
                    route.path
                );
            }
        }
        // Claims: without a token never, whatever --worker-auth says.
        let claim = json!({ "worker_id": "w", "streams": [STREAM], "max_wait_ms": 0 }).to_string();
        let json = [("content-type", "application/json")];
        let stranger = server.send("POST", "/internal/worker/claim", &json, &claim).await;
        assert!(matches!(stranger.status, 401 | 403), "{stranger:?}");
        assert_eq!(server.get("/v1/objectives").await.json(), before, "nothing moved");
        assert_eq!(server.get("/v1/events").await.json()["events"], json!([]));
        assert_eq!(server.get("/v1/streams").await.json()["streams"], json!([]), "nothing was enqueued");
        assert_eq!(server.get("/v1/tokens").await.json()["tokens"].as_array().map(Vec::len), Some(4));
        server.stop().await;
    }
}

//! The catalogue of bad input: what workers ask for and report, and which of it changes anything.

use crate::server::TestServer;
use serde_json::{Value, json};
use std::time::Duration;

crate::on_both_backends!(
    a_report_changes_what_its_holder_may_change_and_nothing_else,
    a_heartbeat_with_a_progress_that_makes_no_sense_is_refused,
    progress_is_shown_while_the_job_runs_and_never_goes_back,
    a_claim_on_a_stream_that_nobody_knows_does_not_make_it,
);

const ID: &str = "019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f";

#[tokio::test]
async fn claims_are_bounded() {
    let server = TestServer::start().await;
    let many: Vec<String> = (0..33).map(|n| format!("s{n}")).collect();
    let cases = [
        (json!({ "worker_id": "w", "streams": ["s"], "max_wait_ms": -1 }), "/max_wait_ms"), // H40
        (json!({ "worker_id": "w", "streams": ["s"], "max_wait_ms": "abc" }), "/max_wait_ms"), // H40
        (json!({ "worker_id": "w", "streams": ["s"], "max_wait_ms": 1_000_000_000 }), "/max_wait_ms"), // H40
        (json!({ "worker_id": "w", "streams": [] }), "/streams"),
        (json!({ "worker_id": "w", "streams": many }), "/streams"),
        (json!({ "worker_id": "w", "streams": ["a b"] }), "/streams/0"),
        (json!({ "worker_id": "", "streams": ["s"] }), "/worker_id"),
        (json!({ "worker_id": "w".repeat(201), "streams": ["s"] }), "/worker_id"),
        (json!({ "worker_id": "a\u{0}", "streams": ["s"] }), "/worker_id"), // H17
        (json!({ "streams": ["s"] }), "/worker_id"),
    ];
    for (body, pointer) in cases {
        let answer = server.work("claim", &body).await;
        assert_eq!(
            (answer.status, answer.pointers()),
            (422, vec![pointer.to_string()]),
            "{body}: {answer:?}"
        );
        let problem = answer.json();
        assert_eq!((&problem["ok"], &problem["ack"]), (&json!(false), &json!(false)));
    }
    for max in [0, 1_001, 1_000_000] {
        // H42
        let body = json!({ "worker_id": "w", "streams": ["s"], "max": max, "max_wait_ms": 0 });
        let answer = server.post("/v1/worker/claim", &body).await;
        assert_eq!((answer.status, answer.pointers()), (422, vec!["/max".to_string()]));
    }
    let items = vec![json!({ "job_id": ID, "lease_token": ID }); 1_001];
    let answer = server.post("/v1/worker/heartbeat", &json!({ "worker_id": "w", "items": items })).await;
    assert_eq!((answer.status, answer.pointers()), (422, vec!["/items".to_string()]));
    server.stop().await;
}

/// H41
async fn a_claim_on_a_stream_that_nobody_knows_does_not_make_it(server: TestServer) {
    assert_eq!(server.claim("unknown").await, json!({ "claimed": false }));
    assert_eq!(server.get("/v1/streams/unknown").await.status, 404);
    assert_eq!(server.get("/v1/streams").await.json()["streams"], json!([]));
    server.stop().await;
}

/// A report of `claimed`, with other fields where `other` has them.
fn report(claimed: &Value, other: Value) -> Value {
    let mut body = json!({ "worker_id": "w", "result": 1, "error": { "code": "E", "message": "m" } });
    for field in ["job_id", "attempt_id", "lease_token"] {
        body[field] = claimed[field].clone();
    }
    for (name, value) in other.as_object().expect("fields") {
        body[name] = value.clone();
    }
    body
}

async fn a_report_changes_what_its_holder_may_change_and_nothing_else(server: TestServer) {
    let stale = server.leased("a").await;
    server.advance(Duration::from_secs(61)).await;
    server.engine.store().reap(10).await.expect("a reap");
    let current = server.claim("a").await;
    assert_eq!(current["job_id"], stale["job_id"]);
    let [mine, theirs] = [server.leased("b").await, server.leased("c").await];
    let done = server.leased("d").await;
    assert_eq!(server.work("complete", &report(&done, json!({ "result": "first" }))).await.status, 200);

    let stolen = json!({ "lease_token": mine["lease_token"] });
    let same = json!({ "result": "first" });
    let other = json!({ "result": "second" });
    let mixed = json!({ "attempt_id": stale["attempt_id"] });
    let nobody = json!({ "job_id": ID });
    let cases: &[(&str, &str, Value, u16, &str, bool)] = &[
        ("H22", "heartbeat", report(&theirs, stolen.clone()), 409, "lease_lost", false),
        ("H22", "complete", report(&theirs, stolen.clone()), 409, "lease_lost", false),
        ("H22", "fail", report(&theirs, stolen), 409, "lease_lost", false),
        ("H44", "heartbeat", report(&done, json!({})), 409, "lease_lost", false),
        ("H45", "heartbeat", report(&stale, json!({})), 409, "lease_lost", false),
        ("H45", "complete", report(&stale, json!({})), 409, "lease_lost", true),
        ("H45", "fail", report(&stale, json!({})), 409, "lease_lost", true),
        ("H46", "complete", report(&current, mixed.clone()), 409, "lease_lost", true),
        ("H46", "fail", report(&current, mixed), 409, "lease_lost", true),
        ("H47", "complete", report(&done, same), 200, "", true),
        ("H48", "complete", report(&done, other), 200, "", true),
        ("H49", "fail", report(&done, json!({})), 409, "attempt_closed", true),
        ("H21", "heartbeat", report(&mine, nobody.clone()), 404, "not_found", false),
        ("H21", "complete", report(&mine, nobody), 404, "not_found", false),
    ];
    for (number, verb, body, status, code, ack) in cases {
        let answer = server.work(verb, body).await;
        assert_eq!((answer.status, answer.code().as_str()), (*status, *code), "{number} {verb}: {answer:?}");
        assert_eq!(answer.json()["ack"], *ack, "{number} {verb}: {answer:?}");
        assert_eq!(answer.json()["ok"], *status == 200, "{number} {verb}: {answer:?}");
    }

    let job = async |claimed: &Value| {
        server.get(&format!("/v1/jobs/{}", claimed["job_id"].as_str().expect("an id"))).await.json()
    };
    assert_eq!(job(&done).await["result"], "first");
    for held in [&mine, &theirs, &current] {
        assert_eq!(job(held).await["status"], "RUNNING");
        assert_eq!(server.work("complete", &report(held, json!({}))).await.status, 200);
    }
    server.stop().await;
}

/// H51
async fn a_heartbeat_with_a_progress_that_makes_no_sense_is_refused(server: TestServer) {
    let held = server.leased("s").await;
    for (percent, pointer) in [
        (json!(256), "/progress/percent"),
        (json!(-1), "/progress/percent"),
        (json!(1.5), "/progress/percent"),
        (json!("50"), "/progress/percent"),
        (json!("NaN"), "/progress/percent"),
        (Value::Null, "/progress/percent"),
        (json!(101), "/progress/percent"),
    ] {
        let progress = json!({ "progress": { "percent": percent } });
        let answer = server.work("heartbeat", &report(&held, progress.clone())).await;
        assert_eq!((answer.status, answer.pointers()), (422, vec![pointer.to_string()]), "{progress}");
        let item = json!({ "job_id": held["job_id"], "lease_token": held["lease_token"],
            "progress": progress["progress"] });
        let answer = server.post("/v1/worker/heartbeat", &json!({ "worker_id": "w", "items": [item] })).await;
        assert_eq!(
            (answer.status, answer.pointers()),
            (422, vec![format!("/items/0{pointer}")]),
            "{progress}"
        );
    }
    for note in ["a\u{202e}b", "a\u{2028}b", "a\u{2066}b", "a\nb"] {
        let answer = server
            .work("heartbeat", &report(&held, json!({ "progress": { "percent": 1, "note": note } })))
            .await;
        assert_eq!((answer.status, answer.pointers()), (422, vec!["/progress/note".to_string()]), "{note:?}");
    }
    let answer = server.work("heartbeat", &report(&held, json!({ "progress": 7 }))).await;
    assert_eq!((answer.status, answer.pointers()), (422, vec!["/progress".to_string()]));
    assert!(answer.json().to_string().contains("an object with percent and note"), "{answer:?}");
    let nan =
        report(&held, json!({ "progress": { "percent": "NAN" } })).to_string().replace("\"NAN\"", "NaN");
    let answer = server.call(&server.worker, "POST", "/internal/worker/heartbeat", &nan).await;
    assert_eq!((answer.status, answer.code()), (400, "bad_json".into()));
    assert_eq!(server.work("heartbeat", &report(&held, json!({}))).await.status, 200);
    server.stop().await;
}

/// H51, backwards
async fn progress_is_shown_while_the_job_runs_and_never_goes_back(server: TestServer) {
    let held = server.leased("s").await;
    let at =
        |percent: u64, note: &str| report(&held, json!({ "progress": { "percent": percent, "note": note } }));
    assert_eq!(server.work("heartbeat", &at(40, "reading")).await.status, 200);
    let answer = server.work("heartbeat", &at(39, "again")).await;
    assert_eq!((answer.status, answer.pointers()), (422, vec!["/progress/percent".to_string()]));
    let item = json!({ "job_id": held["job_id"], "lease_token": held["lease_token"], "progress": { "percent": 10 } });
    let answer =
        server.post("/v1/worker/heartbeat", &json!({ "worker_id": "w", "items": [item] })).await.json();
    assert_eq!(answer["items"][0]["outcome"], "conflict");
    assert!(answer["items"][0]["lease_expires_at"].is_string(), "extended all the same: {answer}");
    let path = format!("/v1/jobs/{}", held["job_id"].as_str().expect("an id"));
    let job = server.get(&path).await.json();
    assert_eq!(job["attempts"][0]["progress"], json!({ "percent": 40, "note": "reading" }));
    server.stop().await;
}

//! The worker contract and the producer's calls over a real socket.

use crate::server::{PATIENCE, TestServer, read_to_end, request};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

crate::on_both_backends!(
    a_job_goes_from_enqueue_to_done_as_the_contract_says,
    fields_the_contract_does_not_know_are_ignored_there_and_refused_on_v1,
    a_repeated_report_gets_the_same_answer_and_the_first_result_stands,
    a_worker_that_lost_its_lease_changes_nothing,
    a_wrong_lease_token_is_answered_409_and_worker_id_guards_nothing,
    a_failure_says_whether_it_is_tried_again,
    a_waiting_claim_gets_the_job_that_comes_and_the_earlier_stream_wins,
    a_client_that_hangs_up_while_it_waits_costs_no_job,
    array_calls_answer_every_item_by_itself_in_order,
    an_enqueue_repeated_under_its_own_id_finds_the_same_job,
    payload_and_result_survive_to_the_byte,
    a_reader_may_wait_for_the_end_of_a_job,
    a_server_that_goes_down_lets_waiting_claims_go_empty,
);

fn report(claimed: &Value, extra: Value) -> Value {
    let mut body = json!({ "worker_id": "w" });
    for field in ["job_id", "attempt_id", "lease_token", "stream", "message_id"] {
        body[field] = claimed[field].clone();
    }
    for (name, value) in extra.as_object().expect("fields") {
        body[name] = value.clone();
    }
    body
}

/// Waits until exactly so many claims wait in the engine.
async fn waiting(server: &TestServer, claims: usize) {
    let look = async {
        while server.engine.waiting_claims() != claims || server.running.waiting_claims() != claims {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, look).await.expect("the claims wait");
}

async fn a_job_goes_from_enqueue_to_done_as_the_contract_says(server: TestServer) {
    let job_id = server.enqueue("build").await;
    let claimed = server.claim("build").await;
    assert_eq!(claimed["claimed"], true);
    assert_eq!(claimed["job_id"], job_id.as_str());
    assert_eq!(claimed["stream"], "build");
    assert_eq!(claimed["payload"], json!({ "n": 1 }));
    assert_eq!(
        (claimed["lease_ttl_seconds"].as_u64(), claimed["heartbeat_interval_seconds"].as_u64()),
        (Some(60), Some(20))
    );
    assert_eq!((claimed["attempt_no"].as_u64(), claimed["max_attempts"].as_u64()), (Some(1), Some(5)));
    let message = claimed["message_id"].as_str().expect("a message id");
    assert!(
        message.split_once('-').is_some_and(|(ms, n)| ms.parse::<u64>().is_ok() && n.parse::<u64>().is_ok())
    );

    let beat = json!({ "worker_id": "w", "job_id": job_id, "lease_token": claimed["lease_token"] });
    let beat = server.work("heartbeat", &beat).await;
    assert_eq!(
        (beat.status, &beat.json()["ok"], &beat.json()["cancel_requested"]),
        (200, &json!(true), &json!(false))
    );
    assert!(beat.json()["lease_expires_at"].is_string());

    let done = server.work("complete", &report(&claimed, json!({ "result": { "out": [1, 2] } }))).await;
    assert_eq!((done.status, done.json()), (200, json!({ "ok": true, "ack": true })));
    let job = server.get(&format!("/v1/jobs/{job_id}")).await.json();
    assert_eq!((&job["status"], &job["result"]), (&json!("SUCCEEDED"), &json!({ "out": [1, 2] })));
    assert_eq!(job["attempts"][0]["outcome"], "SUCCEEDED");
    assert_eq!(job["attempts"][0]["worker_id"], "w");
    server.stop().await;
}

async fn fields_the_contract_does_not_know_are_ignored_there_and_refused_on_v1(server: TestServer) {
    let body = json!({ "worker_id": "w", "streams": ["s"], "max_wait_ms": 0, "extra": { "a": 1 } });
    assert_eq!(server.work("claim", &body).await.status, 200);
    let body = json!({ "worker_id": "w", "streams": ["s"], "max": 1, "max_wait_ms": 0, "extra": 1 });
    let refused = server.post("/v1/worker/claim", &body).await;
    assert_eq!(
        (refused.status, refused.code(), refused.pointers()),
        (422, "unknown_field".into(), vec!["/extra".into()])
    );
    server.stop().await;
}

async fn a_repeated_report_gets_the_same_answer_and_the_first_result_stands(server: TestServer) {
    let job_id = server.enqueue("s").await;
    let claimed = server.claim("s").await;
    let first = server.work("complete", &report(&claimed, json!({ "result": 1 }))).await;
    let again = server.work("complete", &report(&claimed, json!({ "result": 2 }))).await;
    assert_eq!((first.status, first.json()), (again.status, again.json()));
    assert_eq!(server.get(&format!("/v1/jobs/{job_id}")).await.json()["result"], 1);
    let other =
        server.work("fail", &report(&claimed, json!({ "error": { "code": "E", "message": "m" } }))).await;
    assert_eq!((other.status, other.code()), (409, "attempt_closed".into()));
    assert_eq!((&other.json()["ok"], &other.json()["ack"]), (&json!(false), &json!(true)));
    let beat = json!({ "worker_id": "w", "job_id": job_id, "lease_token": claimed["lease_token"] });
    let beat = server.work("heartbeat", &beat).await;
    assert_eq!((beat.status, beat.code()), (409, "lease_lost".into()));
    server.stop().await;
}

async fn a_worker_that_lost_its_lease_changes_nothing(server: TestServer) {
    let job_id = server.enqueue("s").await;
    let stale = server.claim("s").await;
    server.advance(Duration::from_secs(61)).await;
    server.engine.store().reap(10).await.expect("a reap");
    let current = server.claim("s").await;
    assert_eq!(current["job_id"], stale["job_id"]);
    let refused = server.work("complete", &report(&stale, json!({ "result": "stale" }))).await;
    assert_eq!(
        (refused.status, refused.code(), &refused.json()["ack"]),
        (409, "lease_lost".into(), &json!(true))
    );
    // The right token under the wrong attempt, and the wrong token under the right one.
    for (field, ack) in [("attempt_id", true), ("lease_token", false)] {
        let mut mixed = report(&current, json!({ "result": "mixed" }));
        mixed[field] = stale[field].clone();
        let refused = server.work("complete", &mixed).await;
        assert_eq!((refused.status, &refused.json()["ack"]), (409, &json!(ack)), "{field}");
    }
    let done = server.work("complete", &report(&current, json!({ "result": "current" }))).await;
    assert_eq!(done.status, 200);
    assert_eq!(server.get(&format!("/v1/jobs/{job_id}")).await.json()["result"], "current");
    server.stop().await;
}

/// Whoever has the token is the holder, under whatever name; without it nobody is, under the right name neither.
async fn a_wrong_lease_token_is_answered_409_and_worker_id_guards_nothing(server: TestServer) {
    let job_id = server.enqueue("s").await;
    let claimed = server.claim("s").await;
    let wrong = json!({ "lease_token": "019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f", "result": {},
        "error": { "code": "E", "message": "m" } });
    for verb in ["heartbeat", "complete", "fail"] {
        let refused = server.work(verb, &report(&claimed, wrong.clone())).await;
        assert_eq!((refused.status, refused.code()), (409, "lease_lost".into()), "{verb}: {refused:?}");
        assert_eq!((&refused.json()["ok"], &refused.json()["ack"]), (&json!(false), &json!(false)), "{verb}");
    }
    let other = report(&claimed, json!({ "worker_id": "somebody else", "result": { "n": 1 } }));
    let done = server.work("complete", &other).await;
    assert_eq!((done.status, &done.json()["ok"]), (200, &json!(true)), "{done:?}");
    assert_eq!(server.get(&format!("/v1/jobs/{job_id}")).await.json()["status"], "SUCCEEDED");
    server.stop().await;
}

async fn a_failure_says_whether_it_is_tried_again(server: TestServer) {
    server.enqueue("s").await;
    let claimed = server.claim("s").await;
    let error = json!({ "error": { "code": "E", "message": "m", "stack": "at x", "more": 1 } });
    let failed = server.work("fail", &report(&claimed, error)).await;
    assert_eq!(failed.json(), json!({ "ok": true, "ack": true, "requeued": true, "dlq": false }));
    let job_id = server.enqueue("t").await;
    let claimed = server.claim("t").await;
    let error = json!({ "error": { "code": "E_BAD", "message": "m", "retryable": false } });
    let failed = server.work("fail", &report(&claimed, error)).await;
    assert_eq!(failed.json(), json!({ "ok": true, "ack": true, "requeued": false, "dlq": true }));
    let job = server.get(&format!("/v1/jobs/{job_id}")).await.json();
    assert_eq!((&job["status"], &job["error"]["code"]), (&json!("DEAD"), &json!("E_BAD")));

    let dead = server.get("/v1/dlq?code=E_BAD").await.json();
    assert_eq!(
        (dead["dead_letters"].as_array().map(Vec::len), &dead["dead_letters"][0]["reason"]),
        (Some(1), &json!("not_retryable"))
    );
    let refused = server.post("/v1/dlq/redrive", &json!({})).await;
    assert_eq!((refused.status, refused.pointers()), (422, vec!["/filter".into()]));
    let counted = server.post("/v1/dlq/redrive", &json!({ "all": true, "dry_run": true })).await.json();
    assert_eq!(counted, json!({ "matched": 1, "more": false }));
    let moved = server.post("/v1/dlq/redrive", &json!({ "filter": { "code": "E_BAD" } })).await.json();
    assert_eq!(moved, json!({ "moved": 1, "more": false }));
    assert_eq!(server.claim("t").await["job_id"], job_id.as_str());
    server.stop().await;
}

async fn a_waiting_claim_gets_the_job_that_comes_and_the_earlier_stream_wins(server: TestServer) {
    let mut stream = server.connect().await;
    let body = json!({ "worker_id": "w", "streams": ["high", "low"], "max_wait_ms": 30000 }).to_string();
    let bearer = format!("Bearer {}", server.worker);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let sent = request("POST", "/internal/worker/claim", &headers, &body);
    stream.write_all(sent.as_bytes()).await.expect("sent");
    // One claim, though it asks for two streams.
    waiting(&server, 1).await;
    let jobs = json!([
        { "stream": "low", "payload": { "is": "low" } },
        { "stream": "high", "payload": { "is": "high" } }
    ]);
    assert_eq!(server.post("/v1/jobs", &jobs).await.status, 201);
    let claimed = read_to_end(&mut stream).await.json();
    assert_eq!(claimed["payload"], json!({ "is": "high" }));
    server.stop().await;
}

/// H43
async fn a_client_that_hangs_up_while_it_waits_costs_no_job(server: TestServer) {
    let bearer = format!("Bearer {}", server.worker);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let body = json!({ "worker_id": "gone", "streams": ["s"], "max_wait_ms": 30000 }).to_string();
    let mut stream = server.connect().await;
    let sent = request("POST", "/internal/worker/claim", &headers, &body);
    stream.write_all(sent.as_bytes()).await.expect("sent");
    waiting(&server, 1).await;
    drop(stream);
    waiting(&server, 0).await;
    let job_id = server.enqueue("s").await;
    let claimed = server.claim("s").await;
    assert_eq!(
        (claimed["job_id"].as_str(), claimed["attempt_no"].as_u64()),
        (Some(job_id.as_str()), Some(1))
    );
    server.stop().await;
}

async fn array_calls_answer_every_item_by_itself_in_order(server: TestServer) {
    let jobs: Vec<Value> = (0..3).map(|n| json!({ "stream": "s", "payload": { "n": n } })).collect();
    assert_eq!(server.post("/v1/jobs", &json!(jobs)).await.status, 201);
    let asked = json!({ "worker_id": "w", "streams": ["s"], "max": 10, "max_wait_ms": 0 });
    let claimed = server.post("/v1/worker/claim", &asked).await.json();
    let claimed = claimed["jobs"].as_array().expect("jobs").clone();
    assert_eq!(claimed.len(), 3);
    let item = |n: usize, extra: Value| {
        let mut item = report(&claimed[n], extra);
        item.as_object_mut().expect("fields").remove("worker_id");
        item
    };
    let beats = json!({ "worker_id": "w", "items": [
        { "job_id": claimed[0]["job_id"], "lease_token": claimed[0]["lease_token"] },
        { "job_id": claimed[0]["job_id"], "lease_token": claimed[1]["lease_token"] },
        { "job_id": "019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f", "lease_token": claimed[1]["lease_token"] }
    ] });
    let beats = server.post("/v1/worker/heartbeat", &beats).await.json();
    let outcomes = |answer: &Value| -> Vec<String> {
        let items = answer["items"].as_array().expect("items");
        items.iter().map(|item| item["outcome"].as_str().unwrap_or_default().to_string()).collect()
    };
    assert_eq!(outcomes(&beats), ["accepted", "stale", "unknown"]);
    let one = item(0, json!({ "result": 0 }));
    let mut foreign = item(1, json!({ "result": 0 }));
    foreign["lease_token"] = claimed[2]["lease_token"].clone();
    let mut nobody = item(1, json!({ "result": 0 }));
    nobody["attempt_id"] = json!("019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f");
    let done = json!({ "worker_id": "w", "items": [one, foreign, nobody] });
    let done = server.post("/v1/worker/complete", &done).await.json();
    assert_eq!(outcomes(&done), ["accepted", "stale", "unknown"]);
    let again = json!({ "worker_id": "w", "items": [item(0, json!({ "result": 9 }))] });
    assert_eq!(outcomes(&server.post("/v1/worker/complete", &again).await.json()), ["duplicate"]);
    let error = json!({ "error": { "code": "E", "message": "m" } });
    let failed = json!({ "worker_id": "w", "items": [item(0, error.clone()), item(1, error)] });
    let failed = server.post("/v1/worker/fail", &failed).await.json();
    assert_eq!(outcomes(&failed), ["conflict", "accepted"]);
    assert_eq!((&failed["items"][1]["requeued"], &failed["items"][1]["dlq"]), (&json!(true), &json!(false)));
    let mut back = item(2, json!({}));
    for field in ["stream", "message_id"] {
        back.as_object_mut().expect("fields").remove(field);
    }
    let back = server.post("/v1/worker/release", &json!({ "worker_id": "w", "items": [back] })).await.json();
    assert_eq!(
        (outcomes(&back), &back["items"][0]["requeued"]),
        (vec!["accepted".to_string()], &json!(true))
    );
    server.stop().await;
}

async fn an_enqueue_repeated_under_its_own_id_finds_the_same_job(server: TestServer) {
    let id = "019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f";
    let job = json!({ "job_id": id, "priority": "high", "payload": { "a": 1 } });
    let first = server.post("/v1/jobs", &job).await;
    assert_eq!(
        (first.status, &first.json()["duplicate"], &first.json()["stream"]),
        (201, &json!(false), &json!("jobs:stream:high"))
    );
    let again = server.post("/v1/jobs", &job).await;
    assert_eq!(
        (again.status, &again.json()["duplicate"], &again.json()["job_id"]),
        (200, &json!(true), &json!(id))
    );
    let other =
        server.post("/v1/jobs", &json!({ "job_id": id, "priority": "low", "payload": { "a": 1 } })).await;
    assert_eq!((other.status, other.code()), (409, "conflict".into()));

    let keyed = json!({ "stream": "s", "payload": {}, "unique_key": "k" });
    let first = server.post("/v1/jobs", &keyed).await.json();
    let second = server.post("/v1/jobs", &keyed).await;
    assert_eq!(
        (second.status, &second.json()["job_id"], &second.json()["duplicate"]),
        (200, &first["job_id"], &json!(true))
    );

    let mixed =
        json!([keyed, job, { "job_id": id, "stream": "x", "payload": {} }, { "stream": "s", "payload": {} }]);
    let mixed = server.post("/v1/jobs", &mixed).await;
    let items = mixed.json();
    let outcomes: Vec<_> = (0..4).map(|n| items["jobs"][n]["outcome"].as_str().unwrap_or_default()).collect();
    assert_eq!((mixed.status, outcomes), (207, vec!["duplicate", "exists", "conflict", "created"]));
    server.stop().await;
}

async fn payload_and_result_survive_to_the_byte(server: TestServer) {
    let payload =
        r#"{"big": 12345678901234567890.000, "e": 1e400, "zero": -0, "nul": "\u0000", "s" :"\u00e9é"}"#;
    let body = format!(r#"{{"stream":"s","payload":{payload}}}"#);
    let made = server.call(&server.operator, "POST", "/v1/jobs", &body).await;
    assert_eq!(made.status, 201, "{made:?}");
    let claim = json!({ "worker_id": "w", "streams": ["s"], "max_wait_ms": 0 });
    let claimed = server.work("claim", &claim).await;
    assert!(claimed.body.contains(&format!("\"payload\":{payload}")), "{}", claimed.body);
    // No number type of this test holds 1e400.
    let claimed: Value = serde_json::from_str(&claimed.body.replace("1e400", "1")).expect("JSON");
    let result = report(&claimed, json!({ "result": "RESULT" })).to_string().replace("\"RESULT\"", payload);
    let done = server.call(&server.worker, "POST", "/internal/worker/complete", &result).await;
    assert_eq!(done.status, 200, "{done:?}");
    let job = server.get(&format!("/v1/jobs/{}", claimed["job_id"].as_str().expect("an id"))).await;
    assert!(
        job.body.contains(&format!("\"payload\":{payload}"))
            && job.body.contains(&format!("\"result\":{payload}"))
    );
    server.stop().await;
}

async fn a_reader_may_wait_for_the_end_of_a_job(server: TestServer) {
    let job_id = server.enqueue("s").await;
    let claimed = server.claim("s").await;
    let waited = server.get(&format!("/v1/jobs/{job_id}?wait_ms=1")).await;
    assert_eq!(waited.json()["status"], "RUNNING");
    let path = format!("/v1/jobs/{job_id}?wait_ms=60000");
    let (waited, done) = tokio::join!(server.get(&path), async {
        waiting_readers(&server).await;
        server.work("complete", &report(&claimed, json!({ "result": null }))).await
    });
    assert_eq!((done.status, &waited.json()["status"]), (200, &json!("SUCCEEDED")));
    server.stop().await;
}

async fn waiting_readers(server: &TestServer) {
    timeout(PATIENCE, async {
        while server.running.waiting_calls() == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("the reader waits");
}

async fn a_server_that_goes_down_lets_waiting_claims_go_empty(server: TestServer) {
    let bearer = format!("Bearer {}", server.worker);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let body = json!({ "worker_id": "w", "streams": ["s"], "max_wait_ms": 30000 }).to_string();
    let mut stream = server.connect().await;
    let sent = request("POST", "/internal/worker/claim", &headers, &body);
    stream.write_all(sent.as_bytes()).await.expect("sent");
    waiting(&server, 1).await;
    let (_, answer) = tokio::join!(server.stop(), read_to_end(&mut stream));
    assert_eq!((answer.status, answer.json()), (200, json!({ "claimed": false })));
}

//! What operators and readers see and do over a real socket.

use crate::server::TestServer;
use serde_json::{Value, json};

crate::on_both_backends!(
    lists_go_on_where_the_page_before_ended,
    operators_cancel_retry_pause_and_ask_why,
    metrics_name_routes_streams_and_connections,
);

async fn lists_go_on_where_the_page_before_ended(server: TestServer) {
    let jobs: Vec<Value> = (0..7).map(|n| json!({ "stream": "s", "payload": { "n": n } })).collect();
    server.post("/v1/jobs", &json!(jobs)).await;
    let mut seen = std::collections::BTreeSet::new();
    let mut path = "/v1/jobs?status=QUEUED&stream=s&limit=3".to_string();
    loop {
        let page = server.get(&path).await.json();
        for job in page["jobs"].as_array().expect("jobs") {
            assert!(seen.insert(job["job_id"].as_str().expect("an id").to_string()));
        }
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        let foreign = server.get(&format!("/v1/jobs?status=DEAD&cursor={cursor}")).await;
        assert_eq!((foreign.status, foreign.code()), (400, "bad_cursor".into()));
        path = format!("/v1/jobs?status=QUEUED&stream=s&limit=3&cursor={cursor}");
    }
    assert_eq!(seen.len(), 7);
    server.stop().await;
}

async fn operators_cancel_retry_pause_and_ask_why(server: TestServer) {
    let job_id = server.enqueue("a/b:c").await;
    let at = |verb: &str| format!("/v1/jobs/{job_id}/{verb}");
    assert_eq!(server.get(&at("explain")).await.json()["code"], "no_worker");
    let paused = server.call(&server.operator, "POST", "/v1/streams/a%2Fb%3Ac/pause", "").await;
    assert_eq!((paused.status, &paused.json()["paused"]), (200, &json!(true)));
    assert_eq!(server.claim("a/b:c").await["claimed"], false);
    assert_eq!(server.get(&at("explain")).await.json()["code"], "stream_paused");
    let resumed = server.call(&server.operator, "POST", "/v1/streams/a%2Fb:c/resume", "").await.json();
    assert_eq!(
        (&resumed["paused"], &resumed["ready"], &resumed["depth"]),
        (&json!(false), &json!(1), &json!(1))
    );

    let claimed = server.claim("a/b:c").await;
    let asked = server.call(&server.operator, "POST", &at("cancel"), "").await;
    assert_eq!((asked.status, &asked.json()["outcome"]), (200, &json!("requested")));
    let beat = json!({ "worker_id": "w", "job_id": job_id, "lease_token": claimed["lease_token"] });
    assert_eq!(server.work("heartbeat", &beat).await.json()["cancel_requested"], true);
    let forced = server.post(&at("cancel"), &json!({ "force": true })).await;
    assert_eq!(forced.json()["outcome"], "cancelled");
    let done = json!({ "worker_id": "w", "job_id": job_id, "attempt_id": claimed["attempt_id"],
        "lease_token": claimed["lease_token"], "result": 1 });
    let refused = server.work("complete", &done).await;
    assert_eq!((refused.status, refused.code()), (409, "lease_lost".into()));
    assert_eq!(server.call(&server.operator, "POST", &at("retry"), "").await.json()["status"], "QUEUED");
    let again = server.call(&server.operator, "POST", &at("retry"), "").await;
    assert_eq!((again.status, again.code()), (409, "conflict".into()));
    server.stop().await;
}

async fn metrics_name_routes_streams_and_connections(server: TestServer) {
    server.enqueue("s").await;
    let metrics = server.send("GET", "/metrics", &[], "").await;
    for line in [
        "fernery_http_requests_total{method=\"POST\",route=\"/v1/jobs\",status=\"201\"} 1",
        "fernery_jobs{stream=\"s\",state=\"ready\"} 1",
        "fernery_claims_waiting 0",
        "fernery_store_up 1",
    ] {
        assert!(metrics.body.contains(line), "{line} in {}", metrics.body);
    }
    server.stop().await;
}

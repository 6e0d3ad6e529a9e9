//! The catalogue of bad input: too slow, too much, and a store that does not answer.

mod server;

use fernery::http::Pace;
use serde_json::json;
use server::{PATIENCE, TestServer, read_to_end, request};
use std::num::NonZeroU32;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

on_both_backends!(a_store_that_is_away_is_never_a_success);

#[tokio::test]
async fn slow_clients_are_let_go() {
    let quick = Duration::from_millis(200);
    let pace = Pace { head: quick, body: quick, idle: quick, write: quick };
    let server = TestServer::start_with(|settings| settings.pace = pace).await;
    // H28: a head that never ends; and a connection that sends nothing at all.
    for start in ["GET /healthz HTTP/1.1\r\nhost: loc", ""] {
        let mut stream = server.connect().await;
        stream.write_all(start.as_bytes()).await.expect("sent");
        let mut rest = Vec::new();
        let _ = timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("closed");
        assert!(rest.is_empty(), "{rest:?}");
    }
    // H29: a body that never ends.
    let mut stream = server.connect().await;
    let head = format!(
        "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         content-length: 100\r\n\r\n{{",
        server.operator
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    let answer = read_to_end(&mut stream).await;
    assert_eq!((answer.status, answer.code()), (408, "body_timeout".into()));
    // An idle connection after an answer.
    let mut stream = server.connect().await;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.expect("sent");
    assert_eq!(read_to_end(&mut stream).await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn a_long_poll_outlives_every_time_out_of_the_connection() {
    let quick = Duration::from_millis(100);
    let pace = Pace { head: quick, body: quick, idle: quick, write: quick };
    let server = TestServer::start_with(|settings| settings.pace = pace).await;
    let body = json!({ "worker_id": "w", "streams": ["s"], "max_wait_ms": 400 });
    let answer = server.work("claim", &body).await;
    assert_eq!((answer.status, answer.json()), (200, json!({ "claimed": false })));
    server.stop().await;
}

#[tokio::test]
async fn big_bodies_count_against_one_budget_and_only_while_they_are_used() {
    let server = TestServer::start_with(|settings| settings.body_bytes_max = 300_000).await;
    let job = |bytes: usize| json!({ "stream": "s", "payload": { "x": "a".repeat(bytes) } });
    for _ in 0..5 {
        assert_eq!(server.post("/v1/jobs", &job(200_000)).await.status, 201);
    }
    let refused = server.post("/v1/jobs", &job(400_000)).await;
    assert_eq!((refused.status, refused.code()), (503, "busy".into()));
    assert!(refused.headers.contains_key("retry-after"));
    server.stop().await;
}

#[tokio::test]
async fn connections_and_waiting_claims_beyond_the_cap_are_told_to_come_again() {
    let server = TestServer::start_with(|settings| {
        settings.connections_max = 2;
        settings.waiting_max = 1;
    })
    .await;
    // H39
    let bearer = format!("Bearer {}", server.worker);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let body = json!({ "worker_id": "w", "streams": ["s"], "max_wait_ms": 30000 }).to_string();
    let mut first = server.connect().await;
    first
        .write_all(request("POST", "/internal/worker/claim", &headers, &body).as_bytes())
        .await
        .expect("sent");
    timeout(PATIENCE, async {
        while server.running.waiting_claims() != 1 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("it waits");
    let answer = server.call(&server.worker, "POST", "/internal/worker/claim", &body).await;
    assert_eq!(
        (answer.status, answer.code(), answer.headers["retry-after"].as_str()),
        (429, "too_many_waiting".into(), "1")
    );
    timeout(PATIENCE, async {
        while server.running.connections() != 1 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("the second connection is gone");
    let _second = server.connect().await;
    timeout(PATIENCE, async {
        while server.running.connections() != 2 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("the second connection is in");
    let answer = server.send("GET", "/healthz", &[], "").await;
    assert_eq!((answer.status, answer.headers["retry-after"].as_str()), (503, "1"));
    drop(first);
    server.stop().await;
}

/// H39: a token that asks too often is told when to come again, and never kept from reporting what it holds.
#[tokio::test]
async fn a_token_beyond_its_rate_is_refused_and_its_reports_never_are() {
    let server = TestServer::start_with(|settings| settings.requests_per_second = NonZeroU32::new(1)).await;
    assert_eq!(
        server.post("/v1/jobs", &json!(vec![json!({ "stream": "s", "payload": {} }); 4])).await.status,
        201
    );
    let asked = json!({ "worker_id": "w", "streams": ["s"], "max": 4, "max_wait_ms": 0 }).to_string();
    let claim = || server.call(&server.worker, "POST", "/v1/worker/claim", &asked);
    // The operator's call just before counts for the operator alone.
    let claimed = claim().await.json()["jobs"].clone();
    let refused = timeout(PATIENCE, async {
        loop {
            let answer = claim().await;
            if answer.status != 200 {
                return answer;
            }
        }
    });
    let refused = refused.await.expect("the second within a second is refused");
    assert_eq!(
        (refused.status, refused.code(), refused.headers["retry-after"].as_str()),
        (429, "rate_limited".into(), "1")
    );
    assert_eq!((&refused.json()["ok"], &refused.json()["ack"]), (&json!(false), &json!(false)));

    let report = |n: usize| {
        json!({ "worker_id": "w", "job_id": claimed[n]["job_id"], "attempt_id": claimed[n]["attempt_id"],
            "lease_token": claimed[n]["lease_token"], "result": 1, "error": { "code": "E", "message": "m" } })
    };
    for _ in 0..20 {
        assert_eq!(server.work("heartbeat", &report(0)).await.status, 200);
    }
    assert_eq!(server.work("complete", &report(0)).await.status, 200);
    assert_eq!(server.work("fail", &report(1)).await.status, 200);
    for (n, verb) in [(2, "heartbeat"), (2, "complete"), (3, "release"), (3, "fail")] {
        let mut item = report(n);
        let fields = item.as_object_mut().expect("fields");
        fields.retain(|name, _| match name.as_str() {
            "job_id" | "lease_token" => true,
            "attempt_id" => verb != "heartbeat",
            "result" => verb == "complete",
            "error" => verb == "fail",
            _ => false,
        });
        let body = json!({ "worker_id": "w", "items": [item] }).to_string();
        let answer = server.call(&server.worker, "POST", &format!("/v1/worker/{verb}"), &body).await;
        assert_eq!(answer.status, 200, "{verb}: {answer:?}");
    }
    // What needs no token has no rate.
    for _ in 0..5 {
        assert_eq!(server.send("GET", "/readyz", &[], "").await.status, 200);
    }
    server.stop().await;
}

/// H64
async fn a_store_that_is_away_is_never_a_success(server: TestServer) {
    assert_eq!(server.get("/readyz").await.status, 200);
    server.engine.store().close().await;
    for (method, path) in [("POST", "/v1/jobs"), ("GET", "/v1/streams"), ("GET", "/readyz")] {
        let answer = server.call(&server.operator, method, path, r#"{"stream":"s","payload":{}}"#).await;
        assert_eq!(answer.status, 503, "{path}: {answer:?}");
        assert!(answer.headers.contains_key("retry-after"), "{answer:?}");
    }
    assert_eq!(server.get("/healthz").await.status, 200);
    server.stop().await;
}

/// Readiness is a real read of the database, not the memory of one.
#[tokio::test]
async fn a_server_whose_database_is_nonsense_is_alive_and_not_ready() {
    let server = TestServer::start().await;
    assert_eq!(server.get("/readyz").await.status, 200);
    let database = server.folder.path().join("fernery.db");
    for suffix in ["", "-wal", "-shm"] {
        let path = format!("{}{suffix}", database.display());
        let length = std::fs::metadata(&path).expect("a file").len();
        let mut file = std::fs::OpenOptions::new().write(true).open(&path).expect("a file");
        let nonsense = vec![0xa5; usize::try_from(length).expect("a small file")];
        std::io::Write::write_all(&mut file, &nonsense).expect("written");
    }
    let answer = server.send("GET", "/readyz", &[], "").await;
    assert_eq!((answer.status, answer.code()), (503, "store_broken".into()));
    assert_eq!(server.send("GET", "/healthz", &[], "").await.status, 200);
    server.stop().await;
}

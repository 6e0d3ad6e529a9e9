//! The catalogue of bad input: too slow, too much, and a store that does not answer.

use crate::server::{Backend, PATIENCE, TestServer, read_to_end, request};
use fernery::http::Pace;
use fernery_core::limits;
use fernery_engine::store::StreamLimits;
use serde_json::{Value, json};
use std::num::NonZeroU32;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

crate::on_both_backends!(a_store_that_is_away_is_never_a_success, many_streams_come_in_pages_and_as_one_sum,);

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
async fn a_read_that_waits_is_counted_as_a_call_and_not_as_a_claim() {
    let server = TestServer::start().await;
    let path = format!("/v1/jobs/{}?wait_ms=20000", server.enqueue("s").await);
    let bearer = format!("Bearer {}", server.operator);
    let mut stream = server.connect().await;
    let sent = request("GET", &path, &[("authorization", &bearer)], "");
    stream.write_all(sent.as_bytes()).await.expect("sent");
    timeout(PATIENCE, async {
        while server.running.waiting_calls() != 1 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("it waits");
    assert_eq!(server.running.waiting_claims(), 0);
    let text = server.get("/metrics").await.body;
    assert!(text.contains("\nfernery_claims_waiting 0\n"), "{text}");
    drop(stream);
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

/// New streams are refused with what to do; what is there goes on, and another token has its own.
async fn a_token_opens_no_more_streams_than_it_may(backend: Backend) {
    let server = TestServer::build(backend, |settings| {
        settings.streams_max = StreamLimits { in_all: 5, of_token: 3 };
    })
    .await;
    let job = |stream: &str| json!({ "stream": stream, "payload": {} });
    let (one, two) = (server.token("producer").await, server.token("producer").await);
    let post =
        async |token: &str, body: Value| server.call(token, "POST", "/v1/jobs", &body.to_string()).await;
    assert_eq!(post(&one, json!([job("a"), job("b"), job("a")])).await.status, 201);
    let refused = post(&one, json!([job("a"), job("c"), job("a"), job("d"), job("c")])).await;
    assert_eq!((refused.status, refused.code()), (422, "too_many_streams".into()), "{refused:?}");
    assert_eq!(refused.pointers(), ["/1/stream"]);
    let detail = refused.json()["detail"].as_str().unwrap_or_default().to_string();
    assert!(detail.contains("3 streams") && detail.contains("payload"), "{detail}");
    assert!(detail.contains("removed 7d 1h after") && detail.contains("fernery dlq purge"), "{detail}");
    assert_eq!(server.get("/v1/streams/a").await.json()["ready"], 2, "nothing of it was stored");
    assert_eq!(post(&one, job("c")).await.status, 201);
    assert_eq!(post(&one, json!([job("a"), job("b"), job("c")])).await.status, 201);
    let refused = post(&one, job("d")).await;
    assert_eq!((refused.code(), refused.pointers()), ("too_many_streams".into(), vec!["/stream".into()]));
    assert_eq!(post(&two, json!([job("d"), job("e")])).await.status, 201);
    let refused = post(&server.operator, job("f")).await;
    assert_eq!(refused.code(), "too_many_streams");
    assert!(refused.json()["detail"].as_str().is_some_and(|said| said.contains("5 streams")), "{refused:?}");
    assert_eq!(post(&server.operator, job("e")).await.status, 201, "what is there goes on");
    server.stop().await;
}

#[tokio::test]
async fn a_token_opens_no_more_streams_than_it_may_on_sqlite() {
    a_token_opens_no_more_streams_than_it_may(Backend::Sqlite).await;
}

#[tokio::test]
async fn a_token_opens_no_more_streams_than_it_may_on_postgres() {
    a_token_opens_no_more_streams_than_it_may(Backend::Postgres).await;
}

/// However many streams there are, a page has as many as were asked for, and the metrics have a bound.
async fn many_streams_come_in_pages_and_as_one_sum(server: TestServer) {
    const MANY: usize = limits::METRICS_STREAMS_MAX + 100;
    let mut jobs: Vec<Value> =
        (0..MANY).map(|n| json!({ "stream": format!("s{n:04}"), "payload": {} })).collect();
    // In the order of names it is one of the first.
    jobs.push(json!({ "stream": "other", "payload": {} }));
    assert_eq!(server.post("/v1/jobs", &json!(jobs)).await.status, 201);
    let metrics = server.get("/metrics").await.body;
    let lines = |start: &str| metrics.lines().filter(|line| line.starts_with(start)).count();
    assert_eq!(lines("fernery_jobs{stream="), 6 * limits::METRICS_STREAMS_MAX, "499 streams and the others");
    assert_eq!(lines("fernery_jobs{stream=\"other\",state=\"ready\"}"), 1, "no series is there twice");
    assert!(metrics.contains("fernery_jobs{stream=\"other\",state=\"ready\"} 102\n"), "{metrics}");
    assert!(metrics.contains(&format!("\nfernery_streams {}\n", MANY + 1)));

    let whole = server.get("/v1/streams").await.json();
    assert_eq!(
        (whole["streams"].as_array().map(Vec::len), &whole["next_cursor"]),
        (Some(MANY + 1), &Value::Null)
    );
    let (mut cursor, mut seen, mut pages) = (String::new(), Vec::new(), 0);
    loop {
        let page = server.get(&format!("/v1/streams?limit=500{cursor}")).await.json();
        seen.extend(page["streams"].as_array().expect("rows").clone());
        pages += 1;
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    let name = |row: &Value| row["stream"].as_str().unwrap_or_default().to_string();
    let expected: Vec<String> = whole["streams"].as_array().expect("rows").iter().map(name).collect();
    assert_eq!((pages, seen.iter().map(name).collect::<Vec<_>>()), (2, expected));
    for (bad, code) in [("limit=0", "invalid"), ("limit=501", "invalid"), ("cursor=x", "bad_cursor")] {
        assert_eq!(server.get(&format!("/v1/streams?{bad}")).await.code(), code, "{bad}");
    }
    server.stop().await;
}

//! The catalogue of bad input: what a hostile or careless client may send, and the one answer it gets. Numbers in comments
//! are those of the catalogue.

mod server;

use fernery::http::Pace;
use serde_json::{Value, json};
use server::{PATIENCE, TestServer, read_to_end, request};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

on_both_backends!(
    bad_bodies_are_named,
    typed_numbers_are_strict_and_payload_numbers_are_not_touched,
    sizes_are_refused_by_the_limit_that_they_pass,
    ids_paths_and_queries_that_make_no_sense_are_refused,
    a_store_that_is_away_is_never_a_success,
);

type Headers<'a> = &'a [(&'a str, &'a str)];

const ID: &str = "019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f";

async fn bad_bodies_are_named(server: TestServer) {
    let deep = |depth: usize| {
        let (open, close) = ("[".repeat(depth - 2), "]".repeat(depth - 2));
        format!(r#"{{"stream":"s","payload":{{"a":{open}{close}}}}}"#)
    };
    let good = r#"{"stream":"s","payload":{}}"#;
    let cases: Vec<(String, u16, &str, &str)> = vec![
        (String::new(), 400, "empty_body", ""),            // H1
        ("  \n".into(), 400, "empty_body", ""),            // H1
        (r#"{"stream":"s","#.into(), 400, "bad_json", ""), // H2
        (format!("{good} x"), 400, "bad_json", ""),        // H3
        (format!("{good}{good}"), 400, "bad_json", ""),    // H3
        (r#"{"priority":"x","payload":{}}"#.into(), 422, "invalid", "/priority"), // H4
        (r#"{"stream":1,"payload":{}}"#.into(), 422, "invalid", "/stream"), // H4
        (r#"{"stream":"s","payload":{},"colour":1}"#.into(), 422, "unknown_field", "/colour"), // H5
        (r#"{"stream":"s","stream":"t","payload":{}}"#.into(), 400, "duplicate_key", ""), // H6
        (r#"{"stream":"s","payload":{"a":1,"\u0061":2}}"#.into(), 400, "duplicate_key", ""), // H6
        (deep(33), 400, "too_deep", ""),                   // H7
        (format!("[{}]", vec![good; 10_001].join(",")), 422, "invalid", ""), // H8
        ("[]".into(), 422, "invalid", ""),                 // H8
        ("\u{feff}{}".into(), 400, "bad_json", ""),        // H16
        (r#"{"stream":"a\u0000b","payload":{}}"#.into(), 422, "invalid", "/stream"), // H17
        (r#"{"stream":"s","payload":{},"unique_key":"\u0000"}"#.into(), 422, "invalid", "/unique_key"), // H17
        (r#"{"stream":"s","payload":{"x":"\ud800"}}"#.into(), 400, "bad_json", ""), // H18
        (r#"{"stream":"s","payload":{},"run_at":"9999-12-31T00:00:00Z"}"#.into(), 422, "invalid", "/run_at"), // H52
        (
            r#"{"stream":"s","payload":{},"run_at":"-000001-01-01T00:00:00Z"}"#.into(),
            422,
            "invalid",
            "/run_at",
        ), // H52
        (r#"{"stream":"s","payload":{},"run_at":"2030-01-01T00:00:00"}"#.into(), 422, "invalid", "/run_at"), // H52
        (r#"{"stream":"s","payload":{},"run_at":"9000-01-01T00:00:00Z"}"#.into(), 422, "invalid", "/run_at"),
        (r#"{"stream":"s","payload":[]}"#.into(), 422, "invalid", "/payload"),
        (r#"{"stream":"s"}"#.into(), 422, "invalid", "/payload"),
        (r#"{"payload":{}}"#.into(), 422, "invalid", "/stream"),
        (r#"{"stream":"s","priority":"low","payload":{}}"#.into(), 422, "invalid", "/stream"),
        (
            r#"{"stream":"s","payload":{},"delay_ms":1,"run_at":"2030-01-01T00:00:00Z"}"#.into(),
            422,
            "invalid",
            "/delay_ms",
        ),
        (r#"{"stream":"s","payload":{},"timeout_seconds":0}"#.into(), 422, "invalid", "/timeout_seconds"),
        (r#"{"stream":"diazotroph:x","payload":{}}"#.into(), 422, "reserved_stream", "/stream"),
        (r#"{"stream":"s","payload":{},"job_id":"../x"}"#.into(), 422, "invalid", "/job_id"),
        (r#"[{"stream":"s","payload":{}},{"stream":"s","payload":1}]"#.into(), 422, "invalid", "/1/payload"),
        ("null".into(), 422, "invalid", ""),
        ("\"text\"".into(), 422, "invalid", ""),
    ];
    for (body, status, code, pointer) in cases {
        let answer = server.call(&server.operator, "POST", "/v1/jobs", &body).await;
        let shown: String = body.chars().take(80).collect();
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{shown}: {answer:?}");
        assert_eq!(answer.pointers().first().map_or("", |p| p), pointer, "{shown}: {answer:?}");
        assert_eq!(answer.headers["content-type"], "application/problem+json");
        if code == "bad_json" {
            assert!(
                answer.json()["detail"].as_str().is_some_and(|d| d.contains("line") && d.contains("column"))
            );
        }
    }
    assert_eq!(server.call(&server.operator, "POST", "/v1/jobs", &deep(32)).await.status, 201);
    server.stop().await;
}

async fn typed_numbers_are_strict_and_payload_numbers_are_not_touched(server: TestServer) {
    // H19, H55
    for number in
        ["1e400", "-0", "9223372036854775808", "18446744073709551616", "1.5", "0", "1001", "1000000000", "-1"]
    {
        let body = format!(r#"{{"stream":"s","payload":{{}},"max_attempts":{number}}}"#);
        let answer = server.call(&server.operator, "POST", "/v1/jobs", &body).await;
        assert_eq!((answer.status, answer.pointers()), (422, vec!["/max_attempts".to_string()]), "{number}");
        let body = format!(r#"{{"stream":"s","payload":{{"n":{number}}}}}"#);
        assert_eq!(server.call(&server.operator, "POST", "/v1/jobs", &body).await.status, 201, "{number}");
    }
    server.stop().await;
}

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

async fn sizes_are_refused_by_the_limit_that_they_pass(server: TestServer) {
    let big = "x".repeat((1 << 20) + 1);
    let answer = server.post("/v1/jobs", &json!({ "stream": "s", "payload": { "x": big } })).await;
    assert_eq!(
        (answer.status, answer.code(), answer.pointers()),
        (413, "too_large".into(), vec!["/payload".into()])
    );
    assert!(answer.json()["detail"].as_str().is_some_and(|detail| detail.contains("1048576")));

    // H50: the lease is kept.
    server.enqueue("s").await;
    let claimed = server.claim("s").await;
    let report = |result: Value| {
        json!({ "worker_id": "w", "job_id": claimed["job_id"], "attempt_id": claimed["attempt_id"],
            "lease_token": claimed["lease_token"], "result": result })
    };
    let refused = server.work("complete", &report(json!(big))).await;
    assert_eq!((refused.status, &refused.json()["ack"]), (413, &json!(false)));
    assert_eq!(server.work("complete", &report(json!(1))).await.status, 200);

    // H9: refused by its announcement, before a byte of it is read.
    let head = format!(
        "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n",
        server.operator
    );
    let answer = server.raw(format!("{head}content-length: 99999999\r\n\r\n{{").as_bytes()).await;
    assert_eq!((answer.status, answer.code()), (413, "too_large".into()));

    // H10: chunked, so that only counting tells.
    let mut stream = server.connect().await;
    let head = format!("{head}transfer-encoding: chunked\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("sent");
    let chunk = format!("{:x}\r\n{}\r\n", 1 << 20, " ".repeat(1 << 20));
    for _ in 0..20 {
        if stream.write_all(chunk.as_bytes()).await.is_err() {
            break;
        }
    }
    let answer = read_to_end(&mut stream).await;
    assert_eq!((answer.status, answer.code()), (413, "too_large".into()));
    server.stop().await;
}

async fn ids_paths_and_queries_that_make_no_sense_are_refused(server: TestServer) {
    let long = "a".repeat(5_000);
    let cases: &[(&str, u16, &str)] = &[
        ("/v1/jobs/x", 400, "bad_id"),                                        // H20
        ("/v1/jobs/", 400, "bad_id"),                                         // H20
        ("/v1/jobs/%2e%2e", 400, "bad_id"),                                   // H20
        ("/v1/jobs/..%2Fx", 400, "bad_id"),                                   // H20
        (&format!("/v1/jobs/{long}"), 400, "bad_id"),                         // H20
        ("/v1/jobs/%D0%B019a8c5e-7b1a-7cc3-98c4-dc0c0c07398", 400, "bad_id"), // H20
        ("/v1/jobs/019a8c5e7b1a7cc398c4dc0c0c07398f", 400, "bad_id"),
        ("/v1/jobs/%ff", 400, "bad_request"),
        (&format!("/v1/jobs/{ID}"), 404, "not_found"), // H21
        (&format!("/v1/jobs/{ID}/explain"), 404, "not_found"),
        ("/v1/jobs/../tokens", 404, "not_found"),
        ("/nowhere", 404, "not_found"),
        ("/v1/streams/none", 404, "not_found"),
        ("/v1/streams/a%00b", 404, "not_found"),
        ("/v1/jobs?limit=0", 422, "invalid"),          // H57
        ("/v1/jobs?limit=1000000000", 422, "invalid"), // H57
        ("/v1/jobs?limit=%2B5", 422, "invalid"),
        ("/v1/jobs?cursor=forged", 400, "bad_cursor"),   // H56
        ("/v1/dlq?cursor=", 400, "bad_cursor"),          // H56
        ("/v1/jobs?sort=payload", 422, "unknown_field"), // H58
        ("/v1/jobs?status=%27%20OR%201=1--", 422, "invalid"), // H58
        ("/v1/jobs?stream=%27%20OR%201=1--", 422, "invalid"), // H58
        ("/v1/jobs?status=DEAD&status=QUEUED", 422, "invalid"),
        ("/v1/dlq?code=a%00", 422, "invalid"),
        ("/v1/dlq?before=yesterday", 422, "invalid"),
        (&format!("/v1/jobs/{ID}?wait_ms=60001"), 422, "invalid"),
        (&format!("/v1/jobs/{ID}?wait_ms=-1"), 422, "invalid"),
        ("/v1/whoami?token=x", 400, "token_in_query"),      // H34
        ("/healthz?access_token=x", 400, "token_in_query"), // H34
    ];
    for (path, status, code) in cases {
        let answer = server.get(path).await;
        let shown: String = path.chars().take(80).collect();
        assert_eq!((answer.status, answer.code().as_str()), (*status, *code), "{shown}: {answer:?}");
    }
    // H58: SQL in a filter is a text that matches nothing.
    let literal = server.get("/v1/dlq?code=%27%20OR%201=1--").await;
    assert_eq!((literal.status, literal.json()["dead_letters"].as_array().map(Vec::len)), (200, Some(0)));
    server.stop().await;
}

#[tokio::test]
async fn methods_are_answered_with_the_ones_that_work() {
    let server = TestServer::start().await;
    // H23, H24, H38
    for (method, path, allow) in [
        ("PUT", "/v1/jobs", "POST, GET, HEAD"),
        ("GET", "/internal/worker/claim", "POST"),
        ("DELETE", "/healthz", "GET, HEAD"),
        ("TRACE", "/v1/jobs", "POST, GET, HEAD"),
        ("OPTIONS", "/v1/jobs", "POST, GET, HEAD"),
        ("BREW", "/v1/whoami", "GET, HEAD"),
    ] {
        let headers = [("origin", "http://evil.com"), ("access-control-request-method", "POST")];
        let answer = server.send(method, path, if method == "OPTIONS" { &headers } else { &[] }, "").await;
        assert_eq!((answer.status, answer.headers["allow"].as_str()), (405, allow), "{method} {path}");
        assert!(!answer.headers.keys().any(|name| name.starts_with("access-control")), "{answer:?}");
    }
    let connect =
        server.raw(b"CONNECT evil.com:443 HTTP/1.1\r\nhost: evil.com\r\nconnection: close\r\n\r\n").await;
    assert_eq!(connect.status, 405);
    let head = server.send("HEAD", "/healthz", &[], "").await;
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    server.stop().await;
}

#[tokio::test]
async fn heads_that_are_malformed_or_too_big_are_refused_as_problems() {
    let server = TestServer::start().await;
    let line =
        |extra: &str| format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{extra}\r\n");
    let many: String = (0..120).map(|n| format!("x-{n}: 1\r\n")).collect();
    let cases: Vec<(Vec<u8>, u16, &str)> = vec![
        (request("GET", &format!("/{}", "a".repeat(9_000)), &[], "").into(), 414, "uri_too_long"), // H25
        (request("GET", &format!("/{}", "a".repeat(200_000)), &[], "").into(), 414, "uri_too_long"), // H25
        (line(&many).into(), 431, "headers_too_large"),                                            // H26
        (line(&format!("x: {}\r\n", "a".repeat(33 << 10))).into(), 431, "headers_too_large"),      // H26
        (line(&format!("x: {}\r\n", "a".repeat(200 << 10))).into(), 431, "headers_too_large"),     // H26
        (line("x: a\0b\r\n").into(), 400, "bad_request"),                                          // H27
        (line("x: a\rb\r\n").into(), 400, "bad_request"),                                          // H27
        (line("no colon\r\n").into(), 400, "bad_request"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n".to_vec(), 400, "bad_request"),
        (b"GET /healthz SPDY/9\r\n\r\n".to_vec(), 400, "bad_request"),
        (line("content-length: 5\r\ncontent-length: 6\r\n").into(), 400, "bad_request"),
        (line("content-length: x\r\n").into(), 400, "bad_request"),
        (line("transfer-encoding: chunked\r\ncontent-length: 5\r\n").into(), 400, "bad_request"), // H12
        (line("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n").into(), 400, "bad_request"), // H12
        (b"GET /v1/whoami HTTP/1.1\r\nconnection: close\r\n\r\n".to_vec(), 400, "bad_request"),
        (line("host: localhost\r\n").replace("/healthz", "/v1/whoami").into(), 400, "bad_request"),
    ];
    for (bytes, status, code) in cases {
        let answer = server.raw(&bytes).await;
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(120)]).into_owned();
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{shown}: {answer:?}");
        assert_eq!(answer.headers["content-type"], "application/problem+json");
    }
    server.stop().await;
}

#[tokio::test]
async fn bodies_are_plain_json_in_utf8() {
    let server = TestServer::start().await;
    let bearer = format!("Bearer {}", server.operator);
    let good = r#"{"stream":"s","payload":{}}"#;
    let cases: &[(Headers<'_>, u16)] = &[
        (&[], 415),                                                                   // H13
        (&[("content-type", "text/plain")], 415),                                     // H13
        (&[("content-type", "application/x-www-form-urlencoded")], 415),              // H13
        (&[("content-type", "application/json"), ("content-encoding", "gzip")], 415), // H14
        (&[("content-type", "Application/JSON; charset=utf-8")], 201),
        (&[("content-type", "application/json"), ("content-encoding", "identity")], 201),
    ];
    for (headers, status) in cases {
        let mut headers = headers.to_vec();
        headers.push(("authorization", &bearer));
        let answer = server.send("POST", "/v1/jobs", &headers, good).await;
        assert_eq!(answer.status, *status, "{headers:?}: {answer:?}");
    }
    // H15
    let mut bytes = request(
        "POST",
        "/v1/jobs",
        &[("authorization", &bearer), ("content-type", "application/json")],
        good,
    );
    bytes = bytes.replace(r#""s""#, r#""@""#);
    let mut bytes = bytes.into_bytes();
    let at = bytes.iter().rposition(|byte| *byte == b'@').expect("the mark");
    bytes[at] = 0xff;
    let answer = server.raw(&bytes).await;
    assert_eq!((answer.status, answer.code()), (400, "bad_json".into()));
    server.stop().await;
}

#[tokio::test]
async fn who_asks_and_for_whom_is_checked_before_anything_is_read() {
    let server = TestServer::start().await;
    let bearer = format!("Bearer {}", server.operator);
    let auth = ("authorization", bearer.as_str());
    let kind = ("content-type", "application/json");
    let good = r#"{"stream":"s","payload":{}}"#;
    let cases: &[(Headers<'_>, u16, &str)] = &[
        (&[kind], 401, "unauthorized"),                                         // H31
        (&[auth, auth, kind], 400, "bad_request"),                              // H35
        (&[auth, kind, ("host", "evil.com")], 421, "misdirected"),              // H36
        (&[auth, kind, ("host", "localhost.evil.com:80")], 421, "misdirected"), // H36
        (&[auth, kind, ("origin", "http://evil.com")], 403, "cross_site"),      // H37
        (&[auth, kind, ("origin", "null")], 403, "cross_site"),                 // H37
        (&[auth, kind, ("sec-fetch-site", "cross-site")], 403, "cross_site"),   // H37
    ];
    for (headers, status, code) in cases {
        let answer = server.send("POST", "/v1/jobs", headers, good).await;
        assert_eq!((answer.status, answer.code().as_str()), (*status, *code), "{headers:?}: {answer:?}");
        assert_eq!(answer.headers["x-content-type-options"], "nosniff");
        assert_eq!(answer.headers["cache-control"], "no-store");
    }
    for path in ["/healthz", "/readyz"] {
        assert_eq!(server.send("GET", path, &[("host", "10.1.2.3:80")], "").await.status, 200);
    }
    // H30: the final answer comes although no body was sent, and no `100 Continue` before it.
    let expect = "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer nonsense\r\nexpect: 100-continue\r\n\
                  content-type: application/json\r\ncontent-length: 27\r\n\r\n";
    assert_eq!(server.raw(expect.as_bytes()).await.status, 401);
    server.stop().await;
}

#[tokio::test]
async fn a_body_shorter_or_longer_than_announced_closes_the_connection() {
    let server = TestServer::start().await;
    let head = |length: usize| {
        format!(
            "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n",
            server.operator
        )
    };
    let good = r#"{"stream":"s","payload":{}}"#;
    // H11, too short: the rest is read as the next request, which it is not.
    let text = server.raw(format!("{}{good}", head(10)).as_bytes()).await;
    assert_eq!((text.status, text.body.contains("HTTP/1.1 400")), (400, true), "{text:?}");
    // H11, too long: the client closes its side before all of it came.
    let mut stream = server.connect().await;
    stream.write_all(format!("{}{good}", head(1_000)).as_bytes()).await.expect("sent");
    stream.shutdown().await.expect("half closed");
    let mut rest = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("closed");
    assert!(!String::from_utf8_lossy(&rest).contains("201"), "{rest:?}");
    assert_eq!(server.get("/v1/streams/s").await.status, 404);
    server.stop().await;
}

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

async fn a_store_that_is_away_is_never_a_success(server: TestServer) {
    assert_eq!(server.get("/readyz").await.status, 200);
    server.engine.store().close().await;
    // H64
    for (method, path) in [("POST", "/v1/jobs"), ("GET", "/v1/streams"), ("GET", "/readyz")] {
        let answer = server.call(&server.operator, method, path, r#"{"stream":"s","payload":{}}"#).await;
        assert!(answer.status == 503 || path == "/readyz", "{path}: {answer:?}");
        if answer.status == 503 {
            assert!(answer.headers.contains_key("retry-after"), "{answer:?}");
        }
    }
    assert_eq!(server.get("/healthz").await.status, 200);
    server.stop().await;
}

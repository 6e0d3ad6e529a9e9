//! The catalogue of bad input: bodies. What a hostile or careless client may send, and the one answer it gets. Numbers in
//! comments are those of the catalogue.

use crate::server::{TestServer, read_to_end, request};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

crate::on_both_backends!(
    bad_bodies_are_named,
    typed_numbers_are_strict_and_payload_numbers_are_not_touched,
    sizes_are_refused_by_the_limit_that_they_pass,
);

type Headers<'a> = &'a [(&'a str, &'a str)];

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
        (r#"{"priority":5,"payload":{}}"#.into(), 422, "invalid", "/priority"), // H54
        (r#"{"priority":"urgent","payload":{}}"#.into(), 422, "invalid", "/priority"), // H54
        (r#"{"priority":"","payload":{}}"#.into(), 422, "invalid", "/priority"), // H54
        // H60: the key under which a producer may repeat itself is `unique_key`.
        (r#"{"stream":"s","payload":{},"unique_key":""}"#.into(), 422, "invalid", "/unique_key"),
        (
            format!(r#"{{"stream":"s","payload":{{}},"unique_key":"{}"}}"#, "k".repeat(256)),
            422,
            "invalid",
            "/unique_key",
        ),
        (
            format!(r#"{{"stream":"s","payload":{{}},"unique_key":"{}"}}"#, "ä".repeat(128)),
            422,
            "invalid",
            "/unique_key",
        ),
        (r#"{"stream":"s","payload":{},"colour":1}"#.into(), 422, "unknown_field", "/colour"), // H5
        (r#"{"stream":"s","stream":"t","payload":{}}"#.into(), 400, "duplicate_key", ""),      // H6
        (r#"{"stream":"s","payload":{"a":1,"\u0061":2}}"#.into(), 400, "duplicate_key", ""),   // H6
        (deep(33), 400, "too_deep", ""),                                                       // H7
        (format!("[{}]", vec![good; 10_001].join(",")), 422, "invalid", ""),                   // H8
        ("[]".into(), 422, "invalid", ""),                                                     // H8
        ("\u{feff}{}".into(), 400, "bad_json", ""),                                            // H16
        (r#"{"stream":"a\u0000b","payload":{}}"#.into(), 422, "invalid", "/stream"),           // H17
        (r#"{"stream":"s","payload":{},"unique_key":"\u0000"}"#.into(), 422, "invalid", "/unique_key"), // H17
        (r#"{"stream":"s","payload":{"x":"\ud800"}}"#.into(), 400, "bad_json", ""),            // H18
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

//! The catalogue of bad input: heads, paths, queries, and who sends them.

use crate::server::{PATIENCE, TestServer, request};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

crate::on_both_backends!(ids_paths_and_queries_that_make_no_sense_are_refused);

type Headers<'a> = &'a [(&'a str, &'a str)];

const ID: &str = "019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f";

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
async fn host_and_caller_are_checked_before_the_body_is_read() {
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

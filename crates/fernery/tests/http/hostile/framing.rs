//! Requests that two parsers could read in two ways: each is refused, or read in exactly one, and a request hidden in
//! another is never carried out.

use crate::campaign::Server;
use serde_json::Value;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(60);
const PROBE: &str = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

/// A whole request that would leave a trace if anything ever read it as one.
fn hidden(server: &Server) -> String {
    let body = r#"{"stream":"smuggled","payload":{}}"#;
    format!(
        "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        server.target.operator,
        body.len()
    )
}

/// An enqueue with these headers about its length, and everything after its head.
fn enqueue(server: &Server, length: &str, rest: &str) -> String {
    format!(
        "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         {length}\r\n\r\n{rest}",
        server.target.operator
    )
}

/// The statuses of all that the connection answers, a probe at its end included if it is still open for one.
async fn statuses(server: &Server, bytes: &[u8]) -> Vec<u16> {
    let mut stream = TcpStream::connect(server.target.address()).await.expect("connected");
    stream.write_all(bytes).await.expect("sent");
    let mut text = Vec::new();
    let answered = async {
        while !text.windows(4).any(|four| four == b"\r\n\r\n") {
            if stream.read_buf(&mut text).await.unwrap_or(0) == 0 {
                return;
            }
        }
        let _ = stream.write_all(PROBE.as_bytes()).await;
        while stream.read_buf(&mut text).await.unwrap_or(0) > 0 {}
    };
    timeout(PATIENCE, answered).await.expect("the connection is answered and closed");
    let text = String::from_utf8_lossy(&text).into_owned();
    text.split("HTTP/1.1 ").skip(1).map(|answer| answer[..3].parse().expect("a status")).collect()
}

async fn nothing_was_smuggled(server: &Server, name: &str) {
    let path = "/v1/streams/smuggled";
    let (status, found) =
        server.target.call(&server.target.operator, "GET", path, &Value::Null).await.expect("answered");
    assert_eq!(status, 404, "{name}: {found}");
}

#[tokio::test]
async fn a_length_that_can_be_read_in_two_ways_is_refused() {
    let server = Server::start(None, &[]).await;
    let hidden = hidden(&server);
    let ended = format!("0\r\n\r\n{hidden}");
    let all = ended.len();
    let chunked = "transfer-encoding: chunked";
    let lengths: Vec<String> = vec![
        format!("content-length: {all}\r\n{chunked}"),
        format!("{chunked}\r\ncontent-length: {all}"),
        format!("{chunked}\r\ncontent-length: 0"),
        format!("{chunked}\r\nContent-Length : {all}"),
        format!("{chunked}\ncontent-length: {all}"),
        format!("{chunked}\r\n{chunked}"),
        format!("{chunked}\r\ntransfer-encoding: identity"),
        format!("transfer-encoding: identity\r\n{chunked}"),
        "transfer-encoding: xchunked".into(),
        "transfer-encoding: chunkedx".into(),
        "transfer-encoding: chunked, identity".into(),
        "transfer-encoding: identity, chunked".into(),
        "transfer-encoding: gzip, chunked".into(),
        "transfer-encoding: chunked, chunked".into(),
        "transfer-encoding: x\"chunked".into(),
        "transfer-encoding: ,chunked".into(),
        "transfer-encoding: chunked;q=1".into(),
        "transfer-encoding: \x0bchunked".into(),
        "transfer-encoding:\r\n chunked".into(),
        "transfer-encoding : chunked".into(),
        " transfer-encoding: chunked".into(),
        "transfer-encoding\0: chunked".into(),
        "transfer-encoding: chun\0ked".into(),
        "x: y\r\n transfer-encoding: chunked".into(),
        "x: y\rtransfer-encoding: chunked".into(),
        "content-length: 5\r\ncontent-length: 6".into(),
        format!("content-length: 0\r\ncontent-length: {all}"),
        "content-length: +5".into(),
        "content-length: -5".into(),
        "content-length: 0x5".into(),
        "content-length: 5, 6".into(),
        "content-length: 5 6".into(),
        "content-length: 5;".into(),
        "content-length: 5.0".into(),
        "content-length: ".into(),
        "content-length: 99999999999999999999".into(),
        "content-length:\r\n 5".into(),
        "content-length : 5".into(),
    ];
    for length in lengths {
        let answers = statuses(&server, enqueue(&server, &length, &ended).as_bytes()).await;
        assert_eq!(answers, [400], "{length:?}");
        nothing_was_smuggled(&server, &length).await;
    }
}

#[tokio::test]
async fn chunks_that_are_not_well_formed_end_the_connection() {
    let server = Server::start(None, &[]).await;
    let hidden = hidden(&server);
    for start in [
        "g\r\n",
        "-1\r\n",
        "+1\r\n",
        "0x0\r\n",
        "\r\n",
        " 0\r\n",
        "0 0\r\n",
        "0\n\n",
        "0\r\r\n",
        "1\r\n{0\r\n\r\n",
        "ffffffffffffffff1\r\n",
        "10000000000000000\r\n",
        "0;a=\"\n\"\r\n\r\n",
        "1\r\n{\n0\r\n\r\n",
    ] {
        let bytes = enqueue(&server, "transfer-encoding: chunked", &format!("{start}{hidden}"));
        let answers = statuses(&server, bytes.as_bytes()).await;
        assert!(matches!(answers.as_slice(), [] | [400]), "{start:?}: {answers:?}");
        nothing_was_smuggled(&server, start).await;
    }
}

/// What is allowed is read in one way: the hidden request stays a part of the body that it stands in.
#[tokio::test]
async fn a_request_inside_a_body_stays_inside() {
    let server = Server::start(None, &[]).await;
    let hidden = hidden(&server);
    let job = r#"{"stream":"s","payload":{}}"#;
    let spaced = |text: &str, bytes: usize| format!("{text}{}", " ".repeat(bytes - text.len()));
    let (size, long) = (hidden.len(), spaced(job, 300));
    let cases: Vec<(&str, String, &[&[u16]])> = vec![
        (
            "a body where none is read",
            format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\ncontent-length: {size}\r\n\r\n{hidden}"),
            &[&[200], &[200, 200]],
        ),
        (
            "a chunked body where none is read",
            format!(
                "GET /healthz HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n{size:x}\r\n{hidden}\r\n0\r\n\r\n"
            ),
            &[&[200], &[200, 200]],
        ),
        (
            "a body of a path that is not there",
            format!("POST /nowhere HTTP/1.1\r\nhost: localhost\r\ncontent-length: {size}\r\n\r\n{hidden}"),
            &[&[404], &[404, 200]],
        ),
        (
            "a body of a caller without a token",
            format!("POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-length: {size}\r\n\r\n{hidden}"),
            &[&[401], &[401, 200]],
        ),
        (
            "a body that is no JSON",
            enqueue(&server, &format!("content-length: {size}"), &hidden),
            &[&[400, 200]],
        ),
        (
            "a body that waits for 100 Continue",
            enqueue(&server, &format!("expect: 100-continue\r\ncontent-length: {size}"), &hidden),
            &[&[100, 400, 200], &[400, 200]],
        ),
        (
            "chunk extensions",
            enqueue(
                &server,
                "transfer-encoding: chunked",
                &format!("12c;a=b;c=\"d\"\r\n{long}\r\n0;x\r\n\r\n"),
            ),
            &[&[201, 200]],
        ),
        (
            "trailers",
            enqueue(
                &server,
                "transfer-encoding: chunked",
                &format!("12c\r\n{long}\r\n0\r\ncontent-length: 5\r\nhost: evil.com\r\n\r\n"),
            ),
            &[&[201, 200]],
        ),
        (
            "the same length twice",
            enqueue(&server, "content-length: 300\r\ncontent-length: 300", &long),
            &[&[201, 200], &[400]],
        ),
        (
            "lines that end without a return",
            format!("GET /healthz HTTP/1.1\nhost: localhost\ncontent-length: {size}\n\n{hidden}"),
            &[&[200], &[200, 200], &[400]],
        ),
    ];
    for (name, bytes, allowed) in cases {
        let answers = statuses(&server, bytes.as_bytes()).await;
        assert!(allowed.contains(&answers.as_slice()), "{name}: {answers:?}");
        nothing_was_smuggled(&server, name).await;
    }
}

/// The statuses of two requests of which the second was cut: its start came with the first, its rest after the first answer.
async fn statuses_of_two(server: &Server, first: &str, second: &[u8], cut: usize) -> Vec<u16> {
    let mut stream = TcpStream::connect(server.target.address()).await.expect("connected");
    stream.set_nodelay(true).expect("set");
    let mut text = Vec::new();
    let answered = async {
        stream.write_all(&[first.as_bytes(), &second[..cut]].concat()).await.expect("sent");
        while !text.ends_with(b"}") {
            assert!(stream.read_buf(&mut text).await.expect("an answer") > 0, "closed");
        }
        let _ = stream.write_all(&second[cut..]).await;
        let _ = stream.write_all(PROBE.as_bytes()).await;
        while stream.read_buf(&mut text).await.unwrap_or(0) > 0 {}
    };
    timeout(PATIENCE, answered).await.expect("the connection is answered and closed");
    let text = String::from_utf8_lossy(&text).into_owned();
    text.split("HTTP/1.1 ").skip(1).map(|answer| answer[..3].parse().expect("a status")).collect()
}

#[tokio::test]
async fn a_second_head_is_judged_whole_however_it_is_cut() {
    let server = Server::start(None, &[]).await;
    let ended = format!("0\r\n\r\n{}", hidden(&server));
    let first = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    for lengths in [
        format!("content-length: {}\r\ntransfer-encoding: chunked", ended.len()),
        format!("transfer-encoding: chunked\r\ncontent-length: {}", ended.len()),
    ] {
        let second = enqueue(&server, &lengths, &ended);
        let head = second.len() - ended.len();
        for cut in 1..head {
            let answers = statuses_of_two(&server, first, second.as_bytes(), cut).await;
            assert_eq!(answers, [200, 400], "{lengths:?} cut after {cut} bytes");
        }
        nothing_was_smuggled(&server, &lengths).await;
    }
    // What says its length in one way is read, wherever it is cut.
    let job = r#"{"stream":"s","payload":{}}"#;
    let chunked = format!("{:x}\r\n{job}\r\n0\r\n\r\n", job.len());
    let second = enqueue(&server, "transfer-encoding: chunked", &chunked);
    for cut in (1..second.len()).step_by(7) {
        let answers = statuses_of_two(&server, first, second.as_bytes(), cut).await;
        assert_eq!(answers, [200, 201, 200], "cut after {cut} bytes");
    }
}

#[tokio::test]
async fn a_request_for_another_server_is_not_answered_as_ones_own() {
    let server = Server::start(None, &[]).await;
    let cases: &[(&str, &str, u16)] = &[
        ("/v1/whoami", "localhost", 200),
        ("http://localhost/v1/whoami", "localhost", 200),
        ("http://evil.com/v1/whoami", "localhost", 421),
        ("http://localhost@evil.com/v1/whoami", "localhost", 421),
        ("http://localhost:80@evil.com/v1/whoami", "localhost", 421),
        ("http://evil.com:localhost/v1/whoami", "localhost", 421),
        ("//evil.com/v1/whoami", "localhost", 404),
        ("evil.com:80", "localhost", 404),
        ("*", "localhost", 404),
        ("v1/whoami", "localhost", 400),
        ("/v1/whoami", "evil.com", 421),
        ("/v1/whoami", "localhost:80@evil.com", 421),
        ("/v1/whoami", "localhost:evil", 421),
        ("/v1/whoami", "localhost, evil.com", 421),
        ("/v1/whoami", "evil.com#localhost", 421),
        ("/v1/whoami", "localhost/", 421),
        ("/v1/whoami", "", 421),
        ("/v1/whoami", "localhost\r\nhost: evil.com", 400),
        ("/v1/whoami\0", "localhost", 400),
    ];
    for (target, host, status) in cases {
        let request = format!(
            "GET {target} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {}\r\nconnection: close\r\n\r\n",
            server.target.operator
        );
        assert_eq!(statuses(&server, request.as_bytes()).await, [*status], "{target:?} of {host:?}");
    }
}

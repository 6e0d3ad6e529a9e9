//! What a caller may rely on: one call is sent once, and an error says what the server said.

use super::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

async fn listener() -> (TcpListener, Client) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::new(&format!("http://{}", listener.local_addr().unwrap()), Some("t"), None).unwrap();
    (listener, client)
}

async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

const NO_STREAMS: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 14\r\n\r\n{\"streams\":[]}";

#[tokio::test]
async fn a_connection_is_used_again_and_a_call_that_broke_is_not_sent_again() {
    let (listener, client) = listener().await;
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        for _ in 0..2 {
            let head = read_head(&mut stream).await;
            assert!(head.starts_with("GET /v1/streams HTTP/1.1\r\n"), "{head}");
            assert!(head.contains("authorization: Bearer t\r\n"), "{head}");
            stream.write_all(NO_STREAMS).await.unwrap();
        }
        let head = read_head(&mut stream).await;
        assert!(head.starts_with("POST /v1/streams/a%2Fb/pause HTTP/1.1\r\n"), "{head}");
        drop(stream);
        listener
    });
    for _ in 0..2 {
        assert!(client.streams().await.unwrap().read().unwrap().streams.is_empty());
    }
    let name = StreamName::new("a/b").unwrap();
    let broke = client.set_paused(&name, true).await.unwrap_err();
    assert!(matches!(broke, ClientError::Broken { .. }), "{broke:?}");
    let listener = server.await.unwrap();
    let again = tokio::time::timeout(Duration::from_millis(100), listener.accept()).await;
    assert!(again.is_err(), "the call was sent again");
}

#[tokio::test]
async fn a_problem_is_told_with_its_code_and_its_fields() {
    let (listener, client) = listener().await;
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_head(&mut stream).await;
        let body = r#"{"type":"t","title":"Invalid","status":422,"code":"invalid","detail":"two fields are wrong",
            "errors":[{"pointer":"/a","detail":"too long"},{"pointer":"/b","detail":"too short"}]}"#;
        let head = "HTTP/1.1 422 X\r\ncontent-type: application/problem+json\r\nconnection: close\r\n\r\n";
        stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    });
    let error = client.streams().await.unwrap_err();
    assert_eq!(error.to_string(), "two fields are wrong; a: too long; b: too short");
    assert!(matches!(error, ClientError::Refused { problem, .. } if problem.code == "invalid"));
}

/// Whether the length is told ahead or not, no more than the limit is read, let alone kept.
#[tokio::test]
async fn an_answer_that_is_too_long_is_refused_while_it_is_read() {
    for head in ["content-length: 1000000000", "transfer-encoding: chunked"] {
        let (listener, client) = listener().await;
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            read_head(&mut stream).await;
            stream.write_all(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n").as_bytes()).await.unwrap();
            let chunk = format!("4000\r\n{}\r\n", "[],[".repeat(4096));
            let mut written = 0;
            while stream.write_all(chunk.as_bytes()).await.is_ok() {
                written += chunk.len();
            }
            written
        });
        let error = client.with_answers_up_to(1 << 20).streams().await.unwrap_err();
        assert!(matches!(&error, ClientError::Unexpected { status: 200, .. }), "{error:?}");
        assert!(error.to_string().contains("longer than 1048576 bytes"), "{error}");
        assert!(!error.is_transient());
        let written = server.await.unwrap();
        assert!(written < 32 << 20, "{written} bytes were taken");
    }
}

#[test]
fn a_token_is_not_shown() {
    let client = Client::new("http://127.0.0.1:1", Some("s3cret"), None).unwrap();
    assert!(!format!("{client:?}").contains("s3cret"));
}

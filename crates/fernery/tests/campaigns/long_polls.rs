//! Ten thousand claims wait on one process: within its memory, each a cheap thing, and a job still finds exactly one.

use crate::campaign::Server;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

const CLAIMS: usize = 10_000;
/// A claim waits for 30 s at most, and a slow machine may need longer until the last one is there: who was answered asks
/// again. These make up for those that are just asking again.
const SPARE: usize = 250;
/// Connections that are being made at once.
const CONNECTING: usize = 100;
/// Nothing here takes longer unless it hangs.
const PATIENCE: Duration = Duration::from_secs(120);
/// Less than a claim waits for: who is forgotten by then was not forgotten because its time was over.
const FORGOTTEN_WITHIN: Duration = Duration::from_secs(25);

/// Every connection is a file; this process needs as many as the server.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).expect("the limit is raised");
    let needed = CLAIMS + SPARE + 100;
    let enough = maximum.is_none_or(|files| files as usize > needed);
    assert!(
        enough,
        "this needs {needed} open files, the hard limit is {maximum:?}: raise it with ulimit -Hn"
    );
}

/// Claims on one connection, again and again, until it has a job, and tells of that.
async fn wait_for_a_job(mut stream: TcpStream, request: Arc<str>, found: mpsc::UnboundedSender<Value>) {
    loop {
        let answer = answer(&mut stream).await;
        if answer["claimed"] == json!(true) {
            found.send(answer).expect("somebody listens");
            return std::future::pending().await;
        }
        stream.write_all(request.as_bytes()).await.expect("sent");
    }
}

/// The body of the next answer.
async fn answer(stream: &mut TcpStream) -> Value {
    let mut text = Vec::new();
    loop {
        assert!(stream.read_buf(&mut text).await.expect("an answer") > 0, "the server closed a claim");
        let Some(end) = text.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&text[..end]).to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.expect("a length").parse().expect("a number");
        if let Some(body) = text.get(end + 4..end + 4 + length) {
            return serde_json::from_slice(body).expect("JSON");
        }
    }
}

/// As many claims as are needed, each a client of its own.
fn send_claims(server: &Server, found: &mpsc::UnboundedSender<Value>) -> JoinSet<()> {
    let address = server.target.address();
    let body = r#"{"worker_id":"w","streams":["s"],"max_wait_ms":30000}"#;
    let request: Arc<str> = format!(
        "POST /internal/worker/claim HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        server.target.worker,
        body.len()
    )
    .into();
    let connecting = Arc::new(Semaphore::new(CONNECTING));
    let mut claims = JoinSet::new();
    for _ in 0..CLAIMS + SPARE {
        let (connecting, request, found) = (connecting.clone(), request.clone(), found.clone());
        claims.spawn(async move {
            let permit = connecting.acquire().await.expect("never closed");
            let mut stream = TcpStream::connect(address).await.expect("connected");
            stream.write_all(request.as_bytes()).await.expect("sent");
            drop(permit);
            wait_for_a_job(stream, request, found).await;
        });
    }
    claims
}

async fn waiting(server: &Server) -> usize {
    let mut stream = TcpStream::connect(server.target.address()).await.expect("connected");
    let request = format!(
        "GET /metrics HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\nconnection: close\r\n\r\n",
        server.target.address(),
        server.target.operator
    );
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).await.expect("an answer");
    let line = text.lines().find_map(|line| line.strip_prefix("fernery_claims_waiting "));
    line.expect("the count").trim().parse().expect("a number")
}

/// Looks until the number of claims that wait is so.
async fn until_waiting(server: &Server, within: Duration, is_so: impl Fn(usize) -> bool) -> usize {
    let deadline = Instant::now() + within;
    loop {
        let seen = waiting(server).await;
        if is_so(seen) {
            return seen;
        }
        assert!(Instant::now() < deadline, "{seen} claims wait after {within:?}");
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn campaign_ten_thousand_claims_wait_at_once_within_300_mib() {
    raise_file_limit();
    let server = Server::start(None, &[]).await;
    let (found, mut finds) = mpsc::unbounded_channel();
    let mut claims = send_claims(&server, &found);
    let seen = until_waiting(&server, PATIENCE, |seen| seen >= CLAIMS).await;
    let mib = server.resident_bytes() >> 20;
    println!("{seen} waiting claims: {mib} MiB resident");
    assert!(mib < 300, "{mib} MiB");

    let target = &server.target;
    let job = json!({"stream": "s", "payload": {}});
    let (status, stored) = target.call(&target.operator, "POST", "/v1/jobs", &job).await.expect("answered");
    assert_eq!(status, 201, "{stored}");
    let finder = tokio::time::timeout(PATIENCE, finds.recv()).await.expect("one of them has the job");
    assert_eq!(finder.expect("an answer")["job_id"], stored["job_id"]);
    let (_, streams) = target.insist(&target.operator, "GET", "/v1/streams", &Value::Null).await;
    let counts = &streams["streams"][0];
    assert_eq!((&counts["running"], &counts["ready"]), (&json!(1), &json!(0)), "{streams}");

    claims.shutdown().await;
    until_waiting(&server, FORGOTTEN_WITHIN, |seen| seen == 0).await;
    assert!(finds.try_recv().is_err(), "the job was handed out twice");
}

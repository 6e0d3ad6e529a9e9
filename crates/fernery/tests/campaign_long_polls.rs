//! Ten thousand claims wait on one process: within its memory, each a cheap thing, and a job still finds exactly one.

mod campaign;

use campaign::Server;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

const CLAIMS: usize = 10_000;

/// Every connection is a file; this process needs as many as the server.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).expect("the limit is raised");
    let enough = maximum.is_none_or(|files| files as usize > CLAIMS + 100);
    assert!(
        enough,
        "this needs {CLAIMS} open files, the hard limit is {maximum:?}: raise it with ulimit -Hn"
    );
}

/// A claim that waits on the stream, sent and not yet answered.
async fn wait_for_a_job(server: &Server) -> TcpStream {
    let address = server.target.address();
    let body = r#"{"worker_id":"w","streams":["s"],"max_wait_ms":30000}"#;
    let request = format!(
        "POST /internal/worker/claim HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        server.target.worker,
        body.len()
    );
    let mut stream = TcpStream::connect(address).await.expect("connected");
    stream.write_all(request.as_bytes()).await.expect("sent");
    stream
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

#[tokio::test]
async fn campaign_ten_thousand_claims_wait_at_once_within_300_mib() {
    raise_file_limit();
    let server = Server::start(None, &[]).await;
    let mut claims = Vec::with_capacity(CLAIMS);
    for _ in 0..CLAIMS {
        claims.push(wait_for_a_job(&server).await);
    }
    let deadline = Instant::now() + Duration::from_secs(25);
    while waiting(&server).await < CLAIMS {
        assert!(Instant::now() < deadline, "only {} of {CLAIMS} claims wait", waiting(&server).await);
        sleep(Duration::from_millis(50)).await;
    }
    let mib = server.resident_bytes() >> 20;
    println!("{CLAIMS} waiting claims: {mib} MiB resident");
    assert!(mib < 300, "{mib} MiB");

    let job = json!({"stream": "s", "payload": {}});
    let (status, _) =
        server.target.call(&server.target.operator, "POST", "/v1/jobs", &job).await.expect("answered");
    assert_eq!(status, 201);
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let (_, streams) = server
            .target
            .call(&server.target.operator, "GET", "/v1/streams", &Value::Null)
            .await
            .expect("answered");
        let counts = &streams["streams"][0];
        if counts["running"] == json!(1) && counts["ready"] == json!(0) {
            break;
        }
        assert!(Instant::now() < deadline, "none of them has the job: {streams}");
        sleep(Duration::from_millis(20)).await;
    }
    drop(claims);
    let deadline = Instant::now() + Duration::from_secs(25);
    while waiting(&server).await > 0 {
        assert!(Instant::now() < deadline, "claims whose clients are gone still wait");
        sleep(Duration::from_millis(50)).await;
    }
}

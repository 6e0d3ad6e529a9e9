//! A worker process that is stopped until its job was taken back, then goes on: refused by its lease, not one byte changes.

use crate::campaign::Server;
use crate::fresh_database;
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

/// A worker in a few lines of shell: claims, waits for a line on its input, completes, prints what it was answered.
const WORKER: &str = r#"
call() {
    exec 3<>"/dev/tcp/$HOST/$PORT"
    printf 'POST %s HTTP/1.1\r\nhost: %s:%s\r\nauthorization: Bearer %s\r\ncontent-type: application/json\r\ncontent-length: %s\r\nconnection: close\r\n\r\n%s' \
        "$1" "$HOST" "$PORT" "$TOKEN" "${#2}" "$2" >&3
    tr -d '\r' <&3
    exec 3<&-
}
field() { printf '%s' "$claim" | sed -n 's/.*"'"$1"'":"\([^"]*\)".*/\1/p'; }
claim=$(call /internal/worker/claim '{"worker_id":"stopped","streams":["s"],"max_wait_ms":5000}')
echo "$(field job_id)"
read -r _
call /internal/worker/complete "{\"worker_id\":\"stopped\",\"job_id\":\"$(field job_id)\",\"attempt_id\":\"$(field attempt_id)\",\"lease_token\":\"$(field lease_token)\",\"result\":{\"late\":true}}"
echo
echo end
"#;

async fn worker(server: &Server) -> Child {
    let address = server.target.address();
    Command::new("bash")
        .args(["-c", WORKER])
        .env("HOST", address.ip().to_string())
        .env("PORT", address.port().to_string())
        .env("TOKEN", &server.target.worker)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("bash")
}

fn signal(child: &Child, name: &str) {
    let id = child.id().expect("it runs").to_string();
    let sent = std::process::Command::new("kill").args(["-s", name, &id]).status().expect("kill");
    assert!(sent.success());
}

async fn job(server: &Server, job_id: &str) -> Value {
    let path = format!("/v1/jobs/{job_id}");
    let (status, job) = server.target.insist(&server.target.operator, "GET", &path, &Value::Null).await;
    assert_eq!(status, 200, "{job}");
    job
}

async fn run(database: Option<&str>) {
    let arguments = ["--lease-ttl", "1s", "--heartbeat-interval", "300ms", "--reap-interval", "200ms"];
    let server = Server::start(database, &arguments).await;
    let new = json!({"stream": "s", "payload": {}});
    let (status, _) = server.target.insist(&server.target.operator, "POST", "/v1/jobs", &new).await;
    assert_eq!(status, 201);

    let mut stopped = worker(&server).await;
    let mut input = stopped.stdin.take().expect("its input");
    let mut lines = BufReader::new(stopped.stdout.take().expect("its output")).lines();
    let job_id = lines.next_line().await.expect("its output").expect("a line");
    signal(&stopped, "STOP");
    input.write_all(b"go on\n").await.expect("written");

    let deadline = Instant::now() + Duration::from_secs(60);
    let before = loop {
        let seen = job(&server, &job_id).await;
        if seen["attempts"][0]["outcome"] == json!("LOST") {
            break seen;
        }
        assert!(Instant::now() < deadline, "the reaper did not come: {seen}");
        sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(before["status"], json!("QUEUED"));
    signal(&stopped, "CONT");
    let mut answer = String::new();
    while let Some(line) = lines.next_line().await.expect("its output") {
        if line == "end" {
            break;
        }
        answer.push_str(&line);
        answer.push('\n');
    }
    assert!(answer.starts_with("HTTP/1.1 409"), "{answer}");
    assert!(answer.contains(r#""code":"lease_lost""#), "the lease refused it, nothing else: {answer}");
    assert!(answer.contains(r#""ack":true"#), "its attempt is closed: {answer}");
    assert_eq!(job(&server, &job_id).await, before, "a refused report changes nothing");
}

#[tokio::test]
async fn campaign_a_worker_stopped_past_its_lease_is_refused_on_sqlite() {
    run(None).await;
}

#[tokio::test]
async fn campaign_a_worker_stopped_past_its_lease_is_refused_on_postgres() {
    let database = fresh_database::fresh_database().await;
    run(Some(&database.url())).await;
}

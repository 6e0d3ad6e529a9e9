//! Ten times the jobs that the machine can take: producers are told to come back, workers do not notice, and whatever was
//! acknowledged is there.

use crate::campaign::{Server, Target};
use crate::fresh_database;
use crate::hostile::Pulse;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, timeout};

const MANY: usize = 1_000;
const MEASURE: Duration = Duration::from_secs(1);
const FLOOD: Duration = Duration::from_secs(5);
/// A call without an answer for so long hangs.
const HANGS: Duration = Duration::from_secs(60);
/// Calls that are open at once; each is a connection. With 4,000 of them a debug build on two busy cores still kept
/// heartbeats waiting for 1 to 5 s: every ready connection has its turn before a report is woken.
const OPEN_MAX: usize = 500;

/// Connections that are open and unused, and the two requests that are sent on them.
struct Producers {
    target: Target,
    idle: Mutex<Vec<TcpStream>>,
    one: String,
    many: String,
}

/// What a call was answered with.
struct Answered {
    status: u16,
    retry_after: bool,
}

impl Producers {
    fn new(target: &Target) -> Arc<Self> {
        let job = json!({ "stream": "flood", "payload": { "n": 1 } });
        let request = |body: &Value| {
            let body = body.to_string();
            format!(
                "POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
                 content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                target.operator,
                body.len()
            )
        };
        let (one, many) = (request(&job), request(&json!(vec![job; MANY])));
        Arc::new(Self { target: target.clone(), idle: Mutex::default(), one, many })
    }

    async fn enqueue(&self, many: bool) -> io::Result<Answered> {
        let kept = self.idle.lock().expect("not poisoned").pop();
        let mut stream = match kept {
            Some(stream) => stream,
            None => TcpStream::connect(self.target.address()).await?,
        };
        let request = if many { &self.many } else { &self.one };
        stream.write_all(request.as_bytes()).await?;
        let mut text = Vec::with_capacity(4096);
        let head = loop {
            if let Some(end) = text.windows(4).position(|four| four == b"\r\n\r\n") {
                break String::from_utf8_lossy(&text[..end]).into_owned();
            }
            if stream.read_buf(&mut text).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        };
        let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
        let length: usize = field("content-length: ").and_then(|value| value.parse().ok()).expect("a length");
        let whole = head.len() + 4 + length;
        while text.len() < whole {
            if stream.read_buf(&mut text).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        self.idle.lock().expect("not poisoned").push(stream);
        let status = head[9..12].parse().expect("a status");
        Ok(Answered { status, retry_after: field("retry-after: ").is_some() })
    }

    /// Jobs a second that a few producers get in, who wait for each answer.
    async fn capacity(self: &Arc<Self>) -> usize {
        let start = Instant::now();
        let mut producers = JoinSet::new();
        for _ in 0..8 {
            let this = self.clone();
            producers.spawn(async move {
                let mut jobs = 0;
                while start.elapsed() < MEASURE {
                    assert_eq!(this.enqueue(true).await.expect("answered").status, 201);
                    jobs += MANY;
                }
                jobs
            });
        }
        let jobs: usize = producers.join_all().await.into_iter().sum();
        jobs
    }
}

#[tokio::test]
async fn campaign_a_flood_of_jobs_is_turned_away_and_healthy_workers_do_not_notice_on_sqlite() {
    flood(None).await;
}

#[tokio::test]
async fn campaign_a_flood_of_jobs_is_turned_away_and_healthy_workers_do_not_notice_on_postgres() {
    let database = fresh_database::fresh_database().await;
    flood(Some(&database.url())).await;
}

async fn flood(database: Option<&str>) {
    let server = Server::start(database, &[]).await;
    let producers = Producers::new(&server.target);
    let before = producers.capacity().await;
    let a_second = 10 * before / usize::try_from(MEASURE.as_secs()).expect("small");
    let pulse = Pulse::start(&server).await;

    let (mut calls, mut offered, mut n) = (JoinSet::new(), 0, 0_usize);
    let mut answers: BTreeMap<u16, usize> = BTreeMap::new();
    let mut acknowledged = before;
    let mut slowest = Duration::ZERO;
    let mut count = |(many, took, answered): (bool, Duration, Answered)| {
        *answers.entry(answered.status).or_default() += 1;
        slowest = slowest.max(took);
        match answered.status {
            201 => acknowledged += if many { MANY } else { 1 },
            429 | 503 => assert!(answered.retry_after, "{} without Retry-After", answered.status),
            other => panic!("a good job was answered {other}"),
        }
    };
    let start = Instant::now();
    let mut clock = interval(Duration::from_millis(5));
    while start.elapsed() < FLOOD {
        clock.tick().await;
        let due = a_second as f64 * start.elapsed().as_secs_f64();
        while (offered as f64) < due && calls.len() < OPEN_MAX {
            let many = n % 2 == 0;
            n += 1;
            offered += if many { MANY } else { 1 };
            let producers = producers.clone();
            calls.spawn(async move {
                let start = Instant::now();
                let answered = timeout(HANGS, producers.enqueue(many)).await.expect("no call hangs");
                (many, start.elapsed(), answered.expect("every call is answered"))
            });
        }
        while let Some(call) = calls.try_join_next() {
            count(call.expect("a call"));
        }
    }
    while let Some(call) = calls.join_next().await {
        count(call.expect("a call"));
    }
    let mib = server.peak_bytes() >> 20;
    println!(
        "{before} jobs/s fit, {a_second} were meant, {offered} offered in {n} calls: {answers:?}, slowest {slowest:?}, \
         {mib} MiB"
    );
    assert!(answers.contains_key(&503), "this was no flood: {answers:?}");
    let beats = pulse.stop();
    assert!(beats.answered > 50, "{beats:?}");
    assert!(mib < 400, "{mib} MiB");
    let (_, stream) = server
        .target
        .call(&server.target.operator, "GET", "/v1/streams/flood", &Value::Null)
        .await
        .expect("answered");
    assert_eq!(stream["ready"], json!(acknowledged), "what was acknowledged, and nothing else: {stream}");
}

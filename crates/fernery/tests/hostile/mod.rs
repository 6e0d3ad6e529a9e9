//! Healthy workers beside whatever else happens to the server: each holds a job and goes on heartbeating.
#![allow(dead_code, reason = "every test file uses a part of it")]

use super::campaign::Server;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Within this, every heartbeat of a healthy worker is answered, whoever else calls.
const BEAT_MAX: Duration = Duration::from_secs(1);
const BEAT_EVERY: Duration = Duration::from_millis(20);
const WORKERS: usize = 3;

/// The workers. Each has a thread and a connection of its own, so that what is measured is the server and not the
/// runtime that attacks it.
pub(crate) struct Pulse {
    threads: Vec<(Sender<()>, JoinHandle<Vec<Duration>>)>,
}

/// How the workers fared.
#[derive(Debug)]
pub(crate) struct Beats {
    pub(crate) answered: usize,
    pub(crate) median: Duration,
    pub(crate) slowest: Duration,
}

impl Pulse {
    /// Gives each worker a job and lets it beat.
    pub(crate) async fn start(server: &Server) -> Self {
        let target = &server.target;
        let jobs = vec![json!({ "stream": "held", "payload": {} }); WORKERS];
        let (status, _) =
            target.call(&target.operator, "POST", "/v1/jobs", &json!(jobs)).await.expect("answered");
        assert_eq!(status, 201);
        let mut threads = Vec::new();
        for _ in 0..WORKERS {
            let claim = json!({ "worker_id": "w", "streams": ["held"], "max_wait_ms": 0 });
            let claimed = target.call(&target.worker, "POST", "/internal/worker/claim", &claim).await;
            let (_, job) = claimed.expect("answered");
            let (stop, stopped) = channel();
            let (address, request) = (target.address(), beat_request(&target.worker, &job));
            let thread = std::thread::spawn(move || {
                let mut beats = Vec::new();
                let mut stream = connect(address);
                while stopped.recv_timeout(BEAT_EVERY) == Err(RecvTimeoutError::Timeout) {
                    let start = fernery_engine::door::stop_watch();
                    let status = exchange(&mut stream, &request);
                    assert_eq!(status, 200, "after {:?}", start.elapsed());
                    beats.push(start.elapsed());
                }
                beats
            });
            threads.push((stop, thread));
        }
        Self { threads }
    }

    /// Ends them. Every beat must have been answered in time.
    pub(crate) fn stop(self) -> Beats {
        let (stops, threads): (Vec<_>, Vec<_>) = self.threads.into_iter().unzip();
        drop(stops);
        let beats = threads.into_iter().map(|thread| thread.join().expect("every heartbeat is answered 200"));
        let mut all: Vec<Duration> = beats.flatten().collect();
        all.sort_unstable();
        let (median, slowest) = (all[all.len() / 2], *all.last().expect("a beat"));
        let beats = Beats { answered: all.len(), median, slowest };
        println!("{beats:?}");
        assert!(beats.slowest < BEAT_MAX, "{beats:?}");
        beats
    }
}

fn beat_request(token: &str, job: &Value) -> String {
    let body =
        json!({ "worker_id": "w", "job_id": job["job_id"], "lease_token": job["lease_token"] }).to_string();
    format!(
        "POST /internal/worker/heartbeat HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn connect(address: SocketAddr) -> BufReader<TcpStream> {
    let stream = TcpStream::connect(address).expect("connected");
    stream.set_nodelay(true).expect("set");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
    BufReader::new(stream)
}

fn exchange(stream: &mut BufReader<TcpStream>, request: &str) -> u16 {
    stream.get_mut().write_all(request.as_bytes()).expect("sent");
    let (mut status, mut length) = (0, 0);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).expect("an answer");
        match line.trim_end().split_once(' ') {
            Some(("HTTP/1.1", rest)) => status = rest[..3].parse().expect("a status"),
            Some(("content-length:", value)) => length = value.parse().expect("a length"),
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).expect("the whole answer");
    status
}

//! Healthy workers beside whatever else happens to the server: each holds a job and goes on heartbeating.

mod connections;
mod flood;
mod framing;

use crate::campaign::Server;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Within this a heartbeat of a healthy worker is answered, whoever else calls. What a beat takes beyond it is lateness.
const BEAT_GOOD: Duration = Duration::from_secs(1);
/// How much of the workers' time may be lateness, on a machine that others use too. By time and not by beats: a worker beats
/// one at a time, so a stall of many seconds is one slow beat among a thousand.
const LATE_PERCENT_MAX: u32 = 5;
/// The same for a run of a few seconds, in which one pause of the machine is more than that.
const LATE_MAX: Duration = Duration::from_secs(2);
/// Within this every beat is answered.
const BEAT_MAX: Duration = Duration::from_secs(5);
/// A worker that waits for so long gives up.
const PATIENCE: Duration = Duration::from_secs(60);
const BEAT_EVERY: Duration = Duration::from_millis(20);
const WORKERS: usize = 3;

/// The workers. Each has a thread and a connection of its own, so that what is measured is the server and not the
/// runtime that attacks it.
pub(crate) struct Pulse {
    threads: Vec<(Sender<()>, JoinHandle<Run>)>,
}

/// What each beat of a worker took, and all of them with the pauses between them.
struct Run {
    beats: Vec<Duration>,
    took: Duration,
}

/// How the workers fared.
#[derive(Debug)]
pub(crate) struct Beats {
    pub(crate) answered: usize,
    median: Duration,
    slowest: Duration,
    /// The sum of what beats took beyond [`BEAT_GOOD`].
    late: Duration,
    /// The time of all workers together.
    run: Duration,
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
                let since = fernery_engine::door::stop_watch();
                while stopped.recv_timeout(BEAT_EVERY) == Err(RecvTimeoutError::Timeout) {
                    let start = fernery_engine::door::stop_watch();
                    let status = exchange(&mut stream, &request);
                    assert_eq!(status, 200, "after {:?}", start.elapsed());
                    beats.push(start.elapsed());
                }
                Run { beats, took: since.elapsed() }
            });
            threads.push((stop, thread));
        }
        Self { threads }
    }

    /// Ends them. Every beat must have been answered in time.
    pub(crate) fn stop(self) -> Beats {
        let (stops, threads): (Vec<_>, Vec<_>) = self.threads.into_iter().unzip();
        drop(stops);
        let runs = threads.into_iter().map(|thread| thread.join().expect("every heartbeat is answered 200"));
        let beats = Beats::of(&runs.collect::<Vec<_>>());
        println!("{beats:?}");
        assert!(beats.in_time(), "{beats:?}");
        beats
    }
}

impl Beats {
    fn of(runs: &[Run]) -> Self {
        let mut all: Vec<Duration> = runs.iter().flat_map(|run| run.beats.iter().copied()).collect();
        all.sort_unstable();
        Self {
            answered: all.len(),
            median: all[all.len() / 2],
            slowest: *all.last().expect("a beat"),
            late: all.iter().map(|beat| beat.saturating_sub(BEAT_GOOD)).sum(),
            run: runs.iter().map(|run| run.took).sum(),
        }
    }

    fn in_time(&self) -> bool {
        let late_max = LATE_MAX.max(self.run * LATE_PERCENT_MAX / 100);
        self.median < BEAT_GOOD && self.slowest < BEAT_MAX && self.late < late_max
    }
}

#[test]
fn a_stall_is_found_among_many_quick_beats() {
    let run = |slow: &[f64]| {
        let slow = slow.iter().map(|seconds| Duration::from_secs_f64(*seconds));
        let beats: Vec<_> = vec![Duration::from_millis(5); 1_000].into_iter().chain(slow).collect();
        let took = beats.iter().sum::<Duration>() + BEAT_EVERY * beats.len() as u32;
        Run { beats, took }
    };
    assert!(Beats::of(&[run(&[]), run(&[0.9, 1.5]), run(&[])]).in_time());
    assert!(!Beats::of(&[run(&[]), run(&[5.5]), run(&[])]).in_time(), "one that is far too slow");
    assert!(!Beats::of(&[run(&[3.0]), run(&[3.0]), run(&[3.0])]).in_time(), "all stand still");
    let slow = || Run { beats: vec![BEAT_GOOD * 101 / 100; 100], took: BEAT_GOOD * 103 };
    assert!(!Beats::of(&[slow(), slow(), slow()]).in_time(), "nearly every one is late");
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
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
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

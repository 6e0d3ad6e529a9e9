//! A server that can be killed and comes back at the same address, and workers beside it that can be killed too.

use crate::port::Port;
use crate::processes::Mark;
use fernery_client::{Client, ClientError};
use fernery_core::JobId;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

/// Nothing that a test waits for takes longer unless it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// A lease of this length, for tests in which one runs out.
pub(crate) const SHORT_LEASE: [&str; 6] =
    ["--lease-ttl", "1s", "--heartbeat-interval", "200ms", "--reap-interval", "100ms"];
/// For tests that measure whether a job outlives its lease. What is left of this lease when trust ends is more than a busy
/// machine needs to end some processes.
pub(crate) const MEASURED_LEASE: Duration = Duration::from_secs(12);
pub(crate) const MEASURED_LEASE_FLAGS: [&str; 6] =
    ["--lease-ttl", "12s", "--heartbeat-interval", "500ms", "--reap-interval", "100ms"];
/// Heartbeats that come soon, and a lease that outlasts a busy machine.
pub(crate) const QUICK_BEATS: [&str; 4] = ["--lease-ttl", "10s", "--heartbeat-interval", "100ms"];

/// The program with nothing of the tester's own environment that it would read.
pub(crate) fn fernery() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fernery"));
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|n| n.starts_with("FERNERY_")) {
            command.env_remove(name);
        }
    }
    command.env("NO_COLOR", "1").stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// A server with a directory of its own.
pub(crate) struct Workshop {
    pub(crate) dir: TempDir,
    port: Port,
    flags: Vec<String>,
    server: Option<Child>,
}

impl Workshop {
    /// One that does not run yet.
    pub(crate) fn closed(flags: &[&str]) -> Self {
        let flags = flags.iter().map(ToString::to_string).collect();
        Self { dir: tempfile::tempdir().unwrap(), port: Port::reserve(), flags, server: None }
    }

    pub(crate) async fn open(flags: &[&str]) -> Self {
        let mut workshop = Self::closed(flags);
        workshop.up().await;
        workshop
    }

    /// Starts the server, again if need be, and waits until it serves.
    pub(crate) async fn up(&mut self) {
        let mut command = fernery();
        command.current_dir(self.dir.path()).args(["up", "--listen", &self.port.address()]).args(&self.flags);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("started");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = timeout(PATIENCE, lines.next_line()).await.expect("it starts").unwrap();
        assert!(line.is_some_and(|line| line.starts_with("listening on ")), "the server did not start");
        self.server = Some(child);
    }

    /// `kill -9`, without a warning.
    pub(crate) async fn down(&mut self) {
        if let Some(mut server) = self.server.take() {
            server.kill().await.expect("killed");
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.port.address())
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.dir.path().join(".fernery")
    }

    pub(crate) fn token(&self, file: &str) -> String {
        std::fs::read_to_string(self.data().join(file)).expect("a token file").trim().to_string()
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(&self.url(), Some(&self.token("operator.token")), None).unwrap()
    }

    /// Stores jobs; each has the payload `{"n": …}` unless the fields say otherwise.
    pub(crate) async fn enqueue_many(&self, stream: &str, fields: Vec<Value>) -> Vec<JobId> {
        let jobs: Vec<Value> = fields
            .into_iter()
            .enumerate()
            .map(|(n, fields)| {
                let mut job = json!({"stream": stream, "payload": {"n": n}});
                job.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
                job
            })
            .collect();
        let reply = self.client().post_jobs(&jobs).await.expect("stored").read().unwrap();
        reply.jobs.iter().map(|job| job.job_id.expect("stored")).collect()
    }

    pub(crate) async fn enqueue(&self, stream: &str, fields: Value) -> JobId {
        self.enqueue_many(stream, vec![fields]).await[0]
    }

    /// Waits for the end of a job, also over deaths of the server.
    pub(crate) async fn ended(&self, id: JobId) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let reply = self.client().job(id, Duration::from_secs(2)).await;
            let job = match reply {
                Ok(reply) => serde_json::from_slice::<Value>(&reply.body).unwrap(),
                Err(ClientError::Refused { problem, .. }) => panic!("{problem:?}"),
                Err(_) => json!({"status": "unknown"}),
            };
            if ["SUCCEEDED", "DEAD", "CANCELLED"].contains(&job["status"].as_str().unwrap()) {
                return job;
            }
            assert!(Instant::now() < until, "it does not end: {job}");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until a job has this status.
    pub(crate) async fn becomes(&self, id: JobId, status: &str) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let job: Value =
                serde_json::from_slice(&self.client().job(id, Duration::ZERO).await.unwrap().body).unwrap();
            if job["status"] == status {
                return job;
            }
            assert!(Instant::now() < until, "not {status}: {job}");
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// A worker on this stream that runs a script for each job.
    pub(crate) fn worker(&self, stream: &str, flags: &[&str], script: &str) -> Worker {
        let mut command = fernery();
        command.current_dir(self.dir.path()).args(["worker", "--json", "--stream", stream]).args(flags);
        command.args(["--", "sh", "-c", script]);
        Worker::start(command)
    }
}

/// The outcomes of a job's attempts, in order.
pub(crate) fn outcomes(job: &Value) -> Vec<&str> {
    job["attempts"].as_array().unwrap().iter().map(|a| a["outcome"].as_str().unwrap_or("OPEN")).collect()
}

/// A worker and what it tells.
pub(crate) struct Worker {
    child: Child,
    pub(crate) mark: Mark,
    events: Arc<(Mutex<Vec<Value>>, Notify)>,
    stderr: Arc<Mutex<String>>,
    /// What reads both until nobody writes any more.
    readers: Vec<JoinHandle<()>>,
}

impl Worker {
    /// Starts it; everything that it starts bears its mark.
    pub(crate) fn start(mut command: Command) -> Self {
        let mark = Mark::new("WORKER_TEST_MARK");
        command.env(mark.name(), mark.value());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
        let events = Arc::new((Mutex::new(Vec::new()), Notify::new()));
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let told = events.clone();
        let stdout_reader = tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                let event = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
                told.0.lock().unwrap().push(event);
                told.1.notify_waiters();
            }
        });
        let stderr = Arc::new(Mutex::new(String::new()));
        let (mut pipe, kept) = (child.stderr.take().unwrap(), stderr.clone());
        let stderr_reader = tokio::spawn(async move {
            let mut bytes = vec![0; 4_096];
            while let Ok(n @ 1..) = pipe.read(&mut bytes).await {
                kept.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..n]));
            }
        });
        Self { child, mark, events, stderr, readers: vec![stdout_reader, stderr_reader] }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    pub(crate) fn events(&self) -> Vec<Value> {
        self.events.0.lock().unwrap().clone()
    }

    /// Waits until it has told of so many such events.
    pub(crate) async fn tells(&self, count: usize, what: impl Fn(&Value) -> bool) {
        let waiting = async {
            loop {
                let news = self.events.1.notified();
                if self.events().iter().filter(|event| what(event)).count() >= count {
                    return;
                }
                news.await;
            }
        };
        if timeout(PATIENCE, waiting).await.is_err() {
            panic!("not told: {:#?}\n{}", self.events(), self.stderr.lock().unwrap());
        }
    }

    /// Waits until it has told of one event of this name.
    pub(crate) async fn tells_of(&self, name: &str) {
        self.tells(1, |event| event["event"] == name).await;
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.pid() as i32).unwrap(), signal).unwrap();
    }

    /// `kill -9`, without a warning.
    pub(crate) async fn kill(&mut self) {
        self.child.kill().await.expect("killed");
    }

    /// Waits for the end of the process alone.
    pub(crate) async fn exited(&mut self) -> ExitStatus {
        match timeout(PATIENCE, self.child.wait()).await {
            Ok(status) => status.unwrap(),
            Err(_) => panic!("it does not end: {:#?}", self.events()),
        }
    }

    /// Waits for its end, and for that of everything that it has started.
    pub(crate) async fn ended(mut self) -> (ExitStatus, Vec<Value>) {
        let status = self.exited().await;
        self.mark.gone_within(PATIENCE).await;
        for reader in self.readers.drain(..) {
            timeout(PATIENCE, reader).await.expect("nobody writes any more").expect("what it tells is JSON");
        }
        assert!(!self.stderr.lock().unwrap().contains("panicked"), "{}", self.stderr.lock().unwrap());
        (status, self.events())
    }

    /// Its jobs' processes: all that bear its mark, without itself and its guards.
    pub(crate) fn job_processes(&self) -> Vec<String> {
        let lines = self.mark.bearers().into_iter().map(|p| p.command_line);
        lines
            .filter(|line| !line.starts_with("fernery worker-guard") && !line.contains("/fernery worker "))
            .collect()
    }

    /// Waits until no process of any of its jobs is left.
    pub(crate) async fn jobs_gone_within(&self, within: Duration) {
        let until = Instant::now() + within;
        loop {
            let left = self.job_processes();
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < until, "left after {within:?}: {left:?}");
            sleep(Duration::from_millis(5)).await;
        }
    }
}

/// A loop for a shell: it says again and again that it lives, by lines of job, attempt and seconds of
/// [`crate::processes::uptime`].
pub(crate) const TICK: &str = "while read now rest </proc/uptime; do \
                               echo $FERNERY_JOB_ID $FERNERY_JOB_ATTEMPT_NO $now; sleep 0.03; done";

/// The first and the last time at which each attempt of each job said that it lives.
pub(crate) type Lives = HashMap<String, BTreeMap<u32, (f64, f64)>>;

/// Reads the lines of [`TICK`].
pub(crate) fn lives(lines: &[String]) -> Lives {
    let mut lives = Lives::new();
    for line in lines {
        let [job, attempt, at] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let at: f64 = at.parse().unwrap();
        let of_job = lives.entry(job.to_string()).or_default();
        let life = of_job.entry(attempt.parse().unwrap()).or_insert((at, at));
        *life = (life.0.min(at), life.1.max(at));
    }
    lives
}

/// Waits until the first attempts of so many jobs have said that they live.
pub(crate) async fn live(path: &Path, jobs: usize) {
    let until = Instant::now() + PATIENCE;
    while lives(&lines_of(path)).len() < jobs {
        assert!(Instant::now() < until, "{jobs} jobs do not begin");
        sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until this job has said that it lives.
pub(crate) async fn lives_of(path: &Path, job: &str) {
    let until = Instant::now() + PATIENCE;
    while !lives(&lines_of(path)).contains_key(job) {
        assert!(Instant::now() < until, "{job} does not begin");
        sleep(Duration::from_millis(5)).await;
    }
}

/// Every first attempt ended before its lease did. No lease was renewed after `silent_at`. Each attempt was alive at that
/// time: one that ends before it proves nothing.
#[track_caller]
pub(crate) fn none_outlives_its_lease(path: &Path, silent_at: f64, jobs: usize) {
    let lives = lives(&lines_of(path));
    assert_eq!(lives.len(), jobs, "{lives:?}");
    for (job, attempts) in &lives {
        let lived = attempts[&1].1 - silent_at;
        println!("{job} lived for {lived:.2} s of a lease of {MEASURED_LEASE:?}");
        assert!(lived > 0.0, "{job} had ended before: {lived:.2} s");
        assert!(lived < MEASURED_LEASE.as_secs_f64(), "{job} lived for {lived:.2} s without a renewal");
    }
}

/// The lines of a file, none if it is not there.
pub(crate) fn lines_of(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_string).collect()
}

/// Waits until a file is there.
pub(crate) async fn appears(path: &Path) {
    let until = Instant::now() + PATIENCE;
    while !path.exists() {
        assert!(Instant::now() < until, "{} does not appear", path.display());
        sleep(Duration::from_millis(5)).await;
    }
}

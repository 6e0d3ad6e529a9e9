//! The Python worker of the first guide, where it has to be more than fair weather.

use super::pages::block;
use super::port::Port;
use super::program::Server;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tempfile::TempDir;

/// The worker as a process, killed when it is dropped.
struct Worker {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Worker {
    fn start(dir: &Path) -> Self {
        std::fs::write(dir.join("worker.py"), block("first-queue.md", "first-queue:worker.py")).unwrap();
        let mut command = Command::new("python3");
        command.arg("worker.py").current_dir(dir).stdout(Stdio::piped());
        command.env_remove("FERNERY_URL").env_remove("FERNERY_TOKEN");
        let mut child = command.spawn().expect("python3 is needed: apt-get install python3");
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdout }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A file that is read only as fast as the test writes it, and its job.
fn slow_job(server: &Server, name: &str) -> String {
    let path = server.dir.path().join(name);
    mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    enqueue(server, name)
}

fn enqueue(server: &Server, file: &str) -> String {
    let body = json!({"stream": "words", "payload": {"file": file}});
    let (status, job) = server.post("operator.token", "/v1/jobs", &body);
    assert_eq!(status, 201, "{job}");
    job["job_id"].as_str().unwrap().to_string()
}

/// Waits until the worker reads this file.
fn being_read(dir: &Path, name: &str) -> File {
    OpenOptions::new().write(true).open(dir.join(name)).unwrap()
}

fn end_of(server: &Server, job_id: &str) -> Value {
    let (status, job) = server.read(&format!("/v1/jobs/{job_id}?wait_ms=60000"));
    assert_eq!(status, 200, "{job}");
    job
}

#[test]
fn a_report_whose_answer_was_lost_with_the_server_is_repeated_to_the_next_one() {
    let port = Port::reserve();
    let server = Server::start_at(&port.address(), tempfile::tempdir().unwrap(), &[]);
    let job_id = slow_job(&server, "slow.txt");
    let mut worker = Worker::start(server.dir.path());
    let mut words = being_read(server.dir.path(), "slow.txt");
    server.signal(Signal::KILL);
    let (_, dir) = server.ended();

    // Somebody takes the report and says nothing, as a server does that dies before its commit.
    let silent = TcpListener::bind(port.address()).unwrap();
    words.write_all(b"four words of text").unwrap();
    drop(words);
    loop {
        let (mut call, _) = silent.accept().unwrap();
        let mut begin = [0; 30];
        call.read_exact(&mut begin).unwrap();
        if begin.starts_with(b"POST /internal/worker/complete") {
            break;
        }
    }
    drop(silent);

    let server = Server::start_at(&port.address(), dir, &[]);
    let job = end_of(&server, &job_id);
    assert_eq!((&job["status"], &job["result"]), (&json!("SUCCEEDED"), &json!({"words": 4})), "{job}");
    assert_eq!(job["attempts"].as_array().unwrap().len(), 1, "{job}");
    assert!(worker.line().contains("complete 200"), "it knows that it was heard");
}

#[test]
fn a_worker_that_lost_its_lease_reports_nothing_and_goes_on_with_the_next_job() {
    let server = Server::start(&["--lease-ttl", "3s"]);
    let taken = slow_job(&server, "slow.txt");
    let mut worker = Worker::start(server.dir.path());
    let words = being_read(server.dir.path(), "slow.txt");
    server.run(["job", "cancel", "--force", &taken]).exits(0);
    assert!(worker.line().contains("lease lost"), "the next heartbeat is refused");
    drop(words);

    std::fs::write(server.dir.path().join("next.txt"), "one two").unwrap();
    let next = enqueue(&server, "next.txt");
    assert_eq!(end_of(&server, &next)["result"], json!({"words": 2}));
    assert_eq!(end_of(&server, &taken)["status"], "CANCELLED");
    let metrics = server.get("/metrics");
    let reports: Vec<_> = metrics.lines().filter(|line| line.contains("/internal/worker/complete")).collect();
    assert_eq!(reports.len(), 1, "{reports:?}");
    assert!(reports[0].ends_with("status=\"200\"} 1"), "{reports:?}");
}

/// Somebody who gives one job away, takes no report of it, and answers heartbeats with this status.
struct Deaf {
    dir: TempDir,
    /// One for each report that came.
    reports: Receiver<()>,
}

impl Deaf {
    fn start(heartbeat: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join(".fernery");
        std::fs::create_dir(&data).unwrap();
        std::fs::write(data.join("url"), format!("http://{}", listener.local_addr().unwrap())).unwrap();
        std::fs::write(data.join("worker.token"), "t").unwrap();
        std::fs::write(dir.path().join("words.txt"), "one two").unwrap();
        let (reported, reports) = channel();
        let mut given = false;
        // Ends with the test's process; nobody calls it after its worker is gone.
        std::thread::spawn(move || {
            for call in listener.incoming() {
                let mut call = call.unwrap();
                let path = request_path(&mut call);
                let (status, body) = match path.rsplit('/').next().unwrap() {
                    "claim" if !std::mem::replace(&mut given, true) => (200, job()),
                    "claim" => (200, json!({"claimed": false})),
                    "heartbeat" => (heartbeat, json!({"ok": heartbeat == 200, "cancel_requested": false})),
                    _ => {
                        let _ = reported.send(());
                        (503, json!({}))
                    }
                };
                let body = body.to_string();
                let head =
                    format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}", body.len());
                let _ = call.write_all(format!("{head}\r\n\r\n{body}").as_bytes());
            }
        });
        Self { dir, reports }
    }
}

fn job() -> Value {
    let id = "019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f";
    json!({"claimed": true, "job_id": id, "attempt_id": id, "lease_token": id, "stream": "words", "message_id": "1-0",
           "payload": {"file": "words.txt"}, "heartbeat_interval_ms": 500, "lease_ttl_seconds": 60})
}

/// Reads a whole request.
fn request_path(call: &mut std::net::TcpStream) -> String {
    let mut lines = BufReader::new(call);
    let (mut first, mut length) = (String::new(), 0);
    lines.read_line(&mut first).unwrap();
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        if let Some(told) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = told.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    lines.read_exact(&mut vec![0; length]).unwrap();
    first.split(' ').nth(1).unwrap_or_default().to_string()
}

#[test]
fn a_report_that_nobody_takes_ends_with_its_lease() {
    let deaf = Deaf::start(409);
    let mut worker = Worker::start(deaf.dir.path());
    assert!(worker.line().contains("lease lost"));
    assert!(deaf.reports.try_iter().count() > 0, "it has tried");
    assert!(worker.line().contains("complete 0 not reported"));
    assert!(deaf.reports.try_iter().count() <= 1, "one may have been on its way");
}

#[test]
fn a_worker_that_is_told_to_end_does_not_report_for_ever() {
    let deaf = Deaf::start(200);
    let mut worker = Worker::start(deaf.dir.path());
    deaf.reports.recv_timeout(Duration::from_secs(30)).expect("it reports");
    let pid = rustix::process::Pid::from_child(&worker.child);
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    assert!(worker.line().contains("complete 0 not reported"));
    assert!(worker.child.wait().unwrap().success());
}

//! The Python worker of the first guide, where it has to be more than fair weather.

use super::pages::block;
use super::program::Server;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

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
    let server = Server::start(&[]);
    let job_id = slow_job(&server, "slow.txt");
    let mut worker = Worker::start(server.dir.path());
    let mut words = being_read(server.dir.path(), "slow.txt");
    let address = server.url.strip_prefix("http://").unwrap().to_string();
    server.signal(Signal::KILL);
    let (_, dir) = server.ended();

    // Somebody takes the report and says nothing, as a server does that dies before its commit.
    let silent = TcpListener::bind(&address).unwrap();
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

    let server = Server::start_at(&address, dir, &[]);
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

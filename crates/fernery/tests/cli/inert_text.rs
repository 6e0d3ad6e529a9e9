//! H66, C14: what others wrote into names, payloads and errors is shown, and obeyed by nobody: neither by a terminal nor
//! by a browser.

use crate::program::{Answer, Server, fernery, run_in};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

/// Clears a screen, colours it, reorders what follows, rings, hides, and is a page.
const NASTY: &str = "<script>alert(1)</script>\u{1b}[2J\u{9b}31m\u{202e}\u{2066}\u{61c}\u{200f}\u{206a}\u{fff9}\u{7}\r\u{8}gone";
/// What of it may stand in a name.
const NASTY_NAME: &str = "<b onclick='alert(1)'>gone";

/// Every character that a terminal or a bidirectional layout acts upon, written down once more on purpose.
fn inert(c: char) -> bool {
    let acts = matches!(c as u32,
        0x0..=0x9 | 0xb..=0x1f | 0x7f..=0x9f | 0x61c | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f
        | 0xfeff | 0xfff9..=0xfffb);
    !acts
}

#[track_caller]
fn assert_inert(answer: &Answer) {
    for text in [&answer.stdout, &answer.stderr] {
        assert!(text.chars().all(inert), "{text:?}");
    }
}

/// A server with a dead job that has nasty text wherever a producer, a worker or an operator may put it.
fn server_with_nasty_text() -> (Server, String) {
    let server = Server::start(&[]);
    let job = json!({"stream": "s", "payload": {"x": NASTY}, "unique_key": NASTY_NAME});
    let (status, job) = server.post("operator.token", "/v1/jobs", &job);
    assert_eq!(status, 201, "{job}");
    let claim = json!({"worker_id": NASTY_NAME, "streams": ["s"], "max_wait_ms": 0});
    let (_, claimed) = server.post("worker.token", "/internal/worker/claim", &claim);
    let failed = json!({
        "worker_id": NASTY_NAME, "job_id": claimed["job_id"], "attempt_id": claimed["attempt_id"],
        "lease_token": claimed["lease_token"],
        "error": {"code": NASTY, "message": NASTY, "stack": NASTY, "retryable": false},
    });
    let (status, answer) = server.post("worker.token", "/internal/worker/fail", &failed);
    assert_eq!(status, 200, "{answer}");
    let token = json!({"role": "viewer", "name": NASTY_NAME});
    let (status, answer) = server.post("operator.token", "/v1/tokens", &token);
    assert_eq!(status, 201, "{answer}");
    (server, job["job_id"].as_str().unwrap().to_string())
}

#[test]
fn foreign_text_is_shown_without_control_characters() {
    let (server, id) = server_with_nasty_text();
    for args in [
        &["job", "list"][..],
        &["job", "show", &id],
        &["job", "explain", &id],
        &["dlq", "list"],
        &["stream", "list"],
        &["token", "list"],
    ] {
        let people = server.run(args).exits(0);
        assert_inert(&people);
        let programs = server.run(args.iter().chain(&["--json"])).exits(0);
        assert_inert(&programs);
        programs.json();
    }
    let shown = server.run(["job", "show", &id]).exits(0).stdout;
    assert!(shown.contains("<script>alert(1)</script>") && shown.contains("\\u{202e}"), "visible: {shown}");
    let job = server.run(["job", "show", &id, "--json"]).exits(0).json();
    assert_eq!(job["payload"]["x"], NASTY, "the same text for programs");
    assert_eq!(job["error"]["message"], NASTY);
    assert_eq!(job["attempts"][0]["worker_id"], NASTY_NAME);
}

/// No answer is ever taken for a page, whatever stands in it.
#[test]
fn markup_is_never_served_as_a_page() {
    let (server, id) = server_with_nasty_text();
    for (path, status, kind) in [
        (format!("/v1/jobs/{id}"), 200, "application/json"),
        ("/v1/dlq".to_string(), 200, "application/json"),
        ("/v1/tokens".to_string(), 200, "application/json"),
        ("/v1/jobs?%3Cscript%3E=1".to_string(), 422, "application/problem+json"),
    ] {
        let (head, body) = server.read_raw(&path);
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{path}: {head}");
        assert!(head.contains(&format!("content-type: {kind}\r\n")), "{path}: {head}");
        assert!(head.contains("x-content-type-options: nosniff\r\n"), "{path}: {head}");
        let _: Value = serde_json::from_str(&body).unwrap();
    }
}

/// Answers every request with this, as some other server would.
fn impostor(reply: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = BufReader::new(stream.try_clone().unwrap());
            let mut line = String::new();
            while head.read_line(&mut line).unwrap_or(0) > 2 {
                line.clear();
            }
            let _ = stream.write_all(reply.as_bytes());
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.read_to_end(&mut Vec::new());
        }
    });
    url
}

/// A server that is not ours, or no longer, may send what ours refuses to store.
#[test]
fn a_hostile_server_cannot_reach_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let id = "019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f";
    let odd = "fernery/\u{202e}\u{9b}31m";
    let told = json!({"job_id": id, "stream": "s", "status": "QUEUED", "code": NASTY, "sentence": NASTY});
    let problem = json!({"type": NASTY, "title": NASTY, "status": 422, "code": NASTY, "detail": NASTY});
    for (status, body, code) in
        [("200 OK", told.to_string(), 0), ("422 No", problem.to_string(), 1), ("200 OK", NASTY.into(), 1)]
    {
        let url = impostor(format!("HTTP/1.1 {status}\r\nServer: {odd}\r\nConnection: close\r\n\r\n{body}"));
        for args in [&["job", "explain", id][..], &["job", "explain", id, "--json"]] {
            let mut command = fernery();
            command.current_dir(dir.path()).env("FERNERY_URL", &url).env("FERNERY_TOKEN", "t").args(args);
            let answer: Answer = command.output().unwrap().into();
            let answer = answer.exits(code);
            assert_inert(&answer);
            assert!(!answer.stdout.is_empty() || !answer.stderr.is_empty(), "{answer:?}");
        }
    }
}

/// A configuration file may come with a repository that somebody else wrote.
#[test]
fn a_configuration_cannot_reach_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    for (text, code) in [
        ("data = \"\\u202E\\u0007\\u001B[2Jgone\"\n", 0),
        ("\"\\u202E\\u001B[2J\" = 1\n", 2),
        ("listen = \"\\u202E\\u001B[2J\"\n", 2),
        ("log_level = \"\\u202E\\u009B31m\"\n", 2),
        ("database = \"\\u202E\\u009B31m:x\"\n", 2),
    ] {
        std::fs::write(dir.path().join("fernery.toml"), text).unwrap();
        for args in [&["config"][..], &["config", "--json"]] {
            assert_inert(&run_in(dir.path(), args).exits(code));
        }
    }
}

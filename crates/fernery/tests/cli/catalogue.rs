//! The catalogue of bad calls, C1 to C16, as the program answers them. C14 is in `inert_text.rs`.

use crate::program::{Answer, Server, fernery, run_in};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A port on which nobody answers.
const NOBODY: &str = "http://127.0.0.1:1";

/// C1, C2, C3, C13: a call that can never work ends with 2, says why on stderr and nothing on stdout.
#[test]
fn a_wrong_call_is_answered_with_what_is_wrong() {
    for (number, args, said) in [
        ("C1", &["jobs"][..], "similar subcommand exists: 'job'"),
        ("C1", &["job", "enqeue"], "'enqueue'"),
        ("C1", &["job", "list", "--stats", "DEAD"], "'--status'"),
        ("C1", &["up", "--listn", "x"], "'--listen'"),
        ("C1", &["job", "show", "not-an-id"], "a job is named by its id"),
        ("C1", &["job", "list", "--status", "LOST"], "QUEUED, RUNNING"),
        ("C1", &["job", "list", "--limit", "0"], "a whole number from 1 on"),
        ("C1", &["job", "enqueue", "--stream", "a b"], "A-Z a-z 0-9"),
        ("C1", &["job", "enqueue", "--priority", "urgent"], "emergency, high, normal or low"),
        ("C1", &["job", "enqueue", "--stream", "s", "--delay", "5"], "500ms, 60s, 5m, 2h or 7d"),
        ("C1", &["job", "enqueue", "--stream", "s", "--run-at", "tomorrow"], "2026-11-15T09:30:00Z"),
        ("C1", &["job", "enqueue", "--stream", "s", "--max-attempts", "0"], "0 is not in 1..=1000"),
        ("C1", &["job", "enqueue", "--stream", "s", "--timeout", "1500ms"], "whole seconds"),
        ("C1", &["token", "new", "--role", "king"], "operator, worker, producer, viewer"),
        ("C1", &["schema", "check", "x.json", "--as", "run_recrod"], "'run_record'"),
        ("C1", &["schema", "show", "run_recrod"], "'run_record'"),
        ("C1", &["import", "x", "--digest", "abc"], "64 digits"),
        ("C2", &["import"], "<DIR>"),
        ("C2", &["schema", "check"], "<FILE>"),
        ("C2", &["azolla", "check"], "<FILE>"),
        ("C2", &["job", "show"], "<ID>"),
        ("C2", &["job", "enqueue", "--stream"], "a value is required"),
        ("C2", &["job", "enqueue"], "--stream"),
        ("C2", &["token", "new"], "--role"),
        ("C3", &["job", "enqueue", "--stream", "s", "--priority", "low"], "cannot be used with"),
        (
            "C3",
            &["job", "enqueue", "--stream", "s", "--payload", "{}", "--payload-file", "x"],
            "cannot be used with",
        ),
        (
            "C3",
            &["job", "enqueue", "--stream", "s", "--delay", "5s", "--run-at", "2026-11-15T09:30:00Z"],
            "cannot be used with",
        ),
        ("C3", &["job", "list", "--all", "--limit", "5"], "cannot be used with"),
        ("C3", &["up", "--url", NOBODY], "--listen"),
        ("C13", &["job", "list", "--token", "fern_s3cret"], "FERNERY_TOKEN"),
        ("C13", &["--token=fern_s3cret", "job", "list"], "FERNERY_TOKEN"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let answer = run_in(dir.path(), args).exits(2);
        assert_eq!(answer.stdout, "", "{number} {args:?}");
        assert!(answer.stderr.contains(said), "{number} {args:?}: {:?}", answer.stderr);
        assert!(!answer.stderr.contains("s3cret"), "{number} {args:?}: {:?}", answer.stderr);

        // C7
        let answer = run_in(dir.path(), args.iter().chain(&["--json"])).exits(2);
        assert_eq!(answer.stderr, "", "{number} {args:?}");
        assert_eq!(answer.json()["code"], "usage", "{number} {args:?}");
    }
}

#[test]
fn every_command_teaches_by_example() {
    let dir = tempfile::tempdir().unwrap();
    for args in [
        &["--help"][..],
        &["up", "--help"],
        &["config", "--help"],
        &["doctor", "--help"],
        &["backup", "--help"],
        &["completions", "--help"],
        &["man", "--help"],
        &["job", "enqueue", "--help"],
        &["job", "list", "--help"],
        &["job", "show", "--help"],
        &["job", "explain", "--help"],
        &["job", "cancel", "--help"],
        &["job", "retry", "--help"],
        &["ticket", "new", "--help"],
        &["ticket", "list", "--help"],
        &["ticket", "show", "--help"],
        &["ticket", "edit", "--help"],
        &["ticket", "approve", "--help"],
        &["ticket", "block", "--help"],
        &["ticket", "unblock", "--help"],
        &["ticket", "confirm", "--help"],
        &["ticket", "reopen", "--help"],
        &["ticket", "cancel", "--help"],
        &["run", "list", "--help"],
        &["run", "show", "--help"],
        &["run", "logs", "--help"],
        &["run", "diff", "--help"],
        &["trash", "list", "--help"],
        &["trash", "restore", "--help"],
        &["trash", "remove", "--help"],
        &["run", "replay", "--help"],
        &["pause", "list", "--help"],
        &["azolla", "list", "--help"],
        &["azolla", "show", "--help"],
        &["journal", "list", "--help"],
        &["verify", "--help"],
        &["export", "--help"],
        &["import", "--help"],
        &["dlq", "list", "--help"],
        &["dlq", "redrive", "--help"],
        &["dlq", "purge", "--help"],
        &["stream", "list", "--help"],
        &["stream", "pause", "--help"],
        &["stream", "resume", "--help"],
        &["process", "list", "--help"],
        &["token", "new", "--help"],
        &["token", "list", "--help"],
        &["token", "revoke", "--help"],
        &["azolla", "check", "--help"],
        &["agent", "list", "--help"],
        &["agent", "check", "--help"],
        &["agent", "show", "--help"],
        &["init", "--help"],
        &["mock-agent", "--help"],
        &["azolla", "show", "--help"],
        &["schema", "check", "--help"],
        &["schema", "list", "--help"],
        &["schema", "show", "--help"],
    ] {
        let answer = run_in(dir.path(), args).exits(0);
        assert!(answer.stdout.contains("Example") && answer.stdout.contains("  fernery "), "{args:?}");
        assert!(!answer.stdout.contains('\u{1b}'), "no colour where nobody looks: {args:?}");
    }
    let nothing = run_in::<&str>(dir.path(), []).exits(2);
    assert!(nothing.stderr.starts_with("A durable job engine"), "{nothing:?}");
}

/// C4: one line that names the server and the command that starts one.
#[test]
fn an_unreachable_server_is_told_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let answer = run_in(dir.path(), ["job", "list", "--url", NOBODY]).exits(1);
    assert_eq!(answer.stdout, "");
    assert_eq!(answer.stderr.lines().count(), 1, "{answer:?}");
    assert!(answer.stderr.contains(NOBODY) && answer.stderr.contains("`fernery up`"), "{answer:?}");
    let answer = run_in(dir.path(), ["job", "list", "--url", NOBODY, "--json"]).exits(1);
    assert_eq!((answer.json()["code"].as_str(), answer.stderr.as_str()), (Some("unreachable"), ""));
    let answer = run_in(dir.path(), ["job", "list"]).exits(1);
    assert_eq!(answer.stderr.lines().count(), 1, "{answer:?}");
    assert!(answer.stderr.contains(".fernery") && answer.stderr.contains("`fernery up`"), "{answer:?}");
    for bad in ["ftp://x", "127.0.0.1:8080", "http://", "http://u:s3cret@h", "http://h/path"] {
        let answer = run_in(dir.path(), ["job", "list", "--url", bad]).exits(2);
        assert!(!answer.stderr.contains("s3cret"), "{answer:?}");
    }
}

/// C10: bytes that are no UTF-8 are refused or work; they never end the program by surprise.
#[test]
fn arguments_that_are_not_utf8_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let odd = OsStr::from_bytes(b"caf\xe9");
    for args in [
        vec![odd],
        vec![OsStr::new("job"), OsStr::new("show"), odd],
        vec![OsStr::new("job"), OsStr::new("enqueue"), OsStr::new("--stream"), odd],
        vec![OsStr::new("up"), OsStr::new("--listen"), odd],
        vec![OsStr::new("up"), OsStr::new("--data"), odd],
        vec![OsStr::new("config"), OsStr::new("--config"), odd],
    ] {
        let answer = run_in(dir.path(), &args).exits(2);
        assert_eq!(answer.stdout, "", "{args:?}");
    }
}

/// C11: a file that cannot be read is told with its path; nothing is sent.
#[test]
fn a_file_that_cannot_be_read_is_told_with_its_path() {
    let server = Server::start(&[]);
    let file = |name: &str, text: &[u8]| std::fs::write(server.dir.path().join(name), text).unwrap();
    file("array.json", b"[1]");
    file("broken.json", b"{\"a\":\n tru}");
    file("latin1.json", b"{\"a\":\"\xe9\"}");
    file("large.json", format!("{{\"a\":\"{}\"}}", "x".repeat(1 << 20)).as_bytes());
    file(
        "unknown.jsonl",
        b"{\"stream\":\"s\",\"payload\":{}}\n{\"stream\":\"s\",\"payload\":{},\"colour\":1}\n",
    );
    // Only the server knows how often a job may be tried.
    file("refused.jsonl", b"{\"payload\":{}}\n\n{\"payload\":{},\"max_attempts\":5000}\n");
    let fifo = Command::new("mkfifo").arg(server.dir.path().join("fifo")).status().unwrap();
    assert!(fifo.success());
    file("no_stream.jsonl", b"{\"payload\":{}}\n");
    for (args, said) in [
        (&["--payload-file", "/"][..], "/: it is a directory"),
        (&["--payload-file", "missing.json"], "missing.json: No such file"),
        (&["--payload-file", "array.json"], "not a JSON object"),
        (&["--payload-file", "broken.json"], "line 2 column"),
        (&["--payload-file", "latin1.json"], "latin1.json: it is not UTF-8"),
        (&["--payload-file", "large.json"], "larger than 1048576 bytes"),
        (&["--payload", "{"], "not JSON"),
        (&["--payload", "7"], "not a JSON object"),
        (&["--payload", ""], "not JSON"),
        (&["--payload-file", "fifo"], "fifo: it is a pipe"),
        (&["--jsonl", "refused.jsonl"], "line 3: "),
        (&["--jsonl", "/"], "/: it is a directory"),
        (&["--jsonl", "missing.jsonl"], "missing.jsonl: No such file"),
        (&["--jsonl", "unknown.jsonl"], "line 2: unknown field `colour`"),
    ] {
        let answer = server.run(["job", "enqueue", "--stream", "s"].iter().chain(args)).exits(2);
        assert!(answer.stderr.contains(said), "{args:?}: {answer:?}");
    }
    let answer = server.run(["job", "enqueue", "--jsonl", "no_stream.jsonl"]).exits(2);
    assert!(answer.stderr.contains("line 1: has neither stream nor priority"), "{answer:?}");
    assert_eq!(server.run(["job", "list", "--json"]).exits(0).json()["jobs"].as_array().unwrap().len(), 0);
}

/// C5, C12: what a token may not do is told with its role; a token that others can read is told too.
#[test]
fn a_refused_token_is_told_with_its_role() {
    let server = Server::start(&[]);
    let with_token = |token: &str, args: &[&str]| -> Answer {
        fernery()
            .current_dir(server.dir.path())
            .env("FERNERY_TOKEN", token)
            .args(args)
            .output()
            .unwrap()
            .into()
    };
    let bad = with_token("fern_nobody", &["job", "list"]).exits(1);
    assert!(bad.stderr.contains("FERNERY_TOKEN"), "{bad:?}");
    assert!(!bad.stderr.contains("fern_nobody"), "{bad:?}");
    let viewer = server.run(["token", "new", "--role", "viewer"]).exits(0).stdout;
    let refused = with_token(viewer.trim(), &["dlq", "purge", "--yes"]).exits(1);
    assert!(refused.stderr.contains("role operator") && refused.stderr.contains("viewer"), "{refused:?}");
    assert!(refused.stderr.contains("FERNERY_TOKEN"), "{refused:?}");
    let refused = with_token(viewer.trim(), &["dlq", "purge", "--yes", "--json"]).exits(1);
    assert_eq!(refused.json()["status"], 403);
    with_token(viewer.trim(), &["job", "list"]).exits(0);
    let odd = with_token("a\u{7}b", &["job", "list"]).exits(2);
    assert!(!odd.stderr.contains('\u{7}'), "{odd:?}");

    let file = server.data().join("operator.token");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let warned = server.run(["job", "list", "--json"]).exits(0);
    assert!(warned.stderr.contains("operator.token") && warned.stderr.contains("644"), "{warned:?}");
    warned.json();
}

/// C6: nobody is there to be asked.
#[test]
fn a_purge_that_cannot_ask_needs_yes() {
    let server = Server::start(&[]);
    let refused = server.run(["dlq", "purge"]).exits(2);
    assert!(refused.stderr.contains("--yes"), "{refused:?}");
    let refused = server.run_with_stdin(&["dlq", "purge"], "y\n").exits(2);
    assert!(refused.stderr.contains("--yes"), "a pipe is nobody: {refused:?}");
    server.run(["dlq", "purge", "--dry-run"]).exits(0);
}

/// C9: a reader that goes away is no failure.
#[test]
fn a_closed_pipe_is_silent() {
    let dir = tempfile::tempdir().unwrap();
    for args in [&["config", "--default"][..], &["--help"], &["config"]] {
        let mut child = fernery()
            .current_dir(dir.path())
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let answer: Answer = child.wait_with_output().unwrap().into();
        assert_eq!(answer.exits(0).stderr, "", "{args:?}");
    }
}

/// Answers every request with this, as some other server would.
fn impostor(reply: &'static str) -> String {
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

fn ask(dir: &Path, url: &str, args: &[&str]) -> Answer {
    fernery()
        .current_dir(dir)
        .env("FERNERY_URL", url)
        .env("FERNERY_TOKEN", "t")
        .args(args)
        .output()
        .unwrap()
        .into()
}

/// C15: an answer of another version is told as that.
#[test]
fn an_answer_of_another_version_is_told_as_that() {
    let dir = tempfile::tempdir().unwrap();
    for reply in [
        "HTTP/1.1 200 OK\r\nServer: fernery/9.9.9\r\nConnection: close\r\n\r\n{\"jobs\":{}}",
        "HTTP/1.1 200 OK\r\nServer: fernery/9.9.9\r\nConnection: close\r\n\r\n<html>",
        "HTTP/1.1 404 Not Found\r\nServer: fernery/9.9.9\r\nConnection: close\r\n\r\nnothing here",
    ] {
        let url = impostor(reply);
        let answer = ask(dir.path(), &url, &["job", "list"]).exits(1);
        assert!(
            answer.stderr.contains("fernery/9.9.9") && answer.stderr.contains(env!("CARGO_PKG_VERSION")),
            "{answer:?}"
        );
        let answer = ask(dir.path(), &url, &["job", "list", "--json"]).exits(1);
        assert_eq!(answer.json()["code"], "unexpected_answer");
    }
    let url = impostor("");
    let answer = ask(dir.path(), &url, &["job", "list"]).exits(1);
    assert_eq!(answer.stderr.lines().count(), 1, "{answer:?}");
}

//! `fernery up`, from its first line to its end.

use crate::program::{Answer, Server, fernery, run_in};
use rustix::process::Signal;
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

#[test]
fn the_data_directory_is_closed_to_others_and_holds_what_commands_need() {
    let server = Server::start(&[]);
    let mode = |name: &str| std::fs::metadata(server.data().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(""), 0o700);
    for name in ["operator.token", "worker.token", "url", "fernery.db"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
    assert_eq!(std::fs::read_to_string(server.data().join(".gitignore")).unwrap(), "*\n");
    assert_eq!(std::fs::read_to_string(server.data().join("url")).unwrap().trim(), server.url);
    assert!(server.data().join("fernery.db").is_file());

    server.signal(Signal::TERM);
    let (status, dir) = server.ended();
    assert_eq!(status.code(), Some(0));
    assert!(!dir.path().join(".fernery/url").exists(), "a server that has ended is not announced");
    let gone = run_in(dir.path(), ["job", "list"]).exits(1);
    assert!(gone.stderr.contains("`fernery up`"), "{gone:?}");
}

#[test]
fn a_directory_that_holds_other_things_is_not_taken_over() {
    let dir = tempfile::tempdir().unwrap();
    let open = |name: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    let photos = open("photos");
    std::fs::write(photos.join("cat.jpg"), "").unwrap();
    let refused = run_in(dir.path(), ["up", "--listen", "127.0.0.1:0", "--data", "photos"]).exits(2);
    assert!(refused.stderr.contains("photos") && refused.stderr.contains("chmod 700"), "{refused:?}");
    assert_eq!(std::fs::read_dir(&photos).unwrap().count(), 1, "nothing was written there");
    let refused = run_in(dir.path(), ["up", "--listen", "127.0.0.1:0", "--data", "photos/cat.jpg"]).exits(2);
    assert!(refused.stderr.contains("cat.jpg"), "{refused:?}");

    let empty = open("empty");
    let server = Server::start(&["--data", empty.to_str().unwrap()]);
    assert_eq!(std::fs::metadata(&empty).unwrap().permissions().mode() & 0o777, 0o700);
    server.run(["job", "list", "--data", empty.to_str().unwrap()]).exits(0);
}

/// C16: a second server on one database is told who has it, and disturbs nothing.
#[test]
fn a_second_server_on_one_database_names_the_first() {
    let server = Server::start(&[]);
    let second = server.run(["up", "--listen", "127.0.0.1:0"]).exits(4);
    let told = format!("already, at {} (process {}); to stop it: fernery down", server.url, server.pid());
    assert!(second.stderr.contains(&told), "{second:?}");
    assert_eq!(second.stdout, "");
    let second = server.run(["up", "--listen", "127.0.0.1:0", "--json"]).exits(4);
    assert!(second.json()["message"].as_str().unwrap().contains(&server.pid().to_string()));
    server.run(["job", "list"]).exits(0);
}

#[test]
fn a_killed_server_comes_back_with_its_jobs() {
    let server = Server::start(&[]);
    let id = server.run(["job", "enqueue", "--stream", "s", "--payload", "{\"n\":1}"]).exits(0).stdout;
    server.signal(Signal::KILL);
    let (_, dir) = server.ended();
    let stale = run_in(dir.path(), ["job", "list"]).exits(1);
    assert!(stale.stderr.contains("no server answers at"), "{stale:?}");
    let server = Server::start_in(dir, &[]);
    assert_eq!(server.run(["job", "show", id.trim(), "--json"]).exits(0).json()["payload"], json!({"n": 1}));
}

/// H39, from the flag to the answer.
#[test]
fn the_rate_of_a_token_is_limited_if_asked() {
    let server = Server::start(&["--requests-per-second", "1"]);
    let body = json!([{"stream": "s", "payload": {}}]);
    let (status, answer) = loop {
        match server.post("operator.token", "/v1/jobs", &body) {
            (201, _) => {}
            refused => break refused,
        }
    };
    assert_eq!((status, &answer["code"]), (429, &json!("rate_limited")));
}

/// Sends the head of a request and the first byte of its body, as a slow client does.
fn half_a_request(server: &Server, path: &str) -> TcpStream {
    let token = std::fs::read_to_string(server.data().join("worker.token")).unwrap();
    let address = server.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: 60\r\nExpect: 100-continue\r\n\r\n",
        token.trim()
    );
    stream.write_all(head.as_bytes()).unwrap();
    // The server asks for the body, so the request is under way there.
    let mut go_on = [0; 12];
    stream.read_exact(&mut go_on).unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100");
    stream
}

/// A claim that waits is answered, not cut off, when the server ends.
#[test]
fn sigterm_answers_the_claims_that_wait() {
    let server = Server::start(&[]);
    let answer = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let body = json!({"worker_id": "w1", "streams": ["s"], "max_wait_ms": 30000});
            server.post("worker.token", "/internal/worker/claim", &body)
        });
        while !server.get("/metrics").contains("\nfernery_claims_waiting 1\n") {
            std::thread::yield_now();
        }
        server.signal(Signal::TERM);
        waiting.join().unwrap()
    });
    assert_eq!((answer.0, &answer.1["claimed"]), (200, &json!(false)));
    let (status, _) = server.ended();
    assert_eq!(status.code(), Some(0));
}

/// C8: the second signal does not wait for anybody.
#[test]
fn a_second_signal_ends_it_at_once() {
    for signal in [Signal::TERM, Signal::INT] {
        let server = Server::start(&[]);
        let slow = half_a_request(&server, "/internal/worker/claim");
        server.signal(signal);
        wait_until_draining(&server);
        server.signal(signal);
        let (status, dir) = server.ended();
        assert_eq!(status.code(), Some(1), "it did not wait for the slow request");
        drop(slow);
        Server::start_in(dir, &[]).run(["job", "list"]).exits(0);
    }
}

/// A draining server takes no more connections.
fn wait_until_draining(server: &Server) {
    let address = server.url.strip_prefix("http://").unwrap();
    while TcpStream::connect(address).is_ok() {
        std::thread::yield_now();
    }
}

/// H33: what a token may not do is on record, by the token's id and never by its secret.
#[test]
fn the_log_is_json_if_asked_and_holds_no_secret() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = fernery()
        .current_dir(dir.path())
        .args(["up", "--listen", "127.0.0.1:0", "--log-format", "json", "--log-level", "trace", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line)
        .unwrap();
    let first: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert!(first["listening"].as_str().unwrap().starts_with("http://127.0.0.1:"), "{first}");
    let made = run_in(dir.path(), ["token", "new", "--role", "viewer"]).exits(0).stdout;
    let mut purge = fernery();
    purge.current_dir(dir.path()).env("FERNERY_TOKEN", made.trim()).args(["dlq", "purge", "--yes"]);
    assert_eq!(purge.output().unwrap().status.code(), Some(1));
    let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    let answer: Answer = child.wait_with_output().unwrap().into();
    let answer = answer.exits(0);
    assert!(answer.stderr.lines().count() > 1);
    let lines = answer.stderr.lines();
    let lines: Vec<serde_json::Value> =
        lines.map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect();
    let token_id = made.trim().split('_').nth(1).unwrap();
    let refused = json!({
        "message": "refused: wrong role", "token_id": token_id, "role": "viewer", "route": "/v1/dlq/purge",
    });
    assert!(lines.iter().any(|line| line["fields"] == refused), "{answer:?}");
    let operator = std::fs::read_to_string(dir.path().join(".fernery/operator.token")).unwrap();
    for secret in [made.trim(), operator.trim()] {
        assert!(!answer.stderr.contains(secret), "a token is in the log");
    }
}

#[test]
fn a_database_that_cannot_be_opened_is_told_without_its_password() {
    let dir = tempfile::tempdir().unwrap();
    for (database, shown) in [
        ("sqlite:missing/x.db", "missing/x.db"),
        ("postgres://u:s3cret@127.0.0.1:1/x", "postgres://u:***@127.0.0.1:1/x"),
    ] {
        let answer = run_in(dir.path(), ["up", "--listen", "127.0.0.1:0", "--database", database]).exits(1);
        let error = answer.stderr.lines().last().unwrap();
        assert!(error.contains(shown) && !answer.stderr.contains("s3cret"), "{answer:?}");
    }
}

/// Over HTTPS the command trusts the system's certificates, or those it is told to.
#[test]
fn commands_trust_the_certificate_they_are_told_to() {
    let dir = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".into()]).unwrap();
    let (cert, key) = (dir.path().join("s.crt"), dir.path().join("s.key"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let server = Server::start_in(dir, &["--tls-cert", "s.crt", "--tls-key", "s.key"]);
    assert!(server.url.starts_with("https://127.0.0.1:"), "{}", server.url);
    let listed = |ca: &str| -> Answer {
        fernery()
            .current_dir(server.dir.path())
            .env("FERNERY_CA", ca)
            .args(["job", "list"])
            .output()
            .unwrap()
            .into()
    };
    listed("s.crt").exits(0);
    let untrusted = server.run(["job", "list"]).exits(1);
    assert!(untrusted.stderr.contains("certificate"), "{untrusted:?}");
    for bad in ["missing.crt", "s.key"] {
        assert!(listed(bad).exits(2).stderr.contains(bad));
    }
}

/// K9: certificate and key are checked when the server starts.
#[test]
fn a_certificate_that_cannot_be_used_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a", "b", "open"] {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
        let key = dir.path().join(format!("{name}.key"));
        std::fs::write(dir.path().join(format!("{name}.crt")), made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let mode = if name == "open" { 0o644 } else { 0o600 };
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    for (cert, key, named) in [
        ("a.crt", "b.key", "b.key"),
        ("open.crt", "open.key", "open.key"),
        ("missing.crt", "a.key", "missing.crt"),
        ("a.crt", "missing.key", "missing.key"),
        ("a.key", "a.key", "a.key"),
    ] {
        let args = ["up", "--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key];
        let answer = run_in(dir.path(), args).exits(2);
        assert!(answer.stderr.contains(named) && answer.stdout.is_empty(), "{answer:?}");
    }
}

#[test]
fn an_address_in_use_is_told() {
    let server = Server::start(&[]);
    let address = server.url.strip_prefix("http://").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let answer = run_in(dir.path(), ["up", "--listen", address]).exits(1);
    let said: Vec<&str> = answer.stderr.lines().collect();
    let clear = |line: &str| line.contains(address) && line.contains("--listen");
    assert!(matches!(said[..], [line] if clear(line)), "one line and nothing before it: {answer:?}");
    assert!(!dir.path().join(".fernery/url").exists());
}

/// Whatever a caller does wrong again and again, the log says it once and then counts.
#[test]
fn a_caller_cannot_fill_the_log() {
    let server = Server::start(&[]);
    for _ in 0..100 {
        let purge = json!({ "stream": "s" });
        assert_eq!(server.post("worker.token", "/v1/dlq/purge", &purge).0, 403);
        assert_eq!(server.post("url", "/v1/dlq/purge", &purge).0, 401);
    }
    server.signal(Signal::TERM);
    let (_, log) = server.ended_with_log();
    let lines = |code: &str| log.lines().filter(|line| line.contains(code)).count();
    assert_eq!((lines("wrong role"), lines("unauthorized")), (1, 1), "{log}");
}

//! `fernery capture` while something goes wrong: nothing is lost, and nothing is there twice.

use super::{captures, files, program, spooled, texts, until};
use crate::port::Port;
use program::{Answer, Server, fernery};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;

fn stopped(server: Server) -> tempfile::TempDir {
    server.signal(Signal::TERM);
    let (status, dir) = server.ended();
    assert!(status.success(), "{status}");
    dir
}

#[test]
fn captures_without_a_server_are_stored_at_the_next_start() {
    let dir = stopped(Server::start(&[]));
    let said = program::run_in(dir.path(), ["capture", "while", "away"]).exits(0);
    for part in ["captured; the server does not answer", "/captures", "fernery up"] {
        assert!(said.stderr.contains(part), "{part}: {said:?}");
    }
    let kept = program::run_in(dir.path(), ["capture", "--json", "also"]).exits(0).json();
    assert!(kept["kept_in"].as_str().unwrap().ends_with(".fernery/captures"), "{kept}");
    // A server that was killed left its address.
    std::fs::write(dir.path().join(".fernery/url"), "http://127.0.0.1:1\n").unwrap();
    let killed = program::run_in(dir.path(), ["capture", "after a crash"]).exits(0);
    assert!(killed.stderr.contains("does not answer"), "{killed:?}");
    assert_eq!(files(&dir.path().join(".fernery/captures")).len(), 3);

    let server = Server::start_in(dir, &[]);
    until(|| spooled(&server).is_empty().then_some(()));
    assert_eq!(texts(&server), ["after a crash", "also", "while away"]);
    let by_id = |text: &str| captures(&server).into_iter().find(|c| c["raw_content"] == text).unwrap();
    assert_eq!(by_id("while away")["capture_id"], said.stdout.trim());
    assert_eq!(by_id("also")["capture_id"], kept["capture_id"]);
    // "Tomorrow" counts from when it was said.
    let stored = by_id("while away");
    assert!(stored["created_at"].as_str() < stored["updated_at"].as_str(), "{stored}");
}

#[test]
fn captures_for_a_server_elsewhere_are_kept_for_it_and_go_with_the_next() {
    let port = Port::reserve();
    let server = Server::start_at(&port.address(), tempfile::tempdir().unwrap(), &[]);
    let (url, token) =
        (server.url.clone(), std::fs::read_to_string(server.data().join("operator.token")).unwrap());
    let away = tempfile::tempdir().unwrap();
    let capture = |text: &str| -> Answer {
        let mut command = fernery();
        command
            .current_dir(away.path())
            .env("XDG_STATE_HOME", away.path())
            .env("FERNERY_TOKEN", token.trim());
        command.args(["capture", "--url", &url, text]).output().unwrap().into()
    };
    let dir = stopped(server);
    let kept = capture("one").exits(0);
    assert!(kept.stderr.contains("to that server"), "{kept:?}");
    capture("two").exits(0);
    let place = away.path().join("fernery/captures").join(url.replace([':', '/'], "_"));
    assert_eq!(files(&place).len(), 2, "{}", place.display());
    let server = Server::start_at(&port.address(), dir, &[]);
    assert_eq!(texts(&server), [""; 0]);
    let said = capture("three").exits(0);
    assert!(said.stderr.contains("delivered 2 that were kept"), "{said:?}");
    assert_eq!(texts(&server), ["one", "three", "two"]);
    assert!(files(&place).is_empty());
}

#[test]
fn killing_a_capture_command_neither_loses_nor_duplicates_captures() {
    let server = Server::start(&[]);
    for (n, place) in ["capture_kept", "capture_answered"].into_iter().enumerate() {
        let mut command = fernery();
        command.current_dir(server.dir.path()).env("FERNERY_FAILPOINT", place).args(["capture", place]);
        assert_eq!(command.output().unwrap().status.signal(), Some(9), "{place}");
        assert_eq!(spooled(&server).len(), 1);
        server.run(["capture", "next"]).exits(0);
        assert!(spooled(&server).is_empty(), "{place}");
        assert_eq!(texts(&server).len(), 2 * (n + 1), "{:?}", texts(&server));
    }
    let mut command = fernery();
    command.current_dir(server.dir.path()).env("FERNERY_FAILPOINT", "capture_kept").args(["capture", "last"]);
    assert_eq!(command.output().unwrap().status.signal(), Some(9));
    let server = Server::start_in(stopped(server), &[]);
    until(|| spooled(&server).is_empty().then_some(()));
    assert_eq!(texts(&server).len(), 5);
}

#[test]
fn a_capture_with_a_taken_id_is_set_aside() {
    let server = Server::start(&[]);
    let id = server.run(["capture", "first"]).exits(0).stdout.trim().to_string();
    let leave = |server: &Server, name: &str| {
        let spool = server.data().join("captures");
        let other = json!({ "raw_content": name, "capture_id": id, "source_label": "cli" });
        std::fs::write(spool.join(format!("{id}.json")), other.to_string()).unwrap();
        std::fs::write(spool.join("damaged.json"), "{").unwrap();
    };
    leave(&server, "other");
    let said = server.run(["capture", "second"]).exits(0);
    assert!(
        said.stderr.contains("belongs to another") && said.stderr.contains("is not a capture"),
        "{said:?}"
    );
    let aside = server.data().join("captures/refused");
    assert_eq!(files(&aside).len(), 2);
    leave(&server, "another");
    let server = Server::start_in(stopped(server), &[]);
    until(|| spooled(&server).is_empty().then_some(()));
    assert_eq!(texts(&server), ["first", "second"]);
    let kept: Value = serde_json::from_str(
        &std::fs::read_to_string(server.data().join(format!("captures/refused/{id}.json"))).unwrap(),
    )
    .unwrap();
    assert_eq!(kept["raw_content"], "another");
}

/// Answers each connection with the next of these.
fn scripted(answers: Vec<&'static str>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4_096]);
            let _ = write!(stream, "HTTP/1.1 {answer}\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}");
        }
    });
    url
}

#[test]
fn a_server_that_cannot_take_it_now_gets_it_later() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let url = scripted(vec!["503 Busy", "429 Too Many Requests", "401 Unauthorized"]);
    let capture = |text: &str| -> Answer {
        let mut command = fernery();
        command.current_dir(dir.path()).args(["--data", "data", "--url", &url, "capture", text]);
        command.output().unwrap().into()
    };
    for text in ["busy", "too many"] {
        let said = capture(text).exits(0);
        assert!(said.stderr.contains("did not accept it yet"), "{said:?}");
    }
    let said = capture("who").exits(1);
    assert!(said.stderr.contains("is kept in"), "{said:?}");
    assert_eq!(files(&data.join("captures")).len(), 3);
}

#[test]
fn a_refused_capture_does_not_block_the_spool() {
    let dir = stopped(Server::start(&[]));
    program::run_in(dir.path(), ["capture", "good"]).exits(0);
    let leave = |name: &str, azolla: Value, label: &str| {
        let path = dir.path().join(format!(".fernery/captures/{name}.json"));
        let request =
            json!({ "raw_content": name, "capture_id": name, "source_label": label, "azolla_id": azolla });
        std::fs::write(path, request.to_string()).unwrap();
    };
    let tasks = json!("task_management");
    leave("0-no-inbox", json!("mec"), "cli");
    leave("1-unfit", json!(null), &"x".repeat(10_000));
    leave("2-fits", json!(null), "cli");
    leave("3-unfit", tasks.clone(), "two\nlines");
    leave("4-fits", tasks, "cli");
    let server = Server::start_in(dir, &[]);
    until(|| (spooled(&server).len() == 1).then_some(()));
    assert!(spooled(&server)[0].ends_with("0-no-inbox.json"), "it may get an inbox");
    assert_eq!(texts(&server), ["2-fits", "4-fits", "good"]);
    let mut aside: Vec<_> = files(&server.data().join("captures/refused"))
        .iter()
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    aside.sort();
    assert_eq!(aside, ["1-unfit.json", "3-unfit.json"]);
    server.signal(Signal::TERM);
    let (_, log) = server.ended_with_log();
    assert!(log.contains("azolla mec has no inbox"), "{log}");
}

#[test]
fn a_server_without_an_inbox_leaves_captures_in_the_spool() {
    let dir = tempfile::tempdir().unwrap();
    let plain = "extends = \"mec\"\nazolla_id = \"task_management\"\n";
    std::fs::write(dir.path().join("plain.toml"), plain).unwrap();
    let server = Server::start_in(dir, &["--azolla", "plain.toml"]);
    let said = server.run(["capture", "early"]).exits(1);
    for part in ["no azolla of this server has an inbox", "the capture is kept in"] {
        assert!(said.stderr.contains(part), "{part}: {said:?}");
    }
    server.run_with_stdin(&["capture", "-"], "one\ntwo\n").exits(1);
    assert_eq!(spooled(&server).len(), 3);
    assert!(files(&server.data().join("captures/refused")).is_empty());
    let server = Server::start_in(stopped(server), &[]);
    until(|| spooled(&server).is_empty().then_some(()));
    assert_eq!(texts(&server), ["early", "one", "two"]);
}

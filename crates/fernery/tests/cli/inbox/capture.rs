//! `fernery capture` while a server is there.

use super::{captures, program, spooled, texts};
use program::{Answer, Server, fernery};
use serde_json::json;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

/// Runs a command with these bytes on its stdin.
fn with_bytes(server: &Server, args: &[&str], stdin: &[u8]) -> Answer {
    let mut command = fernery();
    command.current_dir(server.dir.path()).args(args).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(stdin);
    child.wait_with_output().unwrap().into()
}

#[test]
fn words_stdin_and_lines_are_captured_to_the_byte() {
    let server = Server::start(&[]);
    let said = server.run(["capture", "buy", "milk", "tomorrow"]).exits(0);
    let captured = captures(&server);
    assert_eq!(said.stdout.trim(), captured[0]["capture_id"], "{said:?}");
    assert_eq!(
        (&captured[0]["raw_content"], &captured[0]["source_label"]),
        (&json!("buy milk tomorrow"), &json!("cli"))
    );
    assert_eq!(said.stderr, "");

    let view =
        with_bytes(&server, &["capture", "--source", "phone", "--json"], b"two\nlines\n").exits(0).json();
    assert_eq!((&view["raw_content"], &view["source_label"]), (&json!("two\nlines\n"), &json!("phone")));

    let lines = with_bytes(&server, &["capture", "-"], b"one\n\n  \r\ntwo\r\n\xff\xfe three").exits(0);
    assert_eq!(lines.stdout, "3 captured\n", "{lines:?}");
    let lines = with_bytes(&server, &["capture", "--json", "-"], b"four").exits(0).json();
    assert_eq!((&lines["captured"], &lines["stored"], &lines["kept"]), (&json!(1), &json!(1), &json!(0)));

    // A byte that is no text, and flags that are none.
    let mut command = fernery();
    command.current_dir(server.dir.path()).arg("capture").arg(OsStr::from_bytes(b"caf\xe9")).arg("--verbose");
    Answer::from(command.output().unwrap()).exits(0);
    let captured = captures(&server);
    assert_eq!(captured[0]["raw_content"], "caf\\xE9 --verbose");
    assert_eq!(captured[0]["raw_hex"], "636166e9202d2d766572626f7365");
    let swallowed = server.run(["capture", "x", "--json"]).exits(0);
    assert!(swallowed.stderr.contains("was taken as text"), "{swallowed:?}");
    assert!(spooled(&server).is_empty());
    let expected = [
        "\\xFF\\xFE three",
        "buy milk tomorrow",
        "caf\\xE9 --verbose",
        "four",
        "one",
        "two",
        "two\nlines\n",
        "x --json",
    ];
    assert_eq!(texts(&server), expected);
}

#[test]
fn invalid_captures_are_refused_and_leave_nothing() {
    let server = Server::start(&[]);
    let large = vec![b'x'; 65_537];
    let refused = with_bytes(&server, &["capture"], &large).exits(2);
    assert!(refused.stderr.contains("65537 bytes") && refused.stderr.contains("65536"), "{refused:?}");
    let long = [&b"good\n"[..], &large, b"\nalso good\n"].concat();
    let refused = with_bytes(&server, &["capture", "-"], &long).exits(1);
    assert!(refused.stderr.contains("line 2 (65537 bytes)"), "{refused:?}");
    assert_eq!(refused.stdout, "2 captured\n");
    with_bytes(&server, &["capture"], &large[1..]).exits(0);
    for stdin in [&b""[..], b" \n\t\n"] {
        let empty = with_bytes(&server, &["capture"], stdin).exits(2);
        assert!(empty.stderr.contains("fernery capture buy milk"), "{empty:?}");
        with_bytes(&server, &["capture", "-"], stdin).exits(2);
    }
    let label = server.run(["capture", "--source", "two\nlines", "x"]).exits(2);
    assert!(label.stderr.contains("printable"), "{label:?}");
    assert_eq!(texts(&server).len(), 3);
    assert!(spooled(&server).is_empty());

    let nowhere = server.run(["capture", "--azolla", "nowhere", "x"]).exits(2);
    assert!(nowhere.stderr.contains("there are: mec, task_management"), "{nowhere:?}");
    let no_inbox = server.run(["capture", "--azolla", "mec", "x"]).exits(4);
    assert!(no_inbox.stderr.contains("no inbox") && no_inbox.stderr.contains("/refused/"), "{no_inbox:?}");
    assert_eq!(super::files(&server.data().join("captures/refused")).len(), 2);

    let dir = tempfile::tempdir().unwrap();
    let nobody = program::run_in(dir.path(), ["capture", "x"]).exits(2);
    assert!(nobody.stderr.contains("cannot use the data directory /dev/null/fernery"), "{nobody:?}");
    assert!(!dir.path().join(".fernery").exists());
}

#[test]
fn two_hundred_at_once_are_all_stored_once() {
    let server = Server::start(&[]);
    let start = |n: usize| {
        let mut command = fernery();
        command.current_dir(server.dir.path()).args(["capture", "number", &n.to_string()]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = (0..200).map(start).collect();
    for child in children {
        Answer::from(child.wait_with_output().unwrap()).exits(0);
    }
    // What a busy server did not take in time was kept, and goes with the next one.
    server.run(["capture", "last"]).exits(0);
    let mut expected: Vec<_> = (0..200).map(|n| format!("number {n}")).chain(["last".to_string()]).collect();
    expected.sort();
    assert_eq!(texts(&server), expected);
    assert!(spooled(&server).is_empty());
}

#[test]
fn thousands_of_lines_go_in_arrays() {
    let server = Server::start(&[]);
    let lines: String = (0..2_500).map(|n| format!("line {n}\n")).collect();
    let said = with_bytes(&server, &["capture", "-"], lines.as_bytes()).exits(0);
    assert_eq!(said.stdout, "2500 captured\n", "{said:?}");
    assert_eq!(texts(&server).len(), 2_500);
    assert!(spooled(&server).is_empty());
}

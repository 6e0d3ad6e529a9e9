//! `fernery schema` and `fernery azolla`: files of all sorts, checked without a server.

use crate::program::{Answer, fernery, run_in};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use tempfile::TempDir;

fn blocker() -> Value {
    json!({"blocker_id": "b1", "kind": "USER_INPUT", "description": "which port?", "resolved": false})
}

fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    dir
}

fn with_stdin(dir: &Path, args: &[&str], input: &[u8]) -> Answer {
    let mut child = fernery()
        .args(args)
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap().into()
}

#[test]
fn a_valid_document_is_told_with_its_artifact() {
    let good = blocker().to_string();
    let list = json!([blocker(), blocker()]).to_string();
    let dir =
        folder(&[("a/one.json", good.as_bytes()), ("a/b/two.json", list.as_bytes()), ("a/no.txt", b"x")]);
    let answer = run_in(dir.path(), ["schema", "check", "a"]).exits(0);
    assert_eq!(
        answer.stdout,
        "a/b/two.json: ok, 2 documents\na/one.json: ok, blocker_ref\n2 files: 2 valid, 0 invalid\n"
    );
    let answer = run_in(dir.path(), ["schema", "check", "a/one.json", "--json"]).exits(0);
    let expected = json!([{"file": "a/one.json", "schema": "blocker_ref", "valid": true, "violations": []}]);
    assert_eq!(answer.json(), expected);
    let answer = with_stdin(dir.path(), &["schema", "check", "-"], good.as_bytes()).exits(0);
    assert_eq!(answer.stdout, "stdin: ok, blocker_ref\n");
    run_in(dir.path(), ["schema", "check", "a/one.json", "--as", "event"]).exits(1);
}

#[test]
fn what_is_wrong_is_told_with_file_and_pointer_and_ends_with_1() {
    let (mut word, mut extra) = (blocker(), blocker());
    word["kind"] = json!("USER_INPTU");
    extra["a\u{1b}[2J\n"] = json!(1);
    let list = json!([blocker(), word]).to_string();
    let ten_megabytes = json!({"blocker_id": "b", "kind": "x".repeat(10 << 20)}).to_string();
    for (content, expected) in [
        (word.to_string().as_bytes(), "f.json: /kind: \"USER_INPTU\" is not one of"),
        (list.as_bytes(), "f.json: /1/kind: \"USER_INPTU\" is not one of"),
        (extra.to_string().as_bytes(), "unknown field"),
        (b"{\"blocker_id\": \"b\", \"kind\": 1, \"description\": \"\"}", "f.json: `resolved` is missing"),
        (b"{}", "f.json: the type of the artifact cannot be found by its fields; give it with --as"),
        (b"7", "f.json: an artifact must be an object"),
        (b"[]", "f.json: the list is empty"),
        (b"", "f.json: "),
        (b"{\"a\": tru}", "f.json: "),
        (b"{\"a\": 1, \"a\": 2}", "f.json: "),
        (b"{\"a\": \"\xe9\"}", "f.json: it is not UTF-8"),
        ("[".repeat(100_000).as_bytes(), "f.json: "),
        (ten_megabytes.as_bytes(), "f.json: /kind: \"xxx"),
        (&vec![b' '; (16 << 20) + 1], "f.json: it is larger than 16777216 bytes"),
    ] {
        let dir = folder(&[("f.json", content)]);
        let answer = run_in(dir.path(), ["schema", "check", "f.json"]).exits(1);
        assert!(answer.stdout.contains(expected) && answer.stderr.is_empty(), "{expected}: {answer:?}");
        assert!(answer.stdout.len() < 2_000 && !answer.stdout.contains('\u{1b}'), "{answer:?}");
        assert!(answer.stdout.lines().all(|line| line.starts_with("f.json: ")), "{answer:?}");
        let answer = run_in(dir.path(), ["schema", "check", "--json", "f.json"]).exits(1);
        assert_eq!(answer.json()[0]["valid"], false);
        assert!(answer.json()[0]["violations"][0]["message"].is_string(), "{answer:?}");
    }
}

#[test]
fn a_file_that_cannot_be_read_ends_with_2_and_the_others_are_still_checked() {
    let good = blocker().to_string();
    let dir =
        folder(&[("a.json", good.as_bytes()), ("bad.json", b"{}"), ("a.toml", b""), ("empty/x.txt", b"")]);
    for (command, counted) in
        [("schema", "2 files: 0 valid, 2 invalid\n"), ("azolla", "2 files: 0 right, 2 wrong\n")]
    {
        let answer = run_in(dir.path(), [command, "check", "missing", "bad.json"]).exits(2);
        assert!(answer.stdout.contains("cannot be read: No such file"), "{answer:?}");
        assert!(answer.stdout.contains("\nbad.json:") && answer.stdout.ends_with(counted), "{answer:?}");
        let answer = run_in(dir.path(), [command, "check", "missing", "--json"]).exits(2);
        assert_eq!(
            (answer.json()[0]["file"].as_str(), answer.json()[0]["valid"].as_bool()),
            (Some("missing"), Some(false))
        );
        let answer = run_in(dir.path(), [command, "check", "empty"]).exits(2);
        assert!(answer.stderr.contains("file in empty"), "{answer:?}");
    }
}

#[test]
fn schemas_are_listed_and_shown() {
    let dir = folder(&[]);
    let names = run_in(dir.path(), ["schema", "list", "--json"]).exits(0).json();
    let names: Vec<_> = names.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 15);
    let table = run_in(dir.path(), ["schema", "list"]).exits(0).stdout;
    for name in names {
        assert!(table.contains(name), "{table}");
        assert_eq!(run_in(dir.path(), ["schema", "show", name]).exits(0).json()["title"], name);
    }
}

#[test]
fn the_default_blueprint_is_right_and_so_is_one_that_extends_it() {
    let dir = folder(&[("own.toml", b"extends = \"mec\"\nazolla_id = \"own\"\n[limits]\nconcurrency = 2\n")]);
    let default = run_in(dir.path(), ["azolla", "show", "--default"]).exits(0).stdout;
    assert!(default.starts_with("# The blueprint of the azolla `mec`"), "{default}");
    let answer = with_stdin(dir.path(), &["azolla", "check", "-"], default.as_bytes()).exits(0);
    assert_eq!(answer.stdout, "stdin: ok, mec\n");
    assert_eq!(run_in(dir.path(), ["azolla", "check", "own.toml"]).exits(0).stdout, "own.toml: ok, own\n");
    let own = run_in(dir.path(), ["azolla", "check", "own.toml", "--json"]).exits(0).json();
    let shown = run_in(dir.path(), ["azolla", "show", "--json"]).exits(0).json();
    assert_eq!(own[0]["digest"], shown["digest"], "limits are no part of what is approved");
    assert_eq!(shown["blueprint"]["azolla_id"], "mec");
    let facts = run_in(dir.path(), ["azolla", "show"]).exits(0).stdout;
    assert!(
        facts.contains(shown["digest"].as_str().unwrap()) && facts.contains("schema, outcome, size"),
        "{facts}"
    );
}

#[test]
fn a_high_concurrency_is_valid_but_warned_about() {
    for concurrency in [4, 0] {
        let text = format!("extends = \"mec\"\nazolla_id = \"own\"\n[limits]\nconcurrency = {concurrency}\n");
        let dir = folder(&[("own.toml", text.as_bytes())]);
        let told = run_in(dir.path(), ["azolla", "check", "own.toml"]).exits(0).stdout;
        let (first, rest) = told.split_once('\n').unwrap();
        assert_eq!(first, "own.toml: ok, own");
        assert!(
            rest.starts_with(&format!("own.toml: warning: limits.concurrency: {concurrency} ")),
            "{told}"
        );
        assert!(rest.contains("more than 3"), "{told}");
        let row = run_in(dir.path(), ["azolla", "check", "own.toml", "--json"]).exits(0).json();
        assert_eq!(
            (&row[0]["valid"], &row[0]["warnings"][0]["path"]),
            (&true.into(), &"limits.concurrency".into())
        );
    }
}

#[test]
fn every_flaw_of_a_blueprint_is_told_with_its_place() {
    let many = "#".repeat(10 << 20);
    for (content, expected) in [
        (
            &b"extends = \"mec\"\nazolla_id = \"x\"\n[limits]\nconurrency = 1\n"[..],
            "f.toml:4:1: limits.conurrency: unknown key `conurrency`; did you mean `concurrency`?\n",
        ),
        (b"extends = \"f\"", "f.toml:1:11: extends: in `f` at 1:11: is circular: f \u{2192} f\n"),
        (b"extends = \"../secret\"", "f.toml:1:11: extends: there is no blueprint `../secret`\n"),
        (b"extends = \"mec\"\nazolla_id = \"\x1b\"", "f.toml:2:"),
        (b"a = \xe9", "f.toml:1:5: it is not UTF-8\n"),
        (many.as_bytes(), "f.toml:1:1: it is larger than 262144 bytes\n"),
    ] {
        let dir = folder(&[("f.toml", content)]);
        let answer = run_in(dir.path(), ["azolla", "check", "f.toml"]).exits(1);
        assert!(answer.stdout.starts_with(expected) && answer.stderr.is_empty(), "{expected}: {answer:?}");
        assert!(!answer.stdout.contains('\u{1b}'), "{answer:?}");
        let flaws = run_in(dir.path(), ["azolla", "check", "f.toml", "--json"]).exits(1).json();
        assert!(flaws[0]["flaws"][0]["line"].as_u64().unwrap() >= 1, "{flaws}");
    }
}

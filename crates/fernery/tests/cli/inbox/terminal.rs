//! `fernery triage` on a terminal.

use super::{candidates, program, until};
use program::{Server, fernery};
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;

/// Types these steps into `fernery triage` on a terminal so wide.
fn typed(server: &Server, columns: u32, editor: &str, steps: &[&str]) -> Value {
    typed_to(server, &["triage"], columns, editor, steps)
}

/// Types these steps into a command on a terminal so wide.
pub(super) fn typed_to(server: &Server, args: &[&str], columns: u32, editor: &str, steps: &[&str]) -> Value {
    let mut command = program::started_by("python3");
    command.args(["-c", include_str!("terminal.py"), &columns.to_string()]);
    command.arg(fernery().get_program()).args(args).current_dir(server.dir.path());
    command.env("EDITOR", editor).env_remove("VISUAL").stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("python3 starts");
    child.stdin.take().unwrap().write_all((steps.join("\n") + "\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["restored"], true, "{answer}");
    answer
}

#[test]
fn single_keys_decide_about_one_after_the_other() {
    let server = Server::start(&[]);
    assert!(
        typed(&server, 80, "", &[])["seen"].as_str().unwrap().contains("Nothing is waiting in the inbox.")
    );
    for text in ["(A) one +home due:2030-01-02", "two \u{202e} \u{1b}[2J", "three", "four", "five"] {
        server.run(["capture", text]).exits(0);
    }
    let there = candidates(&server, 5);
    let keys = "expect [q]uit";
    // It is one, not merged away: the escape sequence of what was captured moves nothing.
    let steps = [
        "expect 1 of 5",
        "expect (A) one +home",
        "expect 2030-01-02",
        "expect +home",
        keys,
        "send ?",
        "expect also with Ctrl-C",
        "send p",
        "expect [by what it names]",
        "send \\n",
        "expect fernery done",
        "expect 2 of 5",
        keys,
        "send \\x1b[A",
        "send e",
        "expect title [",
        "send Second\\n",
        "expect Second",
        keys,
        "send m",
        "expect 1 three",
        "send 1\\n",
        "expect merge  three",
        "expect into   Second",
        "expect merge? [y/N]",
        "send y\\n",
        "expect three",
        keys,
        "send u",
        "expect nothing was discarded before",
        "send d",
        "expect u takes it back",
        "expect 3 of 5",
        keys,
        "send u",
        "expect taken back",
        "expect Second",
        keys,
        "send d",
        "expect u takes it back",
        "expect 4 of 5",
        keys,
        "send s",
        "expect 5 of 5",
        keys,
        "send \\x03",
        "expect 2 left",
    ];
    let answer = typed(&server, 44, "", &steps);
    assert_eq!(answer["code"], 0, "{answer}");
    let seen = answer["seen"].as_str().unwrap();
    assert!(seen.contains("1 promoted, 1 merged, 1 discarded, 2 left"), "{seen}");
    assert!(!seen.contains('\u{1b}') && !seen.contains('\u{202e}'), "{seen:?}");
    assert!(seen.lines().all(|line| line.chars().count() < 100), "{seen}");
    let status = |n: usize| {
        let id = there[n]["candidate_id"].as_str().unwrap();
        server.run(["triage", "show", id, "--json"]).exits(0).json()
    };
    let words: Vec<_> = (0..5).map(|n| status(n)["status"].as_str().unwrap().to_string()).collect();
    assert_eq!(words, ["PROMOTED", "DISCARDED", "MERGED", "WAITING", "WAITING"]);
    let ticket = status(0)["objective_id"].as_str().unwrap().to_string();
    let ticket = server.run(["ticket", "show", &ticket, "--json"]).exits(0).json();
    assert_eq!(ticket["objective"]["status"], "NEW");
}

#[test]
fn the_editor_opens_and_the_terminal_is_given_back_however_it_ends() {
    let server = Server::start(&[]);
    server.run(["capture", "one"]).exits(0);
    candidates(&server, 1);
    let keys = "expect [q]uit";
    let steps = [
        keys,
        "send e",
        "expect Edited",
        keys,
        "send e",
        "expect nothing was saved",
        keys,
        "send q",
        "expect 1 left",
    ];
    typed(&server, 80, "sed -i 's/^# one$/# Edited/'", &steps);
    let title = || candidates(&server, 1)[0]["title"].clone();
    assert_eq!(title(), json!("Edited"));
    for signal in ["SIGTERM", "SIGINT", "SIGHUP"] {
        let answer = typed(&server, 10, "", &[keys, &format!("signal {signal}")]);
        assert_eq!(answer["code"], 0, "{signal}: {answer}");
    }
    // A burst is no decision.
    typed(
        &server,
        80,
        "",
        &[keys, "send dddddddddddddddd", "expect nothing was done", "send q", "expect 1 left"],
    );
    // Somebody else was faster.
    let id = candidates(&server, 1)[0]["candidate_id"].as_str().unwrap().to_string();
    let asked = [
        keys,
        "send p",
        "expect [by what it names]",
        "send nowhere\\n",
        "expect there are: mec",
        keys,
        "send q",
        "expect 1 left",
    ];
    typed(&server, 80, "", &asked);
    server.run(["triage", "discard", &id]).exits(0);
    until(|| candidates(&server, 0).is_empty().then_some(()));
}

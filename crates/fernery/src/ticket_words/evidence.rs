//! Findings of gates, for the review.

use fernery_core::limits;
use serde_json::Value;

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or("")
}

fn words(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// All gates of a run. Of a gate that failed, the end of its log, and how to read all of it.
pub(crate) fn of_run(run: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for found in run["evidence"].as_array().into_iter().flatten() {
        let end = failed_log(found);
        // The last line of a log stands with its gate, unless more of it follows.
        lines.extend(evidence(found, end.is_empty()));
        lines.extend(end.iter().map(|line| format!("  | {line}")));
        if !end.is_empty() && found["command"].is_array() {
            let (of, gate) = (text(run, "work_order_id"), text(found, "gate"));
            lines.push(format!("  all of it: fernery run logs {of} --gate {gate}"));
        }
    }
    lines
}

/// One gate, without its log.
pub(crate) fn of_gate(found: &Value) -> Vec<String> {
    evidence(found, false)
}

/// The last lines of the log of a gate that failed, where there is more than one.
fn failed_log(found: &Value) -> Vec<&str> {
    if found["result"] == "PASS" {
        return Vec::new();
    }
    let log: Vec<&str> = text(found, "log_tail").trim_end().lines().collect();
    let from = log.len().saturating_sub(limits::LOG_LINES_SHOWN);
    if log.len() > 1 { log[from..].to_vec() } else { Vec::new() }
}

/// One gate: a line, and more if the patch touches its protected files.
fn evidence(found: &Value, with_last_line: bool) -> Vec<String> {
    let mut line = format!("{}: {}", text(found, "gate"), result(found));
    if found["command"].is_array() {
        line.push_str(&format!(" `{}`", words(&found["command"]).join(" ")));
    }
    let mut lines = vec![line + &ran(found, with_last_line)];
    let protected = &found["protected"];
    let more = protected["more"].as_u64().filter(|n| *n > 0).map_or(String::new(), |n| format!(", {n} more"));
    let named = |list: &str| words(&protected[list]).join(", ");
    if protected["decided_by"] == "base" {
        let kept = named("kept");
        lines.push(format!("  the patch changes protected files of this gate: {kept}{more}"));
        lines.push(
            "  the gate used the base's version of them; to use the patch's version, list them under \
            `allow` in the ticket"
                .to_string(),
        );
        let patched = &protected["patched"];
        if !patched.is_null() {
            lines.push(format!(
                "  for information, the result with the patch's version: {}{}",
                result(patched),
                ran(patched, true)
            ));
        }
    }
    if !words(&protected["allowed"]).is_empty() {
        let more = if protected["decided_by"] == "base" { "" } else { &more };
        lines.push(format!(
            "  the ticket allows these files, so the patch's version counts: {}{more}",
            named("allowed")
        ));
    }
    lines
}

fn result(found: &Value) -> &str {
    found["result"].as_str().unwrap_or("did not run")
}

/// How a program ended, how long it took, and its last output if that is wanted.
fn ran(found: &Value, with_last_line: bool) -> String {
    let mut line = String::new();
    if let Some(exit) = found["exit"].as_i64() {
        line.push_str(&format!(" exit {exit}"));
    }
    if let Some(ms) = found["ms"].as_u64().filter(|ms| *ms > 0) {
        line.push_str(&format!(" {ms} ms"));
    }
    let said = found["trouble"].as_str().unwrap_or_else(|| text(found, "log_tail"));
    match said.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(last) if with_last_line => format!("{line} — {last}"),
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn evidence_says_which_files_and_which_verdict_decided() {
        let plain = json!({"gate": "tests", "command": ["make", "test"], "exit": 0, "ms": 7, "log_tail": "a\nok\n\n",
            "result": "PASS", "trouble": null});
        assert_eq!(evidence(&plain, true), ["tests: PASS `make test` exit 0 7 ms — ok"]);
        let mut touched = plain.clone();
        touched["protected"] = json!({"decided_by": "base", "kept": ["Makefile", "a.mk"], "more": 3,
            "allowed": ["tests/a"], "patched": {"exit": 2, "ms": 5, "log_tail": "no", "result": "FAIL", "trouble": null}});
        assert_eq!(
            evidence(&touched, true)[1..],
            [
                "  the patch changes protected files of this gate: Makefile, a.mk, 3 more",
                "  the gate used the base's version of them; to use the patch's version, list them under \
                `allow` in the ticket",
                "  for information, the result with the patch's version: FAIL exit 2 5 ms — no",
                "  the ticket allows these files, so the patch's version counts: tests/a",
            ]
        );
        touched["protected"] =
            json!({"decided_by": "patch", "kept": [], "allowed": ["tests/a"], "patched": null});
        assert_eq!(
            evidence(&touched, true)[1..],
            ["  the ticket allows these files, so the patch's version counts: tests/a"]
        );
    }

    #[test]
    fn a_gate_that_failed_shows_the_end_of_its_log() {
        let log: String = (1..=30).map(|n| format!("line {n} — x\n")).collect();
        let gate = json!({"gate": "tests", "command": ["make", "test"], "exit": 2, "ms": 7, "log_tail": log,
            "result": "FAIL", "trouble": null});
        let of = |found: &Value| of_run(&json!({"work_order_id": "w-1", "evidence": [found]}));
        let lines = of(&gate);
        assert_eq!(lines[0], "tests: FAIL `make test` exit 2 7 ms");
        assert_eq!(lines[1], "  | line 11 — x");
        assert_eq!(lines.len(), limits::LOG_LINES_SHOWN + 2);
        assert_eq!(lines.last().unwrap(), "  all of it: fernery run logs w-1 --gate tests");
        let mut short = gate.clone();
        short["log_tail"] = json!("it failed\n");
        assert_eq!(of(&short), ["tests: FAIL `make test` exit 2 7 ms — it failed"]);
        short["result"] = json!("PASS");
        short["log_tail"] = json!("a\nb\n");
        assert_eq!(of(&short), ["tests: PASS `make test` exit 2 7 ms — b"]);
    }
}

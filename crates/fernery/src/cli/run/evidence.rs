//! Protected files of gates, for the approval; findings of gates, for the review.

use fernery_core::patch::command_words::{named_files, named_modules};
use fernery_core::patch::protects;
use serde_json::Value;

/// Characters of a line of names.
const LINE_CHARS_MAX: usize = 100;

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or("")
}

fn words(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// One gate: a line, and more if the patch touches its protected files.
pub(in crate::cli) fn evidence(found: &Value) -> Vec<String> {
    let mut line = format!("{}: {}", text(found, "gate"), result(found));
    if found["command"].is_array() {
        line.push_str(&format!(" `{}`", words(&found["command"]).join(" ")));
    }
    let mut lines = vec![line + &ran(found)];
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
                ran(patched)
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

/// How a program ended, how long it took, and its last output.
fn ran(found: &Value) -> String {
    let mut line = String::new();
    if let Some(exit) = found["exit"].as_i64() {
        line.push_str(&format!(" exit {exit}"));
    }
    if let Some(ms) = found["ms"].as_u64().filter(|ms| *ms > 0) {
        line.push_str(&format!(" {ms} ms"));
    }
    let said = found["trouble"].as_str().unwrap_or_else(|| text(found, "log_tail"));
    match said.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(last) => format!("{line} — {last}"),
        None => line,
    }
}

const DECIDES: &str = "if the patch changes one of these files, the gate uses the base's version of it";

/// The protected files of the gates, and which of them the ticket lets its patch change; nothing if no command judges a
/// patch.
pub(in crate::cli) fn relied_on(shown: &Value) -> Vec<String> {
    let gates = shown["blueprint"]["gates"].as_array().map_or(&[][..], Vec::as_slice);
    let applied = gates.iter().skip_while(|gate| gate["kind"] != "applies");
    let (mut lines, mut named) = (Vec::new(), false);
    for gate in applied.filter(|gate| gate["kind"] == "command") {
        let (name, own) = (text(gate, "name"), words(&gate["protects"]));
        match gate["protects"].is_array() {
            true if own.is_empty() => lines.push(format!("  {name}: on none")),
            true => {
                named = true;
                lines.extend(wrapped(&format!("{name}: "), own));
            }
            false => lines.extend(wrapped(&format!("{name} (by default): "), protects::by_default())),
        }
        let argv: Vec<String> = words(&gate["argv"]).into_iter().map(str::to_string).collect();
        let mut files = named_files(&argv);
        files.extend(named_modules(&argv).iter().map(|module| format!("{module}.py")));
        // A whole shell command is not a helpful name.
        let mut files = files.iter().map(String::as_str).filter(|file| !file.contains(char::is_whitespace));
        let is_off = gate["protects"].as_array().is_some_and(Vec::is_empty);
        if let Some(first) = files.next().filter(|_| !is_off) {
            lines
                .extend(wrapped(&format!("{name}, each that is a file: "), [first].into_iter().chain(files)));
        }
    }
    if lines.is_empty() {
        return lines;
    }
    let allowed = serde_json::from_value(shown["metadata"].clone()).ok();
    let allowed = allowed.and_then(|metadata| protects::allowed_by(&metadata).ok()).unwrap_or_default();
    if named {
        lines.extend(wrapped("each of them, if the patch adds it: ", protects::read_unasked()));
    }
    lines.push(DECIDES.to_string());
    if !allowed.is_empty() {
        lines.extend(wrapped("except what this ticket allows: ", allowed.iter().map(String::as_str)));
    }
    ["".to_string(), "protected files of the gates:".to_string()].into_iter().chain(lines).collect()
}

/// Names on as many lines as they need.
fn wrapped<'a>(head: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut lines = vec![format!("  {head}")];
    let mut first = true;
    for name in names {
        let line = lines.last_mut().expect("there is one");
        let parted = if first { "" } else { ", " };
        if !first && line.chars().count() + name.chars().count() + 2 > LINE_CHARS_MAX {
            line.push(',');
            lines.push(format!("    {name}"));
        } else {
            line.push_str(parted);
            line.push_str(name);
        }
        first = false;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn evidence_says_which_files_and_which_verdict_decided() {
        let plain = json!({"gate": "tests", "command": ["make", "test"], "exit": 0, "ms": 7, "log_tail": "a\nok\n\n",
            "result": "PASS", "trouble": null});
        assert_eq!(evidence(&plain), ["tests: PASS `make test` exit 0 7 ms — ok"]);
        let mut touched = plain.clone();
        touched["protected"] = json!({"decided_by": "base", "kept": ["Makefile", "a.mk"], "more": 3,
            "allowed": ["tests/a"], "patched": {"exit": 2, "ms": 5, "log_tail": "no", "result": "FAIL", "trouble": null}});
        assert_eq!(
            evidence(&touched)[1..],
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
            evidence(&touched)[1..],
            ["  the ticket allows these files, so the patch's version counts: tests/a"]
        );
    }

    #[test]
    fn an_approval_says_what_the_gates_rely_on() {
        let of = |protects: Value, allow: Value| {
            let mut gate = json!({"kind": "command", "name": "tests", "argv": ["sh", "./ci/check"]});
            if !protects.is_null() {
                gate["protects"] = protects;
            }
            relied_on(
                &json!({"metadata": {"allow": allow}, "blueprint": {"gates": [{"kind": "applies"}, gate]}}),
            )
        };
        let own = of(json!(["Makefile", "test.sh"]), json!("tests/"));
        assert_eq!(own[..3], ["", "protected files of the gates:", "  tests: Makefile, test.sh"]);
        assert!(
            own[4].starts_with("  each of them, if the patch adds it: Makefile, GNUmakefile,"),
            "{own:?}"
        );
        assert_eq!(own[own.len() - 2..], [DECIDES, "  except what this ticket allows: tests/",]);
        let default = of(Value::Null, json!([]));
        assert!(default[2].starts_with("  tests (by default): test/, tests/"), "{default:?}");
        assert!(default.iter().all(|line| line.chars().count() <= LINE_CHARS_MAX + 1), "{default:?}");
        let all = default.join(" ");
        assert!(protects::by_default().all(|name| all.contains(name)), "{all}");
        assert_eq!(of(json!([]), Value::Null)[2..4], ["  tests: on none", DECIDES]);
        assert!(all.contains("  tests, each that is a file: ci/check"), "{all}");
        assert_eq!(own[3], "  tests, each that is a file: ci/check");
        let bare = json!({"blueprint": {"gates": [{"kind": "command", "name": "t"}]}});
        assert_eq!(relied_on(&bare), [""; 0]);
    }
}

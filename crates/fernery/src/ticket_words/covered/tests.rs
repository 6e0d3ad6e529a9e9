//! Everything that the digest covers is on the screen.

use super::super::changes::{Revised, changes};
use super::*;
use fernery_core::artifact::AzollaId;
use fernery_core::blueprint::{Blueprint, Neighbours};
use serde_json::json;

fn shown(blueprint: Value) -> Value {
    json!({"objective_id": "WEB-17", "azolla_id": "mec", "title": "T", "acceptance_criteria": "- c",
        "metadata": {"repo_ref": "web", "n": "1", "m": 1}, "blueprint": blueprint})
}

fn text(parts: &[Part]) -> String {
    let line = |part: &Part| match part {
        Part::Fact(name, text) | Part::Text(name, text) => format!("{name} {text}\n"),
    };
    parts.iter().map(line).collect()
}

const OWN: &str = r#"
extends = "mec"
azolla_id = "own"
[executors.PATCH_DIAZOTROPH]
kind = "agent"
profile = "claude"
args = ["--model", "opus of mine"]
[envelope]
attempts = 5
wall_time = "4h"
cost_usd = 20.00
[[gates]]
kind = "schema"
[[gates]]
kind = "patch"
allow = [".github/"]
[[gates]]
kind = "applies"
[[gates]]
kind = "command"
name = "tests"
argv = ["sh", "-c", "make test"]
timeout = "10m"
env = ["PATH"]
sandbox = "bubblewrap"
"#;

fn own() -> Value {
    let none = Neighbours { blueprint: &|_| None, profile: &|_| Ok(None) };
    let blueprint = Blueprint::parse_beside(OWN, &none).unwrap_or_else(|flaws| panic!("{flaws:?}"));
    assert_eq!(blueprint.azolla_id, AzollaId::stored("own"));
    blueprint.decisive()
}

#[test]
fn what_runs_is_told_in_words() {
    let text = text(&parts(&shown(own())));
    for line in [
        "metadata repo_ref: web\n",
        "metadata n: \"1\"\nmetadata repo_ref: web\n",
        "executor agent claude, with a network\n",
        "--permission-mode bypassPermissions --model 'opus of mine'\n",
        "may see ANTHROPIC_API_KEY, CLAUDE_CODE_OAUTH_TOKEN, ",
        "~/.claude/.credentials.json\n",
        "ends after 20 min without output, or 256 MiB of output\n",
        "branch azolla/WEB-17\n",
        "time at most 30 min a run\n",
        "in all 5 runs, 4 h\n",
        "cost at most 20.00 USD",
        "gates schema: the output has the right form\n",
        "gates patch: a well-formed patch, at most 200 files, no symlinks, no executables, may touch .github/",
        "gates tests: sh -c 'make test' (10 min, sandbox bubblewrap, sees PATH)\n",
        "more by default (all: fernery azolla protected)",
    ] {
        assert!(text.contains(line), "{line}\nis not in\n{text}");
    }
    assert!(!text.contains("also") && !text.contains("_ms") && !text.contains('{'), "{text}");
}

/// A leaf of a document, and the document without it.
fn leaves(value: &Value, path: &str, out: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(key, of)| leaves(of, &format!("{path}/{key}"), out));
        }
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(n, of)| leaves(of, &format!("{path}/{n}"), out));
        }
        _ => out.push(path.to_string()),
    }
}

#[test]
fn no_part_of_what_is_covered_can_change_unseen() {
    let whole = shown(own());
    let as_it_is = parts(&whole);
    let mut all = Vec::new();
    leaves(&whole["blueprint"], "/blueprint", &mut all);
    leaves(&whole["metadata"], "/metadata", &mut all);
    assert!(all.len() > 40, "{all:?}");
    for path in all {
        let mut other = whole.clone();
        let leaf = other.pointer_mut(&path).unwrap();
        *leaf = match leaf {
            Value::String(text) => format!("{text}-other").into(),
            Value::Number(n) => (n.as_u64().unwrap() + 1).into(),
            Value::Bool(flag) => (!*flag).into(),
            _ => "other".into(),
        };
        assert_ne!(parts(&other), as_it_is, "{path} changed, and nobody would see it");
        assert!(!changes(&whole, &other).is_empty(), "{path}");
    }
    for new in [
        "/blueprint",
        "/blueprint/executors/PATCH_DIAZOTROPH",
        "/blueprint/gates/3",
        "/blueprint/envelope",
        "/blueprint/retry",
        "",
    ] {
        let mut other = whole.clone();
        other.pointer_mut(new).unwrap()["new_key"] = json!({"a": 1});
        assert!(text(&parts(&other)).contains("new_key: {\"a\":1}"), "{new}");
    }
}

#[test]
fn what_changed_since_an_approval_is_told_in_words() {
    let before = shown(own());
    let mut now = before.clone();
    now["blueprint"]["budget_ms"] = json!(3_600_000);
    now["title"] = json!("U");
    now["acceptance_criteria"] = json!("- one\n- two and more\n- three");
    let mut then = before.clone();
    then["acceptance_criteria"] = json!("- one\n- two\n- three");
    let told: Vec<String> = changes(&then, &now).iter().flat_map(Revised::lines).collect();
    assert_eq!(
        told,
        [
            "- title T",
            "+ title U",
            "- criteria - two",
            "+ criteria - two and more",
            "- time at most 30 min a run",
            "+ time at most 1 h a run"
        ]
    );
    assert!(changes(&before, &before).is_empty());
}

#[test]
fn money_is_told_to_the_last_digit() {
    for (micros, said) in [(20_000_000, "20.00"), (500_000, "0.50"), (1, "0.000001"), (1_230_000, "1.23")] {
        assert_eq!(dollars(micros), said);
    }
}

//! A command that is suggested, with the call of the API that does the same.

use super::show::Ways;
use super::visit::api;
use serde_json::{Value, json};

/// The ways of a command. What a person has to fill in is `…`, as in the command itself.
pub(super) fn ways(command: &str) -> Ways {
    match call(command) {
        Some((method, path, body)) => {
            Ways::new(command, method, &path, body.map(|body| body.to_string()).as_deref())
        }
        None => Ways::command(command),
    }
}

fn call(command: &str) -> Option<(&'static str, String, Option<Value>)> {
    let words: Vec<&str> = command.split_whitespace().collect();
    // It is about a ticket of another server.
    if words.contains(&"--url") {
        return None;
    }
    let ticket = |id: &str, act: &str| api("/v1/objectives/", id, act);
    Some(match words[..] {
        ["fernery", "ticket", "show", id] => ("GET", ticket(id, ""), None),
        ["fernery", "ticket", "edit", id] => ("PATCH", ticket(id, ""), Some(json!({ "title": "…" }))),
        ["fernery", "ticket", act, id, ref more @ ..] => {
            let body = match (act, more) {
                ("approve", _) => json!({ "digest": "…" }),
                ("confirm", _) => json!({ "run_id": "…" }),
                ("merge", _) => json!({ "run_id": "…", "patch_sha256": "…", "tip": "…" }),
                ("answer", _) => json!({ "digest": "…", "run_id": "…", "answer": "…" }),
                ("reopen", _) => json!({ "digest": "…", "note": "…" }),
                ("unblock", ["--blocker", blocker]) => json!({ "blockers": [blocker] }),
                ("unblock", _) => json!({ "all": true }),
                ("cancel", []) => json!({}),
                _ => return None,
            };
            ("POST", ticket(id, &format!("/{act}")), Some(body))
        }
        ["fernery", "done", id] => ("POST", ticket(id, "/done"), Some(json!({}))),
        ["fernery", "snooze", id, until] => ("POST", ticket(id, "/snooze"), Some(json!({ "until": until }))),
        ["fernery", "triage"] => ("GET", "/v1/candidates".to_string(), None),
        // The call wants the whole id, and the command has its short form.
        ["fernery", "triage", "promote", _] => {
            ("POST", "/v1/candidates/…/promote".to_string(), Some(json!({})))
        }
        ["fernery", "triage", "release"] => release("task_management"),
        ["fernery", "triage", "release", "--azolla", azolla] => release(azolla),
        _ => return None,
    })
}

fn release(azolla: &str) -> (&'static str, String, Option<Value>) {
    ("POST", api("/v1/azollas/", azolla, "/captures/release"), Some(json!({})))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::routes;

    #[test]
    fn what_is_suggested_has_its_call() {
        for command in [
            "fernery ticket approve T-1",
            "fernery ticket confirm T-1",
            "fernery ticket merge T-1",
            "fernery ticket answer T-1 \"…\"",
            "fernery ticket reopen T-1 --note 'it conflicts with main'",
            "fernery ticket unblock T-1 --all",
            "fernery ticket unblock T-1 --blocker b",
            "fernery ticket cancel T-1",
            "fernery ticket edit T-1",
            "fernery ticket show T-1",
            "fernery done T-1",
            "fernery snooze T-1 tomorrow",
            "fernery triage",
            "fernery triage promote 019a8c5e-07398f",
            "fernery triage release --azolla x",
        ] {
            let (method, path, _) = call(command).unwrap_or_else(|| panic!("{command} has no call"));
            let route = routes::find(&method.parse().unwrap(), &path);
            assert!(route.is_ok(), "{command}: {method} {path} is no call of the API");
            assert!(ways(command).to_string().contains("curl"), "{command}");
        }
        // A ticket of another server, a command that has no one call, and one that is none.
        for command in
            ["fernery ticket show T-1 --url http://other", "fernery ticket edit T-1 --meta a=b", "make"]
        {
            assert!(!ways(command).to_string().contains("curl"), "{command}");
        }
    }
}

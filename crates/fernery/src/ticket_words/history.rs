//! What happened to a ticket, with who did it.

use super::{of_run, short};
use fernery_client::wire::{JournalEntry, ObjectiveDetail};
use fernery_core::Timestamp;
use fernery_core::journal::Act;
use serde_json::Value;
use std::collections::BTreeSet;

/// One thing that happened.
pub(crate) struct Moment {
    pub(crate) at: Timestamp,
    pub(crate) who: String,
    pub(crate) what: String,
    /// What else there is to it, a line each.
    pub(crate) more: Vec<String>,
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or("")
}

fn moment(value: &Value, who: impl Into<String>, what: String) -> Moment {
    let at = text(value, "created_at").parse().unwrap_or_else(|_| Timestamp::from_millis(0));
    Moment { at, who: who.into(), what, more: Vec::new() }
}

/// All that happened to a ticket.
pub(crate) fn timeline(detail: &ObjectiveDetail) -> Vec<Moment> {
    let o = &detail.view.objective;
    let mut moments = vec![Moment {
        at: o.created_at,
        who: "operator".into(),
        what: "created it".into(),
        more: Vec::new(),
    }];
    // A person's own work is confirmed with the act that does it, and merged with the act that confirms it: of one instant, each
    // stands after what it led to.
    let (mut confirmed, mut merged) = (Vec::new(), Vec::new());
    for decision in &detail.decisions {
        let act = match text(decision, "kind") {
            "APPROVE" => "approved it",
            "CONFIRM" => "confirmed it",
            "REOPEN" => "reopened it",
            "ANSWER" => "answered the question",
            "MERGE" => "asked for its merge",
            other => other,
        };
        let digest = text(decision, "digest").get(..12).unwrap_or_default();
        let note = decision["note"].as_str().map_or(String::new(), |note| format!(": {note}"));
        let decided = moment(decision, text(decision, "who"), format!("{act} ({digest}…){note}"));
        match text(decision, "kind") {
            "CONFIRM" => confirmed.push(decided),
            "MERGE" => merged.push(decided),
            _ => moments.push(decided),
        }
    }
    let (landings, acts): (Vec<_>, Vec<_>) = detail.acts.iter().partition(|act| is_landing(act));
    moments.extend(acts.into_iter().filter_map(handled));
    for event in &detail.events {
        let became = event["reason"].as_str().unwrap_or("waiting for the scheduler");
        moments.push(moment(event, "readiness", format!("{}: {became}", text(event, "type"))));
    }
    for workorder in &detail.workorders {
        let (id, kind) = (text(workorder, "work_order_id"), text(workorder, "diazotroph_type"));
        let what = format!("workorder {id} for {kind}, {}", text(workorder, "status"));
        moments.push(moment(workorder, "scheduler", what));
    }
    moments.extend(detail.attempts.iter().filter_map(ended));
    for bundle in &detail.output_bundles {
        let outcome = bundle["metadata"]["outcome"].as_str().unwrap_or("OUTPUT");
        moments.push(moment(bundle, "executor", format!("{outcome}: {}", text(bundle, "title"))));
    }
    for run in &detail.runs {
        let what = format!(
            "{}: {} (run {})",
            text(run, "gate_result"),
            text(run, "gate_reason"),
            text(run, "run_id")
        );
        let mut judged = moment(run, "gate", what);
        judged.more = of_run(run);
        moments.push(judged);
    }
    let pauses = detail.pauses.iter().map(|pause| {
        let what = format!("paused: {}", pause.happened);
        Moment { at: pause.pause.created_at, who: "fernery".into(), what, more: Vec::new() }
    });
    // A patch that does not land leaves a pause, which comes after it.
    let stopped: BTreeSet<Timestamp> = landings.iter().map(|act| act.created_at).collect();
    let (after, before): (Vec<_>, Vec<_>) = pauses.partition(|pause| stopped.contains(&pause.at));
    moments.extend(before.into_iter().chain(confirmed).chain(merged));
    moments.extend(landings.into_iter().filter_map(handled).chain(after));
    moments
}

/// Who makes attempts: another one than the executor whose output there is, which may come in the same moment.
const WORKER: &str = "worker";

/// The end of an attempt that handed nothing in. What one hands in is told by its output.
fn ended(attempt: &Value) -> Option<Moment> {
    let outcome = attempt["outcome"].as_str().filter(|outcome| *outcome != "SUCCEEDED")?;
    let at = text(attempt, "finished_at").parse().ok()?;
    let why = attempt["error"]["message"].as_str().or(attempt["error"]["code"].as_str());
    let why = why.map_or(String::new(), |why| format!(": {why}"));
    let what =
        format!("attempt {} of {} ended {outcome}{why}", attempt["attempt_no"], text(attempt, "worker_id"));
    Some(Moment { at, who: WORKER.into(), what, more: Vec::new() })
}

/// Who took up its workorders, and when.
pub(crate) fn claims(detail: &ObjectiveDetail) -> Vec<Moment> {
    let taken = |attempt: &Value| {
        let at = text(attempt, "started_at").parse().ok()?;
        let (worker, nth) = (text(attempt, "worker_id"), &attempt["attempt_no"]);
        let still = if attempt["outcome"].is_null() { ", and works on it" } else { "" };
        let what =
            format!("{worker} claimed workorder {}, attempt {nth}{still}", text(attempt, "work_order_id"));
        Some(Moment { at, who: WORKER.into(), what, more: Vec::new() })
    };
    detail.attempts.iter().filter_map(taken).collect()
}

/// What became of a merge.
fn is_landing(act: &JournalEntry) -> bool {
    matches!(act.act.parse(), Ok(Act::Landed | Act::NotLanded))
}

/// What was done to it besides decisions. What the scheduler blocks is told by its pause.
fn handled(act: &JournalEntry) -> Option<Moment> {
    let why = &act.why;
    let listed = |name: &str| {
        let each: Vec<&str> = why[name].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        each.join(", ")
    };
    let noted = |what: &str| match why["note"].as_str() {
        Some(note) => format!("{what}: {note}"),
        None => what.to_string(),
    };
    let what = match act.act.parse().ok()? {
        Act::Edited => "changed it".to_string(),
        Act::Blocked => format!("blocked it: {} ({})", why["description"].as_str()?, text(why, "blocker_id")),
        Act::Cancelled => noted("cancelled it"),
        Act::Unblocked => {
            let (resolved, status) = (listed("resolved"), text(why, "status"));
            let of = if resolved.is_empty() { String::new() } else { format!(" ({resolved})") };
            let after = why["after"].as_str().map_or(String::new(), |id| format!(", for {id} is done"));
            noted(&format!("unblocked it{of}{after}: it is {status}"))
        }
        Act::Landed => {
            let branch = text(why, "base_branch");
            match why["to"].as_str() {
                Some(commit) => format!("landed on {branch} as commit {}", short(commit)),
                None => format!("landed: {branch} has it already"),
            }
        }
        Act::NotLanded => format!("did not land: {}", text(why, "why")),
        _ => return None,
    };
    Some(Moment { at: act.created_at, who: act.actor.clone(), what, more: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(detail: Value) -> Vec<String> {
        let objective = json!({"objective_id": "t", "azolla_id": "mec", "title": "x", "acceptance_criteria": "",
            "objective_type": "TICKET", "status": "DONE", "importance": 2, "urgency": 2, "blocked_on": [],
            "blocked_reason": null, "metadata": {}, "created_at": at(0), "updated_at": at(0)});
        let mut whole = json!({"objective": objective, "unconfirmed": false, "failures": 0, "spent": {}, "approval": null,
            "decision": null, "decisions": [], "events": [], "workorders": [], "context_snapshots": [],
            "output_bundles": [], "runs": [], "pauses": []});
        let (whole_fields, more) = (whole.as_object_mut().unwrap(), detail.as_object().unwrap().clone());
        whole_fields.extend(more);
        let mut moments = timeline(&serde_json::from_value(whole).expect("a ticket"));
        moments.sort_by_key(|moment| moment.at);
        moments.into_iter().map(|moment| moment.what).collect()
    }

    fn at(second: u8) -> String {
        format!("2026-11-19T10:00:0{second}.000000Z")
    }

    fn decided(kind: &str, second: u8) -> Value {
        json!({"kind": kind, "who": "operator", "digest": "0123456789abcdef", "note": null, "created_at": at(second)})
    }

    fn done(act: &str, second: u8, why: Value) -> Value {
        json!({"entry_id": "e", "created_at": at(second), "actor": "landing", "act": act, "subject": "t", "why": why})
    }

    #[test]
    fn a_merge_stands_after_the_confirmation_of_its_instant_and_what_became_of_it_after_that() {
        let pause = json!({"objective_id": "t", "azolla_id": "mec", "reason": "GATE_FAILED",
            "prioritized_actions": ["look"], "created_at": at(1), "happened": "its patch did not land"});
        let said = told(json!({
            "decisions": [decided("MERGE", 1), decided("CONFIRM", 1)],
            "acts": [done("not_landed", 1, json!({"why": "gate tests (exit 2)"}))],
            "pauses": [pause],
        }));
        let wanted = [
            "created it",
            "confirmed it (0123456789ab…)",
            "asked for its merge (0123456789ab…)",
            "did not land: gate tests (exit 2)",
            "paused: its patch did not land",
        ];
        assert_eq!(said, wanted);
        let landed = |to: Value| {
            told(json!({"acts": [done("landed", 2, json!({"base_branch": "main", "to": to}))]}))
                .pop()
                .unwrap()
        };
        assert_eq!(landed(json!("0123456789abcdef")), "landed on main as commit 0123456789ab");
        assert_eq!(landed(Value::Null), "landed: main has it already");
    }
}

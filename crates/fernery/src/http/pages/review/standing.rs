//! What stands beside a patch: what the gates found, whether it merges, the other attempts, and what can be done now.

use super::super::show::{Line, Prose};
use super::super::visit::api;
use super::text;
use crate::ticket_words::{is_as_approved, landing_line, of_gate};
use fernery_client::wire::ObjectiveDetail;
use fernery_core::percent::encode;
use fernery_core::pipeline::landing::{Fit, LandingState};
use fernery_core::pipeline::possible::Verb;
use serde_json::Value;

/// What one gate found.
pub(super) struct GateFound {
    pub(super) result: String,
    pub(super) line: Line,
    /// What else there is to it.
    pub(super) more: Vec<Line>,
    pub(super) tail: Prose,
    /// Where all of its log is.
    pub(super) log: Option<String>,
    pub(super) failed: bool,
}

/// How a patch stands to its base branch.
pub(super) struct Landed {
    pub(super) line: Line,
    pub(super) good: bool,
    pub(super) bad: bool,
    pub(super) files: Vec<Line>,
    pub(super) by_hand: String,
    pub(super) remarks: Vec<Line>,
    pub(super) branch: Line,
    pub(super) patch_sha256: String,
    pub(super) tip: String,
    /// Why it conflicts: the note of a reopening.
    pub(super) conflict: String,
}

/// Another attempt at the same ticket.
pub(super) struct Attempt {
    pub(super) number: usize,
    pub(super) work_order_id: String,
    /// Its run, if it was judged.
    pub(super) run_id: Option<String>,
    pub(super) result: String,
    pub(super) here: bool,
    /// It came before this one.
    pub(super) earlier: bool,
}

/// What a person can do now.
pub(super) struct Can {
    pub(super) confirm: bool,
    pub(super) merge: bool,
    pub(super) reopen: bool,
    /// What a reopening would approve is not what was last approved.
    pub(super) changed: bool,
}

pub(super) fn evidence(run: &Value, path: &str) -> Vec<GateFound> {
    let each = |found: &Value| {
        let mut lines = of_gate(found).into_iter();
        let result = found["result"].as_str().unwrap_or("did not run").to_string();
        let program = found["command"].is_array();
        GateFound {
            // The result stands before it already.
            line: Line(lines.next().unwrap_or_default().replacen(&format!(": {result}"), "", 1)),
            more: lines.map(|line| Line(line.trim_start().to_string())).collect(),
            tail: Prose::of(text(found, "log_tail")),
            log: program.then(|| format!("{path}/log?gate={}", encode(text(found, "gate")))),
            failed: result != "PASS",
            result,
        }
    };
    run["evidence"].as_array().into_iter().flatten().map(each).collect()
}

/// The landing of this run; `None` if it has none, or another run's patch is the one that lands.
pub(super) fn landing(ticket: &ObjectiveDetail, run_id: &str) -> Option<Landed> {
    let of = ticket.view.landing.as_ref().filter(|of| of.run_id.as_str() == run_id)?;
    let conflicts = of.state == LandingState::Open && of.fit == Some(Fit::Conflicts);
    let stopped = of.state == LandingState::Open && of.why.is_some();
    Some(Landed {
        line: Line(landing_line(of)),
        good: of.state == LandingState::Landed || of.fit == Some(Fit::Merges) && !stopped,
        bad: conflicts || stopped,
        files: of.files.iter().map(Line::of).collect(),
        by_hand: of.by_hand.join(" && "),
        remarks: of.remarks.iter().map(Line::of).collect(),
        branch: Line::of(format_args!("{} of {}", of.base_branch, of.repo_ref)),
        patch_sha256: of.patch_sha256.clone(),
        tip: if of.tip.is_empty() { of.base_commit.clone() } else { of.tip.clone() },
        conflict: if conflicts { of.why.clone().unwrap_or_default() } else { String::new() },
    })
}

pub(super) fn attempts(ticket: &ObjectiveDetail, run_id: &str) -> Vec<Attempt> {
    let mut attempts: Vec<Attempt> = Vec::new();
    for (nth, work) in ticket.workorders.iter().enumerate() {
        let id = text(work, "work_order_id");
        let run = ticket.runs.iter().find(|run| text(run, "work_order_id") == id);
        attempts.push(Attempt {
            number: nth + 1,
            work_order_id: id.to_string(),
            run_id: run.map(|run| api("/review/", text(run, "run_id"), "")),
            result: run.map_or(text(work, "status"), |run| text(run, "gate_result")).to_string(),
            here: run.is_some_and(|run| text(run, "run_id") == run_id),
            earlier: false,
        });
    }
    let here = attempts.iter().position(|attempt| attempt.here).unwrap_or(0);
    for attempt in attempts.iter_mut().take(here) {
        attempt.earlier = attempt.run_id.is_some();
    }
    attempts
}

pub(super) fn can(ticket: &ObjectiveDetail, run_id: &str, is_last: bool) -> Can {
    let lands = ticket.view.landing.as_ref().is_some_and(|of| of.run_id.as_str() == run_id);
    Can {
        confirm: is_last && ticket.allows(Verb::Confirm),
        merge: is_last && lands && ticket.allows(Verb::Merge),
        reopen: is_last && ticket.allows(Verb::Reopen),
        changed: !is_as_approved(ticket),
    }
}

//! A ticket in words, the same ones in the terminal and on the pages: what happened to it, what an approval of it covers, what it
//! asks, where its patch stands. What can be done with it is said by `fernery_core::pipeline::possible`.

mod changes;
mod covered;
mod evidence;
mod history;

pub(crate) use changes::{Revised, changes};
pub(crate) use covered::{Part, parts};
pub(crate) use evidence::{of_gate, of_run};
pub(crate) use history::{Moment, claims, timeline};

use crate::when::span;
use fernery_client::wire::{LandingView, ObjectiveDetail};
use fernery_core::artifact::{BlockerId, OutputBundle, RunId};
use fernery_core::limits::LANDINGS_TRIED;
use fernery_core::pipeline::approval::{Decision, Shown};
use fernery_core::pipeline::dependency::asks_somebody;
use fernery_core::pipeline::landing::{Fit, LandingState};
use fernery_core::pipeline::question;
use serde_json::Value;
use std::time::Duration;

/// A question that waits for an answer.
pub(crate) struct OpenQuestion {
    pub(crate) run_id: RunId,
    pub(crate) blocker_id: BlockerId,
    pub(crate) question: String,
}

/// The open question of a ticket, which was read with its documents.
pub(crate) fn open_question(of: &ObjectiveDetail) -> Option<OpenQuestion> {
    let run = of.runs.last()?;
    let bundle = of.output_bundles.iter().find(|bundle| bundle["output_id"] == run["output_id"])?;
    let bundle: OutputBundle = serde_json::from_value(bundle.clone()).ok()?;
    let question = question::asked(&bundle)?;
    let blocker = question::blocker(&question, &of.view.objective.blocked_on)?;
    let run_id = run["run_id"].as_str()?.parse().ok()?;
    let blocker_id = blocker.blocker_id.clone();
    (!blocker.resolved).then_some(OpenQuestion { run_id, blocker_id, question })
}

/// What was approved before, if anything was.
pub(crate) fn approved_before(read: &ObjectiveDetail) -> Option<&Value> {
    let approves =
        |decision: &&Value| matches!(decision["kind"].as_str(), Some("APPROVE" | "REOPEN" | "ANSWER"));
    read.decisions.iter().rev().find(approves).map(|decision| &decision["shown"])
}

/// Whether what an approval would cover now is exactly what was last approved.
pub(crate) fn is_as_approved(read: &ObjectiveDetail) -> bool {
    let Some(approval) = &read.approval else { return false };
    let now = Shown { content: approval.shown.clone(), digest: approval.digest };
    let decisions = read.decisions.iter().rev();
    let mut decisions = decisions.filter_map(|of| serde_json::from_value::<Decision>(of.clone()).ok());
    decisions.find(Decision::approves).is_some_and(|last| last.covers(&now))
}

/// What a person should know before they say yes, although nothing forbids it.
pub(crate) fn cautions(read: &ObjectiveDetail) -> Vec<String> {
    let open = asks_somebody(&read.view.objective, &read.view.waits_for).count();
    let blocked = (open > 0).then(|| {
        let s = if open == 1 { "" } else { "s" };
        format!("it has {open} open blocker{s}: it is not started before `fernery ticket unblock`")
    });
    let waits = read.view.waits_for.iter().filter(|of| !of.is_given_up());
    let waits = waits.map(|of| format!("it {}, and is started after that", of.sentence()));
    blocked.into_iter().chain(waits).collect()
}

/// The use of each part of the envelope that has a limit.
pub(crate) fn envelope(detail: &ObjectiveDetail) -> Option<String> {
    envelope_with(detail, Duration::ZERO)
}

/// The same, with the time of attempts that is not written down yet.
pub(crate) fn envelope_with(detail: &ObjectiveDetail, more: Duration) -> Option<String> {
    let bounds = detail.envelope.as_ref()?.as_object()?;
    let spent = &detail.view.spent;
    let part =
        |bound: &str, used: &str| Some((spent[used].as_u64().unwrap_or(0), bounds.get(bound)?.as_u64()?));
    let counted = |bound: &str, used: &str, unit: &str, of: u64| {
        part(bound, used).map(|(used, limit)| format!("{} of {} {unit}", used.div_ceil(of), limit / of))
    };
    let time = part("wall_time_ms", "wall_ms").map(|(used, limit)| {
        let used = Duration::from_millis(used).saturating_add(more).as_millis().div_ceil(1_000);
        let used = Duration::from_secs(u64::try_from(used).unwrap_or(u64::MAX));
        format!("{} of {}", span(used), span(Duration::from_millis(limit)))
    });
    let parts = [
        counted("attempts", "attempts", "attempts", 1),
        time,
        counted("tokens", "tokens", "tokens", 1),
        counted("cost_usd_micros", "cost_usd_micros", "cents", 10_000),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Where a patch stands, in one line.
pub(crate) fn landing_line(landing: &LandingView) -> String {
    let LandingView { base_branch: branch, .. } = landing;
    match (landing.state, landing.fit, &landing.commit) {
        (LandingState::Landed, _, Some(commit)) => format!("landed on {branch} as commit {}", short(commit)),
        (LandingState::Landed, _, None) => format!("landed: {branch} has it already"),
        (LandingState::Wanted | LandingState::Moving, ..) => match (&landing.waiting, &landing.why) {
            (Some(waiting), _) => format!("is wanted on {branch} and does not land: {}", waiting.why),
            (None, Some(why)) => format!("is landing on {branch}; it is tried again: {why}"),
            (None, None) => format!("is landing on {branch}"),
        },
        (LandingState::Reworked, ..) => "conflicted, and is worked on again by itself".into(),
        (LandingState::Open, fit, _) => {
            let last = match (&landing.why, fit) {
                (why, Some(Fit::Conflicts)) => format!("conflicts: {}", why.as_deref().unwrap_or(branch)),
                (Some(why), _) => format!("did not land: {why}"),
                (None, Some(_)) => format!("merges with {branch} at {}", short(&landing.tip)),
                (None, None) => format!("not tried on {branch} yet"),
            };
            match landing.left_out {
                true => format!(
                    "{last}; not tried on newer tips, since {LANDINGS_TRIED} newer patches have not landed: a merge tries it"
                ),
                false => last,
            }
        }
    }
}

/// As [`landing_line`], for a row of a list; nothing for one that nobody has tried yet.
pub(crate) fn landing_brief(landing: &LandingView) -> Option<String> {
    match (landing.state, landing.fit, &landing.why) {
        (LandingState::Open, None, None) => None,
        (LandingState::Open, Some(Fit::Merges), None) => Some(format!("merges with {}", landing.base_branch)),
        (LandingState::Open, Some(Fit::Conflicts), _) if !landing.files.is_empty() => {
            Some(format!("conflicts: {}", landing.files.join(", ")))
        }
        (LandingState::Landed, ..) => Some(format!("on {}", landing.base_branch)),
        _ => Some(landing_line(landing)),
    }
}

/// The first part of a commit or digest.
pub(crate) fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

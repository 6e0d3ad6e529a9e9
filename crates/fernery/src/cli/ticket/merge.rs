//! `fernery ticket merge`: a person looks at a patch that passed, confirms it, and it lands on its base branch.

use super::{act, detail, path};
use crate::cli::failure::{Failure, Outcome};
use crate::cli::input;
use crate::cli::run::diff::counts;
use crate::cli::screen::{Cell, Screen, counted, plain, remark};
use fernery_client::Client;
use fernery_client::client::{Query, Reply};
use fernery_client::wire::{ConfirmRequest, DecisionResponse, LandRequest, LandingView, ObjectiveDetail};
use fernery_core::artifact::{ObjectiveId, ObjectiveStatus};
use fernery_core::blueprint::MergeAs;
use fernery_core::canonical::Digest;
use fernery_core::patch;
use fernery_core::pipeline::landing::{Fit, LandingState};
use serde_json::Value;
use std::time::Duration;

/// How often the landing is asked for: at first, and after a while, when its gates take long.
const ASKED_FIRST: Duration = Duration::from_millis(20);
const ASKED_LAST: Duration = Duration::from_millis(500);
/// Files of the patch that are named.
const FILES_SHOWN: usize = 20;

/// The message if the person does not agree.
const UNMERGED: &str = "nothing was merged";

pub(in crate::cli) async fn merge(
    id: &ObjectiveId,
    yes: bool,
    note: Option<String>,
    client: &Client,
    screen: Screen,
) -> Outcome {
    if !yes && !input::can_ask() {
        return Err(Failure::usage(
            "a merge covers exactly what was read, and there is no terminal to ask on: pass --yes",
        ));
    }
    let read = detail(client, id).await?.read()?;
    let landing = landing_of(id, &read)?;
    let unconfirmed = read.view.unconfirmed;
    match landing.state {
        LandingState::Landed => return told(&landing, screen),
        LandingState::Wanted | LandingState::Moving => return waited(id, client, screen).await,
        LandingState::Open | LandingState::Reworked => {}
    }
    if !screen.json {
        show(screen, id, &read, &landing)?;
    }
    if !yes {
        let what = if unconfirmed { "confirm this run and merge its patch" } else { "merge this patch" };
        input::confirmed(&format!("{what} into {}? [y/N] ", landing.base_branch), UNMERGED)?;
    }
    if unconfirmed {
        let body =
            ConfirmRequest { run_id: landing.run_id.clone(), note: note.clone(), record_id: act::record() };
        let _: Reply<DecisionResponse> = act::send(client, &path(id, "confirm"), &body).await?;
    }
    // Where the blueprint lands what is confirmed, this answers with the record of that.
    let body = LandRequest {
        run_id: landing.run_id.clone(),
        patch_sha256: landing
            .patch_sha256
            .parse()
            .map_err(|why: String| Failure::failed("unreadable", why))?,
        tip: if landing.tip.is_empty() { landing.base_commit.clone() } else { landing.tip.clone() },
        note,
        record_id: act::record(),
    };
    let _: Reply<DecisionResponse> = act::send(client, &path(id, "merge"), &body).await?;
    waited(id, client, screen).await
}

/// The landing of a ticket that is finished; of one that an earlier version judged, as the server would write it down.
fn landing_of(id: &ObjectiveId, read: &ObjectiveDetail) -> Outcome<LandingView> {
    let status = read.view.objective.status;
    if status != ObjectiveStatus::Done {
        return Err(Failure::conflict(format!("{id} is {status}: only a ticket that is DONE can be merged")));
    }
    let known = read.view.landing.clone();
    known
        .or_else(|| of_earlier(read))
        .ok_or_else(|| Failure::conflict(format!("the output of {id} is no patch for a branch")))
}

fn of_earlier(read: &ObjectiveDetail) -> Option<LandingView> {
    let run = read.runs.last()?;
    let bundle = read.output_bundles.iter().find(|of| of["output_id"] == run["output_id"])?;
    let work = read.workorders.iter().find(|of| of["work_order_id"] == run["work_order_id"])?;
    let snapshot =
        read.context_snapshots.iter().find(|of| of["snapshot_id"] == work["context_snapshot_id"])?;
    let said = |name: &str| snapshot["metadata"][name].as_str().map(str::to_string);
    Some(LandingView {
        state: LandingState::Open,
        fit: None,
        why: None,
        files: Vec::new(),
        run_id: run["run_id"].as_str()?.parse().ok()?,
        patch_sha256: Digest::of_bytes(bundle["content"].as_str()?.as_bytes()).to_string(),
        repo_ref: said("repo_ref")?,
        base_branch: said("base_branch")?,
        base_commit: said("commit_sha")?,
        tip: String::new(),
        branch: None,
        merge: MergeAs::FastForward,
        commit: None,
        remarks: Vec::new(),
        by_hand: Vec::new(),
    })
}

/// Waits until the patch has landed, or not.
async fn waited(id: &ObjectiveId, client: &Client, screen: Screen) -> Outcome {
    let (mut pause, mut said) = (ASKED_FIRST, false);
    loop {
        let reply: Reply<LandingView> =
            client.get(&path(id, "landing"), &Query::new(), Duration::ZERO).await?;
        let landing = reply.read()?;
        match landing.state {
            LandingState::Wanted | LandingState::Moving => {}
            LandingState::Landed => return told(&landing, screen),
            LandingState::Open | LandingState::Reworked => return Err(stopped(id, &landing)),
        }
        if !said && !screen.json && pause == ASKED_LAST {
            said = true;
            remark(
                "its gates check the merged files; you can leave: it lands by itself (Ctrl-C, then: fernery ticket show)",
            );
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 6 / 5).min(ASKED_LAST);
    }
}

/// What has landed.
fn told(landing: &LandingView, screen: Screen) -> Outcome {
    if screen.json {
        return screen.line(
            &serde_json::to_string(landing).map_err(|why| Failure::failed("unreadable", why.to_string()))?,
        );
    }
    screen.say(&plain(&line(landing)))?;
    landing.remarks.iter().for_each(|text| remark(&plain(text)));
    Ok(())
}

fn stopped(id: &ObjectiveId, landing: &LandingView) -> Failure {
    let why = landing.why.as_deref().unwrap_or("no reason is known");
    let failure = Failure::conflict(plain(&format!("{id} did not land: {why}")));
    match landing.state {
        LandingState::Reworked => failure.hint("it is worked on again by itself"),
        _ => failure.hint(format_args!("fernery ticket show {id} says what to do")),
    }
}

/// Where a patch stands, in one line.
pub(crate) fn line(landing: &LandingView) -> String {
    let LandingView { base_branch: branch, .. } = landing;
    match (landing.state, landing.fit, &landing.commit) {
        (LandingState::Landed, _, Some(commit)) => format!("landed on {branch} as commit {}", short(commit)),
        (LandingState::Landed, _, None) => format!("landed: {branch} has it already"),
        (LandingState::Wanted | LandingState::Moving, ..) => match &landing.why {
            Some(why) => format!("is landing on {branch}; it is tried again: {why}"),
            None => format!("is landing on {branch}"),
        },
        (LandingState::Reworked, ..) => "conflicted, and is worked on again by itself".into(),
        (LandingState::Open, Some(Fit::Conflicts), _) => {
            format!("conflicts: {}", landing.why.as_deref().unwrap_or(branch))
        }
        (LandingState::Open, fit, _) => match (&landing.why, fit) {
            (Some(why), _) => format!("did not land: {why}"),
            (None, Some(_)) => format!("merges with {branch} at {}", short(&landing.tip)),
            (None, None) => format!("not tried on {branch} yet"),
        },
    }
}

/// Where a patch stands, for a row of a list; nothing for one that merges or has landed without anybody's doing.
pub(in crate::cli) fn brief_line(landing: &LandingView) -> Option<String> {
    match (landing.state, landing.fit) {
        (LandingState::Open, Some(Fit::Merges)) => Some(format!("merges with {}", landing.base_branch)),
        (LandingState::Open, None) => None,
        (LandingState::Open, Some(Fit::Conflicts)) if !landing.files.is_empty() => {
            Some(format!("conflicts: {}", landing.files.join(", ")))
        }
        (LandingState::Landed, _) => Some(format!("on {}", landing.base_branch)),
        _ => Some(line(landing)),
    }
}

/// The commands for those who merge by hand.
pub(in crate::cli) fn by_hand(landing: &LandingView) -> Option<String> {
    let open = landing.state == LandingState::Open && landing.fit != Some(Fit::Conflicts);
    (open && !landing.by_hand.is_empty()).then(|| landing.by_hand.join(" && "))
}

/// The command that has a patch made again, with the conflict as its note.
pub(in crate::cli) fn reopening(id: &ObjectiveId, landing: &LandingView) -> String {
    let why = landing.why.as_deref().unwrap_or("it conflicts with its base branch").replace('\'', "’");
    format!("fernery ticket reopen {id} --note '{why}'")
}

/// What to do about the patch of a confirmed ticket.
pub(in crate::cli) fn next(detail: &ObjectiveDetail) -> Vec<String> {
    let (id, Some(landing)) = (&detail.view.objective.objective_id, &detail.view.landing) else {
        return Vec::new();
    };
    let last = || detail.pauses.iter().max_by_key(|pause| pause.created_at);
    match (landing.state, landing.fit) {
        (LandingState::Wanted | LandingState::Moving, _) => vec!["Nothing: it lands by itself".into()],
        (LandingState::Open, Some(Fit::Conflicts)) => {
            vec![format!("Let it be worked on again: {}", reopening(id, landing))]
        }
        (LandingState::Open, _) if landing.why.is_some() => {
            last().map_or_else(Vec::new, |pause| pause.prioritized_actions.clone())
        }
        (LandingState::Open, _) => vec![format!("Merge it: fernery ticket merge {id}")],
        _ => Vec::new(),
    }
}

/// What a person who has confirmed a ticket does next.
pub(in crate::cli) fn after_confirm(id: &ObjectiveId, reply: &DecisionResponse) -> Outcome {
    let Some(landing) = &reply.view.landing else { return Ok(()) };
    match landing.state {
        LandingState::Open => {
            remark(&format!("to merge it: fernery ticket merge {id}"));
            if let Some(commands) = by_hand(landing) {
                remark(&format!("or by hand, in repository {}: {commands}", landing.repo_ref));
            }
        }
        LandingState::Wanted | LandingState::Moving => {
            remark(&format!("it lands on {} by itself", landing.base_branch))
        }
        LandingState::Landed | LandingState::Reworked => {}
    }
    Ok(())
}

fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

/// What is merged: run, patch, branch.
fn show(screen: Screen, id: &ObjectiveId, read: &ObjectiveDetail, landing: &LandingView) -> Outcome {
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_string();
    let run = read.runs.iter().rev().find(|run| run["run_id"] == landing.run_id.as_str());
    let bundle =
        run.and_then(|run| read.output_bundles.iter().find(|of| of["output_id"] == run["output_id"]));
    let files = bundle.and_then(|of| patch::read(of["content"].as_str()?).ok()).map(|patch| patch.files);
    let files = files.unwrap_or_default();
    let (plus, minus) = files.iter().fold((0, 0), |(plus, minus), file| {
        let (more, less, _) = counts(file);
        (plus + more, minus + less)
    });
    let confirmed = if read.view.unconfirmed { "no: your yes confirms it" } else { "yes" };
    screen.facts(&[
        ("ticket", id.into()),
        ("title", (&read.view.objective.title).into()),
        ("run", (&landing.run_id).into()),
        ("gates", run.map(|run| text(run, "gate_reason")).unwrap_or_default().into()),
        ("confirmed", confirmed.into()),
        (
            "patch",
            format!(
                "{}, +{plus} −{minus}, sha256 {}",
                counted(files.len(), "file"),
                short(&landing.patch_sha256)
            )
            .into(),
        ),
        (
            "into",
            format!("{} of {}, at {}", landing.base_branch, landing.repo_ref, short(shown_tip(landing)))
                .into(),
        ),
        ("how", Cell::from(how(landing))),
        ("now", line(landing).into()),
    ])?;
    for file in files.iter().take(FILES_SHOWN) {
        let (plus, minus, _) = counts(file);
        screen.line(&plain(&format!("  {}  +{plus} −{minus}", file.path)))?;
    }
    if files.len() > FILES_SHOWN {
        screen.line(&format!("  and {} more: fernery run diff {id} --stat", files.len() - FILES_SHOWN))?;
    }
    screen.line(&format!("  read it: fernery run diff {id}"))
}

fn shown_tip(landing: &LandingView) -> &str {
    if landing.tip.is_empty() { &landing.base_commit } else { &landing.tip }
}

fn how(landing: &LandingView) -> &'static str {
    match landing.merge {
        MergeAs::FastForward => {
            "fast-forward: one commit on top of the tip, after the gates passed on the merged files"
        }
        MergeAs::MergeCommit => "a merge commit, after the gates passed on the merged files",
    }
}

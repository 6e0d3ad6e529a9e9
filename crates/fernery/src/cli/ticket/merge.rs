//! `fernery ticket merge`: a person looks at a patch that passed, confirms it, and it lands on its base branch.

use super::{act, detail, path};
use crate::cli::failure::{Failure, Outcome};
use crate::cli::input;
use crate::cli::run::diff::counts;
use crate::cli::screen::{Cell, Screen, counted, plain, remark};
use crate::ticket_words::{landing_line, short};
use fernery_client::Client;
use fernery_client::client::{Query, Reply};
use fernery_client::wire::{ConfirmRequest, DecisionResponse, LandRequest, LandingView, ObjectiveDetail};
use fernery_core::artifact::{ObjectiveId, ObjectiveStatus};
use fernery_core::blueprint::MergeAs;
use fernery_core::patch;
use fernery_core::pipeline::landing::{Fit, LandingState, reopening};
use fernery_core::pipeline::possible::SeenStatus;
use serde_json::Value;
use std::time::Duration;

/// How often the landing is asked for: at first, and after a while, when its gates take long.
const ASKED_FIRST: Duration = Duration::from_millis(20);
const ASKED_LAST: Duration = Duration::from_millis(500);
/// How long a patch that nobody can land is waited for: a server may be starting.
const STUCK_FOR: Duration = Duration::from_secs(2);
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
    let asks = !yes && input::can_ask();
    let read = detail(client, id).await?.read()?;
    let landing = landing_of(id, &read)?;
    let kept = is_kept(&read);
    let unconfirmed = read.view.unconfirmed || kept;
    match landing.state {
        LandingState::Landed => return told(&landing, screen),
        LandingState::Wanted | LandingState::Moving => return waited(id, client, screen).await,
        LandingState::Open | LandingState::Reworked => {}
    }
    if !screen.json {
        show(screen, id, &read, &landing)?;
    }
    // Nobody keeps a run that was sent back without having named it.
    if kept && !asks {
        let run = &landing.run_id;
        return Err(Failure::conflict(format!(
            "{id} is BLOCKED, and run {run} passed before it was reopened; nothing was merged"
        ))
        .hint(format_args!(
            "to keep that run, confirm it first: fernery ticket confirm {id} --run {run} && fernery ticket merge {id} --yes"
        )));
    }
    // A conflict is told before anything is confirmed: who only knows that the run passed may want another one.
    let conflict = known_conflict(&landing).filter(|_| unconfirmed);
    if let Some(why) = conflict.as_ref().filter(|_| !asks) {
        let told = format!("{id} conflicts: {why}; nothing was confirmed, and nothing was merged");
        return Err(Failure::conflict(plain(&told))
            .hint(format_args!("let it be worked on again: {}", reopening(id, landing.why.as_deref()))));
    }
    if !yes && !asks {
        return Err(Failure::usage(
            "a merge covers exactly what was read, and there is no terminal to ask on: pass --yes",
        ));
    }
    if asks {
        let open = read.view.objective.blocked_on.iter().filter(|blocker| kept && !blocker.resolved);
        for blocker in open {
            screen.say(&plain(&format!("this resolves the blocker: {}", blocker.description)))?;
        }
        let what = match (&conflict, unconfirmed) {
            (Some(why), _) => {
                format!(
                    "it conflicts: {}. Confirm this run and try to merge its patch all the same",
                    plain(why)
                )
            }
            (None, true) => "confirm this run and merge its patch".into(),
            (None, false) => "merge this patch".into(),
        };
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

/// Why it is known to conflict with the tip of its branch. A patch that is not tried on new tips may merge by now.
fn known_conflict(landing: &LandingView) -> Option<String> {
    let known = landing.fit == Some(Fit::Conflicts) && !landing.left_out;
    known.then(|| landing.why.clone().unwrap_or_else(|| format!("with {}", landing.base_branch)))
}

/// Whether what came after a run that passed did not, and a merge keeps that run: the server says so.
fn is_kept(read: &ObjectiveDetail) -> bool {
    read.kept_run.is_some()
}

/// The landing of a ticket that is finished, or of a run that is kept, as the server has it or would write it down.
fn landing_of(id: &ObjectiveId, read: &ObjectiveDetail) -> Outcome<LandingView> {
    let status = read.view.objective.status;
    let kept = is_kept(read);
    if status != ObjectiveStatus::Done && !kept {
        let seen = SeenStatus::of(&read.view.objective);
        let failure = Failure::conflict(format!("{id} is {seen}: only a ticket that is DONE can be merged"));
        return Err(match read.next.first() {
            Some(next) => failure.hint(plain(next)),
            None => failure,
        });
    }
    let known = read.view.landing.clone().filter(|_| !kept);
    known.or_else(|| read.merges.clone()).ok_or_else(|| {
        Failure::conflict(format!(
            "{id} has no patch that can be merged here: its output is not a patch for a branch, or another instance \
             judged it; nothing was confirmed, and nothing was merged"
        ))
        .hint(format_args!("to have one made here: fernery ticket reopen {id} --note \"what is missing\""))
    })
}

/// Waits until the patch has landed, or not.
async fn waited(id: &ObjectiveId, client: &Client, screen: Screen) -> Outcome {
    let (mut pause, mut said, mut stuck) = (ASKED_FIRST, false, Duration::ZERO);
    loop {
        let reply: Reply<LandingView> =
            client.get(&path(id, "landing"), &Query::new(), Duration::ZERO).await?;
        let landing = reply.read()?;
        match landing.state {
            LandingState::Wanted | LandingState::Moving => {}
            LandingState::Landed => return told(&landing, screen),
            LandingState::Open | LandingState::Reworked => return Err(stopped(id, &landing)),
        }
        if let Some(waiting) = landing.waiting.filter(|_| stuck >= STUCK_FOR) {
            return Err(Failure::conflict(plain(&format!("{id} does not land: {}", waiting.why))).hint(format_args!(
                "your wish is recorded and stays: it lands by itself as soon as a server can; fernery ticket show {id} says \
                 whether it has, and fernery ticket cancel {id} gives it up"
            )));
        }
        if !said && !screen.json && pause == ASKED_LAST {
            said = true;
            remark(
                "its gates check the merged files; you can leave: it lands by itself (Ctrl-C, then: fernery ticket show)",
            );
        }
        tokio::time::sleep(pause).await;
        stuck += pause;
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
    screen.say(&plain(&landing_line(landing)))?;
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

/// The commands for those who merge by hand.
pub(in crate::cli) fn by_hand(landing: &LandingView) -> Option<String> {
    let open = landing.state == LandingState::Open;
    (open && !landing.by_hand.is_empty()).then(|| landing.by_hand.join(" && "))
}

/// The command that shows what the gate wrote at which a merge failed. A gate without an exit code runs no program.
pub(in crate::cli) fn gate_log(id: &ObjectiveId, landing: &LandingView) -> Option<String> {
    let why = landing.why.as_ref().filter(|_| landing.state == LandingState::Open)?;
    let (_, found) = why.strip_prefix("merged with ")?.split_once(": gate ")?;
    let (gate, _) = found.split_once(" (")?;
    Some(format!("fernery run logs {id} --gate {}", input::shell_word(gate)))
}

/// What a person who has confirmed a ticket does next.
pub(in crate::cli) fn after_confirm(id: &ObjectiveId, reply: &DecisionResponse) -> Outcome {
    let Some(landing) = &reply.view.landing else { return Ok(()) };
    match landing.state {
        LandingState::Open if landing.fit == Some(Fit::Conflicts) && !landing.left_out => {
            remark(&plain(&format!("it {}", landing_line(landing))));
            remark(&plain(&format!("let it be worked on again: {}", reopening(id, landing.why.as_deref()))));
        }
        LandingState::Open if landing.why.is_some() => {
            remark(&plain(&format!("it {}", landing_line(landing))));
            remark(&format!("when that is mended, merge it: fernery ticket merge {id}"));
        }
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
    let confirmed = match (is_kept(read), read.view.unconfirmed) {
        (true, _) => "no: the ticket was reopened after it; your yes keeps this run and confirms it",
        (false, true) => "no: your yes confirms it",
        (false, false) => "yes",
    };
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
        ("now", landing_line(landing).into()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_patch_that_is_no_longer_tried_says_so_and_is_known_to_conflict_no_longer() {
        let landing = |left_out: bool, fit: &str| -> LandingView {
            let of = json!({"state": "OPEN", "fit": fit, "why": null, "files": [], "run_id": "r", "patch_sha256": "p",
                "repo_ref": "app", "base_branch": "main", "base_commit": "b", "tip": "0123456789abcdef", "left_out": left_out,
                "branch": null, "merge": "ff", "commit": null, "remarks": [], "by_hand": []});
            serde_json::from_value(of).expect("a landing")
        };
        assert_eq!(landing_line(&landing(false, "MERGES")), "merges with main at 0123456789ab");
        let said = landing_line(&landing(true, "MERGES"));
        assert!(said.contains("since 100 newer patches have not landed: a merge tries it"), "{said}");
        assert_eq!(known_conflict(&landing(false, "CONFLICTS")).as_deref(), Some("with main"));
        assert_eq!(known_conflict(&landing(true, "CONFLICTS")), None);
    }
}

//! The newest manifest, as it stands now: what was done since is left out, and what comes next of the same look takes its place.

use super::super::is_page;
use super::super::show::{Line, Ways, When};
use super::super::visit::{Visit, api};
use super::super::{suggested, triage};
use crate::http::problem::{Code, Refused};
use crate::orientation;
use fernery_client::wire::{
    AzollaList, CandidatePage, ManifestPage, ManifestView, ObjectiveDetail, ReviewTime,
};
use fernery_core::artifact::ObjectiveStatus;
use fernery_core::inbox::CandidateStatus;
use fernery_core::inbox::deadline::is_cancelled;
use fernery_core::inbox::facts::Item;
use fernery_core::pipeline::possible::Verb;

/// Things to do that are shown.
const SHOWN: usize = 5;
/// Items of a manifest that are looked at: if more of them are done, it is time to look again.
const LOOKED_AT: usize = 15;

/// One thing to do.
pub(super) struct Action {
    pub(super) headline: Line,
    pub(super) why: Line,
    /// What its button says, and the page that it leads to.
    pub(super) button: &'static str,
    pub(super) path: String,
    /// The same from a terminal and by HTTP.
    pub(super) ways: Option<Ways>,
    /// What has become of it since the page was made.
    pub(super) since: Option<Line>,
}

/// The orientation.
pub(super) struct Orientation {
    pub(super) azolla_id: String,
    pub(super) made: Option<When>,
    pub(super) actions: Vec<Action>,
    /// Things that needed somebody then and do not any more.
    pub(super) done: usize,
    pub(super) more: u64,
    pub(super) unseen: Vec<Line>,
    pub(super) ways: Ways,
}

/// The time that everything takes which waits for a person.
pub(super) struct Waits {
    pub(super) minutes: String,
    pub(super) what: String,
    pub(super) rule: String,
}

/// How long a review of all that waits takes; `None`: nothing waits.
pub(super) async fn waits(visit: &Visit) -> Result<Option<Waits>, Refused> {
    let time: ReviewTime = visit.get("/v1/review_time", &[]).await?;
    if time.minutes == 0 {
        return Ok(None);
    }
    let (minutes, what) = (orientation::minutes(&time), orientation::waits(&time));
    Ok(Some(Waits { minutes, what, rule: time.rule }))
}

/// The newest manifest of the azolla that makes them, if there is one.
pub(super) async fn orientation(
    visit: &Visit,
    inbox: &CandidatePage,
) -> Result<Option<Orientation>, Refused> {
    let azollas: AzollaList = visit.get("/v1/azollas", &[]).await?;
    let Some(maker) = azollas.azollas.into_iter().find(|azolla| azolla.makes_manifests) else {
        return Ok(None);
    };
    let id = maker.azolla_id.to_string();
    let path = api("/v1/azollas/", &id, "/manifests");
    let page: ManifestPage = visit.get(&path, &[("limit", "1")]).await?;
    let ways = Ways::new("fernery orient", "POST", &path, None);
    let Some(newest) = page.manifests.into_iter().next() else {
        let (actions, unseen) = (Vec::new(), Vec::new());
        return Ok(Some(Orientation { azolla_id: id, made: None, actions, done: 0, more: 0, unseen, ways }));
    };
    let ManifestView { manifest, facts, .. } = &newest;
    let advice = orientation::lines(&manifest.prioritized_orientation, facts);
    let told: Vec<&str> =
        advice.iter().filter_map(|line| line.item.map(|item| item.item_id.as_str())).collect();
    let next = facts.items.iter().filter(|item| !told.contains(&item.item_id.as_str()));
    let next = next.map(|item| (item.title.clone(), item.why.join("; "), Some(item)));
    let all = advice.iter().map(|line| (line.headline.clone(), line.why_now.clone(), line.item)).chain(next);
    let (mut actions, mut done) = (Vec::new(), 0);
    for (headline, why, item) in all.take(LOOKED_AT) {
        if actions.len() == SHOWN {
            break;
        }
        let since = match item {
            None => None,
            Some(item) => match become_of(visit, item, inbox).await? {
                Become::AsItWas => None,
                Become::Other(since) => Some(since),
                Become::Done => {
                    done += 1;
                    continue;
                }
            },
        };
        // A page that this version does not have leads nowhere; its command is there.
        let lead = item.map(lead).filter(|(_, path)| is_page(path));
        let (button, path) = lead.unwrap_or_default();
        actions.push(Action {
            headline: Line(headline),
            why: Line(why),
            button,
            path,
            ways: item.map(|item| suggested::ways(&item.command)),
            since,
        });
    }
    let all = facts.items.len() as u64 + facts.more;
    let unseen = facts.asked.iter().filter(|asked| !asked.is_seen());
    Ok(Some(Orientation {
        azolla_id: id,
        made: Some(When(manifest.created_at)),
        more: all.saturating_sub((actions.len() + done) as u64),
        unseen: unseen.map(|asked| Line::of(&asked.azolla_id)).collect(),
        actions,
        done,
        ways,
    }))
}

/// What has become of an item since the manifest was made.
enum Become {
    AsItWas,
    /// It still needs somebody, and not for what it says.
    Other(Line),
    Done,
}

async fn become_of(visit: &Visit, item: &Item, inbox: &CandidatePage) -> Result<Become, Refused> {
    let (Some(id), Some(then)) = (&item.objective_id, item.status) else {
        let words: Vec<&str> = item.command.split_whitespace().collect();
        return match words[..] {
            ["fernery", "triage", "promote", part] => still_waits(visit, part).await,
            ["fernery", "ticket", "merge", id] => Ok(match ticket(visit, id).await? {
                Some(detail) => merged(&detail, item),
                None => Become::AsItWas,
            }),
            _ => Ok(of_inbox(&words, inbox)),
        };
    };
    match ticket(visit, id.as_str()).await? {
        Some(detail) if detail.view.objective.azolla_id == item.azolla_id => {
            Ok(compared(&detail, then, &item.command))
        }
        // It is one of another server.
        _ => Ok(Become::AsItWas),
    }
}

async fn ticket(visit: &Visit, id: &str) -> Result<Option<ObjectiveDetail>, Refused> {
    let path = api("/v1/objectives/", id, "");
    match visit.get(&path, &[("documents", "false")]).await {
        Ok(detail) => Ok(Some(detail)),
        Err(refused) if refused.code == Code::NotFound => Ok(None),
        Err(refused) => Err(refused),
    }
}

/// What has become of an item about the inbox as a whole, from the command that deals with it.
fn of_inbox(command: &[&str], inbox: &CandidatePage) -> Become {
    let is_done = match command {
        ["fernery", "triage"] => inbox.candidates.is_empty(),
        ["fernery", "triage", "release", ..] => inbox.held_captures + inbox.held_recurrences == 0,
        _ => false,
    };
    if is_done { Become::Done } else { Become::AsItWas }
}

/// What has become of a candidate that pressed.
async fn still_waits(visit: &Visit, part: &str) -> Result<Become, Refused> {
    let ids = match triage::meant(visit, part).await {
        Ok(ids) => ids,
        // So many ids begin like it that nobody looked at all of them.
        Err(refused) if refused.code == Code::Invalid => return Ok(Become::AsItWas),
        Err(refused) => return Err(refused),
    };
    let mut waits = false;
    for id in &ids {
        let candidate = triage::read(visit, id).await?;
        waits |= candidate.status == CandidateStatus::Waiting && candidate.snoozed_until.is_none();
    }
    Ok(if waits { Become::AsItWas } else { Become::Done })
}

/// What has become of patches that nobody had merged. The command names the first of them; the title names them all.
fn merged(first: &ObjectiveDetail, item: &Item) -> Become {
    let id = first.view.objective.objective_id.as_str();
    if first.allows(Verb::Merge) {
        return Become::AsItWas;
    }
    match item.title.ends_with(&format!(": {id}")) {
        true => Become::Done,
        false => Become::Other(Line::of(format_args!("{id} waits for no merge"))),
    }
}

/// An item is done when what it says cannot be done any more, or when it is put off. If it needs somebody all the same, that is told.
fn compared(now: &ObjectiveDetail, then: ObjectiveStatus, command: &str) -> Become {
    let status = now.view.objective.status;
    let words: Vec<&str> = command.split_whitespace().collect();
    let verb: Option<Verb> = match words[..] {
        ["fernery", "ticket", verb, ..] => verb.parse().ok(),
        ["fernery", "done", ..] => Some(Verb::Done),
        _ => None,
    };
    let possible = match verb {
        None => true,
        // The same command confirms an earlier run.
        Some(Verb::Confirm) => now.allows(Verb::Confirm) || now.allows(Verb::Keep),
        Some(verb) => now.allows(verb),
    };
    // What a person does stays theirs until they say that it is done.
    let same = status == then || verb == Some(Verb::Done);
    if now.view.snoozed_until.is_some() || is_cancelled(&now.view.objective) {
        return Become::Done;
    }
    if possible && same {
        return Become::AsItWas;
    }
    let needs_somebody = match status {
        ObjectiveStatus::New | ObjectiveStatus::Blocked => true,
        ObjectiveStatus::Done => now.view.unconfirmed,
        ObjectiveStatus::Todo | ObjectiveStatus::InProgress => false,
    };
    match needs_somebody {
        false => Become::Done,
        true if status == then => Become::Other(Line::of("something else is needed")),
        true => Become::Other(Line::of(format_args!("it is {status}"))),
    }
}

/// The button of an item, from the command that deals with it.
pub(in super::super) fn lead(item: &Item) -> (&'static str, String) {
    let words: Vec<&str> = item.command.split_whitespace().collect();
    match words[..] {
        ["fernery", "ticket", "approve", id] => ("Read and approve", api("/approve/", id, "")),
        ["fernery", "ticket", "confirm" | "merge", id] => ("Review", api("/review/", id, "")),
        ["fernery", "ticket", act, id, ..] if !id.starts_with('-') => {
            let button = match act {
                "answer" => "Answer",
                "unblock" => "Unblock",
                _ => "Open the ticket",
            };
            (button, api("/ticket/", id, ""))
        }
        ["fernery", "done", id, ..] => ("Open the ticket", api("/ticket/", id, "")),
        ["fernery", "triage", "promote", id] => ("Decide about it", api("/candidate/", id, "")),
        ["fernery", "triage", ..] => ("Go through the inbox", "/triage".to_string()),
        _ => match &item.objective_id {
            Some(id) => ("Open the ticket", api("/ticket/", id.as_str(), "")),
            None => ("", String::new()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fernery_core::artifact::AzollaId;

    #[test]
    fn a_button_leads_where_the_command_would() {
        let item = |command: &str, id: Option<&str>| Item {
            item_id: "mec/T-1".into(),
            azolla_id: AzollaId::stored("mec"),
            objective_id: id.map(fernery_core::artifact::ObjectiveId::stored),
            title: String::new(),
            why: Vec::new(),
            command: command.into(),
            importance: 2,
            urgency: 2,
            due_at: None,
            overdue: false,
            status: None,
            pause: None,
            score_terms: Vec::new(),
        };
        for (command, id, path) in [
            ("fernery ticket approve T-1", None, "/approve/T-1"),
            ("fernery ticket confirm T-1", None, "/review/T-1"),
            ("fernery ticket merge T-1", None, "/review/T-1"),
            ("fernery ticket answer T-1 'x'", None, "/ticket/T-1"),
            ("fernery triage", None, "/triage"),
            ("fernery triage promote 019a8c5e-07398f", None, "/candidate/019a8c5e-07398f"),
            ("fernery ticket list --azolla x", Some("T-1"), "/ticket/T-1"),
            ("fernery trash list", None, ""),
        ] {
            assert_eq!(lead(&item(command, id)).1, path, "{command}");
        }
    }

    #[test]
    fn what_was_held_is_done_once_it_is_released() {
        let inbox = |held_captures, held_recurrences| CandidatePage {
            candidates: Vec::new(),
            next_cursor: None,
            held_captures,
            held_recurrences,
            pending_captures: 0,
        };
        let done = |command: &[&str], inbox| matches!(of_inbox(command, &inbox), Become::Done);
        let release = ["fernery", "triage", "release", "--azolla", "x"];
        assert!(done(&release, inbox(0, 0)) && done(&release[..3], inbox(0, 0)));
        assert!(!done(&release, inbox(1, 0)) && !done(&release, inbox(0, 1)));
        assert!(done(&["fernery", "triage"], inbox(1, 0)) && !done(&["fernery", "trash"], inbox(0, 0)));
    }
}

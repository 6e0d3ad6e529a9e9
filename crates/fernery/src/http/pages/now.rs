//! `GET /`: what needs a person now, what runs, and what is stuck; and a box for a thought.

use super::frame::Frame;
use super::is_page;
use super::reply::PageReply;
use super::show::{Id, Line, Ways, When};
use super::suggested;
use super::trouble::Said;
use super::visit::{Shown, Visit, api};
use crate::http::problem::{Code, Refusal, Refused};
use crate::orientation;
use askama::Template;
use fernery_client::wire::{
    AzollaList, CandidatePage, CaptureRequest, CaptureView, ManifestPage, ManifestRequest,
    ManifestRequestView, ManifestView, ObjectivePage, ObjectiveView,
};
use fernery_core::artifact::{AzollaId, CaptureId, RecordId};
use fernery_core::inbox::facts::Item;
use serde_json::json;

/// Runs and blocked tickets that are shown; the board has all.
const ROWS: usize = 10;

/// One thing to do.
struct Action {
    headline: Line,
    why: Line,
    /// What its button says, and the page that it leads to.
    button: &'static str,
    path: String,
    ways: Option<Ways>,
    /// What has become of it since the page was made.
    since: Option<Line>,
}

/// A run under way.
struct UnderWay {
    id: String,
    shown: Id,
    title: Line,
    percent: Option<u8>,
    last_line: Option<Line>,
    waiting: Option<Line>,
}

/// A ticket that is stuck.
struct Stuck {
    id: String,
    title: Line,
    why: Line,
    since: When,
}

/// The orientation.
struct Orientation {
    azolla_id: String,
    made: Option<When>,
    actions: Vec<Action>,
    more: u64,
    unseen: Vec<Line>,
    /// How to ask for a new one.
    ways: Ways,
}

#[derive(Template)]
#[template(path = "now.html")]
struct Now {
    frame: Frame,
    orientation: Option<Orientation>,
    runs: Vec<UnderWay>,
    stuck: Vec<Stuck>,
    stuck_more: bool,
    candidates: Vec<Line>,
    candidates_more: bool,
    pending: u64,
    held: u64,
    capture: Capture,
    /// How to go through the inbox.
    triage: Ways,
}

/// The box for a thought.
struct Capture {
    text: String,
    said: Said,
    ways: Ways,
}

pub(super) async fn show(visit: Visit) -> Shown {
    page(&visit, 200, String::new(), Said::default()).await
}

async fn page(visit: &Visit, status: u16, typed: String, said: Said) -> Shown {
    let runs = list(visit, "IN_PROGRESS").await?;
    let stuck = list(visit, "BLOCKED").await?;
    let inbox: CandidatePage = visit.get("/v1/candidates", &[("limit", "5")]).await?;
    let ways = Ways::new(
        "fernery capture 'buy milk tomorrow'",
        "POST",
        "/v1/captures",
        Some(&json!({ "raw_content": "buy milk tomorrow" }).to_string()),
    );
    let now = Now {
        frame: visit.frame("Now"),
        orientation: orientation(visit).await?,
        runs: runs.objectives.into_iter().map(under_way).collect(),
        stuck_more: stuck.next_cursor.is_some(),
        stuck: stuck.objectives.into_iter().map(stuck_row).collect(),
        candidates_more: inbox.next_cursor.is_some(),
        candidates: inbox.candidates.iter().map(|candidate| Line::of(&candidate.title)).collect(),
        pending: inbox.pending_captures,
        held: inbox.held_captures,
        capture: Capture { text: typed, said, ways },
        triage: suggested::ways("fernery triage"),
    };
    visit.show_as(status, &now)
}

async fn list(visit: &Visit, status: &str) -> Result<ObjectivePage, Refused> {
    let rows = ROWS.to_string();
    let asked = [("status", status), ("cancelled", "false"), ("snoozed", "false"), ("limit", rows.as_str())];
    visit.get("/v1/objectives", &asked).await
}

fn under_way(view: ObjectiveView) -> UnderWay {
    UnderWay {
        id: view.objective.objective_id.to_string(),
        shown: Id::of(&view.objective.objective_id),
        title: Line::of(&view.objective.title),
        percent: view.progress.as_ref().map(|progress| progress.percent()),
        last_line: view.progress.as_ref().and_then(|progress| progress.note()).map(Line::of),
        waiting: view.waiting.map(|waiting| Line(waiting.why)),
    }
}

fn stuck_row(view: ObjectiveView) -> Stuck {
    let objective = view.objective;
    let blockers = objective.blocked_on.iter().filter(|blocker| !blocker.resolved);
    let described: Vec<&str> = blockers.map(|blocker| blocker.description.as_str()).collect();
    let why = match (&described[..], &objective.blocked_reason) {
        ([], Some(reason)) => reason.clone(),
        ([], None) => "no reason is known".to_string(),
        (all, _) => all.join("; "),
    };
    Stuck {
        id: objective.objective_id.to_string(),
        title: Line::of(&objective.title),
        why: Line(why),
        since: When(objective.updated_at),
    }
}

/// The newest manifest of the azolla that makes them, if there is one.
async fn orientation(visit: &Visit) -> Result<Option<Orientation>, Refused> {
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
        return Ok(Some(Orientation { azolla_id: id, made: None, actions, more: 0, unseen, ways }));
    };
    let ManifestView { manifest, facts, .. } = &newest;
    let mut actions = Vec::new();
    for line in orientation::lines(&manifest.prioritized_orientation, facts) {
        let since = match line.item {
            Some(item) => become_of(visit, item).await?,
            None => None,
        };
        // A page that this version does not have leads nowhere; its command is there.
        let lead = line.item.map(lead).filter(|(_, path)| is_page(path));
        let (button, path) = lead.unwrap_or_default();
        actions.push(Action {
            headline: Line(line.headline),
            why: Line(line.why_now),
            button,
            path,
            ways: line.item.map(|item| suggested::ways(&item.command)),
            since,
        });
    }
    let all = facts.items.len() as u64 + facts.more;
    let unseen = facts.asked.iter().filter(|asked| !asked.is_seen());
    Ok(Some(Orientation {
        azolla_id: id,
        made: Some(When(manifest.created_at)),
        more: all.saturating_sub(actions.len() as u64),
        unseen: unseen.map(|asked| Line::of(&asked.azolla_id)).collect(),
        actions,
        ways,
    }))
}

/// What has become of an item since the manifest was made; `None`: it is as it was.
async fn become_of(visit: &Visit, item: &Item) -> Result<Option<Line>, Refused> {
    let (Some(id), Some(then)) = (&item.objective_id, item.status) else { return Ok(None) };
    let path = api("/v1/objectives/", id.as_str(), "");
    match visit.get::<ObjectiveView>(&path, &[("documents", "false")]).await {
        Ok(view) if view.objective.azolla_id == item.azolla_id && view.objective.status != then => {
            Ok(Some(Line::of(format_args!("it is {} now", view.objective.status))))
        }
        Ok(_) => Ok(None),
        // It is one of another server.
        Err(refused) if refused.code == Code::NotFound => Ok(None),
        Err(refused) => Err(refused),
    }
}

/// The button of an item, from the command that deals with it.
pub(super) fn lead(item: &Item) -> (&'static str, String) {
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
        ["fernery", "triage", ..] => ("Go through the inbox", "/triage".to_string()),
        _ => match &item.objective_id {
            Some(id) => ("Open the ticket", api("/ticket/", id.as_str(), "")),
            None => ("", String::new()),
        },
    }
}

/// `POST /orient`: asks for a new manifest; it is shown when it is made.
pub(super) async fn orient(visit: Visit) -> Shown {
    let azolla: AzollaId = match visit.form.text("azolla_id").parse() {
        Ok(azolla) => azolla,
        Err(_) => return Ok(PageReply::see_other("/")),
    };
    let body = ManifestRequest { request_id: Some(RecordId::stored(&visit.act_id())) };
    let path = api("/v1/azollas/", azolla.as_str(), "/manifests");
    visit.post::<ManifestRequestView>(&path, &body).await?;
    // The list of manifests has the same button.
    let then = if visit.form.text("then") == "/manifests" { "/manifests" } else { "/" };
    Ok(PageReply::see_other(then))
}

/// `POST /capture`
pub(super) async fn capture(visit: Visit) -> Shown {
    let text = visit.form.text("raw_content").to_string();
    if text.trim().is_empty() {
        let refused = Refusal::field(Code::Invalid, "/raw_content", "is empty: write down a thought");
        return page(&visit, refused.code.status(), text, Said::of(&refused)).await;
    }
    let body = CaptureRequest {
        raw_content: Some(text.clone()),
        capture_id: Some(CaptureId::stored(&visit.act_id())),
        source_label: Some("dashboard".to_string()),
        ..CaptureRequest::default()
    };
    match visit.post::<CaptureView>("/v1/captures", &body).await {
        Ok(_) => Ok(PageReply::see_other("/")),
        Err(refused) if refused.code.status() < 500 => {
            page(&visit, refused.code.status(), text, Said::of(&refused)).await
        }
        Err(refused) => Err(refused),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("fernery ticket list --azolla x", Some("T-1"), "/ticket/T-1"),
            ("fernery trash list", None, ""),
        ] {
            assert_eq!(lead(&item(command, id)).1, path, "{command}");
        }
    }
}

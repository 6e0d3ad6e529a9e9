//! `GET /`: what needs a person now, what runs, and what is stuck; and a box for a thought.

mod orientation;
mod runs;

pub(super) use orientation::lead;

use super::frame::Frame;
use super::reply::PageReply;
use super::show::{Line, Ways, When};
use super::suggested;
use super::trouble::Said;
use super::visit::{Shown, Visit, api};
use crate::http::problem::{Code, Refusal, Refused};
use crate::ticket_words::landing_line;
use askama::Template;
use fernery_client::wire::{
    CandidatePage, CaptureRequest, CaptureView, ManifestRequest, ManifestRequestView, ObjectivePage,
    ObjectiveView,
};
use fernery_core::artifact::{AzollaId, CaptureId, RecordId};
use orientation::{Orientation, Waits, orientation, waits};
use runs::{RunInProgress, under_way};
use serde_json::json;

/// Runs and blocked tickets that are shown; the board has all.
const ROWS: usize = 10;

/// A ticket that is stuck, or whose patch is.
struct Stuck {
    id: String,
    title: Line,
    why: Line,
    since: When,
}

#[derive(Template)]
#[template(path = "now.html")]
struct Now {
    frame: Frame,
    orientation: Option<Orientation>,
    waits: Option<Waits>,
    runs: Vec<RunInProgress>,
    stuck: Vec<Stuck>,
    stuck_more: bool,
    /// More patches than are shown did not land.
    unlanded_more: bool,
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
    let runs = list(visit, ("status", "IN_PROGRESS")).await?;
    let blocked = list(visit, ("status", "BLOCKED")).await?;
    // This list has no pages: one more than is shown says that there are others.
    let unlanded = list_of(visit, ("unlanded", "true"), ROWS + 1).await?;
    let inbox: CandidatePage = visit.get("/v1/candidates", &[("limit", "5")]).await?;
    let ways = Ways::new(
        "fernery capture 'buy milk tomorrow'",
        "POST",
        "/v1/captures",
        Some(&json!({ "raw_content": "buy milk tomorrow" }).to_string()),
    );
    let now = Now {
        frame: visit.frame("Now"),
        orientation: orientation(visit, &inbox).await?,
        waits: waits(visit).await?,
        runs: runs.objectives.into_iter().map(under_way).collect(),
        stuck_more: blocked.next_cursor.is_some(),
        unlanded_more: unlanded.objectives.len() > ROWS,
        stuck: blocked
            .objectives
            .into_iter()
            .chain(unlanded.objectives.into_iter().take(ROWS))
            .map(stuck_row)
            .collect(),
        candidates_more: inbox.next_cursor.is_some(),
        candidates: inbox.candidates.iter().map(|candidate| Line::of(&candidate.title)).collect(),
        pending: inbox.pending_captures,
        held: inbox.held_captures,
        capture: Capture { text: typed, said, ways },
        triage: suggested::ways("fernery triage"),
    };
    visit.show_as(status, &now)
}

async fn list(visit: &Visit, which: (&str, &str)) -> Result<ObjectivePage, Refused> {
    list_of(visit, which, ROWS).await
}

async fn list_of(visit: &Visit, which: (&str, &str), rows: usize) -> Result<ObjectivePage, Refused> {
    let rows = rows.to_string();
    let asked = [which, ("cancelled", "false"), ("snoozed", "false"), ("limit", rows.as_str())];
    visit.get("/v1/objectives", &asked).await
}

fn stuck_row(view: ObjectiveView) -> Stuck {
    let (objective, landing) = (view.objective, view.landing);
    let blockers = objective.blocked_on.iter().filter(|blocker| !blocker.resolved);
    let described: Vec<&str> = blockers.map(|blocker| blocker.description.as_str()).collect();
    let why = match (&described[..], &objective.blocked_reason, &landing) {
        (_, _, Some(landing)) => landing_line(landing),
        ([], Some(reason), None) => reason.clone(),
        ([], None, None) => "no reason is known".to_string(),
        (all, _, None) => all.join("; "),
    };
    Stuck {
        id: objective.objective_id.to_string(),
        title: Line::of(&objective.title),
        why: Line(why),
        since: When(objective.updated_at),
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
    use serde_json::json;

    #[test]
    fn a_patch_that_did_not_land_is_stuck_for_its_reason() {
        fn finished(fit: Option<&str>, why: Option<&str>) -> ObjectiveView {
            let landing = json!({"state": "OPEN", "fit": fit, "why": why, "files": [], "run_id": "r", "patch_sha256": "p",
                "repo_ref": "app", "base_branch": "main", "base_commit": "b", "tip": "0123456789abcdef", "branch": null,
                "merge": "ff", "commit": null, "remarks": [], "by_hand": []});
            let objective = json!({"objective_id": "t", "azolla_id": "mec", "title": "x", "acceptance_criteria": "",
                "objective_type": "TICKET", "status": "DONE", "importance": 2, "urgency": 2, "blocked_on": [],
                "blocked_reason": null, "metadata": {}, "created_at": "2026-11-19T10:00:00Z",
                "updated_at": "2026-11-19T10:00:00Z"});
            let view = json!({"objective": objective, "unconfirmed": false, "failures": 0, "spent": {}, "landing": landing});
            serde_json::from_value(view).expect("a ticket")
        }
        let why = |fit, why| stuck_row(finished(fit, Some(why))).why.0;
        assert_eq!(why(Some("MERGES"), "gate tests (exit 2)"), "did not land: gate tests (exit 2)");
        assert_eq!(why(Some("CONFLICTS"), "the same lines"), "conflicts: the same lines");
    }
}

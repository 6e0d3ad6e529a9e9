//! The acts on a candidate: each form is one call of the API under an id of its own, and then the next candidate is shown. A refused
//! act comes back with what was typed.

use super::super::refused::RefusedAct;
use super::super::reply::PageReply;
use super::super::visit::{Shown, Visit, api, link};
use crate::candidate_words as words;
use crate::http::problem::{Code, Refusal, Refused};
use fernery_client::wire::{CandidateView, PromoteResponse};
use http::Method;
use serde_json::{Value, json};

/// Where to go on after an act.
enum Then {
    Next,
    /// With this candidate.
    Stay,
}

/// Goes on, or shows the candidate with what was refused.
async fn answered(visit: Visit, act: &'static str, done: Result<(), Refused>, then: Then) -> Shown {
    let cursor = visit.form.text("cursor").to_string();
    match done {
        Ok(()) => Ok(PageReply::see_other(match then {
            Then::Next => link("/triage", &[("cursor", &cursor), ("last", &visit.param)]),
            Then::Stay => link(&api("/candidate/", &visit.param, ""), &[("cursor", &cursor)]),
        })),
        Err(refused) => super::candidate(&visit, &cursor, RefusedAct::of(act, &visit, refused)?).await,
    }
}

async fn post(visit: &Visit, act: &str, mut body: Value) -> Result<(), Refused> {
    body["record_id"] = json!(visit.act_id());
    let path = api("/v1/candidates/", &visit.param, &format!("/{act}"));
    visit.post::<CandidateView>(&path, &body).await.map(drop)
}

/// `POST /candidate/{id}/promote`; without an azolla the server chooses by what the candidate names.
pub(in crate::http::pages) async fn promote(visit: Visit) -> Shown {
    let mut body = json!({ "record_id": visit.act_id() });
    if let Some(azolla) = visit.form.filled("azolla_id") {
        body["azolla_id"] = json!(azolla);
    }
    let path = api("/v1/candidates/", &visit.param, "/promote");
    let done = visit.post::<PromoteResponse>(&path, &body).await.map(drop);
    answered(visit, "promote", done, Then::Next).await
}

/// `POST /candidate/{id}/discard`
pub(in crate::http::pages) async fn discard(visit: Visit) -> Shown {
    let done = post(&visit, "discard", json!({})).await;
    answered(visit, "discard", done, Then::Next).await
}

/// `POST /candidate/{id}/restore`: a discard is taken back; it is shown again at once.
pub(in crate::http::pages) async fn restore(visit: Visit) -> Shown {
    let done = post(&visit, "restore", json!({})).await;
    answered(visit, "restore", done, Then::Stay).await
}

/// `POST /candidate/{id}/snooze`
pub(in crate::http::pages) async fn snooze(visit: Visit) -> Shown {
    let done = post(&visit, "snooze", json!({ "until": visit.form.text("until").trim() })).await;
    answered(visit, "snooze", done, Then::Next).await
}

/// `POST /candidate/{id}/wake`: a snooze is taken back.
pub(in crate::http::pages) async fn wake(visit: Visit) -> Shown {
    let done = post(&visit, "snooze", json!({ "until": null })).await;
    answered(visit, "wake", done, Then::Stay).await
}

/// `POST /candidate/{id}/edit`
pub(in crate::http::pages) async fn edit(visit: Visit) -> Shown {
    let done = edited(&visit).await;
    answered(visit, "edit", done, Then::Stay).await
}

async fn edited(visit: &Visit) -> Result<(), Refused> {
    let form = &visit.form;
    let mut body = json!({
        "title": form.text("title").trim(),
        "acceptance_criteria": form.text("acceptance_criteria"),
        "importance": form.number("importance"),
        "urgency": form.number("urgency"),
        "record_id": visit.act_id(),
    });
    // The API takes other facts as a whole: they are sent only where somebody wrote another date.
    if form.text("due").trim() != form.text("due_was") {
        let mut facts = super::read(visit, &visit.param).await?.metadata;
        match form.filled("due") {
            Some(due) => {
                let due = words::due_date(due).map_err(|why| Refusal::field(Code::Invalid, "/due", why))?;
                facts.insert("due_at".to_string(), json!(due));
            }
            None => drop(facts.remove("due_at")),
        }
        body["metadata"] = json!(facts);
    }
    let path = api("/v1/candidates/", &visit.param, "");
    visit.send::<CandidateView>(Method::PATCH, &path, &body).await.map(drop)
}

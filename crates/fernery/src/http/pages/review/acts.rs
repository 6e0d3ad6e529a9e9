//! The acts on a run: each is one call of the API about exactly what the page showed. A refused one comes back with what was
//! typed.

use super::super::fields::Fields;
use super::super::refused::RefusedAct;
use super::super::reply::PageReply;
use super::super::show::Ways;
use super::super::visit::{Shown, Visit, api};
use super::{Review, page};
use crate::http::problem::Refused;
use fernery_client::wire::DecisionResponse;
use serde_json::{Value, json};

/// The same act from a terminal and by HTTP.
pub(super) fn ways(of: &Review, act: &str) -> Ways {
    let (id, run_id) = (&of.ticket, &of.run_id);
    let (command, body) = match (act, &of.landing) {
        ("merge", Some(landing)) => (
            format!("fernery ticket merge {id}"),
            json!({ "run_id": run_id, "patch_sha256": landing.patch_sha256, "tip": landing.tip }),
        ),
        ("reopen", _) if of.comments.is_empty() => {
            (format!("fernery ticket reopen {id} --note '…'"), json!({ "digest": of.digest, "note": "…" }))
        }
        ("reopen", _) => {
            let comments = json!({ "run_id": run_id, "digest": of.review.comments.digest });
            let body = json!({ "digest": of.digest, "note": "…", "comments": comments });
            (format!("fernery ticket reopen {id} --with-comments"), body)
        }
        _ => (format!("fernery ticket {act} {id}"), json!({ "run_id": run_id })),
    };
    let path = api("/v1/objectives/", id, &format!("/{act}"));
    Ways::new(command, "POST", &path, Some(&body.to_string()))
}

/// Adds the note, where there is one.
fn noted(mut body: Value, form: &Fields) -> Value {
    if let Some(note) = form.filled("note") {
        body["note"] = json!(note);
    }
    body
}

async fn post(visit: &Visit, act: &str, body: &Value) -> Result<(), Refused> {
    let path = api("/v1/objectives/", visit.form.text("objective_id"), &format!("/{act}"));
    visit.post::<DecisionResponse>(&path, body).await.map(drop)
}

/// Where a person goes on after an act, or the page again with what is wrong.
async fn ended(visit: &Visit, act: &'static str, done: Result<(), Refused>, next: String) -> Shown {
    match done {
        Ok(()) => Ok(PageReply::see_other(next)),
        Err(refused) => page(visit, RefusedAct::of(act, visit, refused)?).await,
    }
}

fn confirming(visit: &Visit, record_id: &str) -> Value {
    noted(json!({ "run_id": visit.param, "record_id": record_id }), &visit.form)
}

/// `POST /review/{id}/confirm`
pub(in crate::http::pages) async fn confirm(visit: Visit) -> Shown {
    let done = post(&visit, "confirm", &confirming(&visit, &visit.act_id())).await;
    ended(&visit, "confirm", done, api("/review/", &visit.param, "")).await
}

/// `POST /review/{id}/merge`: confirms the run first if nobody has. Each of the two has an id of its own in the form, so that a form
/// that is sent again goes on where it stopped.
pub(in crate::http::pages) async fn merge(visit: Visit) -> Shown {
    let done = both(&visit).await;
    ended(&visit, "merge", done, api("/review/", &visit.param, "")).await
}

async fn both(visit: &Visit) -> Result<(), Refused> {
    if let Some(record_id) = visit.form.filled("confirm_id") {
        post(visit, "confirm", &confirming(visit, record_id)).await?;
    }
    let body = json!({
        "run_id": visit.param,
        "patch_sha256": visit.form.text("patch_sha256"),
        "tip": visit.form.text("tip"),
        "record_id": visit.act_id(),
    });
    post(visit, "merge", &noted(body, &visit.form)).await
}

/// `POST /review/{id}/reopen`: it approves another attempt, so it sends the digest of what was shown.
pub(in crate::http::pages) async fn reopen(visit: Visit) -> Shown {
    let mut body = json!({
        "digest": visit.form.text("digest"),
        "note": visit.form.text("note"),
        "record_id": visit.act_id(),
        "from_scratch": visit.form.has("from_scratch"),
    });
    if let Some(digest) = visit.form.filled("comments_digest") {
        body["comments"] = json!({ "run_id": visit.param, "digest": digest });
    }
    let done = post(&visit, "reopen", &body).await;
    let next = api("/ticket/", visit.form.text("objective_id"), "");
    ended(&visit, "reopen", done, next).await
}

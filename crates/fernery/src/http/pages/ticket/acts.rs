//! The acts on a ticket: each form is one call of the API under an id of its own. A refused one comes back with what was typed.

use super::super::refused::RefusedAct;
use super::super::reply::PageReply;
use super::super::visit::{Shown, Visit, api};
use super::{facts, page};
use fernery_client::wire::{DecisionResponse, ObjectiveView};
use http::Method;
use serde_json::{Value, json};

/// Sends an act and goes back to the ticket.
async fn act(visit: Visit, act: &'static str, method: Method, body: Value) -> Shown {
    let id = visit.param.clone();
    let after = match act {
        "edit" => String::new(),
        "keep" => "/confirm".to_string(),
        "wake" => "/snooze".to_string(),
        act => format!("/{act}"),
    };
    let path = api("/v1/objectives/", &id, &after);
    let sent = match act {
        "answer" | "done" | "keep" | "reopen" => {
            visit.send::<DecisionResponse>(method, &path, &body).await.map(drop)
        }
        _ => visit.send::<ObjectiveView>(method, &path, &body).await.map(drop),
    };
    match sent {
        Ok(()) => Ok(PageReply::see_other(api("/ticket/", &id, ""))),
        Err(refused) => page(&visit, RefusedAct::of(act, &visit, refused)?).await,
    }
}

/// `POST /ticket/{id}/edit`
pub(in crate::http::pages) async fn edit(visit: Visit) -> Shown {
    let mut body = json!({
        "title": visit.form.text("title").trim(),
        "acceptance_criteria": visit.form.text("acceptance_criteria"),
        "importance": visit.form.number("importance"),
        "urgency": visit.form.number("urgency"),
    });
    match facts::edited(&visit).await {
        Ok(Some(facts)) => body["metadata"] = json!(facts),
        Ok(None) => {}
        Err(refused) => return page(&visit, RefusedAct::of("edit", &visit, refused)?).await,
    }
    act(visit, "edit", Method::PATCH, body).await
}

/// `POST /ticket/{id}/block`
pub(in crate::http::pages) async fn block(visit: Visit) -> Shown {
    let body = json!({
        "kind": visit.form.text("kind"),
        "description": visit.form.text("description"),
        "record_id": visit.act_id(),
    });
    act(visit, "block", Method::POST, body).await
}

/// `POST /ticket/{id}/unblock`: the blockers that are ticked.
pub(in crate::http::pages) async fn unblock(visit: Visit) -> Shown {
    let ticked: Vec<&str> = visit.form.all("blocker").collect();
    let body = match visit.form.has("all") {
        true => json!({ "all": true, "record_id": visit.act_id() }),
        false => json!({ "blockers": ticked, "record_id": visit.act_id() }),
    };
    act(visit, "unblock", Method::POST, body).await
}

/// `POST /ticket/{id}/answer`: it approves the ticket together with the answer, as it was shown.
pub(in crate::http::pages) async fn answer(visit: Visit) -> Shown {
    let body = json!({
        "digest": visit.form.text("digest"),
        "run_id": visit.form.text("run_id"),
        "answer": visit.form.text("answer"),
        "record_id": visit.act_id(),
    });
    act(visit, "answer", Method::POST, body).await
}

/// `POST /ticket/{id}/snooze`; without a time it is shown again now.
pub(in crate::http::pages) async fn snooze(visit: Visit) -> Shown {
    let (name, until) = match visit.form.has("wake") {
        true => ("wake", Value::Null),
        false => ("snooze", json!(visit.form.text("until").trim())),
    };
    let body = json!({ "until": until, "record_id": visit.act_id() });
    act(visit, name, Method::POST, body).await
}

/// `POST /ticket/{id}/cancel`
pub(in crate::http::pages) async fn cancel(visit: Visit) -> Shown {
    let body = json!({ "note": visit.form.optional("note"), "record_id": visit.act_id() });
    act(visit, "cancel", Method::POST, body).await
}

/// `POST /ticket/{id}/keep`: an earlier run that passed counts again, and is confirmed.
pub(in crate::http::pages) async fn keep(visit: Visit) -> Shown {
    let body = json!({
        "run_id": visit.form.text("run_id"),
        "note": visit.form.optional("note"),
        "record_id": visit.act_id(),
    });
    act(visit, "keep", Method::POST, body).await
}

/// `POST /ticket/{id}/reopen`: it approves another attempt at what was shown.
pub(in crate::http::pages) async fn reopen(visit: Visit) -> Shown {
    let body = json!({
        "digest": visit.form.text("digest"),
        "note": visit.form.text("note"),
        "record_id": visit.act_id(),
    });
    act(visit, "reopen", Method::POST, body).await
}

/// `POST /ticket/{id}/done`
pub(in crate::http::pages) async fn done(visit: Visit) -> Shown {
    let mut body = json!({ "note": visit.form.optional("note"), "record_id": visit.act_id() });
    // Where nobody has approved it yet, this approves what was shown.
    if let Some(digest) = visit.form.filled("digest") {
        body["digest"] = json!(digest);
    }
    act(visit, "done", Method::POST, body).await
}

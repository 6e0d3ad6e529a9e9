//! The acts on a ticket: each form is one call of the API under an id of its own. A refused one comes back with what was typed.

use super::super::fields::Fields;
use super::super::reply::PageReply;
use super::super::trouble::Said;
use super::super::visit::{Shown, Visit, api};
use super::{RefusedAct, page};
use fernery_client::wire::{DecisionResponse, ObjectiveView};
use http::Method;
use serde_json::{Value, json};

/// Sends an act and goes back to the ticket.
async fn act(visit: Visit, act: &'static str, method: Method, body: Value) -> Shown {
    let id = visit.param.clone();
    let after = match act {
        "edit" => String::new(),
        "keep" => "/confirm".to_string(),
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
        Err(refused) if refused.code.status() < 500 && refused.code.status() != 404 => {
            let refusal = RefusedAct { act, typed: visit.form.clone(), said: Said::of(&refused) };
            page(&visit, refused.code.status(), refusal).await
        }
        Err(refused) => Err(refused),
    }
}

/// A field as JSON; `null` where nothing was typed.
fn optional(form: &Fields, name: &str) -> Value {
    form.filled(name).map_or(Value::Null, |text| json!(text))
}

/// A number from a list of choices; what is no number is left for the API to refuse.
fn number(form: &Fields, name: &str) -> Value {
    form.text(name).parse::<u8>().map_or_else(|_| json!(form.text(name)), |number| json!(number))
}

/// `POST /ticket/{id}/edit`
pub(in crate::http::pages) async fn edit(visit: Visit) -> Shown {
    let mut body = json!({
        "title": visit.form.text("title").trim(),
        "acceptance_criteria": visit.form.text("acceptance_criteria"),
        "importance": number(&visit.form, "importance"),
        "urgency": number(&visit.form, "urgency"),
    });
    // The API takes other facts as a whole: they are sent only where somebody chose another repository.
    if visit.form.text("repo_ref") != visit.form.text("repo_was") {
        let path = api("/v1/objectives/", &visit.param, "");
        let now: ObjectiveView = visit.get(&path, &[("documents", "false")]).await?;
        let mut facts = now.objective.metadata;
        match visit.form.filled("repo_ref") {
            Some(repo) => drop(facts.insert("repo_ref".to_string(), json!(repo))),
            None => drop(facts.remove("repo_ref")),
        }
        body["metadata"] = json!(facts);
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
    let until = if visit.form.has("wake") { Value::Null } else { json!(visit.form.text("until").trim()) };
    let body = json!({ "until": until, "record_id": visit.act_id() });
    act(visit, "snooze", Method::POST, body).await
}

/// `POST /ticket/{id}/cancel`
pub(in crate::http::pages) async fn cancel(visit: Visit) -> Shown {
    let body = json!({ "note": optional(&visit.form, "note"), "record_id": visit.act_id() });
    act(visit, "cancel", Method::POST, body).await
}

/// `POST /ticket/{id}/keep`: an earlier run that passed counts again, and is confirmed.
pub(in crate::http::pages) async fn keep(visit: Visit) -> Shown {
    let body = json!({
        "run_id": visit.form.text("run_id"),
        "note": optional(&visit.form, "note"),
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
    let mut body = json!({ "note": optional(&visit.form, "note"), "record_id": visit.act_id() });
    // Where nobody has approved it yet, this approves what was shown.
    if let Some(digest) = visit.form.filled("digest") {
        body["digest"] = json!(digest);
    }
    act(visit, "done", Method::POST, body).await
}

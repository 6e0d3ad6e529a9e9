//! Comments on a patch and files that were viewed, as the review page reads and sends them.

use super::super::refused::RefusedAct;
use super::super::reply::PageReply;
use super::super::show::{Line, Prose, Ways};
use super::super::visit::{Shown, Visit, api, link};
use super::marks::lines;
use super::{Review, page};
use crate::http::problem::Refused;
use fernery_client::wire::{CommentView, ReviewView, ViewedRequest};
use fernery_core::percent::encode;
use http::Method;
use serde_json::json;

/// A comment in the list beside the patch.
pub(super) struct CommentShown {
    pub(super) id: String,
    pub(super) file: Line,
    pub(super) lines: String,
    pub(super) author: Line,
    pub(super) text: Prose,
    /// The form to edit it, with this text.
    pub(super) editing: Option<String>,
    pub(super) own: bool,
}

/// Reads what reviewers left on a run. An operator who sees the page has looked at the run from then on.
pub(super) async fn read(visit: &Visit, run_id: &str, alone: bool) -> Result<ReviewView, Refused> {
    let review: ReviewView = visit.get(&api("/v1/runs/", run_id, "/review"), &[]).await?;
    if alone || review.looked || !visit.is_operator() {
        return Ok(review);
    }
    // Not being able to note it is no reason to show nothing.
    let noted = visit.post(&api("/v1/runs/", run_id, "/looked"), &json!({})).await;
    Ok(noted.unwrap_or(review))
}

/// The comments, one of them in the form that edits it: the one that the address names, or whose edit was refused.
pub(super) fn listed(review: &ReviewView, visit: &Visit, refused: &RefusedAct) -> Vec<CommentShown> {
    let edited = refused.typed("comment-edit", "comment_id", visit.query.text("edit"));
    let can_edit = review.open && visit.is_operator();
    let shown = |comment: &CommentView| CommentShown {
        id: comment.comment_id.to_string(),
        file: Line::of(&comment.file),
        lines: lines(comment),
        author: Line::of(&comment.author),
        text: Prose::of(&comment.text),
        editing: (can_edit && comment.own && comment.comment_id.as_str() == edited)
            .then(|| refused.typed("comment-edit", "text", &comment.text).to_string()),
        own: comment.own,
    };
    review.comments.comments.iter().map(shown).collect()
}

/// The same from a terminal and by HTTP; only a new comment has a command.
pub(super) fn ways(of: &Review, act: &str, about: &str) -> Ways {
    let comment = api("/v1/comments/", about, "");
    match act {
        "edit" => return Ways::call("PATCH", &comment, Some(&json!({ "text": "…" }).to_string())),
        "delete" => return Ways::call("DELETE", &comment, None),
        "viewed" | "not-viewed" => {
            let body = json!({ "file": about, "viewed": act == "viewed" }).to_string();
            return Ways::call("POST", &api("/v1/runs/", &of.run_id, "/viewed"), Some(&body));
        }
        _ => {}
    }
    let body = json!({ "file": "…", "first_line": 1, "text": "…" });
    let path = api("/v1/runs/", &of.run_id, "/comments");
    let command = format!("fernery run comments {} --file … --line … --text '…'", of.ticket);
    Ways::new(command, "POST", &path, Some(&body.to_string()))
}

/// Where a person goes on: the same view, at this place of it.
fn back(visit: &Visit, place: &str) -> PageReply {
    let query = [("view", visit.query.text("view")), ("since", visit.query.text("since"))];
    let path = link(&api("/review/", &visit.param, ""), &query);
    PageReply::see_other(format!("{path}#{}", encode(place)))
}

/// The page again with what is wrong, and what was typed.
async fn refused(visit: &Visit, act: &'static str, refused: Refused) -> Shown {
    page(visit, RefusedAct::of(act, visit, refused)?).await
}

/// `POST /review/{id}/comment`
pub(in crate::http::pages) async fn add(visit: Visit) -> Shown {
    let form = &visit.form;
    let mut body = json!({
        "file": form.text("file"),
        "first_line": form.number("first_line"),
        "text": form.text("text"),
        "comment_id": visit.act_id(),
    });
    for (field, value) in [
        ("side", form.filled("side").map(|side| json!(side))),
        ("last_line", form.filled("last_line").map(|_| form.number("last_line"))),
    ] {
        if let Some(value) = value {
            body[field] = value;
        }
    }
    match visit.post::<CommentView>(&api("/v1/runs/", &visit.param, "/comments"), &body).await {
        Ok(comment) => Ok(back(&visit, &format!("comment-{}", comment.comment_id))),
        Err(why) => refused(&visit, "comment", why).await,
    }
}

/// `POST /review/{id}/comment-edit`
pub(in crate::http::pages) async fn edit(visit: Visit) -> Shown {
    let id = visit.form.text("comment_id");
    let body = json!({ "text": visit.form.text("text"), "record_id": visit.act_id() });
    match visit.send::<CommentView>(Method::PATCH, &api("/v1/comments/", id, ""), &body).await {
        Ok(comment) => Ok(back(&visit, &format!("comment-{}", comment.comment_id))),
        Err(why) => refused(&visit, "comment-edit", why).await,
    }
}

/// `POST /review/{id}/comment-delete`
pub(in crate::http::pages) async fn delete(visit: Visit) -> Shown {
    let path = api("/v1/comments/", visit.form.text("comment_id"), "");
    match visit.send::<CommentView>(Method::DELETE, &path, &json!({})).await {
        Ok(_) => Ok(back(&visit, "comments")),
        Err(why) => refused(&visit, "comment-edit", why).await,
    }
}

/// `POST /review/{id}/viewed`
pub(in crate::http::pages) async fn viewed(visit: Visit) -> Shown {
    let body = ViewedRequest {
        file: visit.form.text("file").to_string(),
        viewed: visit.form.text("viewed") == "yes",
    };
    let sent = visit.post::<ViewedRequest>(&api("/v1/runs/", &visit.param, "/viewed"), &body).await;
    match sent {
        Ok(_) => Ok(back(&visit, &format!("file-{}", visit.query.text("file")))),
        Err(why) => refused(&visit, "viewed", why).await,
    }
}

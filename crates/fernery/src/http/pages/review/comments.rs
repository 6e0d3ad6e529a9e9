//! Comments on a patch and files that were viewed, as the review page reads and sends them.

use super::super::reply::PageReply;
use super::super::show::{Line, Prose, Ways};
use super::super::ticket::RefusedAct;
use super::super::trouble::Said;
use super::super::visit::{Shown, Visit, api, link};
use super::marks::lines;
use super::{Review, page};
use crate::http::problem::{Code, Refused};
use fernery_client::wire::{CommentView, ReviewView, ViewedRequest};
use fernery_core::percent::encode;
use http::Method;
use serde_json::{Value, json};

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

pub(super) fn listed(review: &ReviewView, visit: &Visit) -> Vec<CommentShown> {
    let edited = visit.query.text("edit");
    let shown = |comment: &CommentView| CommentShown {
        id: comment.comment_id.to_string(),
        file: Line::of(&comment.file),
        lines: lines(comment),
        author: Line::of(&comment.author),
        text: Prose::of(&comment.text),
        editing: (comment.own && comment.comment_id.as_str() == edited).then(|| comment.text.clone()),
        own: comment.own,
    };
    review.comments.comments.iter().map(shown).collect()
}

/// The same from a terminal and by HTTP.
pub(super) fn ways(of: &Review) -> Ways {
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

/// The page again with what is wrong, and what was typed; of an edit, with the comment as it is kept.
async fn refused(visit: &Visit, act: &'static str, refused: Refused) -> Shown {
    if refused.code.status() >= 500 {
        return Err(refused);
    }
    let refusal = RefusedAct { act, typed: visit.form.clone(), said: Said::of(&refused) };
    page(visit, refused.code.status(), refusal).await
}

/// A number as JSON; what is none is left for the API to refuse.
fn number(text: &str) -> Value {
    text.trim().parse::<u64>().map_or_else(|_| json!(text), |number| json!(number))
}

/// `POST /review/{id}/comment`
pub(in crate::http::pages) async fn add(visit: Visit) -> Shown {
    let form = &visit.form;
    let mut body = json!({
        "file": form.text("file"),
        "first_line": number(form.text("first_line")),
        "text": form.text("text"),
        "comment_id": visit.act_id(),
    });
    for (field, value) in [
        ("side", form.filled("side").map(|side| json!(side))),
        ("last_line", form.filled("last_line").map(number)),
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
        Err(why) if why.code == Code::NotFound => Err(why),
        Err(why) => refused(&visit, "viewed", why).await,
    }
}

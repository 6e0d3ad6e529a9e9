//! `GET /candidate/{id}/merge?other=…`: which candidates go into which, by name; it asks, because a merge cannot be taken back.

use super::super::frame::Frame;
use super::super::refused::RefusedAct;
use super::super::reply::PageReply;
use super::super::show::{Id, Line, Ways};
use super::super::visit::{Shown, Visit, api, link};
use super::{Captured, captured, read};
use crate::http::problem::{Code, Refusal};
use askama::Template;
use fernery_client::wire::CandidateView;
use serde_json::json;

/// Candidates that one form merges into another.
const MERGED_MAX: usize = 20;

/// One of those that become one.
struct Part {
    id: String,
    shown: Id,
    title: Line,
    captured: Vec<Captured>,
}

#[derive(Template)]
#[template(path = "triage/merge.html")]
struct Merge {
    frame: Frame,
    into: Part,
    others: Vec<Part>,
    cursor: String,
    back: String,
    refused: RefusedAct,
    ways: Ways,
}

pub(in crate::http::pages) async fn show(visit: Visit) -> Shown {
    let others: Vec<String> = visit.query.all("other").map(str::to_string).collect();
    let cursor = visit.query.text("cursor").to_string();
    if others.is_empty() {
        let detail = "nothing is ticked: tick the candidates that are to be merged into this one";
        let refused = RefusedAct::of("merge", &visit, Refusal::new(Code::Invalid, detail))?;
        return super::candidate(&visit, &cursor, refused).await;
    }
    page(&visit, &others, &cursor, RefusedAct::none()).await
}

async fn page(visit: &Visit, others: &[String], cursor: &str, refused: RefusedAct) -> Shown {
    if others.len() > MERGED_MAX {
        return Err(Refusal::new(Code::Invalid, format!("merge at most {MERGED_MAX} candidates at once")));
    }
    let into = read(visit, &visit.param).await?;
    let mut parts = Vec::new();
    for other in others {
        parts.push(part(read(visit, other).await?));
    }
    let (path, named) = (api("/v1/candidates/", into.candidate_id.as_str(), "/merge"), others.join(" "));
    let merge = Merge {
        frame: visit.frame("Merge"),
        ways: Ways::new(
            format!("fernery triage merge {} {named}", into.candidate_id),
            "POST",
            &path,
            Some(&json!({ "candidates": others }).to_string()),
        ),
        back: link(&api("/candidate/", into.candidate_id.as_str(), ""), &[("cursor", cursor)]),
        into: part(into),
        others: parts,
        cursor: cursor.to_string(),
        refused,
    };
    visit.show_as(merge.refused.status(), &merge)
}

fn part(candidate: CandidateView) -> Part {
    Part {
        id: candidate.candidate_id.to_string(),
        shown: Id::of(&candidate.candidate_id),
        captured: captured(&candidate),
        title: Line(candidate.title),
    }
}

/// `POST /candidate/{id}/merge`: then the one that is left is shown.
pub(in crate::http::pages) async fn merge(visit: Visit) -> Shown {
    let others: Vec<String> = visit.form.all("other").map(str::to_string).collect();
    let cursor = visit.form.text("cursor").to_string();
    let body = json!({ "candidates": others, "record_id": visit.act_id() });
    let path = api("/v1/candidates/", &visit.param, "/merge");
    match visit.post::<CandidateView>(&path, &body).await {
        Ok(_) => {
            let last = others.first().map_or("", String::as_str);
            let one = api("/candidate/", &visit.param, "");
            Ok(PageReply::see_other(link(&one, &[("cursor", &cursor), ("last", last)])))
        }
        Err(refused) => page(&visit, &others, &cursor, RefusedAct::of("merge", &visit, refused)?).await,
    }
}

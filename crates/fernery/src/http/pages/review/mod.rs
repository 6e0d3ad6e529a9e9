//! `GET /review/{id}`: what a run made, and whether a person wants it: the patch with the riskiest files first, what the gates
//! found, how it stands to its base branch, what changed since an earlier attempt, and what reviewers say. The acts are in [`acts`] and
//! [`comments`].

pub(super) mod acts;
pub(super) mod comments;
mod diff;
pub(super) mod log;
mod marks;
pub(super) mod rows;
mod standing;
mod tree;

use super::fields::Fields;
use super::frame::Frame;
use super::refused::{RefusedAct, WithoutForm};
use super::reply::PageReply;
use super::show::{Id, Line, Prose, Ways, When, Whole};
use super::visit::{Shown, Visit, api};
use crate::http::problem::{Code, Refusal, Refused};
use askama::Template;
use comments::CommentShown;
use diff::{DiffShown, View, Window, shown};
use fernery_client::wire::{ObjectiveDetail, ReviewView, WorkorderDetail, WorkorderDifference};
use fernery_core::blueprint::Gate;
use fernery_core::names::unprintable_in;
use fernery_core::percent::encode;
use fernery_core::pipeline::possible::SeenStatus;
use marks::Marks;
use serde_json::Value;
use standing::{Attempt, Can, GateFound, Landed};

/// Characters of a text that would not be seen, as many as a page shows by their numbers.
const ODD_MAX: usize = 50_000;

/// What there is to read.
enum Content {
    /// A patch: the tree of its files as HTML, and the files.
    Patch(String, DiffShown),
    /// It is no patch.
    Text(Whole),
    Nothing(Line),
}

/// How this page is asked for again with something else.
struct Links {
    path: String,
    since: Option<String>,
    view: View,
}

impl Links {
    fn to(&self, view: View, since: Option<&str>, more: &str) -> String {
        let mut parts = Vec::new();
        if view == View::Beside {
            parts.push("view=split".to_string());
        }
        parts.extend(since.map(|since| format!("since={}", encode(since))));
        parts.extend((!more.is_empty()).then(|| more.to_string()));
        if parts.is_empty() { self.path.clone() } else { format!("{}?{}", self.path, parts.join("&")) }
    }

    fn unified(&self) -> String {
        self.to(View::Unified, self.since.as_deref(), "")
    }

    fn split(&self) -> String {
        self.to(View::Beside, self.since.as_deref(), "")
    }

    /// The same view of what changed since another attempt; of all, if `None`.
    fn since(&self, since: Option<&str>) -> String {
        self.to(self.view, since, "")
    }

    fn file(&self, place: &usize, row: &usize) -> String {
        self.to(self.view, self.since.as_deref(), &format!("file={place}&row={row}"))
    }

    /// One file alone, with the form for a comment on it.
    fn comment(&self, place: &usize) -> String {
        self.to(self.view, self.since.as_deref(), &format!("file={place}&comment=yes"))
    }

    /// Where a form about a file is sent, so that it comes back with that file if it is refused.
    fn act(&self, act: &str, place: &usize) -> String {
        let more = format!("file={place}");
        let here = self.to(self.view, self.since.as_deref(), &more);
        here.replacen(&self.path, &format!("{}/{act}", self.path), 1)
    }

    /// The same page; a comment's id behind it opens the form to edit it.
    fn edit(&self) -> String {
        self.to(self.view, self.since.as_deref(), "edit=")
    }

    fn files_from(&self, place: &usize) -> String {
        self.to(self.view, self.since.as_deref(), &format!("from={place}"))
    }
}

#[derive(Template)]
#[template(path = "review/review.html")]
struct Review {
    frame: Frame,
    run_id: String,
    shown_id: Id,
    ticket: String,
    title: Line,
    criteria: Whole,
    result: String,
    reason: Line,
    at: Option<When>,
    /// What the executor says about its work.
    says: Prose,
    evidence: Vec<GateFound>,
    landing: Option<Landed>,
    attempts: Vec<Attempt>,
    /// The last run, if it is not this one.
    newer: Option<String>,
    status: String,
    unconfirmed: bool,
    /// `None`: only what changes is asked for.
    content: Option<Content>,
    /// Only one file, or not the first files, are shown.
    partial: bool,
    beside: bool,
    /// Since which attempt, by its number.
    since: Option<usize>,
    base_moved: bool,
    links: Links,
    can: Can,
    digest: String,
    refused: RefusedAct,
    review: ReviewView,
    comments: Vec<CommentShown>,
    /// The attempt that this reviewer had looked at before, by its number and its workorder.
    last_looked: Option<(usize, String)>,
    /// The form for a comment is asked for.
    commenting: bool,
}

pub(super) async fn show(visit: Visit) -> Shown {
    match page(&visit, RefusedAct::none()).await {
        Err(refused) if refused.code == Code::NotFound => last_of_ticket(&visit, refused).await,
        shown => shown,
    }
}

/// The id may be a ticket's: its last run is meant.
async fn last_of_ticket(visit: &Visit, unknown: Refused) -> Shown {
    let path = api("/v1/objectives/", &visit.param, "");
    match visit.get::<ObjectiveDetail>(&path, &[("documents", "false")]).await {
        Ok(ticket) => match ticket.runs.last() {
            Some(run) => Ok(PageReply::see_other(api("/review/", text(run, "run_id"), ""))),
            None => {
                let why = format!("no run of {} has ended yet, so there is nothing to review", visit.param);
                Err(Refusal::new(Code::NotFound, why))
            }
        },
        Err(refused) if refused.code == Code::NotFound => Err(unknown),
        Err(refused) => Err(refused),
    }
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

async fn page(visit: &Visit, refused: RefusedAct) -> Shown {
    let run: Value = visit.get(&api("/v1/runs/", &visit.param, ""), &[]).await?;
    let (run_id, work_id) = (text(&run, "run_id").to_string(), text(&run, "work_order_id").to_string());
    let path = api("/v1/objectives/", text(&run, "objective_id"), "");
    let ticket: ObjectiveDetail = visit.get(&path, &[("documents", "false")]).await?;
    let work: WorkorderDetail = visit.get(&api("/v1/workorders/", &work_id, ""), &[]).await?;
    let frame = visit.frame(format!("Review {}", ticket.view.objective.title));
    let review = comments::read(visit, &run_id, frame.alone).await?;
    let gates = work.gates.into_iter().filter_map(|gate| serde_json::from_value(gate).ok()).collect();
    let bundle = work.output_bundle.unwrap_or_default();
    let said =
        [text(&bundle, "title"), text(&bundle["metadata"], "pr_description_draft"), text(&bundle, "notes")];
    let says: Vec<&str> = said.into_iter().filter(|said| !said.trim().is_empty()).collect();
    let attempts = standing::attempts(&ticket, &run_id);
    let links = Links {
        path: api("/review/", &run_id, ""),
        since: visit.query.filled("since").map(str::to_string),
        view: if visit.query.text("view") == "split" { View::Beside } else { View::Unified },
    };
    let window = window(&visit.query);
    // What is brought up to date has no diff: it never changes.
    let (content, base_moved) = match frame.alone {
        true => (None, false),
        false => {
            let (patch, moved) = match &links.since {
                Some(since) => difference(visit, &work_id, since).await?,
                None => (text(&bundle, "content").to_string(), false),
            };
            let outcome = text(&bundle["metadata"], "outcome").to_string();
            let edit = if review.open && frame.operator { links.edit() } else { String::new() };
            let marks = match links.since {
                Some(_) => Marks::since(&review, text(&bundle, "content"), &edit),
                None => Marks::of_run(&review, &edit),
            };
            (Some(content(patch, outcome, (links.view, window), (marks, gates)).await?), moved)
        }
    };
    let since = links.since.as_ref().and_then(|since| attempts.iter().find(|of| of.work_order_id == *since));
    let number_of = |work: &str| attempts.iter().find(|of| of.work_order_id == work).map(|of| of.number);
    let looked = review.since.as_ref().map(|work| work.as_str());
    let last_looked = looked.and_then(|work| Some((number_of(work)?, work.to_string())));
    let o = &ticket.view.objective;
    let last = ticket.runs.last().map(|run| text(run, "run_id").to_string());
    let newer = last.filter(|last| *last != run_id);
    let review = Review {
        title: Line::of(&o.title),
        criteria: Whole::of(&o.acceptance_criteria),
        result: text(&run, "gate_result").to_string(),
        reason: Line::of(text(&run, "gate_reason")),
        at: serde_json::from_value(run["created_at"].clone()).ok().map(When),
        says: Prose(says.join("\n\n")),
        evidence: standing::evidence(&run, &links.path),
        landing: standing::landing(&ticket, &run_id),
        can: standing::can(&ticket, &run_id, newer.is_none()),
        newer,
        status: SeenStatus::of(o).to_string(),
        unconfirmed: ticket.view.unconfirmed,
        content,
        partial: window != Window::Files(0),
        beside: links.view == View::Beside,
        since: since.map(|attempt| attempt.number),
        base_moved,
        digest: ticket.approval.as_ref().map_or(String::new(), |approval| approval.digest.to_string()),
        ticket: o.objective_id.to_string(),
        shown_id: Id::of(&run_id),
        attempts,
        links,
        comments: comments::listed(&review, visit, &refused),
        commenting: visit.query.has("comment") || refused.open("comment"),
        last_looked,
        review,
        frame,
        run_id,
        refused,
    };
    visit.show_as(review.refused.status(), &review)
}

fn window(query: &Fields) -> Window {
    let number = |name: &str| query.text(name).parse::<usize>().unwrap_or(0);
    match query.filled("file").and_then(|place| place.parse().ok()) {
        Some(place) => Window::File(place, number("row")),
        None => Window::Files(number("from")),
    }
}

/// What changed since another attempt, and whether the base moved in between.
async fn difference(visit: &Visit, work_id: &str, since: &str) -> Result<(String, bool), Refused> {
    let path = api("/v1/workorders/", work_id, "/diff");
    let made: WorkorderDifference = visit.get(&path, &[("since", since)]).await?;
    Ok((made.patch, made.base_sha != made.since_base_sha))
}

async fn content(
    patch: String,
    outcome: String,
    (view, window): (View, Window),
    (marks, gates): (Marks, Vec<Gate>),
) -> Result<Content, Refused> {
    if patch.trim().is_empty() {
        let outcome = if outcome.is_empty() { String::new() } else { format!(" ({outcome})") };
        return Ok(Content::Nothing(Line(format!("Nothing changed{outcome}."))));
    }
    if !patch.starts_with("diff --git ") {
        return Ok(plain(patch));
    }
    // Thousands of rows take a while; other answers do not wait for them.
    let made = tokio::task::spawn_blocking(move || match shown(&patch, view, window, (&marks, &gates)) {
        Ok(diff) => Content::Patch(tree::tree(&diff.files), diff),
        // It failed its gate; a person can read it nevertheless.
        Err(_) => plain(patch),
    });
    made.await.map_err(|_| Refusal::new(Code::Internal, Code::Internal.title()))
}

/// What is no patch, whole: somebody confirms it. A character that would not be seen becomes long in HTML.
fn plain(text: String) -> Content {
    let odd = unprintable_in(&text).filter(|(_, c)| !matches!(c, '\n' | '\t')).count();
    match odd {
        0..=ODD_MAX => Content::Text(Whole(text)),
        odd => Content::Nothing(Line(format!(
            "It cannot be shown here: {odd} of its characters would not be seen. `fernery run diff --json` has them."
        ))),
    }
}

impl Review {
    /// The note of a reopening: what was typed, else what stands in the way and what the comments say.
    fn reopen_note(&self) -> String {
        if self.refused.open("reopen") {
            return self.refused.typed("reopen", "note", "").to_string();
        }
        let conflict = self.landing.as_ref().map_or("", |landing| landing.conflict.as_str());
        let parts = [conflict, &self.review.comments.note];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
    }

    /// What the comments say, where the note that was typed does not have it.
    fn comments_now(&self) -> Option<&str> {
        let note = &self.review.comments.note;
        let typed = self.refused.typed("reopen", "note", "");
        (self.refused.open("reopen") && !note.is_empty() && !typed.contains(note.trim())).then_some(note)
    }

    /// Whether this person can comment now.
    fn can_comment(&self) -> bool {
        self.frame.operator && self.review.open
    }

    /// Whether a line before or after the patch was typed.
    fn side_is(&self, side: &str, gone: &bool) -> bool {
        match self.refused.typed("comment", "side", "") {
            "" => (side == "old") == *gone,
            typed => typed == side,
        }
    }

    /// Whether the page has the form of this act: it is possible now, and this person may.
    fn offers(&self, act: &str) -> bool {
        let possible = match act {
            "confirm" => self.can.confirm,
            "merge" => self.can.merge && self.landing.is_some(),
            "reopen" => self.can.reopen,
            "comment" => self.has_comment_form(),
            "comment-edit" => self.comments.iter().any(|comment| comment.editing.is_some()),
            "viewed" => self.content.is_some(),
            _ => false,
        };
        self.frame.operator && possible
    }

    /// Whether the file that is shown alone has the form for a comment.
    fn has_comment_form(&self) -> bool {
        let Some(Content::Patch(_, diff)) = &self.content else { return false };
        let has_file = diff.files.iter().any(|file| file.viewed.is_some());
        self.commenting && self.can_comment() && self.partial && has_file
    }

    /// An act that was refused and is not possible any more.
    fn lost(&self) -> Option<WithoutForm<'_>> {
        self.refused.without_form(self.offers(self.refused.act()))
    }

    fn comment_ways(&self, act: &str, about: &str) -> Ways {
        comments::ways(self, act, about)
    }

    fn ways(&self, act: &str) -> Ways {
        acts::ways(self, act)
    }
}

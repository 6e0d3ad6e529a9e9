//! `GET /approve/{id}`: exactly what an approval covers, written for reading. The form sends the digest of what it showed, so an
//! approval of anything else is refused.

use super::frame::Frame;
use super::refused::{RefusedAct, WithoutForm};
use super::reply::PageReply;
use super::review::rows::difference;
use super::show::{Line, Ways, Whole};
use super::visit::{Shown, Visit, api};
use crate::http::problem::{Code, Refusal};
use crate::ticket_words::{self as words, Part};
use askama::Template;
use fernery_client::wire::{DecisionResponse, ObjectiveDetail};
use fernery_core::pipeline::possible::{SeenStatus, Verb};
use serde_json::json;

/// Lines that stay and are shown around those that change.
const AROUND: usize = 2;

/// Facts of one kind.
struct Group {
    name: &'static str,
    facts: Vec<Whole>,
    text: Option<Whole>,
}

#[derive(Template)]
#[template(path = "approve.html")]
struct Approve {
    frame: Frame,
    id: String,
    title: Whole,
    azolla: String,
    criteria: Whole,
    /// What stands first: what it may cost.
    cost: Vec<Group>,
    groups: Vec<Group>,
    /// What differs from what was approved before: its name, and its lines as HTML.
    changes: Vec<(&'static str, String)>,
    approved_before: bool,
    cautions: Vec<Line>,
    /// Why nobody can approve it now.
    hindered: Option<Line>,
    digest: String,
    reworks: bool,
    refused: RefusedAct,
    ways: Ways,
    /// It cannot be approved now: it is this instead.
    status: Option<String>,
    next: Vec<Line>,
}

pub(super) async fn show(visit: Visit) -> Shown {
    page(&visit, RefusedAct::none()).await
}

async fn page(visit: &Visit, refused: RefusedAct) -> Shown {
    let path = api("/v1/objectives/", &visit.param, "");
    let detail: ObjectiveDetail = visit.get(&path, &[("documents", "false")]).await?;
    let o = &detail.view.objective;
    let Some(approval) = &detail.approval else {
        return Err(Refusal::new(
            Code::Conflict,
            "its azolla does not exist any more, so nobody can carry it out",
        ));
    };
    let shown = &approval.shown;
    let before = words::approved_before(&detail);
    let changed = before.map(|before| words::changes(before, shown)).unwrap_or_default();
    let digest = approval.digest.to_string();
    let mut cautions: Vec<Line> = words::cautions(&detail).into_iter().map(Line).collect();
    cautions.extend(approval.unmanned.as_ref().map(|unmanned| Line::of(&unmanned.why)));
    let (cost, groups) = grouped(words::parts(shown));
    let approve = Approve {
        frame: visit.frame(format!("Approve {}", o.objective_id)),
        title: Whole::of(shown["title"].as_str().unwrap_or_default()),
        azolla: o.azolla_id.to_string(),
        criteria: Whole::of(shown["acceptance_criteria"].as_str().unwrap_or_default()),
        cost,
        groups,
        approved_before: before.is_some(),
        changes: changed.iter().map(|change| (change.name, difference(&change.rows(), AROUND))).collect(),
        cautions,
        hindered: approval.refused.as_ref().map(Line::of),
        reworks: !detail.runs.is_empty(),
        refused,
        ways: Ways::new(
            format!("fernery ticket approve {} --digest {digest}", o.objective_id),
            "POST",
            &format!("{path}/approve"),
            Some(&json!({ "digest": digest }).to_string()),
        ),
        status: (!detail.allows(Verb::Approve)).then(|| SeenStatus::of(o).to_string()),
        next: detail.next.iter().map(Line::of).collect(),
        id: o.objective_id.to_string(),
        digest,
    };
    visit.show_as(approve.refused.status(), &approve)
}

/// Facts by their names, in their order; what it may use and cost stands first.
fn grouped(parts: Vec<Part>) -> (Vec<Group>, Vec<Group>) {
    let mut groups: Vec<Group> = Vec::new();
    for part in parts {
        match part {
            Part::Fact(name, text) => {
                match groups.iter_mut().find(|group| group.name == name && group.text.is_none()) {
                    Some(group) => group.facts.push(Whole(text)),
                    None => groups.push(Group { name, facts: vec![Whole(text)], text: None }),
                }
            }
            Part::Text(name, text) => groups.push(Group { name, facts: Vec::new(), text: Some(Whole(text)) }),
        }
    }
    groups.into_iter().partition(|group| matches!(group.name, "cost" | "in all" | "time"))
}

/// `POST /approve/{id}`
pub(super) async fn approve(visit: Visit) -> Shown {
    let id = visit.param.clone();
    let mut body = json!({
        "digest": visit.form.text("digest"),
        "record_id": visit.act_id(),
        "from_scratch": visit.form.has("from_scratch"),
    });
    if let Some(note) = visit.form.filled("note") {
        body["note"] = json!(note);
    }
    match visit.post::<DecisionResponse>(&api("/v1/objectives/", &id, "/approve"), &body).await {
        Ok(_) => Ok(PageReply::see_other(api("/ticket/", &id, ""))),
        Err(refused) => page(&visit, RefusedAct::of("approve", &visit, refused)?).await,
    }
}

impl Approve {
    /// Whether it can be approved now, by this person.
    fn offers(&self) -> bool {
        self.frame.operator && self.hindered.is_none() && self.status.is_none()
    }

    /// An approval that was refused and is not possible any more.
    fn lost(&self) -> Option<WithoutForm<'_>> {
        self.refused.without_form(self.offers())
    }
}

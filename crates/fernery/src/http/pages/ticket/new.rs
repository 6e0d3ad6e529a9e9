//! `GET /new-ticket`: a form for a new ticket. Nothing runs before it is approved.

use super::super::frame::Frame;
use super::super::refused::{RefusedAct, WithoutForm};
use super::super::reply::PageReply;
use super::super::show::Ways;
use super::super::visit::{Shown, Visit, api};
use askama::Template;
use fernery_client::wire::{AzollaList, ObjectiveView};
use serde_json::json;

/// An azolla that takes tickets.
struct Home {
    id: String,
    description: String,
}

#[derive(Template)]
#[template(path = "ticket/new.html")]
struct New {
    frame: Frame,
    azollas: Vec<Home>,
    repos: Vec<String>,
    /// The id of what the form makes, which it keeps when it comes back.
    act_id: String,
    refused: RefusedAct,
    ways: Ways,
}

pub(in crate::http::pages) async fn show(visit: Visit) -> Shown {
    page(&visit, RefusedAct::none()).await
}

async fn page(visit: &Visit, refused: RefusedAct) -> Shown {
    let list: AzollaList = visit.get("/v1/azollas", &[]).await?;
    let takes = list.azollas.into_iter().filter(|azolla| azolla.takes_tickets);
    let new = New {
        frame: visit.frame("New ticket"),
        azollas: takes
            .map(|azolla| Home { id: azolla.azolla_id.to_string(), description: azolla.description })
            .collect(),
        repos: list.repos.into_iter().map(|repo| repo.name).collect(),
        act_id: visit.act_id(),
        refused,
        ways: Ways::new(
            "fernery ticket new --title '…'",
            "POST",
            "/v1/objectives",
            Some(&json!({ "azolla_id": "…", "title": "…" }).to_string()),
        ),
    };
    visit.show_as(new.refused.status(), &new)
}

/// `POST /new-ticket`
pub(in crate::http::pages) async fn create(visit: Visit) -> Shown {
    let form = &visit.form;
    let repo = form.filled("repo_ref").map(|repo| json!({ "repo_ref": repo }));
    // The id was made when the form was shown: sent twice, it is one ticket.
    let body = json!({
        "objective_id": form.filled("objective_id").map_or_else(|| visit.act_id(), str::to_string),
        "azolla_id": form.text("azolla_id"),
        "title": form.text("title").trim(),
        "acceptance_criteria": form.text("acceptance_criteria"),
        "importance": form.number("importance"),
        "urgency": form.number("urgency"),
        "metadata": repo.unwrap_or_else(|| json!({})),
    });
    match visit.post::<ObjectiveView>("/v1/objectives", &body).await {
        Ok(made) => Ok(PageReply::see_other(api("/ticket/", made.objective.objective_id.as_str(), ""))),
        Err(refused) => page(&visit, RefusedAct::of("new", &visit, refused)?).await,
    }
}

impl New {
    /// The repository that is meant where there is one alone.
    fn only_repo(&self) -> &str {
        match self.repos.as_slice() {
            [only] => only,
            _ => "",
        }
    }

    fn is(&self, field: &str, value: &str, first: &str) -> bool {
        self.refused.typed("new", field, first) == value
    }

    /// What was chosen and is not there any more.
    fn gone(&self, field: &str) -> Option<&str> {
        self.refused.gone("new", field, |chosen| match field {
            "azolla_id" => self.azollas.iter().any(|azolla| azolla.id == chosen),
            _ => self.repos.iter().any(|repo| repo == chosen),
        })
    }

    /// A ticket that was refused and has no form any more: no azolla takes tickets now.
    fn lost(&self) -> Option<WithoutForm<'_>> {
        self.refused.without_form(!self.azollas.is_empty())
    }
}

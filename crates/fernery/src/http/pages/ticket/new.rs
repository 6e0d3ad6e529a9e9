//! `GET /new-ticket`: a form for a new ticket. Nothing runs before it is approved.

use super::super::fields::Fields;
use super::super::frame::Frame;
use super::super::reply::PageReply;
use super::super::show::Ways;
use super::super::trouble::Said;
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
    typed: Fields,
    said: Said,
    ways: Ways,
}

pub(in crate::http::pages) async fn show(visit: Visit) -> Shown {
    page(&visit, 200, Fields::default(), Said::default()).await
}

async fn page(visit: &Visit, status: u16, typed: Fields, said: Said) -> Shown {
    let list: AzollaList = visit.get("/v1/azollas", &[]).await?;
    let takes = list.azollas.into_iter().filter(|azolla| azolla.takes_tickets);
    let new = New {
        frame: visit.frame("New ticket"),
        azollas: takes
            .map(|azolla| Home { id: azolla.azolla_id.to_string(), description: azolla.description })
            .collect(),
        repos: list.repos.into_iter().map(|repo| repo.name).collect(),
        typed,
        said,
        ways: Ways::new(
            "fernery ticket new --title '…'",
            "POST",
            "/v1/objectives",
            Some(&json!({ "azolla_id": "…", "title": "…" }).to_string()),
        ),
    };
    visit.show_as(status, &new)
}

/// `POST /new-ticket`
pub(in crate::http::pages) async fn create(visit: Visit) -> Shown {
    let form = &visit.form;
    let repo = form.filled("repo_ref").map(|repo| json!({ "repo_ref": repo }));
    let number =
        |name: &str| form.text(name).parse::<u8>().map_or_else(|_| json!(form.text(name)), |n| json!(n));
    // The id was made when the form was shown: sent twice, it is one ticket.
    let body = json!({
        "objective_id": form.filled("objective_id").map_or_else(|| visit.act_id(), str::to_string),
        "azolla_id": form.text("azolla_id"),
        "title": form.text("title").trim(),
        "acceptance_criteria": form.text("acceptance_criteria"),
        "importance": number("importance"),
        "urgency": number("urgency"),
        "metadata": repo.unwrap_or_else(|| json!({})),
    });
    match visit.post::<ObjectiveView>("/v1/objectives", &body).await {
        Ok(made) => Ok(PageReply::see_other(api("/ticket/", made.objective.objective_id.as_str(), ""))),
        Err(refused) if refused.code.status() < 500 => {
            page(&visit, refused.code.status(), visit.form.clone(), Said::of(&refused)).await
        }
        Err(refused) => Err(refused),
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

    fn typed_or<'a>(&'a self, field: &str, first: &'a str) -> &'a str {
        if self.typed.has(field) { self.typed.text(field) } else { first }
    }

    fn is(&self, field: &str, value: &str, first: &str) -> bool {
        self.typed_or(field, first) == value
    }
}

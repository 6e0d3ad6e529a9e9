//! `GET /azollas`: the azollas, and what their files would change. One of them is in [`one`].

mod files;
pub(super) mod one;

use super::frame::Frame;
use super::show::{Line, When};
use super::visit::{Shown, Visit, api};
use askama::Template;
use fernery_client::wire::{AzollaList, AzollaSummary, RepoView};
use files::{Files, ReloadSaid};

struct Row {
    id: String,
    path: String,
    description: Line,
    category: Line,
    hosted: bool,
    seen: Option<When>,
    takes_tickets: bool,
    makes_manifests: bool,
}

struct Repo {
    name: Line,
    base: Line,
    path: Option<Line>,
}

#[derive(Template)]
#[template(path = "azollas/azollas.html")]
struct Azollas {
    frame: Frame,
    rows: Vec<Row>,
    repos: Vec<Repo>,
    /// What the files would change; only operators are told.
    files: Option<Files>,
    /// What a reload did.
    reloaded: Option<ReloadSaid>,
}

pub(super) async fn show(visit: Visit) -> Shown {
    page(&visit, 200, None).await
}

async fn page(visit: &Visit, status: u16, reloaded: Option<ReloadSaid>) -> Shown {
    let list: AzollaList = visit.get("/v1/azollas", &[]).await?;
    let azollas = Azollas {
        frame: visit.frame("Azollas"),
        rows: list.azollas.into_iter().map(row).collect(),
        repos: list.repos.into_iter().map(repo).collect(),
        files: files::look(visit, None).await?,
        reloaded,
    };
    visit.show_as(status, &azollas)
}

fn row(azolla: AzollaSummary) -> Row {
    Row {
        path: api("/azolla/", azolla.azolla_id.as_str(), ""),
        id: azolla.azolla_id.to_string(),
        description: Line(azolla.description),
        category: Line(azolla.category),
        hosted: azolla.hosted,
        seen: azolla.hosted_at.map(When),
        takes_tickets: azolla.takes_tickets,
        makes_manifests: azolla.makes_manifests,
    }
}

fn repo(repo: RepoView) -> Repo {
    Repo { name: Line(repo.name), base: Line(repo.base), path: repo.path.map(Line) }
}

/// `POST /azollas/reload`: says what was applied, which may be more than the page showed if a file was edited since.
pub(super) async fn reload(visit: Visit) -> Shown {
    let (status, said) = files::reload(&visit).await?;
    page(&visit, status, Some(said)).await
}

//! What the blueprint files would change, and the reload that applies them: all or none.

use super::super::show::{Id, Line, Ways};
use super::super::visit::{Visit, api};
use crate::http::problem::{Code, Refusal, Refused};
use crate::workers::reload::told;
use fernery_client::wire::{AzollaChange, Difference, ReloadRequest, ReloadResponse};
use fernery_core::artifact::AzollaId;
use serde_json::{Value, json};

/// Parts of one blueprint that are shown as differing, and tickets whose approval it voids.
const PARTS_MAX: usize = 100;
const VOIDED_SHOWN: usize = 20;

/// A part that differs.
pub(super) struct FilePart {
    pub(super) path: Line,
    pub(super) before: Line,
    pub(super) now: Line,
}

/// The change of one azolla.
pub(super) struct FileChange {
    pub(super) azolla: String,
    pub(super) told: Line,
    pub(super) parts: Vec<FilePart>,
    pub(super) parts_more: usize,
    /// Tickets that have to be approved again: how they are shown, and their pages.
    pub(super) voided: Vec<(Id, String)>,
    pub(super) voided_more: usize,
    /// Older tickets were not looked at.
    pub(super) voided_unseen: bool,
}

/// What a look at the files showed.
pub(super) struct Files {
    pub(super) changes: Vec<FileChange>,
    /// Why they cannot be applied, or were not looked at.
    pub(super) mistakes: Vec<Line>,
    /// A reload would change something.
    pub(super) reload: bool,
    pub(super) ways: Ways,
}

/// What a reload said.
pub(super) struct ReloadSaid {
    pub(super) changes: Vec<FileChange>,
    pub(super) mistakes: Vec<Line>,
}

/// Looks at the files; of one azolla alone, if it is named. Who may not reload is told nothing.
pub(super) async fn look(visit: &Visit, of: Option<&AzollaId>) -> Result<Option<Files>, Refused> {
    if !visit.is_operator() {
        return Ok(None);
    }
    let (found, mistakes) = match ask(visit, true).await {
        Ok(answer) => (answer.azollas, Vec::new()),
        Err(refused) if is_answer(&refused) => (Vec::new(), mistakes(&refused)),
        Err(refused) => return Err(refused),
    };
    let reload = !found.is_empty();
    let changes = found.into_iter().filter(|change| of.is_none_or(|of| change.azolla_id == *of));
    let ways = Ways::new("fernery azolla reload", "POST", "/v1/reload", Some(&json!({}).to_string()));
    Ok(Some(Files { changes: changes.map(change).collect(), mistakes, reload, ways }))
}

/// Applies them; with the status of the page that tells it.
pub(super) async fn reload(visit: &Visit) -> Result<(u16, ReloadSaid), Refused> {
    match ask(visit, false).await {
        Ok(answer) => {
            let changes = answer.azollas.into_iter().map(change).collect();
            Ok((200, ReloadSaid { changes, mistakes: Vec::new() }))
        }
        Err(refused) if is_answer(&refused) => {
            let mistakes = mistakes(&refused);
            Ok((refused.code.status(), ReloadSaid { changes: Vec::new(), mistakes }))
        }
        Err(refused) => Err(refused),
    }
}

async fn ask(visit: &Visit, dry_run: bool) -> Result<ReloadResponse, Refused> {
    visit.post("/v1/reload", &ReloadRequest { dry_run }).await
}

/// A file has a mistake, or this server has no files.
fn is_answer(refused: &Refusal) -> bool {
    matches!(refused.code, Code::Invalid | Code::Conflict)
}

fn mistakes(refused: &Refusal) -> Vec<Line> {
    std::iter::once(&refused.detail)
        .chain(refused.errors.iter().map(|error| &error.detail))
        .map(Line::of)
        .collect()
}

fn change(change: AzollaChange) -> FileChange {
    let said = told(&change);
    let ticket = |id: &fernery_core::artifact::ObjectiveId| (Id::of(id), api("/ticket/", id.as_str(), ""));
    FileChange {
        azolla: change.azolla_id.to_string(),
        told: Line(said),
        parts_more: change.difference.len().saturating_sub(PARTS_MAX),
        parts: change.difference.iter().take(PARTS_MAX).map(part).collect(),
        voided_unseen: change.voided_more,
        voided_more: change.voided.len().saturating_sub(VOIDED_SHOWN),
        voided: change.voided.iter().take(VOIDED_SHOWN).map(ticket).collect(),
    }
}

fn part(of: &Difference) -> FilePart {
    let value = |value: &Value| match value {
        Value::Null => Line::of("nothing"),
        Value::String(text) => Line::of(text),
        other => Line::of(other),
    };
    FilePart {
        path: Line(of.path.trim_start_matches('/').replace('/', ".")),
        before: value(&of.before),
        now: value(&of.now),
    }
}

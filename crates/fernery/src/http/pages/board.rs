//! `GET /board`: the tickets of an azolla by status. The filters are in the address, so that it can be kept and sent.

use super::frame::Frame;
use super::show::{Id, Line, When};
use super::visit::{Shown, Visit};
use crate::ticket_words::landing_brief;
use askama::Template;
use fernery_client::wire::{AzollaList, ObjectivePage, ObjectiveView};
use fernery_core::artifact::ObjectiveStatus;
use fernery_core::percent::encode;

/// Tickets of each status; alone, a status shows as many as a page of the API.
const EACH: &str = "20";
const ALONE: &str = "100";

struct Card {
    id: String,
    shown: Id,
    title: Line,
    azolla: String,
    beside: Line,
    labels: Vec<Line>,
    changed: When,
    unconfirmed: bool,
}

struct Column {
    status: &'static str,
    cards: Vec<Card>,
    /// Where the rest is.
    more: Option<String>,
}

#[derive(Template)]
#[template(path = "board.html")]
struct Board {
    frame: Frame,
    columns: Vec<Column>,
    azollas: Vec<String>,
    statuses: Vec<&'static str>,
    azolla: String,
    status: String,
    search: String,
    label: String,
    all: bool,
    /// Only finished tickets whose patch conflicts or did not land.
    unlanded: bool,
    empty: bool,
}

pub(super) async fn show(visit: Visit) -> Shown {
    let list: AzollaList = visit.get("/v1/azollas", &[]).await?;
    let wanted = |name: &str| visit.query.filled(name).unwrap_or_default().to_string();
    let (azolla, status, search, label) =
        (wanted("azolla"), wanted("status"), wanted("search"), wanted("label"));
    let (all, unlanded) = (visit.query.has("all"), visit.query.has("unlanded"));
    let status = if unlanded { ObjectiveStatus::Done.as_str().to_string() } else { status };
    let statuses: Vec<&'static str> = ObjectiveStatus::ALL.iter().map(|status| status.as_str()).collect();
    let shown: Vec<&'static str> =
        statuses.iter().copied().filter(|one| status.is_empty() || *one == status).collect();
    let mut columns = Vec::new();
    for of in &shown {
        let rows = if shown.len() == 1 { ALONE } else { EACH };
        let mut asked = vec![("status", *of), ("limit", rows)];
        let filters = [("azolla_id", &azolla), ("search", &search), ("label", &label)];
        asked.extend(
            filters
                .iter()
                .filter(|(_, value)| !value.is_empty())
                .map(|(name, value)| (*name, value.as_str())),
        );
        if unlanded {
            asked.push(("unlanded", "true"));
        }
        if !all {
            asked.extend([("cancelled", "false"), ("snoozed", "false")]);
        }
        let cursor = visit.query.text("cursor");
        if shown.len() == 1 && !cursor.is_empty() {
            asked.push(("cursor", cursor));
        }
        let page: ObjectivePage = visit.get("/v1/objectives", &asked).await?;
        let more = page.next_cursor.map(|cursor| {
            let mut fields = vec![("status", *of)];
            fields.extend(
                [("azolla", &azolla), ("search", &search), ("label", &label)]
                    .iter()
                    .filter(|(_, value)| !value.is_empty())
                    .map(|(name, value)| (*name, value.as_str())),
            );
            if all {
                fields.push(("all", "yes"));
            }
            // A cursor belongs to a list of this very form: that of a whole column, to the column alone.
            if shown.len() == 1 {
                fields.push(("cursor", &cursor));
            }
            let pairs: Vec<String> =
                fields.iter().map(|(name, value)| format!("{name}={}", encode(value))).collect();
            format!("/board?{}", pairs.join("&"))
        });
        columns.push(Column { status: of, cards: page.objectives.into_iter().map(card).collect(), more });
    }
    let empty = columns.iter().all(|column| column.cards.is_empty());
    visit.show(&Board {
        frame: visit.frame("Board"),
        columns,
        azollas: list.azollas.into_iter().map(|azolla| azolla.azolla_id.to_string()).collect(),
        statuses,
        azolla,
        status,
        search,
        label,
        all,
        unlanded,
        empty,
    })
}

fn card(view: ObjectiveView) -> Card {
    let o = view.objective;
    let open = o.blocked_on.iter().rev().find(|blocker| !blocker.resolved);
    let blocked = open.map(|blocker| blocker.description.clone()).or(o.blocked_reason.clone());
    let doing = view.progress.as_ref().map(|progress| match progress.note() {
        Some(note) => format!("{} % {note}", progress.percent()),
        None => format!("{} %", progress.percent()),
    });
    let waits = view.waiting.map(|waiting| waiting.why);
    let beside = match o.status {
        ObjectiveStatus::Blocked => blocked,
        ObjectiveStatus::Done => view.landing.as_ref().and_then(landing_brief),
        _ => doing.or(waits),
    };
    Card {
        id: o.objective_id.to_string(),
        shown: Id::of(&o.objective_id),
        title: Line::of(&o.title),
        azolla: o.azolla_id.to_string(),
        beside: Line(beside.unwrap_or_default()),
        labels: o.labels().map(Line::of).collect(),
        changed: When(o.updated_at),
        unconfirmed: view.unconfirmed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn finished(fit: Option<&str>, why: Option<&str>) -> ObjectiveView {
        let landing = json!({"state": "OPEN", "fit": fit, "why": why, "files": [], "run_id": "r", "patch_sha256": "p",
            "repo_ref": "app", "base_branch": "main", "base_commit": "b", "tip": "0123456789abcdef", "branch": null,
            "merge": "ff", "commit": null, "remarks": [], "by_hand": []});
        let objective = json!({"objective_id": "t", "azolla_id": "mec", "title": "x", "acceptance_criteria": "",
            "objective_type": "TICKET", "status": "DONE", "importance": 2, "urgency": 2, "blocked_on": [],
            "blocked_reason": null, "metadata": {}, "created_at": "2026-11-19T10:00:00Z",
            "updated_at": "2026-11-19T10:00:00Z"});
        let view = json!({"objective": objective, "unconfirmed": false, "failures": 0, "spent": {}, "landing": landing});
        serde_json::from_value(view).expect("a ticket")
    }

    #[test]
    fn a_finished_ticket_says_where_its_patch_is() {
        let beside = |fit, why| card(finished(fit, why)).beside.0;
        assert_eq!(beside(None, None), "");
        assert_eq!(beside(Some("MERGES"), None), "merges with main");
        for fit in [None, Some("MERGES")] {
            assert_eq!(beside(fit, Some("gate tests (exit 2)")), "did not land: gate tests (exit 2)");
        }
        assert_eq!(beside(Some("CONFLICTS"), Some("the same lines")), "conflicts: the same lines");
    }
}

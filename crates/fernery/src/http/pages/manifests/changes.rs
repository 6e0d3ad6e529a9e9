//! What changed from one manifest to a later one: a pure comparison of the facts that they were made from.

use fernery_core::inbox::facts::{Facts, Item};
use std::collections::BTreeMap;

/// What became of one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) item_id: String,
    pub(super) title: String,
    /// How it is marked: `came`, `went`, `changed`.
    pub(super) how: &'static str,
    /// What differs, a line each.
    pub(super) lines: Vec<String>,
}

/// Items that came, went or changed, in the order of now; what went stands last.
pub(super) fn changes(before: &Facts, now: &Facts) -> Vec<Change> {
    let known: BTreeMap<&str, (usize, &Item)> =
        before.items.iter().enumerate().map(|(place, item)| (item.item_id.as_str(), (place, item))).collect();
    let mut found = Vec::new();
    for (place, item) in now.items.iter().enumerate() {
        let (how, lines) = match known.get(item.item_id.as_str()) {
            None => ("came", item.why.clone()),
            Some((was, old)) => ("changed", differing((*was, old), (place, item))),
        };
        if how == "came" || !lines.is_empty() {
            found.push(Change { item_id: item.item_id.clone(), title: item.title.clone(), how, lines });
        }
    }
    let here = |item: &&Item| !now.items.iter().any(|other| other.item_id == item.item_id);
    let gone = before.items.iter().filter(here).map(|item| Change {
        item_id: item.item_id.clone(),
        title: item.title.clone(),
        how: "went",
        lines: item.why.clone(),
    });
    found.extend(gone);
    found
}

fn differing((was_place, was): (usize, &Item), (place, now): (usize, &Item)) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = |name: &str, before: String, now: String| {
        if before != now {
            lines.push(format!("{name}: {before} → {now}"));
        }
    };
    let said = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_string());
    line("title", was.title.clone(), now.title.clone());
    line("status", said(&was.status.map(|s| s.to_string())), said(&now.status.map(|s| s.to_string())));
    line("why", was.why.join("; "), now.why.join("; "));
    line("due", said(&was.due_at.map(|at| at.to_string())), said(&now.due_at.map(|at| at.to_string())));
    line("to do", was.command.clone(), now.command.clone());
    line("place", (was_place + 1).to_string(), (place + 1).to_string());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use fernery_core::artifact::{AzollaId, ObjectiveStatus};

    fn item(id: &str, status: ObjectiveStatus, why: &str) -> Item {
        Item {
            item_id: format!("mec/{id}"),
            azolla_id: AzollaId::stored("mec"),
            objective_id: None,
            title: id.to_string(),
            why: vec![why.to_string()],
            command: format!("fernery ticket show {id}"),
            importance: 2,
            urgency: 2,
            due_at: None,
            overdue: false,
            status: Some(status),
            pause: None,
            score_terms: Vec::new(),
        }
    }

    #[test]
    fn what_came_went_and_changed_is_told() {
        use ObjectiveStatus::{Blocked, New};
        let facts = |items| Facts { asked: Vec::new(), items, more: 0, pending_captures: 0 };
        let before = facts(vec![item("A", New, "new"), item("B", New, "new"), item("C", New, "new")]);
        let now = facts(vec![item("D", New, "urgent"), item("A", Blocked, "stuck"), item("C", New, "new")]);
        let told: Vec<String> = changes(&before, &now)
            .into_iter()
            .map(|change| format!("{} {}: {}", change.title, change.how, change.lines.join(", ")))
            .collect();
        assert_eq!(
            told,
            [
                "D came: urgent",
                "A changed: status: NEW → BLOCKED, why: new → stuck, place: 1 → 2",
                "B went: new"
            ]
        );
        assert_eq!(changes(&now, &now), []);
    }
}

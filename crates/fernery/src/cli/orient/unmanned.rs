//! Approved tickets that nobody can carry out: a page that says what needs a person must not leave them out.

use crate::cli::failure::Outcome;
use crate::cli::screen::{Paint, Screen, plain};
use fernery_client::Client;
use fernery_client::client::Query;
use fernery_client::wire::ObjectivePage;
use fernery_core::artifact::ObjectiveStatus;
use fernery_core::limits;
use fernery_core::pipeline::waiting::Waiting;
use std::collections::BTreeMap;
use std::time::Duration;

/// Tickets of each status that are looked at, newest first.
const LOOKED_AT: u32 = limits::PAGE_ROWS_MAX;
/// Tickets named for one reason.
const NAMED_MAX: usize = 3;

/// Says for each reason which tickets wait for it.
pub(super) async fn show(client: &Client, screen: Screen) -> Outcome {
    let of = [ObjectiveStatus::Todo, ObjectiveStatus::InProgress];
    let pages = tokio::try_join!(page(client, of[0]), page(client, of[1]))?;
    let (stuck, cut) = lines(of.into_iter().zip([pages.0, pages.1]));
    let paint = |line: &String| screen.say_painted(&plain(line).replace('\n', " "), Paint::Bad);
    stuck.iter().try_for_each(paint)?;
    cut.iter().try_for_each(|line| screen.say(line))
}

/// A line for each reason, and one for each status of which there is more than was looked at.
fn lines(pages: impl IntoIterator<Item = (ObjectiveStatus, ObjectivePage)>) -> (Vec<String>, Vec<String>) {
    let mut stuck: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut cut = Vec::new();
    for (status, page) in pages {
        cut.extend(page.next_cursor.map(|_| {
            format!(
                "only the newest {LOOKED_AT} tickets that are {status} were looked at. All of them: \
                 fernery ticket list --status {status} --all"
            )
        }));
        for view in page.objectives {
            if let Some(waiting) = view.waiting.filter(|waiting| Waiting::needs_a_person(&waiting.code)) {
                stuck.entry(waiting.why).or_default().push(view.objective.objective_id.to_string());
            }
        }
    }
    let line = |(why, tickets): (String, Vec<String>)| {
        let more = tickets.len().saturating_sub(NAMED_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let named = tickets.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
        let verb = if tickets.len() == 1 { "waits" } else { "wait" };
        format!("{named}{more} {verb}: {why}")
    };
    (stuck.into_iter().map(line).collect(), cut)
}

async fn page(client: &Client, status: ObjectiveStatus) -> Outcome<ObjectivePage> {
    let query = Query::new().with("status", Some(status)).with("limit", Some(LOOKED_AT));
    Ok(client.get("/v1/objectives", &query, Duration::ZERO).await?.read()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn page(tickets: &[&str], next_cursor: Option<&str>) -> ObjectivePage {
        let view = |id: &&str| {
            let objective = json!({"objective_id": id, "azolla_id": "mec", "title": "x", "acceptance_criteria": "",
                "objective_type": "TICKET", "status": "TODO", "importance": 2, "urgency": 2, "blocked_on": [],
                "blocked_reason": null, "metadata": {}, "created_at": "2026-11-19T10:00:00Z",
                "updated_at": "2026-11-19T10:00:00Z"});
            json!({"objective": objective, "unconfirmed": false, "failures": 0, "spent": {},
                "waiting": {"code": Waiting::NOT_HOSTED, "why": "no process hosts azolla mec"}})
        };
        let views: Vec<_> = tickets.iter().map(view).collect();
        serde_json::from_value(json!({"objectives": views, "next_cursor": next_cursor})).expect("a page")
    }

    #[test]
    fn what_was_not_looked_at_is_said() {
        let (stuck, cut) = lines([
            (ObjectiveStatus::Todo, page(&["a", "b", "c", "d"], Some("next"))),
            (ObjectiveStatus::InProgress, page(&["e"], None)),
        ]);
        assert_eq!(stuck, ["a, b, c and 2 more wait: no process hosts azolla mec"]);
        assert_eq!(cut.len(), 1, "{cut:?}");
        assert!(cut[0].ends_with("fernery ticket list --status TODO --all"), "{cut:?}");
    }
}

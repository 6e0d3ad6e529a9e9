//! Approved tickets that nobody can carry out: a page that says what needs a person must not leave them out.

use crate::cli::failure::Outcome;
use crate::cli::screen::{Paint, Screen, plain};
use fernery_client::Client;
use fernery_client::client::Query;
use fernery_client::wire::ObjectivePage;
use fernery_core::artifact::ObjectiveStatus;
use fernery_core::pipeline::waiting::Waiting;
use std::collections::BTreeMap;
use std::time::Duration;

/// Tickets of each status that are looked at.
const LOOKED_AT: u32 = 50;
/// Tickets named for one reason.
const NAMED_MAX: usize = 3;

/// Says for each reason which tickets wait for it.
pub(super) async fn show(client: &Client, screen: Screen) -> Outcome {
    let mut stuck: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for status in [ObjectiveStatus::Todo, ObjectiveStatus::InProgress] {
        let query = Query::new().with("status", Some(status)).with("limit", Some(LOOKED_AT));
        let page: ObjectivePage = client.get("/v1/objectives", &query, Duration::ZERO).await?.read()?;
        for view in page.objectives {
            if let Some(waiting) = view.waiting.filter(|waiting| Waiting::needs_a_person(&waiting.code)) {
                stuck.entry(waiting.why).or_default().push(view.objective.objective_id.to_string());
            }
        }
    }
    for (why, tickets) in stuck {
        let more = tickets.len().saturating_sub(NAMED_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let (named, wait) = (tickets.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", "), &why);
        let verb = if tickets.len() == 1 { "waits" } else { "wait" };
        let line = format!("{named}{more} {verb}: {wait}");
        screen.say_painted(&plain(&line).replace('\n', " "), Paint::Bad)?;
    }
    Ok(())
}

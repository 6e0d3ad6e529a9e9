//! Patches that passed and are not on their base branch: those that conflict need a person, those that merge only a word.

use crate::cli::failure::Outcome;
use crate::cli::screen::{Paint, Screen, plain};
use crate::ticket_words::landing_line;
use fernery_client::Client;
use fernery_client::client::Query;
use fernery_client::wire::{ObjectivePage, ObjectiveView};
use fernery_core::artifact::ObjectiveStatus;
use fernery_core::pipeline::landing::{Fit, LandingState};
use fernery_core::pipeline::possible::reopening;
use std::time::Duration;

/// Finished tickets that are looked at, newest first.
const LOOKED_AT: u32 = 50;
/// Tickets named in one line.
const NAMED_MAX: usize = 3;

/// A line for each patch that conflicts, and one for all that only wait for their merge.
pub(super) async fn show(client: &Client, screen: Screen) -> Outcome {
    let query = Query::new().with("status", Some(ObjectiveStatus::Done)).with("limit", Some(LOOKED_AT));
    let page: ObjectivePage = client.get("/v1/objectives", &query, Duration::ZERO).await?.read()?;
    for line in page.objectives.iter().filter_map(conflict) {
        screen.say_painted(&plain(&line), Paint::Bad)?;
    }
    merging(&page.objectives).map_or(Ok(()), |line| screen.say(&plain(&line)))
}

fn conflict(view: &ObjectiveView) -> Option<String> {
    let landing = view.landing.as_ref().filter(|of| of.state == LandingState::Open)?;
    if landing.fit != Some(Fit::Conflicts) {
        return None;
    }
    let id = &view.objective.objective_id;
    Some(format!("{id} {}: {}", landing_line(landing), reopening(id, landing.why.as_deref())))
}

/// Those that a person has confirmed and nobody has merged.
fn merging(all: &[ObjectiveView]) -> Option<String> {
    let waits = |view: &&ObjectiveView| {
        let landing = view.landing.as_ref().filter(|of| of.state == LandingState::Open);
        !view.unconfirmed && landing.is_some_and(|of| of.fit == Some(Fit::Merges) && of.why.is_none())
    };
    let found: Vec<&str> =
        all.iter().filter(waits).map(|view| view.objective.objective_id.as_str()).collect();
    let first = found.first()?;
    let more = found.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let named = found.iter().take(NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
    Some(format!("confirmed and not merged: {named}{more}. To merge: fernery ticket merge {first}"))
}

//! Pauses: all, or those that wait for a person.

use super::paging::Place;
use crate::http::wire::answer::{Call, Replied, Reply};
use fernery_client::wire::{PausePage, PauseView};
use fernery_engine::pipeline::pauses::unanswered;
use fernery_engine::pipeline::reading::{self, Below, Paused};

/// `GET /v1/pauses`
pub async fn list(call: Call) -> Replied {
    let waiting: bool = call.query.parsed("waiting")?.unwrap_or(false);
    let place = Place::read(&call, format!("pauses waiting={waiting}"))?;
    let (below, rows) = (place.below.clone(), place.rows_and_one());
    let substrate = call.server.engine().substrate();
    let found = substrate.read(move |sql| match waiting {
        true => unanswered(sql, &below, rows),
        false => reading::pauses(sql, &below, rows),
    });
    let (found, next_cursor) =
        place.page(found.await?, |row| Below { at: row.pause.created_at, id: row.key.clone() });
    Reply::json(200, &PausePage { pauses: found.into_iter().map(pause_view).collect(), next_cursor })
}

pub(super) fn pause_view(Paused { pause, happened, .. }: Paused) -> PauseView {
    PauseView { pause, happened }
}

//! When a ticket is due, as a person says it: words become an instant in the calendar of the person's inbox, as in a capture.

use super::text::{Mistake, Written};
use crate::cli::failure::Outcome;
use crate::cli::triage::find;
use fernery_client::Client;
use fernery_client::client::Query;
use fernery_client::wire::AzollaDetail;
use fernery_core::Timestamp;
use fernery_core::artifact::Metadata;
use fernery_core::calendar::Zone;
use fernery_core::inbox::deadline::{DUE_SAID, due_of, read_due};
use fernery_engine::door;
use std::time::Duration;

/// The key in the metadata.
pub(super) const DUE_AT: &str = "due_at";

/// Puts the date that was said into the metadata. `named` is what was written down as metadata: a `due_at` in it that is no
/// date would never be due, and nobody would be told.
pub(super) async fn fill_in(
    metadata: &mut Metadata,
    (flag, written): (Option<&str>, &Written),
    named: &Metadata,
    mistakes: &mut Vec<Mistake>,
    client: &Client,
) -> Outcome {
    if let Some(value) = named.get(DUE_AT).filter(|_| due_of(named).is_none()) {
        let why = format!("due_at: {value} is no instant: use --due, or a line `due: …` ({DUE_SAID})");
        mistakes.push(written.mistake(DUE_AT, why));
    }
    let Some(said) = flag.or(written.due.as_deref()) else { return Ok(()) };
    match said_as(said, client).await? {
        Ok(at) => drop(metadata.insert(DUE_AT.to_string(), at.to_string().into())),
        Err(why) => mistakes.push(written.mistake("due", format!("due: {why}"))),
    }
    Ok(())
}

/// The instant that a person names. The clock is this machine's: it is the one that the person looks at.
pub(in crate::cli) async fn said_as(said: &str, client: &Client) -> Outcome<Result<Timestamp, String>> {
    Ok(read_due(said, door::wall_clock(), &zone(client).await?))
}

/// The time zone of the inbox; without one, UTC.
async fn zone(client: &Client) -> Outcome<Zone> {
    let inboxes = find::azollas(client, |blueprint| !blueprint["triage"].is_null()).await?;
    let Some(inbox) = inboxes.first() else { return Ok(Zone::default()) };
    let path = format!("/v1/azollas/{inbox}");
    let detail = client.get::<AzollaDetail>(&path, &Query::new(), Duration::ZERO).await?.read()?;
    let named = detail.blueprint["time_zone"].as_str().and_then(|name| name.parse().ok());
    Ok(named.unwrap_or_default())
}

//! How long a person needs for all that waits for them.

use crate::cli::failure::Outcome;
use crate::cli::screen::{Screen, plain};
use crate::orientation::{minutes, waits};
use fernery_client::client::Query;
use fernery_client::wire::ReviewTime;
use fernery_client::{Client, ClientError};
use std::time::Duration;

/// A line, if anything waits.
pub(super) async fn show(client: &Client, screen: Screen) -> Outcome {
    let time: ReviewTime = match client.get("/v1/review_time", &Query::new(), Duration::ZERO).await {
        Ok(reply) => reply.read()?,
        // A server of an earlier version does not estimate.
        Err(ClientError::Refused { problem, .. }) if problem.status == 404 => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    match time.minutes {
        0 => Ok(()),
        _ => screen.say(&plain(&format!("review: {}: {}", minutes(&time), waits(&time)))),
    }
}

//! The diazotroph that makes patches: any coding agent, by its profile, on a private clone of the operator's repository.
//!
//! It is a stateless executor. What it is told comes with the workorder, what it makes is a candidate and nothing more, and
//! whoever runs it, this process or a worker elsewhere, does so under a lease that it renews.

mod bundle;
mod errand;
pub(crate) mod leftover;
mod listening;
mod place;
mod preflight;
mod redaction;
pub(crate) mod remote;
pub mod trash;

pub(crate) use bundle::unready;
pub(crate) use errand::{Done, EndOrder, Errand};
pub(crate) use place::{Place, occupy};
pub(crate) use trash::remove_all;

use fernery_core::artifact::{ContextSnapshot, Workorder};
use serde::Deserialize;
use std::time::Duration;

/// What a workorder's job carries.
#[derive(Debug, Deserialize)]
pub(crate) struct Payload {
    pub(crate) workorder: Workorder,
    pub(crate) context_snapshot: ContextSnapshot,
}

/// Kept of the budget for stopping the agent, capturing what it left and handing it in.
const RESERVE_MAX: Duration = Duration::from_secs(15);
/// And at least this, if there is so much.
const RESERVE_MIN: Duration = Duration::from_secs(2);

/// What is kept of a budget for what comes after the agent.
pub(crate) fn reserve(budget: Duration) -> Duration {
    (budget / 10).clamp(RESERVE_MIN.min(budget / 2), RESERVE_MAX)
}

//! The diazotroph that makes patches: any coding agent, by its profile, on a private clone of the operator's repository.
//!
//! It is a stateless executor: its input comes with the workorder, its output is only a proposal, and whoever runs it
//! (this process or a remote worker) renews a lease meanwhile.

mod bundle;
pub mod leftover;
mod listening;
mod preflight;
mod redaction;
mod run;
mod run_folder;
pub mod trash;

pub use bundle::unready;
pub use run::{AgentRun, RunEnd};
pub use run_folder::{RunFolder, occupy};
pub use trash::remove_all;

use fernery_core::artifact::{ContextSnapshot, Workorder};
use serde::Deserialize;
use std::time::Duration;

/// The payload of a workorder's job.
#[derive(Debug, Deserialize)]
pub struct Payload {
    pub workorder: Workorder,
    pub context_snapshot: ContextSnapshot,
}

/// At most this much of the budget is reserved for stopping the agent, taking the patch and handing it in.
const RESERVE_MAX: Duration = Duration::from_secs(15);
/// At least this much is reserved, but never more than half of the budget.
const RESERVE_MIN: Duration = Duration::from_secs(2);

/// How much of a budget is reserved for the time after the agent.
pub fn reserve(budget: Duration) -> Duration {
    (budget / 10).clamp(RESERVE_MIN.min(budget / 2), RESERVE_MAX)
}

//! The diazotroph that makes patches: any coding agent, by its profile, on a private clone of the operator's repository.
//!
//! It is a stateless executor. What it is told comes with the workorder, what it makes is a candidate and nothing more, and
//! whoever runs it, this process or a worker elsewhere, does so under a lease that it renews.

mod errand;
pub(crate) mod leftover;
mod listening;
mod place;
mod preflight;
pub mod trash;

pub(crate) use errand::{Done, EndOrder, Errand};
pub(crate) use place::Place;

//! Jobs: who holds one, what the end of an attempt means, and what a worker is answered.
//!
//! * [`lease`]: the one lease, its two fences, and the page that says who is authoritative
//! * [`state`]: the states of a job and of an attempt
//! * [`settle`]: what the end of an attempt means for its job
//! * [`report`]: what to answer to a worker that reports an end
//! * [`retry`]: how long to wait before the next try
//! * [`progress`]: how far a job is, as a percentage
//! * [`bulk`]: one act on all jobs that match
//! * [`stats`]: what happened in a stream within a span of time, as figures that add up

pub mod bulk;
pub mod lease;
pub mod progress;
pub mod report;
pub mod retry;
pub mod settle;
pub mod state;
pub mod stats;

pub use state::{AttemptOutcome, JobStatus};

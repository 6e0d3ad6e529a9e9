//! The rules of Fernery, and nothing else.
//!
//! This crate decides and never acts: no I/O, no clock, no randomness, nothing async. What a rule needs (an instant, a
//! random fraction, the row as it stands) comes in as a value; what it decides goes out as a value. A refusal is a value
//! too: nothing in here fails.
//!
//! * [`lease`]: the one lease, its two fences, and the page that says who is authoritative
//! * [`job`]: the states of a job and of an attempt, and the only transitions there are
//! * [`settle`]: what the end of an attempt means for its job
//! * [`report`]: what to answer to a worker that reports an end
//! * [`retry`]: when to try again
//! * [`artifact`]: what a run leaves behind, spelled as its schemas spell it
//! * [`blueprint`]: what an azolla is made from, and every mistake in it
//! * [`profile`]: coding agents as data, and what their output says
//! * [`canonical`]: one spelling for one content, and its digest
//! * [`patch`]: patches, read strictly, and what they may touch
//! * [`pipeline`]: every decision from an approved objective to a judged run
//! * [`inbox`]: captures to candidates, what needs a person, and what is overdue
//! * [`journal`]: who did what, and the chain over it
//! * [`exported`]: a folder of artifacts, checked as a whole, and what comes in of it elsewhere
//! * [`schema`]: the JSON Schemas of the artifacts, and what a document has against its own
//! * [`names`], [`time`], [`progress`]: ids, names, instants and percentages as the wire spells them
//! * [`duration`]: durations as people write them
//! * [`json`]: what a document must be so that it means the same to every reader
//! * [`limits`]: every limit, in one place

pub mod artifact;
pub mod blueprint;
pub mod canonical;
pub mod duration;
pub mod exported;
pub mod inbox;
pub mod job;
pub mod journal;
pub mod json;
pub mod lease;
pub mod limits;
pub mod names;
mod parsed;
pub mod patch;
pub mod pipeline;
pub mod profile;
pub mod progress;
pub mod report;
pub mod retry;
pub mod schema;
pub mod settle;
pub mod time;
mod toml_file;

pub use blueprint::Blueprint;
pub use canonical::Digest;
pub use job::{AttemptOutcome, JobStatus};
pub use lease::{Holding, LeaseToken, TokenHash};
pub use names::{AttemptId, BadName, JobId, StreamName, WorkerId};
pub use profile::Profile;
pub use progress::Progress;
pub use schema::{Schema, Violation};
pub use time::Timestamp;

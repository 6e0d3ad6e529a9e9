//! The rules of Fernery, and nothing else.
//!
//! This crate decides and never acts: no I/O, no clock, no randomness, nothing async. What a rule needs (an instant, a
//! random fraction, the row as it stands) comes in as a value; what it decides goes out as a value. A refusal is a value
//! too: nothing in here fails.
//!
//! * [`job`]: the one lease, the end of an attempt and what it means; begin with [`job::lease`]
//! * [`calendar`]: instants, durations, zones and schedules
//! * [`artifact`]: what a run leaves behind, spelled as its schemas spell it
//! * [`blueprint`]: what an azolla is made from, and every mistake in it
//! * [`profile`]: coding agents as data, and what their output says
//! * [`canonical`]: one spelling for one content, and its digest
//! * [`patch`]: patches, read strictly, and what they may touch
//! * [`review`]: comments on a patch, and the note that is made of them
//! * [`pipeline`]: every decision from an approved objective to a judged run
//! * [`inbox`]: captures to candidates, what needs a person, and what is overdue
//! * [`journal`]: who did what, and the chain over it
//! * [`exported`]: a folder of artifacts, checked as a whole, and what comes in of it elsewhere
//! * [`schema`]: the JSON Schemas of the artifacts, and what a document has against its own
//! * [`names`]: ids and names as the wire spells them
//! * [`json_strict`]: what a document must be so that it means the same to every reader
//! * [`id_part`]: the short forms of ids that people type
//! * [`percent`]: the encoding of URLs
//! * [`toml_file`]: files that people write, with the place of every mistake
//! * [`limits`]: every limit, in one place

pub mod artifact;
pub mod blueprint;
pub mod calendar;
pub mod canonical;
pub mod exported;
mod hex;
pub mod id_part;
pub mod inbox;
pub mod job;
pub mod journal;
pub mod json_strict;
pub mod limits;
pub mod names;
mod parsed;
pub mod patch;
pub mod percent;
pub mod pipeline;
pub mod profile;
pub mod review;
pub mod schema;
pub mod toml_file;
mod words;

pub use blueprint::Blueprint;
pub use calendar::Timestamp;
pub use canonical::Digest;
pub use hex::hex;
pub use job::lease::{Holding, LeaseToken, TokenHash};
pub use job::progress::Progress;
pub use job::{AttemptOutcome, JobStatus};
pub use names::{AttemptId, BadName, JobId, StreamName, WorkerId};
pub use profile::Profile;
pub use schema::{Schema, Violation};

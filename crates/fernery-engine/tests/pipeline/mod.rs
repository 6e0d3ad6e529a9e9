//! The pipeline's promises, on both databases: tests that do not know which one they run on.
//!
//! The numbers in the docs of the tests are those of the invariants in the architecture page.

mod acts;
mod batches;
mod deadlines;
mod desk;
mod envelopes;
mod hands;
mod history;
mod inbox;
mod inbox_property;
mod journal;
mod landings;
mod manifests;
mod overwhelm;
mod pages;
mod panics;
mod patches;
mod paths;
mod pausing;
mod people;
mod property;
mod queries;
mod questions;
mod races;
mod repeats;
mod sight;
mod snoozes;
mod stranded;
mod ticket_state;
mod triage_property;
mod voiding;
mod walk;
mod world;

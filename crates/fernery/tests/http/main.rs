//! The server over a real socket: what it answers, what it refuses, and what hostile callers cost.

#[path = "../support/campaign/mod.rs"]
mod campaign;
#[path = "../../../fernery-engine/tests/support/fresh_database.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod fresh_database;

mod bad_bodies;
mod bad_heads;
mod bad_reports;
mod bulk;
mod candidates;
mod captures;
mod contract;
mod hostile;
mod import;
mod inbox;
mod membrane;
mod objectives;
mod operators;
mod pipeline;
mod pressure;
mod roles;
mod server;
mod short_ids;
mod tidy;
mod tls;

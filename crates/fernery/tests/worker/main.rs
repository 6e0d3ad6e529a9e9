//! `fernery worker`, the processes that it starts, and the Rust client.

#[path = "../support/campaign/mod.rs"]
mod campaign;
#[path = "../../../fernery-engine/tests/support/port.rs"]
mod port;
#[path = "../../../fernery-engine/tests/support/seed.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod seed;

mod cli;
mod jobs;
mod kills;
mod notice_hook;
mod process;
mod processes;
mod rust_client;
mod workshop;

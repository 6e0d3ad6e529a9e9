//! What one database alone has to show: its file or its server goes away, is damaged, or is not what it should be.

mod postgres_faults;
mod postgres_inbox;
mod postgres_plans;
mod postgres_processes;
mod sqlite_file;
#[path = "../support/mod.rs"]
mod support;

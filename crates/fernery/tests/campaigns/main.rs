//! Real processes under load and faults, for long enough that a race would show.

#[path = "../support/campaign/mod.rs"]
mod campaign;
#[path = "../../../fernery-engine/tests/support/fresh_database.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod fresh_database;
#[path = "../support/program/mod.rs"]
mod program;
#[path = "../../../fernery-engine/tests/support/seed.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod seed;

mod disk;
mod disk_faults;
mod fence;
mod kill;
mod long_polls;
mod stopped_worker;

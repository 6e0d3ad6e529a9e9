//! Tickets through the real program: approved over HTTP, executed by programs and by workers elsewhere, judged, paused;
//! and the program killed at every step of the way.

mod afar;
mod bare;
mod contained;
#[path = "../../../fernery-engine/tests/support/fresh_database.rs"]
#[allow(dead_code, reason = "only a part of it is used")]
mod fresh_database;
mod handed_back;
mod inbox;
mod killed_acts;
mod killed_bulk;
mod kills;
mod left_behind;
mod models;
#[path = "../support/program/mod.rs"]
mod program;
mod recurring;
mod shop;
mod telling;
mod ways;

//! Agents on tickets through the real program: a scripted agent that behaves in every way an agent may, killed at every step,
//! and what the operator's repository looks like afterwards.

mod behaviours;
mod catalogue;
mod follow;
#[path = "../../../fernery-engine/tests/support/fresh_database.rs"]
#[allow(dead_code, reason = "only a part of it is used")]
mod fresh_database;
mod kills;
mod landing;
mod live;
mod patches;
mod path;
#[path = "../support/program/mod.rs"]
mod program;
mod protects;
mod questions;
mod reading;
mod remote;
mod remote_kills;
mod rework;
mod rework_kills;
mod sandbox;
mod yard;

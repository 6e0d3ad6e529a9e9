//! Agents on tickets through the real program: a scripted agent that behaves in every way an agent may, killed at every step,
//! and what the operator's repository looks like afterwards.

mod behaviours;
mod catalogue;
mod kills;
mod live;
mod patches;
#[path = "../support/program/mod.rs"]
mod program;
mod protects;
mod reading;
mod remote;
mod remote_kills;
mod sandbox;
mod yard;

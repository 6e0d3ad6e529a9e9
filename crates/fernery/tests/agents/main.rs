//! Agents on tickets through the real program: a scripted agent that behaves in every way an agent may, killed at every step,
//! and what the operator's repository looks like afterwards.

mod behaviours;
mod catalogue;
mod kills;
mod live;
#[path = "../program/mod.rs"]
mod program;
mod reading;
mod remote;
mod remote_kills;
mod yard;

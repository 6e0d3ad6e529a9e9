//! `fernery worker`: claims jobs, runs a command under a guard for each, or an agent that makes a patch, and reports the result.
//! The loop that claims, heartbeats and reports is in `fernery-client`; starting and ending programs is in `fernery-exec`.

pub mod exit_codes;
pub mod handler;
pub mod outcome;
pub(crate) mod remote_patches;

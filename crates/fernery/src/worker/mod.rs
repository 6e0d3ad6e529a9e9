//! `fernery worker`: claims jobs, has a guard run a command for each, or an agent make a patch, and reports what came of it. The
//! loop that claims, heartbeats and reports is the client's; what is started and how it ends is `fernery-exec`'s.

pub mod exit_codes;
pub mod handler;
pub mod outcome;
pub(crate) mod remote_patches;

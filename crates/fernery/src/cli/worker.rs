//! `fernery worker`: claims jobs and runs a command for each.

use clap::Args;
use std::ffi::OsString;

/// The process that is the parent of a worker's jobs; started by the worker itself.
#[derive(Debug, Args)]
pub(super) struct WorkerGuard {
    #[arg(last = true, required = true)]
    pub(super) command: Vec<OsString>,
}

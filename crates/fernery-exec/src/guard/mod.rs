//! One process per job, and nothing left behind.
//!
//! Three kinds of process take part. The *worker* (`fernery worker`, or an executor of the server) has the job. Each of its
//! slots has a *guard* ([`main`]): this same program, started once per slot, that starts the command of one job after another
//! and is the parent of whatever a job leaves behind. The *job* is the operator's command with all its descendants.
//!
//! The guard is the authority on what still runs: a job has ended when its guard has no child left, because all orphans
//! become its children. If the worker dies, its socket closes and the guard kills the job. If a guard dies, its orphans
//! become the worker's children, and the worker kills them.

mod bounded_output;
mod guard_process;
mod guards;
mod link;
pub(crate) mod tree;

pub use bounded_output::{Head, Tail, Truncated};
pub use guard_process::main;
pub(crate) use guards::bears;
pub use guards::{ATTEMPT_VARIABLE, GUARD_COMMAND, Guards, Input, Listener, NotRun, OutputStream, Ran, Seen};
pub use link::{Exit, Stopped};

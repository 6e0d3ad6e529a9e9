//! `fernery worker`: one process per job, and nothing of it left behind.
//!
//! Three kinds of process take part. The *worker* claims, heartbeats and reports; the loop that does so is the client's.
//! Each of its slots has a *guard* ([`guard`]): this same program, started once per slot, that starts the command of one
//! job after another and is the parent of whatever a job leaves behind. The *job* is the operator's command with all its
//! descendants.
//!
//! The guard is authoritative about what runs: a job has ended when its guard has no child left, for orphans come to it
//! and to nobody else. A worker that dies, by whatever signal, closes the guard's socket, and the guard kills the job. A
//! guard that dies leaves its orphans to the worker, which kills them.

pub mod capture;
pub mod exit_codes;
pub mod guard;
pub mod handler;
pub mod link;
pub mod outcome;
pub mod process;
pub mod program;
pub mod tree;

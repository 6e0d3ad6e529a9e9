//! The Rust client of Fernery: enqueues jobs, waits for them, and works on them.
//!
//! A producer describes a [`NewJob`] and hands it to [`Client::enqueue`]; if an answer is lost, the call is
//! repeated, and never stores a job twice. A [`Worker`] claims jobs, keeps their leases and reports their ends; its
//! handlers are plain async functions from a [`Job`] to a result or a [`Failure`].
//!
//! With `fernery up` running in this folder (`cargo run --example mail` in a checkout):
//!
//! ```no_run
#![doc = include_str!("../examples/mail.rs")]
//! ```
//!
//! [`wire`] has every request and response as the server reads and writes them. Calls of [`Client`] with these types are
//! sent once.
#![warn(missing_docs)]

mod backoff;
pub mod client;
pub mod producer;
pub mod wire;
pub mod worker;

pub use client::{Client, ClientError};
pub use fernery_core::{AttemptId, JobId};
pub use producer::{JobEnd, JobError, JobHandle, NewJob};
pub use worker::{Failure, Job, JobEnding, StopReason, Summary, Worker, WorkerError, WorkerEvent};

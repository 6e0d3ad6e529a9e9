//! The Rust client of Fernery: enqueues jobs, waits for them, and works on them.
//!
//! A producer describes a [`NewJob`] and hands it to [`Client::enqueue`]; the call repeats itself where an answer was
//! lost, and never makes two jobs of one. A [`Worker`] claims jobs, keeps their leases and reports their ends; its
//! handlers are plain async functions from a [`Job`] to a result or a [`Failure`].
//!
//! With `fernery up` running in this folder (`cargo run --example mail` in a checkout):
//!
//! ```no_run
#![doc = include_str!("../examples/mail.rs")]
//! ```
//!
//! [`wire`] has every request and response as the server writes and reads them; the calls of [`Client`] that take and
//! give those are sent once.
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

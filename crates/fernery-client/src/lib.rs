//! Wire types and client of Fernery's HTTP interface, and a worker loop.

mod backoff;
pub mod client;
mod door;
pub mod wire;
pub mod worker;

pub use client::{Client, ClientError};
pub use worker::{Failure, Job, StopReason, Summary, Worker, WorkerError, WorkerEvent};

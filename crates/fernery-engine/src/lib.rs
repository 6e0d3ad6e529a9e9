//! Fernery's job engine: durable jobs, leased to workers that may be anywhere, finished exactly once in the books.
//!
//! [`Engine`] is what a program embeds. Under it lies one [`store::Store`] (SQLite or PostgreSQL), above it nothing but
//! transport: the HTTP server of the `fernery` binary calls the same methods. [`embed`] has the short forms for one job at
//! a time, and a whole program to begin with.
//!
//! The database is the truth. What lives in memory here (parked claims, cached names) is a hint that may be lost at any
//! moment and only costs time.
#![warn(missing_docs)]

pub mod clock_step;
pub mod embed;
pub mod engine;
pub mod error;
pub mod explanation;
pub mod parking;
pub mod pipeline;
mod polled;
mod pollers;
pub mod presence;
pub mod signals;
pub mod store;
pub mod supervise;
pub mod transport;

pub use embed::Stop;
pub use engine::{Database, Engine, EngineSettings, open_store};
pub use error::{StoreError, StoreResult};
pub use explanation::Explanation;
pub use fernery_core::job::report::Answer;
pub use fernery_core::{JobId, JobStatus};
pub use fernery_door as door;
pub use pipeline::Substrate;
pub use pollers::Poller;
pub use presence::Presence;
pub use store::{Claimed, Enqueued, NewJob};

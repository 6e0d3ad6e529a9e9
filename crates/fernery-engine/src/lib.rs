//! Fernery's job engine: durable jobs, leased to workers that may be anywhere, finished exactly once in the books.
//!
//! [`Engine`] is what a program embeds. Under it lies one [`store::Store`] (SQLite or PostgreSQL), above it nothing but
//! transport: the HTTP server of the `fernery` binary calls the same methods.
//!
//! The database is the truth. What lives in memory here (parked claims, cached names) is a hint that may be lost at any
//! moment and only costs time.

pub mod door;
pub mod engine;
pub mod error;
pub mod parking;
pub mod signals;
pub mod store;

pub use engine::{Database, Engine, EngineSettings, Explanation, open_store};
pub use error::StoreError;

//! Wire types and client of Fernery's HTTP interface.

pub mod client;
pub mod wire;

pub use client::{Client, ClientError};

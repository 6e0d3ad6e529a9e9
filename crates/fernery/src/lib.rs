//! A durable control plane for bounded work, in one binary.
//!
//! This library is the binary's inside, so that tests and other binaries can reach it; what a program embeds is
//! `fernery-engine`.

mod bench;
pub mod cli;
pub mod config;
mod doctor;
pub mod http;
mod peers;
pub mod pipeline;
pub mod sandbox;
pub mod transport;
pub mod worker;

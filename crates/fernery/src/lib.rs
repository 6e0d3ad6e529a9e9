//! A durable control plane for bounded work, in one binary.
//!
//! This library is the binary's inside, so that tests and other binaries can reach it; what a program embeds is
//! `fernery-engine`.

mod bench;
pub mod cli;
pub mod config;
mod demo;
pub mod diazotroph;
mod doctor;
mod git;
pub mod http;
mod init;
mod membrane;
mod mock_agent;
pub mod model;
pub mod notices;
mod outgoing;
mod peers;
pub mod pipeline;
mod profiles;
pub mod sandbox;
pub mod transport;
pub mod worker;

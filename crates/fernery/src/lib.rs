//! A durable control plane for bounded work, in one binary.
//!
//! This library is the binary's inside, so that tests and other binaries can reach it; what a program embeds is
//! `fernery-engine`.

mod bench;
mod block_on;
mod bulk_words;
mod candidate_words;
pub mod cli;
pub mod command_worker;
pub mod config;
mod demo;
mod doctor;
pub mod http;
mod init;
mod orientation;
pub mod outgoing;
pub mod redis;
mod serve;
mod spool;
mod ticket_words;
mod when;
pub mod workers;

//! A durable control plane for bounded work, in one binary.

pub mod config;

//! The way to the server: its URL, TLS, the pool, and what to do when a connection is lost.

pub(crate) mod pool;
pub(crate) mod retry;
mod tls;
pub(crate) mod url;

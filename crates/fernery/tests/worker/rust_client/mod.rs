//! The Rust client against the real server, with a proxy between them that loses and delays what it is told to.

mod first_page;
mod handlers;
mod leases;
mod producer;
mod proxy;
mod reports;
mod shutdown;
mod speed;
mod world;

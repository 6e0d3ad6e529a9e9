//! Redis Streams as transport: real servers, a real PostgreSQL, and a Redis of each test's own that loses what it holds.
//!
//! Invariants 3 to 8, 17 and 19 with messages in between.

#[path = "../support/campaign/mod.rs"]
mod campaign;
#[path = "../../../fernery-engine/tests/support/cluster.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod cluster;
#[path = "../../../fernery-engine/tests/support/fresh_database.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod fresh_database;
#[path = "../support/own_redis.rs"]
mod own_redis;
#[path = "../../../fernery-engine/tests/support/port.rs"]
mod port;
#[path = "../../../fernery-engine/tests/support/seed.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod seed;

mod backlog;
mod crowd;
mod deaths;
mod faults;
mod losses;
mod messages;
mod mixed;
mod own_client;
mod partitions;
mod postgres;
mod priority;
mod proxy;
mod rest;
mod restore;
mod signs;
mod tls;
mod world;

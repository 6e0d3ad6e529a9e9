//! The program as people run it: every command, the catalogues of bad calls, settings and storage, and what an operator meets
//! over the years.

#[path = "../support/campaign/mod.rs"]
mod campaign;
#[path = "../../../fernery-engine/tests/support/cluster.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod cluster;
#[path = "../../../fernery-engine/tests/support/fresh_database.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod fresh_database;
#[path = "../support/own_redis.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod own_redis;
#[path = "../../../fernery-engine/tests/support/port.rs"]
mod port;
#[path = "../support/program/mod.rs"]
mod program;

mod agents;
mod backup;
mod bench;
mod catalogue;
mod checks;
mod config_catalogue;
mod demo;
mod doctor;
mod doctor_postgres;
mod doctor_redis;
mod eighty_columns;
mod fence;
mod import;
mod inbox;
mod inert_text;
mod jobs;
mod path;
mod peers;
mod storage_catalogue;
mod tickets;
mod up;
mod upgrade;
mod upkeep;

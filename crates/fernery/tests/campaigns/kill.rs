//! `kill -9` of the server at random moments during a mixed load: nothing acknowledged is lost, nothing ends twice.
//!
//! Invariants 3 to 6, 9, 17 and 19, with real processes. The run prints what it did, and fails if that was too little to
//! prove anything.

use crate::campaign::Server;
use crate::campaign::load::{Load, judge};
use crate::fresh_database;
use crate::seed;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::ops::Range;
use std::time::Duration;
use tokio::time::sleep;

const KILLS: usize = 30;
const WORKERS: usize = 50;
const PRODUCERS: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn campaign_nothing_acknowledged_is_lost_when_the_server_is_killed_on_sqlite() {
    run(None, 100..500).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn campaign_nothing_acknowledged_is_lost_when_the_server_is_killed_on_postgres() {
    let database = fresh_database::fresh_database().await;
    // Its first connections take their time: a server that is killed before it did anything proves nothing.
    run(Some(&database.url()), 400..1_200).await;
}

async fn run(database: Option<&str>, life_ms: Range<u64>) {
    let seed = seed::seed();
    let mut rng = StdRng::seed_from_u64(seed);
    let arguments = ["--lease-ttl", "1s", "--heartbeat-interval", "300ms", "--reap-interval", "200ms"];
    let mut server = Server::start(database, &arguments).await;
    let load = Load::start(std::slice::from_ref(&server.target), seed, PRODUCERS, WORKERS);
    for _ in 0..KILLS {
        sleep(Duration::from_millis(rng.random_range(life_ms.clone()))).await;
        server.kill().await;
        server.restart().await;
    }
    let ledger = load.settle(&server.target).await;
    let (lost, stale) = judge(&server.target, &ledger).await;
    let jobs = ledger.enqueued.lock().expect("not poisoned").len();
    assert!(jobs >= 500 && stale >= 5 && lost >= 20, "too little happened to prove anything");
}

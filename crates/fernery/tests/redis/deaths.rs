//! A control plane dies at the worst moment: between Redis and the database.

use crate::world::{PATIENCE, World, claim};
use serde_json::json;

/// Kills one of three servers at this place, under a load of claims, and sees all jobs through.
async fn dies_at(place: &str) {
    let mut world = World::new(2).await;
    let mut doomed = world.another(&[], &[("FERNERY_FAILPOINT", place)]).await;
    let jobs = world.enqueue("s", 20).await;
    // Whatever makes it die: it claims, it relays, it reaps what it does not hear of.
    let ask = json!({"worker_id": "doomed", "streams": ["s"], "max_wait_ms": 100});
    let target = doomed.target.clone();
    let bother = async {
        loop {
            let _ = target.call(&target.worker, "POST", "/internal/worker/claim", &ask).await;
            let job = json!({"stream": "other", "payload": {}});
            let _ = target.call(&target.operator, "POST", "/v1/jobs", &job).await;
        }
    };
    tokio::select! {
        () = doomed.ended() => {}
        () = bother => {}
    }
    let mut left: std::collections::HashSet<String> = jobs.into_iter().collect();
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !left.is_empty() {
        assert!(tokio::time::Instant::now() < deadline, "{place}: {} jobs were forgotten", left.len());
        if let Some(held) = claim(world.target(), &["s"], 500).await {
            assert!(
                left.remove(held["job_id"].as_str().expect("an id")),
                "{place}: handed out twice: {held}"
            );
            crate::world::complete(world.target(), &held).await;
        }
    }
    world.drain(&["other"]).await;
    world.servers.truncate(2);
    world.is_at_rest(&["s", "other"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_reading_a_message_before_the_claim() {
    dies_at("claim-read@3").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_the_claim_before_the_reply() {
    dies_at("claim-committed@3").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_sending_before_the_outbox_forgets() {
    dies_at("relay-sent@2").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inside_the_reaper() {
    dies_at("reaped").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inside_the_reaper_before_its_commit() {
    dies_at("reaping").await;
}

//! Three control planes and nobody fails: no job is executed twice, and a rolling restart costs nothing.

use crate::campaign::Target;
use crate::campaign::load::{Load, judge};
use crate::seed::seed;
use crate::world::World;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;

/// Set `FERNERY_JOBS` for a longer run: a million take more than the five minutes after which a test is ended, so with
/// `cargo nextest run --profile long`.
fn jobs() -> usize {
    std::env::var("FERNERY_JOBS").ok().and_then(|n| n.parse().ok()).unwrap_or(50_000)
}

#[derive(Default)]
struct Executed {
    ids: Mutex<HashSet<String>>,
    doubles: AtomicUsize,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn campaign_three_control_planes_execute_every_job_once() {
    let jobs = jobs() / 1_000 * 1_000;
    // Long enough for a batch on a busy machine: a lease that runs out is another test's business.
    let world =
        World::with(3, &["--lease-ttl", "60s", "--heartbeat-interval", "20s", "--reap-interval", "5s"]).await;
    let executed = Arc::new(Executed::default());
    let mut workers = JoinSet::new();
    for n in 0..9 {
        let target = world.servers[n % 3].target.clone();
        workers.spawn(work(target, executed.clone(), jobs));
    }
    for n in 0..jobs / 1_000 {
        let batch: Vec<Value> = (0..1_000).map(|_| json!({"stream": "crowd", "payload": {}})).collect();
        let target = &world.servers[n % 3].target;
        let (status, answer) = target.insist(&target.operator, "POST", "/v1/jobs", &json!(batch)).await;
        assert_eq!(status, 201, "{answer}");
    }
    while let Some(done) = workers.join_next().await {
        done.expect("no worker panics");
    }
    let (read, stale) = (world.counted("read").await, world.counted("stale").await);
    println!("{jobs} jobs; {read} messages read, {stale} of them stale");
    assert_eq!(executed.doubles.load(Ordering::Relaxed), 0, "executed twice");
    assert_eq!(executed.ids.lock().expect("not poisoned").len(), jobs);
    assert!(read as usize >= jobs / 2, "the messages were hardly used: {read} of {jobs}");
    world.is_at_rest(&["crowd"]).await;
}

async fn work(target: Target, executed: Arc<Executed>, jobs: usize) {
    let claim = json!({"worker_id": "w", "streams": ["crowd"], "max": 100, "max_wait_ms": 200});
    while executed.ids.lock().expect("not poisoned").len() < jobs {
        let (status, answer) = target.insist(&target.worker, "POST", "/v1/worker/claim", &claim).await;
        assert_eq!(status, 200, "{answer}");
        let held = answer["jobs"].as_array().expect("jobs");
        if held.is_empty() {
            continue;
        }
        for job in held {
            let id = job["job_id"].as_str().expect("an id").to_string();
            if !executed.ids.lock().expect("not poisoned").insert(id) {
                executed.doubles.fetch_add(1, Ordering::Relaxed);
            }
        }
        let items: Vec<Value> = held
            .iter()
            .map(|job| {
                json!({"job_id": job["job_id"], "attempt_id": job["attempt_id"],
                       "lease_token": job["lease_token"], "result": null})
            })
            .collect();
        let report = json!({"worker_id": "w", "items": items});
        let (status, answer) = target.insist(&target.worker, "POST", "/v1/worker/complete", &report).await;
        assert_eq!(status, 200, "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn campaign_a_rolling_restart_loses_nothing() {
    let mut world = World::new(3).await;
    let targets: Vec<_> = world.servers.iter().map(|server| server.target.clone()).collect();
    let load = Load::start(&targets, seed(), 2, 12);
    for n in 0..3 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        world.servers[n].stop().await;
        world.servers[n].restart().await;
    }
    let ledger = load.settle(world.target()).await;
    judge(world.target(), &ledger).await;
    assert!(ledger.enqueued.lock().expect("not poisoned").len() >= 50, "too little happened");
    world.is_at_rest(&["a", "b"]).await;
}

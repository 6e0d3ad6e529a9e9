//! Control planes with Redis and without it on one database, and streams that nobody polls any more.

use crate::campaign::Target;
use crate::campaign::load::{Load, judge};
use crate::world::{PATIENCE, World, claim, complete, enqueue};
use serde_json::json;
use std::collections::HashSet;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// These jobs, each once, by claims at this server alone.
async fn drained_at(target: &Target, stream: &str, jobs: Vec<String>) {
    let deadline = Instant::now() + PATIENCE;
    let mut left: HashSet<String> = jobs.into_iter().collect();
    while !left.is_empty() {
        assert!(Instant::now() < deadline, "{stream}: {} jobs were forgotten", left.len());
        if let Some(held) = claim(target, &[stream], 500).await {
            let job = held["job_id"].as_str().expect("an id");
            assert!(left.remove(job), "{job} was handed out twice, or is nobody's");
            complete(target, &held).await;
        }
    }
    assert!(claim(target, &[stream], 0).await.is_none(), "something is handed out twice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_taken_in_with_redis_or_without_are_claimed_with_it_or_without_each_once() {
    let mut world = World::new(1).await;
    let without = world.another_without_redis().await;
    world.servers.push(without);
    let (with, without) = (&world.servers[0].target, &world.servers[1].target);
    for (stream, taken_in, claimed) in [
        ("with-with", with, with),
        ("with-without", with, without),
        ("without-with", without, with),
        ("without-without", without, without),
    ] {
        let jobs = enqueue(taken_in, stream, 30).await;
        drained_at(claimed, stream, jobs).await;
    }
    let load = Load::paced(&[with.clone(), without.clone()], 5, 2, 12, 40);
    let deadline = Instant::now() + PATIENCE;
    while load.completed() < 300 {
        assert!(Instant::now() < deadline, "only {} were completed", load.completed());
        sleep(Duration::from_millis(20)).await;
    }
    let ledger = load.settle(with).await;
    let (lost, stale) = judge(with, &ledger).await;
    println!("{lost} attempts lost, {stale} stale writes refused");
    assert!(lost >= 3, "too little happened to prove anything");
    world.is_at_rest(&["a", "b", "with-with", "with-without", "without-with", "without-without"]).await;
    world.is_at_rest_everywhere().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_nobody_polls_any_more_is_empty_once_its_jobs_have_ended() {
    let world = World::new(2).await;
    let target = world.target();
    let jobs = world.enqueue("left", 20).await;
    let mortal: Vec<_> =
        (0..5).map(|_| json!({"stream": "lost", "payload": {}, "max_attempts": 1})).collect();
    target.call(&target.operator, "POST", "/v1/jobs", &json!(mortal)).await.expect("an answer");
    world.holds("left", 20, 0).await;
    world.holds("lost", 5, 0).await;
    // Held by workers that are never heard of again.
    for _ in 0..5 {
        world.claim(&["lost"], 2_000).await.expect("a job");
    }
    for _ in 0..5 {
        world.claim(&["left"], 2_000).await.expect("a job");
    }
    for job in &jobs {
        let cancel = format!("/v1/jobs/{job}/cancel");
        let (status, answer) =
            target.insist(&target.operator, "POST", &cancel, &json!({"force": true})).await;
        assert_eq!(status, 200, "{answer}");
    }
    world.is_at_rest(&["left", "lost"]).await;
    world.is_at_rest_everywhere().await;
    let buried: usize = world.redis.ask(&["XLEN", "jobs:dlq"]).await;
    assert_eq!(buried, 5);
}

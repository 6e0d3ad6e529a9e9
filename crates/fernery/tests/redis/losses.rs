//! Redis loses what it holds, or goes away: every job is claimable again within ten seconds, and none twice.

use crate::world::{PATIENCE, World};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

async fn world_with_jobs() -> (World, Vec<String>) {
    let world = World::new(2).await;
    let jobs = world.enqueue("s", 20).await;
    world.holds("s", 20, 0).await;
    (world, jobs)
}

async fn all_come_and_nothing_stays(world: &World, jobs: &[String]) {
    world.drains_all(&["s"], jobs).await;
    assert_eq!(world.drain(&["s"]).await, [""; 0]);
    world.is_at_rest(&["s"]).await;
    let more = world.enqueue("s", 1).await;
    // It may be told of twice: the loss is still being made good.
    world.holds_some("s").await;
    let held = world.claim(&["s"], 2_000).await.expect("a job");
    assert_eq!(held["job_id"], json!(more[0]));
    let entries: Vec<(String, Vec<String>)> = world.redis.ask(&["XRANGE", "s", "-", "+"]).await;
    assert!(entries.iter().any(|(id, _)| held["message_id"] == json!(id)), "claimed by no message: {held}");
    crate::world::complete(world.target(), &held).await;
    world.is_at_rest(&["s"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_is_flushed() {
    let (world, jobs) = world_with_jobs().await;
    let _: String = world.redis.ask(&["FLUSHALL"]).await;
    all_come_and_nothing_stays(&world, &jobs).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_nobody_polls_is_told_of_again_after_a_flush() {
    let (world, jobs) = world_with_jobs().await;
    let _: String = world.redis.ask(&["FLUSHALL"]).await;
    world.holds("s", 20, 0).await;
    all_come_and_nothing_stays(&world, &jobs).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_is_deleted() {
    let (world, jobs) = world_with_jobs().await;
    let _: u32 = world.redis.ask(&["DEL", "s"]).await;
    all_come_and_nothing_stays(&world, &jobs).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_group_is_destroyed_while_jobs_run() {
    let (world, jobs) = world_with_jobs().await;
    let held = world.claim(&["s"], 2_000).await.expect("a job");
    let _: u32 = world.redis.ask(&["XGROUP", "DESTROY", "s", "workers"]).await;
    crate::world::complete(world.target(), &held).await;
    all_come_and_nothing_stays(&world, &jobs[1..]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_killed_and_comes_back_empty() {
    let (mut world, jobs) = world_with_jobs().await;
    world.redis.kill().await;
    world.redis.start_again().await;
    all_come_and_nothing_stays(&world, &jobs).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_comes_back_with_an_older_copy() {
    let world_and_jobs = world_with_jobs().await;
    let (mut world, mut jobs) = world_and_jobs;
    world.redis.save().await;
    jobs.extend(world.enqueue("s", 10).await);
    world.holds("s", 30, 0).await;
    // Those that it knows are done when it comes back, and those that it does not know still wait.
    let done: Vec<String> = jobs.drain(..20).collect();
    world.drains_all(&["s"], &[]).await;
    for job in &done {
        let held = world.claim(&["s"], 2_000).await.expect("a job");
        assert_eq!(held["job_id"], json!(job));
        crate::world::complete(world.target(), &held).await;
    }
    world.redis.kill().await;
    world.redis.start_again().await;
    all_come_and_nothing_stays(&world, &jobs).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_it_is_away_jobs_flow_and_the_server_says_that_it_is_degraded() {
    let mut world = World::new(1).await;
    world.redis.kill().await;
    let jobs = world.enqueue("s", 5).await;
    world.drains_all(&["s"], &jobs).await;
    assert_eq!(status(&world).await, "degraded");
    world.redis.start_again().await;
    let deadline = Instant::now() + PATIENCE;
    while status(&world).await != "ok" {
        assert!(Instant::now() < deadline, "still degraded");
        sleep(Duration::from_millis(50)).await;
    }
    world.is_at_rest(&["s"]).await;
}

async fn status(world: &World) -> String {
    let target = world.target();
    let (status, body) =
        target.call(&target.operator, "GET", "/readyz", &Value::Null).await.expect("an answer");
    assert_eq!(status, 200, "{body}");
    body["status"].as_str().expect("a status").to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_takes_no_more_or_has_something_else_under_a_streams_name() {
    let world = World::new(1).await;
    let _: String = world.redis.ask(&["SET", "taken", "by somebody"]).await;
    let taken = world.enqueue("taken", 3).await;
    world.drains_all(&["taken"], &taken).await;
    let _: String = world.redis.ask(&["CONFIG", "SET", "maxmemory", "1"]).await;
    let jobs = world.enqueue("s", 3).await;
    world.drains_all(&["s"], &jobs).await;
    let _: String = world.redis.ask(&["CONFIG", "SET", "maxmemory", "0"]).await;
    world.is_at_rest(&["s"]).await;
}

//! A job in an earlier stream wins over one in a later stream, also where only the later one has a message.

use crate::campaign::Target;
use crate::world::{World, claim, complete, enqueue};
use serde_json::{Value, json};

async fn operate(target: &Target, path: &str) {
    let (status, answer) =
        target.call(&target.operator, "POST", path, &Value::Null).await.expect("an answer");
    assert_eq!(status, 200, "{answer}");
}

/// A world whose stream `low` has messages about its jobs.
async fn with_low(jobs: usize) -> (World, Vec<String>) {
    let world = World::new(1).await;
    let low = world.enqueue("low", jobs).await;
    world.holds("low", jobs, 0).await;
    (world, low)
}

/// Deletes the messages of a stream, and none of its other traces.
async fn loses_messages(world: &World, stream: &str) {
    let entries: Vec<(String, Vec<String>)> = world.redis.ask(&["XRANGE", stream, "-", "+"]).await;
    for (id, _) in entries {
        let gone: u32 = world.redis.ask(&["XDEL", stream, &id]).await;
        assert_eq!(gone, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_whose_message_is_lost_wins_over_a_later_streams_message() {
    let (world, low) = with_low(2).await;
    let high = world.enqueue("high", 1).await;
    world.holds("high", 1, 0).await;
    loses_messages(&world, "high").await;
    let held = world.claim(&["high", "low"], 0).await.expect("a job");
    assert_eq!(held["job_id"], json!(high[0]));
    complete(world.target(), &held).await;
    world.drains_all(&["high", "low"], &low).await;
    world.is_at_rest(&["high", "low"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_from_a_server_without_redis_or_of_a_resumed_stream_come_first() {
    let (world, low) = with_low(2).await;
    let without = world.another_without_redis().await;
    let high = enqueue(&without.target, "high", 1).await;
    let held = world.claim(&["high", "low"], 0).await.expect("a job");
    assert_eq!(held["job_id"], json!(high[0]));
    complete(world.target(), &held).await;

    let high = enqueue(&without.target, "high", 1).await;
    operate(world.target(), "/v1/streams/high/pause").await;
    let held = world.claim(&["high", "low"], 0).await.expect("a job");
    // Which of the two is open: messages are hints, and no order within a stream is promised with them.
    let (claimed, rest): (Vec<_>, Vec<_>) = low.into_iter().partition(|id| held["job_id"] == json!(id));
    assert_eq!(claimed.len(), 1, "nothing is claimed from a paused stream: {held}");
    complete(world.target(), &held).await;
    operate(world.target(), "/v1/streams/high/resume").await;
    let held = world.claim(&["high", "low"], 0).await.expect("a job");
    assert_eq!(held["job_id"], json!(high[0]));
    complete(world.target(), &held).await;
    world.drains_all(&["high", "low"], &rest).await;
    world.is_at_rest(&["low"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_array_is_filled_in_the_order_of_the_streams_with_messages_and_without() {
    let (world, low) = with_low(5).await;
    let mut high = world.enqueue("high", 2).await;
    world.holds("high", 2, 0).await;
    loses_messages(&world, "high").await;
    high.extend(world.enqueue("high", 1).await);
    world.holds("high", 1, 0).await;
    let target = world.target();
    let ask = json!({"worker_id": "w", "streams": ["none", "high", "low"], "max": 5, "max_wait_ms": 0});
    let (status, answer) =
        target.call(&target.worker, "POST", "/v1/worker/claim", &ask).await.expect("an answer");
    assert_eq!(status, 200, "{answer}");
    let held = answer["jobs"].as_array().expect("jobs");
    let ids: Vec<&str> = held.iter().map(|job| job["job_id"].as_str().expect("an id")).collect();
    assert_eq!(ids, [&high[0], &high[1], &high[2], &low[0], &low[1]]);
    for job in held {
        complete(target, job).await;
    }
    while let Some(held) = claim(target, &["high", "low"], 0).await {
        complete(target, &held).await;
    }
    world.is_at_rest(&["high", "low"]).await;
}

//! What a message is, when it goes, and what becomes of one that is not ours.

use crate::world::{World, complete, report};
use serde_json::json;
use std::time::Duration;
use tokio::time::timeout;

type Entries = Vec<(String, Vec<String>)>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_names_its_message_which_goes_only_with_the_end() {
    let world = World::new(1).await;
    let jobs = world.enqueue("s", 2).await;
    world.holds("s", 2, 0).await;
    let held = world.claim(&["s"], 2_000).await.expect("a job");
    let entries: Entries = world.redis.ask(&["XRANGE", "s", "-", "+"]).await;
    assert_eq!(held["message_id"], json!(entries[0].0));
    assert_eq!(entries[0].1[..2], ["job_id".to_string(), jobs[0].clone()]);
    assert_eq!(entries[0].1[2], "enqueue_id");
    world.holds("s", 2, 1).await;
    complete(world.target(), &held).await;
    world.holds("s", 1, 0).await;
    world.drains_all(&["s"], &jobs[1..]).await;
    world.is_at_rest(&["s"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_requeue_is_a_new_message_and_a_buried_job_is_told_of() {
    let world = World::new(1).await;
    let target = world.target();
    let job = json!({"stream": "s", "payload": {}, "max_attempts": 1});
    target.call(&target.operator, "POST", "/v1/jobs", &job).await.expect("an answer");
    world.holds("s", 1, 0).await;
    let first = world.claim(&["s"], 2_000).await.expect("a job");
    let entries: Entries = world.redis.ask(&["XRANGE", "s", "-", "+"]).await;
    let proof = json!({"job_id": first["job_id"], "attempt_id": first["attempt_id"], "lease_token": first["lease_token"]});
    let release = json!({"worker_id": "w", "items": [proof]});
    let (status, answer) =
        target.call(&target.worker, "POST", "/v1/worker/release", &release).await.expect("an answer");
    assert_eq!(status, 200, "{answer}");
    world.holds("s", 1, 0).await;
    let second = world.claim(&["s"], 2_000).await.expect("the job again");
    assert_eq!(first["job_id"], second["job_id"]);
    let again: Entries = world.redis.ask(&["XRANGE", "s", "-", "+"]).await;
    assert_eq!(again.len(), 1, "the first message went with the release");
    assert_eq!(json!(again[0].0), second["message_id"]);
    assert_ne!(entries[0].1[3], again[0].1[3], "another enqueue has another name");
    let mut failure = report(&second);
    failure["error"] = json!({"code": "x", "message": "x", "retryable": false});
    let (_, answer) =
        target.call(&target.worker, "POST", "/internal/worker/fail", &failure).await.expect("an answer");
    assert_eq!(answer["dlq"], json!(true), "{answer}");
    world.is_at_rest(&["s"]).await;
    let buried: Entries = world.redis.ask(&["XRANGE", "jobs:dlq", "-", "+"]).await;
    assert_eq!(json!(buried[0].1[1]), second["job_id"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn duplicate_forged_and_malformed_messages_are_counted_and_never_delivered() {
    let world = World::new(2).await;
    let jobs = world.enqueue("s", 5).await;
    world.holds("s", 5, 0).await;
    let entries: Entries = world.redis.ask(&["XRANGE", "s", "-", "+"]).await;
    for (_, fields) in entries.iter().rev() {
        for _ in 0..4 {
            let _: String =
                world.redis.ask(&["XADD", "s", "*", "job_id", &fields[1], "enqueue_id", &fields[3]]).await;
        }
        let _: String =
            world.redis.ask(&["XADD", "s", "*", "job_id", &fields[1], "enqueue_id", "1-99"]).await;
    }
    let nobody = "019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f";
    for fields in [
        &["job_id", nobody, "enqueue_id", "1-0"][..],
        &["job_id", "no id", "enqueue_id", "1-0"],
        &["enqueue_id", "1-0"],
        &["job_id", nobody, "enqueue_id", "\u{0}"],
        &["something", "else"],
    ] {
        let command = [&["XADD", "s", "*"], fields].concat();
        let _: String = world.redis.ask(&command).await;
    }
    let huge = "x".repeat(1 << 20);
    let _: String = world.redis.ask(&["XADD", "s", "*", "job_id", &huge]).await;
    // Far in the future: no other message can come after it, so jobs come by the database from here on.
    let _: String = world.redis.ask(&["XADD", "s", "18446744073709551615-1", "job_id", nobody]).await;
    world.drains_all(&["s"], &jobs).await;
    assert_eq!(world.drain(&["s"]).await, [""; 0]);
    world.is_at_rest(&["s"]).await;
    assert_eq!(world.counted("malformed").await, 6);
    assert_eq!(world.counted("unknown").await, 1);
    assert!(world.counted("stale").await >= 25);
    let more = world.enqueue("s", 3).await;
    world.drains_all(&["s"], &more).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_earlier_stream_wins_and_an_empty_one_delays_nobody() {
    let world = World::new(1).await;
    let (second, first) = (world.enqueue("second", 2).await, world.enqueue("first", 1).await);
    world.holds("second", 2, 0).await;
    world.holds("first", 1, 0).await;
    let held = world.claim(&["first", "second"], 0).await.expect("a job");
    assert_eq!(held["job_id"], json!(first[0]));
    world.holds("second", 2, 0).await;
    let (read, started) = (world.counted("read").await, fernery_engine::door::stop_watch());
    let held = world.claim(&["first", "second"], 10_000).await.expect("a job");
    assert!(started.elapsed() < Duration::from_secs(8), "an empty stream was waited for");
    // A claim that stays at the empty stream gets its job too, from the database after a second or more, but reads no message.
    assert_eq!(world.counted("read").await, read + 1, "it did not come by its message");
    assert_eq!(held["job_id"], json!(second[0]));
    world.holds("second", 2, 1).await;
}

/// No message tells of an expired lease: neither the claim that waits nor the one that has messages to go by misses it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_lease_of_one_server_goes_to_whoever_asks_at_another() {
    let lease = ["--lease-ttl", "4s", "--heartbeat-interval", "1s", "--reap-interval", "4s"];
    let world = World::with(2, &lease).await;
    let other = &world.servers[1].target;
    let jobs = world.enqueue("first", 1).await;
    let since = fernery_engine::door::stop_watch();
    let held = world.claim(&["first"], 2_000).await.expect("a job");
    let taken = crate::world::claim(other, &["first"], 10_000).await.expect("it comes back");
    let took = since.elapsed();
    assert!(took >= Duration::from_secs(4) && took < Duration::from_secs(7), "after {took:?}");
    assert_eq!((&taken["job_id"], &taken["attempt_no"]), (&held["job_id"], &json!(2)));
    let second = world.enqueue("second", 2).await;
    world.holds("second", 2, 0).await;
    tokio::time::sleep(Duration::from_millis(4_100)).await;
    let again = world.claim(&["first", "second"], 0).await.expect("a job");
    assert_eq!(
        (&again["job_id"], &again["attempt_no"]),
        (&json!(jobs[0]), &json!(3)),
        "the earlier stream wins"
    );
    complete(world.target(), &again).await;
    world.drains_all(&["first", "second"], &second).await;
    world.is_at_rest(&["first", "second"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_waits_at_one_server_gets_the_job_that_another_takes_in() {
    let world = World::new(2).await;
    let target = world.servers[1].target.clone();
    let waiting = tokio::spawn(async move { crate::world::claim(&target, &["s"], 20_000).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let jobs = world.enqueue("s", 1).await;
    let held = timeout(Duration::from_secs(15), waiting)
        .await
        .expect("before it has waited for all its time")
        .expect("no panic")
        .expect("a job");
    assert_eq!(held["job_id"], json!(jobs[0]));
    world.holds("s", 1, 1).await;
    complete(world.target(), &held).await;
    world.is_at_rest(&["s"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_acknowledges_itself_is_left_to_it_and_swept_up_after() {
    let world = World::with(1, &["--transport-ack", "worker"]).await;
    let jobs = world.enqueue("s", 2).await;
    world.holds("s", 2, 0).await;
    let held = world.claim(&["s"], 2_000).await.expect("a job");
    complete(world.target(), &held).await;
    let message = held["message_id"].as_str().expect("an id");
    let acknowledged: u32 = world.redis.ask(&["XACK", "s", "workers", message]).await;
    assert_eq!(acknowledged, 1, "the server had left it to the worker");
    world.drains_all(&["s"], &jobs[1..]).await;
    // Nobody acknowledges the second one.
    world.is_at_rest(&["s"]).await;
}

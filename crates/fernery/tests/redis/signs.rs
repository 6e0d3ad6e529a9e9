//! What cannot be sent is seen and said, and what is told of again is told of once.

use crate::own_redis::OwnRedis;
use crate::world::{PATIENCE, World, enqueue};
use serde_json::Value;
use std::time::Duration;
use tokio::time::{Instant, sleep};

async fn becomes(world: &World, wanted: &str) {
    let target = world.target();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (status, body) =
            target.call(&target.operator, "GET", "/readyz", &Value::Null).await.expect("an answer");
        assert_eq!(status, 200, "{body}");
        if body["status"] == wanted {
            break;
        }
        assert!(Instant::now() < deadline, "it is {}, not {wanted}", body["status"]);
        sleep(Duration::from_millis(50)).await;
    }
    let up = if wanted == "ok" { "\nfernery_transport_up 1\n" } else { "\nfernery_transport_up 0\n" };
    assert!(target.text("/metrics").await.contains(up), "the gauge says otherwise");
}

/// Says `degraded` from the first command to the second, all the while, and jobs flow.
async fn is_degraded_between(world: &World, first: &[&str], second: &[&str]) {
    becomes(world, "ok").await;
    let _: redis::Value = world.redis.ask(first).await;
    // Also while there is nothing to send.
    becomes(world, "degraded").await;
    let jobs = world.enqueue("s", 3).await;
    world.drains_all(&["s"], &jobs).await;
    for _ in 0..20 {
        becomes(world, "degraded").await;
        sleep(Duration::from_millis(100)).await;
    }
    assert!(world.counted("failures").await > 0);
    let _: redis::Value = world.redis.ask(second).await;
    becomes(world, "ok").await;
    let jobs = world.enqueue("s", 1).await;
    world.holds_some("s").await;
    world.drains_all(&["s"], &jobs).await;
    world.is_at_rest(&["s"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_is_full_is_degraded() {
    let world = World::new(1).await;
    let (full, not) = (["CONFIG", "SET", "maxmemory", "1"], ["CONFIG", "SET", "maxmemory", "0"]);
    is_degraded_between(&world, &full, &not).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_became_a_replica_is_degraded() {
    let world = World::new(1).await;
    is_degraded_between(&world, &["REPLICAOF", "127.0.0.1", "1"], &["REPLICAOF", "NO", "ONE"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loss_is_told_of_again_once_by_all_servers_together() {
    let world = World::new(3).await;
    let mut jobs = world.enqueue("s", 1_500).await;
    jobs.extend(enqueue(&world.servers[1].target, "s", 1_500).await);
    world.holds("s", 3_000, 0).await;
    let _: String = world.redis.ask(&["FLUSHALL"]).await;
    world.holds("s", 3_000, 0).await;
    World::is_looked_at(&world.redis, 6).await;
    assert_eq!(world.redis.holds("s").await, (3_000, 0));
    assert_eq!(world.counted("sent").await, 6_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_outage_with_a_backlog_whose_messages_are_intact_doubles_nothing() {
    let mut world = World::new(1).await;
    world.enqueue("s", 1_500).await;
    world.enqueue("s", 1_500).await;
    world.holds("s", 3_000, 0).await;
    world.redis.save().await;
    world.redis.kill().await;
    world.enqueue("s", 5).await;
    let client = world.database.client().await;
    let many = "INSERT INTO fernery.outbox (stream, job_ids, places, versions)
        SELECT 's', ARRAY[gen_random_uuid()], ARRAY[nextval('fernery.places')], ARRAY[0::bigint]
        FROM generate_series(1, 35000)";
    client.execute(many, &[]).await.expect("rows");
    let deadline = Instant::now() + PATIENCE;
    let rows = "SELECT count(*) FROM fernery.outbox";
    while client.query_one(rows, &[]).await.expect("a count").get::<_, i64>(0) > 20_000 {
        assert!(Instant::now() < deadline, "it is as long as ever");
        sleep(Duration::from_millis(50)).await;
    }
    world.redis.start_again().await;
    let owed = "SELECT (SELECT count(*) FROM fernery.outbox) + (SELECT count(*) FROM fernery.reemissions)";
    let deadline = Instant::now() + PATIENCE;
    while client.query_one(owed, &[]).await.expect("a count").get::<_, i64>(0) > 0 {
        assert!(Instant::now() < deadline, "messages are owed");
        sleep(Duration::from_millis(50)).await;
    }
    let (messages, _) = world.redis.holds("s").await;
    assert!((3_005..3_100).contains(&messages), "{messages} messages for 3005 jobs");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_with_two_redis_say_so_and_do_not_tell_of_each_others_messages_for_ever() {
    let mut world = World::new(1).await;
    let theirs = OwnRedis::start_with(":p%40ss@", 1, vec!["--requirepass".into(), "p@ss".into()]).await;
    let other = world.another_by(&world.database.url(), &theirs.url(), &[], &[]).await;
    world.servers.push(other);
    let target = world.target();
    let (_, answer) =
        target.call(&target.operator, "GET", "/v1/processes", &Value::Null).await.expect("an answer");
    let place = |redis: &OwnRedis| {
        let url = redis.url();
        let place = url.rsplit(['@', '/']).take(2).collect::<Vec<_>>();
        format!("redis {}/{} workers control-plane", place[1], place[0])
    };
    let said: Vec<&str> = answer["processes"]
        .as_array()
        .expect("processes")
        .iter()
        .map(|process| process["transport"].as_str().expect("a text"))
        .collect();
    assert_eq!(said, [place(&world.redis), place(&theirs)]);
    let mut jobs = Vec::new();
    for n in 0..6 {
        jobs.extend(enqueue(&world.servers[n % 2].target, "s", 5).await);
        sleep(Duration::from_millis(300)).await;
    }
    let both_are_looked_at = async || {
        tokio::join!(World::is_looked_at(&world.redis, 2), World::is_looked_at(&theirs, 2));
    };
    both_are_looked_at().await;
    let sent = world.counted("sent").await;
    both_are_looked_at().await;
    assert_eq!(world.counted("sent").await, sent, "again and again");
    assert!(sent <= 90, "{sent} messages for 30 jobs");
    world.drains_all(&["s"], &jobs).await;
}

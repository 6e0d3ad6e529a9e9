//! At rest nothing stays, whatever others did to the streams meanwhile.

use crate::world::{PATIENCE, World, complete};
use redis::Value;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::{Instant, sleep};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_from_the_future_is_taken_away() {
    let world = World::new(1).await;
    let jobs = world.enqueue("s", 2).await;
    world.drains_all(&["s"], &jobs).await;
    let nobody = "019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f";
    let forged = ["XADD", "s", "200000000000000-0", "job_id", nobody, "enqueue_id", "1-0"];
    let _: String = world.redis.ask(&forged).await;
    world.is_at_rest(&["s"]).await;
    assert_eq!(world.counted("unknown").await, 1);
    // Redis counts on from there.
    let jobs = world.enqueue("s", 2).await;
    world.holds("s", 2, 0).await;
    world.drains_all(&["s"], &jobs).await;
    world.is_at_rest(&["s"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleted_messages_do_not_stay_pending() {
    let world = World::new(1).await;
    let jobs = world.enqueue("s", 2).await;
    world.holds("s", 2, 0).await;
    let read = ["XREADGROUP", "GROUP", "workers", "theirs", "COUNT", "2", "STREAMS", "s", ">"];
    let _: Value = world.redis.ask(&read).await;
    world.holds("s", 2, 2).await;
    let _: u32 = world.redis.ask(&["XTRIM", "s", "MAXLEN", "0"]).await;
    world.drains_all(&["s"], &jobs).await;
    world.is_at_rest(&["s"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_that_is_destroyed_is_made_anew_although_nobody_polls() {
    let world = World::new(1).await;
    let jobs = world.enqueue("s", 5).await;
    world.holds("s", 5, 0).await;
    let _: u32 = world.redis.ask(&["XGROUP", "DESTROY", "s", "workers"]).await;
    let deadline = Instant::now() + PATIENCE;
    while world.counted("set_up_anew").await == 0 {
        assert!(Instant::now() < deadline, "nobody finds out");
        sleep(Duration::from_millis(50)).await;
    }
    let groups: Vec<Value> = world.redis.ask(&["XINFO", "GROUPS", "s"]).await;
    assert_eq!(groups.len(), 1);
    world.drains_all(&["s"], &jobs).await;
    world.is_at_rest(&["s"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_died_are_forgotten() {
    let lease = ["--lease-ttl", "1s", "--heartbeat-interval", "300ms", "--reap-interval", "300ms"];
    let mut world = World::with(2, &lease).await;
    for n in 0..2 {
        world.enqueue("s", 1).await;
        world.holds("s", 1, 0).await;
        let target = &world.servers[n].target;
        let held = crate::world::claim(target, &["s"], 2_000).await.expect("a job");
        complete(target, &held).await;
        world.is_at_rest(&["s"]).await;
    }
    let readers = async || -> Vec<HashMap<String, Value>> {
        world.redis.ask(&["XINFO", "CONSUMERS", "s", "workers"]).await
    };
    assert_eq!(readers().await.len(), 2);
    for server in &mut world.servers {
        server.kill().await;
    }
    // Only the first round of a server looks for the dead: by then they have been silent for five leases.
    let is_gone = |reader: &HashMap<String, Value>| matches!(reader["idle"], Value::Int(ms) if ms > 5_000);
    let deadline = Instant::now() + PATIENCE;
    while !readers().await.iter().all(is_gone) {
        assert!(Instant::now() < deadline, "somebody still reads for them");
        sleep(Duration::from_millis(50)).await;
    }
    let _heir = world.another(&lease, &[]).await;
    let deadline = Instant::now() + PATIENCE;
    while !readers().await.is_empty() {
        assert!(Instant::now() < deadline, "they are still known");
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_stream_is_forgotten_although_its_last_message_was_somebody_elses() {
    let mut world = World::new(1).await;
    let jobs = world.enqueue("s", 1).await;
    world.drains_all(&["s"], &jobs).await;
    world.is_at_rest(&["s"]).await;
    world.servers[0].stop().await;
    let _: Value = world.redis.ask(&["EVAL", LONG_AGO, "1", "s"]).await;
    let client = world.database.client().await;
    client.execute("UPDATE fernery.relayed SET newest_ms = 1000, newest_n = 1", &[]).await.expect("rows");
    world.servers[0] = world.another(&[], &[]).await;
    let deadline = Instant::now() + PATIENCE;
    while world.redis.ask::<u32>(&["EXISTS", "s"]).await == 1 {
        assert!(Instant::now() < deadline, "it is still there");
        sleep(Duration::from_millis(50)).await;
    }
}

/// An empty stream that had a message after ours.
const LONG_AGO: &str = "
redis.call('DEL', KEYS[1])
redis.call('XGROUP', 'CREATE', KEYS[1], 'workers', '0', 'MKSTREAM')
redis.call('XADD', KEYS[1], '2000-1', 'a', 'b')
return redis.call('XDEL', KEYS[1], '2000-1')";

//! Three control planes, many workers, and Redis and servers that fail all the time: nothing acknowledged is lost, nothing
//! ends twice, and at the end nothing is left over. The run prints what it did, and fails if that was too little.

use crate::campaign::load::{Load, judge};
use crate::seed::seed;
use crate::world::World;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::sleep;

const FAULTS: usize = 24;
/// Kinds of faults: each in its turn, three times.
const KINDS: usize = 8;
const WORKERS: usize = 30;
const PRODUCERS: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn campaign_three_control_planes_see_every_job_through_whatever_fails() {
    let seed = seed();
    let mut rng = StdRng::seed_from_u64(seed);
    let mut world = World::new(3).await;
    let targets: Vec<_> = world.servers.iter().map(|server| server.target.clone()).collect();
    let load = Load::start(&targets, seed, PRODUCERS, WORKERS);
    let mut faults: BTreeMap<&str, usize> = BTreeMap::new();
    for n in 0..FAULTS {
        sleep(Duration::from_millis(rng.random_range(300..900))).await;
        let fault = cause(n % KINDS, &mut world, &mut rng).await;
        *faults.entry(fault).or_default() += 1;
    }
    let ledger = load.settle(world.target()).await;
    let (lost, stale) = judge(world.target(), &ledger).await;
    world.is_at_rest(&["a", "b"]).await;
    let jobs = ledger.enqueued.lock().expect("not poisoned").len();
    let (read, anew) = (world.counted("read").await, world.counted("set_up_anew").await);
    println!(
        "faults {faults:?}; since the last restarts {read} messages were read, {anew} groups set up anew"
    );
    assert!(
        faults.len() == KINDS && jobs >= 300 && lost >= 10 && stale >= 3 && read >= 20,
        "too little happened to prove anything"
    );
}

async fn cause(kind: usize, world: &mut World, rng: &mut StdRng) -> &'static str {
    let stream = if rng.random_bool(0.5) { "a" } else { "b" };
    match kind {
        0 => {
            let _: String = world.redis.ask(&["FLUSHALL"]).await;
            "flushed"
        }
        1 => {
            let _: u32 = world.redis.ask(&["DEL", stream]).await;
            "stream deleted"
        }
        2 => {
            let _: redis::Value = world.redis.ask(&["EVAL", DESTROY, "1", stream]).await;
            "group destroyed"
        }
        3 => {
            world.redis.kill().await;
            sleep(Duration::from_millis(rng.random_range(0..1_500))).await;
            world.redis.start_again().await;
            "Redis killed"
        }
        4 => {
            let _: String = world.redis.ask(&["CLIENT", "PAUSE", "1500", "ALL"]).await;
            sleep(Duration::from_millis(1_500)).await;
            "Redis paused"
        }
        5 => {
            let _: redis::Value = world.redis.ask(&["EVAL", FIVEFOLD, "1", stream]).await;
            "messages five times"
        }
        6 => {
            let _: String = world.redis.ask(&["CONFIG", "SET", "maxmemory", "1"]).await;
            sleep(Duration::from_millis(1_500)).await;
            let _: String = world.redis.ask(&["CONFIG", "SET", "maxmemory", "0"]).await;
            "Redis out of memory"
        }
        _ => {
            let n = rng.random_range(0..world.servers.len());
            world.servers[n].kill().await;
            world.servers[n].restart().await;
            "control plane killed"
        }
    }
}

const DESTROY: &str = "return redis.pcall('XGROUP', 'DESTROY', KEYS[1], 'workers')";

/// Every message four times more, the newest first.
const FIVEFOLD: &str = "
for _, entry in ipairs(redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 200)) do
  for _ = 1, 4 do redis.call('XADD', KEYS[1], '*', unpack(entry[2])) end
end
return 1";

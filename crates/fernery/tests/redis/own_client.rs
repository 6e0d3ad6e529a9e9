//! Workers that were written for the contract alone and have a Redis client of their own: they acknowledge once they are
//! told `ack: true`, whoever else does.

use crate::campaign::Target;
use crate::world::{PATIENCE, World, report};
use redis::aio::MultiplexedConnection;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

const JOBS: usize = 120;
/// Jobs whose messages are there before anybody claims, so that claims go by messages however slow the relay is. The
/// others come while workers claim.
const STANDING: usize = JOBS / 2;
/// The most messages that the reading worker takes from the servers, whose jobs are then claimed without a message.
const READ_MAX: usize = STANDING / 6;

#[derive(Default)]
struct Done {
    jobs: Mutex<HashSet<String>>,
    /// Messages that were in hand until a worker acknowledged them.
    acknowledged: AtomicUsize,
    /// Messages that a worker read in the servers' group.
    read: AtomicUsize,
}

struct Worker {
    target: Target,
    redis: MultiplexedConnection,
    name: String,
    /// It reads in the servers' group as well, which it should not.
    reads: bool,
    done: Arc<Done>,
}

impl Worker {
    async fn work(mut self) {
        while self.done.jobs.lock().expect("not poisoned").len() < JOBS {
            if self.reads && self.done.read.load(Ordering::Relaxed) < READ_MAX {
                self.read().await;
            }
            let ask = json!({"worker_id": self.name, "streams": ["own"], "max_wait_ms": 200});
            let (status, held) =
                self.target.insist(&self.target.worker, "POST", "/internal/worker/claim", &ask).await;
            assert_eq!(status, 200, "{held}");
            if held["claimed"] == json!(true) {
                self.finish(&held).await;
            }
        }
    }

    async fn read(&mut self) {
        let mut command = redis::cmd("XREADGROUP");
        command.arg("GROUP").arg("workers").arg(&self.name).arg("COUNT").arg(1);
        command.arg("STREAMS").arg("own").arg(">");
        let got: redis::Value = command.query_async(&mut self.redis).await.expect("the stream has its group");
        if matches!(got, redis::Value::Array(_)) {
            self.done.read.fetch_add(1, Ordering::Relaxed);
        }
    }

    async fn finish(&mut self, held: &Value) {
        let mut report = report(held);
        report["result"] = json!({"by": self.name});
        let (status, answer) =
            self.target.insist(&self.target.worker, "POST", "/internal/worker/complete", &report).await;
        assert_eq!((status, &answer["ack"]), (200, &json!(true)), "{answer}");
        let job = held["job_id"].as_str().expect("an id").to_string();
        assert!(self.done.jobs.lock().expect("not poisoned").insert(job), "handed out twice: {held}");
        let message = held["message_id"].as_str().expect("an id");
        let acknowledged: usize = redis::cmd("XACK")
            .arg(&["own", "workers", message])
            .query_async(&mut self.redis)
            .await
            .expect("acknowledged");
        self.done.acknowledged.fetch_add(acknowledged, Ordering::Relaxed);
    }
}

async fn workers_with_a_client_of_their_own(ack: &str) -> usize {
    let world = World::with(3, &["--transport-ack", ack]).await;
    let client = redis::Client::open(world.redis.url()).expect("a URL");
    let done = Arc::new(Done::default());
    world.enqueue("own", STANDING).await;
    world.holds("own", STANDING, 0).await;
    let mut workers = JoinSet::new();
    for n in 0..6 {
        let redis = client.get_multiplexed_async_connection().await.expect("Redis answers");
        let target = world.servers[n % 3].target.clone();
        let mut worker =
            Worker { target, redis, name: format!("own-{n}"), reads: n == 0, done: done.clone() };
        if worker.reads {
            worker.read().await;
        }
        workers.spawn(worker.work());
    }
    for _ in 0..(JOBS - STANDING) / 10 {
        world.enqueue("own", 10).await;
        sleep(Duration::from_millis(30)).await;
    }
    let deadline = Instant::now() + PATIENCE;
    while !workers.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        let ended = tokio::time::timeout(left, workers.join_next()).await;
        let jobs = done.jobs.lock().expect("not poisoned").len();
        ended.unwrap_or_else(|_| panic!("{jobs} of {JOBS} jobs")).expect("one").expect("no worker panics");
    }
    world.is_at_rest(&["own"]).await;
    world.is_at_rest_everywhere().await;
    let (acknowledged, read) = (done.acknowledged.load(Ordering::Relaxed), done.read.load(Ordering::Relaxed));
    println!(
        "{ack}: {JOBS} jobs, {acknowledged} messages acknowledged by workers, {read} read by one of them"
    );
    assert!(read >= 1, "a message was there to be read");
    acknowledged
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_with_a_redis_client_of_its_own_acknowledges_what_is_left_to_it() {
    let acknowledged = workers_with_a_client_of_their_own("worker").await;
    // Of the waiting messages some are read by a worker, and now and then a claim goes past the messages.
    assert!(acknowledged >= STANDING / 2, "the servers did not leave it to the workers: {acknowledged}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_with_a_redis_client_of_its_own_may_acknowledge_what_the_control_plane_does() {
    workers_with_a_client_of_their_own("control-plane").await;
}

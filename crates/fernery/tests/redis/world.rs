//! Some control planes on one PostgreSQL and one Redis.

use crate::campaign::{Server, Target};
use crate::fresh_database::{FreshDatabase, fresh_database};
use crate::own_redis::OwnRedis;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Nothing here takes longer unless it hangs. Less than the longest lease of a test, which is not to help by running out.
pub(crate) const PATIENCE: Duration = Duration::from_secs(45);

/// So that a minute holds many generations of leases.
const SHORT_LEASE: [&str; 6] =
    ["--lease-ttl", "2s", "--heartbeat-interval", "500ms", "--reap-interval", "300ms"];

pub(crate) struct World {
    pub(crate) database: FreshDatabase,
    pub(crate) redis: OwnRedis,
    pub(crate) servers: Vec<Server>,
}

impl World {
    pub(crate) async fn new(servers: usize) -> Self {
        Self::with(servers, &[]).await
    }

    pub(crate) async fn with(servers: usize, more: &[&str]) -> Self {
        let mut world = Self::on(fresh_database().await).await;
        for _ in 0..servers {
            let server = world.another(more, &[]).await;
            world.servers.push(server);
        }
        world
    }

    /// This database, and no control plane yet.
    pub(crate) async fn on(database: FreshDatabase) -> Self {
        Self { database, redis: OwnRedis::start().await, servers: Vec::new() }
    }

    /// One more control plane.
    pub(crate) async fn another(&self, more: &[&str], environment: &[(&str, &str)]) -> Server {
        self.another_by(&self.database.url(), &self.redis.url(), more, environment).await
    }

    /// Waits until servers have looked so many more times whether this Redis has lost messages. Each looks at the same pace.
    pub(crate) async fn is_looked_at(redis: &OwnRedis, times: u64) {
        let looks = async || {
            let counted: String = redis.ask(&["INFO", "commandstats"]).await;
            let calls = counted.lines().find_map(|line| line.strip_prefix("cmdstat_xinfo|stream:calls="));
            calls.and_then(|calls| calls.split(',').next()?.parse::<u64>().ok()).unwrap_or(0)
        };
        let (before, deadline) = (looks().await, Instant::now() + PATIENCE);
        while looks().await < before + times {
            assert!(Instant::now() < deadline, "nobody looks whether messages were lost");
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// One more control plane, which goes to its database and to Redis by ways of its own.
    pub(crate) async fn another_by(
        &self,
        database: &str,
        redis: &str,
        more: &[&str],
        environment: &[(&str, &str)],
    ) -> Server {
        let mut arguments = vec!["--redis", redis];
        if !more.contains(&"--lease-ttl") {
            arguments.extend(SHORT_LEASE);
        }
        arguments.extend(more);
        Server::start_in(Some(database), &arguments, environment).await
    }

    /// One more control plane, which knows nothing of Redis.
    pub(crate) async fn another_without_redis(&self) -> Server {
        Server::start(Some(&self.database.url()), &SHORT_LEASE).await
    }

    pub(crate) fn target(&self) -> &Target {
        &self.servers[0].target
    }

    pub(crate) async fn enqueue(&self, stream: &str, jobs: usize) -> Vec<String> {
        enqueue(self.target(), stream, jobs).await
    }

    /// A job of these streams, or `None` after `wait_ms`.
    pub(crate) async fn claim(&self, streams: &[&str], wait_ms: u64) -> Option<Value> {
        claim(self.target(), streams, wait_ms).await
    }

    /// Claims and completes until nothing comes for two seconds; each job that was had.
    pub(crate) async fn drain(&self, streams: &[&str]) -> Vec<String> {
        let mut had = Vec::new();
        while let Some(held) = self.claim(streams, 2_000).await {
            had.push(held["job_id"].as_str().expect("an id").to_string());
            complete(self.target(), &held).await;
        }
        had
    }

    /// These jobs, each once.
    pub(crate) async fn drains_all(&self, streams: &[&str], jobs: &[String]) {
        let since = Instant::now();
        let mut wanted: HashSet<&str> = jobs.iter().map(String::as_str).collect();
        while !wanted.is_empty() {
            assert!(since.elapsed() < PATIENCE, "{} jobs were forgotten", wanted.len());
            if let Some(held) = self.claim(streams, 500).await {
                let job = held["job_id"].as_str().expect("an id");
                assert!(wanted.remove(job), "{job} was handed out twice, or is nobody's");
                complete(self.target(), &held).await;
            }
        }
    }

    /// Waits until the stream holds exactly so many messages, so many of them in hand.
    pub(crate) async fn holds(&self, stream: &str, messages: usize, in_hand: usize) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let found = self.redis.holds(stream).await;
            if found == (messages, in_hand) {
                return;
            }
            assert!(Instant::now() < deadline, "{stream} holds {found:?}, not {:?}", (messages, in_hand));
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until the stream holds a message.
    pub(crate) async fn holds_some(&self, stream: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.redis.holds(stream).await.0 == 0 {
            assert!(Instant::now() < deadline, "no message comes");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Nothing is left anywhere: no message, none in hand, none owed.
    pub(crate) async fn is_at_rest(&self, streams: &[&str]) {
        for stream in streams {
            self.holds(stream, 0, 0).await;
        }
        let client = self.database.client().await;
        let owed =
            "SELECT (SELECT count(*) FROM fernery.outbox) + (SELECT count(*) FROM fernery.reemissions)";
        let deadline = Instant::now() + PATIENCE;
        while client.query_one(owed, &[]).await.expect("a count").get::<_, i64>(0) > 0 {
            assert!(Instant::now() < deadline, "messages are owed");
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// As [`World::is_at_rest`], of every stream that Redis has, whoever polls it; dead letters stay.
    pub(crate) async fn is_at_rest_everywhere(&self) {
        let keys: Vec<String> = self.redis.ask(&["KEYS", "*"]).await;
        let streams: Vec<&str> = keys.iter().map(String::as_str).filter(|key| *key != "jobs:dlq").collect();
        self.is_at_rest(&streams).await;
    }

    /// One of the counters of messages, over all servers.
    pub(crate) async fn counted(&self, what: &str) -> u64 {
        let mut sum = 0;
        for server in &self.servers {
            let text = server.target.text("/metrics").await;
            let name = format!("fernery_messages_total{{what=\"{what}\"}} ");
            sum += text
                .lines()
                .find_map(|line| line.strip_prefix(&name))
                .map_or(0, |n| n.parse().expect("a count"));
        }
        sum
    }
}

/// Jobs of this stream, taken in there.
pub(crate) async fn enqueue(target: &Target, stream: &str, jobs: usize) -> Vec<String> {
    let jobs: Vec<Value> = (0..jobs).map(|n| json!({"stream": stream, "payload": {"n": n}})).collect();
    let (status, answer) =
        target.call(&target.operator, "POST", "/v1/jobs", &json!(jobs)).await.expect("an answer");
    assert_eq!(status, 201, "{answer}");
    let id = |job: &Value| job["job_id"].as_str().expect("an id").to_string();
    answer["jobs"].as_array().expect("jobs").iter().map(id).collect()
}

pub(crate) async fn claim(target: &Target, streams: &[&str], wait_ms: u64) -> Option<Value> {
    let ask = json!({"worker_id": "w", "streams": streams, "max_wait_ms": wait_ms});
    let (status, held) = target.insist(&target.worker, "POST", "/internal/worker/claim", &ask).await;
    assert_eq!(status, 200, "{held}");
    (held["claimed"] == json!(true)).then_some(held)
}

pub(crate) fn report(held: &Value) -> Value {
    json!({"worker_id": "w", "job_id": held["job_id"], "attempt_id": held["attempt_id"],
        "lease_token": held["lease_token"], "stream": held["stream"], "message_id": held["message_id"]})
}

pub(crate) async fn complete(target: &Target, held: &Value) {
    let mut report = report(held);
    report["result"] = json!({"done": true});
    let (status, answer) = target.insist(&target.worker, "POST", "/internal/worker/complete", &report).await;
    assert_eq!((status, &answer["ack"]), (200, &json!(true)), "{answer}");
}

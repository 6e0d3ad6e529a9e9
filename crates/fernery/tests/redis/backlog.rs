//! What waits is told of, once and by messages that are of use: after losses that something covers up, after Redis was away,
//! while a stream is paused, and where there was no Redis before.

#[path = "../../../fernery-engine/tests/support/proxy.rs"]
mod lossy;

use crate::world::{PATIENCE, World, complete};
use lossy::Proxy;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Waits until the messages of a stream name exactly these jobs, however often.
async fn tells_of(world: &World, stream: &str, jobs: &[String]) {
    let wanted: HashSet<&str> = jobs.iter().map(String::as_str).collect();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let entries: Vec<(String, Vec<String>)> = world.redis.ask(&["XRANGE", stream, "-", "+"]).await;
        let told: HashSet<&str> = entries.iter().map(|(_, fields)| fields[1].as_str()).collect();
        if told == wanted {
            return;
        }
        assert!(Instant::now() < deadline, "{} jobs are told of, not {}", told.len(), wanted.len());
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_to_a_stream_that_was_deleted_does_not_cover_up_the_loss() {
    let world = World::new(1).await;
    let mut jobs = world.enqueue("s", 20).await;
    world.holds("s", 20, 0).await;
    let _: u32 = world.redis.ask(&["DEL", "s"]).await;
    jobs.extend(world.enqueue("s", 1).await);
    tells_of(&world, "s", &jobs).await;
    world.drains_all(&["s"], &jobs).await;
    world.is_at_rest(&["s"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_message_to_a_deleted_stream_does_not_hide_its_backlog() {
    let mut world = World::new(1).await;
    let mut jobs = world.enqueue("s", 20).await;
    world.holds("s", 20, 0).await;
    world.servers[0].kill().await;
    world.servers[0] = world.another(&[], &[]).await;
    let other = world.enqueue("other", 1).await;
    tells_of(&world, "other", &other).await;
    let _: u32 = world.redis.ask(&["DEL", "s"]).await;
    jobs.extend(world.enqueue("s", 1).await);
    tells_of(&world, "s", &jobs).await;
    world.drains_all(&["s"], &jobs).await;
    world.drains_all(&["other"], &other).await;
    world.is_at_rest(&["s", "other"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_that_end_while_redis_is_away_are_not_told_of_afterwards() {
    let mut world = World::new(1).await;
    world.redis.kill().await;
    let done = world.enqueue("s", 30).await;
    world.drains_all(&["s"], &done).await;
    let jobs = world.enqueue("s", 3).await;
    world.redis.start_again().await;
    tells_of(&world, "s", &jobs).await;
    // What was sent is counted once its rows are gone, so a little later than Redis has it.
    let deadline = Instant::now() + PATIENCE;
    while world.counted("sent").await < 3 {
        assert!(Instant::now() < deadline, "nothing is counted");
        sleep(Duration::from_millis(50)).await;
    }
    world.drains_all(&["s"], &jobs).await;
    world.is_at_rest(&["s"]).await;
    assert_eq!(world.counted("sent").await, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_outbox_does_not_grow_without_end_while_redis_is_away() {
    let mut world = World::new(1).await;
    world.redis.kill().await;
    let jobs = world.enqueue("s", 5).await;
    let client = world.database.client().await;
    let many = "INSERT INTO fernery.outbox (stream, job_ids, places, versions)
        SELECT 's', ARRAY[gen_random_uuid()], ARRAY[n], ARRAY[0::bigint] FROM generate_series(1::bigint, 35000) n";
    client.execute(many, &[]).await.expect("rows");
    let deadline = Instant::now() + PATIENCE;
    let rows = "SELECT count(*) FROM fernery.outbox";
    while client.query_one(rows, &[]).await.expect("a count").get::<_, i64>(0) > 20_000 {
        assert!(Instant::now() < deadline, "it is as long as ever");
        sleep(Duration::from_millis(50)).await;
    }
    world.redis.start_again().await;
    // The rows about these five were the oldest.
    tells_of(&world, "s", &jobs).await;
    world.drains_all(&["s"], &jobs).await;
    world.is_at_rest(&["s"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_from_before_redis_get_messages() {
    let mut world = World::new(0).await;
    let without = crate::campaign::Server::start(Some(&world.database.url()), &[]).await;
    world.servers.push(without);
    let mut jobs = world.enqueue("s", 1_500).await;
    let few = world.enqueue("t", 2).await;
    world.servers[0].stop().await;
    world.servers[0] = world.another(&[], &[]).await;
    jobs.extend(world.enqueue("s", 1).await);
    tells_of(&world, "s", &jobs).await;
    tells_of(&world, "t", &few).await;
    assert!(world.counted("sent").await <= 1_504, "told of more often than needed");
    world.drains_all(&["t"], &few).await;
    world.is_at_rest(&["t"]).await;
}

/// So long that nothing is taken over within the test.
const LONG_LEASE: [&str; 6] =
    ["--lease-ttl", "60s", "--heartbeat-interval", "20s", "--reap-interval", "300ms"];

async fn operate(world: &World, path: &str) {
    let target = world.target();
    let (status, answer) =
        target.call(&target.operator, "POST", path, &Value::Null).await.expect("an answer");
    assert_eq!(status, 200, "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_a_paused_stream_are_not_read_in_vain() {
    let world = World::with(2, &LONG_LEASE).await;
    let jobs = world.enqueue("s", 8).await;
    world.holds("s", 8, 0).await;
    operate(&world, "/v1/streams/s/pause").await;
    for _ in 0..5 {
        assert_eq!(world.claim(&["s"], 0).await, None);
    }
    assert_eq!(world.counted("read").await, 0);
    // The other server hears of it a little later; what it has read by then it gives back.
    for _ in 0..3 {
        assert_eq!(crate::world::claim(&world.servers[1].target, &["s"], 0).await, None);
    }
    world.holds("s", 8, 0).await;
    operate(&world, "/v1/streams/s/resume").await;
    world.drains_all(&["s"], &jobs).await;
    world.is_at_rest(&["s"]).await;
}

/// Claims up to 20 jobs at once; each with its message.
async fn claim_many(world: &World) -> Vec<Value> {
    let target = world.target();
    let ask = json!({"worker_id": "w", "streams": ["s"], "max": 20, "max_wait_ms": 0});
    let (status, answer) =
        target.call(&target.worker, "POST", "/v1/worker/claim", &ask).await.expect("an answer");
    assert_eq!(status, 200, "{answer}");
    answer["jobs"].as_array().expect("jobs").clone()
}

async fn world_with_large_jobs() -> World {
    let world = World::with(1, &LONG_LEASE).await;
    let large = "x".repeat(1_000_000);
    for _ in 0..4 {
        let jobs: Vec<Value> = (0..5).map(|_| json!({"stream": "s", "payload": {"x": large}})).collect();
        let target = world.target();
        let (status, answer) =
            target.call(&target.operator, "POST", "/v1/jobs", &json!(jobs)).await.expect("an answer");
        assert_eq!(status, 201, "{answer}");
    }
    world.holds("s", 20, 0).await;
    world
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_too_large_for_one_claim_come_with_their_messages_in_the_next() {
    let world = world_with_large_jobs().await;
    let first = claim_many(&world).await;
    assert!((10..20).contains(&first.len()), "{} jobs", first.len());
    sleep(Duration::from_millis(300)).await;
    let second = claim_many(&world).await;
    assert_eq!(first.len() + second.len(), 20);
    let entries: Vec<(String, Vec<String>)> = world.redis.ask(&["XRANGE", "s", "-", "+"]).await;
    let known: HashSet<&str> = entries.iter().map(|(id, _)| id.as_str()).collect();
    let all = || first.iter().chain(&second);
    assert!(all().all(|job| known.contains(job["message_id"].as_str().expect("an id"))));
    assert_eq!(all().map(|job| job["job_id"].to_string()).collect::<HashSet<_>>().len(), 20);
    world.holds("s", 20, 20).await;
    for job in all() {
        complete(world.target(), job).await;
    }
    world.is_at_rest(&["s"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unclaimed_spare_messages_return_to_all_servers() {
    let world = world_with_large_jobs().await;
    let first = claim_many(&world).await;
    assert!((10..20).contains(&first.len()), "{} jobs", first.len());
    world.holds("s", 20, first.len()).await;
}

/// Claims and completes in arrays until nothing is left; each job that was had.
async fn drain_many(world: &World) -> Vec<String> {
    let target = world.target();
    let mut had = Vec::new();
    let ask = json!({"worker_id": "w", "streams": ["s"], "max": 100, "max_wait_ms": 1000});
    loop {
        let (_, answer) = target.insist(&target.worker, "POST", "/v1/worker/claim", &ask).await;
        let held = answer["jobs"].as_array().expect("jobs").clone();
        if held.is_empty() {
            return had;
        }
        had.extend(held.iter().map(|job| job["job_id"].as_str().expect("an id").to_string()));
        let item = |job: &Value| json!({"job_id": job["job_id"], "attempt_id": job["attempt_id"], "lease_token": job["lease_token"], "result": null});
        let report = json!({"worker_id": "w", "items": held.iter().map(item).collect::<Vec<_>>()});
        let (status, answer) = target.insist(&target.worker, "POST", "/v1/worker/complete", &report).await;
        assert_eq!(status, 200, "{answer}");
    }
}

/// The only server dies at this place while it makes a loss good; the next one goes on.
async fn dies_telling_again(place: &str) {
    let mut world = World::new(0).await;
    let doomed = world.another(&LONG_LEASE, &[("FERNERY_FAILPOINT", place)]).await;
    world.servers.push(doomed);
    let jobs = world.enqueue("s", 1_200).await;
    let deadline = Instant::now() + PATIENCE;
    while world.redis.holds("s").await.0 < 1_200 && Instant::now() < deadline {
        sleep(Duration::from_millis(20)).await;
    }
    let _: String = world.redis.ask(&["FLUSHALL"]).await;
    world.servers[0].ended().await;
    world.servers[0] = world.another(&LONG_LEASE, &[]).await;
    tells_of(&world, "s", &jobs).await;
    let had = drain_many(&world).await;
    assert_eq!(had.len(), 1_200, "{place}: handed out twice, or never");
    assert_eq!(had.iter().collect::<HashSet<_>>(), jobs.iter().collect(), "{place}");
    world.is_at_rest(&["s"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_dies_after_telling_again_before_that_is_written() {
    dies_telling_again("reemit-sent@2").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_dies_half_way_through_telling_again() {
    dies_telling_again("reemit-written").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_dies_once_it_is_written_what_was_sent() {
    let mut world = World::new(0).await;
    let doomed = world.another(&LONG_LEASE, &[("FERNERY_FAILPOINT", "relay-written")]).await;
    world.servers.push(doomed);
    let jobs = world.enqueue("s", 20).await;
    world.servers[0].ended().await;
    world.servers[0] = world.another(&LONG_LEASE, &[]).await;
    world.holds("s", 20, 0).await;
    world.drains_all(&["s"], &jobs).await;
    world.is_at_rest(&["s"]).await;
    assert_eq!(world.counted("sent").await, 0, "told of twice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_by_message_whose_reply_from_the_database_was_lost_is_found_with_its_token() {
    let mut world = World::new(0).await;
    let url = world.database.url();
    let (front, name) = url.rsplit_once('/').expect("a database");
    let (credentials, host) = front.rsplit_once('@').expect("a user");
    let proxy = Proxy::before(host.rsplit_once(':').expect("a port").1.parse().expect("a number")).await;
    let url = format!("{credentials}@127.0.0.1:{}/{name}?sslmode=disable", proxy.port());
    let redis = world.redis.url();
    let arguments = [&["--redis", redis.as_str()][..], &LONG_LEASE].concat();
    world.servers.push(crate::campaign::Server::start(Some(&url), &arguments).await);
    let jobs = world.enqueue("s", 5).await;
    world.holds("s", 5, 0).await;
    proxy.lose_reply_to(b"whose reply is lost");
    let target = world.target();
    let ask = json!({"worker_id": "whose reply is lost", "streams": ["s"], "max_wait_ms": 0});
    let (_, held) =
        target.call(&target.worker, "POST", "/internal/worker/claim", &ask).await.expect("an answer");
    assert_eq!((proxy.lost(), &held["job_id"]), (1, &json!(jobs[0])), "{held}");
    let entries: Vec<(String, Vec<String>)> = world.redis.ask(&["XRANGE", "s", "-", "+"]).await;
    assert_eq!(held["message_id"], json!(entries[0].0), "claimed by its message");
    assert_eq!(world.drain(&["s"]).await, jobs[1..], "each of the others once, and not this one");
    complete(target, &held).await;
    world.is_at_rest(&["s"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_nobody_uses_is_forgotten_and_comes_back_with_its_next_job() {
    let mut world = World::new(1).await;
    for stream in ["s", "read by others", "waits"] {
        let stream = stream.replace(' ', "_");
        let jobs = world.enqueue(&stream, 1).await;
        world.drains_all(&[&stream], &jobs).await;
        world.is_at_rest(&[&stream]).await;
    }
    operate(&world, "/v1/streams/waits/pause").await;
    world.enqueue("waits", 1).await;
    world.holds("waits", 1, 0).await;
    world.servers[0].stop().await;
    // As if it were long ago.
    for stream in ["s", "read_by_others", "waits"] {
        let _: redis::Value = world.redis.ask(&["EVAL", LONG_AGO, "1", stream]).await;
    }
    let _: String = world.redis.ask(&["XGROUP", "CREATE", "read_by_others", "theirs", "0"]).await;
    let client = world.database.client().await;
    client.execute("UPDATE fernery.relayed SET newest_ms = 1000, newest_n = 1", &[]).await.expect("rows");
    world.servers[0] = world.another(&[], &[]).await;
    let deadline = Instant::now() + PATIENCE;
    while world.redis.ask::<u32>(&["EXISTS", "s"]).await == 1 {
        assert!(Instant::now() < deadline, "it is still there");
        sleep(Duration::from_millis(50)).await;
    }
    let known = client.query("SELECT stream FROM fernery.relayed ORDER BY stream", &[]).await.expect("rows");
    let known: Vec<String> = known.iter().map(|row| row.get(0)).collect();
    assert_eq!(known, ["read_by_others", "waits"]);
    assert_eq!(world.redis.ask::<u32>(&["EXISTS", "read_by_others", "waits"]).await, 2);
    let jobs = world.enqueue("s", 2).await;
    world.holds("s", 2, 0).await;
    world.drains_all(&["s"], &jobs).await;
    world.is_at_rest(&["s"]).await;
    assert_eq!(world.counted("sent").await, 2, "nothing was taken for a loss");
}

/// An empty stream whose only message came just after the beginning of time.
const LONG_AGO: &str = "
redis.call('DEL', KEYS[1])
redis.call('XGROUP', 'CREATE', KEYS[1], 'workers', '0', 'MKSTREAM')
redis.call('XADD', KEYS[1], '1000-1', 'a', 'b')
return redis.call('XDEL', KEYS[1], '1000-1')";

//! `kill -9` of the server at random moments during a mixed load: nothing acknowledged is lost, nothing ends twice.
//!
//! Invariants 3 to 6, 9, 17 and 19, with real processes. The run prints what it did, and fails if that was too little to
//! prove anything.

mod campaign;
#[path = "../../fernery-engine/tests/support/fresh_database.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod fresh_database;

use campaign::{Server, Target};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep};

const KILLS: usize = 30;
const WORKERS: usize = 50;
const PRODUCERS: usize = 4;

/// What the outside world was told.
#[derive(Default)]
struct Ledger {
    /// Jobs whose enqueue was acknowledged.
    enqueued: Mutex<Vec<String>>,
    /// Completions that were acknowledged: the result, by job.
    completed: Mutex<HashMap<String, Vec<Value>>>,
    stale: AtomicUsize,
    failed: AtomicUsize,
    abandoned: AtomicUsize,
    unanswered: AtomicUsize,
    stop_producing: AtomicBool,
    /// From here on workers only complete.
    settle_down: AtomicBool,
    stop: AtomicBool,
}

fn seed() -> u64 {
    std::env::var("FERNERY_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(20_261_115)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn campaign_nothing_acknowledged_is_lost_when_the_server_is_killed_on_sqlite() {
    run(None, 100..500).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn campaign_nothing_acknowledged_is_lost_when_the_server_is_killed_on_postgres() {
    let database = fresh_database::fresh_database().await;
    // Its first connections take their time: a server that is killed before it did anything proves nothing.
    run(Some(&database.url()), 400..1_200).await;
}

async fn run(database: Option<&str>, life_ms: Range<u64>) {
    let seed = seed();
    println!("seed {seed} (set FERNERY_SEED to run it again)");
    let mut rng = StdRng::seed_from_u64(seed);
    let arguments = ["--lease-ttl", "1s", "--heartbeat-interval", "300ms", "--reap-interval", "200ms"];
    let mut server = Server::start(database, &arguments).await;
    let ledger = Arc::new(Ledger::default());
    let mut tasks = Vec::new();
    for n in 0..PRODUCERS {
        let rng = StdRng::seed_from_u64(seed ^ (1_000 + n as u64));
        tasks.push(tokio::spawn(produce(server.target.clone(), ledger.clone(), rng)));
    }
    for n in 0..WORKERS {
        let rng = StdRng::seed_from_u64(seed ^ (2_000 + n as u64));
        tasks.push(tokio::spawn(work(server.target.clone(), ledger.clone(), rng, n)));
    }
    for _ in 0..KILLS {
        sleep(Duration::from_millis(rng.random_range(life_ms.clone()))).await;
        server.kill().await;
        server.restart().await;
    }
    ledger.stop_producing.store(true, Ordering::Relaxed);
    ledger.settle_down.store(true, Ordering::Relaxed);
    at_rest(&server.target).await;
    ledger.stop.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.expect("no task panics");
    }
    judge(&server.target, &ledger).await;
}

/// Waits until nothing is queued or running; fails if that takes too long.
async fn at_rest(target: &Target) {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let (status, body) = target.insist(&target.operator, "GET", "/v1/streams", &Value::Null).await;
        assert_eq!(status, 200, "{body}");
        let streams = body["streams"].as_array().expect("a list").clone();
        let left: i64 = streams
            .iter()
            .flat_map(|s| ["ready", "scheduled", "running"].map(|k| s[k].as_i64().expect("a count")))
            .sum();
        if left == 0 {
            return;
        }
        assert!(Instant::now() < deadline, "not at rest: {body}");
        sleep(Duration::from_millis(100)).await;
    }
}

async fn produce(target: Target, ledger: Arc<Ledger>, mut rng: StdRng) {
    while !ledger.stop_producing.load(Ordering::Relaxed) {
        let ids: Vec<String> = (0..rng.random_range(1..6))
            .map(|_| uuid::Builder::from_random_bytes(rng.random()).into_uuid().to_string())
            .collect();
        let jobs: Vec<Value> = ids
            .iter()
            .map(|id| {
                json!({"job_id": id, "stream": if rng.random_bool(0.5) { "a" } else { "b" }, "payload": {"id": id},
                       "delay_ms": if rng.random_bool(0.1) { 50 } else { 0 }, "max_attempts": 50})
            })
            .collect();
        // The ids make a repeated call harmless, so a lost reply is simply asked for again.
        let (status, body) = target.insist(&target.operator, "POST", "/v1/jobs", &json!(jobs)).await;
        assert!(status == 201 || status == 200, "{status} {body}");
        ledger.enqueued.lock().expect("not poisoned").extend(ids);
        sleep(Duration::from_millis(rng.random_range(0..10))).await;
    }
}

async fn work(target: Target, ledger: Arc<Ledger>, mut rng: StdRng, number: usize) {
    let worker = format!("worker-{number}");
    while !ledger.stop.load(Ordering::Relaxed) {
        let claim = json!({"worker_id": worker, "streams": ["a", "b"], "max_wait_ms": 200});
        let claimed = target.call(&target.worker, "POST", "/internal/worker/claim", &claim).await;
        let held = match claimed {
            Ok((200, held)) => held,
            Ok((429 | 503, _)) | Err(_) => {
                ledger.unanswered.fetch_add(1, Ordering::Relaxed);
                sleep(Duration::from_millis(20)).await;
                continue;
            }
            Ok((status, body)) => panic!("claim: {status} {body}"),
        };
        if held["claimed"] == json!(false) {
            continue;
        }
        finish(&target, &ledger, &mut rng, &worker, &held).await;
    }
}

async fn finish(target: &Target, ledger: &Ledger, rng: &mut StdRng, worker: &str, held: &Value) {
    let job_id = held["job_id"].as_str().expect("an id").to_owned();
    let mut report = json!({"worker_id": worker, "job_id": job_id, "attempt_id": held["attempt_id"],
        "lease_token": held["lease_token"], "stream": held["stream"], "message_id": held["message_id"]});
    let dice = if ledger.settle_down.load(Ordering::Relaxed) { 0 } else { rng.random_range(0..100) };
    match dice {
        // Gone without a word: the reaper's case.
        90..=94 => drop(ledger.abandoned.fetch_add(1, Ordering::Relaxed)),
        // Too slow: the reaper may have been quicker.
        95..=99 => {
            sleep(Duration::from_millis(rng.random_range(900..1_800))).await;
            complete(target, ledger, &job_id, report).await;
        }
        75..=89 => {
            report["error"] = json!({"code": "dice", "message": "bad luck", "retryable": dice != 89});
            let (status, body) =
                target.insist(&target.worker, "POST", "/internal/worker/fail", &report).await;
            assert!(matches!(status, 200 | 409), "fail: {status} {body}");
            ledger.failed.fetch_add(1, Ordering::Relaxed);
        }
        70..=74 => {
            let cancel = format!("/v1/jobs/{job_id}/cancel");
            let _ = target.call(&target.operator, "POST", &cancel, &json!({"force": dice == 70})).await;
            complete(target, ledger, &job_id, report).await;
        }
        _ => complete(target, ledger, &job_id, report).await,
    }
}

async fn complete(target: &Target, ledger: &Ledger, job_id: &str, mut report: Value) {
    report["result"] = json!({"attempt": report["attempt_id"], "exact": 1.10});
    let (status, body) = target.insist(&target.worker, "POST", "/internal/worker/complete", &report).await;
    match status {
        200 => {
            assert_eq!(body["ack"], json!(true));
            let mut completed = ledger.completed.lock().expect("not poisoned");
            completed.entry(job_id.to_owned()).or_default().push(report["result"].clone());
        }
        409 => {
            assert_eq!(body["code"], json!("lease_lost"), "the lease refused it, and nothing else: {body}");
            ledger.stale.fetch_add(1, Ordering::Relaxed);
        }
        _ => panic!("complete: {status} {body}"),
    }
}

async fn judge(target: &Target, ledger: &Ledger) {
    let enqueued = ledger.enqueued.lock().expect("not poisoned").clone();
    let completed = ledger.completed.lock().expect("not poisoned").clone();
    let (mut ends, mut outcomes) = (HashMap::<String, usize>::new(), HashMap::<String, usize>::new());
    for job_id in &enqueued {
        let path = format!("/v1/jobs/{job_id}");
        let (status, job) = target.insist(&target.operator, "GET", &path, &Value::Null).await;
        assert_eq!(status, 200, "an acknowledged job is gone: {job_id} {job}");
        let end = job["status"].as_str().expect("a status").to_owned();
        assert!(["SUCCEEDED", "DEAD", "CANCELLED"].contains(&end.as_str()), "not at rest: {job}");
        let attempts = job["attempts"].as_array().expect("attempts");
        let mut succeeded = 0;
        for (n, attempt) in attempts.iter().enumerate() {
            let outcome = attempt["outcome"].as_str().unwrap_or_else(|| panic!("an open attempt: {job}"));
            *outcomes.entry(outcome.to_owned()).or_default() += 1;
            succeeded += usize::from(outcome == "SUCCEEDED");
            assert_eq!(attempt["attempt_no"], json!(n + 1), "{job}");
        }
        assert_eq!(succeeded, usize::from(end == "SUCCEEDED"), "{job}");
        if let Some(results) = completed.get(job_id) {
            assert_eq!(results.len(), 1, "two completions of {job_id} were acknowledged");
            assert_eq!(end, "SUCCEEDED", "an acknowledged completion was undone: {job}");
            assert_eq!(job["result"], results[0], "an acknowledged result changed");
        }
        *ends.entry(end).or_default() += 1;
    }
    let stale = ledger.stale.load(Ordering::Relaxed);
    println!(
        "{} jobs, {KILLS} kills, {} calls without an answer, {stale} stale reports refused; ends {ends:?}; attempts {outcomes:?}",
        enqueued.len(),
        ledger.unanswered.load(Ordering::Relaxed),
    );
    let lost = outcomes.get("LOST").copied().unwrap_or(0);
    assert!(enqueued.len() >= 500 && stale >= 5 && lost >= 20, "too little happened to prove anything");
}

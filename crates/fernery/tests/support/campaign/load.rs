//! A mixed load from outside, what it was told, and whether that still holds at the end.

use super::Target;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// What the outside world was told.
#[derive(Default)]
pub(crate) struct Ledger {
    /// Jobs whose enqueue was acknowledged.
    pub(crate) enqueued: Mutex<Vec<String>>,
    /// Completions that were acknowledged: the result, by job.
    pub(crate) completed: Mutex<HashMap<String, Vec<Value>>>,
    pub(crate) stale: AtomicUsize,
    pub(crate) failed: AtomicUsize,
    pub(crate) abandoned: AtomicUsize,
    pub(crate) unanswered: AtomicUsize,
    pub(crate) stop_producing: AtomicBool,
    /// From here on workers only complete.
    pub(crate) settle_down: AtomicBool,
    pub(crate) stop: AtomicBool,
}

/// A load that runs until it is told to settle down.
pub(crate) struct Load {
    pub(crate) ledger: Arc<Ledger>,
    tasks: Vec<JoinHandle<()>>,
}

impl Load {
    /// Producers and workers, spread over the servers.
    pub(crate) fn start(targets: &[Target], seed: u64, producers: usize, workers: usize) -> Self {
        Self::paced(targets, seed, producers, workers, 10)
    }

    /// As [`Load::start`], with pauses of up to so many milliseconds between the calls of a producer.
    pub(crate) fn paced(
        targets: &[Target],
        seed: u64,
        producers: usize,
        workers: usize,
        pause_ms: u64,
    ) -> Self {
        let ledger = Arc::new(Ledger::default());
        let target = |n: usize| targets[n % targets.len()].clone();
        let rng = |n: usize| StdRng::seed_from_u64(seed ^ n as u64);
        let mut tasks = Vec::new();
        for n in 0..producers {
            tasks.push(tokio::spawn(produce(target(n), ledger.clone(), rng(1_000 + n), pause_ms)));
        }
        for n in 0..workers {
            tasks.push(tokio::spawn(work(target(n), ledger.clone(), rng(2_000 + n), n)));
        }
        Self { ledger, tasks }
    }

    /// How many completions were accepted so far.
    pub(crate) fn completed(&self) -> usize {
        self.ledger.completed.lock().expect("not poisoned").len()
    }

    /// As [`Load::settle`], for loads that share a database: what they were told is put together.
    pub(crate) async fn settle_all(loads: Vec<Self>, target: &Target) -> Arc<Ledger> {
        for load in &loads {
            load.ledger.stop_producing.store(true, Ordering::Relaxed);
            load.ledger.settle_down.store(true, Ordering::Relaxed);
        }
        let whole = Arc::new(Ledger::default());
        for load in loads {
            let ledger = load.settle(target).await;
            whole.enqueued.lock().expect("not poisoned").append(&mut ledger.enqueued.lock().expect("it too"));
            let mut completed = whole.completed.lock().expect("not poisoned");
            for (job, results) in ledger.completed.lock().expect("not poisoned").drain() {
                completed.entry(job).or_default().extend(results);
            }
            for (sum, part) in [
                (&whole.stale, &ledger.stale),
                (&whole.failed, &ledger.failed),
                (&whole.abandoned, &ledger.abandoned),
                (&whole.unanswered, &ledger.unanswered),
            ] {
                sum.fetch_add(part.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
        whole
    }

    /// No new jobs, no more trouble: everything comes to its end.
    pub(crate) async fn settle(self, target: &Target) -> Arc<Ledger> {
        self.ledger.stop_producing.store(true, Ordering::Relaxed);
        self.ledger.settle_down.store(true, Ordering::Relaxed);
        at_rest(target).await;
        self.ledger.stop.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.expect("no task panics");
        }
        self.ledger
    }
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

async fn produce(target: Target, ledger: Arc<Ledger>, mut rng: StdRng, pause_ms: u64) {
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
        sleep(Duration::from_millis(rng.random_range(0..pause_ms))).await;
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

/// Holds what the world was told against what the server says. How many attempts were lost and how many stale reports
/// refused, for whoever asks whether the run was hard.
pub(crate) async fn judge(target: &Target, ledger: &Ledger) -> (usize, usize) {
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
        "{} jobs, {} calls without an answer, {stale} stale reports refused; ends {ends:?}; attempts {outcomes:?}",
        enqueued.len(),
        ledger.unanswered.load(Ordering::Relaxed),
    );
    (outcomes.get("LOST").copied().unwrap_or(0), stale)
}

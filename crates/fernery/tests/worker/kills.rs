//! `kill -9` of workers, of the server and of both at random moments, and a disk that is full: every job ends once, and no
//! process outlives its worker.
//!
//! Invariants 4, 5, 6 and 20, with real processes. The run prints its seed and what it did, and fails if that was too
//! little to prove anything.

use crate::seed;
use crate::workshop::{self, TICK, Worker, Workshop, lines_of, outcomes};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const ROUNDS: usize = 12;
const JOBS_PER_ROUND: usize = 6;
/// In this round no worker is killed, and the server is away until the worker of a long job trusts its lease no longer.
const ALONE_ROUND: usize = 7;
const ALONE_MS: u64 = 9_000;
/// How long an attempt may be alive beside its successor: the grace, and what a busy machine adds. Whoever nobody ends lives
/// for a thousand seconds.
const OVERLAP_MAX: Duration = Duration::from_millis(500);
/// Long enough for a busy machine to end a tree in what is left of it when trust ends.
const LEASE: [&str; 6] = ["--lease-ttl", "4s", "--heartbeat-interval", "500ms", "--reap-interval", "100ms"];

/// Attempts that were alive for more than [`OVERLAP_MAX`] beside a later one of the same job, by lines of job, number and
/// seconds.
fn overlaps(lines: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for (job, lives) in &workshop::lives(lines) {
        for ((one, life), (next, after)) in lives.iter().zip(lives.iter().skip(1)) {
            if life.1 > after.0 + OVERLAP_MAX.as_secs_f64() {
                found.push(format!("{job}: attempt {one} until {}, attempt {next} from {}", life.1, after.0));
            }
        }
    }
    found
}

/// Waits until one of the workers stops this job, and answers why.
async fn stopped(workers: &[Worker], job: &str) -> String {
    let is_stop = |event: &Value| event["event"] == "stopping" && event["job_id"] == job;
    let until = Instant::now() + workshop::PATIENCE;
    loop {
        let stop = workers.iter().flat_map(Worker::events).find(is_stop);
        if let Some(stop) = stop {
            return stop["reason"].as_str().expect("a reason").to_string();
        }
        assert!(Instant::now() < until, "nobody stops {job}");
        sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn attempts_beside_each_other_are_found() {
    let lines = |all: &[&str]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert!(overlaps(&lines(&["a 1 10.00", "a 1 11.00", "b 1 11.50", "a 2 10.60", "a 2 12.00"])).is_empty());
    assert_eq!(overlaps(&lines(&["a 1 10.00", "a 1 11.00", "a 2 10.40"])).len(), 1);
}

#[tokio::test]
async fn campaign_every_job_ends_once_whoever_is_killed() {
    let seed = seed::seed();
    let mut rng = StdRng::seed_from_u64(seed);
    let mut workshop = Workshop::open(&LEASE).await;
    let done = workshop.dir.path().join("done");
    let alive = workshop.dir.path().join("alive");
    // The daemons outlive their parent until somebody ends them, and one of them says when it was last alive; the line of
    // what is done is written at the very end.
    let script = format!(
        "t=$(tr -dc 0-9); setsid sh -c '{TICK}' >>{} & setsid sleep 1000 & sleep ${{t%???}}.${{t#${{t%???}}}}; \
         echo $FERNERY_JOB_ID >>{}; echo \"{{\\\"t\\\":$t}}\"",
        alive.display(),
        done.display()
    );
    let start = |workshop: &Workshop, n: usize| {
        let id = format!("worker-{n}");
        workshop.worker("c", &["--concurrency", "3", "--id", &id, "--kill-grace", "100ms"], &script)
    };
    let mut workers: Vec<Worker> = (0..2).map(|n| start(&workshop, n)).collect();
    let mut ids = Vec::new();
    for round in 0..ROUNDS {
        // One of them is still at work when a lease is trusted no longer.
        let jobs = (0..JOBS_PER_ROUND).map(|n| {
            let ms = match n {
                0 if round == ALONE_ROUND => ALONE_MS,
                0 => rng.random_range(3_000..5_000),
                _ => rng.random_range(100..400),
            };
            json!({"payload": {"": ms}, "max_attempts": 100})
        });
        ids.extend(workshop.enqueue_many("c", jobs.collect()).await);
        sleep(Duration::from_millis(rng.random_range(50..500))).await;
        let (kill_server, victim) = (round % 3 != 0, rng.random_range(0..2));
        let alone = (round == ALONE_ROUND).then(|| ids[ids.len() - JOBS_PER_ROUND].to_string());
        if let Some(job) = &alone {
            workshop::lives_of(&alive, job).await;
        }
        if kill_server {
            workshop.down().await;
        }
        if round % 3 != 1 {
            workers[victim].kill().await;
            workers[victim].mark.gone_within(workshop::PATIENCE).await;
            workers[victim] = start(&workshop, victim);
        }
        if kill_server {
            // Sometimes for longer than a lease is trusted, and for longer than it lasts.
            let ms = if round % 2 == 1 { 2_500..5_000 } else { 0..1_200 };
            sleep(Duration::from_millis(rng.random_range(ms))).await;
            if let Some(job) = &alone {
                let reason = stopped(&workers, job).await;
                assert_eq!(reason, "lease_unsure", "trust ends before the lease does");
            }
            workshop.up().await;
        }
    }
    let mut counts = HashMap::<String, usize>::new();
    for id in &ids {
        let job = workshop.ended(*id).await;
        assert_eq!(job["status"], "SUCCEEDED", "{job}");
        assert_eq!(outcomes(&job).iter().filter(|o| **o == "SUCCEEDED").count(), 1, "{job}");
        assert_eq!(job["result"]["t"], job["payload"][""], "{job}");
        for outcome in outcomes(&job) {
            *counts.entry(outcome.to_string()).or_default() += 1;
        }
    }
    let lines = lines_of(&done);
    for id in &ids {
        assert!(lines.contains(&id.to_string()), "reported and never done: {id}");
    }
    for worker in &workers {
        worker.signal(Signal::TERM);
    }
    for worker in workers {
        let (status, events) = worker.ended().await;
        assert!(status.success(), "{events:#?}");
    }
    let overlaps = overlaps(&lines_of(&alive));
    assert!(overlaps.is_empty(), "attempts of one job at the same time: {overlaps:#?}");
    println!("{} jobs, {ROUNDS} kills, attempts {counts:?}, {} runs to the end", ids.len(), lines.len());
    let others: usize = counts.iter().filter(|(outcome, _)| *outcome != "SUCCEEDED").map(|(_, n)| n).sum();
    assert!(others >= 5, "too little happened to prove anything: {counts:?}");
}

#[tokio::test]
async fn a_full_disk_under_the_spool_loses_no_report() {
    let workshop = Workshop::open(&[]).await;
    let dir = workshop.dir.path();
    let spool = dir.join("small");
    std::fs::create_dir(&spool).unwrap();
    let (spool, dir) = (spool.display(), dir.display());
    // The first job fills the disk and frees it when it is told to; the others end while it is full, with more to say
    // than a page that is half empty could take.
    let script = format!(
        "if [ $FERNERY_JOB_MAX_ATTEMPTS = 9 ]; then \
           head -c 10000000 /dev/zero >{spool}/fill 2>/dev/null; : >{dir}/full; \
           until [ -e {dir}/go ]; do sleep 0.02; done; rm {spool}/fill; echo 1; \
         else \
           until [ -e {dir}/full ]; do sleep 0.02; done; head -c 20000 /dev/zero | tr '\\0' x; \
         fi"
    );
    let filler = workshop.enqueue("s", json!({"max_attempts": 9})).await;
    let others = workshop.enqueue_many("s", vec![json!({"max_attempts": 1}); 5]).await;
    let mut command = tokio::process::Command::new("unshare");
    let root = rustix::process::geteuid().is_root();
    command.arg(if root { "-m" } else { "-rm" }).args([
        "sh",
        "-c",
        r#"mount -t tmpfs -o size=64k none "$0" && exec "$@""#,
    ]);
    command.arg(spool.to_string()).arg(env!("CARGO_BIN_EXE_fernery"));
    command.current_dir(workshop.dir.path()).args([
        "worker",
        "--json",
        "--stream",
        "s",
        "--concurrency",
        "3",
    ]);
    command.args(["--spool", "small", "--", "sh", "-c", &script]).kill_on_drop(true);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("FERNERY_")) {
        command.env_remove(name);
    }
    let worker = Worker::start(command);
    worker.tells_of("spool_failed").await;
    for id in &others[..2] {
        let job = workshop.ended(*id).await;
        assert_eq!(outcomes(&job), ["SUCCEEDED"], "it is reported all the same: {job}");
    }
    std::fs::write(format!("{dir}/go"), "").unwrap();
    for id in [&[filler], &others[..]].concat() {
        let job: Value = workshop.ended(id).await;
        let mut outcomes = outcomes(&job);
        assert_eq!(outcomes.pop(), Some("SUCCEEDED"), "{job}");
        // What was claimed in the moment in which the disk became full was handed back before it was started.
        assert!(outcomes.iter().all(|outcome| *outcome == "RELEASED"), "{job}");
    }
    worker.tells_of("spool_mended").await;
    worker.signal(Signal::TERM);
    assert!(worker.ended().await.0.success());
}

//! The overhead of workers: the Rust loop compared with bare array calls, and `fernery worker` with starting the command by
//! hand.

use super::server::Server;
use anyhow::{Context, Result, ensure};
use fernery_client::Client;
use fernery_client::worker::{Worker, WorkerEvent};
use fernery_engine::door::stop_watch;
use fernery_exec::guard::{Guards, Input};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::process::Command;
use tokio::sync::{Notify, mpsc};

/// The client's worker loop with handlers that do nothing, until `jobs` are reported; jobs per second.
pub(super) async fn drain_loop(
    server: &Server,
    stream: &str,
    jobs: usize,
    lanes: usize,
    batch: usize,
) -> Result<f64> {
    let client = Client::new(&format!("http://{}", server.address), Some(&server.worker), None)?;
    let (reported, all) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let (count, done) = (reported.clone(), all.clone());
    let started = stop_watch();
    let mut taken = Duration::ZERO;
    let worker = Worker::new(client)
        .concurrency(lanes * batch)
        .batch(batch)
        .claim_wait(Duration::from_millis(100))
        .handle(stream, |_| async { Ok(serde_json::json!({ "ok": true })) })
        .on_event(move |event| {
            if matches!(event, WorkerEvent::Reported { .. })
                && count.fetch_add(1, Ordering::Relaxed) + 1 == jobs
            {
                done.notify_one();
            }
        });
    let ended = worker.run_until(async {
        all.notified().await;
        taken = started.elapsed();
    });
    let summary = ended.await.context("the worker loop")?;
    ensure!(reported.load(Ordering::Relaxed) >= jobs, "the loop ended early: {summary:?}");
    Ok(jobs as f64 / taken.as_secs_f64())
}

/// Milliseconds of `true`, alternately started by hand and through a worker's guard.
pub(super) async fn run_true(runs: usize) -> Result<(Vec<f64>, Vec<f64>)> {
    let guards = Guards::new(std::env::current_exe()?, vec!["true".into()], Duration::from_secs(5));
    guards.prepare().await?;
    let (mut plain, mut guarded) = (Vec::with_capacity(runs), Vec::with_capacity(runs));
    for _ in 0..runs {
        let started = stop_watch();
        ensure!(Command::new("true").status().await?.success(), "true failed");
        plain.push(started.elapsed().as_secs_f64() * 1e3);
        let started = stop_watch();
        let (_stop, stops) = mpsc::unbounded_channel();
        let input = Input {
            env: Vec::new(),
            stdin: b"{}",
            ends_when_full: true,
            listener: None,
            hang_max: Duration::from_secs(60),
        };
        let ran = guards.run(input, stops).await;
        ensure!(ran.is_ok(), "true did not run: {ran:?}");
        guarded.push(started.elapsed().as_secs_f64() * 1e3);
    }
    guards.close().await;
    Ok((plain, guarded))
}

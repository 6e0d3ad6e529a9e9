//! The loads: what workers and producers do, as fast as they can, over HTTP.

use super::raw::PAYLOAD;
use super::server::Server;
use super::wire::Wire;
use anyhow::{Context, Result, ensure};
use fernery_engine::door::stop_watch;
use serde::Deserialize;
use std::fmt::Write;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[derive(Deserialize)]
struct Claim<'a> {
    claimed: bool,
    #[serde(borrow, default)]
    job_id: &'a str,
    #[serde(borrow, default)]
    attempt_id: &'a str,
    #[serde(borrow, default)]
    lease_token: &'a str,
}

#[derive(Deserialize)]
struct Claims<'a> {
    #[serde(borrow)]
    jobs: Vec<Held<'a>>,
}

#[derive(Deserialize)]
struct Held<'a> {
    job_id: &'a str,
    attempt_id: &'a str,
    lease_token: &'a str,
}

/// Runs `lanes` copies of the same work concurrently; returns how many pieces per second they did in total.
async fn side_by_side<F>(lanes: usize, work: impl Fn(Arc<AtomicUsize>) -> F) -> Result<f64>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let done = Arc::new(AtomicUsize::new(0));
    let started = stop_watch();
    let tasks: Vec<_> = (0..lanes).map(|_| tokio::spawn(work(done.clone()))).collect();
    for task in tasks {
        task.await??;
    }
    Ok(done.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64())
}

/// Requests per second of the echo server.
pub(super) async fn echo(server: &Server, connections: usize, period: Duration) -> Result<f64> {
    let (address, started) = (server.address, stop_watch());
    side_by_side(connections, |done| async move {
        let mut wire = Wire::connect(address, "none").await?;
        let body = format!(r#"{{"worker_id":"bench","job_id":"x","payload":{PAYLOAD}}}"#);
        while started.elapsed() < period {
            let (status, _) = wire.post("/", body.as_bytes()).await?;
            ensure!(status == 200, "echo answered {status}");
            done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    })
    .await
}

/// Enqueues `jobs` in arrays of `per_call`; jobs per second.
pub(super) async fn enqueue(server: &Server, stream: &str, jobs: usize, per_call: usize) -> Result<f64> {
    let one = format!(r#"{{"stream":"{stream}","payload":{PAYLOAD}}}"#);
    let body = Arc::new(format!("[{}]", vec![one; per_call].join(",")));
    let left = Arc::new(AtomicUsize::new(jobs.div_ceil(per_call)));
    let (address, token) = (server.address, server.operator.clone());
    side_by_side(2, |done| {
        let (body, left, token) = (body.clone(), left.clone(), token.clone());
        async move {
            let mut wire = Wire::connect(address, &token).await?;
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok() {
                let (status, answer) = wire.post("/v1/jobs", body.as_bytes()).await?;
                ensure!(status == 201, "enqueue answered {status}: {}", String::from_utf8_lossy(answer));
                done.fetch_add(per_call, Ordering::Relaxed);
            }
            Ok(())
        }
    })
    .await
}

/// One job per call by contract v1, until `jobs` are done; jobs claimed and completed per second.
pub(super) async fn drain_single(
    server: &Server,
    stream: &str,
    connections: usize,
    jobs: usize,
) -> Result<f64> {
    let left = Arc::new(AtomicUsize::new(jobs));
    let (address, token) = (server.address, server.worker.clone());
    let claim = Arc::new(format!(r#"{{"worker_id":"bench","streams":["{stream}"],"max_wait_ms":0}}"#));
    side_by_side(connections, |done| {
        let (left, token, claim) = (left.clone(), token.clone(), claim.clone());
        async move {
            let mut wire = Wire::connect(address, &token).await?;
            let mut report = String::new();
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok() {
                let (status, body) = wire.post("/internal/worker/claim", claim.as_bytes()).await?;
                ensure!(status == 200, "claim answered {status}: {}", String::from_utf8_lossy(body));
                let held: Claim<'_> = serde_json::from_slice(body).context("reading a claim")?;
                ensure!(held.claimed, "the stream is empty");
                report.clear();
                write!(
                    report,
                    r#"{{"worker_id":"bench","job_id":"{}","attempt_id":"{}","lease_token":"{}","stream":"bench","message_id":"0-1","result":{{"ok":true}}}}"#,
                    held.job_id, held.attempt_id, held.lease_token,
                )?;
                let (status, body) = wire.post("/internal/worker/complete", report.as_bytes()).await?;
                ensure!(status == 200, "complete answered {status}: {}", String::from_utf8_lossy(body));
                done.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        }
    })
    .await
}

/// A hundred jobs per call in the array form, until the stream is empty; jobs claimed and completed per second.
pub(super) async fn drain_array(
    server: &Server,
    stream: &str,
    connections: usize,
    per_call: usize,
) -> Result<f64> {
    drain_from(&[server], stream, connections, per_call, None).await
}

/// Like [`drain_array`], from several servers in turn. With `jobs`, which are enqueued meanwhile, until all of them are done.
pub(super) async fn drain_from(
    servers: &[&Server],
    stream: &str,
    connections: usize,
    per_call: usize,
    jobs: Option<usize>,
) -> Result<f64> {
    let wait_ms = if jobs.is_some() { 50 } else { 0 };
    let claim = Arc::new(format!(
        r#"{{"worker_id":"bench","streams":["{stream}"],"max":{per_call},"max_wait_ms":{wait_ms}}}"#
    ));
    let next = AtomicUsize::new(0);
    side_by_side(connections, |done| {
        let server = servers[next.fetch_add(1, Ordering::Relaxed) % servers.len()];
        let (address, token, claim) = (server.address, server.worker.clone(), claim.clone());
        async move {
            let mut wire = Wire::connect(address, &token).await?;
            let mut report = String::new();
            loop {
                let (status, body) = wire.post("/v1/worker/claim", claim.as_bytes()).await?;
                ensure!(status == 200, "claim answered {status}: {}", String::from_utf8_lossy(body));
                let claims: Claims<'_> = serde_json::from_slice(body).context("reading claims")?;
                if claims.jobs.is_empty() {
                    if jobs.is_some_and(|jobs| done.load(Ordering::Relaxed) < jobs) {
                        continue;
                    }
                    return Ok(());
                }
                report.clear();
                report.push_str(r#"{"worker_id":"bench","items":["#);
                for (n, held) in claims.jobs.iter().enumerate() {
                    write!(
                        report,
                        r#"{}{{"job_id":"{}","attempt_id":"{}","lease_token":"{}","result":{{"ok":true}}}}"#,
                        if n == 0 { "" } else { "," },
                        held.job_id,
                        held.attempt_id,
                        held.lease_token
                    )?;
                }
                report.push_str("]}");
                let count = claims.jobs.len();
                let (status, body) = wire.post("/v1/worker/complete", report.as_bytes()).await?;
                ensure!(status == 200, "complete answered {status}: {}", String::from_utf8_lossy(body));
                done.fetch_add(count, Ordering::Relaxed);
            }
        }
    })
    .await
}

/// From the enqueue call to a waiting claim's reply, one job at a time; microseconds of each round.
pub(super) async fn latency(server: &Server, rounds: usize) -> Result<Vec<f64>> {
    let mut worker = Wire::connect(server.address, &server.worker).await?;
    let mut producer = Wire::connect(server.address, &server.operator).await?;
    let claim = br#"{"worker_id":"bench","streams":["latency"],"max_wait_ms":10000}"#;
    let job = format!(r#"{{"stream":"latency","payload":{PAYLOAD}}}"#);
    let mut taken = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let waiting = tokio::spawn(async move {
            let (status, body) = worker.post("/internal/worker/claim", claim).await?;
            let at = stop_watch();
            ensure!(status == 200, "claim answered {status}");
            let held: Claim<'_> = serde_json::from_slice(body).context("reading a claim")?;
            ensure!(held.claimed, "no job came");
            let report = format!(
                r#"{{"worker_id":"bench","job_id":"{}","attempt_id":"{}","lease_token":"{}","result":null}}"#,
                held.job_id, held.attempt_id, held.lease_token
            );
            anyhow::Ok((worker, at, report))
        });
        // The claim must be waiting, and the system idle, before the job comes.
        tokio::time::sleep(Duration::from_millis(5)).await;
        let started = stop_watch();
        let (status, _) = producer.post("/v1/jobs", job.as_bytes()).await?;
        ensure!(status == 201, "enqueue answered {status}");
        let (back, at, report) = waiting.await??;
        worker = back;
        taken.push(at.duration_since(started).as_secs_f64() * 1e6);
        let (status, _) = worker.post("/internal/worker/complete", report.as_bytes()).await?;
        ensure!(status == 200, "complete answered {status}");
    }
    Ok(taken)
}

/// Claims one job at a time from a backlog; microseconds of each claim call.
pub(super) async fn claim_times(server: &Server, stream: &str, claims: usize) -> Result<Vec<f64>> {
    let mut wire = Wire::connect(server.address, &server.worker).await?;
    let claim = format!(r#"{{"worker_id":"bench","streams":["{stream}"],"max_wait_ms":0}}"#);
    let mut taken = Vec::with_capacity(claims);
    for _ in 0..claims {
        let started = stop_watch();
        let (status, body) = wire.post("/internal/worker/claim", claim.as_bytes()).await?;
        taken.push(started.elapsed().as_secs_f64() * 1e6);
        ensure!(status == 200, "claim answered {status}: {}", String::from_utf8_lossy(body));
        let held: Claim<'_> = serde_json::from_slice(body)?;
        ensure!(held.claimed, "the stream is empty");
        let report = format!(
            r#"{{"worker_id":"bench","job_id":"{}","attempt_id":"{}","lease_token":"{}","result":null}}"#,
            held.job_id, held.attempt_id, held.lease_token
        );
        wire.post("/internal/worker/complete", report.as_bytes()).await?;
    }
    Ok(taken)
}

/// Opens `count` waiting claims; returns their connections.
pub(super) async fn park(server: &Server, count: usize) -> Result<Vec<tokio::task::JoinHandle<()>>> {
    let mut waiting = Vec::with_capacity(count);
    for chunk in 0..count.div_ceil(500) {
        for _ in 0..500.min(count - chunk * 500) {
            let mut wire = Wire::connect(server.address, &server.worker).await?;
            waiting.push(tokio::spawn(async move {
                let claim =
                    br#"{"worker_id":"bench","streams":["nobody-enqueues-here"],"max_wait_ms":30000}"#;
                let _ = wire.post("/internal/worker/claim", claim).await;
            }));
        }
        tokio::task::yield_now().await;
    }
    Ok(waiting)
}

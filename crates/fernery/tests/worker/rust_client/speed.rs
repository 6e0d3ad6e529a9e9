//! The loop costs little beside what it saves: it drains a backlog about as fast as bare array calls do.

use super::world::World;
use fernery_client::wire::{ClaimManyRequest, CompleteItem, WorkerBatch};
use fernery_client::{Client, NewJob, Worker};
use fernery_core::{StreamName, WorkerId};
use fernery_engine::door::stop_watch;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

const JOBS: usize = 5_000;
const PER_CALL: usize = 100;
const LANES: usize = 4;
const ROUNDS: usize = 5;
/// What the loop must reach of the bare calls' speed, in the median of the rounds.
const SHARE: f64 = 0.8;

async fn fill(world: &World, stream: &str) {
    let jobs: Vec<_> = (0..JOBS).map(|_| NewJob::on(stream)).collect();
    world.operator.enqueue_all(&jobs).await.unwrap();
}

fn client(world: &World) -> Client {
    let url = format!("http://{}", world.server.target.address());
    Client::new(&url, Some(&world.server.target.worker), None).unwrap()
}

/// Jobs per second of lanes that claim and complete, claim and complete.
async fn bare_calls(world: &World, stream: &str) -> f64 {
    fill(world, stream).await;
    let started = stop_watch();
    let lane = |client: Client, stream: StreamName| async move {
        let worker_id = WorkerId::new("bare").unwrap();
        let request = ClaimManyRequest {
            worker_id: worker_id.clone(),
            streams: vec![stream],
            max: PER_CALL as u64,
            max_wait_ms: Some(0),
        };
        loop {
            let jobs = client.claim(&request).await.unwrap().read().unwrap().jobs;
            if jobs.is_empty() {
                return;
            }
            let items = jobs.into_iter().map(|job| CompleteItem {
                job_id: job.job_id,
                attempt_id: job.attempt_id,
                lease_token: job.lease_token,
                stream: None,
                message_id: None,
                result: serde_json::value::to_raw_value(&true).unwrap(),
            });
            let batch = WorkerBatch { worker_id: worker_id.clone(), items: items.collect() };
            client.complete(&batch).await.unwrap().read().unwrap();
        }
    };
    let lanes: Vec<_> =
        (0..LANES).map(|_| tokio::spawn(lane(client(world), StreamName::new(stream).unwrap()))).collect();
    for lane in lanes {
        lane.await.unwrap();
    }
    JOBS as f64 / started.elapsed().as_secs_f64()
}

/// Jobs per second of the worker loop with handlers that do nothing.
async fn the_loop(world: &World, stream: &str, spool: Option<&std::path::Path>) -> f64 {
    fill(world, stream).await;
    let (reported, all) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let mut worker = Worker::new(client(world)).concurrency(LANES * PER_CALL).batch(PER_CALL);
    if let Some(spool) = spool {
        worker = worker.spool(spool);
    }
    let done = all.clone();
    let worker = worker.handle(stream, |_| async move { Ok(true) }).on_event(move |event| {
        let told = matches!(event, fernery_client::WorkerEvent::Reported { .. });
        if told && reported.fetch_add(1, Ordering::Relaxed) + 1 == JOBS {
            done.notify_one();
        }
    });
    let started = stop_watch();
    let elapsed = Arc::new(std::sync::Mutex::new(None));
    let noted = elapsed.clone();
    let summary = worker.run_until(async move {
        all.notified().await;
        *noted.lock().unwrap() = Some(started.elapsed());
    });
    assert_eq!(summary.await.unwrap().succeeded, JOBS as u64);
    let elapsed = elapsed.lock().unwrap().expect("it was noted");
    JOBS as f64 / elapsed.as_secs_f64()
}

#[tokio::test(flavor = "multi_thread")]
async fn campaign_the_loop_drains_nearly_as_fast_as_bare_array_calls() {
    let world = World::start(&[]).await;
    let folder = tempfile::tempdir().unwrap();
    let mut shares = Vec::new();
    for round in 0..ROUNDS {
        let bare = bare_calls(&world, &format!("bare-{round}")).await;
        let memory = the_loop(&world, &format!("memory-{round}"), None).await;
        let spool = folder.path().join(round.to_string());
        let spooled = the_loop(&world, &format!("spooled-{round}"), Some(&spool)).await;
        println!("bare {bare:.0}/s, loop {memory:.0}/s, with a spool {spooled:.0}/s");
        shares.push(memory / bare);
    }
    shares.sort_by(f64::total_cmp);
    assert!(shares[ROUNDS / 2] >= SHARE, "{shares:.2?} of the bare calls");
}

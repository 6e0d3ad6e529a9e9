//! How leases are kept, and what happens when they are not.

use super::proxy::Fate;
use super::world::{CLAIM, COMPLETE, FAIL, HEARTBEAT, PATIENCE, RELEASE, Working, World};
use fernery_client::worker::JobEnding;
use fernery_client::{Client, JobEnd, NewJob, StopReason, Worker, WorkerEvent};
use fernery_core::{AttemptOutcome, JobStatus};
use serde_json::Value;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

fn items(body: &Value) -> &Vec<Value> {
    body["items"].as_array().expect("an array")
}

async fn outcomes(world: &World, id: fernery_client::JobId) -> Vec<Option<AttemptOutcome>> {
    world.job(id).await.attempts.iter().map(|attempt| attempt.outcome).collect()
}

#[tokio::test]
async fn one_call_keeps_all_leases_for_as_long_as_the_jobs_take() {
    let world = World::start(&["--lease-ttl", "1s"]).await;
    let jobs: Vec<_> = (0..5).map(|_| NewJob::on("s")).collect();
    world.operator.enqueue_all(&jobs).await.unwrap();
    let let_go = Arc::new(Semaphore::new(0));
    let worker = {
        let let_go = let_go.clone();
        world.worker().concurrency(5).handle("s", move |_| {
            let let_go = let_go.clone();
            async move {
                let_go.acquire().await?.forget();
                Ok(())
            }
        })
    };
    let working = Working::begin(worker);
    // Ten intervals are more than three leases.
    world.proxy.wait_for(HEARTBEAT, 10).await;
    for beat in &world.proxy.seen(HEARTBEAT)[..10] {
        assert_eq!(items(&beat.body).len(), 5);
    }
    let_go.add_permits(5);
    for job in &jobs {
        let ended = world.ended(job.job_id().unwrap()).await;
        assert_eq!((ended.status, ended.attempts.len()), (JobStatus::Succeeded, 1));
    }
    assert_eq!(working.end().await.lost, 0);
}

#[tokio::test]
async fn progress_goes_with_the_heartbeat_and_never_back() {
    let world = World::start(&["--lease-ttl", "1s"]).await;
    world.operator.enqueue(NewJob::on("s")).await.unwrap();
    let cue = Arc::new(Notify::new());
    let worker = {
        let cue = cue.clone();
        world.worker().handle("s", move |job| {
            let cue = cue.clone();
            async move {
                job.progress(40, Some("a"));
                cue.notified().await;
                job.progress(10, Some("b"));
                cue.notified().await;
                Ok(())
            }
        })
    };
    let working = Working::begin(worker);
    world.proxy.wait_for(HEARTBEAT, 2).await;
    cue.notify_one();
    world.proxy.wait_for(HEARTBEAT, 5).await;
    cue.notify_one();
    working.end().await;
    let told: Vec<Value> = world
        .proxy
        .seen(HEARTBEAT)
        .iter()
        .flat_map(|beat| items(&beat.body).clone())
        .filter_map(|item| item.get("progress").cloned())
        .collect();
    let percents: Vec<_> = told.iter().map(|p| p["percent"].as_u64().unwrap()).collect();
    let notes: Vec<_> = told.iter().map(|p| p["note"].as_str().unwrap()).collect();
    assert_eq!((percents, notes), (vec![40, 40], vec!["a", "b"]), "each is told once");
}

#[tokio::test]
async fn a_cancel_reaches_the_handler_and_its_answer_still_counts() {
    let world = World::start(&["--lease-ttl", "1s"]).await;
    let job = world.operator.enqueue(NewJob::on("s")).await.unwrap();
    let worker = world.worker().handle("s", |job| async move { Ok(job.cancelled().await.as_str()) });
    let mut working = Working::begin(worker);
    working.claimed().await;
    world.operator.cancel(job.id(), false).await.unwrap();
    assert_eq!(working.stopping().await.1, StopReason::CancelRequested);
    let end = job.wait::<String>(PATIENCE).await.unwrap();
    assert_eq!(end, JobEnd::Succeeded("cancel_requested".into()));
    assert_eq!(working.end().await.succeeded, 1);
}

/// Invariant 11: a refused renewal is followed by no write of that holder.
#[tokio::test]
async fn a_handler_whose_lease_is_refused_is_told_and_its_answer_is_dropped() {
    let world = World::start(&["--lease-ttl", "1s"]).await;
    let job = world.operator.enqueue(NewJob::on("s")).await.unwrap();
    let worker = world.worker().handle("s", |job| async move { Ok(job.cancelled().await.as_str()) });
    let mut working = Working::begin(worker);
    working.claimed().await;
    world.operator.cancel(job.id(), true).await.unwrap();
    let reason = working
        .event(|event| match event {
            WorkerEvent::Finished { job, ending, .. } => {
                assert_eq!(ending, JobEnding::Dropped(StopReason::LeaseLost));
                job.stop_reason()
            }
            _ => None,
        })
        .await;
    assert_eq!(reason, StopReason::LeaseLost);
    let summary = working.end().await;
    assert_eq!((summary.claimed, summary.lost, summary.succeeded), (1, 1, 0));
    let paths = world.proxy.paths();
    assert!(!paths.iter().any(|path| [COMPLETE, FAIL, RELEASE].contains(&&**path)), "{paths:?}");
}

/// Invariant 11, where the report was already on its way and did not get through.
#[tokio::test]
async fn a_report_that_waits_is_dropped_when_its_lease_is_refused() {
    let world = World::start(&["--lease-ttl", "1s"]).await;
    let spool = tempfile::tempdir().unwrap();
    let job = world.operator.enqueue(NewJob::on("s")).await.unwrap();
    world.proxy.always(COMPLETE, Fate::Cut);
    let worker = world.worker().spool(spool.path().join("spool")).handle("s", |_| async move { Ok(()) });
    let mut working = Working::begin(worker);
    world.proxy.wait_for(COMPLETE, 1).await;
    world.operator.cancel(job.id(), true).await.unwrap();
    working.event(|event| matches!(event, WorkerEvent::LeaseLost { .. }).then_some(())).await;
    let sent = world.proxy.seen(COMPLETE).len();
    world.proxy.mend();
    let summary = working.end().await;
    assert_eq!(world.proxy.seen(COMPLETE).len(), sent, "nothing was sent after the refusal");
    assert_eq!((summary.lost, summary.succeeded, summary.unreported), (1, 0, 0));
    assert_eq!(world.job(job.id()).await.status, JobStatus::Cancelled);
    let left: u64 = std::fs::read_dir(spool.path().join("spool"))
        .unwrap()
        .map(|file| file.unwrap())
        .filter(|file| file.file_name().to_str().unwrap().ends_with(".spool"))
        .map(|file| file.metadata().unwrap().len())
        .sum();
    assert_eq!(left, 0, "the spool forgot it");
}

#[tokio::test]
async fn silence_for_two_thirds_of_the_lease_stops_the_job_and_its_answer_is_still_judged() {
    let world = World::start(&["--lease-ttl", "6s"]).await;
    let job = world.operator.enqueue(NewJob::on("s")).await.unwrap();
    world.proxy.always(HEARTBEAT, Fate::Cut);
    let worker = world.worker().handle("s", |job| async move {
        let started = Instant::now();
        let reason = job.cancelled().await;
        Ok((reason.as_str(), started.elapsed().as_millis()))
    });
    let working = Working::begin(worker);
    let JobEnd::Succeeded((reason, after_ms)) = job.wait::<(String, u64)>(PATIENCE).await.unwrap() else {
        panic!("it succeeded")
    };
    assert_eq!(reason, "lease_unsure");
    assert!((3_000..6_000).contains(&after_ms), "{after_ms} ms");
    assert!(world.proxy.seen(HEARTBEAT).len() >= 3, "it did not give up after the first");
    assert_eq!(outcomes(&world, job.id()).await, [Some(AttemptOutcome::Succeeded)]);
    working.end().await;
}

/// Trust ends with a third of the lease left, so the order does not hang on how quick a machine is.
#[tokio::test]
async fn a_worker_that_is_cut_off_stops_its_job_before_another_gets_it() {
    let world = World::start(&["--lease-ttl", "6s"]).await;
    let job = world.operator.enqueue(NewJob::on("s")).await.unwrap();
    let (order, began) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Notify::new()));
    let cut_off = {
        let (order, began) = (order.clone(), began.clone());
        world.worker().handle("s", move |job| {
            let (order, began) = (order.clone(), began.clone());
            async move {
                began.notify_one();
                let reason = job.cancelled().await;
                order.lock().unwrap().push(reason.as_str());
                Ok(())
            }
        })
    };
    let cut_off = Working::begin(cut_off);
    began.notified().await;
    for path in [CLAIM, HEARTBEAT, COMPLETE, FAIL, RELEASE] {
        world.proxy.always(path, Fate::Cut);
    }
    let direct = format!("http://{}", world.server.target.address());
    let client = Client::new(&direct, Some(&world.server.target.worker), None).unwrap();
    let other = {
        let order = order.clone();
        Worker::new(client).id("other").handle("s", move |job| {
            order.lock().unwrap().push("begun by another");
            async move { Ok(job.attempt_no()) }
        })
    };
    let other = Working::begin(other);
    assert_eq!(job.wait(PATIENCE).await.unwrap(), JobEnd::Succeeded(2));
    assert_eq!(*order.lock().unwrap(), ["lease_unsure", "begun by another"]);
    world.proxy.mend();
    assert_eq!(cut_off.end().await.succeeded, 0, "its report comes too late");
    other.end().await;
}

#[tokio::test]
async fn a_handler_that_does_not_heed_is_dropped_and_its_job_handed_back() {
    let world = World::start(&["--lease-ttl", "3s"]).await;
    let job = world.operator.enqueue(NewJob::on("s")).await.unwrap();
    world.proxy.always(HEARTBEAT, Fate::Cut);
    let worker = world.worker().handle("s", |job| async move {
        if job.attempt_no() == 1 {
            std::future::pending::<()>().await;
        }
        Ok(job.attempt_no())
    });
    let mut working = Working::begin(worker);
    let ending = working
        .event(|event| match event {
            WorkerEvent::Finished { ending, .. } => Some(ending),
            _ => None,
        })
        .await;
    assert_eq!(ending, JobEnding::Dropped(StopReason::LeaseUnsure));
    assert_eq!(job.wait(PATIENCE).await.unwrap(), JobEnd::Succeeded(2));
    use AttemptOutcome::{Released, Succeeded};
    assert_eq!(outcomes(&world, job.id()).await, [Some(Released), Some(Succeeded)]);
    working.end().await;
}

/// A claim that waited longer than a lease cannot know when its own began.
#[tokio::test]
async fn a_claim_that_waited_long_is_confirmed_before_its_job_starts() {
    let world = World::start(&["--lease-ttl", "3s"]).await;
    let worker = world.worker().handle("s", |job| async move { Ok(job.stop_reason().is_none()) });
    let working = Working::begin(worker);
    world.proxy.wait_for(CLAIM, 1).await;
    // Time itself is the matter here.
    tokio::time::sleep(Duration::from_millis(2_400)).await;
    let job = world.operator.enqueue(NewJob::on("s")).await.unwrap();
    assert_eq!(job.wait(PATIENCE).await.unwrap(), JobEnd::Succeeded(true));
    let paths = world.proxy.paths();
    assert_eq!(&paths[..2], [CLAIM, HEARTBEAT]);

    let before = world.proxy.seen(CLAIM).len();
    tokio::time::sleep(Duration::from_millis(2_400)).await;
    assert_eq!(world.proxy.seen(CLAIM).len(), before, "it still waits");
    world.proxy.once(HEARTBEAT, Fate::Cut);
    let job = world.operator.enqueue(NewJob::on("s")).await.unwrap();
    assert_eq!(job.wait(PATIENCE).await.unwrap(), JobEnd::Succeeded(true));
    use AttemptOutcome::{Released, Succeeded};
    assert_eq!(
        outcomes(&world, job.id()).await,
        [Some(Released), Some(Succeeded)],
        "it was not started unsure"
    );
    working.end().await;
}

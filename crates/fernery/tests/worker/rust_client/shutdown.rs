//! An orderly end: nothing is started any more, what runs may finish, the rest is handed back.

use super::proxy::{Fate, Hold};
use super::world::{CLAIM, COMPLETE, HEARTBEAT, PATIENCE, RELEASE, Working, World};
use fernery_client::worker::JobEnding;
use fernery_client::{JobEnd, NewJob, StopReason, WorkerEvent};
use fernery_core::{AttemptOutcome, JobStatus};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

#[tokio::test]
async fn what_a_claim_still_brings_is_handed_back_unstarted() {
    let world = World::start(&[]).await;
    let hold = Arc::new(Hold::default());
    world.proxy.once(CLAIM, Fate::HoldReply(hold.clone()));
    let job = world.operator.enqueue(NewJob::on("s")).await.unwrap();
    let mut working = Working::begin(world.worker().handle("s", |_| async move { Ok(()) }));
    hold.arrived().await;
    assert_eq!(world.job(job.id()).await.status, JobStatus::Running);
    working.stop();
    working.event(|event| matches!(event, WorkerEvent::Draining { running: 0 }).then_some(())).await;
    hold.let_go();
    let summary = working.result().await.unwrap();
    assert_eq!((summary.claimed, summary.released, summary.succeeded), (1, 1, 0));
    let job = world.job(job.id()).await;
    assert_eq!(job.status, JobStatus::Queued);
    assert_eq!(job.attempts[0].outcome, Some(AttemptOutcome::Released));
}

#[tokio::test]
async fn a_claim_that_is_cut_off_while_it_confirms_its_lease_hands_back_its_job() {
    let world = World::start(&["--lease-ttl", "3s"]).await;
    let hold = Arc::new(Hold::default());
    world.proxy.once(HEARTBEAT, Fate::HoldReply(hold.clone()));
    let working = Working::begin(world.worker().handle("s", |_| async move { Ok(()) }));
    world.proxy.wait_for(CLAIM, 1).await;
    // Longer than a third of the lease: the claim cannot know when it began.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let job = world.operator.enqueue(NewJob::on("s")).await.unwrap();
    hold.arrived().await;
    let summary = working.end().await;
    assert_eq!((summary.claimed, summary.released), (1, 1), "{summary}");
    let job = world.job(job.id()).await;
    assert_eq!((job.status, job.attempts[0].outcome), (JobStatus::Queued, Some(AttemptOutcome::Released)));
}

#[tokio::test]
async fn an_idle_worker_ends_soon_and_takes_no_job_with_it() {
    let world = World::start(&[]).await;
    let worker = world.worker().claim_wait(Duration::from_secs(30)).handle("s", |_| async move { Ok(()) });
    let working = Working::begin(worker);
    world.proxy.wait_for(CLAIM, 1).await;
    let began = Instant::now();
    assert_eq!(working.end().await.claimed, 0);
    assert!(began.elapsed() < Duration::from_secs(25), "the claim was waited for: {:?}", began.elapsed());
    let job = world.operator.enqueue(NewJob::on("s")).await.unwrap();
    let next = Working::begin(world.worker().handle("s", |_| async move { Ok(()) }));
    assert_eq!(job.wait::<()>(PATIENCE).await.unwrap(), JobEnd::Succeeded(()));
    assert_eq!(world.job(job.id()).await.attempts.len(), 1, "no claim was left behind");
    next.end().await;
}

#[tokio::test]
async fn what_runs_may_finish_within_the_drain_time() {
    let world = World::start(&[]).await;
    let job = world.operator.enqueue(NewJob::on("s")).await.unwrap();
    let cue = Arc::new(Notify::new());
    let worker = {
        let cue = cue.clone();
        world.worker().handle("s", move |job| {
            let cue = cue.clone();
            async move {
                cue.notified().await;
                Ok(job.stop_reason().is_none())
            }
        })
    };
    let mut working = Working::begin(worker);
    working.claimed().await;
    let waiting = world.operator.enqueue(NewJob::on("s")).await.unwrap();
    working.stop();
    working.event(|event| matches!(event, WorkerEvent::Draining { running: 1 }).then_some(())).await;
    cue.notify_one();
    let summary = working.result().await.unwrap();
    assert_eq!((summary.claimed, summary.succeeded), (1, 1));
    assert_eq!(job.wait(PATIENCE).await.unwrap(), JobEnd::Succeeded(true));
    assert_eq!(world.job(waiting.id()).await.attempts.len(), 0, "nothing new is started");
}

#[tokio::test]
async fn what_does_not_finish_is_told_then_dropped_and_handed_back() {
    let world = World::start(&[]).await;
    let heeds = world.operator.enqueue(NewJob::on("heeds")).await.unwrap();
    let ignores = world.operator.enqueue(NewJob::on("ignores")).await.unwrap();
    let worker = world
        .worker()
        .concurrency(2)
        .drain(Duration::from_millis(100))
        .handle("heeds", |job| async move { Ok(job.cancelled().await.as_str()) })
        .handle("ignores", |_| async move { Ok(std::future::pending::<u8>().await) });
    let mut working = Working::begin(worker);
    working.claimed().await;
    working.claimed().await;
    working.stop();
    let dropped = working
        .event(|event| match event {
            WorkerEvent::Finished { job, ending: JobEnding::Dropped(reason), .. } => Some((job.id(), reason)),
            _ => None,
        })
        .await;
    assert_eq!(dropped, (ignores.id(), StopReason::ShuttingDown));
    let summary = working.result().await.unwrap();
    assert_eq!((summary.succeeded, summary.released, summary.unreported), (1, 1, 0));
    let end = heeds.wait::<String>(PATIENCE).await.unwrap();
    assert_eq!(end, JobEnd::Succeeded("shutting_down".into()));
    let job = world.job(ignores.id()).await;
    assert_eq!((job.status, job.attempts[0].outcome), (JobStatus::Queued, Some(AttemptOutcome::Released)));
}

/// The drain time ends before the open claim does.
#[tokio::test]
async fn a_claim_that_outlasts_the_drain_time_still_loses_no_job() {
    let world = World::start(&[]).await;
    let stuck = world.operator.enqueue(NewJob::on("s")).await.unwrap();
    let hold = Arc::new(Hold::default());
    world.proxy.skip_once(CLAIM, Fate::HoldReply(hold.clone()));
    let worker = world.worker().concurrency(2).drain(Duration::ZERO).grace(Duration::ZERO);
    let mut working =
        Working::begin(worker.handle("s", |_| async move { Ok(std::future::pending::<u8>().await) }));
    working.claimed().await;
    world.proxy.wait_for(CLAIM, 2).await;
    let late = world.operator.enqueue(NewJob::on("s")).await.unwrap();
    hold.arrived().await;
    working.stop();
    working.event(|event| matches!(event, WorkerEvent::Finished { .. }).then_some(())).await;
    hold.let_go();
    let summary = working.result().await.unwrap();
    assert_eq!((summary.claimed, summary.released), (2, 2));
    for job in [stuck, late] {
        let job = world.job(job.id()).await;
        assert_eq!(
            (job.status, job.attempts[0].outcome),
            (JobStatus::Queued, Some(AttemptOutcome::Released))
        );
    }
}

#[tokio::test]
async fn reports_that_do_not_get_through_stay_behind_and_are_counted() {
    let world = World::start(&[]).await;
    let folder = tempfile::tempdir().unwrap();
    let job = world.operator.enqueue(NewJob::on("s")).await.unwrap();
    world.proxy.always(COMPLETE, Fate::Cut);
    let worker = world.worker().spool(folder.path().join("spool")).settle(Duration::from_millis(300));
    let working = Working::begin(worker.handle("s", |_| async move { Ok("kept") }));
    world.proxy.wait_for(COMPLETE, 1).await;
    let summary = working.end().await;
    assert_eq!((summary.succeeded, summary.unreported), (0, 1));
    world.proxy.mend();
    let next = world.worker().spool(folder.path().join("spool")).handle("s", |_| async move { Ok("again") });
    let next = Working::begin(next);
    assert_eq!(job.wait(PATIENCE).await.unwrap(), JobEnd::Succeeded("kept".to_string()));
    next.end().await;
}

/// A handler that blocks its thread cannot be stopped; its job must not be given to somebody else while it runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_handler_that_blocks_is_left_alone_with_its_lease() {
    let world = World::start(&[]).await;
    world.operator.enqueue(NewJob::on("s")).await.unwrap();
    let (let_go, block) = std::sync::mpsc::channel::<()>();
    let block = std::sync::Mutex::new(block);
    let worker = world.worker().drain(Duration::from_millis(100)).grace(Duration::from_millis(100)).handle(
        "s",
        move |_| {
            let _ = block.lock().expect("no panic").recv();
            async move { Ok(()) }
        },
    );
    let mut working = Working::begin(worker);
    working.claimed().await;
    working.stop();
    let summary = working.result().await.unwrap();
    assert_eq!((summary.claimed, summary.abandoned, summary.released), (1, 1, 0));
    assert!(world.proxy.seen(RELEASE).is_empty());
    drop(let_go);
}

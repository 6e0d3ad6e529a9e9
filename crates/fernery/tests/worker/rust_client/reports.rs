//! Every report arrives, once in the books, through lost replies, dead processes and broken disks.

use super::proxy::{Fate, Hold};
use super::world::{CLAIM, COMPLETE, FAIL, PATIENCE, Working, World};
use fernery_client::wire::{NewTokenRequest, Role};
use fernery_client::worker::JobEnding;
use fernery_client::{Client, Failure, Job, JobEnd, NewJob, Worker, WorkerError, WorkerEvent};
use fernery_core::{AttemptOutcome, JobStatus};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// All that the spool's segments hold.
fn spooled(path: &Path) -> String {
    let mut text = String::new();
    for file in std::fs::read_dir(path).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|kind| kind == "spool") {
            text.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
    text
}

#[tokio::test]
async fn a_report_whose_reply_was_lost_is_repeated_and_counts_once() {
    let world = World::start(&[]).await;
    let good = world.operator.enqueue(NewJob::on("good")).await.unwrap();
    let bad = world.operator.enqueue(NewJob::on("bad").max_attempts(1)).await.unwrap();
    world.proxy.once(COMPLETE, Fate::LoseReply);
    world.proxy.once(FAIL, Fate::LoseReply);
    let worker = world
        .worker()
        .handle("good", |_| async move { Ok(7) })
        .handle("bad", |_| async move { Err::<(), _>(Failure::new("E", "m")) });
    let working = Working::begin(worker);
    assert_eq!(good.wait(PATIENCE).await.unwrap(), JobEnd::Succeeded(7));
    assert!(matches!(bad.wait::<()>(PATIENCE).await.unwrap(), JobEnd::Dead(_)));
    let summary = working.end().await;
    assert_eq!((summary.succeeded, summary.failed, summary.lost, summary.unreported), (1, 1, 0, 0));
    assert_eq!((world.proxy.seen(COMPLETE).len(), world.proxy.seen(FAIL).len()), (2, 2));
    for job in [good, bad] {
        assert_eq!(world.job(job.id()).await.attempts.len(), 1);
    }
}

#[tokio::test]
async fn a_report_is_on_disk_before_it_is_sent_and_until_it_is_answered() {
    let world = World::start(&[]).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spool");
    let hold = Arc::new(Hold::default());
    world.proxy.once(COMPLETE, Fate::HoldReply(hold.clone()));
    let job = world.operator.enqueue(NewJob::on("s")).await.unwrap();
    let working =
        Working::begin(world.worker().spool(&path).handle("s", |_| async move { Ok("the result") }));
    world.proxy.wait_for(COMPLETE, 1).await;
    let text = spooled(&path);
    assert!(text.contains(&job.id().to_string()) && text.contains("the result"), "{text}");
    hold.arrived().await;
    assert_eq!(world.job(job.id()).await.status, JobStatus::Succeeded);
    assert_eq!(spooled(&path), text, "the answer is not there yet");
    hold.let_go();
    assert_eq!(working.end().await.succeeded, 1);
    assert_eq!(spooled(&path), "");
}

/// The worker dies between the end of its job and the server's answer.
#[tokio::test]
async fn reports_of_a_dead_worker_are_sent_before_the_next_claim() {
    let world = World::start(&[]).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spool");
    let done = world.operator.enqueue(NewJob::on("s")).await.unwrap();
    world.proxy.always(COMPLETE, Fate::Cut);
    let mut working = Working::begin(world.worker().spool(&path).handle("s", |_| async move { Ok("first") }));
    world.proxy.wait_for(COMPLETE, 1).await;
    working.event(|event| matches!(event, WorkerEvent::Reconnecting { .. }).then_some(())).await;
    working.task.abort();
    assert!((&mut working.task).await.unwrap_err().is_cancelled());
    world.proxy.mend();
    let before = world.proxy.paths().len();

    let later = world.operator.enqueue(NewJob::on("s")).await.unwrap();
    let mut working =
        Working::begin(world.worker().spool(&path).handle("s", |_| async move { Ok("second") }));
    let left = working
        .event(|event| match event {
            WorkerEvent::LeftoversFound { reports } => Some(reports),
            _ => None,
        })
        .await;
    assert_eq!(left, 1);
    assert_eq!(done.wait(PATIENCE).await.unwrap(), JobEnd::Succeeded("first".to_string()));
    assert_eq!(later.wait(PATIENCE).await.unwrap(), JobEnd::Succeeded("second".to_string()));
    assert_eq!(&world.proxy.paths()[before..before + 2], [COMPLETE, CLAIM]);
    let summary = working.end().await;
    assert_eq!((summary.claimed, summary.succeeded), (1, 2));
    assert_eq!(world.job(done.id()).await.attempts.len(), 1);
    assert_eq!(spooled(&path), "");
}

#[tokio::test]
async fn reports_that_the_server_does_not_know_do_not_hold_up_a_worker() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spool");
    let other = World::start(&[]).await;
    other.operator.enqueue(NewJob::on("s")).await.unwrap();
    other.proxy.always(COMPLETE, Fate::Cut);
    let worker = other.worker().settle(Duration::from_millis(50)).spool(&path);
    let working = Working::begin(worker.handle("s", |_| async move { Ok(()) }));
    other.proxy.wait_for(COMPLETE, 1).await;
    assert_eq!(working.end().await.unreported, 1);
    assert_ne!(spooled(&path), "");

    let world = World::start(&[]).await;
    let job = world.operator.enqueue(NewJob::on("s")).await.unwrap();
    let working = Working::begin(world.worker().spool(&path).handle("s", |_| async move { Ok(()) }));
    assert_eq!(job.wait::<()>(PATIENCE).await.unwrap(), JobEnd::Succeeded(()));
    let summary = working.end().await;
    assert_eq!((summary.succeeded, summary.lost, summary.unreported), (1, 1, 0));
    assert_eq!(spooled(&path), "");
}

/// Handlers that end with the worker, and no time for their reports. A spool that is there keeps all of them; one that is
/// gone none, and the summary says so.
#[tokio::test]
async fn last_moment_reports_are_spooled_or_counted() {
    const JOBS: u64 = 40;
    for broken in [false, true] {
        let world = World::start(&[]).await;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spool");
        let mut ids = Vec::new();
        for _ in 0..JOBS {
            ids.push(world.operator.enqueue(NewJob::on("s")).await.unwrap().id());
        }
        world.proxy.always(COMPLETE, Fate::Cut);
        let worker = world.worker().spool(&path).concurrency(JOBS as usize);
        let worker = worker.drain(Duration::ZERO).settle(Duration::ZERO).handle("s", |job| async move {
            job.cancelled().await;
            Ok("finished")
        });
        let mut working = Working::begin(worker);
        for _ in 0..JOBS {
            working.claimed().await;
        }
        if broken {
            std::fs::remove_dir_all(&path).unwrap();
            std::fs::write(&path, "a file").unwrap();
        }
        let summary = working.end().await;
        let unkept = if broken { JOBS } else { 0 };
        assert_eq!((summary.unreported, summary.unkept), (JOBS, unkept), "{summary}");
        if !broken {
            let text = spooled(&path);
            assert!(ids.iter().all(|id| text.contains(&id.to_string())), "{text}");
        }
    }
}

#[tokio::test]
async fn two_workers_never_share_a_spool() {
    let world = World::start(&[]).await;
    let folder = tempfile::tempdir().unwrap();
    let worker = || world.worker().spool(folder.path().join("spool")).handle("s", |_| async move { Ok(()) });
    let working = Working::begin(worker());
    world.proxy.wait_for(CLAIM, 1).await;
    let error = worker().run().await.unwrap_err();
    assert!(matches!(error, WorkerError::Spool { .. }), "{error}");
    assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    working.end().await;
}

/// The spool's directory is gone and cannot be made: as a disk that is full or went away.
#[tokio::test]
async fn a_broken_spool_stops_the_intake_but_not_the_reports() {
    let world = World::start(&[]).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spool");
    let first = world.operator.enqueue(NewJob::on("s")).await.unwrap();
    let cue = Arc::new(Notify::new());
    let worker = {
        let cue = cue.clone();
        world.worker().spool(&path).handle("s", move |job| {
            let cue = cue.clone();
            async move {
                if job.payload::<serde_json::Value>()?.get("fast").is_none() {
                    cue.notified().await;
                }
                Ok(())
            }
        })
    };
    let mut working = Working::begin(worker);
    working.claimed().await;
    std::fs::remove_dir_all(&path).unwrap();
    std::fs::write(&path, "in the way").unwrap();
    cue.notify_one();
    working.event(|event| matches!(event, WorkerEvent::SpoolFailed { .. }).then_some(())).await;
    assert_eq!(first.wait::<()>(PATIENCE).await.unwrap(), JobEnd::Succeeded(()), "it is sent from memory");

    let claims = world.proxy.seen(CLAIM).len();
    let second = NewJob::on("s").payload(&serde_json::json!({ "fast": true }));
    let second = world.operator.enqueue(second).await.unwrap();
    // Longer than the spool is left alone between two tries.
    let still = second.wait::<()>(Duration::from_millis(1_200)).await.unwrap();
    assert_eq!(still, JobEnd::StillRunning);
    assert_eq!(world.job(second.id()).await.status, JobStatus::Queued);
    assert_eq!(world.proxy.seen(CLAIM).len(), claims, "nothing is claimed");
    let attempts = world.job(second.id()).await.attempts;
    assert!(
        attempts.iter().all(|a| a.outcome == Some(AttemptOutcome::Released)),
        "what an open claim brought goes back"
    );

    std::fs::remove_file(&path).unwrap();
    working.event(|event| matches!(event, WorkerEvent::SpoolMended).then_some(())).await;
    assert_eq!(second.wait::<()>(PATIENCE).await.unwrap(), JobEnd::Succeeded(()));
    assert_eq!(working.end().await.succeeded, 2);
}

#[tokio::test]
async fn a_server_that_dies_and_comes_back_costs_time_and_nothing_else() {
    let mut world = World::start(&["--lease-ttl", "1s"]).await;
    let folder = tempfile::tempdir().unwrap();
    let jobs: Vec<_> = (0..300).map(|n| NewJob::on("s").payload(&serde_json::json!({ "n": n }))).collect();
    world.operator.enqueue_all(&jobs).await.unwrap();
    let worker = world.worker().concurrency(10).batch(5).spool(folder.path().join("spool"));
    let worker = worker.handle("s", |job| async move { job.payload::<serde_json::Value>() });
    let mut working = Working::begin(worker);
    for _ in 0..3 {
        for _ in 0..20 {
            working.event(|event| matches!(event, WorkerEvent::Reported { .. }).then_some(())).await;
        }
        world.server.kill().await;
        world.server.restart().await;
    }
    let client = world.producer();
    for (n, job) in jobs.iter().enumerate() {
        let end = client.wait_for::<serde_json::Value>(job.job_id().unwrap(), PATIENCE).await.unwrap();
        assert_eq!(end, JobEnd::Succeeded(serde_json::json!({ "n": n })));
    }
    let summary = working.end().await;
    assert_eq!((summary.failed, summary.unreported), (0, 0));
    assert!(summary.succeeded <= 300, "{summary}");
}

#[tokio::test]
async fn a_retry_after_is_obeyed() {
    let world = World::start(&[]).await;
    let problem = r#"{"type":"t","title":"t","status":503,"code":"busy","detail":"d"}"#;
    let head = "503 Service Unavailable\r\ncontent-type: application/problem+json\r\nretry-after: 1";
    world.proxy.once(CLAIM, Fate::Answer(head, problem));
    world.proxy.once(COMPLETE, Fate::Answer(head, problem));
    let job = world.operator.enqueue(NewJob::on("s")).await.unwrap();
    let working = Working::begin(world.worker().handle("s", |_| async move { Ok(()) }));
    assert_eq!(job.wait::<()>(PATIENCE).await.unwrap(), JobEnd::Succeeded(()));
    for path in [CLAIM, COMPLETE] {
        let seen = world.proxy.seen(path);
        assert!(seen[1].at - seen[0].at >= Duration::from_secs(1), "{path}");
    }
    working.end().await;
}

#[tokio::test]
async fn a_token_that_is_taken_back_ends_the_run_with_its_reports_in_the_spool() {
    let world = World::start(&["--lease-ttl", "1s"]).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spool");
    let request = NewTokenRequest {
        azolla_id: None,
        role: Role::Worker,
        name: "t".into(),
        streams: Vec::new(),
        expires_at: None,
        expires_in_seconds: None,
        token_id: None,
    };
    let token = world.operator.new_token(&request).await.unwrap().read().unwrap();
    let client = Client::new(&world.proxy.url(), Some(&token.token), None).unwrap();
    let cue = Arc::new(Notify::new());
    let job = world.operator.enqueue(NewJob::on("s")).await.unwrap();
    let worker = {
        let cue = cue.clone();
        let worker = Worker::new(client).concurrency(2).claim_wait(Duration::from_millis(100)).spool(&path);
        worker.settle(Duration::from_millis(300)).handle("s", move |_: Job| {
            let cue = cue.clone();
            async move {
                cue.notified().await;
                Ok("done")
            }
        })
    };
    let mut working = Working::begin(worker);
    working.claimed().await;
    world.operator.revoke_token(&token.info.token_id).await.unwrap();
    working.event(|event| matches!(event, WorkerEvent::Draining { running: 1 }).then_some(())).await;
    cue.notify_one();
    let ending = working
        .event(|event| match event {
            WorkerEvent::Finished { ending, .. } => Some(ending),
            _ => None,
        })
        .await;
    assert_eq!(ending, JobEnding::Succeeded);
    let WorkerError::Refused { error, summary } = working.result().await.unwrap_err() else {
        panic!("the server refused it")
    };
    assert_eq!(error.status(), Some(401));
    assert_eq!((summary.claimed, summary.unreported), (1, 1));
    assert!(spooled(&path).contains(&job.id().to_string()));
}

#[tokio::test]
async fn leftovers_do_not_hide_that_the_token_is_refused() {
    let world = World::start(&[]).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spool");
    let job = world.operator.enqueue(NewJob::on("s")).await.unwrap();
    world.proxy.always(COMPLETE, Fate::Cut);
    let worker = world.worker().settle(Duration::from_millis(50)).spool(&path);
    let working = Working::begin(worker.handle("s", |_| async move { Ok("kept") }));
    world.proxy.wait_for(COMPLETE, 1).await;
    assert_eq!(working.end().await.unreported, 1);
    world.proxy.mend();

    let stranger = Client::new(&world.proxy.url(), Some("frn_no_such_token"), None).unwrap();
    let worker = Worker::new(stranger).settle(Duration::from_millis(50)).spool(&path);
    let working = Working::begin(worker.handle("s", |_| async move { Ok("again") }));
    let WorkerError::Refused { error, summary } = working.result().await.unwrap_err() else {
        panic!("the server refused it")
    };
    assert_eq!((error.status(), summary.unreported), (Some(401), 1));

    let working = Working::begin(world.worker().spool(&path).handle("s", |_| async move { Ok("again") }));
    assert_eq!(job.wait(PATIENCE).await.unwrap(), JobEnd::Succeeded("kept".to_string()));
    working.end().await;
}

/// A worker without a place to wait at the server must not turn into a storm.
#[tokio::test]
async fn claims_that_may_not_wait_are_paced() {
    let world = World::start(&[]).await;
    let worker = world.worker().claim_wait(Duration::ZERO).handle("s", |_| async move { Ok(()) });
    let working = Working::begin(worker);
    world.proxy.wait_for(CLAIM, 5).await;
    let seen = world.proxy.seen(CLAIM);
    assert!(seen[4].at - seen[0].at >= Duration::from_millis(400));
    working.end().await;
}

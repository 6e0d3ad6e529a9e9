//! What a handler may rely on, and what becomes of its answers.

use super::world::{CLAIM, COMPLETE, PATIENCE, Working, World};
use fernery_client::{Failure, Job, JobEnd, NewJob};
use fernery_core::{AttemptOutcome, JobStatus};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{Semaphore, mpsc};

#[tokio::test]
async fn streams_are_served_in_the_order_in_which_they_were_named() {
    let world = World::start(&[]).await;
    for stream in ["second", "second", "first", "first"] {
        world.operator.enqueue(NewJob::on(stream)).await.unwrap();
    }
    let (tell, mut order) = mpsc::unbounded_channel();
    let note = move |job: Job| {
        let told = tell.send(job.stream().to_string());
        async move { told.map_err(Failure::from) }
    };
    let working =
        Working::begin(world.worker().batch(1).handle("first", note.clone()).handle("second", note));
    for expected in ["first", "first", "second", "second"] {
        assert_eq!(order.recv().await.unwrap(), expected);
    }
    assert_eq!(working.end().await.succeeded, 4);
}

#[tokio::test]
async fn a_payload_arrives_and_a_result_leaves_to_the_digit() {
    let world = World::start(&[]).await;
    let payload: Box<serde_json::value::RawValue> = serde_json::from_str(r#"{"n":1.50e400}"#).unwrap();
    let job = world.operator.enqueue(NewJob::on("s").payload(&payload)).await.unwrap();
    let worker = world.worker().handle("s", |job| async move { Ok(job.raw_payload().to_owned()) });
    let working = Working::begin(worker);
    assert_eq!(world.ended(job.id()).await.result.unwrap().get(), payload.get());
    working.end().await;
}

#[tokio::test]
async fn every_way_to_fail_is_reported_and_the_worker_goes_on() {
    let world = World::start(&[]).await;
    let worker = world
        .worker()
        .handle("question-mark", |_| async move { Ok("x".parse::<u8>()?) })
        .handle(
            "permanent",
            |_| async move { Err::<(), _>(Failure::new("E1", "m").permanent().stack("at x")) },
        )
        .handle("panic", |job| async move {
            if job.attempt_no() > 0 {
                panic!("no job {}", job.attempt_no());
            }
            Ok(())
        })
        .handle("panic-at-once", |job: Job| {
            assert_eq!(job.attempt_no(), 0, "before the first await");
            async move { Ok(()) }
        })
        .handle("bad-payload", |job| async move { job.payload::<Vec<u8>>() })
        .handle("too-large", |_| async move { Ok("x".repeat(2 << 20)) })
        .handle("fine", |_| async move { Ok(()) });
    let working = Working::begin(worker);
    for (stream, code, message) in [
        ("question-mark", "failed", "invalid digit found in string"),
        ("permanent", "E1", "m"),
        ("panic", "panicked", "no job 1"),
        ("panic-at-once", "panicked", "before the first await"),
        ("bad-payload", "bad_payload", "invalid type"),
        ("too-large", "result_too_large", "the result has 2097154 bytes"),
    ] {
        let attempts = if matches!(stream, "permanent" | "bad-payload" | "too-large") { 5 } else { 1 };
        let job = world.operator.enqueue(NewJob::on(stream).max_attempts(attempts)).await.unwrap();
        let JobEnd::Dead(error) = job.wait::<()>(PATIENCE).await.unwrap() else { panic!("{stream}") };
        assert_eq!(error.code, code, "{stream}");
        assert!(error.message.contains(message), "{stream}: {}", error.message);
        assert_eq!(world.job(job.id()).await.attempts.len(), 1, "{stream}");
    }
    let job = world.operator.enqueue(NewJob::on("fine")).await.unwrap();
    assert_eq!(job.wait::<()>(PATIENCE).await.unwrap(), JobEnd::Succeeded(()));
    let summary = working.end().await;
    assert_eq!((summary.failed, summary.succeeded), (6, 1));
}

/// One result that the server refuses must not hold up those that shared its call.
#[tokio::test]
async fn a_result_that_the_server_refuses_fails_alone() {
    let world = World::start(&[]).await;
    let jobs: Vec<_> = (0..10).map(|n| NewJob::on("s").payload(&json!({ "deep": n == 3 }))).collect();
    world.operator.enqueue_all(&jobs).await.unwrap();
    let together = Arc::new(tokio::sync::Barrier::new(jobs.len()));
    let worker = world.worker().concurrency(10).handle("s", move |job| {
        let together = together.clone();
        async move {
            together.wait().await;
            let payload: serde_json::Value = job.payload()?;
            let mut result = json!(1);
            if payload["deep"] == true {
                // Nested deeper than the server takes.
                result = (0..60).fold(result, |inner, _| json!([inner]));
            }
            Ok(result)
        }
    });
    let working = Working::begin(worker);
    for (n, job) in jobs.iter().enumerate() {
        let ended = world.ended(job.job_id().unwrap()).await;
        if n == 3 {
            assert_eq!(ended.status, JobStatus::Dead);
            assert!(ended.error.unwrap().get().contains("result_refused"));
        } else {
            assert_eq!(ended.status, JobStatus::Succeeded);
        }
    }
    let summary = working.end().await;
    assert_eq!((summary.succeeded, summary.failed, summary.unreported), (9, 1, 0));
}

#[tokio::test]
async fn a_job_that_is_handed_back_comes_again_and_costs_no_attempt() {
    let world = World::start(&[]).await;
    let job = world.operator.enqueue(NewJob::on("s").max_attempts(1)).await.unwrap();
    let worker = world.worker().handle("s", |job| async move {
        if job.attempt_no() < 3 { Err(Failure::release()) } else { Ok(job.attempt_no()) }
    });
    let working = Working::begin(worker);
    assert_eq!(job.wait(PATIENCE).await.unwrap(), JobEnd::Succeeded(3));
    let outcomes: Vec<_> = world.job(job.id()).await.attempts.iter().map(|a| a.outcome.unwrap()).collect();
    use AttemptOutcome::{Released, Succeeded};
    assert_eq!(outcomes, [Released, Released, Succeeded]);
    assert_eq!(working.end().await.released, 2);
}

#[tokio::test]
async fn no_more_jobs_are_claimed_than_handlers_are_free() {
    let world = World::start(&[]).await;
    let jobs: Vec<_> = (0..20).map(|_| NewJob::on("s")).collect();
    world.operator.enqueue_all(&jobs).await.unwrap();
    let (at_once, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let let_go = Arc::new(Semaphore::new(0));
    let worker = {
        let (at_once, most, let_go) = (at_once.clone(), most.clone(), let_go.clone());
        world.worker().concurrency(3).handle("s", move |_| {
            let (at_once, most, let_go) = (at_once.clone(), most.clone(), let_go.clone());
            async move {
                most.fetch_max(at_once.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                let_go.acquire().await?.forget();
                at_once.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            }
        })
    };
    let mut working = Working::begin(worker);
    for _ in 0..3 {
        working.claimed().await;
    }
    let detail = world.operator.streams().await.unwrap().read().unwrap();
    let stream = detail.streams.iter().find(|s| s.stream.as_str() == "s").unwrap();
    assert_eq!((stream.running, stream.ready), (3, 17), "nothing is held that does not run");
    let_go.add_permits(20);
    for job in &jobs {
        world.ended(job.job_id().unwrap()).await;
    }
    assert_eq!(most.load(Ordering::SeqCst), 3);
    assert!(world.proxy.seen(CLAIM).iter().all(|claim| claim.body["max"].as_u64().unwrap() <= 3));
    assert_eq!(working.end().await.succeeded, 20);
}

#[tokio::test]
async fn one_claim_waits_where_no_job_is_and_several_are_open_where_many_are() {
    let world = World::start(&[]).await;
    let let_go = Arc::new(Semaphore::new(0));
    let worker = {
        let let_go = let_go.clone();
        world.worker().concurrency(8).batch(1).handle("s", move |_| {
            let let_go = let_go.clone();
            async move {
                let_go.acquire().await?.forget();
                Ok(())
            }
        })
    };
    let mut working = Working::begin(worker);
    world.proxy.wait_for(CLAIM, 1).await;
    world.operator.enqueue(NewJob::on("s")).await.unwrap();
    working.claimed().await;
    // The first, and the two that are open because it has brought something.
    assert!(world.proxy.seen(CLAIM).len() <= 3);
    let jobs: Vec<_> = (0..7).map(|_| NewJob::on("s")).collect();
    world.operator.enqueue_all(&jobs).await.unwrap();
    for _ in 0..7 {
        working.claimed().await;
    }
    let_go.add_permits(8);
    assert_eq!(working.end().await.succeeded, 8);
}

#[tokio::test]
async fn jobs_that_end_together_are_reported_together() {
    let world = World::start(&[]).await;
    let jobs: Vec<_> = (0..100).map(|_| NewJob::on("s")).collect();
    world.operator.enqueue_all(&jobs).await.unwrap();
    let together = Arc::new(tokio::sync::Barrier::new(100));
    let worker = world.worker().concurrency(100).handle("s", move |_| {
        let together = together.clone();
        async move {
            together.wait().await;
            Ok(())
        }
    });
    let working = Working::begin(worker);
    for job in &jobs {
        world.ended(job.job_id().unwrap()).await;
    }
    assert_eq!(world.proxy.seen(CLAIM)[0].body["max"], 100);
    let calls = world.proxy.seen(COMPLETE).len();
    assert!(calls <= 10, "{calls} calls for 100 reports");
    working.end().await;
}

#[tokio::test]
async fn a_worker_that_cannot_work_says_so_at_once() {
    let world = World::start(&[]).await;
    let fine = |_: Job| async move { Ok(()) };
    for (worker, why) in [
        (world.worker(), "1 to 32 streams"),
        (world.worker().handle("no name", fine), "a stream name has"),
        (world.worker().handle("s", fine).handle("s", fine), "there are two handlers for stream s"),
        (world.worker().handle("s", fine).concurrency(0), "at least one handler"),
        (world.worker().handle("s", fine).batch(1_001), "1 to 1000 jobs"),
        (world.worker().handle("s", fine).id(""), "worker_id"),
    ] {
        let error = worker.run().await.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    assert!(world.proxy.paths().is_empty());
}

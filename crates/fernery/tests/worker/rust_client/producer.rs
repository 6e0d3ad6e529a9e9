//! What a producer may rely on.

use super::proxy::Fate;
use super::world::{PATIENCE, World};
use fernery_client::wire::{EnqueueOutcome, JobDetail};
use fernery_client::{JobEnd, NewJob};
use serde_json::json;
use std::time::Duration;

const JOBS: &str = "/v1/jobs";

async fn depth(world: &World, stream: &str) -> i64 {
    let streams = world.operator.streams().await.unwrap().read().unwrap().streams;
    streams.iter().find(|s| s.stream.as_str() == stream).map_or(0, |s| s.ready + s.scheduled)
}

#[tokio::test]
async fn a_job_whose_reply_was_lost_is_stored_once() {
    let world = World::start(&[]).await;
    let producer = world.producer();
    let kinds = [
        NewJob::on("plain").payload(&json!({ "n": 1 })),
        NewJob::on("unique").unique("k").max_attempts(3),
        // Told relative to now, so the second call means another instant; it is the same job all the same.
        NewJob::on("later").delay(Duration::from_secs(3_600)).timeout(Duration::from_secs(60)),
    ];
    for job in kinds {
        world.proxy.once(JOBS, Fate::LoseReply);
        let before = world.proxy.seen(JOBS).len();
        let handle = producer.enqueue(job.clone()).await.unwrap();
        assert_eq!(world.proxy.seen(JOBS).len() - before, 2, "the call was repeated");
        assert_eq!(Some(handle.id()), job.job_id());
        assert!(handle.was_there_before(), "the first call had stored it");
    }
    for stream in ["plain", "unique", "later"] {
        assert_eq!(depth(&world, stream).await, 1, "{stream}");
    }
}

#[tokio::test]
async fn a_second_job_with_a_key_finds_the_first() {
    let world = World::start(&[]).await;
    let first = world.operator.enqueue(NewJob::on("s").unique("k")).await.unwrap();
    let second = world.operator.enqueue(NewJob::on("s").unique("k")).await.unwrap();
    assert!(!first.was_there_before() && second.was_there_before());
    assert_eq!(first.id(), second.id());
}

#[tokio::test]
async fn many_jobs_go_in_calls_of_bounded_size_and_none_twice() {
    let world = World::start(&[]).await;
    let jobs: Vec<_> = (0..2_500).map(|n| NewJob::on("bulk").payload(&json!({ "n": n }))).collect();
    world.proxy.once(JOBS, Fate::LoseReply);
    let answers = world.producer().enqueue_all(&jobs).await.unwrap();
    let calls: Vec<_> =
        world.proxy.seen(JOBS).iter().map(|seen| seen.body.as_array().unwrap().len()).collect();
    assert_eq!(calls, [1_000, 1_000, 1_000, 500], "the first one twice");
    assert_eq!(answers.len(), jobs.len());
    for (n, (job, answer)) in jobs.iter().zip(&answers).enumerate() {
        assert_eq!(job.job_id(), Some(answer.job_id));
        let expected = if n < 1_000 { EnqueueOutcome::Exists } else { EnqueueOutcome::Created };
        assert_eq!(answer.outcome, expected);
    }
    let again = world.operator.enqueue_all(&jobs).await.unwrap();
    assert!(again.iter().all(|answer| answer.outcome == EnqueueOutcome::Exists));
    assert_eq!(depth(&world, "bulk").await, 2_500);
}

#[tokio::test]
async fn a_producer_outlasts_a_restart_of_the_server() {
    let mut world = World::start(&[]).await;
    let producer = world.producer();
    world.server.kill().await;
    let enqueuing = tokio::spawn(async move { producer.enqueue(NewJob::on("s")).await });
    world.proxy.wait_for(JOBS, 2).await;
    world.server.restart().await;
    let handle = enqueuing.await.unwrap().unwrap();
    let stored: JobDetail = world.producer().job(handle.id(), Duration::ZERO).await.unwrap().read().unwrap();
    assert_eq!(stored.stream.as_str(), "s");
}

#[tokio::test]
async fn a_refusal_is_not_repeated() {
    let world = World::start(&[]).await;
    let error = world.producer().enqueue(NewJob::on("diazotroph:X")).await.unwrap_err();
    assert_eq!(error.status(), Some(422));
    assert_eq!(world.proxy.seen(JOBS).len(), 1);
}

#[tokio::test]
async fn every_end_is_told_as_what_it_is() {
    let world = World::start(&[]).await;
    let client = &world.operator;
    let new = |name: &str| NewJob::on(name).max_attempts(1);
    let good = client.enqueue(new("good")).await.unwrap();
    let bad = client.enqueue(new("bad")).await.unwrap();
    let cancelled = client.enqueue(new("cancelled")).await.unwrap();
    client.cancel(cancelled.id(), false).await.unwrap();
    let waiting = client.enqueue(new("nobody-works-here")).await.unwrap();
    let worker = world
        .worker()
        .handle("good", |job| async move { Ok((job.attempt_no(), "done")) })
        .handle("bad", |_| async move { Err::<(), _>(fernery_client::Failure::new("E42", "no luck")) });
    let working = super::world::Working::begin(worker);
    assert_eq!(good.wait(PATIENCE).await.unwrap(), JobEnd::Succeeded((1, "done".to_string())));
    let JobEnd::Dead(error) = bad.wait::<()>(PATIENCE).await.unwrap() else { panic!("it is dead") };
    assert_eq!((&*error.code, &*error.message), ("E42", "no luck"));
    assert_eq!(cancelled.wait::<()>(PATIENCE).await.unwrap(), JobEnd::Cancelled);
    let short = Duration::from_millis(50);
    assert_eq!(waiting.wait::<()>(short).await.unwrap(), JobEnd::StillRunning);
    let mistyped = good.wait::<u32>(PATIENCE).await.unwrap_err();
    assert!(mistyped.to_string().contains("its result has the wrong form"), "{mistyped}");
    working.end().await;
}

#[tokio::test]
async fn a_server_that_does_not_wait_as_asked_is_not_asked_without_a_pause() {
    let world = World::start(&[]).await;
    let job = world.operator.enqueue(NewJob::on("s")).await.unwrap();
    let path: &'static str = format!("{JOBS}/{}", job.id()).leak();
    let stored = world.operator.job(job.id(), Duration::ZERO).await.unwrap();
    let body: &'static str = String::from_utf8(stored.body.to_vec()).unwrap().leak();
    world.proxy.always(path, Fate::Answer("200 OK\r\ncontent-type: application/json", body));
    let end = world.producer().wait_for::<()>(job.id(), Duration::from_secs(1)).await.unwrap();
    assert_eq!(end, JobEnd::StillRunning);
    let calls = world.proxy.seen(path).len();
    assert!((2..=20).contains(&calls), "{calls} calls");
}

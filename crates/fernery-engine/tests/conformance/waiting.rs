//! Claims and readers that wait, through the engine above the store.
//!
//! Two kinds of engines: one whose backstop never comes, so that what it serves was brought by a nudge; and one that hears no
//! nudge at all, so that what it serves was found by the backstop.

use crate::support::backend::{Backend, TTL, settings};
use crate::support::singly::*;
use fernery_core::JobStatus;
use fernery_engine::signals::Signals;
use fernery_engine::store::{Ask, Claimed, DeadFilter};
use fernery_engine::{Engine, EngineSettings, Explanation};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinHandle, JoinSet};

on_every_backend!(
    an_enqueued_job_wakes_a_waiting_claim,
    a_promoted_job_wakes_a_waiting_claim,
    a_job_started_over_wakes_a_waiting_claim,
    a_job_given_back_wakes_a_waiting_claim,
    a_resumed_stream_wakes_a_waiting_claim,
    an_empty_first_stream_does_not_delay_the_second,
    a_woken_claim_asks_in_its_own_order,
    of_many_waiting_claims_each_gets_one_job,
    a_claim_that_hung_up_takes_no_job_with_it,
    a_claim_waits_no_longer_than_it_said,
    a_drained_engine_lets_its_claims_go,
    with_every_nudge_lost_everything_is_still_served,
    the_engine_brings_back_what_a_dead_worker_held,
    a_reader_hears_of_the_end_of_a_job,
    a_job_says_why_it_does_not_run,
);

/// Longer than any of this takes; a test that needs it has failed.
const LONG: Duration = Duration::from_secs(60);

/// Served by nudges or not at all: its own polls are days apart.
fn engine_without_backstop<B: Backend>(backend: &B) -> Engine {
    let mut settings = EngineSettings { store: settings(), ..EngineSettings::default() };
    settings.store.chance.fixed_fraction = Some(1e6);
    Engine::start(backend.store(), backend.signals(), settings)
}

/// Served by its own polls or not at all: no signal of the store reaches it.
fn engine_without_nudges<B: Backend>(backend: &B) -> Engine {
    let settings = EngineSettings { store: settings(), ..EngineSettings::default() };
    Engine::start(backend.store(), Arc::new(Signals::default()), settings)
}

/// A claim that waits, parked before this returns.
async fn waiting(engine: &Engine, ask: Ask) -> JoinHandle<Vec<Claimed>> {
    let claims = engine.waiting_claims() + 1;
    let own = engine.clone();
    let task = tokio::spawn(async move { own.claim(ask, LONG).await.expect("claim") });
    while engine.waiting_claims() < claims {
        tokio::task::yield_now().await;
    }
    // Parked, and once asked in vain since: from here on only a nudge moves it.
    engine.store().claimable(Vec::new()).await.expect("a round trip");
    task
}

async fn served(task: JoinHandle<Vec<Claimed>>) -> Claimed {
    let mut claimed = task.await.expect("no panic");
    assert_eq!(claimed.len(), 1, "served by nobody within {LONG:?}");
    claimed.remove(0)
}

async fn an_enqueued_job_wakes_a_waiting_claim<B: Backend>() {
    let backend = B::open(settings()).await;
    let engine = engine_without_backstop(&backend);
    for _ in 0..5 {
        let claim = waiting(&engine, ask(&["s"], 1)).await;
        let job_id = enqueue(engine.store(), job_on("s")).await.job_id;
        assert_eq!(served(claim).await.job_id, job_id);
    }
    engine.close().await;
}

async fn a_promoted_job_wakes_a_waiting_claim<B: Backend>() {
    let backend = B::open(settings()).await;
    let engine = engine_without_backstop(&backend);
    let job_id = enqueue(engine.store(), delayed("s", TTL)).await.job_id;
    let claim = waiting(&engine, ask(&["s"], 1)).await;
    backend.advance(TTL).await;
    // By the engine's own promoter or by this: either nudges.
    promote(engine.store()).await;
    assert_eq!(served(claim).await.job_id, job_id);
    engine.close().await;
}

async fn a_job_started_over_wakes_a_waiting_claim<B: Backend>() {
    let backend = B::open(settings()).await;
    let engine = engine_without_backstop(&backend);
    let job_id = bury(engine.store(), job_on("s")).await;
    let claim = waiting(&engine, ask(&["s"], 1)).await;
    assert_eq!(engine.store().redrive(DeadFilter::default(), 10).await.expect("redrive").moved, 1);
    let claimed = served(claim).await;
    assert_eq!(claimed.job_id, job_id);
    fail_for_good(engine.store(), proof(&claimed)).await;
    let claim = waiting(&engine, ask(&["s"], 1)).await;
    engine.store().retry(job_id).await.expect("retry");
    assert_eq!(served(claim).await.job_id, job_id);
    engine.close().await;
}

async fn a_job_given_back_wakes_a_waiting_claim<B: Backend>() {
    let backend = B::open(settings()).await;
    let engine = engine_without_backstop(&backend);
    let held = enqueue_and_claim(engine.store(), job_on("s")).await;
    let claim = waiting(&engine, ask(&["s"], 1)).await;
    release(engine.store(), proof(&held)).await;
    assert_eq!(served(claim).await.job_id, held.job_id);
    let claim = waiting(&engine, ask(&["s"], 1)).await;
    backend.advance(TTL).await;
    assert_eq!(reap(engine.store()).await, 1);
    assert_eq!(served(claim).await.job_id, held.job_id, "by the reaper");
    engine.close().await;
}

async fn a_resumed_stream_wakes_a_waiting_claim<B: Backend>() {
    let backend = B::open(settings()).await;
    let engine = engine_without_backstop(&backend);
    let store = engine.store();
    let first = enqueue(store, job_on("s")).await.job_id;
    let second = enqueue(store, job_on("s")).await.job_id;
    store.set_paused(stream("s"), true).await.expect("pause");
    let claims = [waiting(&engine, ask(&["s"], 1)).await, waiting(&engine, ask(&["s"], 1)).await];
    assert_eq!(store.set_paused(stream("s"), false).await, Ok(true));
    let mut got = BTreeSet::new();
    for claim in claims {
        got.insert(served(claim).await.job_id);
    }
    assert_eq!(got, BTreeSet::from([first, second]));
    engine.close().await;
}

async fn an_empty_first_stream_does_not_delay_the_second<B: Backend>() {
    let backend = B::open(settings()).await;
    let engine = engine_without_backstop(&backend);
    let claim = waiting(&engine, ask(&["high", "normal", "low"], 1)).await;
    let job_id = enqueue(engine.store(), job_on("low")).await.job_id;
    assert_eq!(served(claim).await.job_id, job_id);
    engine.close().await;
}

async fn a_woken_claim_asks_in_its_own_order<B: Backend>() {
    let backend = B::open(settings()).await;
    let engine = engine_without_backstop(&backend);
    for _ in 0..10 {
        let claim = waiting(&engine, ask(&["high", "low"], 1)).await;
        let jobs = vec![job_on("low"), job_on("low"), job_on("high")];
        engine.store().enqueue(jobs).await.expect("enqueue");
        assert_eq!(
            served(claim).await.stream,
            stream("high"),
            "what is ready at the same time goes by order"
        );
        engine.store().claim(ask(&["low"], 5)).await.expect("claim");
    }
    engine.close().await;
}

async fn of_many_waiting_claims_each_gets_one_job<B: Backend>() {
    const CLAIMS: usize = 64;
    let backend = B::open(settings()).await;
    let engine = engine_without_backstop(&backend);
    let mut claims = JoinSet::new();
    for _ in 0..CLAIMS {
        let claim = waiting(&engine, ask(&["s", "t"], 1)).await;
        claims.spawn(served(claim));
    }
    let half = |name: &'static str| (0..CLAIMS / 2).map(move |_| job_on(name));
    engine.store().enqueue(half("s").chain(half("t")).collect()).await.expect("enqueue");
    let got: BTreeSet<_> = claims.join_all().await.iter().map(|claimed| claimed.job_id).collect();
    assert_eq!(got.len(), CLAIMS);
    assert_eq!(engine.waiting_claims(), 0);
    engine.close().await;
}

async fn a_claim_that_hung_up_takes_no_job_with_it<B: Backend>() {
    let backend = B::open(settings()).await;
    let engine = engine_without_backstop(&backend);
    for round in 0..20 {
        let gone = waiting(&engine, ask(&["s"], 1)).await;
        let stays = waiting(&engine, ask(&["s"], 1)).await;
        if round % 2 == 0 {
            gone.abort();
            enqueue(engine.store(), job_on("s")).await;
        } else {
            enqueue(engine.store(), job_on("s")).await;
            gone.abort();
        }
        // It was too late to hang up where the job had arrived.
        let arrived = gone.await.unwrap_or_default();
        if arrived.is_empty() {
            served(stays).await;
        } else {
            stays.abort();
            let _ = stays.await;
        }
    }
    let left = counts(engine.store(), "s").await;
    assert_eq!((left.ready, left.running), (0, 20));
    engine.close().await;
}

async fn a_claim_waits_no_longer_than_it_said<B: Backend>() {
    let backend = B::open(settings()).await;
    let engine = engine_without_backstop(&backend);
    for wait_ms in [0, 1, 50] {
        let wait = Duration::from_millis(wait_ms);
        let since = fernery_engine::door::stop_watch();
        assert!(engine.claim(ask(&["s"], 1), wait).await.expect("claim").is_empty());
        let took = since.elapsed();
        assert!(took >= wait && took < wait + LONG / 4, "{took:?} of {wait:?}");
    }
    assert_eq!(engine.waiting_claims(), 0, "nobody is left standing");
    engine.close().await;
}

async fn a_drained_engine_lets_its_claims_go<B: Backend>() {
    let backend = B::open(settings()).await;
    let engine = engine_without_backstop(&backend);
    let claim = waiting(&engine, ask(&["s", "t"], 1)).await;
    engine.drain();
    assert!(claim.await.expect("no panic").is_empty());
    enqueue(engine.store(), job_on("s")).await;
    assert!(engine.claim(ask(&["s"], 1), LONG).await.expect("claim").is_empty(), "no new claims");
    engine.close().await;
}

/// Invariant 7: a nudge lost costs time, never a job.
async fn with_every_nudge_lost_everything_is_still_served<B: Backend>() {
    let backend = B::open(settings()).await;
    let engine = engine_without_nudges(&backend);
    let store = engine.store();
    let claim = waiting(&engine, ask(&["s"], 1)).await;
    let job_id = enqueue(store, job_on("s")).await.job_id;
    let claimed = served(claim).await;
    assert_eq!(claimed.job_id, job_id, "enqueued");

    let claim = waiting(&engine, ask(&["s"], 1)).await;
    fail_for_good(store, proof(&claimed)).await;
    store.redrive(DeadFilter::default(), 1).await.expect("redrive");
    let claimed = served(claim).await;
    assert_eq!(claimed.job_id, job_id, "redriven");

    let claim = waiting(&engine, ask(&["s"], 1)).await;
    fail(store, proof(&claimed)).await;
    backend.advance(TTL).await;
    promote(store).await;
    let claimed = served(claim).await;
    assert_eq!(claimed.job_id, job_id, "promoted");

    store.set_paused(stream("s"), true).await.expect("pause");
    release(store, proof(&claimed)).await;
    let claim = waiting(&engine, ask(&["s"], 1)).await;
    store.set_paused(stream("s"), false).await.expect("resume");
    let claimed = served(claim).await;
    assert_eq!(claimed.job_id, job_id, "resumed");

    let reader = engine.clone();
    let read = tokio::spawn(async move { reader.job(job_id, LONG).await.expect("read").expect("stored") });
    complete(store, proof(&claimed)).await;
    assert_eq!(read.await.expect("no panic").brief.status, JobStatus::Succeeded, "the end is found too");
    engine.close().await;
}

async fn the_engine_brings_back_what_a_dead_worker_held<B: Backend>() {
    let backend = B::open(settings()).await;
    let settings = EngineSettings {
        store: settings(),
        reap_interval: Duration::from_millis(20),
        ..EngineSettings::default()
    };
    let engine = Engine::start(backend.store(), backend.signals(), settings);
    let held = enqueue_and_claim(engine.store(), job_on("s")).await;
    let claim = waiting(&engine, ask(&["s"], 1)).await;
    backend.advance(TTL).await;
    let claimed = served(claim).await;
    assert_eq!((claimed.job_id, claimed.attempt_no), (held.job_id, 2));
    engine.close().await;
}

async fn a_reader_hears_of_the_end_of_a_job<B: Backend>() {
    let backend = B::open(settings()).await;
    let engine = engine_without_backstop(&backend);
    let claimed = enqueue_and_claim(engine.store(), job_on("s")).await;
    let job_id = claimed.job_id;
    let soon = engine.job(job_id, Duration::from_millis(20)).await.expect("read").expect("stored");
    assert_eq!(soon.brief.status, JobStatus::Running, "it has not ended within the wait");
    let reader = engine.clone();
    let read = tokio::spawn(async move { reader.job(job_id, LONG).await.expect("read").expect("stored") });
    complete(engine.store(), proof(&claimed)).await;
    assert_eq!(read.await.expect("no panic").brief.status, JobStatus::Succeeded);
    engine.close().await;
}

async fn a_job_says_why_it_does_not_run<B: Backend>() {
    let backend = B::open(settings()).await;
    let engine = engine_without_backstop(&backend);
    let store = engine.store();
    let why = async |job_id| engine.explain(job_id).await.expect("read").expect("stored").1;
    let job_id = enqueue(store, job_on("s")).await.job_id;
    assert_eq!(why(job_id).await, Explanation::NoWorker { last_polled_at: None });
    engine.claim(ask(&["s"], 0), Duration::ZERO).await.expect("claim");
    assert_eq!(why(job_id).await, Explanation::Waiting { ready: 1 });
    store.set_paused(stream("s"), true).await.expect("pause");
    assert_eq!(why(job_id).await, Explanation::StreamPaused);
    store.set_paused(stream("s"), false).await.expect("resume");
    let claimed = claim(store, "s").await;
    let held = Explanation::Held {
        worker_id: "worker-1".to_string(),
        until: claimed.expires_at,
        expired: false,
        cancel_requested: false,
    };
    assert_eq!(why(job_id).await, held);
    fail(store, proof(&claimed)).await;
    let until = view(store, job_id).await.brief.run_at;
    assert_eq!(why(job_id).await, Explanation::Scheduled { until });
    store.cancel(job_id, false).await.expect("cancel");
    assert_eq!(why(job_id).await, Explanation::Ended(JobStatus::Cancelled));
    engine.close().await;
}

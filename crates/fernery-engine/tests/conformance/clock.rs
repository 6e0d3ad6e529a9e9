//! A clock that starts far ahead deletes nothing.

use crate::support::backend::{Backend, settings};
use crate::support::singly::*;
use fernery_core::JobStatus;
use fernery_engine::clock_step::STEP_MAX;
use fernery_engine::{Engine, EngineSettings};
use std::time::Duration;

on_backend!(on_sqlite, Sqlite, a_clock_far_ahead_waits_for_a_word, a_long_night_is_believed);
on_backend!(on_postgres, Postgres, a_clock_far_ahead_waits_for_a_word, a_long_night_is_believed);

const DAY: Duration = Duration::from_secs(24 * 3600);

fn engine<B: Backend>(backend: &B) -> Engine {
    let dead_letter_retention = Some(7 * DAY);
    let settings = EngineSettings { store: settings(), dead_letter_retention, ..EngineSettings::default() };
    Engine::start(backend.store(), backend.signals(), settings)
}

async fn a_clock_far_ahead_waits_for_a_word<B: Backend>() {
    let mut backend = B::open(settings()).await;
    let done = enqueue_and_claim(&*backend.store(), job_on("s")).await;
    complete(&*backend.store(), proof(&done)).await;
    let dead = bury(&*backend.store(), job_on("s")).await;
    backend.store().tidy().await.expect("tidy");

    backend.restart_ahead(400 * DAY).await;
    let (engine, store) = (engine(&backend), backend.store());
    let doubt = store.clock_doubt().await.expect("judged").expect("it is in doubt");
    assert!(doubt.ahead() > 399 * DAY && doubt.ahead() <= 400 * DAY, "{doubt}");
    assert_eq!(engine.retain().await, Ok(0), "nothing is old yet");
    // What is kept from now on is no proof that the clock is right.
    store.tidy().await.expect("tidy");
    assert!(store.clock_doubt().await.expect("judged").is_some());
    assert_eq!(engine.retain().await, Ok(0));
    assert_eq!(status(&*store, done.job_id).await, JobStatus::Succeeded);
    assert_eq!(status(&*store, dead).await, JobStatus::Dead);

    // What is due goes by the calendar, what runs out by the clock that set it.
    let later = enqueue(&*store, delayed("t", DAY)).await.job_id;
    let (_, why) = engine.explain(later).await.expect("read").expect("there");
    assert_eq!(why.code(), "scheduled");
    backend.advance(DAY).await;
    promote(&*store).await;
    let (_, why) = engine.explain(later).await.expect("read").expect("there");
    assert_eq!(why.code(), "no_worker");
    let held = claim(&*store, "t").await;
    let left = held.expires_at.since(store.lease_time());
    assert!(left > settings().lease_ttl / 2 && left <= settings().lease_ttl, "{left:?}");

    store.confirm_clock().await.expect("confirmed");
    assert_eq!(store.clock_doubt().await, Ok(None));
    assert_eq!(engine.retain().await, Ok(2), "retention resumes");
}

async fn a_long_night_is_believed<B: Backend>() {
    let mut backend = B::open(settings()).await;
    let done = enqueue_and_claim(&*backend.store(), job_on("s")).await;
    complete(&*backend.store(), proof(&done)).await;
    backend.advance(7 * DAY).await;
    backend.store().tidy().await.expect("tidy");
    backend.restart_ahead(STEP_MAX).await;
    let engine = engine(&backend);
    assert_eq!(backend.store().clock_doubt().await, Ok(None));
    assert_eq!(engine.retain().await, Ok(1));
}

//! Invariant 19: what was answered with success is still there after a kill.

use crate::support::backend::{Backend, TTL, settings};
use crate::support::dump::dump;
use crate::support::singly::*;
use fernery_core::JobStatus;
use fernery_core::job::report::Answer;
use fernery_engine::store::{BeatAnswer, CancelAnswer, Enqueued, NewJob, Retention};
use std::time::Duration;

on_every_backend!(
    everything_answered_survives_a_kill,
    everything_answered_survives_a_restart,
    a_lease_and_its_token_outlive_the_process,
    a_report_whose_reply_was_lost_is_answered_again,
    a_restart_neither_ends_nor_prolongs_a_lease,
    places_and_numbers_go_on_after_a_restart,
);

/// A job in every place, and every kind of end.
async fn a_bit_of_everything<B: Backend>(backend: &B) {
    let store = &*backend.store();
    enqueue(store, keyed("s", "k")).await;
    enqueue(store, delayed("s", TTL)).await;
    let done = enqueue_and_claim(store, job_on("done")).await;
    complete(store, proof(&done)).await;
    let failed = enqueue_and_claim(store, job_on("failed")).await;
    fail(store, proof(&failed)).await;
    let released = enqueue_and_claim(store, job_on("released")).await;
    release(store, proof(&released)).await;
    bury(store, job_on("dead")).await;
    let cancelled = enqueue(store, job_on("cancelled")).await.job_id;
    store.cancel(cancelled, false).await.expect("cancel");
    let held = enqueue_and_claim(store, job_on("held")).await;
    backend.advance(Duration::from_secs(3)).await;
    heartbeat(store, proof(&held)).await;
    store.cancel(held.job_id, false).await.expect("cancel");
    store.set_paused(stream("s"), true).await.expect("pause");
}

async fn everything_answered_survives_a_kill<B: Backend>() {
    let mut backend = B::open(settings()).await;
    a_bit_of_everything(&backend).await;
    let before = dump(&*backend.store()).await;
    backend.crash().await;
    assert_eq!(dump(&*backend.store()).await, before);
    backend.crash().await;
    assert_eq!(dump(&*backend.store()).await, before, "and another");
}

async fn everything_answered_survives_a_restart<B: Backend>() {
    let mut backend = B::open(settings()).await;
    a_bit_of_everything(&backend).await;
    let before = dump(&*backend.store()).await;
    backend.restart().await;
    assert_eq!(dump(&*backend.store()).await, before);
    backend.store().tidy().await.expect("tidy");
    backend.restart().await;
    assert_eq!(dump(&*backend.store()).await, before);
}

async fn a_lease_and_its_token_outlive_the_process<B: Backend>() {
    let mut backend = B::open(settings()).await;
    let claimed = enqueue_and_claim(&*backend.store(), job_on("s")).await;
    backend.crash().await;
    let store = backend.store();
    assert!(claim_any(&*store, "s").await.is_none(), "it is held");
    let beat = heartbeat(&*store, proof(&claimed)).await;
    assert!(matches!(beat, BeatAnswer::Extended { .. }), "{beat:?}");
    drop(store);
    backend.crash().await;
    let store = backend.store();
    let accepted = Answer::Accepted { status: JobStatus::Succeeded };
    assert_eq!(complete(&*store, proof(&claimed)).await, accepted);
}

async fn a_report_whose_reply_was_lost_is_answered_again<B: Backend>() {
    let mut backend = B::open(settings()).await;
    let id = fernery_core::JobId::from_uuid(uuid::Uuid::from_u128(7));
    let again = || NewJob { job_id: Some(id), ..job_on("s") };
    let claimed = enqueue_and_claim(&*backend.store(), again()).await;
    complete(&*backend.store(), proof(&claimed)).await;
    let forced = enqueue_and_claim(&*backend.store(), job_on("t")).await;
    backend.store().cancel(forced.job_id, true).await.expect("cancel");
    let before = dump(&*backend.store()).await;
    backend.crash().await;
    let store = backend.store();
    let duplicate = Answer::Duplicate { status: JobStatus::Succeeded };
    assert_eq!(complete(&*store, proof(&claimed)).await, duplicate);
    let exists = enqueue_any(&*store, again()).await;
    assert!(matches!(exists, Enqueued::Exists(_)), "{exists:?}");
    let ended = CancelAnswer::Ended(JobStatus::Cancelled);
    assert_eq!(store.cancel(forced.job_id, true).await, Ok(ended));
    assert_eq!(dump(&*store).await, before);
}

async fn a_restart_neither_ends_nor_prolongs_a_lease<B: Backend>() {
    let mut backend = B::open(settings()).await;
    backend.advance(TTL).await;
    let claimed = enqueue_and_claim(&*backend.store(), job_on("s")).await;
    backend.crash().await;
    assert_eq!(reap(&*backend.store()).await, 0, "a restart ends no lease");
    backend.advance(TTL).await;
    assert_eq!(reap(&*backend.store()).await, 1, "nor prolongs one");
    assert_eq!(status(&*backend.store(), claimed.job_id).await, JobStatus::Queued);
}

/// Invariant 9, and no two messages with one number: not even where everything that had the highest one is gone.
async fn places_and_numbers_go_on_after_a_restart<B: Backend>() {
    let mut backend = B::open(settings()).await;
    let mut last_seq = 0;
    for round in 0..4 {
        let store = backend.store();
        let claimed = enqueue_and_claim(&*store, job_on("s")).await;
        assert!(claimed.message.seq > last_seq, "round {round}: {} after {last_seq}", claimed.message.seq);
        last_seq = claimed.message.seq;
        complete(&*store, proof(&claimed)).await;
        backend.advance(Duration::from_secs(1)).await;
        store.retain(Retention::all(Duration::ZERO), 10).await.expect("retain");
        drop(store);
        if round % 2 == 0 {
            backend.crash().await;
        } else {
            backend.restart().await;
        }
    }
}

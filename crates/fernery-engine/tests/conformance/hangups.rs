//! Callers that leave before they are answered, and what they must not take with them.

use crate::support::backend::{Backend, TTL, settings};
use crate::support::consistency::assert_consistent;
use crate::support::singly::*;
use fernery_core::JobStatus;
use fernery_engine::store::{CancelAnswer, Store};
use std::pin::Pin;
use std::task::Poll;

on_every_backend!(
    a_cancel_is_not_lost_to_a_claim_that_hung_up,
    an_enqueue_that_hung_up_stores_all_or_nothing,
    closing_puts_back_what_nobody_took,
    jobs_of_a_claim_that_hung_up_go_back_with_a_higher_version,
);

async fn poll_once<T>(mut future: Pin<&mut (dyn Future<Output = T> + Send)>) -> Poll<T> {
    std::future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
}

/// The first claim of a store looks for expired leases before it is handed in; the others need not.
async fn look_once(store: &dyn Store) {
    assert!(claim_any(store, "s").await.is_none());
}

/// Invariant 3: a wish to cancel that was taken down is carried out, also when the claim that it met is undone.
async fn a_cancel_is_not_lost_to_a_claim_that_hung_up<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = backend.store();
    look_once(&*store).await;
    let mut met = 0;
    for round in 0..40 {
        let job_id = enqueue(&*store, job_on("s")).await.job_id;
        let mut claiming = store.claim(ask(&["s"], 1));
        // Handed in, and perhaps already answered.
        let claimed = poll_once(claiming.as_mut()).await;
        let mut cancelling = store.cancel(job_id, false);
        let early = poll_once(cancelling.as_mut()).await;
        // Gone after the cancel was handed in, or after it was answered.
        let stays = (round % 2 == 0).then_some(claiming);
        let cancelled = match early {
            Poll::Ready(answer) => answer,
            Poll::Pending => cancelling.await,
        };
        met += usize::from(cancelled.expect("cancel") == CancelAnswer::Requested);
        drop((stays, claimed));
        // What the claim took goes back or runs out: neither may bring the job back to life.
        backend.advance(TTL * 2).await;
        // Once in any case: a claim that comes long after the last look would look first, too.
        store.reap(100).await.expect("reap");
        while status(&*store, job_id).await == JobStatus::Running {
            store.reap(100).await.expect("reap");
        }
        assert_eq!(status(&*store, job_id).await, JobStatus::Cancelled, "round {round}");
    }
    assert!(met > 0, "some claims were met by their cancel");
    assert_consistent(&*store).await;
}

async fn an_enqueue_that_hung_up_stores_all_or_nothing<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = backend.store();
    for _ in 0..20 {
        let mut storing = store.enqueue(vec![job_on("s"), job_on("s"), job_on("s")]);
        let _ = poll_once(storing.as_mut()).await;
    }
    // A call that is answered after them tells that they are through.
    enqueue(&*store, job_on("t")).await;
    assert_consistent(&*store).await;
    assert_eq!(counts(&*store, "s").await.ready % 3, 0);
}

async fn closing_puts_back_what_nobody_took<B: Backend>() {
    let mut backend = B::open(settings()).await;
    let store = backend.store();
    look_once(&*store).await;
    for _ in 0..20 {
        enqueue(&*store, job_on("s")).await;
    }
    for _ in 0..20 {
        let mut claiming = store.claim(ask(&["s"], 1));
        if let Poll::Ready(taken) = poll_once(claiming.as_mut()).await {
            // Answered before it could hang up: this one is held.
            release(&*store, proof(&taken.expect("claim")[0])).await;
        }
    }
    drop(store);
    backend.restart().await;
    let left = counts(&*backend.store(), "s").await;
    assert_eq!((left.ready, left.running), (20, 0), "no lease has to run out first");
}

/// Invariant 9: whoever hung up may still have seen what it was given.
async fn jobs_of_a_claim_that_hung_up_go_back_with_a_higher_version<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = backend.store();
    look_once(&*store).await;
    let job_id = enqueue(&*store, job_on("s")).await.job_id;
    let mut claiming = store.claim(ask(&["s"], 1));
    if poll_once(claiming.as_mut()).await.is_ready() {
        // The model answers at once: nothing can be taken and not delivered.
        return;
    }
    let taken = loop {
        if let Some(open) = view(&*store, job_id).await.attempts.pop() {
            break open;
        }
    };
    drop(claiming);
    while status(&*store, job_id).await == JobStatus::Running {
        tokio::task::yield_now().await;
    }
    let again = claim(&*store, "s").await;
    let held = view(&*store, job_id).await.attempts.pop().expect("an open attempt");
    assert_eq!(
        (again.attempt_no, held.attempt_no),
        (taken.attempt_no, taken.attempt_no),
        "as if never claimed"
    );
    assert!(
        held.claim_version > taken.claim_version + 1,
        "{} after {}",
        held.claim_version,
        taken.claim_version
    );
    assert_consistent(&*store).await;
}

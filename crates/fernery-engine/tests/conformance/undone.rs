//! Claims that were carried out and never delivered. In the model a claim is answered at once, and there is no such thing.

use crate::support::backend::{Backend, settings};
use crate::support::singly::*;

on_backend!(on_sqlite, Sqlite, a_claim_that_was_undone_has_raised_the_version);
on_backend!(on_postgres, Postgres, a_claim_that_was_undone_has_raised_the_version);

/// Invariant 9: the undone lease and the one that follows it must not share a number.
async fn a_claim_that_was_undone_has_raised_the_version<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    assert!(claim_any(store, "s").await.is_none());
    let job_id = enqueue(store, job_on("s")).await.job_id;
    let mut claiming = store.claim(ask(&["s"], 1));
    let handed_in =
        std::future::poll_fn(|context| std::task::Poll::Ready(claiming.as_mut().poll(context))).await;
    assert!(handed_in.is_pending(), "not answered yet");
    while counts(store, "s").await.running == 0 {
        tokio::task::yield_now().await;
    }
    let undone = version(store, job_id).await;
    drop(claiming);
    while counts(store, "s").await.ready == 0 {
        tokio::task::yield_now().await;
    }
    let claimed = claim(store, "s").await;
    assert_eq!((claimed.job_id, claimed.attempt_no), (job_id, 1), "no attempt was made");
    assert_eq!(version(store, job_id).await, undone + 2, "one step to undo it, one to claim again");
}

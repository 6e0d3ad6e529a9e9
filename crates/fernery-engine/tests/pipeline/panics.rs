//! Work that panics fails alone.

use crate::support::backend::{Backend, settings};
use crate::support::singly::*;
use fernery_core::JobStatus;
use fernery_engine::StoreError;
use fernery_engine::pipeline::{Sql, Work};
use fernery_engine::store::Store;
use std::sync::Arc;
use std::sync::mpsc;

on_both_backends!(a_call_that_panics_takes_nobody_with_it, a_read_that_panics_takes_nobody_with_it);

type Called = tokio::task::JoinHandle<Result<(), StoreError>>;

/// Hands in an act; once this returns it waits for its turn, or has it.
async fn call(store: &Arc<dyn Store>, subject: &str, work: Work) -> Called {
    let (store, subject) = (store.clone(), subject.to_string());
    let called = tokio::spawn(async move { store.act(subject, work).await });
    tokio::task::yield_now().await;
    called
}

fn enqueues(id: u128) -> Work {
    let job = fernery_engine::store::NewJob { job_id: Some(job_id(id)), ..job_on("s") };
    Box::new(move |sql: &mut dyn Sql| sql.enqueue(job.clone()))
}

fn job_id(id: u128) -> fernery_core::JobId {
    fernery_core::JobId::from_uuid(uuid::Uuid::from_u128(id))
}

async fn a_call_that_panics_takes_nobody_with_it<B: Backend>() {
    let mut backend = B::open(settings()).await;
    let store = backend.store();
    // The first one is kept busy, so that the others wait and share a transaction.
    let (go, wait) = mpsc::channel::<()>();
    let mut first = enqueues(1);
    let busy = call(
        &store,
        "a",
        Box::new(move |sql| {
            let _ = wait.recv();
            first(sql)
        }),
    )
    .await;
    let before = call(&store, "b", enqueues(2)).await;
    let mut half = enqueues(3);
    let bad = call(
        &store,
        "c",
        Box::new(move |sql| {
            half(sql)?;
            panic!("no luck")
        }),
    )
    .await;
    let after = call(&store, "d", enqueues(4)).await;
    drop(go);
    let bad = bad.await.expect("the caller lives");
    assert!(matches!(bad, Err(StoreError::Corrupt(_))), "{bad:?}");
    for good in [busy, before, after] {
        assert_eq!(good.await.expect("the caller lives"), Ok(()));
    }
    for (id, there) in [(1, true), (2, true), (3, false), (4, true)] {
        let found = store.job(job_id(id)).await.expect("read");
        assert_eq!(found.is_some(), there, "{id}");
    }
    // And the store goes on, in this process and the next.
    let done = claim(&*store, "s").await;
    complete(&*store, proof(&done)).await;
    assert_eq!(counts(&*store, "s").await.ready, 2);
    drop(store);
    backend.restart().await;
    assert_eq!(status(&*backend.store(), done.job_id).await, JobStatus::Succeeded);
}

async fn a_read_that_panics_takes_nobody_with_it<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = backend.store();
    for _ in 0..20 {
        let read = store.read(Box::new(|_| panic!("no luck"))).await;
        assert!(matches!(read, Err(StoreError::Corrupt(_))), "{read:?}");
    }
    assert_eq!(store.read(Box::new(|_| Ok(()))).await, Ok(()));
}

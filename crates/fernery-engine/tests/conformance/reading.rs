//! What a reader sees: counts, lists, pages.

use crate::support::backend::{Backend, START, TTL, settings};
use crate::support::dump::{all_jobs, dump};
use crate::support::singly::*;
use fernery_core::{JobId, JobStatus, limits};
use fernery_engine::store::{Cursor, JobFilter, NewJob, Retention, Store, StreamCounts};
use std::collections::BTreeSet;
use std::time::Duration;

on_every_backend!(
    counts_follow_every_move,
    counts_are_the_same_before_and_after_tidying,
    every_job_is_in_exactly_one_place,
    a_list_has_every_job_once_newest_first,
    queued_jobs_are_listed_as_they_would_be_claimed,
    a_page_goes_on_where_the_last_one_ended_though_jobs_come_and_go,
    a_producer_sees_its_own_jobs,
    a_filter_that_matches_little_looks_at_little,
    the_oldest_wait_of_a_stream_is_shown,
);

fn by_status(status: JobStatus) -> JobFilter {
    JobFilter { status: Some(status), ..JobFilter::default() }
}

async fn counts_follow_every_move<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let zero = StreamCounts::default;
    let claimed = enqueue(store, job_on("s")).await;
    assert_eq!(counts(store, "s").await, StreamCounts { ready: 1, ..zero() }, "enqueued");
    let first = claim(store, "s").await;
    assert_eq!(counts(store, "s").await, StreamCounts { running: 1, ..zero() }, "claimed");
    heartbeat(store, proof(&first)).await;
    heartbeat(store, forged(&first)).await;
    complete(store, forged(&first)).await;
    assert_eq!(counts(store, "s").await, StreamCounts { running: 1, ..zero() }, "refused");
    release(store, proof(&first)).await;
    assert_eq!(counts(store, "s").await, StreamCounts { ready: 1, ..zero() }, "released");
    let second = claim(store, "s").await;
    fail(store, proof(&second)).await;
    assert_eq!(counts(store, "s").await, StreamCounts { scheduled: 1, ..zero() }, "failed");
    backend.advance(Duration::from_secs(1)).await;
    promote(store).await;
    assert_eq!(counts(store, "s").await, StreamCounts { ready: 1, ..zero() }, "promoted");
    claim(store, "s").await;
    backend.advance(TTL).await;
    reap(store).await;
    assert_eq!(counts(store, "s").await, StreamCounts { ready: 1, ..zero() }, "reaped");
    let third = claim(store, "s").await;
    fail_for_good(store, proof(&third)).await;
    assert_eq!(counts(store, "s").await, StreamCounts { dead: 1, ..zero() }, "buried");
    store.retry(claimed.job_id).await.expect("retry");
    assert_eq!(counts(store, "s").await, StreamCounts { ready: 1, ..zero() }, "started over");
    store.cancel(claimed.job_id, false).await.expect("cancel");
    assert_eq!(counts(store, "s").await, StreamCounts { cancelled: 1, ..zero() }, "cancelled");
    let next = enqueue_and_claim(store, job_on("s")).await;
    complete(store, proof(&next)).await;
    complete(store, proof(&next)).await;
    assert_eq!(counts(store, "s").await, StreamCounts { cancelled: 1, succeeded: 1, ..zero() }, "completed");
}

async fn counts_are_the_same_before_and_after_tidying<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    some_of_each(&backend).await;
    let before = dump(store).await;
    store.tidy().await.expect("tidy");
    assert_eq!(dump(store).await, before);
    store.tidy().await.expect("tidy");
    enqueue(store, job_on("s")).await;
    let ready = counts(store, "s").await.ready;
    store.tidy().await.expect("tidy");
    assert_eq!(counts(store, "s").await.ready, ready);
}

/// Two jobs in every place, on each of two streams.
async fn some_of_each<B: Backend>(backend: &B) {
    let store = &*backend.store();
    for name in ["s", "t", "s", "t"] {
        let claimed = enqueue_and_claim(store, job_on(name)).await;
        complete(store, proof(&claimed)).await;
        bury(store, job_on(name)).await;
        let cancelled = enqueue(store, job_on(name)).await.job_id;
        store.cancel(cancelled, false).await.expect("cancel");
        enqueue_and_claim(store, job_on(name)).await;
        enqueue(store, delayed(name, TTL)).await;
    }
    for name in ["s", "t", "s", "t"] {
        enqueue(store, job_on(name)).await;
    }
}

/// Invariant 5.
async fn every_job_is_in_exactly_one_place<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    some_of_each(&backend).await;
    let all: BTreeSet<JobId> =
        all_jobs(store, JobFilter::default()).await.iter().map(|brief| brief.job_id).collect();
    let mut seen = BTreeSet::new();
    for status in JobStatus::ALL {
        for brief in all_jobs(store, by_status(*status)).await {
            assert_eq!(brief.status, *status);
            assert!(seen.insert(brief.job_id), "listed under one status");
        }
    }
    assert_eq!((seen.len(), &seen), (24, &all));
    for name in ["s", "t"] {
        let expected =
            StreamCounts { ready: 2, scheduled: 2, running: 2, succeeded: 2, dead: 2, cancelled: 2 };
        assert_eq!(counts(store, name).await, expected);
    }
}

async fn a_list_has_every_job_once_newest_first<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    some_of_each(&backend).await;
    let statuses = [JobStatus::Running, JobStatus::Succeeded, JobStatus::Dead, JobStatus::Cancelled];
    let filters = statuses.into_iter().map(by_status).chain([JobFilter::default()]);
    for filter in
        filters.flat_map(|filter| [filter.clone(), JobFilter { stream: Some(stream("t")), ..filter }])
    {
        let ids: Vec<_> = all_jobs(store, filter.clone()).await.iter().map(|brief| brief.job_id).collect();
        assert!(ids.windows(2).all(|pair| pair[0] > pair[1]), "{filter:?}: {ids:?}");
        let expected = match (filter.status, &filter.stream) {
            (Some(_), Some(_)) => 2,
            (Some(_), None) => 4,
            (None, Some(_)) => 12,
            (None, None) => 24,
        };
        assert_eq!(ids.len(), expected, "{filter:?}");
    }
}

async fn queued_jobs_are_listed_as_they_would_be_claimed<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    enqueue(store, delayed("s", Duration::from_secs(1))).await;
    for _ in 0..7 {
        enqueue(store, job_on("s")).await;
    }
    let first = claim(store, "s").await;
    release(store, proof(&first)).await;
    backend.advance(Duration::from_secs(1)).await;
    promote(store).await;
    let late = enqueue(store, delayed("s", TTL)).await.job_id;
    enqueue(store, job_on("t")).await;
    let filter = JobFilter { stream: Some(stream("s")), ..by_status(JobStatus::Queued) };
    let listed: Vec<_> = all_jobs(store, filter).await.iter().map(|brief| brief.job_id).collect();
    let claimed = store.claim(ask(&["s"], 100)).await.expect("claim");
    let order: Vec<_> = claimed.iter().map(|claimed| claimed.job_id).chain([late]).collect();
    assert_eq!(listed, order, "ready ones in the order of claims, then the scheduled");
}

async fn a_page_goes_on_where_the_last_one_ended_though_jobs_come_and_go<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let mut stored = Vec::new();
    for _ in 0..9 {
        stored.push(enqueue(store, job_on("s")).await.job_id);
    }
    let mut seen = Vec::new();
    let mut after: Option<Cursor> = None;
    loop {
        let page = store.jobs(JobFilter::default(), after, 2).await.expect("a page");
        seen.extend(page.rows.iter().map(|brief| brief.job_id));
        enqueue(store, job_on("s")).await;
        if let Some(last) = seen.last() {
            store.cancel(*last, false).await.expect("cancel");
            backend.advance(Duration::from_millis(1)).await;
            store.retain(Retention::all(Duration::ZERO), 10).await.expect("retain");
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    stored.reverse();
    assert_eq!(seen, stored, "each of those that were there, once");
}

async fn a_producer_sees_its_own_jobs<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let mut mine = Vec::new();
    for n in 0..8 {
        let producer = (n % 2 == 0).then(|| "p1".to_string());
        let brief = enqueue(store, NewJob { producer: producer.clone(), ..job_on("s") }).await;
        assert_eq!(brief.producer, producer);
        if n % 2 == 0 {
            mine.insert(0, brief.job_id);
        }
    }
    let own = JobFilter { producer: Some("p1".to_string()), ..JobFilter::default() };
    let listed: Vec<_> = all_jobs(store, own.clone()).await.iter().map(|brief| brief.job_id).collect();
    assert_eq!(listed, mine);
    let queued = JobFilter { status: Some(JobStatus::Queued), ..own };
    let listed: Vec<_> = all_jobs(store, queued).await.iter().rev().map(|brief| brief.job_id).collect();
    assert_eq!(listed, mine);
}

/// No page looks at more than its share of rows, and none that matches is missed.
async fn a_filter_that_matches_little_looks_at_little<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let others = limits::PAGE_SCAN_MAX as usize + 500;
    let rare = |n: usize| NewJob {
        producer: Some("rare".to_string()),
        payload: json(&n.to_string()),
        ..job_on("rare")
    };
    let first = enqueue(store, rare(1)).await.job_id;
    store.enqueue((0..others).map(|_| job_on("s")).collect()).await.expect("enqueue");
    let last = enqueue(store, rare(2)).await.job_id;
    for filter in [
        JobFilter { producer: Some("rare".to_string()), ..JobFilter::default() },
        JobFilter { stream: Some(stream("rare")), ..JobFilter::default() },
        JobFilter { stream: Some(stream("rare")), ..by_status(JobStatus::Queued) },
        JobFilter { producer: Some("rare".to_string()), ..by_status(JobStatus::Queued) },
    ] {
        let (found, pages) = read_pages(store, &filter).await;
        assert_eq!(found, BTreeSet::from([first, last]), "{filter:?}");
        assert!(pages <= 4, "{filter:?} took {pages} pages");
    }
    let (found, pages) = read_pages(store, &by_status(JobStatus::Dead)).await;
    assert!(found.is_empty() && pages <= 4, "took {pages} pages");
}

async fn read_pages(store: &dyn Store, filter: &JobFilter) -> (BTreeSet<JobId>, usize) {
    let (mut found, mut pages, mut after) = (BTreeSet::new(), 0, None);
    loop {
        let page = store.jobs(filter.clone(), after, 50).await.expect("a page");
        found.extend(page.rows.iter().map(|brief| brief.job_id));
        pages += 1;
        after = page.next;
        if after.is_none() {
            return (found, pages);
        }
    }
}

async fn the_oldest_wait_of_a_stream_is_shown<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let oldest = async || store.stream(stream("s")).await.expect("read").expect("used").oldest_ready_at;
    enqueue(store, job_on("s")).await;
    backend.advance(Duration::from_secs(5)).await;
    enqueue(store, job_on("s")).await;
    assert_eq!(oldest().await, Some(START));
    claim(store, "s").await;
    assert_eq!(oldest().await, Some(START.after(Duration::from_secs(5))));
    claim(store, "s").await;
    assert_eq!(oldest().await, None);
}

//! What happened in streams: counted once, in every range, by every process, and forgotten in time.

use crate::support::backend::{Backend, settings};
use crate::support::singly::*;
use fernery_core::job::stats::{Happening, Histogram, StatsCounts, StatsRange};
use fernery_core::{AttemptOutcome, limits};
use fernery_engine::engine::{Engine, EngineSettings};
use fernery_engine::store::{Pass, StatsBatch, Store, StreamHistory};
use std::sync::Arc;
use std::time::Duration;

on_both_backends!(
    what_happened_to_jobs_is_told_by_stream_and_minute,
    counts_that_come_again_are_counted_once,
    processes_add_to_the_same_counts_at_once,
    counts_older_than_their_range_are_forgotten_in_bounded_passes,
    a_process_that_closes_keeps_its_counts_and_one_that_is_killed_loses_only_those
);

/// As an engine does it every few seconds.
async fn keep<B: Backend>(backend: &B, id: &str) {
    while let Some(batch) = backend.signals().unwritten_stats.take(id.to_string()) {
        backend.store().add_stats(batch).await.expect("kept");
    }
}

async fn history(store: &dyn Store, name: &str, range: StatsRange) -> StreamHistory {
    let (_, mut found) = store.stats(vec![stream(name)], range).await.expect("counts");
    found.pop().expect("one history for one stream")
}

async fn sum(store: &dyn Store, name: &str, range: StatsRange) -> StatsCounts {
    let mut all = StatsCounts::default();
    history(store, name, range).await.iter().for_each(|(_, counts)| all.add(counts));
    all
}

fn histogram(ms: &[u64]) -> Histogram {
    let mut all = Histogram::default();
    ms.iter().for_each(|ms| all.note(Duration::from_millis(*ms)));
    all
}

async fn what_happened_to_jobs_is_told_by_stream_and_minute<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = backend.store();
    store.enqueue(vec![job_on("mail"); 60]).await.expect("enqueue");
    enqueue(&*store, at_most("other", 1)).await;
    backend.advance(Duration::from_millis(100)).await;
    let first = claim(&*store, "mail").await;
    backend.advance(Duration::from_millis(7)).await;
    complete(&*store, proof(&first)).await;
    complete(&*store, proof(&first)).await;
    backend.advance(Duration::from_secs(60)).await;
    let second = claim(&*store, "mail").await;
    backend.advance(Duration::from_millis(3)).await;
    fail(&*store, proof(&second)).await;
    release(&*store, proof(&claim(&*store, "mail").await)).await;
    let given_up = claim(&*store, "other").await;
    fail_for_good(&*store, proof(&given_up)).await;
    keep(&backend, "first").await;
    let minutes = history(&*store, "mail", StatsRange::Hour).await;
    let told: Vec<_> = minutes.iter().map(|(_, f)| (f.enqueued, f.completed, f.failed, f.dead)).collect();
    assert_eq!(told, [(60, 1, 0, 0), (0, 0, 1, 0)], "a report that comes again is counted once");
    assert_eq!(minutes[1].0.since(minutes[0].0), Duration::from_secs(60));
    assert_eq!((&minutes[0].1.waits, &minutes[0].1.runs), (&histogram(&[100]), &histogram(&[7])));
    let waited = histogram(&[60_107, 60_110]);
    assert_eq!((&minutes[1].1.waits, &minutes[1].1.runs), (&waited, &histogram(&[3])), "a release is no run");
    let of_mail = sum(&*store, "mail", StatsRange::Hour).await;
    for range in [StatsRange::Day, StatsRange::Week] {
        assert_eq!(sum(&*store, "mail", range).await, of_mail, "{range}");
        assert_eq!(history(&*store, "mail", range).await.len(), 1, "{range}");
    }
    let other = sum(&*store, "other", StatsRange::Day).await;
    assert_eq!((other.enqueued, other.completed, other.failed, other.dead), (1, 0, 1, 1));
    assert!(history(&*store, "never", StatsRange::Week).await.is_empty());
}

fn batch(id: &str, at: fernery_core::Timestamp, name: &str) -> StatsBatch {
    let mut counts = StatsCounts::default();
    counts.note(Happening::Enqueued(3));
    counts.note(Happening::Claimed { waited: Duration::from_millis(40) });
    let took = Duration::from_millis(5);
    counts.note(Happening::Ended { outcome: AttemptOutcome::Lost, took, buried: true });
    let rows = StatsRange::ALL
        .iter()
        .map(|range| ((stream(name), range.minutes(), range.point_of(at)), counts.clone()));
    StatsBatch { id: id.to_string(), rows: Arc::new(rows.collect()) }
}

/// After a lost answer the engine writes the same batch again.
async fn counts_that_come_again_are_counted_once<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = backend.store();
    let now = store.now().await.expect("a time");
    for id in ["one", "one", "two", "two"] {
        store.add_stats(batch(id, now, "mail")).await.expect("added");
    }
    for range in StatsRange::ALL {
        let all = sum(&*store, "mail", *range).await;
        assert_eq!((all.enqueued, all.failed, all.dead), (6, 2, 2), "{range}");
        assert_eq!((all.waits, all.runs), (histogram(&[40, 40]), Histogram::default()), "{range}");
    }
}

async fn processes_add_to_the_same_counts_at_once<B: Backend>() {
    const EACH: usize = 20;
    let backend = B::open(settings()).await;
    let now = backend.store().now().await.expect("a time");
    let mut adding = tokio::task::JoinSet::new();
    for process in 0..4 {
        let store = backend.of_another_process().await;
        adding.spawn(async move {
            for n in 0..EACH {
                store.add_stats(batch(&format!("{process}-{n}"), now, "mail")).await.expect("added");
            }
        });
    }
    while let Some(done) = adding.join_next().await {
        done.expect("no panic");
    }
    let all = sum(&*backend.store(), "mail", StatsRange::Hour).await;
    assert_eq!(all.enqueued, 3 * 4 * EACH as u64);
    assert_eq!(all.waits, histogram(&[40; 4 * EACH]), "histograms are added under the lock of their row");
}

async fn counts_older_than_their_range_are_forgotten_in_bounded_passes<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = backend.store();
    for name in ["a", "b", "c"] {
        store.add_stats(batch(name, store.now().await.expect("a time"), name)).await.expect("added");
    }
    assert_eq!(store.forget_stats(2).await, Ok(Pass { moved: 0, full: false }), "all of it is in its range");
    backend.advance(Duration::from_secs(3_600)).await;
    assert_eq!(store.forget_stats(2).await, Ok(Pass { moved: 2, full: true }));
    assert_eq!(store.forget_stats(2).await, Ok(Pass { moved: 1, full: false }));
    let left = |range| async move { sum(&*backend.store(), "a", range).await.enqueued };
    assert_eq!(left(StatsRange::Day).await, 3);
    let limit = limits::STATS_FORGET_BATCH;
    let backend = B::open(settings()).await;
    let store = backend.store();
    store.add_stats(batch("x", store.now().await.expect("a time"), "a")).await.expect("added");
    for (days, moved) in [(1, 2), (7, 1)] {
        backend.advance(Duration::from_secs(days * 86_400)).await;
        assert_eq!(store.forget_stats(limit).await, Ok(Pass { moved, full: false }), "after {days} days");
    }
}

async fn a_process_that_closes_keeps_its_counts_and_one_that_is_killed_loses_only_those<B: Backend>() {
    let mut backend = B::open(settings()).await;
    let job = enqueue(&*backend.store(), job_on("mail")).await;
    keep(&backend, "before").await;
    let claimed = claim(&*backend.store(), "mail").await;
    backend.crash().await;
    let store = backend.store();
    let told = sum(&*store, "mail", StatsRange::Hour).await;
    assert_eq!((told.enqueued, told.waits), (1, Histogram::default()), "what was not written is lost");
    let engine = Engine::start(store.clone(), backend.signals(), EngineSettings::default());
    complete(&*store, proof(&claimed)).await;
    assert_eq!(
        view(&*store, job.job_id).await.brief.status,
        fernery_core::JobStatus::Succeeded,
        "the job is not"
    );
    drop(store);
    engine.close().await;
    backend.restart().await;
    assert_eq!(sum(&*backend.store(), "mail", StatsRange::Hour).await.completed, 1);
}

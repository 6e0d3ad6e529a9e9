//! What a claim takes, and what it leaves.

use crate::support::backend::{Backend, START, TTL, settings};
use crate::support::dump::dump;
use crate::support::singly::*;
use fernery_core::job::report::Answer;
use fernery_core::{JobStatus, limits};
use fernery_engine::store::{NewJob, Store};
use std::collections::BTreeSet;
use std::time::Duration;

on_every_backend!(
    an_array_claim_stops_at_its_limit_of_bytes,
    streams_are_served_in_the_order_given,
    a_stream_is_served_oldest_first,
    an_array_claim_takes_as_many_as_it_asks_for,
    a_claim_that_finds_nothing_changes_nothing,
    every_claim_has_a_token_an_attempt_and_a_number_of_its_own,
    a_scheduled_job_takes_its_place_when_its_time_comes,
    a_job_that_comes_back_stands_behind_those_that_wait,
    a_message_is_new_with_every_wait,
    a_lease_holds_for_its_time_and_never_past_the_time_out,
    nobody_claims_from_a_paused_stream,
    a_held_job_is_not_handed_out_again,
    a_full_array_is_claimed_and_completed_whole,
    an_array_beyond_every_limit_is_refused_or_answered_whole,
);

async fn take(store: &dyn Store, streams: &[&str], max: usize) -> Vec<String> {
    let claimed = store.claim(ask(streams, max)).await.expect("claim");
    claimed.iter().map(|c| format!("{} {}", c.stream, c.payload)).collect()
}

fn numbered(name: &str, n: usize) -> NewJob {
    NewJob { payload: json(&n.to_string()), ..job_on(name) }
}

async fn streams_are_served_in_the_order_given<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    for (name, n) in [("low", 1), ("high", 2), ("low", 3), ("high", 4)] {
        enqueue(store, numbered(name, n)).await;
    }
    assert_eq!(take(store, &["high", "empty", "low"], 1).await, ["high 2"]);
    assert_eq!(take(store, &["low", "high"], 1).await, ["low 1"]);
    assert_eq!(take(store, &["high", "low"], 9).await, ["high 4", "low 3"]);
}

async fn a_stream_is_served_oldest_first<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    for n in 0..5 {
        enqueue(store, numbered("s", n)).await;
    }
    store.enqueue((5..10).map(|n| numbered("s", n)).collect()).await.expect("enqueue");
    let mut seen = Vec::new();
    for max in [1, 3, 2, 4] {
        seen.extend(take(store, &["s"], max).await);
    }
    let expected: Vec<_> = (0..10).map(|n| format!("s {n}")).collect();
    assert_eq!(seen, expected);
}

async fn an_array_claim_takes_as_many_as_it_asks_for<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    for name in ["a", "b", "c"] {
        store.enqueue((0..3).map(|n| numbered(name, n)).collect()).await.expect("enqueue");
    }
    assert_eq!(take(store, &["a", "b", "c"], 5).await, ["a 0", "a 1", "a 2", "b 0", "b 1"]);
    assert_eq!(take(store, &["a", "b", "c"], 5).await, ["b 2", "c 0", "c 1", "c 2"]);
    let no_more: &[&str] = &[];
    assert_eq!(take(store, &["a", "b", "c"], 5).await, no_more);
}

async fn a_claim_that_finds_nothing_changes_nothing<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    enqueue(store, delayed("s", Duration::from_secs(1))).await;
    enqueue(store, job_on("other")).await;
    let before = dump(store).await;
    let no_more: &[&str] = &[];
    assert_eq!(take(store, &["s", "never-used"], 5).await, no_more);
    assert_eq!(dump(store).await, before);
}

/// Invariant 3: nothing of one claim proves anything about another.
async fn every_claim_has_a_token_an_attempt_and_a_number_of_its_own<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    enqueue(store, job_on("s")).await;
    let mut tokens = BTreeSet::new();
    let mut attempts = BTreeSet::new();
    for attempt_no in 1..=6 {
        let claimed = claim(store, "s").await;
        assert_eq!(claimed.attempt_no, attempt_no, "counts every claim");
        assert!(tokens.insert(claimed.lease_token.hash()));
        assert!(attempts.insert(claimed.attempt_id));
        assert_eq!(
            release(store, proof(&claimed)).await,
            Answer::Accepted { status: JobStatus::Queued },
            "given back"
        );
    }
}

async fn a_scheduled_job_takes_its_place_when_its_time_comes<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    enqueue(store, NewJob { payload: json("1"), ..delayed("s", Duration::from_secs(5)) }).await;
    enqueue(store, numbered("s", 2)).await;
    enqueue(store, NewJob { payload: json("3"), ..delayed("s", Duration::from_secs(1)) }).await;
    backend.advance(Duration::from_secs(6)).await;
    enqueue(store, numbered("s", 4)).await;
    assert_eq!(promote(store).await, 2);
    assert_eq!(take(store, &["s"], 9).await, ["s 2", "s 4", "s 3", "s 1"]);
    let oldest = store.stream(stream("s")).await.expect("read").expect("used").oldest_ready_at;
    assert_eq!(oldest, None);
}

async fn a_job_that_comes_back_stands_behind_those_that_wait<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    for n in 1..=3 {
        enqueue(store, numbered("s", n)).await;
    }
    let released = claim(store, "s").await;
    release(store, proof(&released)).await;
    let _lost = claim(store, "s").await;
    backend.advance(TTL).await;
    assert_eq!(reap(store).await, 1);
    assert_eq!(take(store, &["s"], 9).await, ["s 3", "s 1", "s 2"]);
}

async fn a_message_is_new_with_every_wait<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let first = enqueue_and_claim(store, job_on("s")).await;
    assert_eq!(first.message.ready_at, START);
    assert_eq!(first.message.to_string(), format!("{}-{}", START.as_millis(), first.message.seq));
    release(store, proof(&first)).await;
    let second = claim(store, "s").await;
    assert!(second.message.seq > first.message.seq, "a new wait is a new message");
    fail_for_good(store, proof(&second)).await;
    store.retry(first.job_id).await.expect("retry");
    let third = claim(store, "s").await;
    assert!(third.message.seq > second.message.seq, "starting over is a new message");
}

async fn a_lease_holds_for_its_time_and_never_past_the_time_out<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let plain = enqueue_and_claim(store, job_on("s")).await;
    assert_eq!((plain.expires_at, plain.timeout_at), (START.after(TTL), None));
    let timeout = Some(Duration::from_secs(7));
    let timed = enqueue_and_claim(store, NewJob { timeout, ..job_on("t") }).await;
    let timeout_at = START.after(Duration::from_secs(7));
    assert_eq!((timed.expires_at, timed.timeout_at), (timeout_at, Some(timeout_at)));
}

async fn nobody_claims_from_a_paused_stream<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    enqueue(store, numbered("s", 1)).await;
    enqueue(store, numbered("t", 2)).await;
    assert_eq!(store.set_paused(stream("s"), true).await, Ok(true));
    assert_eq!(store.claimable(vec![stream("s"), stream("t")]).await, Ok(vec![stream("t")]));
    assert_eq!(take(store, &["s", "t"], 5).await, ["t 2"]);
    enqueue(store, numbered("s", 3)).await;
    let paused = store.stream(stream("s")).await.expect("read").expect("used");
    assert!(paused.paused && paused.counts.ready == 2, "a paused stream takes jobs: {paused:?}");
    assert_eq!(store.set_paused(stream("s"), false).await, Ok(true));
    assert_eq!(take(store, &["s", "t"], 5).await, ["s 1", "s 3"]);
}

/// Invariant 3: as long as its lease holds.
async fn a_held_job_is_not_handed_out_again<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    enqueue_and_claim(store, job_on("s")).await;
    assert!(claim_any(store, "s").await.is_none());
    backend.advance(TTL - Duration::from_millis(1)).await;
    assert!(claim_any(store, "s").await.is_none(), "to its last moment");
}

async fn a_full_array_is_claimed_and_completed_whole<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let jobs = (0..limits::ENQUEUE_BATCH_MAX).map(|n| numbered("s", n)).collect();
    let answers = store.enqueue(jobs).await.expect("enqueue");
    assert_eq!(answers.len(), limits::ENQUEUE_BATCH_MAX);
    let claimed = store.claim(ask(&["s"], limits::WORKER_BATCH_MAX)).await.expect("claim");
    assert_eq!(claimed.len(), limits::WORKER_BATCH_MAX);
    let order: Vec<_> = claimed.iter().map(|c| c.payload.get().parse::<usize>().expect("a number")).collect();
    assert!(order.is_sorted() && order[0] == 0, "oldest first");
    let reports = claimed.iter().map(|c| completion(proof(c))).collect();
    let answers = store.complete(reports).await.expect("complete");
    assert_eq!(answers, vec![Answer::Accepted { status: JobStatus::Succeeded }; claimed.len()]);
    assert_eq!(counts(store, "s").await.succeeded, limits::WORKER_BATCH_MAX as i64);
}

/// Never cut short in silence: a `200` never hides a lost item.
async fn an_array_beyond_every_limit_is_refused_or_answered_whole<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let many = limits::ENQUEUE_BATCH_MAX + 1;
    let stored = match store.enqueue((0..many).map(|n| numbered("s", n)).collect()).await {
        Ok(answers) => {
            assert_eq!(answers.len(), many);
            many
        }
        Err(_) => 0,
    };
    let ready = store.stream(stream("s")).await.expect("read").map_or(0, |s| s.counts.ready);
    assert_eq!(ready, stored as i64);
}

async fn an_array_claim_stops_at_its_limit_of_bytes<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let payload = json(&format!(r#"{{"p":"{}"}}"#, "x".repeat(limits::CLAIM_BYTES_MAX / 3)));
    for n in 0..6 {
        let stream = if n < 2 { "a" } else { "b" };
        enqueue(store, NewJob { payload: payload.clone(), ..job_on(stream) }).await;
    }
    // The third reaches the limit: it is the last. The others wait where they were.
    let claimed = store.claim(ask(&["a", "b"], 100)).await.expect("claim");
    let streams: Vec<_> = claimed.iter().map(|c| c.stream.as_str()).collect();
    assert_eq!(streams, ["a", "a", "b"]);
    assert_eq!(counts(store, "b").await.ready, 3);
    // Whatever its size, one is always had.
    let huge = json(&format!(r#"{{"p":"{}"}}"#, "x".repeat(limits::CLAIM_BYTES_MAX)));
    enqueue(store, NewJob { payload: huge, ..job_on("c") }).await;
    assert_eq!(store.claim(ask(&["c"], 10)).await.expect("claim").len(), 1);
    assert_eq!(store.claim(ask(&["b"], 100)).await.expect("claim").len(), 3);
}

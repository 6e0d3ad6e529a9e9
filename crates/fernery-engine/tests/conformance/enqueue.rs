//! What a producer is promised.

use crate::support::backend::{Backend, START, settings};
use crate::support::dump::dump;
use crate::support::singly::*;
use fernery_core::{JobId, JobStatus};
use fernery_engine::store::{CancelAnswer, Enqueued, NewJob, Start};
use std::time::Duration;

on_every_backend!(
    payload_and_result_survive_to_the_byte,
    the_same_job_again_is_the_job_that_exists,
    a_repeat_finds_the_job_whatever_has_become_of_it,
    another_job_under_a_taken_id_is_a_conflict,
    one_array_is_answered_as_its_items_one_by_one,
    a_key_has_one_unfinished_job,
    a_key_is_free_again_after_every_kind_of_end,
    an_id_is_looked_at_before_a_key,
    a_delayed_job_waits_for_its_time,
    a_job_for_an_instant_that_has_passed_starts_now,
    only_a_stored_job_makes_a_stream,
);

fn job_id(n: u128) -> JobId {
    JobId::from_uuid(uuid::Uuid::from_u128(0x4000_8000_0000_0000_0000 + n))
}

fn with_id(n: u128, job: NewJob) -> NewJob {
    NewJob { job_id: Some(job_id(n)), ..job }
}

async fn payload_and_result_survive_to_the_byte<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let odd = r#"{ "b":1.0, "a":18446744073709551616.000,"a":-0,  "e":1E+400, "nul":"\u0000\ud83c\udf3f", "ü":[ ] }"#;
    let claimed = enqueue_and_claim(store, NewJob { payload: json(odd), ..job_on("s") }).await;
    assert_eq!(claimed.payload.get(), odd);
    let completion = fernery_engine::store::Completion { proof: proof(&claimed), result: json(odd) };
    store.complete(vec![completion]).await.expect("complete");
    let view = view(store, claimed.job_id).await;
    assert_eq!(view.payload.get(), odd);
    assert_eq!(view.attempts[0].result.as_ref().expect("a result").get(), odd);
}

async fn the_same_job_again_is_the_job_that_exists<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let first = enqueue(store, with_id(1, job_on("s"))).await;
    let before = dump(store).await;
    backend.advance(Duration::from_secs(5)).await;
    assert_eq!(enqueue_any(store, with_id(1, job_on("s"))).await, Enqueued::Exists(first));
    assert_eq!(dump(store).await, before);
}

async fn a_repeat_finds_the_job_whatever_has_become_of_it<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let again = || with_id(1, job_on("s"));
    let found = |answer: Enqueued| match answer {
        Enqueued::Exists(brief) => brief.status,
        other => panic!("{other:?}"),
    };
    let claimed = enqueue_and_claim(store, again()).await;
    assert_eq!(found(enqueue_any(store, again()).await), JobStatus::Running);
    complete(store, proof(&claimed)).await;
    assert_eq!(found(enqueue_any(store, again()).await), JobStatus::Succeeded);
    assert!(claim_any(store, "s").await.is_none(), "a repeat starts nothing");
}

async fn another_job_under_a_taken_id_is_a_conflict<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    enqueue(store, with_id(1, job_on("s"))).await;
    let before = dump(store).await;
    let others = [
        job_on("t"),
        NewJob { payload: json(r#"{"n": 1}"#), ..job_on("s") },
        at_most("s", 4),
        keyed("s", "k"),
        delayed("s", Duration::from_secs(1)),
        NewJob { start: Start::At(START), ..job_on("s") },
        NewJob { timeout: Some(Duration::from_secs(1)), ..job_on("s") },
    ];
    for other in others {
        let shown = format!("{other:?}");
        assert_eq!(enqueue_any(store, with_id(1, other)).await, Enqueued::Conflict(job_id(1)), "{shown}");
    }
    assert_eq!(dump(store).await, before);
}

async fn one_array_is_answered_as_its_items_one_by_one<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let jobs = vec![
        job_on("s"),
        with_id(1, job_on("s")),
        with_id(1, job_on("s")),
        with_id(1, job_on("t")),
        keyed("s", "k"),
        keyed("t", "k"),
        with_id(2, delayed("s", Duration::from_secs(1))),
        job_on("s"),
    ];
    let answers = store.enqueue(jobs).await.expect("enqueue");
    let words: Vec<_> = answers
        .iter()
        .map(|answer| match answer {
            Enqueued::Created(_) => "created",
            Enqueued::Exists(brief) if brief.job_id == job_id(1) => "exists",
            Enqueued::DuplicateKey(brief) if brief.stream == stream("s") => "duplicate",
            Enqueued::Conflict(id) if *id == job_id(1) => "conflict",
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = ["created", "created", "exists", "conflict", "created", "duplicate", "created", "created"];
    assert_eq!(words, expected);
    let counts = counts(store, "s").await;
    assert_eq!((counts.ready, counts.scheduled), (4, 1), "what was not stored is not counted");
    let order: Vec<_> =
        store.claim(ask(&["s"], 10)).await.expect("claim").iter().map(|claimed| claimed.job_id).collect();
    let stored: Vec<_> = answers
        .iter()
        .filter_map(|answer| match answer {
            Enqueued::Created(brief) if brief.run_at == START => Some(brief.job_id),
            _ => None,
        })
        .collect();
    assert_eq!(order, stored, "an array keeps its order");
}

async fn a_key_has_one_unfinished_job<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let first = enqueue(store, keyed("s", "k")).await;
    let before = dump(store).await;
    assert_eq!(enqueue_any(store, keyed("t", "k")).await, Enqueued::DuplicateKey(first.clone()));
    assert_eq!(dump(store).await, before);
    let claimed = claim(store, "s").await;
    match enqueue_any(store, keyed("s", "k")).await {
        Enqueued::DuplicateKey(brief) => {
            assert_eq!((brief.job_id, brief.status), (first.job_id, JobStatus::Running));
        }
        other => panic!("{other:?}"),
    }
    fail(store, proof(&claimed)).await;
    let waits = enqueue_any(store, keyed("s", "k")).await;
    assert!(
        matches!(waits, Enqueued::DuplicateKey(_)),
        "a job that waits for a retry has its key: {waits:?}"
    );
}

async fn a_key_is_free_again_after_every_kind_of_end<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let claimed = enqueue_and_claim(store, keyed("s", "k")).await;
    complete(store, proof(&claimed)).await;
    bury(store, keyed("s", "k")).await;
    let claimed = enqueue_and_claim(store, NewJob { max_attempts: 1, ..keyed("s", "k") }).await;
    backend.advance(Duration::from_secs(61)).await;
    assert_eq!(reap(store).await, 1);
    assert_eq!(status(store, claimed.job_id).await, JobStatus::Dead);
    let brief = enqueue(store, keyed("s", "k")).await;
    assert_eq!(store.cancel(brief.job_id, false).await, Ok(CancelAnswer::Cancelled));
    let claimed = enqueue_and_claim(store, keyed("s", "k")).await;
    assert_eq!(store.cancel(claimed.job_id, true).await, Ok(CancelAnswer::Cancelled));
    enqueue(store, keyed("s", "k")).await;
}

async fn an_id_is_looked_at_before_a_key<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let first = enqueue(store, with_id(1, keyed("s", "k"))).await;
    assert_eq!(enqueue_any(store, with_id(1, keyed("s", "k"))).await, Enqueued::Exists(first.clone()));
    assert_eq!(enqueue_any(store, with_id(2, keyed("s", "k"))).await, Enqueued::DuplicateKey(first));
    assert_eq!(enqueue_any(store, with_id(1, keyed("t", "k"))).await, Enqueued::Conflict(job_id(1)));
    let unknown = store.job(job_id(2)).await.expect("read");
    assert!(unknown.is_none(), "a duplicate is not stored under its own id");
}

async fn a_delayed_job_waits_for_its_time<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let brief = enqueue(store, delayed("s", Duration::from_secs(10))).await;
    let due_at = START.after(Duration::from_secs(10));
    assert_eq!((brief.status, brief.run_at, brief.created_at), (JobStatus::Queued, due_at, START));
    assert_eq!(store.next_due().await, Ok(Some(due_at)));
    backend.advance(Duration::from_millis(9_999)).await;
    assert_eq!(promote(store).await, 0);
    assert!(claim_any(store, "s").await.is_none());
    backend.advance(Duration::from_millis(1)).await;
    assert_eq!(promote(store).await, 1);
    assert_eq!(store.next_due().await, Ok(None));
    assert_eq!(claim(store, "s").await.job_id, brief.job_id);
}

async fn a_job_for_an_instant_that_has_passed_starts_now<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let hour_ago = START.before(Duration::from_secs(3600));
    for (start, run_at) in [
        (Start::At(hour_ago), hour_ago),
        (Start::At(START), START),
        (Start::After(Duration::ZERO), START),
        (Start::Now, START),
    ] {
        let brief = enqueue(store, NewJob { start, ..job_on("s") }).await;
        assert_eq!((brief.run_at, brief.created_at), (run_at, START), "{start:?}");
        let claimed = claim(store, "s").await;
        assert_eq!((claimed.job_id, claimed.message.ready_at), (brief.job_id, START), "{start:?}");
    }
    let later = START.after(Duration::from_secs(1));
    let brief = enqueue(store, NewJob { start: Start::At(later), ..job_on("s") }).await;
    assert_eq!(brief.run_at, later);
    assert!(claim_any(store, "s").await.is_none());
}

async fn only_a_stored_job_makes_a_stream<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    assert!(claim_any(store, "s").await.is_none());
    assert_eq!(store.set_paused(stream("s"), true).await, Ok(false));
    assert_eq!(store.streams(None, usize::MAX).await, Ok(Vec::new()));
    assert_eq!(store.stream(stream("s")).await, Ok(None));
    enqueue(store, with_id(1, keyed("s", "k"))).await;
    enqueue_any(store, with_id(1, job_on("conflict"))).await;
    enqueue_any(store, keyed("duplicate", "k")).await;
    let names: Vec<_> =
        store.streams(None, usize::MAX).await.expect("read").into_iter().map(|s| s.name).collect();
    assert_eq!(names, [stream("s")]);
}

//! What becomes of a job when an attempt ends: by report, by reaper, by time-out.

use crate::support::backend::{Backend, START, TTL, settings};
use crate::support::dump::dump;
use crate::support::singly::*;
use fernery_core::job::report::Answer;
use fernery_core::{AttemptOutcome, JobId, JobStatus, limits};
use fernery_engine::door::Chance;
use fernery_engine::store::{BeatAnswer, CancelAnswer, DeadFilter, NewJob, Pass, Store, StoreSettings};
use std::time::Duration;

on_every_backend!(
    a_failed_job_waits_longer_each_time,
    a_wait_of_nothing_is_no_wait,
    a_failure_that_is_not_retryable_is_the_last,
    a_job_is_dead_after_as_many_failures_as_allowed,
    lost_leases_count_apart_from_failures,
    a_job_that_kills_its_workers_reaches_the_dead_letters,
    one_lost_lease_is_the_end_of_a_job_that_may_run_once,
    a_deploy_does_not_eat_the_last_attempt,
    an_attempt_ends_at_its_time_out_though_it_beats,
    a_reaped_job_can_be_claimed_at_once,
    the_reaper_takes_only_what_has_expired,
    the_reaper_works_in_bounded_batches,
    a_completed_job_is_none_of_the_reapers_business,
    every_attempt_that_ended_is_closed_once,
    a_wish_to_cancel_takes_effect_at_every_end_but_success,
);

/// Claims and fails a job, and waits out its back-off.
async fn fail_once<B: Backend>(backend: &B, name: &str) -> (Answer, Duration) {
    let store = &*backend.store();
    let claimed = claim(store, name).await;
    let answer = fail(store, proof(&claimed)).await;
    let now = store.now().await.expect("now");
    let wait = match store.next_due().await.expect("next due") {
        Some(due_at) => due_at.since(now),
        None => Duration::ZERO,
    };
    if !wait.is_zero() {
        assert_eq!(view(store, claimed.job_id).await.brief.run_at, now.after(wait), "the retry's time");
        backend.advance(wait - Duration::from_millis(1)).await;
        assert_eq!(promote(store).await, 0, "not before its time");
        backend.advance(Duration::from_millis(1)).await;
        assert_eq!(promote(store).await, 1);
    }
    (answer, wait)
}

async fn the_only_letter(store: &dyn Store) -> (JobId, String, String) {
    let mut rows = store.dead_letters(DeadFilter::default(), None, 10).await.expect("read").rows;
    assert_eq!(rows.len(), 1);
    let letter = rows.remove(0);
    (letter.job_id, letter.reason, letter.code)
}

async fn a_failed_job_waits_longer_each_time<B: Backend>() {
    let backend = B::open(settings()).await;
    enqueue(&*backend.store(), at_most("s", 20)).await;
    let mut waits = Vec::new();
    for _ in 0..12 {
        let (answer, wait) = fail_once(&backend, "s").await;
        assert_eq!(answer, Answer::Accepted { status: JobStatus::Queued });
        waits.push(wait.as_millis());
    }
    let expected = [500, 1000, 2000, 4000, 8000, 16000, 32000, 64000, 128000, 256000, 300000, 300000];
    assert_eq!(waits, expected, "half the ceiling, doubling up to its cap");
}

async fn a_wait_of_nothing_is_no_wait<B: Backend>() {
    let at_once = Chance { fixed_fraction: Some(0.0) };
    let backend = B::open(StoreSettings { chance: at_once, ..settings() }).await;
    let store = &*backend.store();
    let claimed = enqueue_and_claim(store, job_on("s")).await;
    assert_eq!(fail(store, proof(&claimed)).await, Answer::Accepted { status: JobStatus::Queued });
    assert_eq!(store.next_due().await, Ok(None));
    assert_eq!(claim(store, "s").await.job_id, claimed.job_id);
}

async fn a_failure_that_is_not_retryable_is_the_last<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let job_id = bury(store, job_on("s")).await;
    let view = view(store, job_id).await;
    assert_eq!((view.brief.status, view.brief.finished_at), (JobStatus::Dead, Some(START)));
    let error = view.attempts[0].error.as_ref().expect("the report");
    assert_eq!(error.get(), r#"{"code":"broken","message":"it broke"}"#);
    assert_eq!(the_only_letter(store).await, (job_id, "not_retryable".into(), "broken".into()));
    assert!(claim_any(store, "s").await.is_none());
}

async fn a_job_is_dead_after_as_many_failures_as_allowed<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let job_id = enqueue(store, at_most("s", 3)).await.job_id;
    for status in [JobStatus::Queued, JobStatus::Queued, JobStatus::Dead] {
        assert_eq!(fail_once(&backend, "s").await.0, Answer::Accepted { status });
    }
    assert_eq!(the_only_letter(store).await, (job_id, "attempts_exhausted".into(), "broken".into()));
    assert_eq!(view(store, job_id).await.attempts.len(), 3);
}

async fn lost_leases_count_apart_from_failures<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let job_id = enqueue(store, at_most("s", 2)).await.job_id;
    fail_once(&backend, "s").await;
    claim(store, "s").await;
    backend.advance(TTL).await;
    assert_eq!(reap(store).await, 1);
    assert_eq!(status(store, job_id).await, JobStatus::Queued, "one failure and one loss, of two each");
    claim(store, "s").await;
    backend.advance(TTL).await;
    assert_eq!(reap(store).await, 1);
    assert_eq!(status(store, job_id).await, JobStatus::Dead);
    assert_eq!(the_only_letter(store).await.1, "lost_too_often");
}

/// A reaper that never looks at the count lets a poison job crash workers for ever.
async fn a_job_that_kills_its_workers_reaches_the_dead_letters<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let job_id = enqueue(store, job_on("s")).await.job_id;
    let mut crashes = 0;
    while claim_any(store, "s").await.is_some() {
        crashes += 1;
        backend.advance(TTL).await;
        assert_eq!(reap(store).await, 1);
    }
    assert_eq!(crashes, limits::MAX_ATTEMPTS_DEFAULT);
    assert_eq!(status(store, job_id).await, JobStatus::Dead);
    assert_eq!(the_only_letter(store).await.1, "lost_too_often");
}

async fn one_lost_lease_is_the_end_of_a_job_that_may_run_once<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let claimed = enqueue_and_claim(store, at_most("s", 1)).await;
    backend.advance(TTL).await;
    assert_eq!(reap(store).await, 1);
    assert_eq!(status(store, claimed.job_id).await, JobStatus::Dead);
}

async fn a_deploy_does_not_eat_the_last_attempt<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let job_id = enqueue(store, at_most("s", 1)).await.job_id;
    for n in 1..=limits::RELEASES_MAX {
        let last = n == limits::RELEASES_MAX;
        let status = if last { JobStatus::Dead } else { JobStatus::Queued };
        let claimed = claim(store, "s").await;
        assert_eq!(release(store, proof(&claimed)).await, Answer::Accepted { status }, "release {n}");
    }
    let (dead, reason, _) = the_only_letter(store).await;
    assert_eq!((dead, reason), (job_id, "released_too_often".into()));
}

async fn an_attempt_ends_at_its_time_out_though_it_beats<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let timeout = Some(Duration::from_secs(30));
    let claimed = enqueue_and_claim(store, NewJob { timeout, ..at_most("s", 2) }).await;
    for _ in 0..3 {
        backend.advance(Duration::from_secs(10)).await;
        let beat = heartbeat(store, proof(&claimed)).await;
        assert!(matches!(beat, BeatAnswer::Extended { .. }), "{beat:?}");
    }
    assert_eq!(reap(store).await, 1);
    let first = view(store, claimed.job_id).await;
    assert_eq!(first.attempts[0].outcome, Some(AttemptOutcome::TimedOut));
    assert_eq!(first.brief.status, JobStatus::Queued);
    let due_at = START.after(Duration::from_millis(30_500));
    assert_eq!(first.brief.run_at, due_at, "it waits as after a failure");
    backend.advance(Duration::from_millis(500)).await;
    promote(store).await;
    claim(store, "s").await;
    backend.advance(Duration::from_secs(30)).await;
    assert_eq!(reap(store).await, 1);
    assert_eq!(status(store, claimed.job_id).await, JobStatus::Dead, "and counts as one");
    assert_eq!(the_only_letter(store).await.1, "attempts_exhausted");
}

/// A reaper that resets the status and forgets the lease leaves a row that nobody sees again.
async fn a_reaped_job_can_be_claimed_at_once<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let lost = enqueue_and_claim(store, job_on("s")).await;
    backend.advance(TTL).await;
    assert_eq!(reap(store).await, 1);
    let after = view(store, lost.job_id).await;
    assert_eq!(after.brief.status, JobStatus::Queued);
    assert_eq!(after.attempts.len(), 1);
    assert_eq!(after.attempts[0].outcome, Some(AttemptOutcome::Lost));
    assert_eq!(after.attempts[0].finished_at, Some(START.after(TTL)));
    let ready = counts(store, "s").await;
    assert_eq!((ready.ready, ready.scheduled, ready.running), (1, 0, 0));
    let next = claim(store, "s").await;
    assert_eq!((next.job_id, next.attempt_no), (lost.job_id, 2));
    assert_eq!(reap(store).await, 0, "the new lease is new");
}

async fn the_reaper_takes_only_what_has_expired<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let beating = enqueue_and_claim(store, job_on("s")).await;
    backend.advance(Duration::from_secs(30)).await;
    let younger = enqueue_and_claim(store, job_on("t")).await;
    backend.advance(Duration::from_millis(29_999)).await;
    let before = dump(store).await;
    assert_eq!(reap(store).await, 0, "one millisecond before");
    assert_eq!(dump(store).await, before);
    heartbeat(store, proof(&beating)).await;
    backend.advance(Duration::from_millis(1)).await;
    assert_eq!(reap(store).await, 0, "renewed in time");
    backend.advance(Duration::from_secs(30)).await;
    assert_eq!(reap(store).await, 1);
    assert_eq!(status(store, younger.job_id).await, JobStatus::Queued);
    assert_eq!(status(store, beating.job_id).await, JobStatus::Running);
}

async fn the_reaper_works_in_bounded_batches<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    store.enqueue((0..20).map(|_| job_on("s")).collect()).await.expect("enqueue");
    assert_eq!(store.claim(ask(&["s"], 20)).await.expect("claim").len(), 20);
    backend.advance(TTL).await;
    assert_eq!(store.reap(8).await, Ok(Pass { moved: 8, full: true }));
    assert_eq!(store.reap(8).await, Ok(Pass { moved: 8, full: true }));
    assert_eq!(store.reap(8).await, Ok(Pass { moved: 4, full: false }));
    assert_eq!(store.reap(8).await, Ok(Pass { moved: 0, full: false }));
    assert_eq!(counts(store, "s").await.ready, 20);
}

/// A reaper that updates by id moves a completed job back to waiting; a completion by id does the reverse.
async fn a_completed_job_is_none_of_the_reapers_business<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let claimed = enqueue_and_claim(store, job_on("s")).await;
    backend.advance(TTL * 2).await;
    complete(store, proof(&claimed)).await;
    let before = dump(store).await;
    assert_eq!(reap(store).await, 0);
    assert_eq!(dump(store).await, before);
}

/// Invariant 6: each end closes its attempt, once, and no attempt is open but that of a running job.
async fn every_attempt_that_ended_is_closed_once<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let timeout = Some(TTL * 2);
    let job_id = enqueue(store, NewJob { timeout, ..at_most("s", 9) }).await.job_id;
    let mut expected = Vec::new();
    for outcome in [
        AttemptOutcome::Failed,
        AttemptOutcome::Released,
        AttemptOutcome::Lost,
        AttemptOutcome::TimedOut,
        AttemptOutcome::Cancelled,
        AttemptOutcome::Succeeded,
    ] {
        let claimed = claim(store, "s").await;
        match outcome {
            AttemptOutcome::Failed => drop(fail(store, proof(&claimed)).await),
            AttemptOutcome::Released => drop(release(store, proof(&claimed)).await),
            AttemptOutcome::Succeeded => drop(complete(store, proof(&claimed)).await),
            AttemptOutcome::Lost => {
                backend.advance(TTL).await;
                reap(store).await;
            }
            AttemptOutcome::TimedOut => {
                backend.advance(TTL).await;
                heartbeat(store, proof(&claimed)).await;
                backend.advance(TTL).await;
                reap(store).await;
            }
            AttemptOutcome::Cancelled => {
                assert_eq!(store.cancel(job_id, true).await, Ok(CancelAnswer::Cancelled));
                store.retry(job_id).await.expect("retry");
            }
        }
        backend.advance(Duration::from_secs(5)).await;
        promote(store).await;
        expected.push(Some(outcome));
        let attempts = view(store, job_id).await.attempts;
        assert_eq!(attempts.iter().map(|a| a.outcome).collect::<Vec<_>>(), expected);
        assert!(attempts.iter().all(|a| a.finished_at.is_some_and(|end| end >= a.started_at)));
        assert!(attempts.iter().all(|a| a.expires_at.is_none() && a.heartbeat_at.is_none()));
        assert!(attempts.iter().zip(1..).all(|(a, n)| a.attempt_no == n), "in order, none missing");
    }
}

async fn a_wish_to_cancel_takes_effect_at_every_end_but_success<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let mut ends = Vec::new();
    for name in ["completed", "failed", "released", "lost"] {
        let claimed = enqueue_and_claim(store, job_on(name)).await;
        assert_eq!(store.cancel(claimed.job_id, false).await, Ok(CancelAnswer::Requested));
        assert!(view(store, claimed.job_id).await.cancel_requested);
        let answer = match name {
            "completed" => Some(complete(store, proof(&claimed)).await),
            "failed" => Some(fail(store, proof(&claimed)).await),
            "released" => Some(release(store, proof(&claimed)).await),
            _ => None,
        };
        if answer.is_none() {
            backend.advance(TTL).await;
            assert_eq!(reap(store).await, 1);
        }
        let after = view(store, claimed.job_id).await;
        assert!(!after.cancel_requested && after.attempts[0].outcome.is_some());
        if let Some(answer) = answer {
            assert_eq!(answer, Answer::Accepted { status: after.brief.status });
        }
        ends.push((name, after.brief.status));
    }
    let cancelled = JobStatus::Cancelled;
    let expected = [
        ("completed", JobStatus::Succeeded),
        ("failed", cancelled),
        ("released", cancelled),
        ("lost", cancelled),
    ];
    assert_eq!(ends, expected);
    assert_eq!(store.count_dead(DeadFilter::default()).await, Ok(0), "what was cancelled is not dead");
}

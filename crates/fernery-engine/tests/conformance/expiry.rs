//! An expired lease can be claimed at once: a claim settles those of its streams as the reaper does, each of them once.

use crate::support::backend::{Backend, TTL, settings};
use crate::support::consistency::assert_consistent;
use crate::support::dump::dump;
use crate::support::race::{ROUNDS, race};
use crate::support::singly::*;
use fernery_core::job::report::Answer;
use fernery_core::{AttemptOutcome, JobStatus, limits};
use fernery_engine::store::{BeatAnswer, DeadFilter, NewJob, Store, StoreSettings};
use fernery_engine::{Engine, EngineSettings};
use std::time::Duration;

on_every_backend!(
    a_claim_takes_an_expired_lease_at_once,
    a_renewed_lease_is_left_alone,
    a_claim_takes_the_expired_lease_that_another_process_made,
    a_store_that_was_just_opened_finds_what_had_expired,
    what_a_claim_settles_ends_as_the_reaper_ends_it,
    an_expired_lease_of_an_earlier_stream_goes_before_what_is_ready_in_a_later_one,
    only_streams_that_are_asked_for_are_settled,
    many_expired_leases_are_settled_by_one_claim_after_another,
    two_claims_settle_a_lease_once,
    a_claim_and_the_reaper_settle_a_lease_once,
    a_claim_and_a_late_completion_have_one_winner,
    a_waiting_claim_wakes_when_a_lease_runs_out,
    a_waiting_claim_wakes_when_a_lease_of_another_process_runs_out,
    an_attempt_past_a_short_time_out_wakes_whoever_waits,
);

async fn a_claim_takes_an_expired_lease_at_once<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let first = enqueue_and_claim(store, job_on("s")).await;
    backend.advance(TTL - Duration::from_millis(1)).await;
    assert!(claim_any(store, "s").await.is_none(), "it holds to the end");
    backend.advance(Duration::from_millis(1)).await;
    let second = claim(store, "s").await;
    assert_eq!((second.job_id, second.attempt_no), (first.job_id, 2));
    let view = view(store, first.job_id).await;
    assert_eq!(view.attempts[0].outcome, Some(AttemptOutcome::Lost));
    assert_eq!(view.attempts[0].finished_at, Some(second.claimed_at));
    assert_eq!(heartbeat(store, proof(&first)).await, BeatAnswer::LeaseLost);
    assert_eq!(complete(store, proof(&first)).await, Answer::LeaseLost { closed: true });
    assert_eq!(reap(store).await, 0, "there is nothing left to reap");
    let counts = counts(store, "s").await;
    assert_eq!((counts.ready, counts.running), (0, 1));
    assert_consistent(store).await;
}

async fn a_renewed_lease_is_left_alone<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let held = enqueue_and_claim(store, job_on("s")).await;
    for _ in 0..4 {
        backend.advance(TTL / 2).await;
        heartbeat(store, proof(&held)).await;
        assert!(claim_any(store, "s").await.is_none());
    }
    assert_eq!(view(store, held.job_id).await.attempts.len(), 1);
    backend.advance(TTL).await;
    assert_eq!(claim(store, "s").await.job_id, held.job_id, "the last renewal has run out");
}

async fn a_claim_takes_the_expired_lease_that_another_process_made<B: Backend>() {
    let backend = B::open(settings()).await;
    let (store, other) = (backend.store(), backend.of_another_process().await);
    assert!(claim_any(&*other, "s").await.is_none(), "it has looked before there was a lease");
    for attempt_no in [2, 4] {
        backend.advance(Duration::from_secs(10)).await;
        let held = match attempt_no {
            2 => enqueue_and_claim(&*store, job_on("s")).await,
            _ => claim(&*store, "s").await,
        };
        backend.advance(TTL).await;
        let taken = claim(&*other, "s").await;
        assert_eq!((taken.job_id, taken.attempt_no), (held.job_id, attempt_no));
        release(&*other, proof(&taken)).await;
    }
    assert_consistent(&*store).await;
}

async fn a_store_that_was_just_opened_finds_what_had_expired<B: Backend>() {
    let mut backend = B::open(settings()).await;
    let held = enqueue_and_claim(&*backend.store(), job_on("s")).await;
    backend.advance(TTL).await;
    backend.crash().await;
    assert_eq!(claim(&*backend.store(), "s").await.job_id, held.job_id);
}

async fn what_a_claim_settles_ends_as_the_reaper_ends_it<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let buried = enqueue_and_claim(store, at_most("buried", 1)).await;
    let cancelled = enqueue_and_claim(store, job_on("cancelled")).await;
    store.cancel(cancelled.job_id, false).await.expect("cancel");
    let timeout = Some(Duration::from_secs(30));
    let slow = enqueue_and_claim(store, NewJob { timeout, ..job_on("slow") }).await;
    let paused = enqueue_and_claim(store, job_on("paused")).await;
    store.set_paused(stream("paused"), true).await.expect("pause");
    backend.advance(TTL).await;
    let all = ask(&["buried", "cancelled", "slow", "paused"], 10);
    assert!(store.claim(all).await.expect("claim").is_empty());
    for (claimed, left, outcome) in [
        (buried, JobStatus::Dead, AttemptOutcome::Lost),
        (cancelled, JobStatus::Cancelled, AttemptOutcome::Lost),
        (slow, JobStatus::Queued, AttemptOutcome::TimedOut),
        (paused, JobStatus::Queued, AttemptOutcome::Lost),
    ] {
        let view = view(store, claimed.job_id).await;
        assert_eq!(
            (view.brief.status, view.attempts[0].outcome),
            (left, Some(outcome)),
            "{}",
            claimed.stream
        );
    }
    assert_eq!(counts(store, "slow").await.scheduled, 1, "a time-out waits as a failure does");
    let dead = store.dead_letters(DeadFilter::default(), None, 10).await.expect("read");
    assert_eq!(dead.rows.iter().map(|letter| letter.code.as_str()).collect::<Vec<_>>(), ["lease_expired"]);
    assert_consistent(store).await;
}

async fn an_expired_lease_of_an_earlier_stream_goes_before_what_is_ready_in_a_later_one<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let lost = enqueue_and_claim(store, job_on("first")).await;
    let waits = enqueue(store, job_on("second")).await;
    let lost_too = enqueue_and_claim(store, job_on("third")).await;
    backend.advance(TTL).await;
    let younger = enqueue(store, job_on("first")).await;
    let claimed = store.claim(ask(&["first", "second", "third"], 10)).await.expect("claim");
    let order: Vec<_> = claimed.iter().map(|claimed| claimed.job_id).collect();
    // What comes back stands behind what waits already.
    assert_eq!(order, [younger.job_id, lost.job_id, waits.job_id, lost_too.job_id]);
}

async fn only_streams_that_are_asked_for_are_settled<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let held = enqueue_and_claim(store, job_on("s")).await;
    backend.advance(TTL).await;
    let before = dump(store).await;
    assert!(claim_any(store, "t").await.is_none());
    assert_eq!(dump(store).await, before);
    let accepted = Answer::Accepted { status: JobStatus::Succeeded };
    assert_eq!(complete(store, proof(&held)).await, accepted, "nobody has taken it");
}

async fn many_expired_leases_are_settled_by_one_claim_after_another<B: Backend>() {
    const JOBS: usize = limits::REAP_BATCH + 20;
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    store.enqueue(vec![job_on("s"); JOBS]).await.expect("enqueue");
    assert_eq!(store.claim(ask(&["s"], JOBS)).await.expect("claim").len(), JOBS);
    backend.advance(TTL).await;
    assert_eq!(store.claim(ask(&["s"], JOBS)).await.expect("claim").len(), limits::REAP_BATCH);
    assert_eq!(store.claim(ask(&["s"], JOBS)).await.expect("claim").len(), 20, "the next one goes on");
}

async fn two_claims_settle_a_lease_once<B: Backend>() {
    let backend = B::open(settings()).await;
    let (store, other) = (backend.store(), backend.of_another_process().await);
    let held = enqueue_and_claim(&*store, at_most("s", 1000)).await;
    for round in 0..ROUNDS {
        backend.advance(TTL).await;
        let (a, b) = (store.clone(), other.clone());
        let (a, b) =
            race(round, async move { claim_any(&*a, "s").await }, async move { claim_any(&*b, "s").await })
                .await;
        let claimed: Vec<_> = a.iter().chain(&b).collect();
        assert_eq!(claimed.len(), 1, "round {round}");
        let view = view(&*store, held.job_id).await;
        assert_eq!(view.attempts.len(), round + 2, "one closing row each");
        let lost = view.attempts.iter().filter(|a| a.outcome == Some(AttemptOutcome::Lost)).count();
        assert_eq!(lost, round + 1);
    }
    assert_consistent(&*store).await;
}

async fn a_claim_and_the_reaper_settle_a_lease_once<B: Backend>() {
    let backend = B::open(settings()).await;
    let (store, other) = (backend.store(), backend.of_another_process().await);
    // The third LOST buries it: counted twice it would be dead after the second.
    let mut buried = 0;
    for round in 0..ROUNDS {
        let name = format!("s{round}");
        let held = enqueue_and_claim(&*store, at_most(&name, 3)).await;
        for lost in 1..=3 {
            backend.advance(TTL).await;
            let (a, b, of) = (store.clone(), other.clone(), name.clone());
            let (claimed, _) =
                race(round, async move { claim_any(&*a, &of).await }, async move { reap(&*b).await }).await;
            // The reaper may have had it in hand just then.
            let claimed = match claimed {
                Some(claimed) => Some(claimed),
                None => claim_any(&*store, &name).await,
            };
            assert_eq!(claimed.is_some(), lost < 3, "round {round}, lost {lost}");
            assert_eq!(view(&*store, held.job_id).await.attempts.len(), 3.min(lost + 1), "round {round}");
        }
        buried += usize::from(status(&*store, held.job_id).await == JobStatus::Dead);
    }
    assert_eq!(buried, ROUNDS);
    assert_consistent(&*store).await;
}

/// Invariants 3 and 4.
async fn a_claim_and_a_late_completion_have_one_winner<B: Backend>() {
    let backend = B::open(settings()).await;
    let (store, other) = (backend.store(), backend.of_another_process().await);
    let mut wins = [0, 0];
    for round in 0..ROUNDS {
        let name = format!("s{round}");
        let held = enqueue_and_claim(&*store, job_on(&name)).await;
        backend.advance(TTL).await;
        let (a, b, proof) = (store.clone(), other.clone(), proof(&held));
        let (answer, claimed) =
            race(
                round,
                async move { complete(&*a, proof).await },
                async move { claim_any(&*b, &name).await },
            )
            .await;
        let attempts = view(&*store, held.job_id).await.attempts;
        match (answer, claimed) {
            (Answer::Accepted { status: JobStatus::Succeeded }, None) => {
                wins[0] += 1;
                assert_eq!(attempts[0].outcome, Some(AttemptOutcome::Succeeded));
                assert_eq!(attempts.len(), 1);
            }
            (Answer::LeaseLost { closed: true }, Some(claimed)) => {
                wins[1] += 1;
                assert_eq!((claimed.job_id, claimed.attempt_no), (held.job_id, 2));
                assert_eq!(attempts[0].outcome, Some(AttemptOutcome::Lost));
            }
            both => panic!("round {round}: two winners or none: {both:?}"),
        }
    }
    assert!(wins.iter().all(|won| *won > 0), "both orders were seen: {wins:?}");
    assert_consistent(&*store).await;
}

/// The shortest lease, so that a test can wait for its end.
fn short_lease() -> StoreSettings {
    StoreSettings { lease_ttl: limits::LEASE_TTL_MIN, ..settings() }
}

/// Its loops come by days apart; only what runs out wakes its reaper.
fn engine_without_polls<B: Backend>(backend: &B) -> Engine {
    let mut settings = EngineSettings { store: short_lease(), ..EngineSettings::default() };
    settings.store.chance.fixed_fraction = Some(1e6);
    Engine::start(backend.store(), backend.signals(), settings)
}

/// How long after the end of its lease a job may come back; a reaper that comes by comes days later.
const SOON: Duration = Duration::from_secs(30);

async fn comes_back<B: Backend>(backend: &B, engine: &Engine, holder: &dyn Store, job: NewJob) {
    assert!(engine.claim(ask(&["s"], 1), Duration::ZERO).await.expect("claim").is_empty());
    let held = enqueue_and_claim(holder, job).await;
    let back = engine.claim(ask(&["t", "s"], 1), limits::LEASE_TTL_MIN + SOON).await.expect("claim");
    let now = backend.store().now().await.expect("now");
    assert!(now >= held.expires_at, "not before");
    assert_eq!(back.len(), 1, "it did not come back within {SOON:?}");
    assert_eq!((back[0].job_id, back[0].attempt_no), (held.job_id, 2));
    engine.close().await;
}

async fn a_waiting_claim_wakes_when_a_lease_runs_out<B: Backend>() {
    let backend = B::open_running(short_lease()).await;
    let engine = engine_without_polls(&backend);
    comes_back(&backend, &engine, engine.store(), job_on("s")).await;
}

async fn a_waiting_claim_wakes_when_a_lease_of_another_process_runs_out<B: Backend>() {
    let backend = B::open_running(short_lease()).await;
    let engine = engine_without_polls(&backend);
    let other = backend.of_another_process().await;
    comes_back(&backend, &engine, &*other, job_on("s")).await;
}

async fn an_attempt_past_a_short_time_out_wakes_whoever_waits<B: Backend>() {
    // A lease that outlasts the test.
    let settings = StoreSettings { lease_ttl: TTL, ..short_lease() };
    let backend = B::open_running(settings.clone()).await;
    let mut slow = EngineSettings { store: settings, ..EngineSettings::default() };
    slow.store.chance.fixed_fraction = Some(1e6);
    let engine = Engine::start(backend.store(), backend.signals(), slow);
    // A time-out is a failure: it comes back by way of the promoter, half a second later.
    let timeout = Some(Duration::from_secs(1));
    comes_back(&backend, &engine, engine.store(), NewJob { timeout, ..job_on("s") }).await;
}

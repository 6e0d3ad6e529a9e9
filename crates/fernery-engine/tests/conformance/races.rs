//! Two hands at one job: always one winner, and afterwards everybody reads the same.
//!
//! Every race is run in both orders one after the other, in both orders at once, and as two tasks that leave a barrier
//! together; where the backend allows, the second hand is another process.

use crate::support::backend::{Backend, TTL, settings};
use crate::support::consistency::assert_consistent;
use crate::support::race::{ROUNDS, race};
use crate::support::seeded::Seeded;
use crate::support::singly::*;
use fernery_core::job::report::Answer;
use fernery_core::{AttemptOutcome, JobId, JobStatus};
use fernery_engine::store::{
    BeatAnswer, CancelAnswer, DeadFilter, Enqueued, NewJob, Retention, RetryAnswer, Store,
};
use fernery_engine::{Engine, EngineSettings};
use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

on_every_backend!(
    two_reapers_take_a_lease_once,
    a_completion_and_the_reaper_have_one_winner,
    a_heartbeat_and_the_reaper_have_one_winner,
    a_completion_and_a_cancel_by_force_have_one_winner,
    a_failure_and_a_cancel_end_cancelled,
    a_claim_and_a_cancel_leave_no_job_between,
    two_claimers_never_get_the_same_job,
    many_workers_finish_every_job_exactly_once,
    one_of_many_producers_stores_the_job,
    one_of_many_retries_starts_it_over,
    a_hang_up_costs_no_job,
    hang_ups_eat_no_attempt,
    a_storm_of_all_verbs_leaves_everything_in_its_place,
);

/// Both processes read the same of a job.
async fn agreed_status(one: &dyn Store, other: &dyn Store, job_id: JobId) -> JobStatus {
    let status = view(one, job_id).await.brief;
    assert_eq!(view(other, job_id).await.brief, status);
    status.status
}

async fn two_reapers_take_a_lease_once<B: Backend>() {
    let backend = B::open(settings()).await;
    let (store, other) = (backend.store(), backend.of_another_process().await);
    let job_id = enqueue(&*store, at_most("s", 1000)).await.job_id;
    for round in 0..ROUNDS {
        claim(&*store, "s").await;
        backend.advance(TTL).await;
        let (a, b) = (store.clone(), other.clone());
        let (a, b) = race(round, async move { reap(&*a).await }, async move { reap(&*b).await }).await;
        assert_eq!(a + b, 1, "round {round}");
        assert_eq!(agreed_status(&*store, &*other, job_id).await, JobStatus::Queued);
        assert_eq!(view(&*store, job_id).await.attempts.len(), round + 1, "one closing row each");
    }
    assert_consistent(&*store).await;
}

/// Invariants 3 and 4: the reaper never undoes a completion, a completion never undoes the reaper.
async fn a_completion_and_the_reaper_have_one_winner<B: Backend>() {
    let backend = B::open(settings()).await;
    let (store, other) = (backend.store(), backend.of_another_process().await);
    let mut wins = [0, 0];
    for round in 0..ROUNDS {
        let claimed = enqueue_and_claim(&*store, job_on(&format!("s{round}"))).await;
        backend.advance(TTL).await;
        let (a, b, proof) = (store.clone(), other.clone(), proof(&claimed));
        let (answer, reaped) =
            race(round, async move { complete(&*a, proof).await }, async move { reap(&*b).await }).await;
        let status = agreed_status(&*store, &*other, claimed.job_id).await;
        let outcome = view(&*store, claimed.job_id).await.attempts[0].outcome.expect("closed");
        let again = complete(&*store, proof).await;
        match (answer, reaped) {
            (Answer::Accepted { status: JobStatus::Succeeded }, 0) => {
                wins[0] += 1;
                assert_eq!((status, outcome), (JobStatus::Succeeded, AttemptOutcome::Succeeded));
                assert_eq!(again, Answer::Duplicate { status: JobStatus::Succeeded });
            }
            (Answer::LeaseLost { closed: true }, 1) => {
                wins[1] += 1;
                assert_eq!((status, outcome), (JobStatus::Queued, AttemptOutcome::Lost));
                assert_eq!(again, Answer::LeaseLost { closed: true });
            }
            both => panic!("round {round}: two winners or none: {both:?}"),
        }
        store.cancel(claimed.job_id, false).await.expect("cancel");
    }
    assert!(wins.iter().all(|won| *won > 0), "both orders were seen: {wins:?}");
    assert_consistent(&*store).await;
}

async fn a_heartbeat_and_the_reaper_have_one_winner<B: Backend>() {
    let backend = B::open(settings()).await;
    let (store, other) = (backend.store(), backend.of_another_process().await);
    for round in 0..ROUNDS {
        let claimed = enqueue_and_claim(&*store, job_on(&format!("s{round}"))).await;
        backend.advance(TTL).await;
        let (a, b, proof) = (store.clone(), other.clone(), proof(&claimed));
        let (beat, reaped) =
            race(round, async move { heartbeat(&*a, proof).await }, async move { reap(&*b).await }).await;
        let status = agreed_status(&*store, &*other, claimed.job_id).await;
        match (beat, reaped) {
            (BeatAnswer::Extended { .. }, 0) => assert_eq!(status, JobStatus::Running),
            (BeatAnswer::LeaseLost, 1) => assert_eq!(status, JobStatus::Queued),
            both => panic!("round {round}: two winners or none: {both:?}"),
        }
        store.cancel(claimed.job_id, true).await.expect("cancel");
    }
    assert_consistent(&*store).await;
}

async fn a_completion_and_a_cancel_by_force_have_one_winner<B: Backend>() {
    let backend = B::open(settings()).await;
    let (store, other) = (backend.store(), backend.of_another_process().await);
    for round in 0..ROUNDS {
        let claimed = enqueue_and_claim(&*store, job_on("s")).await;
        let (a, b, proof, job_id) = (store.clone(), other.clone(), proof(&claimed), claimed.job_id);
        let (answer, cancelled) = race(round, async move { complete(&*a, proof).await }, async move {
            b.cancel(job_id, true).await.expect("cancel")
        })
        .await;
        let status = agreed_status(&*store, &*other, job_id).await;
        match (answer, cancelled) {
            (
                Answer::Accepted { status: JobStatus::Succeeded },
                CancelAnswer::Ended(JobStatus::Succeeded),
            ) => {
                assert_eq!(status, JobStatus::Succeeded);
            }
            (Answer::LeaseLost { closed: true }, CancelAnswer::Cancelled) => {
                assert_eq!(status, JobStatus::Cancelled);
            }
            both => panic!("round {round}: two winners or none: {both:?}"),
        }
    }
    assert_consistent(&*store).await;
}

async fn a_failure_and_a_cancel_end_cancelled<B: Backend>() {
    let backend = B::open(settings()).await;
    let (store, other) = (backend.store(), backend.of_another_process().await);
    for round in 0..ROUNDS {
        let claimed = enqueue_and_claim(&*store, job_on("s")).await;
        let (a, b, proof, job_id) = (store.clone(), other.clone(), proof(&claimed), claimed.job_id);
        let answers = race(round, async move { fail(&*a, proof).await }, async move {
            b.cancel(job_id, false).await.expect("cancel")
        })
        .await;
        let told = |status| Answer::Accepted { status };
        let wished_first = (told(JobStatus::Cancelled), CancelAnswer::Requested);
        let failed_first = (told(JobStatus::Queued), CancelAnswer::Cancelled);
        assert!(answers == wished_first || answers == failed_first, "round {round}: {answers:?}");
        assert_eq!(agreed_status(&*store, &*other, job_id).await, JobStatus::Cancelled);
    }
    assert_consistent(&*store).await;
}

async fn a_claim_and_a_cancel_leave_no_job_between<B: Backend>() {
    let backend = B::open(settings()).await;
    let (store, other) = (backend.store(), backend.of_another_process().await);
    for round in 0..ROUNDS {
        let job_id = enqueue(&*store, job_on("s")).await.job_id;
        let (a, b) = (store.clone(), other.clone());
        let (claimed, cancelled) = race(round, async move { claim_any(&*a, "s").await }, async move {
            b.cancel(job_id, false).await.expect("cancel")
        })
        .await;
        let status = agreed_status(&*store, &*other, job_id).await;
        match (claimed, cancelled) {
            (Some(claimed), CancelAnswer::Requested) => {
                assert_eq!(status, JobStatus::Running);
                complete(&*store, proof(&claimed)).await;
            }
            (None, CancelAnswer::Cancelled) => assert_eq!(status, JobStatus::Cancelled),
            both => panic!("round {round}: {both:?}"),
        }
    }
    assert_consistent(&*store).await;
}

/// Invariant 3.
async fn two_claimers_never_get_the_same_job<B: Backend>() {
    let backend = B::open(settings()).await;
    let stores = [backend.store(), backend.of_another_process().await];
    stores[0].enqueue((0..300).map(|_| job_on("s")).collect()).await.expect("enqueue");
    let mut claimers = JoinSet::new();
    for n in 0..8 {
        let store = stores[n % 2].clone();
        claimers.spawn(async move {
            let mut mine = Vec::new();
            loop {
                let claimed = store.claim(ask(&["s"], 1 + n)).await.expect("claim");
                if claimed.is_empty() && counts(&*store, "s").await.ready == 0 {
                    return mine;
                }
                mine.extend(claimed.iter().map(|claimed| claimed.job_id));
            }
        });
    }
    let all: Vec<JobId> = claimers.join_all().await.concat();
    assert_eq!(all.len(), 300);
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 300, "each to one");
}

/// Invariants 3, 4 and 5, under load: 64 workers, 2,000 jobs.
async fn many_workers_finish_every_job_exactly_once<B: Backend>() {
    const JOBS: usize = 2_000;
    let backend = B::open(settings()).await;
    let stores = [backend.store(), backend.of_another_process().await];
    stores[0].enqueue((0..JOBS).map(|_| job_on("s")).collect()).await.expect("enqueue");
    let accepted = Arc::new(AtomicUsize::new(0));
    let mut workers = JoinSet::new();
    for n in 0..64 {
        let (store, accepted) = (stores[n % 2].clone(), accepted.clone());
        workers.spawn(async move {
            while accepted.load(Ordering::SeqCst) < JOBS {
                let Some(claimed) = claim_any(&*store, "s").await else {
                    tokio::task::yield_now().await;
                    continue;
                };
                // Now and then the reply is lost and the worker reports again.
                for report in 0..1 + n % 2 {
                    match complete(&*store, proof(&claimed)).await {
                        Answer::Accepted { .. } if report == 0 => accepted.fetch_add(1, Ordering::SeqCst),
                        Answer::Duplicate { .. } if report == 1 => 0,
                        other => panic!("report {report}: {other:?}"),
                    };
                }
            }
        });
    }
    workers.join_all().await;
    let left = counts(&*stores[0], "s").await;
    assert_eq!((left.succeeded, left.ready, left.running), (JOBS as i64, 0, 0));
    assert_consistent(&*stores[1]).await;
}

async fn one_of_many_producers_stores_the_job<B: Backend>() {
    let backend = B::open(settings()).await;
    let stores = [backend.store(), backend.of_another_process().await];
    for round in 0..6_u128 {
        let id = JobId::from_uuid(uuid::Uuid::from_u128(1000 + round));
        let barrier = Arc::new(Barrier::new(16));
        let mut producers = JoinSet::new();
        for n in 0..16 {
            let (store, barrier) = (stores[n % 2].clone(), barrier.clone());
            producers.spawn(async move {
                let job = match n % 4 {
                    0 | 1 => NewJob { job_id: Some(id), ..job_on("by-id") },
                    _ => keyed("by-key", &format!("k{round}")),
                };
                barrier.wait().await;
                (n % 4 < 2, enqueue_any(&*store, job).await)
            });
        }
        let answers = producers.join_all().await;
        for by_id in [true, false] {
            let created: Vec<_> =
                answers.iter().filter(|(is, a)| *is == by_id && matches!(a, Enqueued::Created(_))).collect();
            assert_eq!(created.len(), 1, "round {round}: {answers:?}");
        }
        for (by_id, answer) in &answers {
            let fits = match answer {
                Enqueued::Created(_) => true,
                Enqueued::Exists(brief) => *by_id && brief.job_id == id,
                Enqueued::DuplicateKey(brief) => !by_id && brief.stream == stream("by-key"),
                Enqueued::Conflict(_) => false,
            };
            assert!(fits, "round {round}: {answer:?}");
        }
    }
    assert_eq!(counts(&*stores[0], "by-id").await.ready, 6);
    assert_eq!(counts(&*stores[0], "by-key").await.ready, 6);
    assert_consistent(&*stores[0]).await;
}

async fn one_of_many_retries_starts_it_over<B: Backend>() {
    let backend = B::open(settings()).await;
    let stores = [backend.store(), backend.of_another_process().await];
    for _ in 0..6 {
        let job_id = bury(&*stores[0], keyed("s", "k")).await;
        let mut operators = JoinSet::new();
        for n in 0..8 {
            let store = stores[n % 2].clone();
            operators.spawn(async move {
                match n % 4 {
                    0 => store.redrive(DeadFilter::default(), 10).await.expect("redrive").moved,
                    _ => match store.retry(job_id).await.expect("retry") {
                        RetryAnswer::Requeued => 1,
                        RetryAnswer::NotEnded(JobStatus::Queued) => 0,
                        other => panic!("{other:?}"),
                    },
                }
            });
        }
        let moved: usize = operators.join_all().await.iter().sum();
        assert_eq!(moved, 1);
        assert_eq!(counts(&*stores[0], "s").await.ready, 1);
        complete(&*stores[0], proof(&claim(&*stores[0], "s").await)).await;
    }
    assert_consistent(&*stores[0]).await;
}

/// Polls a claim up to `polls` times and hangs up; answers what had arrived by then.
async fn claim_and_hang_up(store: Arc<dyn Store>, max: usize, polls: usize) -> Vec<JobId> {
    let mut claim = Box::pin(async move { store.claim(ask(&["s"], max)).await.expect("claim") });
    for _ in 0..polls {
        let once = std::future::poll_fn(|cx| std::task::Poll::Ready(claim.as_mut().poll(cx)));
        if let std::task::Poll::Ready(claimed) = once.await {
            return claimed.iter().map(|claimed| claimed.job_id).collect();
        }
        tokio::task::yield_now().await;
    }
    Vec::new()
}

/// An engine that never polls by itself: what it hands out, a nudge brought.
fn engine_without_backstop<B: Backend>(backend: &B) -> Engine {
    let mut settings = EngineSettings { store: settings(), ..EngineSettings::default() };
    settings.store.chance.fixed_fraction = Some(1e6);
    Engine::start(backend.store(), backend.signals(), settings)
}

/// Whoever hangs up at whatever moment: each job was handed over or can be claimed, at once, and none is both.
async fn a_hang_up_costs_no_job<B: Backend>() {
    const JOBS: usize = 60;
    let backend = B::open(settings()).await;
    let store = backend.store();
    let jobs = store.enqueue((0..JOBS).map(|_| job_on("s")).collect()).await.expect("enqueue");
    assert_eq!(jobs.len(), JOBS);
    let mut random = Seeded::new(7);
    let mut handed_over = Vec::new();
    let mut calls = JoinSet::new();
    for _ in 0..400 {
        let polls = if random.chance(5) { 1_000_000 } else { random.below(40) };
        calls.spawn(claim_and_hang_up(store.clone(), 1 + random.below(3), polls));
        if calls.len() == 8 {
            handed_over.extend(calls.join_next().await.expect("eight").expect("no panic"));
        }
    }
    handed_over.extend(calls.join_all().await.concat());
    let engine = engine_without_backstop(&backend);
    while handed_over.len() < JOBS {
        let claimed = engine.claim(ask(&["s"], 5), Duration::from_secs(60)).await.expect("claim");
        assert!(!claimed.is_empty(), "{} of {JOBS} jobs, the rest is lost", handed_over.len());
        handed_over.extend(claimed.iter().map(|claimed| claimed.job_id));
    }
    assert_eq!(handed_over.len(), JOBS);
    assert_eq!(handed_over.iter().collect::<BTreeSet<_>>().len(), JOBS, "none to two");
    assert_eq!(counts(&*store, "s").await.running, JOBS as i64);
    assert_consistent(&*store).await;
    engine.close().await;
}

/// A client that comes and goes must not bury a job that nobody ever started.
async fn hang_ups_eat_no_attempt<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = backend.store();
    let engine = engine_without_backstop(&backend);
    let job_id = enqueue(&*store, at_most("s", 1)).await.job_id;
    for round in 0..60 {
        let got = claim_and_hang_up(store.clone(), 1, round % 12).await;
        if !got.is_empty() {
            store.cancel(job_id, true).await.expect("cancel");
            store.retry(job_id).await.expect("retry");
        }
    }
    let claimed = engine.claim(ask(&["s"], 1), Duration::from_secs(60)).await.expect("claim");
    assert_eq!(claimed.len(), 1, "{:?}", view(&*store, job_id).await);
    engine.close().await;
}

/// Invariants 3 to 6 and 9, with everything at once.
async fn a_storm_of_all_verbs_leaves_everything_in_its_place<B: Backend>() {
    let backend = Arc::new(B::open(settings()).await);
    let stores = [backend.store(), backend.of_another_process().await];
    let mut hands = JoinSet::new();
    for n in 0..12_u64 {
        let (store, backend) = (stores[n as usize % 2].clone(), backend.clone());
        hands.spawn(async move {
            let mut random = Seeded::new(n);
            for _ in 0..40 {
                one_gust(&*backend, &*store, &mut random).await;
            }
        });
    }
    hands.join_all().await;
    for store in &stores {
        store.tidy().await.expect("tidy");
        assert_consistent(&**store).await;
    }
}

async fn one_gust<B: Backend>(backend: &B, store: &dyn Store, random: &mut Seeded) {
    let streams = ["a", "b"];
    let name = random.pick(&streams);
    match random.below(10) {
        0..3 => {
            let jobs = (0..random.below(4)).map(|n| match random.below(3) {
                0 => keyed(name, &format!("k{n}")),
                1 => delayed(name, Duration::from_secs(1)),
                _ => at_most(name, 2),
            });
            store.enqueue(jobs.collect()).await.expect("enqueue");
        }
        3..8 => {
            let claimed = store.claim(ask(&streams, 1 + random.below(4))).await.expect("claim");
            for claimed in claimed {
                match random.below(8) {
                    0 => drop(fail(store, proof(&claimed)).await),
                    1 => drop(fail_for_good(store, proof(&claimed)).await),
                    2 => drop(release(store, proof(&claimed)).await),
                    3 => drop(store.cancel(claimed.job_id, random.chance(50)).await.expect("cancel")),
                    4 => drop(heartbeat(store, proof(&claimed)).await),
                    5 => drop(complete(store, forged(&claimed)).await),
                    _ => drop(complete(store, proof(&claimed)).await),
                }
            }
        }
        8 => {
            backend.advance(TTL / 2).await;
            store.reap(5).await.expect("reap");
            store.promote(5).await.expect("promote");
        }
        _ => {
            store.redrive(DeadFilter::default(), 3).await.expect("redrive");
            store.retain(Retention::all(TTL * 4), 5).await.expect("retain");
        }
    }
}

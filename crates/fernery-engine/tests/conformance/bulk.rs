//! Acts on all jobs that match: whom they reach, whom they never mean, and that a step is done once or not at all.

use crate::support::backend::{Backend, TTL, settings};
use crate::support::consistency::assert_consistent;
use crate::support::dump::dump;
use crate::support::singly::*;
use fernery_core::artifact::RecordId;
use fernery_core::job::bulk::{BulkFilter, BulkState, BulkVerb, Counted};
use fernery_core::job::report::Answer;
use fernery_core::journal::Act;
use fernery_core::{JobId, JobStatus, Timestamp, limits};
use fernery_engine::Substrate;
use fernery_engine::pipeline::acts::{Actor, Refusal};
use fernery_engine::pipeline::bulk::{self, BulkAct, NewBulk};
use fernery_engine::pipeline::journal;
use fernery_engine::store::{Pass, Store};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Barrier;

on_both_backends!(
    a_cancel_ends_all_that_waits_and_nothing_that_comes_later,
    a_cancel_of_running_jobs_asks_each_holder_once,
    a_cancel_of_running_jobs_means_no_job_that_began_later,
    a_cancel_finds_a_job_that_went_behind_its_walk,
    a_retry_leaves_a_job_whose_key_is_taken_and_says_so,
    a_retry_does_not_mean_a_job_that_died_again,
    a_cancelled_job_starts_over,
    a_purge_deletes_the_deaths_of_one_code,
    jobs_of_tickets_are_never_meant,
    an_act_that_is_stopped_does_no_more,
    an_act_is_made_once_for_its_id,
    so_many_acts_are_under_way_at_most,
    an_act_whose_steps_fail_goes_behind_the_others,
    acts_that_ended_long_ago_are_forgotten,
    a_process_that_dies_between_two_steps_loses_no_job,
    two_processes_do_each_job_once,
    what_matches_is_counted_without_counting_history,
);

const LATER: Duration = Duration::from_secs(1);

fn operator() -> Actor {
    Actor("operator".to_string())
}

fn substrate<B: Backend>(backend: &B) -> Substrate {
    Substrate::new(backend.store(), backend.signals())
}

fn asked(id: &str, verb: BulkVerb, status: JobStatus) -> NewBulk {
    NewBulk {
        act_id: RecordId::new(id).expect("an id"),
        verb,
        status,
        stream: None,
        code: None,
        before: None,
        expected: (0, Counted::Exact),
    }
}

/// Asks for an act a moment after everything that is there.
async fn start<B: Backend>(backend: &B, new: NewBulk) -> BulkAct {
    backend.advance(LATER).await;
    let (act, made) = begin(backend, new).await.expect("accepted");
    assert!(made);
    act
}

async fn begin<B: Backend>(backend: &B, new: NewBulk) -> Result<(BulkAct, bool), Refusal> {
    substrate(backend).transact(move |sql| bulk::start(sql, &operator(), &new)).await.expect("a store")
}

async fn read<B: Backend>(backend: &B, id: &str) -> BulkAct {
    let id = RecordId::new(id).expect("an id");
    let found = substrate(backend).read(move |sql| bulk::by_id(sql, &id)).await.expect("a store");
    found.expect("the act")
}

/// Takes steps until none is left; answers how many that were.
async fn run(store: &dyn Store) -> usize {
    let mut steps = 0;
    while bulk::next_step(store).await.expect("a step").is_some() {
        steps += 1;
        assert!(steps < 1_000, "an act comes to its end");
    }
    steps
}

async fn enqueue_many(store: &dyn Store, name: &str, jobs: usize) {
    store.enqueue((0..jobs).map(|_| job_on(name)).collect()).await.expect("enqueued");
}

async fn acts_of<B: Backend>(backend: &B, id: &'static str) -> Vec<Act> {
    let entries = substrate(backend).read(move |sql| journal::of_subject(sql, id)).await.expect("a store");
    entries.iter().filter_map(journal::Entry::act).collect()
}

async fn a_cancel_ends_all_that_waits_and_nothing_that_comes_later<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let mut meant = vec![enqueue(store, keyed("s", "k")).await.job_id];
    meant.push(enqueue(store, job_on("t")).await.job_id);
    meant.push(enqueue(store, delayed("s", TTL)).await.job_id);
    start(&backend, asked("a", BulkVerb::Cancel, JobStatus::Queued)).await;
    let later = [enqueue(store, job_on("s")).await.job_id, enqueue(store, delayed("t", TTL)).await.job_id];
    run(store).await;
    let act = read(&backend, "a").await;
    assert_eq!((act.state, act.done, act.refused), (BulkState::Done, 3, 0));
    assert_eq!(act.ended_at, Some(act.updated_at));
    for job_id in meant {
        assert_eq!(status(store, job_id).await, JobStatus::Cancelled);
    }
    for job_id in later {
        assert_eq!(status(store, job_id).await, JobStatus::Queued, "it came later");
    }
    let s = counts(store, "s").await;
    assert_eq!((s.ready, s.scheduled, s.cancelled), (1, 0, 2));
    enqueue(store, keyed("s", "k")).await;
    assert_consistent(store).await;
    assert_eq!(acts_of(&backend, "a").await, [Act::BulkStarted, Act::BulkEnded]);
    assert!(bulk::next_step(store).await.expect("a step").is_none(), "it has ended");
}

async fn a_cancel_of_running_jobs_asks_each_holder_once<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(enqueue_and_claim(store, job_on("s")).await);
    }
    store.cancel(held[0].job_id, false).await.expect("asked before");
    let other = enqueue_and_claim(store, job_on("t")).await;
    start(
        &backend,
        NewBulk { stream: Some(stream("s")), ..asked("a", BulkVerb::Cancel, JobStatus::Running) },
    )
    .await;
    run(store).await;
    assert_eq!(read(&backend, "a").await.done, 2, "one had been asked before");
    for claimed in &held {
        assert!(view(store, claimed.job_id).await.cancel_requested);
        let accepted = Answer::Accepted { status: JobStatus::Succeeded };
        assert_eq!(complete(store, proof(claimed)).await, accepted, "work that is done is kept");
    }
    assert!(!view(store, other.job_id).await.cancel_requested, "it is of another stream");
}

async fn a_cancel_of_running_jobs_means_no_job_that_began_later<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let held = enqueue_and_claim(store, job_on("s")).await;
    let waits = enqueue(store, job_on("s")).await.job_id;
    start(&backend, asked("a", BulkVerb::Cancel, JobStatus::Running)).await;
    assert_eq!(claim(store, "s").await.job_id, waits, "it begins after the act was asked for");
    assert_eq!(run(store).await, 1, "one walk is enough: no job begins before it was asked for");
    assert_eq!(read(&backend, "a").await.done, 1);
    assert!(view(store, held.job_id).await.cancel_requested);
    assert!(!view(store, waits).await.cancel_requested, "nobody has seen it run");
}

async fn a_cancel_finds_a_job_that_went_behind_its_walk<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let held = enqueue_and_claim(store, job_on("s")).await;
    enqueue_many(store, "s", 3).await;
    start(&backend, asked("a", BulkVerb::Cancel, JobStatus::Queued)).await;
    // The walk over the scheduled jobs is through when this one becomes scheduled: its attempt failed.
    bulk::next_step(store).await.expect("a step").expect("the first step");
    assert_eq!(fail(store, proof(&held)).await, Answer::Accepted { status: JobStatus::Queued });
    assert_eq!(counts(store, "s").await.scheduled, 1);
    run(store).await;
    assert_eq!(read(&backend, "a").await.done, 4);
    assert_eq!(status(store, held.job_id).await, JobStatus::Cancelled);
    assert_consistent(store).await;
}

async fn a_retry_leaves_a_job_whose_key_is_taken_and_says_so<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let blocked = bury(store, keyed("s", "k")).await;
    enqueue(store, keyed("t", "k")).await;
    let [first, second] = [bury(store, keyed("s", "l")).await, bury(store, keyed("s", "l")).await];
    backend.advance(LATER).await;
    store.retry(first).await.expect("its key is free");
    let again = claim(store, "s").await;
    assert_eq!(again.job_id, first);
    fail_for_good(store, proof(&again)).await;
    let free = bury(store, job_on("s")).await;
    start(&backend, asked("a", BulkVerb::Retry, JobStatus::Dead)).await;
    run(store).await;
    let act = read(&backend, "a").await;
    assert_eq!((act.state, act.done, act.refused), (BulkState::Done, 2, 2), "of twins one goes");
    assert_eq!(status(store, blocked).await, JobStatus::Dead);
    assert_eq!(status(store, free).await, JobStatus::Queued);
    assert_eq!(status(store, first).await, JobStatus::Queued, "the smaller id goes, though it died later");
    assert_eq!(status(store, second).await, JobStatus::Dead);
    assert_consistent(store).await;
}

async fn a_retry_does_not_mean_a_job_that_died_again<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let job_id = bury(store, job_on("s")).await;
    start(&backend, asked("a", BulkVerb::Retry, JobStatus::Dead)).await;
    store.retry(job_id).await.expect("somebody else is faster");
    let claimed = claim(store, "s").await;
    fail_for_good(store, proof(&claimed)).await;
    run(store).await;
    let act = read(&backend, "a").await;
    assert_eq!((act.state, act.done, act.refused), (BulkState::Done, 0, 0));
    assert_eq!(status(store, job_id).await, JobStatus::Dead, "nobody has seen this death");
}

async fn a_cancelled_job_starts_over<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let mut meant = Vec::new();
    for name in ["s", "s", "t"] {
        let job_id = enqueue(store, job_on(name)).await.job_id;
        store.cancel(job_id, false).await.expect("cancelled");
        meant.push(job_id);
    }
    start(
        &backend,
        NewBulk { stream: Some(stream("s")), ..asked("a", BulkVerb::Retry, JobStatus::Cancelled) },
    )
    .await;
    run(store).await;
    assert_eq!(read(&backend, "a").await.done, 2);
    let mut found = Vec::new();
    for job_id in meant {
        found.push(status(store, job_id).await);
    }
    assert_eq!(found, [JobStatus::Queued, JobStatus::Queued, JobStatus::Cancelled]);
    claim(store, "s").await;
    assert_consistent(store).await;
}

async fn a_purge_deletes_the_deaths_of_one_code<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let gone = bury(store, job_on("s")).await;
    let stays = bury(store, job_on("t")).await;
    let of = NewBulk {
        stream: Some(stream("s")),
        code: Some("broken".into()),
        ..asked("a", BulkVerb::Purge, JobStatus::Dead)
    };
    start(&backend, NewBulk { code: Some("other".into()), act_id: RecordId::stored("b"), ..of.clone() })
        .await;
    start(&backend, of).await;
    run(store).await;
    assert_eq!((read(&backend, "a").await.done, read(&backend, "b").await.done), (1, 0));
    assert!(store.job(gone).await.expect("read").is_none());
    assert_eq!(status(store, stays).await, JobStatus::Dead);
    assert_eq!(counts(store, "s").await.dead, 0);
    assert_consistent(store).await;
}

async fn jobs_of_tickets_are_never_meant<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let of_ticket = enqueue(store, job_on("diazotroph:x:y")).await.job_id;
    let dead = bury(store, job_on("diazotroph:x:z")).await;
    let plain = enqueue(store, job_on("zz")).await.job_id;
    start(&backend, asked("a", BulkVerb::Cancel, JobStatus::Queued)).await;
    start(&backend, asked("b", BulkVerb::Retry, JobStatus::Dead)).await;
    start(&backend, asked("c", BulkVerb::Purge, JobStatus::Dead)).await;
    run(store).await;
    let done =
        [read(&backend, "a").await.done, read(&backend, "b").await.done, read(&backend, "c").await.done];
    assert_eq!(done, [1, 0, 0]);
    assert_eq!(status(store, plain).await, JobStatus::Cancelled);
    assert_eq!(status(store, of_ticket).await, JobStatus::Queued);
    assert_eq!(status(store, dead).await, JobStatus::Dead);
}

async fn an_act_that_is_stopped_does_no_more<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let jobs = limits::BULK_BATCH + 50;
    enqueue_many(store, "s", jobs).await;
    start(&backend, asked("a", BulkVerb::Cancel, JobStatus::Queued)).await;
    for _ in 0..2 {
        bulk::next_step(store).await.expect("a step").expect("it is under way");
    }
    let stop = || async {
        let id = RecordId::stored("a");
        substrate(&backend).transact(move |sql| bulk::stop(sql, &operator(), &id)).await.expect("a store")
    };
    let stopped = stop().await.expect("stopped");
    assert_eq!((stopped.state, stopped.done), (BulkState::Stopped, limits::BULK_BATCH as u64));
    assert_eq!(run(store).await, 0, "no step is left");
    assert_eq!(stop().await.expect("once more"), stopped);
    assert_eq!(read(&backend, "a").await, stopped);
    assert_eq!(counts(store, "s").await.ready, 50);
    assert_eq!(acts_of(&backend, "a").await, [Act::BulkStarted, Act::BulkStopped], "it is told once");
    let unknown = RecordId::stored("nobody");
    let unknown = substrate(&backend)
        .transact(move |sql| bulk::stop(sql, &operator(), &unknown))
        .await
        .expect("a store");
    assert_eq!(unknown, Err(Refusal::Unknown));
    assert_consistent(store).await;
}

async fn an_act_is_made_once_for_its_id<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let first = start(&backend, asked("a", BulkVerb::Cancel, JobStatus::Queued)).await;
    let again = || begin(&backend, asked("a", BulkVerb::Cancel, JobStatus::Queued));
    assert_eq!(again().await, Ok((first.clone(), false)));
    run(store).await;
    backend.advance(LATER).await;
    enqueue(store, job_on("s")).await;
    let (act, made) = again().await.expect("the same act");
    assert!(!made && act.state == BulkState::Done, "an act that has ended does not begin again");
    assert_eq!(run(store).await, 0);
    let known =
        NewBulk { before: Some(first.filter.before), ..asked("a", BulkVerb::Cancel, JobStatus::Queued) };
    assert!(begin(&backend, known).await.is_ok_and(|(_, made)| !made));
    for other in [
        asked("a", BulkVerb::Cancel, JobStatus::Running),
        NewBulk { stream: Some(stream("s")), ..asked("a", BulkVerb::Cancel, JobStatus::Queued) },
        NewBulk {
            before: Some(Timestamp::from_millis(1)),
            ..asked("a", BulkVerb::Cancel, JobStatus::Queued)
        },
    ] {
        assert_eq!(begin(&backend, other).await, Err(Refusal::Taken));
    }
}

async fn so_many_acts_are_under_way_at_most<B: Backend>() {
    let backend = B::open(settings()).await;
    for n in 0..limits::BULK_RUNNING_MAX {
        let made = begin(&backend, asked(&format!("a{n}"), BulkVerb::Cancel, JobStatus::Queued)).await;
        assert!(made.is_ok(), "{made:?}");
    }
    let one_more = || begin(&backend, asked("more", BulkVerb::Cancel, JobStatus::Queued));
    assert!(matches!(one_more().await, Err(Refusal::Conflict(_))));
    run(&*backend.store()).await;
    assert!(one_more().await.is_ok());
}

async fn an_act_whose_steps_fail_goes_behind_the_others<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    enqueue_many(store, "s", 3).await;
    let of = |id| NewBulk { stream: Some(stream("s")), ..asked(id, BulkVerb::Cancel, JobStatus::Queued) };
    let sound = start(&backend, of("damaged")).await;
    start(&backend, of("other")).await;
    let walk_is = |statement: &'static str| {
        let substrate = substrate(&backend);
        async move {
            let written = substrate.transact(move |sql| sql.touched(statement, &[])).await;
            assert_eq!(written.expect("a store"), 1);
        }
    };
    walk_is("UPDATE bulk_acts SET walk = 'nowhere' WHERE act_id = 'damaged' RETURNING act_id").await;
    let (mut failed, mut stepped) = (0, 0);
    while failed < 2 && stepped < 100 {
        backend.advance(LATER).await;
        match bulk::next_step(store).await {
            Ok(step) => stepped += usize::from(step.is_some()),
            Err(_) => failed += 1,
        }
    }
    let between = stepped;
    while read(&backend, "other").await.state == BulkState::Running && failed < 100 {
        backend.advance(LATER).await;
        failed += usize::from(bulk::next_step(store).await.is_err());
    }
    assert_eq!(read(&backend, "other").await.done, 3, "it does not wait for the damaged one");
    assert!(between > 0, "they take turns");
    walk_is(
        "UPDATE bulk_acts SET walk = '{\"over\":\"ready\",\"after\":null}' WHERE act_id = 'damaged' RETURNING act_id",
    )
    .await;
    let told = read(&backend, "damaged").await;
    assert!(told.trouble.as_deref().is_some_and(|why| why.contains("walk")), "{told:?}");
    assert!(told.updated_at > sound.updated_at);
    run(store).await;
    let mended = read(&backend, "damaged").await;
    assert_eq!((mended.state, mended.trouble), (BulkState::Done, None));
}

async fn acts_that_ended_long_ago_are_forgotten<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    for id in ["a", "b", "c"] {
        start(&backend, asked(id, BulkVerb::Cancel, JobStatus::Queued)).await;
        run(store).await;
    }
    start(&backend, asked("goes-on", BulkVerb::Cancel, JobStatus::Queued)).await;
    backend.advance(TTL).await;
    start(&backend, asked("young", BulkVerb::Cancel, JobStatus::Queued)).await;
    let young = RecordId::stored("young");
    let stopped = substrate(&backend).transact(move |sql| bulk::stop(sql, &operator(), &young)).await;
    stopped.expect("a store").expect("stopped");
    let forget = || bulk::forget(store, TTL, 2);
    assert_eq!(forget().await, Ok(Pass { moved: 2, full: true }));
    assert_eq!(forget().await, Ok(Pass { moved: 1, full: false }));
    assert_eq!(forget().await, Ok(Pass { moved: 0, full: false }), "one goes on, and one has just ended");
    assert_eq!(read(&backend, "goes-on").await.state, BulkState::Running);
    assert_eq!(read(&backend, "young").await.state, BulkState::Stopped);
}

async fn a_process_that_dies_between_two_steps_loses_no_job<B: Backend>() {
    let mut backend = B::open(settings()).await;
    let jobs = limits::BULK_BATCH * 2 + 7;
    enqueue_many(&*backend.store(), "s", jobs).await;
    start(&backend, asked("a", BulkVerb::Cancel, JobStatus::Queued)).await;
    loop {
        let step = bulk::next_step(&*backend.store()).await.expect("a step");
        backend.crash().await;
        if step.is_none() {
            break;
        }
    }
    let act = read(&backend, "a").await;
    assert_eq!((act.state, act.done), (BulkState::Done, jobs as u64));
    assert_eq!(counts(&*backend.store(), "s").await.cancelled, jobs as i64);
    assert_eq!(acts_of(&backend, "a").await, [Act::BulkStarted, Act::BulkEnded]);
}

async fn two_processes_do_each_job_once<B: Backend>() {
    let backend = B::open(settings()).await;
    let (store, other) = (backend.store(), backend.of_another_process().await);
    let jobs = limits::BULK_BATCH * 3;
    enqueue_many(&*store, "s", jobs).await;
    enqueue_many(&*store, "t", jobs).await;
    for name in ["s", "t"] {
        let of = NewBulk { stream: Some(stream(name)), ..asked(name, BulkVerb::Cancel, JobStatus::Queued) };
        start(&backend, of).await;
    }
    let barrier = Arc::new(Barrier::new(2));
    let hand = |store: Arc<dyn Store>| {
        let barrier = barrier.clone();
        tokio::spawn(async move {
            barrier.wait().await;
            let mut done = 0;
            while let Some(step) = bulk::next_step(&*store).await.expect("a step") {
                done += step.acted.done;
            }
            done
        })
    };
    let (one, two) = (hand(store.clone()), hand(other));
    let mut done = one.await.expect("a hand") + two.await.expect("a hand");
    // A hand goes home when the other one has all acts in hand; what is left then is done now.
    while let Some(step) = bulk::next_step(&*store).await.expect("a step") {
        done += step.acted.done;
    }
    assert_eq!(done, jobs as u64 * 2);
    for name in ["s", "t"] {
        let act = read(&backend, name).await;
        assert_eq!((act.state, act.done), (BulkState::Done, jobs as u64));
    }
    assert_consistent(&*store).await;
}

async fn what_matches_is_counted_without_counting_history<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    enqueue_many(store, "s", 4).await;
    enqueue(store, delayed("s", TTL)).await;
    enqueue_many(store, "t", 2).await;
    enqueue(store, job_on("diazotroph:x:y")).await;
    let dead: JobId = bury(store, job_on("u")).await;
    let before = dump(store).await;
    backend.advance(LATER).await;
    let now = store.now().await.expect("a clock");
    let substrate = substrate(&backend);
    let count = |status, name: Option<&str>, code: Option<&str>, is_now| {
        let (stream, code) = (name.map(stream), code.map(str::to_string));
        let filter = BulkFilter { status, stream, code, before: now };
        let substrate = substrate.clone();
        async move { bulk::matching(&substrate, &filter, is_now).await.expect("counted") }
    };
    assert_eq!(count(JobStatus::Queued, None, None, true).await, (7, Counted::Exact));
    assert_eq!(count(JobStatus::Queued, Some("s"), None, true).await, (5, Counted::Exact));
    assert_eq!(count(JobStatus::Queued, Some("s"), None, false).await, (5, Counted::AtMost));
    let asked_to_end = "a running job that was asked to end is counted, and not meant";
    assert_eq!(count(JobStatus::Running, None, None, true).await, (0, Counted::AtMost), "{asked_to_end}");
    assert_eq!(count(JobStatus::Dead, None, None, false).await, (1, Counted::Exact));
    assert_eq!(count(JobStatus::Dead, Some("u"), Some("broken"), true).await, (1, Counted::Exact));
    assert_eq!(count(JobStatus::Dead, Some("u"), Some("other"), true).await, (0, Counted::Exact));
    assert_eq!(dump(store).await, before, "counting changes nothing");
    assert_eq!(status(store, dead).await, JobStatus::Dead);
}

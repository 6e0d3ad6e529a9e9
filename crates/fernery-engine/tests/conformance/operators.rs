//! What an operator can do to a job: cancel, retry, redrive, purge; what retention drops; tokens.

use crate::support::backend::{Backend, START, TTL, settings};
use crate::support::dump::{all_dead, dump};
use crate::support::singly::*;
use fernery_core::job::report::Answer;
use fernery_core::{AttemptOutcome, JobId, JobStatus, Timestamp};
use fernery_engine::store::{
    BeatAnswer, CancelAnswer, DeadFilter, DeadGroup, DeadGroups, Enqueued, IdsLike, NewJob, Pass, Retention,
    RetryAnswer, TokenRow,
};
use std::time::Duration;

on_every_backend!(
    a_waiting_job_is_cancelled_at_once,
    a_running_job_is_asked_to_end,
    a_job_cancelled_by_force_has_ended_for_its_holder_too,
    a_cancel_of_what_has_ended_changes_nothing,
    only_what_is_dead_or_cancelled_starts_over,
    a_job_that_starts_over_counts_from_zero_and_keeps_its_history,
    a_job_does_not_start_over_while_its_key_is_taken,
    redrive_takes_what_the_filter_means_oldest_first,
    a_taken_key_does_not_hold_up_a_redrive,
    purge_deletes_what_the_filter_means,
    retention_drops_what_ended_long_ago_and_nothing_else,
    dead_letters_have_a_retention_of_their_own,
    dead_jobs_are_grouped_by_stream_and_code,
    leases_are_listed_by_the_age_of_their_jobs,
    retention_works_in_bounded_batches_oldest_first,
    dead_jobs_are_listed_by_their_death_with_their_last_error,
    a_part_of_an_id_finds_the_jobs_that_it_means,
    a_token_is_kept_once_and_taken_back_once,
);

fn nobody() -> JobId {
    JobId::from_uuid(uuid::Uuid::from_u128(1))
}

async fn a_waiting_job_is_cancelled_at_once<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let ready = enqueue(store, job_on("s")).await.job_id;
    let scheduled = enqueue(store, delayed("s", Duration::from_secs(9))).await.job_id;
    let forced = enqueue(store, job_on("s")).await.job_id;
    backend.advance(Duration::from_secs(1)).await;
    for (job_id, force) in [(ready, false), (scheduled, false), (forced, true)] {
        assert_eq!(store.cancel(job_id, force).await, Ok(CancelAnswer::Cancelled));
        let brief = view(store, job_id).await.brief;
        let ended = (JobStatus::Cancelled, Some(START.after(Duration::from_secs(1))));
        assert_eq!((brief.status, brief.finished_at), ended);
    }
    backend.advance(TTL).await;
    assert_eq!(promote(store).await, 0);
    assert!(claim_any(store, "s").await.is_none());
    let left = counts(store, "s").await;
    assert_eq!((left.ready, left.scheduled, left.cancelled), (0, 0, 3));
    assert_eq!(store.cancel(nobody(), true).await, Ok(CancelAnswer::Unknown));
}

async fn a_running_job_is_asked_to_end<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let claimed = enqueue_and_claim(store, job_on("s")).await;
    assert_eq!(store.cancel(claimed.job_id, false).await, Ok(CancelAnswer::Requested));
    assert_eq!(store.cancel(claimed.job_id, false).await, Ok(CancelAnswer::Requested), "once more");
    let after = view(store, claimed.job_id).await;
    assert!(after.cancel_requested && after.brief.status == JobStatus::Running);
    let beat = heartbeat(store, proof(&claimed)).await;
    assert!(matches!(beat, BeatAnswer::Extended { cancel_requested: true, .. }), "{beat:?}");
    let accepted = Answer::Accepted { status: JobStatus::Succeeded };
    assert_eq!(complete(store, proof(&claimed)).await, accepted, "work that is done is kept");
}

async fn a_job_cancelled_by_force_has_ended_for_its_holder_too<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let claimed = enqueue_and_claim(store, job_on("s")).await;
    assert_eq!(store.cancel(claimed.job_id, true).await, Ok(CancelAnswer::Cancelled));
    let after = view(store, claimed.job_id).await;
    assert_eq!(after.brief.status, JobStatus::Cancelled);
    assert_eq!(after.attempts[0].outcome, Some(AttemptOutcome::Cancelled));
    let before = dump(store).await;
    assert_eq!(complete(store, proof(&claimed)).await, Answer::LeaseLost { closed: true });
    assert_eq!(heartbeat(store, proof(&claimed)).await, BeatAnswer::LeaseLost);
    backend.advance(TTL).await;
    assert_eq!(reap(store).await, 0);
    assert_eq!(dump(store).await, before);
}

async fn a_cancel_of_what_has_ended_changes_nothing<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let succeeded = enqueue_and_claim(store, job_on("s")).await;
    complete(store, proof(&succeeded)).await;
    let dead = bury(store, job_on("s")).await;
    let cancelled = enqueue(store, job_on("s")).await.job_id;
    store.cancel(cancelled, false).await.expect("cancel");
    let before = dump(store).await;
    for (job_id, status) in
        [(succeeded.job_id, JobStatus::Succeeded), (dead, JobStatus::Dead), (cancelled, JobStatus::Cancelled)]
    {
        for force in [false, true] {
            assert_eq!(store.cancel(job_id, force).await, Ok(CancelAnswer::Ended(status)));
        }
    }
    assert_eq!(dump(store).await, before);
}

async fn only_what_is_dead_or_cancelled_starts_over<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let succeeded = enqueue_and_claim(store, job_on("s")).await;
    complete(store, proof(&succeeded)).await;
    let running = enqueue_and_claim(store, job_on("s")).await.job_id;
    let queued = enqueue(store, job_on("s")).await.job_id;
    let scheduled = enqueue(store, delayed("s", TTL)).await.job_id;
    let before = dump(store).await;
    for (job_id, status) in [
        (succeeded.job_id, JobStatus::Succeeded),
        (running, JobStatus::Running),
        (queued, JobStatus::Queued),
        (scheduled, JobStatus::Queued),
    ] {
        assert_eq!(store.retry(job_id).await, Ok(RetryAnswer::NotEnded(status)));
    }
    assert_eq!(store.retry(nobody()).await, Ok(RetryAnswer::Unknown));
    assert_eq!(dump(store).await, before);
}

async fn a_job_that_starts_over_counts_from_zero_and_keeps_its_history<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let job_id = enqueue(store, at_most("s", 2)).await.job_id;
    let mut attempts = 0;
    for _ in 0..2 {
        for status in [JobStatus::Queued, JobStatus::Dead] {
            let claimed = claim(store, "s").await;
            attempts += 1;
            assert_eq!(claimed.attempt_no, attempts, "the numbers go on");
            assert_eq!(fail(store, proof(&claimed)).await, Answer::Accepted { status });
            backend.advance(TTL).await;
            promote(store).await;
        }
        assert_eq!(counts(store, "s").await.dead, 1);
        assert_eq!(store.retry(job_id).await, Ok(RetryAnswer::Requeued));
        let after = view(store, job_id).await;
        assert_eq!((after.brief.status, after.brief.finished_at), (JobStatus::Queued, None));
        assert_eq!(after.attempts.len(), attempts as usize, "history is kept");
        assert_eq!(counts(store, "s").await.dead, 0);
    }
    let claimed = claim(store, "s").await;
    store.cancel(job_id, true).await.expect("cancel");
    assert_eq!(counts(store, "s").await.cancelled, 1);
    assert_eq!(store.retry(job_id).await, Ok(RetryAnswer::Requeued), "a cancelled one too");
    assert_eq!(counts(store, "s").await.cancelled, 0, "ever, but not those that started over");
    assert_eq!(claim(store, "s").await.attempt_no, claimed.attempt_no + 1);
    assert!(!view(store, job_id).await.cancel_requested, "the wish went with the old run");
}

async fn a_job_does_not_start_over_while_its_key_is_taken<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let dead = bury(store, keyed("s", "k")).await;
    let cancelled = enqueue(store, keyed("s", "k")).await.job_id;
    store.cancel(cancelled, false).await.expect("cancel");
    let holder = enqueue(store, keyed("s", "k")).await;
    let before = dump(store).await;
    assert_eq!(store.retry(dead).await, Ok(RetryAnswer::KeyTaken));
    assert_eq!(store.retry(cancelled).await, Ok(RetryAnswer::KeyTaken));
    assert_eq!(dump(store).await, before);
    store.cancel(holder.job_id, false).await.expect("cancel");
    assert_eq!(store.retry(dead).await, Ok(RetryAnswer::Requeued));
    match enqueue_any(store, keyed("s", "k")).await {
        Enqueued::DuplicateKey(brief) => assert_eq!(brief.job_id, dead, "it has its key again"),
        other => panic!("{other:?}"),
    }
}

/// Six dead jobs, one a second: streams s and t in turn, the last two with another code.
async fn six_dead<B: Backend>(backend: &B) -> Vec<JobId> {
    let store = &*backend.store();
    let mut dead = Vec::new();
    for n in 0..6 {
        let name = if n % 2 == 0 { "s" } else { "t" };
        let claimed = enqueue_and_claim(store, job_on(name)).await;
        let code = if n < 4 { "early" } else { "late" };
        let report = fernery_engine::store::Failure {
            retryable: false,
            code: code.to_string(),
            ..failure(proof(&claimed))
        };
        store.fail(vec![report]).await.expect("fail");
        dead.push(claimed.job_id);
        backend.advance(Duration::from_secs(1)).await;
    }
    dead
}

fn filters(dead: &[JobId]) -> Vec<(DeadFilter, Vec<usize>)> {
    let all = DeadFilter::default;
    let before = START.after(Duration::from_secs(2));
    vec![
        (DeadFilter { stream: Some(stream("t")), ..all() }, vec![1, 3, 5]),
        (DeadFilter { stream: Some(stream("u")), ..all() }, vec![]),
        (DeadFilter { code: Some("late".to_string()), ..all() }, vec![4, 5]),
        (DeadFilter { before: Some(before), ..all() }, vec![0, 1]),
        (DeadFilter { job_ids: vec![dead[3], nobody(), dead[0]], ..all() }, vec![0, 3]),
        (
            DeadFilter {
                job_ids: vec![dead[3], dead[4]],
                stream: Some(stream("s")),
                code: Some("late".to_string()),
                before: None,
            },
            vec![4],
        ),
        (all(), vec![0, 1, 2, 3, 4, 5]),
    ]
}

async fn redrive_takes_what_the_filter_means_oldest_first<B: Backend>() {
    for chosen in 0..filters(&[nobody(); 6]).len() {
        let backend = B::open(settings()).await;
        let store = &*backend.store();
        let dead = six_dead(&backend).await;
        let (filter, meant) = filters(&dead).swap_remove(chosen);
        assert_eq!(store.count_dead(filter.clone()).await, Ok(meant.len() as u64), "{filter:?}");
        let listed: Vec<_> = all_dead(store, filter.clone()).await.iter().map(|l| l.job_id).collect();
        let newest_first: Vec<_> = meant.iter().rev().map(|n| dead[*n]).collect();
        assert_eq!(listed, newest_first, "{filter:?}");
        for n in &meant {
            let one = store.redrive(filter.clone(), 1).await.expect("redrive");
            assert_eq!(one.moved, 1);
            assert_eq!(status(store, dead[*n]).await, JobStatus::Queued, "oldest first: {filter:?}");
        }
        let rest = Ok(Pass { moved: 0, full: false });
        assert_eq!(store.redrive(filter.clone(), 5).await, rest, "{filter:?}");
        for (n, job_id) in dead.iter().enumerate() {
            let expected = if meant.contains(&n) { JobStatus::Queued } else { JobStatus::Dead };
            assert_eq!(status(store, *job_id).await, expected, "{filter:?}");
        }
    }
}

/// A job that cannot start over stays; those behind it do not.
async fn a_taken_key_does_not_hold_up_a_redrive<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let first = bury(store, keyed("s", "k")).await;
    let same_key = bury(store, keyed("s", "k")).await;
    let other = bury(store, job_on("s")).await;
    enqueue(store, keyed("t", "k")).await;
    let pass = store.redrive(DeadFilter::default(), 2).await.expect("redrive");
    assert_eq!(pass.moved, 1);
    assert_eq!(status(store, other).await, JobStatus::Queued);
    for kept in [first, same_key] {
        assert_eq!(status(store, kept).await, JobStatus::Dead);
    }
    complete(store, proof(&claim(store, "t").await)).await;
    assert_eq!(store.redrive(DeadFilter::default(), 9).await, Ok(Pass { moved: 1, full: false }));
    assert_eq!(status(store, first).await, JobStatus::Queued, "the older of the two has the key now");
    assert_eq!(status(store, same_key).await, JobStatus::Dead);
}

async fn purge_deletes_what_the_filter_means<B: Backend>() {
    for chosen in 0..filters(&[nobody(); 6]).len() {
        let backend = B::open(settings()).await;
        let store = &*backend.store();
        let dead = six_dead(&backend).await;
        let (filter, meant) = filters(&dead).swap_remove(chosen);
        let alive = enqueue(store, job_on("s")).await.job_id;
        assert_eq!(store.purge(filter.clone(), 100).await.expect("purge").moved, meant.len());
        for (n, job_id) in dead.iter().enumerate() {
            let gone = store.job(*job_id).await.expect("read").is_none();
            assert_eq!(gone, meant.contains(&n), "{filter:?} {n}");
        }
        assert_eq!(status(store, alive).await, JobStatus::Queued);
        let left = counts(store, "s").await.dead + counts(store, "t").await.dead;
        assert_eq!(left as usize, 6 - meant.len(), "{filter:?}");
        assert_eq!(store.count_dead(filter.clone()).await, Ok(0));
        dump(store).await;
    }
}

async fn retention_drops_what_ended_long_ago_and_nothing_else<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let age = Duration::from_secs(100);
    let id = JobId::from_uuid(uuid::Uuid::from_u128(7));
    let old = enqueue_and_claim(store, NewJob { job_id: Some(id), ..job_on("s") }).await;
    complete(store, proof(&old)).await;
    bury(store, job_on("s")).await;
    let cancelled = enqueue(store, job_on("s")).await.job_id;
    store.cancel(cancelled, false).await.expect("cancel");
    let started_over = bury(store, job_on("s")).await;
    store.retry(started_over).await.expect("retry");
    let running = claim(store, "s").await;
    let queued = enqueue(store, job_on("s")).await.job_id;
    let scheduled = enqueue(store, delayed("s", age * 2)).await.job_id;

    backend.advance(age).await;
    assert_eq!(
        store.retain(Retention::all(age), 100).await.expect("retain").moved,
        0,
        "not longer ago than that"
    );
    let young = enqueue(store, job_on("t")).await.job_id;
    store.cancel(young, false).await.expect("cancel");
    backend.advance(Duration::from_millis(1)).await;
    assert_eq!(store.retain(Retention::all(age), 100).await, Ok(Pass { moved: 3, full: false }));

    for (job_id, status) in [
        (running.job_id, JobStatus::Running),
        (queued, JobStatus::Queued),
        (scheduled, JobStatus::Queued),
        (young, JobStatus::Cancelled),
    ] {
        assert_eq!(view(store, job_id).await.brief.status, status);
    }
    let left = counts(store, "s").await;
    assert_eq!((left.succeeded, left.cancelled, left.dead), (1, 1, 0), "ever, ever, in the queue");
    assert_eq!(complete(store, proof(&old)).await, Answer::Unknown, "its attempts went with it");
    let anew = enqueue(store, NewJob { job_id: Some(id), ..job_on("t") }).await;
    assert_eq!(anew.job_id, id, "its id is free");
    assert_eq!(view(store, id).await.attempts.len(), 0);
    dump(store).await;
}

async fn dead_letters_have_a_retention_of_their_own<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let dead = bury(store, job_on("s")).await;
    let cancelled = enqueue(store, job_on("s")).await.job_id;
    store.cancel(cancelled, false).await.expect("cancel");
    backend.advance(TTL * 10).await;
    let for_good = Retention { finished: TTL, dead: None };
    assert_eq!(store.retain(for_good, 100).await, Ok(Pass { moved: 1, full: false }));
    assert_eq!(store.retain(for_good, 1).await, Ok(Pass { moved: 0, full: false }));
    assert_eq!(store.count_dead(DeadFilter::default()).await, Ok(1));
    assert_eq!(status(store, dead).await, JobStatus::Dead);
    let longer = Retention { finished: TTL, dead: Some(TTL * 10) };
    assert_eq!(store.retain(longer, 100).await.expect("retain").moved, 0, "not longer ago than that");
    let younger = bury(store, job_on("s")).await;
    backend.advance(Duration::from_millis(1)).await;
    assert_eq!(store.retain(longer, 100).await, Ok(Pass { moved: 1, full: false }));
    assert!(store.job(dead).await.expect("read").is_none());
    // And it may be the shorter one.
    let shorter = Retention { finished: TTL * 1000, dead: Some(Duration::ZERO) };
    assert_eq!(store.retain(shorter, 100).await, Ok(Pass { moved: 1, full: false }));
    assert!(store.job(younger).await.expect("read").is_none());
    assert_eq!(counts(store, "s").await.dead, 0);
    dump(store).await;
}

async fn retention_works_in_bounded_batches_oldest_first<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let mut ended = Vec::new();
    for _ in 0..5 {
        let job_id = enqueue(store, job_on("s")).await.job_id;
        store.cancel(job_id, false).await.expect("cancel");
        ended.push(job_id);
        backend.advance(Duration::from_secs(1)).await;
    }
    backend.advance(TTL).await;
    assert_eq!(store.retain(Retention::all(TTL), 2).await, Ok(Pass { moved: 2, full: true }));
    assert!(store.job(ended[1]).await.expect("read").is_none());
    assert!(store.job(ended[2]).await.expect("read").is_some());
    assert_eq!(store.retain(Retention::all(Duration::ZERO), 9).await, Ok(Pass { moved: 3, full: false }));
}

async fn dead_jobs_are_listed_by_their_death_with_their_last_error<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let old = enqueue_and_claim(store, at_most("s", 1)).await;
    let young = bury(store, job_on("s")).await;
    backend.advance(Duration::from_secs(1)).await;
    // It was enqueued first and dies last.
    fail(store, proof(&old)).await;
    let dead = all_dead(store, DeadFilter::default()).await;
    assert_eq!(dead.iter().map(|letter| letter.job_id).collect::<Vec<_>>(), [old.job_id, young]);
    assert!(dead.iter().all(|letter| letter.error.is_some()), "{dead:?}");
    let first = store.dead_letters(DeadFilter::default(), None, 1).await.expect("read");
    assert_eq!(first.rows[0].job_id, old.job_id);
    let second = store.dead_letters(DeadFilter::default(), first.next, 1).await.expect("read");
    assert_eq!(second.rows[0].job_id, young);
}

async fn dead_jobs_are_grouped_by_stream_and_code<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let first = bury(store, job_on("mail")).await;
    backend.advance(Duration::from_secs(1)).await;
    let other = bury(store, job_on("build")).await;
    backend.advance(Duration::from_secs(1)).await;
    let last = bury(store, job_on("mail")).await;
    let groups = store.dead_groups(None, 100, 10).await.expect("read");
    let seen = |groups: &DeadGroups| -> Vec<(JobId, String, u64)> {
        let row = |group: &DeadGroup| (group.newest.job_id, group.newest.stream.to_string(), group.jobs);
        groups.groups.iter().map(row).collect()
    };
    assert_eq!(seen(&groups), [(last, "mail".to_string(), 2), (other, "build".to_string(), 1)]);
    assert_eq!(groups.looked_at, 3);
    let mail = &groups.groups[0];
    let oldest = all_dead(store, DeadFilter { job_ids: vec![first], ..DeadFilter::default() }).await;
    assert_eq!(mail.oldest_at, oldest[0].buried_at);
    assert!(mail.newest.error.is_some(), "{mail:?}");
    assert_eq!(mail.died_at, [mail.oldest_at, mail.newest.buried_at], "oldest first");
    assert_eq!(groups.groups[1].died_at, [groups.groups[1].newest.buried_at]);
    assert_eq!(groups.looked_from, Some(mail.oldest_at));
    // However many are dead, only the newest deaths are looked at.
    let few = store.dead_groups(None, 2, 10).await.expect("read");
    assert_eq!((seen(&few)[0].2, few.looked_at), (1, 2));
    assert_eq!(few.groups[0].died_at, [mail.newest.buried_at]);
    assert_eq!(few.looked_from, Some(groups.groups[1].oldest_at), "the older one was not looked at");
    let one = store.dead_groups(None, 100, 1).await.expect("read");
    assert_eq!((one.groups.len(), one.looked_at), (1, 3));
    // The deaths of one stream are found however many others died after them.
    let build = store.dead_groups(Some(stream("build")), 1, 10).await.expect("read");
    assert_eq!((seen(&build), build.looked_at), (vec![(other, "build".to_string(), 1)], 1));
}

async fn leases_are_listed_by_the_age_of_their_jobs<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(enqueue_and_claim(store, job_on("s")).await.job_id);
    }
    enqueue(store, job_on("s")).await;
    held.sort();
    let first = store.leases(None, 2).await.expect("read");
    assert_eq!(first.iter().map(|held| held.job_id).collect::<Vec<_>>(), held[..2]);
    let rest = store.leases(Some(held[1]), 2).await.expect("read");
    assert_eq!(rest.iter().map(|held| held.job_id).collect::<Vec<_>>(), held[2..]);
}

async fn a_part_of_an_id_finds_the_jobs_that_it_means<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let id = |text: &str| text.parse::<JobId>().expect("an id");
    let there = [
        "019a8c5e-0000-7000-8000-000000abcdef",
        "019a8c5e-ffff-7fff-bfff-ffffffabcdef",
        "019a8c5e-ffff-7fff-bfff-ffffff0bcdef",
        "019a8c5f-0000-7000-8000-000000abcdef",
    ]
    .map(id);
    for (job_id, producer) in there.iter().zip(["a", "b", "a", "a"]) {
        let job = NewJob { job_id: Some(*job_id), producer: Some(producer.into()), ..job_on("s") };
        enqueue(store, job).await;
    }
    let like = |tail: &str, producer: Option<&str>| IdsLike {
        looked_at_max: 100,
        from: id("019a8c5e-0000-0000-0000-000000000000"),
        to: id("019a8c5e-ffff-ffff-ffff-ffffffffffff"),
        tail: tail.to_string(),
        producer: producer.map(str::to_string),
    };
    let ids = async |like, limit| {
        let found = store.job_ids(like, limit).await.expect("read");
        assert!(!found.beyond, "all of them were looked at");
        found.ids
    };
    assert_eq!(ids(like("abcdef", None), 10).await, there[..2]);
    assert_eq!(ids(like("abcdef", Some("a")), 10).await, there[..1]);
    assert_eq!(ids(like("bcdef", None), 2).await.len(), 2);
    assert_eq!(ids(like("", None), 10).await.len(), 3);
    assert!(ids(like("abcdee", None), 10).await.is_empty());
    // The first two are looked at, and it is said that there are more.
    let two = |tail: &str| IdsLike { looked_at_max: 2, ..like(tail, None) };
    let found = store.job_ids(two("ffabcdef"), 10).await.expect("read");
    assert_eq!((found.ids, found.beyond), (Vec::new(), true));
    let three = IdsLike { looked_at_max: 3, ..like("abcdee", None) };
    assert!(ids(three, 10).await.is_empty(), "as many as are looked at are not too many");
    let found = store.job_ids(two("bcdef"), 2).await.expect("read");
    assert_eq!((found.ids.len(), found.beyond), (2, false), "as many as were asked for");
}

async fn a_token_is_kept_once_and_taken_back_once<B: Backend>() {
    let mut backend = B::open(settings()).await;
    let token = TokenRow {
        token_id: "fw_1".to_string(),
        name: "builders".to_string(),
        role: "worker".to_string(),
        streams: vec!["build".to_string(), "deploy:*".to_string()],
        azolla_id: Some("laptop".to_string()),
        secret_hash: [7; 32],
        created_at: START,
        expires_at: Some(Timestamp::from_millis(START.as_millis() + 1)),
        revoked_at: None,
    };
    let other = TokenRow { name: "imposter".to_string(), secret_hash: [8; 32], ..token.clone() };
    let store = backend.store();
    assert_eq!(store.add_token(token.clone()).await, Ok(true));
    assert_eq!(store.add_token(other).await, Ok(false));
    let again = TokenRow { name: "renamed".to_string(), ..token.clone() };
    assert_eq!(store.add_token(again).await, Ok(true), "whoever lost the answer asks again");
    assert_eq!(store.tokens().await, Ok(vec![token.clone()]));
    assert_eq!(store.revoke_token("fw_2".to_string()).await, Ok(false));
    assert_eq!(store.revoke_token("fw_1".to_string()).await, Ok(true));
    backend.advance(TTL).await;
    store.revoke_token("fw_1".to_string()).await.expect("revoke");
    drop(store);
    backend.crash().await;
    let revoked = TokenRow { revoked_at: Some(START), ..token };
    assert_eq!(backend.store().tokens().await, Ok(vec![revoked]), "taken back when it was first");
}

//! The two fences: who is told no, by which guard, and that nothing changed.

use crate::support::backend::{Backend, START, TTL, settings};
use crate::support::dump::dump;
use crate::support::singly::*;
use fernery_core::job::lease::FENCE_STEP;
use fernery_core::job::report::Answer;
use fernery_core::{AttemptId, AttemptOutcome, JobId, JobStatus, Progress};
use fernery_engine::store::{
    Beat, BeatAnswer, CancelAnswer, Claimed, Completion, Holder, NewJob, Proof, RetryAnswer, Store,
};
use std::time::Duration;
use uuid::Uuid;

on_every_backend!(
    a_heartbeat_extends_the_lease_of_its_holder,
    only_the_token_renews_a_lease,
    a_heartbeat_never_reaches_past_the_time_out,
    after_the_fence_no_old_token_or_version_matches,
    progress_is_kept_for_the_holder_and_never_goes_back,
    a_forged_token_changes_nothing,
    an_attempt_that_never_was_is_unknown,
    the_right_token_for_another_attempt_is_refused,
    every_report_on_every_closed_attempt_is_answered_by_its_guard,
    the_first_result_stands,
    a_late_holder_that_nobody_replaced_is_still_the_holder,
    a_replaced_holder_cannot_touch_its_successor,
    a_repeated_report_is_answered_as_the_first_whatever_came_after,
    one_array_settles_each_item_alone,
    the_version_grows_with_every_write_and_never_restarts,
);

async fn a_heartbeat_extends_the_lease_of_its_holder<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let claimed = enqueue_and_claim(store, job_on("s")).await;
    backend.advance(Duration::from_secs(20)).await;
    let expires_at = START.after(Duration::from_secs(80));
    let extended = BeatAnswer::Extended { expires_at, cancel_requested: false };
    assert_eq!(heartbeat(store, proof(&claimed)).await, extended);
    let attempt = &view(store, claimed.job_id).await.attempts[0];
    assert_eq!(attempt.heartbeat_at, Some(START.after(Duration::from_secs(20))));
    assert_eq!(attempt.expires_at, Some(expires_at));
    store.cancel(claimed.job_id, false).await.expect("cancel");
    let told = BeatAnswer::Extended { expires_at, cancel_requested: true };
    assert_eq!(heartbeat(store, proof(&claimed)).await, told, "the control channel");
}

async fn only_the_token_renews_a_lease<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let claimed = enqueue_and_claim(store, job_on("s")).await;
    let other = enqueue_and_claim(store, job_on("t")).await;
    let waiting = enqueue(store, job_on("u")).await;
    backend.advance(Duration::from_secs(20)).await;
    let before = dump(store).await;
    assert_eq!(heartbeat(store, forged(&claimed)).await, BeatAnswer::LeaseLost);
    let crossed = Proof { job_id: other.job_id, ..proof(&claimed) };
    assert_eq!(heartbeat(store, crossed).await, BeatAnswer::LeaseLost, "another job's token");
    let unheld = Proof { job_id: waiting.job_id, ..proof(&claimed) };
    assert_eq!(heartbeat(store, unheld).await, BeatAnswer::LeaseLost, "nobody holds it");
    let nowhere = Proof { job_id: JobId::from_uuid(Uuid::from_u128(1)), ..proof(&claimed) };
    assert_eq!(heartbeat(store, nowhere).await, BeatAnswer::Unknown);
    assert_eq!(dump(store).await, before);
}

async fn a_heartbeat_never_reaches_past_the_time_out<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let timeout = Some(Duration::from_secs(70));
    let claimed = enqueue_and_claim(store, NewJob { timeout, ..job_on("s") }).await;
    let timeout_at = START.after(Duration::from_secs(70));
    for at_secs in [20, 40, 69, 75] {
        let elapsed = store.now().await.expect("now").since(START);
        backend.advance(Duration::from_secs(at_secs).saturating_sub(elapsed)).await;
        let extended = BeatAnswer::Extended { expires_at: timeout_at, cancel_requested: false };
        assert_eq!(heartbeat(store, proof(&claimed)).await, extended, "at {at_secs} s");
    }
}

/// Invariants 3 and 9: what was given out between the backup and the loss must never become true again.
async fn after_the_fence_no_old_token_or_version_matches<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    // Whoever goes through them by id begins with the least.
    let least = JobId::from_uuid(Uuid::nil());
    let held = enqueue_and_claim(store, NewJob { job_id: Some(least), ..job_on("s") }).await;
    let dead = bury(store, job_on("d")).await;
    let waits = enqueue(store, job_on("w")).await;
    let later = enqueue(store, delayed("l", Duration::from_secs(5))).await;
    assert_eq!(store.fence().await.expect("fence"), 1);
    assert_eq!(heartbeat(store, proof(&held)).await, BeatAnswer::LeaseLost);
    assert_eq!(complete(store, proof(&held)).await, Answer::LeaseLost { closed: true });
    assert_eq!(view(store, held.job_id).await.attempts[0].outcome, Some(AttemptOutcome::Released));
    assert_eq!(store.retry(dead).await.expect("retry"), RetryAnswer::Requeued);
    backend.advance(Duration::from_secs(6)).await;
    assert_eq!(promote(store).await, 1);
    for (name, job_id) in [("s", held.job_id), ("d", dead), ("w", waits.job_id), ("l", later.job_id)] {
        let again = claim(store, name).await;
        assert_eq!(again.job_id, job_id, "{name}");
        assert!(version(store, job_id).await > FENCE_STEP, "{name}");
        assert_eq!(complete(store, proof(&again)).await, Answer::Accepted { status: JobStatus::Succeeded });
    }
    assert_eq!(store.fence().await.expect("fence"), 0, "again, and nothing is held");
}

async fn progress_is_kept_for_the_holder_and_never_goes_back<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let claimed = enqueue_and_claim(store, job_on("s")).await;
    let beat = |proof: Proof| Beat { job_id: proof.job_id, token_hash: proof.token_hash };
    let at = |percent, note: &str| Progress::new(percent, Some(note.to_string())).expect("progress");
    let shown = async || view(store, claimed.job_id).await.attempts[0].progress.clone();
    assert_eq!(shown().await, None);
    let said = vec![(beat(proof(&claimed)), at(30, "reading")), (beat(forged(&claimed)), at(90, "not mine"))];
    assert_eq!(store.progress(said).await.expect("progress"), [true, false]);
    assert_eq!(shown().await, Some(at(30, "reading")));
    let before = dump(store).await;
    assert_eq!(
        store.progress(vec![(beat(proof(&claimed)), at(29, "back"))]).await.expect("progress"),
        [false]
    );
    assert_eq!(dump(store).await, before);
    // Of one lease twice in one call: each is judged by what the one before it left.
    let said = [40, 35, 40].map(|percent| (beat(proof(&claimed)), at(percent, "writing")));
    assert_eq!(store.progress(said.to_vec()).await.expect("progress"), [true, false, true]);
    let version_before = version(store, claimed.job_id).await;
    assert_eq!(
        store.progress(vec![(beat(proof(&claimed)), at(40, "again"))]).await.expect("progress"),
        [true]
    );
    assert!(version(store, claimed.job_id).await > version_before, "invariant 9: a write raises the version");
    let other = enqueue_and_claim(store, job_on("other")).await;
    let asked = vec![other.job_id, claimed.job_id, JobId::from_uuid(Uuid::nil())];
    let worker_id = view(store, other.job_id).await.attempts[0].worker_id.clone();
    let held = |by: &Claimed, progress| {
        let (worker_id, attempt_no) = (worker_id.clone(), by.attempt_no);
        Some(Holder { worker_id, attempt_no, started_at: by.claimed_at, progress })
    };
    let seen = store.holders_of(asked.clone()).await.expect("holders");
    let expected = [held(&other, None), held(&claimed, Some(at(40, "again"))), None];
    assert_eq!(seen, expected, "of many jobs, each in its place");
    release(store, proof(&claimed)).await;
    let seen = store.holders_of(asked).await.expect("holders");
    assert_eq!(seen, [held(&other, None), None, None], "nobody holds it");
    let again = claim(store, "s").await;
    assert_eq!(view(store, again.job_id).await.attempts[1].progress, None, "a new attempt starts anew");
    assert_eq!(
        store.progress(vec![(beat(proof(&claimed)), at(99, "late"))]).await.expect("progress"),
        [false]
    );
}

async fn a_forged_token_changes_nothing<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let claimed = enqueue_and_claim(store, job_on("s")).await;
    let before = dump(store).await;
    let refused = Answer::LeaseLost { closed: false };
    assert_eq!(complete(store, forged(&claimed)).await, refused);
    assert_eq!(fail(store, forged(&claimed)).await, refused);
    assert_eq!(release(store, forged(&claimed)).await, refused);
    assert!(!refused.ack(), "an open attempt's message is not to be forgotten");
    assert_eq!(dump(store).await, before);
    let accepted = Answer::Accepted { status: JobStatus::Succeeded };
    assert_eq!(complete(store, proof(&claimed)).await, accepted, "the holder is none the worse");
}

async fn an_attempt_that_never_was_is_unknown<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let claimed = enqueue_and_claim(store, job_on("s")).await;
    let other = enqueue_and_claim(store, job_on("t")).await;
    let before = dump(store).await;
    let made_up = AttemptId::from_uuid(Uuid::from_u128(1));
    let unknown = [
        Proof { attempt_id: made_up, ..proof(&claimed) },
        Proof { attempt_id: other.attempt_id, ..proof(&claimed) },
        Proof { job_id: other.job_id, ..proof(&claimed) },
        Proof { job_id: JobId::from_uuid(Uuid::from_u128(1)), ..proof(&claimed) },
    ];
    for proof in unknown {
        assert_eq!(complete(store, proof).await, Answer::Unknown, "{proof:?}");
        assert_eq!(fail(store, proof).await, Answer::Unknown, "{proof:?}");
        assert_eq!(release(store, proof).await, Answer::Unknown, "{proof:?}");
    }
    assert_eq!(dump(store).await, before);
}

async fn the_right_token_for_another_attempt_is_refused<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let first = enqueue_and_claim(store, job_on("s")).await;
    release(store, proof(&first)).await;
    let second = claim(store, "s").await;
    let before = dump(store).await;
    let old_attempt_new_token = Proof { attempt_id: first.attempt_id, ..proof(&second) };
    assert_eq!(complete(store, old_attempt_new_token).await, Answer::LeaseLost { closed: true });
    let new_attempt_old_token = Proof { attempt_id: second.attempt_id, ..proof(&first) };
    assert_eq!(complete(store, new_attempt_old_token).await, Answer::LeaseLost { closed: false });
    assert_eq!(dump(store).await, before);
}

/// Brings a fresh attempt to this end.
async fn end_with<B: Backend>(backend: &B, name: &str, outcome: AttemptOutcome) -> Claimed {
    let store = &*backend.store();
    let timeout = (outcome == AttemptOutcome::TimedOut).then(|| Duration::from_secs(30));
    let claimed = enqueue_and_claim(store, NewJob { timeout, ..job_on(name) }).await;
    match outcome {
        AttemptOutcome::Succeeded => drop(complete(store, proof(&claimed)).await),
        AttemptOutcome::Failed => drop(fail(store, proof(&claimed)).await),
        AttemptOutcome::Released => drop(release(store, proof(&claimed)).await),
        AttemptOutcome::Cancelled => {
            assert_eq!(store.cancel(claimed.job_id, true).await, Ok(CancelAnswer::Cancelled));
        }
        AttemptOutcome::Lost | AttemptOutcome::TimedOut => {
            backend.advance(TTL).await;
            assert_eq!(reap(store).await, 1);
        }
    }
    let attempt = view(store, claimed.job_id).await.attempts.remove(0);
    assert_eq!(attempt.outcome, Some(outcome));
    claimed
}

/// Invariants 4, 6 and 8: a closed attempt stays as it is, and only then may its message be forgotten.
async fn every_report_on_every_closed_attempt_is_answered_by_its_guard<B: Backend>() {
    use AttemptOutcome::{Failed, Released, Succeeded};
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    for outcome in AttemptOutcome::ALL.iter().copied() {
        let name = format!("s-{outcome}");
        let claimed = end_with(&backend, &name, outcome).await;
        let left = status(store, claimed.job_id).await;
        let before = dump(store).await;
        let expected = |reported: AttemptOutcome| match outcome {
            _ if outcome == reported => Answer::Duplicate { status: left },
            Succeeded | Failed => Answer::AttemptClosed,
            _ => Answer::LeaseLost { closed: true },
        };
        assert_eq!(complete(store, proof(&claimed)).await, expected(Succeeded), "complete after {outcome}");
        assert_eq!(fail(store, proof(&claimed)).await, expected(Failed), "fail after {outcome}");
        assert_eq!(release(store, proof(&claimed)).await, expected(Released), "release after {outcome}");
        let other = Answer::LeaseLost { closed: true };
        assert_eq!(complete(store, forged(&claimed)).await, other, "forged complete after {outcome}");
        assert_eq!(fail(store, forged(&claimed)).await, other, "forged fail after {outcome}");
        assert_eq!(release(store, forged(&claimed)).await, other, "forged release after {outcome}");
        assert_eq!(heartbeat(store, proof(&claimed)).await, BeatAnswer::LeaseLost, "after {outcome}");
        assert_eq!(dump(store).await, before, "after {outcome}");
    }
}

/// Invariant 4.
async fn the_first_result_stands<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let claimed = enqueue_and_claim(store, job_on("s")).await;
    let report = |text: &str| vec![Completion { proof: proof(&claimed), result: json(text) }];
    let first = store.complete(report("1")).await.expect("complete");
    assert_eq!(first, [Answer::Accepted { status: JobStatus::Succeeded }]);
    let before = dump(store).await;
    backend.advance(TTL * 3).await;
    let second = store.complete(report("2")).await.expect("complete");
    assert_eq!(second, [Answer::Duplicate { status: JobStatus::Succeeded }]);
    assert_eq!(dump(store).await, before);
    assert_eq!(view(store, claimed.job_id).await.attempts[0].result.as_ref().expect("kept").get(), "1");
}

/// Expiry takes nothing away; only the reaper does.
async fn a_late_holder_that_nobody_replaced_is_still_the_holder<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let beating = enqueue_and_claim(store, job_on("s")).await;
    let completing = enqueue_and_claim(store, job_on("t")).await;
    let failing = enqueue_and_claim(store, job_on("u")).await;
    let releasing = enqueue_and_claim(store, job_on("v")).await;
    backend.advance(TTL * 2).await;
    let beat = heartbeat(store, proof(&beating)).await;
    assert!(matches!(beat, BeatAnswer::Extended { .. }), "{beat:?}");
    let accepted = |status| Answer::Accepted { status };
    assert_eq!(complete(store, proof(&completing)).await, accepted(JobStatus::Succeeded));
    assert_eq!(fail(store, proof(&failing)).await, accepted(JobStatus::Queued));
    assert_eq!(release(store, proof(&releasing)).await, accepted(JobStatus::Queued));
    assert_eq!(reap(store).await, 0, "the reaper finds nothing that is still expired");
}

/// Invariant 3: the bug of matching on the id or the state alone.
async fn a_replaced_holder_cannot_touch_its_successor<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let stale = enqueue_and_claim(store, job_on("s")).await;
    backend.advance(TTL).await;
    assert_eq!(reap(store).await, 1);
    let refused = Answer::LeaseLost { closed: true };
    let before = dump(store).await;
    assert_eq!(complete(store, proof(&stale)).await, refused, "while nobody holds it");
    assert_eq!(dump(store).await, before);

    let successor = claim(store, "s").await;
    assert_eq!(successor.job_id, stale.job_id);
    let before = dump(store).await;
    assert_eq!(heartbeat(store, proof(&stale)).await, BeatAnswer::LeaseLost);
    assert_eq!(complete(store, proof(&stale)).await, refused);
    assert_eq!(fail(store, proof(&stale)).await, refused);
    assert_eq!(fail_for_good(store, proof(&stale)).await, refused);
    assert_eq!(release(store, proof(&stale)).await, refused);
    assert_eq!(dump(store).await, before);
    let accepted = Answer::Accepted { status: JobStatus::Succeeded };
    assert_eq!(complete(store, proof(&successor)).await, accepted);
}

async fn a_repeated_report_is_answered_as_the_first_whatever_came_after<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let first = enqueue_and_claim(store, at_most("s", 2)).await;
    fail(store, proof(&first)).await;
    backend.advance(TTL).await;
    promote(store).await;
    let second = claim(store, "s").await;
    assert_eq!(fail(store, proof(&first)).await, Answer::Duplicate { status: JobStatus::Queued });
    assert_eq!(fail(store, proof(&second)).await, Answer::Accepted { status: JobStatus::Dead });
    assert_eq!(store.retry(first.job_id).await, Ok(RetryAnswer::Requeued));
    assert_eq!(fail(store, proof(&second)).await, Answer::Duplicate { status: JobStatus::Dead });
    assert_eq!(fail(store, proof(&first)).await, Answer::Duplicate { status: JobStatus::Queued });
    assert_eq!(status(store, first.job_id).await, JobStatus::Queued);
}

async fn one_array_settles_each_item_alone<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    store.enqueue((0..4).map(|_| job_on("s")).collect()).await.expect("enqueue");
    let claimed = store.claim(ask(&["s"], 4)).await.expect("claim");
    let reports = [proof(&claimed[0]), forged(&claimed[1]), proof(&claimed[2]), proof(&claimed[0])];
    let unknown = Proof { attempt_id: claimed[3].attempt_id, ..proof(&claimed[1]) };
    let items = reports.into_iter().chain([unknown]).map(completion).collect();
    let done = Answer::Accepted { status: JobStatus::Succeeded };
    let again = Answer::Duplicate { status: JobStatus::Succeeded };
    let answers = store.complete(items).await.expect("complete");
    assert_eq!(answers, [done, Answer::LeaseLost { closed: false }, done, again, Answer::Unknown]);
    let left = counts(store, "s").await;
    assert_eq!((left.running, left.succeeded), (2, 2));
}

/// Invariant 9: no two grants ever share a number, whatever closed the first.
async fn the_version_grows_with_every_write_and_never_restarts<B: Backend>() {
    let backend = B::open(settings()).await;
    let store = &*backend.store();
    let job_id = enqueue(store, at_most("s", 2)).await.job_id;
    let mut last = -1;
    let mut claim_once = async |store: &dyn Store| {
        let claimed = claim(store, "s").await;
        for _ in 0..2 {
            let now = version(store, job_id).await;
            assert!(now > last, "{now} after {last}");
            last = now;
            heartbeat(store, proof(&claimed)).await;
        }
        let now = version(store, job_id).await;
        assert!(now > last, "{now} after {last}");
        last = now;
        claimed
    };
    for round in 0..3 {
        release(store, proof(&claim_once(store).await)).await;
        let lost = claim_once(store).await;
        backend.advance(TTL).await;
        assert_eq!(reap(store).await, 1);
        assert_eq!(fail(store, proof(&lost)).await, Answer::LeaseLost { closed: true });
        fail_for_good(store, proof(&claim_once(store).await)).await;
        assert_eq!(store.retry(job_id).await, Ok(RetryAnswer::Requeued), "round {round}");
        let flagged = claim_once(store).await;
        assert_eq!(store.cancel(job_id, false).await, Ok(CancelAnswer::Requested));
        let raised = version(store, job_id).await;
        assert_eq!(store.cancel(job_id, true).await, Ok(CancelAnswer::Cancelled));
        assert!(version(store, job_id).await > raised, "a cancel by force raises it");
        assert_eq!(complete(store, proof(&flagged)).await, Answer::LeaseLost { closed: true });
        assert_eq!(store.retry(job_id).await, Ok(RetryAnswer::Requeued), "round {round}");
    }
    let all: Vec<_> = view(store, job_id).await.attempts.iter().map(|a| a.claim_version).collect();
    assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "every closing row keeps its number: {all:?}");
}

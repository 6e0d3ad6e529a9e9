//! The plural verbs for one item, for tests that tell a story about one job. Any store error fails the test.

use fernery_core::job::report::Answer;
use fernery_core::{JobId, JobStatus, LeaseToken, StreamName, WorkerId};
use fernery_engine::store::{
    Ask, Beat, BeatAnswer, Claimed, Completion, Enqueued, Failure, JobBrief, JobView, NewJob, Proof, Start,
    Store, StreamCounts,
};
use serde_json::value::RawValue;
use std::time::Duration;

/// JSON, to the byte.
pub(crate) fn json(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_string()).expect("the test writes JSON")
}

pub(crate) fn stream(name: &str) -> StreamName {
    StreamName::new(name).expect("the test names streams well")
}

/// A job with the defaults.
pub(crate) fn job_on(name: &str) -> NewJob {
    NewJob::new(stream(name), json(r#"{"n":1}"#))
}

pub(crate) fn keyed(name: &str, key: &str) -> NewJob {
    NewJob { unique_key: Some(key.to_string()), ..job_on(name) }
}

pub(crate) fn delayed(name: &str, delay: Duration) -> NewJob {
    NewJob { start: Start::After(delay), ..job_on(name) }
}

pub(crate) fn at_most(name: &str, max_attempts: u32) -> NewJob {
    NewJob { max_attempts, ..job_on(name) }
}

/// An ask for up to `max` jobs of these streams, in this order.
pub(crate) fn ask(streams: &[&str], max: usize) -> Ask {
    Ask {
        worker_id: WorkerId::new("worker-1").expect("a good name"),
        streams: streams.iter().map(|name| stream(name)).collect(),
        max,
    }
}

pub(crate) async fn enqueue(store: &dyn Store, job: NewJob) -> JobBrief {
    match enqueue_any(store, job).await {
        Enqueued::Created(brief) => brief,
        other => panic!("expected a new job, got {other:?}"),
    }
}

pub(crate) async fn enqueue_any(store: &dyn Store, job: NewJob) -> Enqueued {
    let mut answers = store.enqueue(vec![job]).await.expect("enqueue");
    assert_eq!(answers.len(), 1, "one answer each");
    answers.remove(0)
}

/// Takes the next job of a stream; there must be one.
pub(crate) async fn claim(store: &dyn Store, name: &str) -> Claimed {
    claim_any(store, name).await.unwrap_or_else(|| panic!("stream {name} has a job to claim"))
}

pub(crate) async fn claim_any(store: &dyn Store, name: &str) -> Option<Claimed> {
    let mut claimed = store.claim(ask(&[name], 1)).await.expect("claim");
    assert!(claimed.len() <= 1, "no more than asked for");
    claimed.pop()
}

pub(crate) async fn enqueue_and_claim(store: &dyn Store, job: NewJob) -> Claimed {
    let name = job.stream.clone();
    let brief = enqueue(store, job).await;
    let claimed = claim(store, name.as_str()).await;
    assert_eq!(claimed.job_id, brief.job_id, "the stream had no other job");
    claimed
}

/// The proof that a claim's holder shows.
pub(crate) fn proof(claimed: &Claimed) -> Proof {
    Proof { job_id: claimed.job_id, attempt_id: claimed.attempt_id, token_hash: claimed.lease_token.hash() }
}

/// The same attempt under a token that somebody made up.
pub(crate) fn forged(claimed: &Claimed) -> Proof {
    let token = "00000000-0000-4000-8000-00000000f0f0".parse::<LeaseToken>().expect("a UUID");
    Proof { token_hash: token.hash(), ..proof(claimed) }
}

pub(crate) fn completion(proof: Proof) -> Completion {
    Completion { proof, result: json(r#"{"made":true}"#) }
}

pub(crate) fn failure(proof: Proof) -> Failure {
    Failure {
        proof,
        retryable: true,
        code: "broken".to_string(),
        error: json(r#"{"code":"broken","message":"it broke"}"#),
    }
}

pub(crate) async fn complete(store: &dyn Store, proof: Proof) -> Answer {
    one(store.complete(vec![completion(proof)]).await.expect("complete"))
}

pub(crate) async fn fail(store: &dyn Store, proof: Proof) -> Answer {
    one(store.fail(vec![failure(proof)]).await.expect("fail"))
}

pub(crate) async fn fail_for_good(store: &dyn Store, proof: Proof) -> Answer {
    one(store.fail(vec![Failure { retryable: false, ..failure(proof) }]).await.expect("fail"))
}

pub(crate) async fn release(store: &dyn Store, proof: Proof) -> Answer {
    one(store.release(vec![proof]).await.expect("release"))
}

pub(crate) async fn heartbeat(store: &dyn Store, proof: Proof) -> BeatAnswer {
    let beat = Beat { job_id: proof.job_id, token_hash: proof.token_hash };
    one(store.heartbeat(vec![beat]).await.expect("heartbeat"))
}

/// Makes a job DEAD: enqueued, claimed, failed for good.
pub(crate) async fn bury(store: &dyn Store, job: NewJob) -> JobId {
    let claimed = enqueue_and_claim(store, job).await;
    assert_eq!(
        fail_for_good(store, proof(&claimed)).await,
        Answer::Accepted { status: JobStatus::Dead },
        "not retryable"
    );
    claimed.job_id
}

pub(crate) async fn reap(store: &dyn Store) -> usize {
    store.reap(100).await.expect("reap").moved
}

pub(crate) async fn promote(store: &dyn Store) -> usize {
    store.promote(100).await.expect("promote").moved
}

pub(crate) async fn view(store: &dyn Store, job_id: JobId) -> JobView {
    store.job(job_id).await.expect("read").unwrap_or_else(|| panic!("job {job_id} is stored"))
}

pub(crate) async fn status(store: &dyn Store, job_id: JobId) -> JobStatus {
    view(store, job_id).await.brief.status
}

pub(crate) async fn counts(store: &dyn Store, name: &str) -> StreamCounts {
    store.stream(stream(name)).await.expect("read").expect("the stream was used").counts
}

/// The order of the last write to a job, as its newest attempt shows it.
pub(crate) async fn version(store: &dyn Store, job_id: JobId) -> i64 {
    view(store, job_id).await.attempts.last().expect("it was claimed").claim_version
}

fn one<T>(mut answers: Vec<T>) -> T {
    assert_eq!(answers.len(), 1, "one answer each");
    answers.remove(0)
}

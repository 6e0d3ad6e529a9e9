//! The worker calls for many jobs at once. Every item gets its own answer. If one item has a wrong form, the whole call is
//! refused before anything is written.

use super::beats::{BeatResult, extend};
use super::contract::{failure, leased, result_fits, server_time, take, unfit};
use crate::http::problem::{Code, Refusal, Refused};
use crate::http::wire::answer::{Call, Replied, Reply};
use crate::http::wire::json;
use fernery_client::wire::{
    BatchResponse, ClaimManyRequest, ClaimManyResponse, CompleteItem, FailItem, HeartbeatItem, ItemAnswer,
    ItemOutcome, ReleaseItem, WorkerBatch,
};
use fernery_core::job::report::Answer;
use fernery_core::{AttemptId, JobId, JobStatus, LeaseToken, limits};
use fernery_engine::store::{Beat, BeatAnswer, Completion, Proof};
use serde::de::DeserializeOwned;

/// `POST /v1/worker/claim`
pub async fn claim(call: Call) -> Replied {
    let request: ClaimManyRequest = json::read(&call.body)?;
    let max = usize::try_from(request.max).unwrap_or(usize::MAX);
    if !(1..=limits::WORKER_BATCH_MAX).contains(&max) {
        let detail = format!("claim 1 to {} jobs", limits::WORKER_BATCH_MAX);
        return Err(Refusal::field(Code::Invalid, "/max", detail));
    }
    let claimed = take(call, request.worker_id, request.streams, max, request.max_wait_ms).await?;
    let (server, claimed) = claimed;
    let jobs = claimed.into_iter().map(|job| leased(&server, job)).collect();
    Reply::json(200, &ClaimManyResponse { jobs })
}

/// `POST /v1/worker/heartbeat`
pub async fn heartbeat(call: Call) -> Replied {
    let items: Vec<HeartbeatItem> = items(&call)?;
    let _writing = call.writing()?;
    let beat = |item: &HeartbeatItem| Beat { job_id: item.job_id, token_hash: item.lease_token.hash() };
    let beats = items.iter().map(|item| (beat(item), item.progress.clone())).collect();
    let results = extend(call.server.engine().store(), beats).await?;
    let answered = items.iter().zip(results).map(|(item, BeatResult { answer, went_back })| {
        let (outcome, lease_expires_at, cancel_requested) = match answer {
            BeatAnswer::Extended { expires_at, cancel_requested } => {
                // The lease was extended nevertheless.
                let outcome = if went_back { ItemOutcome::Conflict } else { ItemOutcome::Accepted };
                (outcome, Some(expires_at), Some(cancel_requested))
            }
            BeatAnswer::LeaseLost => (ItemOutcome::Stale, None, None),
            BeatAnswer::Unknown => (ItemOutcome::Unknown, None, None),
        };
        ItemAnswer {
            job_id: item.job_id,
            attempt_id: None,
            outcome,
            ack: false,
            requeued: None,
            dlq: None,
            lease_expires_at,
            server_time: lease_expires_at.map(|expires_at| server_time(&call.server, expires_at)),
            cancel_requested,
            errors: Vec::new(),
        }
    });
    Reply::json(200, &BatchResponse { items: answered.collect() })
}

/// `POST /v1/worker/complete`
pub async fn complete(call: Call) -> Replied {
    let sent: Vec<CompleteItem> = items(&call)?;
    for (n, item) in sent.iter().enumerate() {
        result_fits(&item.result, &format!("/items/{n}/result"))?;
    }
    let _writing = call.writing()?;
    let named: Vec<_> = sent.iter().map(|item| (item.job_id, item.attempt_id)).collect();
    let completions = sent.into_iter().map(|item| Completion {
        proof: proof(item.job_id, item.attempt_id, item.lease_token),
        result: item.result,
    });
    let answers = call.server.engine().store().complete(completions.collect()).await?;
    let mut response = reported(&named, &answers, false);
    if answers.contains(&Answer::Unfit) {
        // This is rare, so the body is parsed once more instead of keeping a copy of every result.
        let again: Vec<CompleteItem> = items(&call)?;
        let answered = response.items.iter_mut().zip(again);
        for (answer, item) in answered.filter(|(answer, _)| answer.outcome == ItemOutcome::Unfit) {
            answer.errors = unfit(&item.result, "/result");
        }
    }
    Reply::json(200, &response)
}

/// `POST /v1/worker/fail`
pub async fn fail(call: Call) -> Replied {
    let items: Vec<FailItem> = items(&call)?;
    let _writing = call.writing()?;
    let named: Vec<_> = items.iter().map(|item| (item.job_id, item.attempt_id)).collect();
    let failures = items
        .into_iter()
        .map(|item| failure(proof(item.job_id, item.attempt_id, item.lease_token), item.error));
    let answers = call.server.engine().store().fail(failures.collect()).await?;
    Reply::json(200, &reported(&named, &answers, true))
}

/// `POST /v1/worker/release`
pub async fn release(call: Call) -> Replied {
    let items: Vec<ReleaseItem> = items(&call)?;
    let _writing = call.writing()?;
    let named: Vec<_> = items.iter().map(|item| (item.job_id, item.attempt_id)).collect();
    let proofs = items.iter().map(|item| proof(item.job_id, item.attempt_id, item.lease_token)).collect();
    let answers = call.server.engine().store().release(proofs).await?;
    Reply::json(200, &reported(&named, &answers, true))
}

fn items<T: DeserializeOwned>(call: &Call) -> Result<Vec<T>, Refused> {
    let batch: WorkerBatch<T> = json::read(&call.body)?;
    if !(1..=limits::WORKER_BATCH_MAX).contains(&batch.items.len()) {
        let detail = format!("send 1 to {} items", limits::WORKER_BATCH_MAX);
        return Err(Refusal::field(Code::Invalid, "/items", detail));
    }
    Ok(batch.items)
}

fn proof(job_id: JobId, attempt_id: AttemptId, lease_token: LeaseToken) -> Proof {
    Proof { job_id, attempt_id, token_hash: lease_token.hash() }
}

fn reported(named: &[(JobId, AttemptId)], answers: &[Answer], says_where: bool) -> BatchResponse {
    let items = named.iter().zip(answers).map(|((job_id, attempt_id), answer)| {
        let (outcome, status) = match *answer {
            Answer::Accepted { status } => (ItemOutcome::Accepted, Some(status)),
            Answer::Duplicate { status } => (ItemOutcome::Duplicate, Some(status)),
            Answer::AttemptClosed => (ItemOutcome::Conflict, None),
            Answer::LeaseLost { .. } => (ItemOutcome::Stale, None),
            Answer::Unknown => (ItemOutcome::Unknown, None),
            Answer::Unfit => (ItemOutcome::Unfit, None),
        };
        let status = status.filter(|_| says_where);
        ItemAnswer {
            job_id: *job_id,
            attempt_id: Some(*attempt_id),
            outcome,
            ack: answer.ack(),
            requeued: status.map(|status| status == JobStatus::Queued),
            dlq: status.map(|status| status == JobStatus::Dead),
            lease_expires_at: None,
            server_time: None,
            cancel_requested: None,
            errors: Vec::new(),
        }
    });
    BatchResponse { items: items.collect() }
}

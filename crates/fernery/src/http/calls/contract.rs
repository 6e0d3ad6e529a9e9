//! The four calls of the worker contract, one job at a time.

use super::acting::fields;
use super::beats::{BeatResult, extend};
use super::named::missing;
use super::workorder_jobs;
use crate::http::Server;
use crate::http::problem::{Code, Refusal, Refused};
use crate::http::wire::answer::{Call, Replied, Reply};
use crate::http::wire::body::Weight;
use crate::http::wire::json;
use fernery_client::wire::{
    ClaimRequest, ClaimResponse, CompleteRequest, CompleteResponse, ErrorReport, FailRequest, FailResponse,
    FieldProblem, HeartbeatRequest, HeartbeatResponse, LeasedJob,
};
use fernery_core::job::report::Answer;
use fernery_core::pipeline::membrane;
use fernery_core::{AttemptId, JobId, JobStatus, StreamName, Timestamp, WorkerId, limits};
use fernery_engine::store::{Ask, Beat, BeatAnswer, Cause, Claimed, Completion, Failure, Proof};
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Duration;

/// `POST /internal/worker/claim`
pub async fn claim(call: Call) -> Replied {
    let request: ClaimRequest = json::read(&call.body)?;
    let claimed = take(call, request.worker_id, request.streams, 1, request.max_wait_ms).await?;
    let (server, claimed) = claimed;
    let response = match claimed.into_iter().next() {
        Some(job) => ClaimResponse::Claimed(Box::new(leased(&server, job))),
        None => ClaimResponse::Nothing,
    };
    Reply::json(200, &response)
}

/// Claims one job or many. Consumes the call, so that nothing of the request stays in memory while the claim waits.
pub(in crate::http) async fn take(
    call: Call,
    worker_id: WorkerId,
    streams: Vec<StreamName>,
    max: usize,
    max_wait_ms: Option<u64>,
) -> Result<(Arc<Server>, Vec<Claimed>), Refused> {
    let Call { server, caller, body, weight, .. } = call;
    drop((body, weight));
    if !(1..=limits::CLAIM_STREAMS_MAX).contains(&streams.len()) {
        let detail = format!("name 1 to {} streams", limits::CLAIM_STREAMS_MAX);
        return Err(Refusal::field(Code::Invalid, "/streams", detail));
    }
    let wait_max = limits::CLAIM_WAIT_MAX;
    let wait = max_wait_ms.map_or(limits::CLAIM_WAIT_DEFAULT, Duration::from_millis);
    if wait > wait_max {
        let detail = format!("a claim waits 0 to {} milliseconds", wait_max.as_millis());
        return Err(Refusal::field(Code::Invalid, "/max_wait_ms", detail));
    }
    caller.may_claim(&streams)?;
    drop(caller);
    workorder_jobs::may_be_claimed_elsewhere(&server, &streams).await?;
    let _waiting = Weight::take(&server, |server| &server.waiting, 1, server.settings.waiting_max)
        .ok_or_else(|| Refusal::new(Code::TooManyWaiting, Code::TooManyWaiting.title()))?;
    let _claiming = Weight::take(&server, |server| &server.claiming, 1, usize::MAX);
    let ask = Ask { worker_id, streams: streams.into(), max };
    let claimed = server.engine().claim(ask, wait).await?;
    let claimed = workorder_jobs::for_elsewhere(&server, claimed).await?;
    Ok((server, claimed))
}

pub(in crate::http) fn leased(server: &Server, job: Claimed) -> LeasedJob {
    LeasedJob {
        job_id: job.job_id,
        attempt_id: job.attempt_id,
        lease_token: job.lease_token,
        stream: job.stream,
        message_id: job.message.to_string(),
        payload: job.payload,
        lease_ttl_seconds: whole_seconds(server.settings.lease_ttl),
        heartbeat_interval_seconds: whole_seconds(server.settings.heartbeat_interval),
        heartbeat_interval_ms: u64::try_from(server.settings.heartbeat_interval.as_millis())
            .unwrap_or(u64::MAX),
        attempt_no: job.attempt_no,
        max_attempts: job.max_attempts,
        server_time: job.claimed_at,
        lease_expires_at: job.expires_at,
        timeout_at: job.timeout_at,
    }
}

fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs().max(1)
}

/// Now, by the clock that set `expires_at`, without another question to the database: a TTL before `expires_at`. If a
/// time-out cut the lease short, that lies in the past; then this process's own estimate of that clock is better.
pub(in crate::http) fn server_time(server: &Server, expires_at: Timestamp) -> Timestamp {
    let now = server.engine().store().lease_time();
    expires_at.before(server.settings.lease_ttl).max(now.min(expires_at))
}

/// `POST /internal/worker/heartbeat`
pub async fn heartbeat(call: Call) -> Replied {
    let request: HeartbeatRequest = json::read(&call.body)?;
    let _writing = call.writing()?;
    let beat = Beat { job_id: request.job_id, token_hash: request.lease_token.hash() };
    let results = extend(call.server.engine().store(), vec![(beat, request.progress)]).await?;
    let BeatResult { answer, went_back } = only(results)?;
    match answer {
        BeatAnswer::Extended { .. } if went_back => {
            Err(Refusal::field(Code::Invalid, "/progress/percent", WENT_BACK))
        }
        BeatAnswer::Extended { expires_at, cancel_requested } => {
            let server_time = server_time(&call.server, expires_at);
            let lease_expires_at = expires_at;
            Reply::json(200, &HeartbeatResponse { ok: true, lease_expires_at, cancel_requested, server_time })
        }
        BeatAnswer::LeaseLost => Err(Refusal::new(Code::LeaseLost, LOST)),
        BeatAnswer::Unknown => Err(missing("job", &request.job_id)),
    }
}

/// `POST /internal/worker/complete`
pub async fn complete(call: Call) -> Replied {
    let request: CompleteRequest = json::read(&call.body)?;
    result_fits(&request.result, "/result")?;
    let _writing = call.writing()?;
    let proof = Proof {
        job_id: request.job_id,
        attempt_id: request.attempt_id,
        token_hash: request.lease_token.hash(),
    };
    let item = Completion { proof, result: request.result };
    let answer = only(call.server.engine().store().complete(vec![item]).await?)?;
    if answer == Answer::Unfit {
        // This is rare, so the body is parsed once more instead of keeping a copy of every result.
        let request: CompleteRequest = json::read(&call.body)?;
        let mut refused = Refusal::fields(unfit(&request.result, "/result"));
        refused.code = Code::UnfitOutput;
        return Err(refused);
    }
    settled(answer, request.job_id, request.attempt_id)?;
    Reply::json(200, &CompleteResponse { ok: true, ack: true })
}

/// `POST /internal/worker/fail`
pub async fn fail(call: Call) -> Replied {
    let request: FailRequest = json::read(&call.body)?;
    let _writing = call.writing()?;
    let proof = Proof {
        job_id: request.job_id,
        attempt_id: request.attempt_id,
        token_hash: request.lease_token.hash(),
    };
    let answers = call.server.engine().store().fail(vec![failure(proof, request.error)]).await?;
    let status = settled(only(answers)?, request.job_id, request.attempt_id)?;
    let (requeued, dlq) = (status == JobStatus::Queued, status == JobStatus::Dead);
    Reply::json(200, &FailResponse { ok: true, ack: true, requeued, dlq })
}

pub(in crate::http) const WENT_BACK: &str =
    "progress cannot decrease within one attempt; the lease was extended";
const LOST: &str = "this lease_token does not hold the lease (any more); stop working on the job";

/// The job's status after an accepted report; every other answer is a refusal.
fn settled(answer: Answer, job_id: JobId, attempt_id: AttemptId) -> Result<JobStatus, Refused> {
    let mut refused = match answer {
        Answer::Accepted { status } | Answer::Duplicate { status } => return Ok(status),
        Answer::AttemptClosed => Refusal::new(Code::AttemptClosed, Code::AttemptClosed.title()),
        Answer::LeaseLost { .. } => Refusal::new(Code::LeaseLost, LOST),
        Answer::Unknown => Refusal::new(Code::NotFound, format!("job {job_id} has no attempt {attempt_id}")),
        Answer::Unfit => Refusal::new(Code::UnfitOutput, Code::UnfitOutput.title()),
    };
    refused.ack = answer.ack();
    Err(refused)
}

/// Why a result is no output bundle, field by field.
pub(in crate::http) fn unfit(result: &RawValue, at: &str) -> Vec<FieldProblem> {
    let value = serde_json::from_str(result.get()).unwrap_or_default();
    let mut found = fields(membrane::parts(&value).err().unwrap_or_default());
    for field in &mut found {
        field.pointer.insert_str(0, at);
    }
    found
}

fn only<T>(answers: Vec<T>) -> Result<T, Refused> {
    answers.into_iter().next().ok_or_else(|| Refusal::new(Code::Internal, "the store gave no answer"))
}

/// Refuses a result that is too long; the lease stays.
pub(in crate::http) fn result_fits(result: &RawValue, pointer: &str) -> Result<(), Refused> {
    if result.get().len() <= limits::PAYLOAD_BYTES_MAX {
        return Ok(());
    }
    let detail =
        format!("a result has at most {} bytes; you still hold the lease", limits::PAYLOAD_BYTES_MAX);
    Err(Refusal::field(Code::TooLarge, pointer, detail))
}

pub(in crate::http) fn failure(proof: Proof, error: ErrorReport) -> Failure {
    let ErrorReport { code, message, stack, retryable } = error;
    Failure::new(proof, Cause { code, message, stack, retryable })
}

//! One claim: asks for jobs, and makes sure that their leases are still valid when the answer arrives.

use super::held::Call;
use super::job::{Job, trusted_for};
use super::shared::Shared;
use crate::client::{ClientError, Reply};
use crate::wire::{BatchResponse, ClaimManyRequest, HeartbeatItem, ItemOutcome, LeasedJob, WorkerBatch};
use fernery_core::StreamName;
use fernery_core::calendar::duration::millis;
use fernery_door as door;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The result of a claim.
pub(crate) struct Claimed {
    /// How many were asked for.
    pub(crate) asked: usize,
    /// How long the answer took.
    pub(crate) took: Duration,
    pub(crate) outcome: Result<Jobs, ClientError>,
}

/// Jobs, and the call that gave or confirmed their leases.
#[derive(Default)]
pub(crate) struct Jobs {
    pub(crate) jobs: Vec<Job>,
    pub(crate) call: Call,
    /// Jobs whose lease could not be confirmed. They are handed back.
    pub(crate) unsure: Vec<Job>,
}

impl Jobs {
    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.unsure.is_empty()
    }
}

/// Asks for up to `asked` jobs of `streams`, in that order. Once `hung_up` is true, it stops waiting for jobs, and does not
/// check the leases of jobs that have arrived.
pub(crate) async fn claim(
    shared: Arc<Shared>,
    streams: Arc<[StreamName]>,
    asked: usize,
    wait: Duration,
    hung_up: watch::Receiver<bool>,
) -> Claimed {
    let sent_at = door::since_boot();
    let outcome = ask(&shared, &streams, asked, wait, hung_up).await;
    Claimed { asked, took: door::since_boot().saturating_sub(sent_at), outcome }
}

async fn ask(
    shared: &Shared,
    streams: &[StreamName],
    asked: usize,
    wait: Duration,
    mut hung_up: watch::Receiver<bool>,
) -> Result<Jobs, ClientError> {
    let request = ClaimManyRequest {
        worker_id: shared.worker_id.clone(),
        streams: streams.to_vec(),
        max: asked as u64,
        max_wait_ms: Some(millis(wait)),
    };
    let sent_at = door::since_boot();
    let answer = tokio::select! {
        biased;
        answer = shared.client.claim(&request) => answer?.read()?,
        _ = hung_up.wait_for(|hung_up| *hung_up) => return Ok(Jobs::default()),
    };
    let call = Call { sent_at, answered_at: door::since_boot() };
    let Some(trusted_for) = answer.jobs.iter().map(trusted_for).min() else { return Ok(Jobs::default()) };
    // The lease began at some time between question and answer. If the claim waited long, a heartbeat checks it.
    if call.answered_at.saturating_sub(sent_at) <= trusted_for / 2 {
        let jobs = answer.jobs.into_iter().map(Job::new).collect();
        return Ok(Jobs { jobs, call, unsure: Vec::new() });
    }
    Ok(confirmed(shared, answer.jobs, hung_up).await)
}

async fn confirmed(shared: &Shared, jobs: Vec<LeasedJob>, mut hung_up: watch::Receiver<bool>) -> Jobs {
    let sent_at = door::since_boot();
    let item =
        |job: &LeasedJob| HeartbeatItem { job_id: job.job_id, lease_token: job.lease_token, progress: None };
    let items = jobs.iter().map(item).collect();
    let batch = WorkerBatch { worker_id: shared.worker_id.clone(), items };
    // From here on the jobs are claimed, also after a hang-up: those without a confirmed lease are handed back.
    let answers = tokio::select! {
        biased;
        answers = shared.client.heartbeat(&batch) => Some(answers),
        _ = hung_up.wait_for(|hung_up| *hung_up) => None,
    };
    let call = Call { sent_at, answered_at: door::since_boot() };
    let items = |reply: Reply<BatchResponse>| reply.items_for(jobs.iter().map(|job| job.job_id));
    let Some(Ok(answers)) = answers.map(|answers| answers.and_then(items)) else {
        return Jobs { jobs: Vec::new(), call, unsure: jobs.into_iter().map(Job::new).collect() };
    };
    let held = jobs.into_iter().zip(answers).filter(|(_, answer)| answer.outcome == ItemOutcome::Accepted);
    let renewed = held.map(|(mut job, answer)| {
        if let Some(expires_at) = answer.lease_expires_at {
            // The end of a full lease says when it was renewed; a lease cut short by a time-out does not.
            let ttl = Duration::from_secs(job.lease_ttl_seconds.max(1));
            let is_whole = job.lease_expires_at.since(job.server_time) >= ttl;
            let told = answer.server_time.unwrap_or(job.server_time);
            let renewed_at = if is_whole { expires_at.before(ttl) } else { told };
            (job.lease_expires_at, job.server_time) = (expires_at, renewed_at);
        }
        Job::new(job)
    });
    Jobs { jobs: renewed.collect(), call, unsure: Vec::new() }
}

/// Whether a retry is useless: the token or the request itself is refused.
pub(crate) fn is_final(error: &ClientError) -> bool {
    match error {
        ClientError::Refused { .. } => !error.is_transient(),
        ClientError::Unexpected { status, .. } => matches!(status, 401 | 403),
        ClientError::Unreachable { .. } | ClientError::Broken { .. } | ClientError::TimedOut { .. } => false,
        ClientError::BadUrl(_)
        | ClientError::BadToken
        | ClientError::BadCa(_)
        | ClientError::BadRequest(_)
        | ClientError::BadResult { .. } => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Problem;

    fn refused(status: u16) -> ClientError {
        let text = || String::new();
        let problem = Problem {
            kind: text(),
            title: text(),
            status,
            code: text(),
            detail: text(),
            errors: Vec::new(),
            ok: None,
            ack: None,
            ..Problem::default()
        };
        ClientError::Refused { problem: Box::new(problem), body: Default::default(), retry_after: None }
    }

    #[test]
    fn transient_errors_are_retried_and_refusals_are_not() {
        for status in [408, 429, 500, 502, 503, 507] {
            assert!(!is_final(&refused(status)), "{status}");
        }
        for status in [400, 401, 403, 404, 413, 421, 422] {
            assert!(is_final(&refused(status)), "{status}");
        }
        // An answer from something between us and the server.
        let strange = |status| ClientError::Unexpected { status, why: String::new(), server: None };
        for (status, end) in [(200, false), (404, false), (502, false), (401, true), (403, true)] {
            assert_eq!(is_final(&strange(status)), end, "{status}");
        }
    }
}

//! Enqueues jobs and waits for their ends.
//!
//! A [`NewJob`] gets its id when it is created. The server knows a job by its id, so a call whose answer was lost can be sent
//! again: it finds the job that it stored. That is why these calls are repeated and the other calls of [`Client`] are not.

use crate::backoff::{Backoff, later};
use crate::client::{Client, ClientError, Reply};
use crate::wire::{
    EnqueueManyResponse, EnqueueOutcome, EnqueueRequest, EnqueuedJob, ErrorReport, JobDetail, Priority,
};
use fernery_core::calendar::duration::millis;
use fernery_core::{JobId, JobStatus, StreamName, Timestamp, limits};
use fernery_door as door;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::time::Duration;
use tokio::time::Instant;

/// How long a call is repeated before its last error is returned.
const PATIENCE: Duration = Duration::from_secs(60);
/// Approximate bytes of payload in one call; the server accepts four times as much.
const CALL_BYTES_MAX: usize = limits::BODY_BYTES_MAX / 4;
/// Jobs in one call. An array is answered as a whole, so a large one delays its first jobs.
const CALL_JOBS_MAX: usize = limits::ENQUEUE_BATCH_MAX / 10;

/// A job to enqueue. Its id is fixed when it is created, and clones have the same id: enqueued twice, it is one job.
///
/// Mistakes (an invalid stream name, a payload that is not a JSON object) are reported when it is enqueued.
#[derive(Clone, Debug)]
#[must_use = "it is enqueued by `Client::enqueue`"]
pub struct NewJob {
    request: EnqueueRequest,
    wrong: Option<String>,
}

impl NewJob {
    /// A job in this stream, with the payload `{}`.
    pub fn on(stream: impl AsRef<str>) -> Self {
        match StreamName::new(stream.as_ref()) {
            Ok(stream) => Self::at(Some(stream), None, None),
            Err(bad) => Self::at(None, None, Some(format!("{:?}: {bad}", stream.as_ref()))),
        }
    }

    /// A job in the stream of this priority, with the payload `{}`.
    pub fn with_priority(priority: Priority) -> Self {
        Self::at(None, Some(priority), None)
    }

    fn at(stream: Option<StreamName>, priority: Option<Priority>, wrong: Option<String>) -> Self {
        let request = EnqueueRequest {
            stream,
            priority,
            payload: RawValue::from_string("{}".into()).unwrap_or_else(|_| RawValue::NULL.to_owned()),
            job_id: Some(door::Chance::default().job_id()),
            max_attempts: None,
            delay_ms: None,
            run_at: None,
            unique_key: None,
            timeout_seconds: None,
        };
        Self { request, wrong }
    }

    /// The payload for the worker: anything that serializes to a JSON object.
    pub fn payload<T: Serialize + ?Sized>(mut self, payload: &T) -> Self {
        match serde_json::value::to_raw_value(payload) {
            Ok(raw) if raw.get().starts_with('{') => self.request.payload = raw,
            Ok(_) => self.wrong = Some("a payload must be a JSON object".into()),
            Err(error) => self.wrong = Some(format!("cannot serialize the payload: {error}")),
        }
        self
    }

    /// An id chosen by the caller: if the same job is enqueued again, even by another process, the existing job is returned.
    pub fn id(mut self, id: JobId) -> Self {
        self.request.job_id = Some(id);
        self
    }

    /// Only one unfinished job may have this key; enqueuing a second one returns the first.
    pub fn unique(mut self, key: impl Into<String>) -> Self {
        self.request.unique_key = Some(key.into());
        self
    }

    /// Start this long after it is stored at the earliest.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.request.delay_ms = Some(millis(delay));
        self
    }

    /// Start at this time at the earliest.
    pub fn run_at(mut self, instant: Timestamp) -> Self {
        self.request.run_at = Some(instant);
        self
    }

    /// How often it may fail: 1 to 1000, by default 5.
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.request.max_attempts = Some(attempts.into());
        self
    }

    /// How long one attempt may take, in whole seconds rounded up.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        let seconds = timeout.as_secs().saturating_add(u64::from(timeout.subsec_nanos() > 0));
        self.request.timeout_seconds = Some(seconds);
        self
    }

    /// Its id.
    pub fn job_id(&self) -> Option<JobId> {
        self.request.job_id
    }

    fn request(&self) -> Result<&EnqueueRequest, ClientError> {
        match &self.wrong {
            None => Ok(&self.request),
            Some(why) => Err(ClientError::BadRequest(why.clone())),
        }
    }
}

/// A job that is stored.
#[derive(Clone, Debug)]
pub struct JobHandle {
    client: Client,
    job_id: JobId,
    duplicate: bool,
}

impl JobHandle {
    /// The job's id; if the unique key was taken, the id of the job that has it.
    pub fn id(&self) -> JobId {
        self.job_id
    }

    /// Whether a job with this id or unique key already existed.
    pub fn was_there_before(&self) -> bool {
        self.duplicate
    }

    /// Waits up to `timeout` for its end.
    pub async fn wait<R: DeserializeOwned>(&self, timeout: Duration) -> Result<JobEnd<R>, ClientError> {
        self.client.wait_for(self.job_id, timeout).await
    }
}

/// What became of one job of many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enqueued {
    /// The job; if the unique key was taken, the job that has it; after a conflict, the job that was to be stored.
    pub job_id: JobId,
    /// What became of it.
    pub outcome: EnqueueOutcome,
}

/// The state of a job after waiting for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobEnd<R> {
    /// It succeeded.
    Succeeded(R),
    /// It is in the dead-letter queue; the error is that of its last failed attempt.
    Dead(JobError),
    /// Somebody cancelled it.
    Cancelled,
    /// It has not ended yet.
    StillRunning,
}

/// The error of an attempt; fields that the worker did not report are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct JobError {
    /// A short code to filter by.
    pub code: String,
    /// A sentence for people.
    pub message: String,
    /// Where it went wrong.
    pub stack: Option<String>,
}

impl From<ErrorReport> for JobError {
    fn from(error: ErrorReport) -> Self {
        Self { code: error.code, message: error.message, stack: error.stack }
    }
}

impl Client {
    /// Stores a job. If the call may have been lost, it is repeated for up to a minute; the job is stored only once.
    pub async fn enqueue(&self, job: NewJob) -> Result<JobHandle, ClientError> {
        let request = job.request()?;
        let mut patience = Patience::new();
        let stored: EnqueuedJob = loop {
            match self.post_job(request).await {
                Ok(reply) => break reply.read()?,
                Err(error) => patience.outlast(error).await?,
            }
        };
        Ok(JobHandle { client: self.clone(), job_id: stored.job_id, duplicate: stored.duplicate })
    }

    /// Stores any number of jobs, in calls of bounded size; returns the outcome of each, in order.
    ///
    /// After an error some of them are stored. Calling again with the same jobs stores the rest, and none twice.
    pub async fn enqueue_all(&self, jobs: &[NewJob]) -> Result<Vec<Enqueued>, ClientError> {
        let requests: Vec<&EnqueueRequest> = jobs.iter().map(NewJob::request).collect::<Result<_, _>>()?;
        let mut answers = Vec::with_capacity(requests.len());
        let mut rest = &requests[..];
        while !rest.is_empty() {
            let (call, later) = rest.split_at(call_size(rest));
            answers.extend(self.enqueue_call(call).await?);
            rest = later;
        }
        Ok(answers)
    }

    async fn enqueue_call(&self, call: &[&EnqueueRequest]) -> Result<Vec<Enqueued>, ClientError> {
        let mut patience = Patience::new();
        let reply: Reply<EnqueueManyResponse> = loop {
            match self.post_jobs(&call).await {
                Ok(reply) => break reply,
                Err(error) => patience.outlast(error).await?,
            }
        };
        let answers = reply.read()?.jobs;
        let pairs = call.iter().zip(&answers);
        let enqueued = pairs.filter_map(|(request, answer)| {
            Some(Enqueued { job_id: answer.job_id.or(request.job_id)?, outcome: answer.outcome })
        });
        let enqueued: Vec<_> = enqueued.collect();
        if enqueued.len() == call.len() && answers.len() == call.len() {
            return Ok(enqueued);
        }
        let why = format!("{} answers to {} jobs", answers.len(), call.len());
        Err(ClientError::Unexpected { status: reply.status, why, server: reply.server })
    }

    /// Waits up to `timeout` for the end of a job.
    pub async fn wait_for<R: DeserializeOwned>(
        &self,
        job_id: JobId,
        timeout: Duration,
    ) -> Result<JobEnd<R>, ClientError> {
        let deadline = later(timeout);
        let mut backoff = Backoff::default();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let (wait, asked_at) = (left.min(limits::JOB_WAIT_MAX), Instant::now());
            let asked = self.job(job_id, wait).await.and_then(|reply| reply.read());
            match asked {
                Ok(job) if job.status.is_final() || left.is_zero() => return end_of(job),
                // A server that answers before the wait is over must not be asked again at once.
                Ok(_) if asked_at.elapsed() < wait => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    tokio::time::sleep(backoff.next(None).min(left)).await;
                }
                Ok(_) => backoff.reset(),
                Err(error) if error.is_transient() && !left.is_zero() => {
                    let pause = backoff.next(error.retry_after());
                    if pause >= left {
                        return Err(error);
                    }
                    tokio::time::sleep(pause).await;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// How many jobs go into the next call.
fn call_size(requests: &[&EnqueueRequest]) -> usize {
    let mut bytes = 0;
    let fits = |request: &&&EnqueueRequest| {
        bytes += request.payload.get().len() + 300;
        bytes <= CALL_BYTES_MAX
    };
    requests.iter().take(CALL_JOBS_MAX).take_while(fits).count().max(1)
}

/// Limits how long a call is repeated.
struct Patience {
    deadline: Instant,
    backoff: Backoff,
}

impl Patience {
    fn new() -> Self {
        Self { deadline: Instant::now() + PATIENCE, backoff: Backoff::default() }
    }

    /// Waits before the next try; returns the error if no further try makes sense.
    async fn outlast(&mut self, error: ClientError) -> Result<(), ClientError> {
        let again_at = Instant::now() + self.backoff.next(error.retry_after());
        if !error.is_transient() || again_at >= self.deadline {
            return Err(error);
        }
        tokio::time::sleep_until(again_at).await;
        Ok(())
    }
}

fn end_of<R: DeserializeOwned>(job: JobDetail) -> Result<JobEnd<R>, ClientError> {
    let job_id = job.job_id;
    match job.status {
        JobStatus::Queued | JobStatus::Running => Ok(JobEnd::StillRunning),
        JobStatus::Cancelled => Ok(JobEnd::Cancelled),
        JobStatus::Dead => {
            let error = job.error.and_then(|raw| serde_json::from_str(raw.get()).ok());
            Ok(JobEnd::Dead(error.unwrap_or_default()))
        }
        JobStatus::Succeeded => {
            let result = job.result.as_ref().map_or("null", |raw| raw.get());
            serde_json::from_str(result)
                .map(JobEnd::Succeeded)
                .map_err(|error| ClientError::BadResult { job_id, why: error.to_string() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_has_an_id_of_its_own_and_a_clone_the_same() {
        let (one, other) = (NewJob::on("s"), NewJob::on("s"));
        assert!(one.job_id().is_some());
        assert_ne!(one.job_id(), other.job_id());
        assert_eq!(one.job_id(), one.clone().job_id());
    }

    #[test]
    fn a_job_that_cannot_be_stored_says_so_without_a_call() {
        for (job, why) in [
            (NewJob::on("no name"), "a stream name has"),
            (NewJob::on("s").payload(&[1, 2]), "a JSON object"),
            (NewJob::on("s").payload(&f64::NAN), "a JSON object"),
        ] {
            let error = job.request().unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_time_out_is_never_shortened() {
        let seconds = |ms| NewJob::on("s").timeout(Duration::from_millis(ms)).request.timeout_seconds;
        assert_eq!((seconds(1), seconds(1_000), seconds(1_001)), (Some(1), Some(1), Some(2)));
        let longest = NewJob::on("s").timeout(Duration::MAX);
        assert_eq!(longest.request.timeout_seconds, Some(u64::MAX));
    }

    #[test]
    fn a_call_is_cut_by_count_and_by_bytes_and_always_holds_one() {
        let request =
            |bytes: usize| NewJob::on("s").payload(&serde_json::json!({ "x": "y".repeat(bytes) })).request;
        let small = request(1);
        assert_eq!(call_size(&vec![&small; 5_000]), CALL_JOBS_MAX);
        let large = request(1 << 20);
        assert_eq!(call_size(&[&large; 10]), 3);
        let huge = request(CALL_BYTES_MAX);
        assert_eq!(call_size(&[&huge; 2]), 1);
    }
}

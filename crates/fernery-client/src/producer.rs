//! Enqueues jobs and waits for their ends.
//!
//! Every job made here carries an id of its own from the moment it is described. The server knows a job by its id, so a
//! call whose answer was lost is simply sent again: it finds the job that it stored. That is why these calls repeat
//! themselves where [`Client`]'s other calls do not.

use crate::backoff::{Backoff, later};
use crate::client::{Client, ClientError, Reply};
use crate::wire::{
    EnqueueManyResponse, EnqueueOutcome, EnqueueRequest, EnqueuedJob, ErrorReport, JobDetail, Priority,
};
use fernery_core::{JobId, JobStatus, StreamName, Timestamp, limits};
use fernery_door as door;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::time::Duration;
use tokio::time::Instant;

/// How long a call is repeated before its last error is passed on.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes of payload in one call, about; the server takes four times as much.
const CALL_BYTES_MAX: usize = limits::BODY_BYTES_MAX / 4;
/// Jobs in one call: an array is answered as a whole, and a large one keeps everybody waiting.
const CALL_JOBS_MAX: usize = limits::ENQUEUE_BATCH_MAX / 10;

/// A job to enqueue. It has its id from the start, and a clone has the same: enqueued twice it is one job.
///
/// What is wrong with it (a stream that is no name, a payload that is no JSON object) is told when it is enqueued.
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

    /// What the worker gets: anything that is written as a JSON object.
    pub fn payload<T: Serialize + ?Sized>(mut self, payload: &T) -> Self {
        match serde_json::value::to_raw_value(payload) {
            Ok(raw) if raw.get().starts_with('{') => self.request.payload = raw,
            Ok(_) => self.wrong = Some("a payload must be a JSON object".into()),
            Err(error) => self.wrong = Some(format!("cannot serialize the payload: {error}")),
        }
        self
    }

    /// An id of the caller's own: the same job again, even from another process, is the job that exists.
    pub fn id(mut self, id: JobId) -> Self {
        self.request.job_id = Some(id);
        self
    }

    /// At most one unfinished job has this key; a second one finds the first.
    pub fn unique(mut self, key: impl Into<String>) -> Self {
        self.request.unique_key = Some(key.into());
        self
    }

    /// Start no earlier than this from when it is stored.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.request.delay_ms = Some(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Start no earlier than this.
    pub fn run_at(mut self, instant: Timestamp) -> Self {
        self.request.run_at = Some(instant);
        self
    }

    /// How often it may fail: 1 to 1000, 5 if nothing is said.
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
    /// The job. With a unique key that was taken, the one that has it.
    pub fn id(&self) -> JobId {
        self.job_id
    }

    /// Whether it was there before: under this id, or with this unique key.
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
    /// The job; with a unique key that was taken, the one that has it; after a conflict, the one that was asked for.
    pub job_id: JobId,
    /// What became of it.
    pub outcome: EnqueueOutcome,
}

/// Where a job stands after somebody waited for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobEnd<R> {
    /// It succeeded.
    Succeeded(R),
    /// It was given up, and why its last attempt did not succeed.
    Dead(JobError),
    /// Somebody cancelled it.
    Cancelled,
    /// It has not ended yet.
    StillRunning,
}

/// Why an attempt did not succeed, as far as it is known.
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
    /// Stores a job. The call is repeated for up to a minute where it may have been lost; that never makes two jobs.
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

    /// Stores any number of jobs, in calls of a bounded size, and answers for each in order.
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
                // Somebody who does not wait as asked is not asked again at once.
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

/// How long a call that may be repeated is repeated.
struct Patience {
    deadline: Instant,
    backoff: Backoff,
}

impl Patience {
    fn new() -> Self {
        Self { deadline: Instant::now() + PATIENCE, backoff: Backoff::default() }
    }

    /// Waits until the call that failed so is worth another try; passes the error on if it never will be.
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

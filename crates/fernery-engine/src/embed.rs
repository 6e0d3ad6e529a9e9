//! The engine for a program that has it inside: one job at a time, without HTTP and without a worker's ceremony.
//!
//! Nothing here is a rule. Each call is a verb of the [`Store`](crate::store::Store) for one item, so what is said there
//! about leases and answers holds here, and both may be mixed freely. The database is authoritative as everywhere.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("jobs.db");
//! use fernery_engine::{Engine, JobStatus};
//! use std::time::Duration;
//!
//! let engine = Engine::sqlite(&path).await?;
//! let job_id = engine.enqueue("mail", &serde_json::json!({ "to": "ada@example.org" })).await?;
//!
//! if let Some(job) = engine.claim_one("mail", Duration::from_secs(5)).await? {
//!     let sent = engine.while_held(&job, async { "sent" }).await?;
//!     engine.complete(&job, sent).await?;
//! }
//! let job = engine.job(job_id, Duration::ZERO).await?.ok_or("it was stored")?;
//! assert_eq!(job.brief.status, JobStatus::Succeeded);
//! engine.close().await;
//! # Ok(())
//! # }
//! ```

use crate::engine::{Database, Engine, EngineSettings};
use crate::error::{StoreError, StoreResult};
use crate::store::{Ask, Beat, BeatAnswer, Cause, Claimed, Completion, Enqueued, Failure, NewJob, Proof};
use fernery_core::job::report::Answer;
use fernery_core::{JobId, StreamName, WorkerId, limits};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Why [`Engine::while_held`] gave a job's work up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Another may hold the job by now: nothing that this work says about it will be accepted.
    LeaseLost,
    /// The database could not be asked for two thirds of the lease: another may hold the job soon.
    LeaseUnsure,
    /// Somebody wants the job ended. The lease still holds; a failure reported now ends it as CANCELLED.
    CancelRequested,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LeaseLost => "the lease was lost",
            Self::LeaseUnsure => "the lease could not be renewed in time",
            Self::CancelRequested => "a cancel was requested",
        })
    }
}

impl std::error::Error for Stop {}

impl Claimed {
    /// What proves that the caller holds this attempt.
    pub fn proof(&self) -> Proof {
        let token_hash = self.lease_token.hash();
        Proof { job_id: self.job_id, attempt_id: self.attempt_id, token_hash }
    }
}

impl Engine {
    /// An engine over this SQLite file, with the defaults. The file is made if it is not there; one process at a time has
    /// it open.
    pub async fn sqlite(path: impl Into<PathBuf>) -> StoreResult<Self> {
        Self::open(&Database::Sqlite(path.into()), EngineSettings::default()).await
    }

    /// An engine over this PostgreSQL database, with the defaults. Its tables live in a schema of their own, `fernery`.
    pub async fn postgres(url: impl Into<String>) -> StoreResult<Self> {
        Self::open(&Database::Postgres(url.into()), EngineSettings::default()).await
    }

    /// Stores a job with the defaults; the payload is anything that is written as a JSON object. Once this returns, the job
    /// is durable.
    pub async fn enqueue<T: Serialize + ?Sized>(&self, stream: &str, payload: &T) -> StoreResult<JobId> {
        match self.enqueue_one(NewJob::new(stream_name(stream)?, written(payload)?)).await? {
            Enqueued::Created(job) | Enqueued::Exists(job) | Enqueued::DuplicateKey(job) => Ok(job.job_id),
            Enqueued::Conflict(job_id) => {
                Err(StoreError::Refused(format!("{job_id} already names another job")))
            }
        }
    }

    /// Stores a job with whatever it asks for: its own id, a unique key, a delay, a time-out. The rules for producers are
    /// those of HTTP.
    pub async fn enqueue_one(&self, job: NewJob) -> StoreResult<Enqueued> {
        job.check()?;
        only(self.store().enqueue(vec![job]).await?)
    }

    /// Takes the oldest job of a stream, waiting up to `wait` for one. Dropping the future costs no job.
    pub async fn claim_one(&self, stream: &str, wait: Duration) -> StoreResult<Option<Claimed>> {
        let worker_id = WorkerId::new(&format!("process {}", std::process::id()));
        let worker_id = worker_id.map_err(|bad| StoreError::Refused(bad.to_string()))?;
        let ask = Ask { worker_id, streams: [stream_name(stream)?].into(), max: 1 };
        Ok(self.claim(ask, wait).await?.pop())
    }

    /// Does a job's work and renews its lease meanwhile, three times per lease. Work that is given up is dropped where it
    /// waits; work that blocks its thread cannot be.
    pub async fn while_held<T>(&self, job: &Claimed, work: impl Future<Output = T>) -> Result<T, Stop> {
        let ttl = self.settings().store.lease_ttl;
        let mut work = pin!(work);
        let mut renewed_at = Instant::now();
        let mut beat_at = renewed_at + ttl / 3;
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                () = sleep_until(beat_at) => {}
            }
            let sent_at = Instant::now();
            beat_at = sent_at + ttl / 3;
            // A database that does not answer must not stop the clock of the lease.
            let answer = tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                answer = self.heartbeat(job) => answer,
                () = sleep_until(renewed_at + ttl * 2 / 3) => return Err(Stop::LeaseUnsure),
            };
            match answer {
                Ok(BeatAnswer::Extended { cancel_requested: true, .. }) => return Err(Stop::CancelRequested),
                Ok(BeatAnswer::Extended { .. }) => renewed_at = sent_at,
                Ok(BeatAnswer::LeaseLost | BeatAnswer::Unknown) => return Err(Stop::LeaseLost),
                // The next one tries again, while there is time for it.
                Err(_) => beat_at = sent_at + ttl / 30,
            }
        }
    }

    /// Renews the lease of a claimed job.
    pub async fn heartbeat(&self, job: &Claimed) -> StoreResult<BeatAnswer> {
        let beat = Beat { job_id: job.job_id, token_hash: job.lease_token.hash() };
        only(self.store().heartbeat(vec![beat]).await?)
    }

    /// Ends a claimed job with a result. After an error the same call again tells what became of the first.
    pub async fn complete<T: Serialize + ?Sized>(&self, job: &Claimed, result: &T) -> StoreResult<Answer> {
        let completion = Completion { proof: job.proof(), result: written(result)? };
        only(self.store().complete(vec![completion]).await?)
    }

    /// Ends this attempt of a claimed job with an error: it is tried again later, or dead after its last attempt. After an
    /// error the same call again tells what became of the first.
    pub async fn fail(&self, job: &Claimed, code: &str, message: &str) -> StoreResult<Answer> {
        self.failed_so(job, code, message, true).await
    }

    /// Ends a claimed job with an error that no second attempt can mend.
    pub async fn fail_for_good(&self, job: &Claimed, code: &str, message: &str) -> StoreResult<Answer> {
        self.failed_so(job, code, message, false).await
    }

    async fn failed_so(&self, job: &Claimed, code: &str, message: &str, again: bool) -> StoreResult<Answer> {
        let (code, message) = (code.to_string(), message.to_string());
        let failure = Failure::new(job.proof(), Cause { code, message, stack: None, retryable: again });
        only(self.store().fail(vec![failure]).await?)
    }

    /// Hands a claimed job back unfinished: the next claim may have it at once.
    pub async fn release(&self, job: &Claimed) -> StoreResult<Answer> {
        only(self.store().release(vec![job.proof()]).await?)
    }
}

fn stream_name(name: &str) -> StoreResult<StreamName> {
    StreamName::new(name).map_err(|bad| StoreError::Refused(format!("{name:?}: {bad}")))
}

/// A payload or a result as it is stored, within the limit that holds over HTTP too.
fn written<T: Serialize + ?Sized>(value: &T) -> StoreResult<Box<RawValue>> {
    let raw = to_raw_value(value).map_err(|error| StoreError::Refused(error.to_string()))?;
    if raw.get().len() > limits::PAYLOAD_BYTES_MAX {
        let why = format!(
            "the payload or result has {} bytes; the limit is {}",
            raw.get().len(),
            limits::PAYLOAD_BYTES_MAX
        );
        return Err(StoreError::Refused(why));
    }
    Ok(raw)
}

fn only<T>(mut answers: Vec<T>) -> StoreResult<T> {
    answers.pop().ok_or_else(|| StoreError::Corrupt("a call of one item was not answered".into()))
}

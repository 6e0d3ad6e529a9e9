//! The seam between the rules and the databases.
//!
//! The hot verbs are plural: a slice of one is the single case. A store decides nothing but the fence; what an end means,
//! when to retry and what to answer is decided by `fernery-core` over the rows that the store loads.
//!
//! Who holds what, table by table (the same on both backends):
//!
//! | table | a row is | written by | gone by |
//! |---|---|---|---|
//! | `jobs` | what the producer asked for; `ended` marks DEAD and CANCELLED | enqueue; requeue, cancel, redrive | retention, purge |
//! | `ready` | a job that can be claimed now, in the order of `seq` | enqueue, requeue, promote | claim, cancel |
//! | `scheduled` | a job that waits for its time | enqueue, retry | promote, cancel |
//! | `leases` | an open attempt | claim; heartbeat renews | complete, fail, release, reap, cancel by force |
//! | `attempts` | a closed attempt; the last one with SUCCEEDED ends the job | the end of a lease | retention, purge |
//! | `dead_letters` | a DEAD job | bury | redrive, purge, retention |
//! | `unique_keys` | an unfinished job's key | enqueue | the job's end |
//! | `inbox` | a job of another program's transaction (PostgreSQL) | any program | the engine |
//! | `streams` | counts and the pause flag | every batch | |
//!
//! So a job is RUNNING if it has a lease, QUEUED if it is ready or scheduled, and finished otherwise: exactly one of them,
//! because each verb moves it in one transaction.

use crate::error::StoreResult;
use async_trait::async_trait;
use fernery_core::lease::Message;
use fernery_core::report::Answer;
use fernery_core::retry::RetryPolicy;
use fernery_core::{
    AttemptId, AttemptOutcome, Holding, JobId, JobStatus, LeaseToken, Progress, StreamName, Timestamp,
    TokenHash, WorkerId, limits,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Duration;

pub mod endings;
pub mod postgres;
mod reaping;
pub mod sqlite;

/// What every store is told when it is opened.
#[derive(Clone, Debug)]
pub struct StoreSettings {
    /// How long a claim or a heartbeat holds.
    pub lease_ttl: Duration,
    /// How long a failed job waits.
    pub retry: RetryPolicy,
    /// Ids and randomness.
    pub chance: crate::door::Chance,
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self {
            lease_ttl: limits::LEASE_TTL_DEFAULT,
            retry: RetryPolicy::default(),
            chance: crate::door::Chance::default(),
        }
    }
}

/// When a new job may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At once.
    Now,
    /// This long after it is stored.
    After(Duration),
    /// At this instant of the calendar.
    At(Timestamp),
}

/// A job as its producer asks for it, checked.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// The producer's own id, or `None`: the engine makes one.
    pub job_id: Option<JobId>,
    /// Where it waits.
    pub stream: StreamName,
    /// What the worker gets, to the byte.
    pub payload: Box<RawValue>,
    /// How often it may fail.
    pub max_attempts: u32,
    /// When it may start.
    pub start: Start,
    /// At most one unfinished job has this key.
    pub unique_key: Option<String>,
    /// How long one attempt may take.
    pub timeout: Option<Duration>,
    /// The producer's token, where that limits what it may read.
    pub producer: Option<String>,
}

impl NewJob {
    /// A job with the defaults.
    pub fn new(stream: StreamName, payload: Box<RawValue>) -> Self {
        Self {
            job_id: None,
            stream,
            payload,
            max_attempts: limits::MAX_ATTEMPTS_DEFAULT,
            start: Start::Now,
            unique_key: None,
            timeout: None,
            producer: None,
        }
    }

    /// Tells apart "the same again" from "another job under the same id". The payload counts to the byte.
    pub fn content_hash(&self) -> [u8; 16] {
        use sha2::{Digest, Sha256};
        let (start_kind, start_ms) = match self.start {
            Start::Now => (0u8, 0i64),
            Start::After(delay) => (1, i64::try_from(delay.as_millis()).unwrap_or(i64::MAX)),
            Start::At(at) => (2, at.as_millis()),
        };
        let mut sha = Sha256::new();
        for text in [self.stream.as_str(), self.payload.get(), self.unique_key.as_deref().unwrap_or("\0")] {
            sha.update((text.len() as u64).to_le_bytes());
            sha.update(text);
        }
        sha.update(self.max_attempts.to_le_bytes());
        sha.update([start_kind]);
        sha.update(start_ms.to_le_bytes());
        sha.update(self.timeout.map_or(0, |t| t.as_millis() as u64).to_le_bytes());
        let mut first = [0; 16];
        first.copy_from_slice(&sha.finalize()[..16]);
        first
    }
}

/// What most readers need of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobBrief {
    /// The job.
    pub job_id: JobId,
    /// Where it waits or waited.
    pub stream: StreamName,
    /// Where it stands.
    pub status: JobStatus,
    /// How often it may fail.
    pub max_attempts: u32,
    /// When it was stored.
    pub created_at: Timestamp,
    /// From when on it may start; the next attempt's time while it waits for a retry.
    pub run_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// Whose it is, where that limits who may read it.
    pub producer: Option<String>,
}

/// The answer to one enqueued job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Enqueued {
    /// It is stored.
    Created(JobBrief),
    /// The same job was stored before under this id.
    Exists(JobBrief),
    /// Its unique key belongs to this unfinished job.
    DuplicateKey(JobBrief),
    /// Its id belongs to another job.
    Conflict(JobId),
}

/// A claim, ready to be asked.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Who asks.
    pub worker_id: WorkerId,
    /// Where to look, in this order.
    pub streams: Arc<[StreamName]>,
    /// How many jobs at most.
    pub max: usize,
}

/// A job under a fresh lease.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// The job.
    pub job_id: JobId,
    /// This attempt.
    pub attempt_id: AttemptId,
    /// The secret that proves the holder.
    pub lease_token: LeaseToken,
    /// Where it was found.
    pub stream: StreamName,
    /// The message it came by.
    pub message: Message,
    /// What to do, as the producer wrote it.
    pub payload: Box<RawValue>,
    /// Counts every claim.
    pub attempt_no: u32,
    /// How often it may fail.
    pub max_attempts: u32,
    /// When it was claimed, by the clock that decides expiry.
    pub claimed_at: Timestamp,
    /// Until when it holds without a heartbeat.
    pub expires_at: Timestamp,
    /// When this attempt has taken too long.
    pub timeout_at: Option<Timestamp>,
}

/// A sign of life.
#[derive(Clone, Copy, Debug)]
pub struct Beat {
    /// The job.
    pub job_id: JobId,
    /// Proves the holder.
    pub token_hash: TokenHash,
}

/// The answer to a sign of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeatAnswer {
    /// Still the holder.
    Extended {
        /// Until when.
        expires_at: Timestamp,
        /// An operator wants it ended.
        cancel_requested: bool,
    },
    /// Not, or no longer, the holder.
    LeaseLost,
    /// There is no such job.
    Unknown,
}

/// Names an attempt and proves that the caller holds it.
#[derive(Clone, Copy, Debug)]
pub struct Proof {
    /// The job.
    pub job_id: JobId,
    /// The attempt.
    pub attempt_id: AttemptId,
    /// Proves the holder.
    pub token_hash: TokenHash,
}

/// A report of success.
#[derive(Clone, Debug)]
pub struct Completion {
    /// By whom, for what.
    pub proof: Proof,
    /// The result, to the byte.
    pub result: Box<RawValue>,
}

/// A report of failure.
#[derive(Clone, Debug)]
pub struct Failure {
    /// By whom, for what.
    pub proof: Proof,
    /// Whether trying again may help.
    pub retryable: bool,
    /// A short code to filter by.
    pub code: String,
    /// The whole error as a JSON object.
    pub error: Box<RawValue>,
}

/// One attempt, open or closed.
#[derive(Clone, Debug)]
pub struct AttemptView {
    /// The attempt.
    pub attempt_id: AttemptId,
    /// Counts every claim.
    pub attempt_no: u32,
    /// Who held it.
    pub worker_id: String,
    /// When it was claimed.
    pub started_at: Timestamp,
    /// When it ended; `None` while it runs.
    pub finished_at: Option<Timestamp>,
    /// How it ended; `None` while it runs.
    pub outcome: Option<AttemptOutcome>,
    /// Why it did not succeed.
    pub error: Option<Box<RawValue>>,
    /// What it made.
    pub result: Option<Box<RawValue>>,
    /// When the holder was last heard, while it runs.
    pub heartbeat_at: Option<Timestamp>,
    /// Until when it holds, while it runs.
    pub expires_at: Option<Timestamp>,
    /// How far the holder says it is, while it runs.
    pub progress: Option<Progress>,
    /// The order of its last write.
    pub claim_version: i64,
}

impl AttemptView {
    /// An open attempt, as its lease has it.
    pub fn open(held: Holding, progress: Option<Progress>) -> Self {
        Self {
            attempt_id: held.attempt_id,
            attempt_no: held.attempt_no,
            worker_id: held.worker_id,
            started_at: held.started_at,
            finished_at: None,
            outcome: None,
            error: None,
            result: None,
            heartbeat_at: Some(held.heartbeat_at),
            expires_at: Some(held.expires_at),
            progress,
            claim_version: held.claim_version,
        }
    }
}

/// Everything about one job.
#[derive(Clone, Debug)]
pub struct JobView {
    /// The short form.
    pub brief: JobBrief,
    /// What the worker gets.
    pub payload: Box<RawValue>,
    /// At most one unfinished job has this key.
    pub unique_key: Option<String>,
    /// How long one attempt may take.
    pub timeout: Option<Duration>,
    /// An operator wants it ended.
    pub cancel_requested: bool,
    /// All attempts, oldest first, the open one last.
    pub attempts: Vec<AttemptView>,
}

/// Which jobs to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// In this state only.
    pub status: Option<JobStatus>,
    /// In this stream only.
    pub stream: Option<StreamName>,
    /// Of this producer only.
    pub producer: Option<String>,
}

/// Where the next page starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cursor {
    /// Below this job, newest first.
    Below(JobId),
    /// After this place among the ready jobs.
    Ready {
        /// The stream.
        stream: StreamName,
        /// The place in it.
        seq: i64,
    },
    /// After this job among the scheduled ones; `None` is their start.
    Scheduled(Option<JobId>),
}

/// One page of a list.
#[derive(Clone, Debug)]
pub struct Page<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// Where the next page starts; `None` at the end. A page may be short and still have a next one.
    pub next: Option<Cursor>,
}

/// What became of a wish to cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelAnswer {
    /// It has ended now.
    Cancelled,
    /// The holder is told with its next heartbeat.
    Requested,
    /// It had ended before.
    Ended(JobStatus),
    /// There is no such job.
    Unknown,
}

/// What became of a wish to start over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAnswer {
    /// It waits again, counters from zero.
    Requeued,
    /// Only DEAD and CANCELLED jobs can start over.
    NotEnded(JobStatus),
    /// Its unique key is taken by another unfinished job.
    KeyTaken,
    /// There is no such job.
    Unknown,
}

/// Which dead letters are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadFilter {
    /// These jobs only; empty is all.
    pub job_ids: Vec<JobId>,
    /// Of this stream only.
    pub stream: Option<StreamName>,
    /// With this error code only.
    pub code: Option<String>,
    /// Buried before this instant only.
    pub before: Option<Timestamp>,
}

/// A DEAD job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The job.
    pub job_id: JobId,
    /// Where it came from.
    pub stream: StreamName,
    /// When it was given up.
    pub buried_at: Timestamp,
    /// Why, in the engine's words.
    pub reason: String,
    /// Why, in the last error's code.
    pub code: String,
}

/// The counts of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamCounts {
    /// Claimable now.
    pub ready: i64,
    /// Waiting for their time.
    pub scheduled: i64,
    /// Under a lease.
    pub running: i64,
    /// Ended so, ever.
    pub succeeded: i64,
    /// In the dead-letter queue.
    pub dead: i64,
    /// Ended so, ever, and not started over.
    pub cancelled: i64,
}

/// One stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamView {
    /// Its name.
    pub name: StreamName,
    /// Its counts.
    pub counts: StreamCounts,
    /// Since when its oldest claimable job has waited.
    pub oldest_ready_at: Option<Timestamp>,
    /// Whether nobody may claim from it.
    pub paused: bool,
}

/// A token as it is kept: never the secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRow {
    /// Its public part.
    pub token_id: String,
    /// What a person calls it.
    pub name: String,
    /// `operator`, `worker`, `producer` or `viewer`.
    pub role: String,
    /// The streams a worker token is limited to, as patterns; empty is all.
    pub streams: Vec<String>,
    /// SHA-256 of the secret.
    pub secret_hash: [u8; 32],
    /// When it was made.
    pub created_at: Timestamp,
    /// From when on it is refused.
    pub expires_at: Option<Timestamp>,
    /// When it was taken back.
    pub revoked_at: Option<Timestamp>,
}

/// What one pass over due work did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pass {
    /// Rows it moved.
    pub moved: usize,
    /// Whether it stopped at its limit: there may be more.
    pub full: bool,
}

/// A durable store of jobs. Every `Ok` is durable (invariant 19); every verb is one transaction per item or per call.
///
/// The items of one call are as calls that arrive at once: each is answered by itself and in its place, and no order of
/// carrying them out is promised.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Stores jobs; one answer each, in order.
    async fn enqueue(&self, jobs: Vec<NewJob>) -> StoreResult<Vec<Enqueued>>;
    /// Takes up to `ask.max` jobs under fresh leases, streams in the order given, oldest first. Never waits for a job.
    /// If the returned future is dropped before it is ready, whatever it had claimed goes back.
    async fn claim(&self, ask: Ask) -> StoreResult<Vec<Claimed>>;
    /// Renews leases.
    async fn heartbeat(&self, beats: Vec<Beat>) -> StoreResult<Vec<BeatAnswer>>;
    /// Keeps how far holders say they are. `false`: it would go back, or the caller is not the holder.
    async fn progress(&self, items: Vec<(Beat, Progress)>) -> StoreResult<Vec<bool>>;
    /// Ends attempts with results.
    async fn complete(&self, items: Vec<Completion>) -> StoreResult<Vec<Answer>>;
    /// Ends attempts with errors.
    async fn fail(&self, items: Vec<Failure>) -> StoreResult<Vec<Answer>>;
    /// Hands jobs back unfinished.
    async fn release(&self, items: Vec<Proof>) -> StoreResult<Vec<Answer>>;

    /// Ends a job that waits; marks one that runs; ends that too if `force`.
    async fn cancel(&self, job_id: JobId, force: bool) -> StoreResult<CancelAnswer>;
    /// Starts a DEAD or CANCELLED job over.
    async fn retry(&self, job_id: JobId) -> StoreResult<RetryAnswer>;
    /// Starts up to `limit` dead jobs over, oldest id first. A job whose unique key is taken stays.
    async fn redrive(&self, filter: DeadFilter, limit: usize) -> StoreResult<Pass>;
    /// Deletes up to `limit` dead jobs with their history.
    async fn purge(&self, filter: DeadFilter, limit: usize) -> StoreResult<Pass>;
    /// How many dead jobs match.
    async fn count_dead(&self, filter: DeadFilter) -> StoreResult<u64>;
    /// Dead jobs, newest id first.
    async fn dead_letters(
        &self,
        filter: DeadFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> StoreResult<Page<DeadLetter>>;

    /// One job with all its attempts.
    async fn job(&self, job_id: JobId) -> StoreResult<Option<JobView>>;
    /// A page of jobs: newest first; QUEUED ones in the order in which they would be claimed, then the scheduled ones.
    async fn jobs(
        &self,
        filter: JobFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> StoreResult<Page<JobBrief>>;
    /// All streams that were ever used.
    async fn streams(&self) -> StoreResult<Vec<StreamView>>;
    /// One stream; `None` if it was never used.
    async fn stream(&self, name: StreamName) -> StoreResult<Option<StreamView>>;
    /// Stops or allows claims from a stream; `false` if it was never used.
    async fn set_paused(&self, name: StreamName, paused: bool) -> StoreResult<bool>;
    /// Which of these streams have a job that can be claimed.
    async fn claimable(&self, streams: Vec<StreamName>) -> StoreResult<Vec<StreamName>>;

    /// Settles up to `limit` expired leases.
    async fn reap(&self, limit: usize) -> StoreResult<Pass>;
    /// Makes up to `limit` scheduled jobs whose time has come ready.
    async fn promote(&self, limit: usize) -> StoreResult<Pass>;
    /// Enqueues up to `limit` jobs that other programs left in the inbox, where the backend has one.
    async fn empty_inbox(&self, _limit: usize) -> StoreResult<Pass> {
        Ok(Pass::default())
    }
    /// When the next scheduled job is due.
    async fn next_due(&self) -> StoreResult<Option<Timestamp>>;
    /// After a restore: raises every version and hands back every leased job, so that no token or version given out since
    /// the backup can match. Answers how many leases it freed. Doing it again does no harm.
    async fn fence(&self) -> StoreResult<usize>;
    /// Deletes up to `limit` jobs that finished longer ago than `age`, with their attempts.
    async fn retain(&self, age: Duration, limit: usize) -> StoreResult<Pass>;
    /// Housekeeping of the backend's own: keeps the clock, folds counters.
    async fn tidy(&self) -> StoreResult<()>;

    /// All tokens.
    async fn tokens(&self) -> StoreResult<Vec<TokenRow>>;
    /// Stores a token; `false` if its id is there already.
    async fn add_token(&self, token: TokenRow) -> StoreResult<bool>;
    /// Takes a token back; `false` if it is unknown.
    async fn revoke_token(&self, token_id: String) -> StoreResult<bool>;

    /// The instant by the clock that decides expiry.
    async fn now(&self) -> StoreResult<Timestamp>;
    /// `sqlite` or `postgres`.
    fn backend(&self) -> &'static str;
    /// Ends background work and connections; what was acknowledged stays.
    async fn close(&self);
}

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
//! | `processes` | a process that serves this database (SQLite has one at most, and keeps it in memory) | attend | leave; any attend an hour later |
//!
//! So a job is RUNNING if it has a lease, QUEUED if it is ready or scheduled, and finished otherwise: exactly one of them,
//! because each verb moves it in one transaction.

use crate::error::{StoreError, StoreResult};
use crate::substrate::Work;
use async_trait::async_trait;
use fernery_core::artifact::ClaimRecord;
use fernery_core::report::Answer;
use fernery_core::retry::RetryPolicy;
use fernery_core::{JobId, Progress, StreamName, Timestamp, limits};
use std::time::Duration;
use uuid::Uuid;

pub mod endings;
mod holder;
mod new_job;
mod operator;
pub mod postgres;
mod process;
mod reaping;
pub mod sqlite;
mod view;

pub use holder::{Ask, Beat, BeatAnswer, Cause, Claimed, Completion, Failure, Proof};
pub use new_job::{Enqueued, NewJob, Start, Unfit};
pub use operator::{CancelAnswer, DeadFilter, DeadLetter, RetryAnswer, TokenRow};
pub use process::{LivingProcess, Process};
pub use view::{AttemptView, Cursor, JobBrief, JobFilter, JobView, Page, StreamCounts, StreamView};

/// What every store is told when it is opened.
#[derive(Clone, Debug)]
pub struct StoreSettings {
    /// How long a claim or a heartbeat holds.
    pub lease_ttl: Duration,
    /// How long a failed job waits.
    pub retry: RetryPolicy,
    /// Ids and randomness.
    pub chance: crate::door::Chance,
    /// Who carries messages, if anybody: PostgreSQL only.
    pub transport: Option<std::sync::Arc<dyn crate::transport::Transport>>,
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self {
            lease_ttl: limits::LEASE_TTL_DEFAULT,
            retry: RetryPolicy::default(),
            chance: crate::door::Chance::default(),
            transport: None,
        }
    }
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
    /// How far the holders of these jobs say they are, in order; `None` where nobody holds one, or its holder did not say.
    async fn progress_of(&self, jobs: Vec<JobId>) -> StoreResult<Vec<Option<Progress>>>;
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

    /// Says that a process is there. Removes what was left by those that have not said so for
    /// [`PROCESS_FORGOTTEN`](limits::PROCESS_FORGOTTEN).
    async fn attend(&self, process: Process) -> StoreResult<()>;
    /// Says that a process is there no more. Doing it again does no harm.
    async fn leave(&self, process_id: Uuid) -> StoreResult<()>;
    /// The processes that said within [`PROCESS_ALIVE`](limits::PROCESS_ALIVE) that they are there, oldest first.
    async fn processes(&self) -> StoreResult<Vec<LivingProcess>>;

    /// Runs work of the pipeline in one transaction. See [`Work`] for what it must bear.
    async fn transact(&self, _work: Work) -> StoreResult<()> {
        Err(StoreError::Refused("this store has no substrate".into()))
    }
    /// As `transact`, of work on one objective and what hangs on it, which may share its transaction with others: it fails
    /// alone, and locks nothing of another objective.
    async fn act(&self, _subject: String, work: Work) -> StoreResult<()> {
        self.transact(work).await
    }
    /// Runs work of the pipeline that only reads, in one snapshot.
    async fn consult(&self, _work: Work) -> StoreResult<()> {
        Err(StoreError::Refused("this store has no substrate".into()))
    }

    /// The leases under which workorders run, as claim records, oldest job first.
    async fn workorder_leases(&self, _limit: usize) -> StoreResult<Vec<ClaimRecord>> {
        Ok(Vec::new())
    }

    /// The instant by the clock that decides expiry.
    async fn now(&self) -> StoreResult<Timestamp>;
    /// `sqlite` or `postgres`.
    fn backend(&self) -> &'static str;
    /// Ends background work and connections; what was acknowledged stays.
    async fn close(&self);
}

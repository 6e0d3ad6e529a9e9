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
//! | `inbox_refused` | a row of `inbox` that became no job, and why (PostgreSQL) | the engine | a person deletes it |
//! | `outbox` | messages to be sent for jobs that became claimable (PostgreSQL with Redis) | whatever makes jobs claimable | the relay, once they were sent; when it is too long, for a row of `reemissions` |
//! | `relayed` | the newest message of a stream (PostgreSQL with Redis) | the relay | when its stream is deleted |
//! | `reemissions` | a stream whose waiting jobs get messages again (PostgreSQL with Redis) | whoever notices that messages are lost | the relay, once they were sent |
//! | `streams` | counts, the pause flag and `redact`; who used it first and when it was used last | every batch; opening it; an operator | when it was empty for long, neither paused nor redacted |
//! | `stream_deltas` | a change of a stream's counts (PostgreSQL: two batches never wait for one row) | every batch | folded into `streams` |
//! | `clock` | the newest instant that was current while somebody served this database (PostgreSQL; one row) | every process, again and again | never |
//! | `marks` | the same, and the next place in the order of jobs (SQLite; one row each) | every batch | never |
//! | `tokens` | a caller's role and the hash of its secret | an operator; a server for its own files | never |
//! | `sign_ins` | a one-time link or a session of the pages, for a token | sign-in | spending the link, signing out; the next sign-in after it expired |
//! | `stream_stats` | what happened in a stream within a span of time | every process, every few seconds | when it is older than its range |
//! | `processes` | a process that serves this database (SQLite has one at most, and keeps it in memory) | attend | leave; any attend an hour later |
//!
//! So a job is RUNNING if it has a lease, QUEUED if it is ready or scheduled, and finished otherwise: exactly one of them,
//! because each verb moves it in one transaction.

use crate::clock_step::Doubt;
use crate::error::{StoreError, StoreResult};
use crate::pipeline::bulk::{ActInHand, BulkStep};
use crate::pipeline::{Row, Work};
use async_trait::async_trait;
use fernery_core::artifact::ClaimRecord;
use fernery_core::job::report::Answer;
use fernery_core::job::retry::RetryPolicy;
use fernery_core::{Holding, JobId, Progress, StreamName, Timestamp, limits};
use std::time::Duration;
use uuid::Uuid;

pub mod endings;
mod expiry;
mod holder;
mod new_job;
mod operator;
pub mod postgres;
mod process;
mod reaping;
mod sign_ins;
pub mod sqlite;
mod stats;
mod tokens;
mod view;

pub use holder::{Ask, Beat, BeatAnswer, Cause, Claimed, Completion, Failure, Proof};
pub use new_job::{Enqueued, NewJob, Start, Unfit};
pub use operator::{CancelAnswer, DeadFilter, DeadGroup, DeadGroups, DeadLetter, RetryAnswer};
pub use process::{LivingProcess, Process};
pub use sign_ins::{BrowserSession, NewSignIn, SignIns};
pub use stats::{Stats, StatsBatch, StreamHistory, UnwrittenStats};
pub use tokens::{TokenRow, Tokens};
pub use view::{
    AttemptView, Cursor, Holder, IdsFound, IdsLike, JobBrief, JobFilter, JobView, Page, StreamChange,
    StreamCounts, StreamLimits, StreamView, StreamsOpened,
};

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

impl Pass {
    /// Says in the log how many leases were reaped.
    pub(crate) fn tell_reaped(self) {
        if self.moved > 0 {
            tracing::info!(leases = self.moved, "reaped expired leases");
        }
    }
}

/// How long what has ended is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Jobs that succeeded or were cancelled.
    pub finished: Duration,
    /// Dead letters; `None` keeps them until somebody redrives or purges them.
    pub dead: Option<Duration>,
}

impl Retention {
    /// The same for both.
    pub fn all(age: Duration) -> Self {
        Self { finished: age, dead: Some(age) }
    }
}

/// A durable store of jobs. Every `Ok` is durable (invariant 19); every verb is one transaction per item or per call.
///
/// Its verbs lie in one trait for each file that both backends have: [`Enqueue`] is implemented in `enqueue.rs`, [`Claim`] in
/// `claim.rs`, and so on; [`Transactions`] in `pipeline.rs`. [`Tokens`], [`SignIns`] and [`Stats`] are written once
/// for both.
#[async_trait]
pub trait Store:
    Enqueue
    + Claim
    + Report
    + Reap
    + Operate
    + Read
    + Streams
    + Maintain
    + Tokens
    + SignIns
    + Stats
    + Processes
    + Transactions
    + Clock
    + Send
    + Sync
    + 'static
{
    /// `sqlite` or `postgres`.
    fn backend(&self) -> &'static str;
    /// Ends background work and connections; what was acknowledged stays.
    async fn close(&self);
}

/// Jobs come in. The items of one call are as calls that arrive at once: each is answered by itself and in its place, and no
/// order of carrying them out is promised. That holds for [`Report`] as well.
#[async_trait]
pub trait Enqueue: Send + Sync {
    /// Stores jobs; one answer each, in order.
    async fn enqueue(&self, jobs: Vec<NewJob>) -> StoreResult<Vec<Enqueued>>;
}

/// Jobs are leased to workers.
#[async_trait]
pub trait Claim: Send + Sync {
    /// Takes up to `ask.max` jobs under fresh leases, streams in the order given, oldest first. Never waits for a job.
    /// Expired leases of these streams are settled before, up to [`REAP_BATCH`](limits::REAP_BATCH), as [`Reap::reap`]
    /// does it: whatever that makes ready can be claimed by this very call.
    /// If the returned future is dropped before it is ready, whatever it had claimed goes back.
    async fn claim(&self, ask: Ask) -> StoreResult<Vec<Claimed>>;
}

/// What a holder says about its job.
#[async_trait]
pub trait Report: Send + Sync {
    /// Renews leases.
    async fn heartbeat(&self, beats: Vec<Beat>) -> StoreResult<Vec<BeatAnswer>>;
    /// Stores the progress of holders. `false`: the progress would decrease, or the caller is not the holder.
    async fn progress(&self, items: Vec<(Beat, Progress)>) -> StoreResult<Vec<bool>>;
    /// Ends attempts with results.
    async fn complete(&self, items: Vec<Completion>) -> StoreResult<Vec<Answer>>;
    /// Ends attempts with errors.
    async fn fail(&self, items: Vec<Failure>) -> StoreResult<Vec<Answer>>;
    /// Hands jobs back unfinished.
    async fn release(&self, items: Vec<Proof>) -> StoreResult<Vec<Answer>>;
}

/// What operators do to jobs.
#[async_trait]
pub trait Operate: Send + Sync {
    /// Cancels a job: a queued one ends; a running one is marked, or ends too if `force`.
    async fn cancel(&self, job_id: JobId, force: bool) -> StoreResult<CancelAnswer>;
    /// Starts a DEAD or CANCELLED job over.
    async fn retry(&self, job_id: JobId) -> StoreResult<RetryAnswer>;
    /// Starts up to `limit` dead jobs over, oldest id first. A job whose unique key is taken stays.
    async fn redrive(&self, filter: DeadFilter, limit: usize) -> StoreResult<Pass>;
    /// Deletes up to `limit` dead jobs with their history.
    async fn purge(&self, filter: DeadFilter, limit: usize) -> StoreResult<Pass>;
    /// Takes the next step of the bulk act that has waited longest, as [`next_step`](crate::pipeline::bulk::next_step) has it.
    async fn bulk_step(&self, _taken: ActInHand) -> StoreResult<Option<BulkStep>> {
        Err(StoreError::Refused("this store has no pipeline".into()))
    }
}

/// What can be read of jobs. Each call is one snapshot.
#[async_trait]
pub trait Read: Send + Sync {
    /// One job with all its attempts.
    async fn job(&self, job_id: JobId) -> StoreResult<Option<JobView>>;
    /// A page of jobs: newest first; QUEUED ones in the order in which they would be claimed, then the scheduled ones.
    async fn jobs(
        &self,
        filter: JobFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> StoreResult<Page<JobBrief>>;
    /// Up to `limit` ids of jobs that a part of an id means. Looks at no more than the part says.
    async fn job_ids(&self, part: IdsLike, limit: usize) -> StoreResult<IdsFound>;
    /// Who holds these jobs, in order; `None` where nobody holds one.
    async fn holders_of(&self, jobs: Vec<JobId>) -> StoreResult<Vec<Option<Holder>>>;
    /// How many dead jobs match.
    async fn count_dead(&self, filter: DeadFilter) -> StoreResult<u64>;
    /// Dead jobs, newest death first.
    async fn dead_letters(
        &self,
        filter: DeadFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> StoreResult<Page<DeadLetter>>;
    /// Up to `limit` groups of dead jobs, of so many newest deaths: of all, or of one stream.
    async fn dead_groups(
        &self,
        stream: Option<StreamName>,
        newest: usize,
        limit: usize,
    ) -> StoreResult<DeadGroups>;
    /// Up to `limit` leases, oldest job first, after the one that is given.
    async fn leases(&self, after: Option<JobId>, limit: usize) -> StoreResult<Vec<Holding>>;
    /// When the next scheduled job is due.
    async fn next_due(&self) -> StoreResult<Option<Timestamp>>;
    /// The leases under which workorders run, as claim records, oldest job first.
    async fn workorder_leases(&self, _limit: usize) -> StoreResult<Vec<ClaimRecord>> {
        Ok(Vec::new())
    }
}

/// Streams: their counts, their pauses, how many there may be.
#[async_trait]
pub trait Streams: Send + Sync {
    /// Up to `limit` streams in the order of their names, after the one that is given.
    async fn streams(&self, after: Option<StreamName>, limit: usize) -> StoreResult<Vec<StreamView>>;
    /// How many streams come after this one (all, if none is given), and the sums of their counts.
    async fn streams_beyond(&self, after: Option<StreamName>) -> StoreResult<(u64, StreamCounts)>;
    /// One stream; `None` if it was never used, or is forgotten.
    async fn stream(&self, name: StreamName) -> StoreResult<Option<StreamView>>;
    /// Opens those of these streams that are new, for the token `by`: all of them, or none where a limit would be passed.
    /// Opening again does no harm. Jobs can be enqueued without it: it is for callers whose streams are counted.
    async fn open_streams(
        &self,
        _names: Vec<StreamName>,
        _by: Option<String>,
        _limits: StreamLimits,
    ) -> StoreResult<StreamsOpened> {
        Ok(StreamsOpened::Yes)
    }
    /// Forgets up to `limit` streams that are empty, not paused, not redacted, and unchanged for `age`.
    async fn forget_streams(&self, _age: Duration, _limit: usize) -> StoreResult<Pass> {
        Ok(Pass::default())
    }
    /// Stops or allows claims from a stream; `false` if it was never used. Each backend has its own verb: SQLite's writer
    /// keeps the paused streams in memory, PostgreSQL finds new streams in counts that are not folded yet.
    async fn set_paused(&self, name: StreamName, paused: bool) -> StoreResult<bool>;
    /// Those of these streams whose jobs hold what viewers do not see.
    async fn redacting(&self, streams: Vec<StreamName>) -> StoreResult<Vec<StreamName>>;
    /// Which of these streams have a job that can be claimed.
    async fn claimable(&self, streams: Vec<StreamName>) -> StoreResult<Vec<StreamName>>;
}

/// Leases that ran out.
#[async_trait]
pub trait Reap: Send + Sync {
    /// Settles up to `limit` expired leases.
    async fn reap(&self, limit: usize) -> StoreResult<Pass>;
    /// How long until the first lease may run out, as far as this process knows. Asks nobody; `None` if it does not know.
    fn next_expiry(&self) -> Option<Duration> {
        None
    }
}

/// What the other loops of the engine do.
#[async_trait]
pub trait Maintain: Send + Sync {
    /// Makes up to `limit` scheduled jobs whose time has come ready.
    async fn promote(&self, limit: usize) -> StoreResult<Pass>;
    /// Enqueues up to `limit` jobs that other programs left in the inbox, where the backend has one.
    async fn drain_intake(&self, _limit: usize) -> StoreResult<Pass> {
        Ok(Pass::default())
    }
    /// After a restore: raises every version and hands back every leased job, so that no token or version given out since
    /// the backup can match. Answers how many leases it freed. Doing it again does no harm.
    async fn fence(&self) -> StoreResult<usize>;
    /// Deletes up to `limit` jobs that ended longer ago than they are kept, with their attempts.
    async fn retain(&self, retention: Retention, limit: usize) -> StoreResult<Pass>;
    /// Housekeeping of the backend's own: keeps the clock, folds counters.
    async fn tidy(&self) -> StoreResult<()>;
}

/// The processes that serve this database. Each backend has its own verbs: on PostgreSQL the database's clock decides who is
/// alive, on SQLite there is no table.
#[async_trait]
pub trait Processes: Send + Sync {
    /// Registers a process, or renews its entry. Removes entries that were not renewed for
    /// [`PROCESS_FORGOTTEN`](limits::PROCESS_FORGOTTEN).
    async fn attend(&self, process: Process) -> StoreResult<()>;
    /// Deregisters a process. Doing it again does no harm.
    async fn leave(&self, process_id: Uuid) -> StoreResult<()>;
    /// The processes that renewed their entry within [`PROCESS_ALIVE`](limits::PROCESS_ALIVE), oldest first.
    async fn processes(&self) -> StoreResult<Vec<LivingProcess>>;
}

/// Work of the pipeline, in the same database as its jobs.
#[async_trait]
pub trait Transactions: Send + Sync {
    /// Runs work of the pipeline in one transaction. See [`Work`] for what it must bear.
    async fn transact(&self, _work: Work) -> StoreResult<()> {
        Err(StoreError::Refused("this store has no pipeline".into()))
    }
    /// Like `transact`, for work on one objective. It may share its transaction with the work on other objectives; a
    /// failure rolls back only this call. It must not lock rows of another objective.
    async fn act(&self, _subject: String, work: Work) -> StoreResult<()> {
        self.transact(work).await
    }
    /// Runs work of the pipeline that only reads, in one snapshot.
    async fn read(&self, _work: Work) -> StoreResult<()> {
        Err(StoreError::Refused("this store has no pipeline".into()))
    }
    /// Runs one statement that only reads and has no parameters. On PostgreSQL it is one round trip where `read` takes
    /// three.
    async fn select(&self, _statement: &'static str) -> StoreResult<Vec<Row>> {
        Err(StoreError::Refused("this store has no pipeline".into()))
    }
}

/// The clock that decides, and whether it can be believed.
#[async_trait]
pub trait Clock: Send + Sync {
    /// The instant by the clock that decides expiry.
    async fn now(&self) -> StoreResult<Timestamp>;
    /// As [`Clock::now`], as near as this process knows without asking.
    fn lease_time(&self) -> Timestamp {
        crate::door::wall_clock()
    }
    /// The instant by the calendar, which decides when a scheduled job is due.
    async fn calendar(&self) -> StoreResult<Timestamp> {
        self.now().await
    }
    /// A test write: answers when it is durable, and so shows whether writes succeed.
    async fn try_write(&self) -> StoreResult<()> {
        Ok(())
    }
    /// Why the clock may be wrong, if it may: then nothing may be deleted because of its age.
    async fn clock_doubt(&self) -> StoreResult<Option<Doubt>> {
        Ok(None)
    }
    /// An operator says that the clock is right.
    async fn confirm_clock(&self) -> StoreResult<()> {
        Ok(())
    }
}

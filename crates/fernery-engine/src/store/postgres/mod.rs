//! PostgreSQL: one server for many processes.
//!
//! The database is the truth and its clock decides. The hot verbs are one statement each, so one round trip and one
//! commit; calls that arrive while one is in flight share the next (`grouper`). Everything else loads under lock, lets
//! `fernery-core` decide, and applies, in one short transaction.
//!
//! A connection that is lost while a commit is on its way leaves a question. Calls with an id of their own (enqueue,
//! claim, heartbeat, complete, fail, release) answer it themselves, by reading back under that id or by doing again what
//! changes nothing the second time; the others say that it is not known.

mod after;
mod claim;
mod columns;
mod enqueue;
mod fence;
mod grouper;
mod heads;
mod healing;
pub mod health;
mod herald;
mod hints;
mod inbox;
mod keep;
mod losses;
mod migrate;
mod operate;
mod pool;
mod post;
mod processes;
mod read;
mod report;
mod settle;
mod spare;
mod substrate;
mod sweep;
mod target;
mod tls;
mod trouble;

use self::claim::Claim;
use self::enqueue::{Enqueue, Entry};
use self::grouper::Grouper;
use self::heads::Heads;
use self::herald::Herald;
use self::pool::Pool;
use self::post::Post;
use self::report::{Complete, Heartbeat, Settle};
use self::settle::Which;
use self::substrate::{Act, Acts};
use self::target::Target;
use self::trouble::Trouble;
use crate::error::StoreResult;
use crate::signals::Signals;
use crate::store::{
    Ask, Beat, BeatAnswer, CancelAnswer, Claimed, Completion, Cursor, DeadFilter, DeadLetter, Enqueued,
    Failure, JobBrief, JobFilter, JobView, LivingProcess, NewJob, Page, Pass, Process, Proof, RetryAnswer,
    Store, StoreSettings, StreamView, TokenRow,
};
use crate::substrate::Work;
use async_trait::async_trait;
use fernery_core::artifact::ClaimRecord;
use fernery_core::report::Answer;
use fernery_core::{JobId, Progress, StreamName, Timestamp};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use uuid::Uuid;

/// A store in a PostgreSQL database, in its schema `fernery`.
pub struct PostgresStore {
    shared: Arc<Shared>,
    enqueues: Grouper<Enqueue>,
    claims: Grouper<Claim>,
    heartbeats: Grouper<Heartbeat>,
    completes: Grouper<Complete>,
    fails: Grouper<Settle<Failure>>,
    releases: Grouper<Settle<Proof>>,
    acts: Grouper<Acts>,
    taking_back: Mutex<Option<JoinHandle<()>>>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

/// How long closing waits for claims that nobody took to be put back; what is not back by then runs out.
const CLOSE_WAIT: Duration = Duration::from_secs(2);

/// What all verbs need.
struct Shared {
    pool: Pool,
    settings: StoreSettings,
    signals: Arc<Signals>,
    herald: Herald,
    heads: Heads,
    /// Where messages tell of jobs.
    post: Option<Post>,
    /// Nothing more will be claimed.
    closing: Notify,
}

impl PostgresStore {
    /// Connects, and makes or migrates the schema. A database of a newer version is refused.
    pub async fn open(url: &str, settings: StoreSettings, signals: Arc<Signals>) -> StoreResult<Self> {
        let mut target = Target::parse(url)?;
        target.emits = settings.transport.is_some();
        // Once outside the pool, where a refusal is told from a server that is away.
        drop(target.connect().await.map_err(Trouble::into_error)?);
        let pool = Pool::new(target);
        let session = pool.session().await.map_err(Trouble::into_error)?;
        migrate::migrate(&session).await?;
        drop(session);
        let (herald, heads) = (Herald::new(), Heads::default());
        let post = settings.transport.clone().map(Post::new);
        let shared =
            Arc::new(Shared { pool, settings, signals, herald, heads, post, closing: Notify::new() });
        let (undelivered, taken_back) = mpsc::unbounded_channel();
        let taking_back = tokio::spawn(claim::take_back(shared.clone(), taken_back));
        let mut tasks =
            vec![tokio::spawn(herald::send(shared.clone())), tokio::spawn(herald::listen(shared.clone()))];
        if shared.post.is_some() {
            tasks.push(tokio::spawn(post::relay(shared.clone())));
            tasks.push(tokio::spawn(sweep::sweep(shared.clone())));
        }
        Ok(Self {
            enqueues: Grouper::new(Enqueue(shared.clone())),
            claims: Grouper::new(Claim { shared: shared.clone(), undelivered }),
            heartbeats: Grouper::new(Heartbeat(shared.clone())),
            completes: Grouper::new(Complete(shared.clone())),
            fails: Grouper::new(Settle::new(shared.clone())),
            releases: Grouper::new(Settle::new(shared.clone())),
            acts: Grouper::new(Acts(shared.clone())),
            shared,
            taking_back: Mutex::new(Some(taking_back)),
            tasks: Mutex::new(tasks),
        })
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn enqueue(&self, jobs: Vec<NewJob>) -> StoreResult<Vec<Enqueued>> {
        let chance = self.shared.settings.chance;
        self.enqueues.call(jobs.into_iter().map(|job| Entry::new(job, chance)).collect()).await
    }

    async fn claim(&self, ask: Ask) -> StoreResult<Vec<Claimed>> {
        Ok(self.claims.call(ask).await?.accept())
    }

    async fn heartbeat(&self, beats: Vec<Beat>) -> StoreResult<Vec<BeatAnswer>> {
        self.heartbeats.call(beats).await
    }

    async fn progress(&self, items: Vec<(Beat, Progress)>) -> StoreResult<Vec<bool>> {
        self.keep_progress(items).await
    }

    async fn progress_of(&self, jobs: Vec<JobId>) -> StoreResult<Vec<Option<Progress>>> {
        self.progress_seen(&jobs).await
    }

    async fn complete(&self, items: Vec<Completion>) -> StoreResult<Vec<Answer>> {
        self.completes.call(items).await
    }

    async fn fail(&self, items: Vec<Failure>) -> StoreResult<Vec<Answer>> {
        self.fails.call(items).await
    }

    async fn release(&self, items: Vec<Proof>) -> StoreResult<Vec<Answer>> {
        self.releases.call(items).await
    }

    async fn cancel(&self, job_id: JobId, force: bool) -> StoreResult<CancelAnswer> {
        self.cancel_job(job_id, force).await
    }

    async fn retry(&self, job_id: JobId) -> StoreResult<RetryAnswer> {
        self.retry_job(job_id).await
    }

    async fn redrive(&self, filter: DeadFilter, limit: usize) -> StoreResult<Pass> {
        self.redrive_dead(&filter, limit).await
    }

    async fn purge(&self, filter: DeadFilter, limit: usize) -> StoreResult<Pass> {
        self.purge_dead(&filter, limit).await
    }

    async fn count_dead(&self, filter: DeadFilter) -> StoreResult<u64> {
        self.count_dead_letters(&filter).await
    }

    async fn dead_letters(
        &self,
        filter: DeadFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> StoreResult<Page<DeadLetter>> {
        self.dead_letters_page(&filter, after, limit).await
    }

    async fn job(&self, job_id: JobId) -> StoreResult<Option<JobView>> {
        self.job_view(job_id).await
    }

    async fn jobs(
        &self,
        filter: JobFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> StoreResult<Page<JobBrief>> {
        self.jobs_page(&filter, after, limit).await
    }

    async fn streams(&self) -> StoreResult<Vec<StreamView>> {
        self.stream_views(None).await
    }

    async fn stream(&self, name: StreamName) -> StoreResult<Option<StreamView>> {
        Ok(self.stream_views(Some(&name)).await?.pop())
    }

    async fn set_paused(&self, name: StreamName, paused: bool) -> StoreResult<bool> {
        self.pause_stream(name, paused).await
    }

    async fn claimable(&self, streams: Vec<StreamName>) -> StoreResult<Vec<StreamName>> {
        self.claimable_streams(streams).await
    }

    async fn reap(&self, limit: usize) -> StoreResult<Pass> {
        self.end_unreported(Which::Expired, limit).await
    }

    async fn promote(&self, limit: usize) -> StoreResult<Pass> {
        self.promote_due(limit).await
    }

    async fn fence(&self) -> StoreResult<usize> {
        self.fence_all().await
    }

    async fn empty_inbox(&self, limit: usize) -> StoreResult<Pass> {
        self.empty_inbox_once(limit).await
    }

    async fn next_due(&self) -> StoreResult<Option<Timestamp>> {
        self.next_due_at().await
    }

    async fn retain(&self, age: Duration, limit: usize) -> StoreResult<Pass> {
        self.retain_recent(age, limit).await
    }

    async fn tidy(&self) -> StoreResult<()> {
        self.fold_counts().await
    }

    async fn tokens(&self) -> StoreResult<Vec<TokenRow>> {
        self.all_tokens().await
    }

    async fn add_token(&self, token: TokenRow) -> StoreResult<bool> {
        self.store_token(&token).await
    }

    async fn revoke_token(&self, token_id: String) -> StoreResult<bool> {
        self.take_token_back(&token_id).await
    }

    async fn attend(&self, process: Process) -> StoreResult<()> {
        self.attend_process(&process).await
    }

    async fn leave(&self, process_id: Uuid) -> StoreResult<()> {
        self.leave_process(process_id).await
    }

    async fn processes(&self) -> StoreResult<Vec<LivingProcess>> {
        self.living_processes().await
    }

    async fn transact(&self, work: Work) -> StoreResult<()> {
        self.transact_work("BEGIN", work).await
    }

    async fn act(&self, subject: String, work: Work) -> StoreResult<()> {
        self.acts.call(Act::new(subject, work)).await
    }

    async fn consult(&self, work: Work) -> StoreResult<()> {
        self.transact_work("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", work).await
    }

    async fn workorder_leases(&self, limit: usize) -> StoreResult<Vec<ClaimRecord>> {
        self.leases_of_workorders(limit).await
    }

    async fn now(&self) -> StoreResult<Timestamp> {
        self.database_now().await
    }

    fn backend(&self) -> &'static str {
        "postgres"
    }

    async fn close(&self) {
        let taking_back = self.taking_back.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut task) = taking_back {
            let put_back = async {
                self.claims.rest().await;
                self.shared.closing.notify_one();
                let _ = (&mut task).await;
            };
            if tokio::time::timeout(CLOSE_WAIT, put_back).await.is_err() {
                task.abort();
            }
        }
        let tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        for task in tasks {
            task.abort();
        }
        self.shared.pool.close();
    }
}

//! SQLite: one file, one server process, one writer thread, readers apart.
//!
//! The file is the truth. `synchronous=FULL` in WAL mode: what was answered has been synced.

mod attendance;
pub mod backup;
mod end;
mod enter;
pub mod health;
mod hold;
mod open;
mod operate;
mod read;
mod rows;
mod substrate;
mod write;
mod writer;

use self::attendance::Attendance;
use self::end::{LeasePlace, Which};
use self::write::Tx;
use self::writer::{Lane, Writer};
use crate::door::LeaseClock;
use crate::error::{StoreError, StoreResult};
use crate::signals::Signals;
use crate::store::reaping::{Step, go_through};
use crate::store::{
    Ask, Beat, BeatAnswer, CancelAnswer, Claimed, Completion, Cursor, DeadFilter, DeadLetter, Enqueued,
    Failure, JobBrief, JobFilter, JobView, LivingProcess, NewJob, Page, Pass, Process, Proof, RetryAnswer,
    Store, StoreSettings, StreamView, TokenRow,
};
use crate::substrate::Work;
use async_trait::async_trait;
use fernery_core::artifact::ClaimRecord;
use fernery_core::report::Answer;
use fernery_core::{JobId, Progress, StreamName, Timestamp, limits};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::Semaphore;
use uuid::Uuid;

/// A store in one SQLite file.
pub struct SqliteStore {
    path: PathBuf,
    /// `None` once it is closed.
    writer: Mutex<Option<Writer>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    readers: Arc<Mutex<Vec<Connection>>>,
    reading: Arc<Semaphore>,
    clock: LeaseClock,
    /// Where retention goes on.
    retire_from: Arc<Mutex<i64>>,
    /// Whether anything was written since the clock was last kept.
    wrote: AtomicBool,
    attendance: Mutex<Attendance>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SqliteStore {
    /// Opens or makes the file. A second server on the same file is refused with the holder's process id.
    pub fn open(
        path: &Path,
        settings: StoreSettings,
        clock: LeaseClock,
        signals: Arc<Signals>,
    ) -> StoreResult<Self> {
        open::refuse_network_file(path)?;
        let held = open::lock(path)?;
        let db = open::writer(path)?;
        open::set_clock(&db, &clock)?;
        let (writer, inbox) = Writer::new();
        let writer_clock = clock.clone();
        // Fails here, not in the thread, if the schema is not what the statements expect.
        drop(Tx::new(&db, settings.clone(), clock.clone(), signals.clone())?);
        let thread = std::thread::Builder::new()
            .name("sqlite-writer".into())
            .spawn(move || {
                let work = || {
                    let tx = Tx::new(&db, settings, writer_clock, signals.clone())?;
                    writer::run(&db, tx, inbox);
                    Ok(())
                };
                // Without its writer the store is of no use, and whoever serves it must know.
                let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work))
                    .unwrap_or_else(|_| Err(StoreError::Broken("the writer panicked".into())));
                if let Err(error) = ended {
                    signals.fail(error);
                }
                if let Err((_, error)) = db.close() {
                    tracing::error!(%error, "closing the database failed; it is recovered when opened again");
                }
                drop(held);
            })
            .map_err(|e| StoreError::Unavailable(format!("no thread for the writer: {e}")))?;
        Ok(Self {
            path: path.to_owned(),
            writer: Mutex::new(Some(writer)),
            thread: Mutex::new(Some(thread)),
            readers: Arc::default(),
            reading: Arc::new(Semaphore::new(READERS_MAX)),
            clock,
            retire_from: Arc::default(),
            wrote: AtomicBool::new(false),
            attendance: Mutex::default(),
        })
    }

    fn writer(&self) -> StoreResult<Writer> {
        self.wrote.store(true, Ordering::Relaxed);
        lock(&self.writer).clone().ok_or_else(|| StoreError::Unavailable("the store is closed".into()))
    }

    async fn write<T, F>(&self, work: F) -> StoreResult<T>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> StoreResult<T> + Send + 'static,
    {
        self.writer()?.call(Lane::Other { jobs: 0 }, work).await
    }

    /// As [`SqliteStore::write`], for what a holder says about its job.
    async fn report<T, F>(&self, work: F) -> StoreResult<T>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> StoreResult<T> + Send + 'static,
    {
        self.writer()?.call(Lane::Report, work).await
    }

    async fn end_unreported(&self, which: Which, limit: usize, batch: usize) -> StoreResult<Pass> {
        go_through(limit, batch, |after, size| self.end_next(which, after, size)).await
    }

    async fn end_next(
        &self,
        which: Which,
        after: Option<LeasePlace>,
        size: usize,
    ) -> StoreResult<Step<LeasePlace>> {
        // Beside the transaction: if that is rolled back, it is known all the same what it met.
        let met = Arc::new(Mutex::new(Step::default()));
        let tell = met.clone();
        let ended = self.write(move |tx| tx.end_next(which, after.as_ref(), size, &mut lock(&tell))).await;
        let mut step = std::mem::take(&mut *lock(&met));
        match ended {
            Ok(()) => {}
            Err(error @ StoreError::Corrupt(_)) => step.spoiled = Some(error),
            Err(error) => return Err(error),
        }
        Ok(step)
    }

    /// Runs `work` on a reading connection, in one snapshot.
    async fn read<T, F>(&self, work: F) -> StoreResult<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> StoreResult<T> + Send + 'static,
    {
        let closed = |_| StoreError::Unavailable("the store is closed".into());
        let turn = self.reading.clone().acquire_owned().await.map_err(closed)?;
        let readers = self.readers.clone();
        let path = self.path.clone();
        let task = tokio::task::spawn_blocking(move || {
            let pooled = lock(&readers).pop();
            let db = match pooled {
                Some(db) => db,
                None => open::reader(&path)?,
            };
            let answer = (|| {
                let snapshot = db.unchecked_transaction()?;
                let answer = work(&db);
                drop(snapshot);
                answer
            })();
            lock(&readers).push(db);
            drop(turn);
            answer
        });
        task.await.unwrap_or_else(|e| Err(StoreError::Unavailable(format!("a read was stopped: {e}"))))
    }
}

/// Reads at once, and so reading connections: more would only compete for the same cores.
const READERS_MAX: usize = 8;

/// Claimed jobs on their way to the caller. Dropped on the way, they go back.
struct Delivery {
    claimed: Vec<Claimed>,
    writer: Writer,
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if self.claimed.is_empty() {
            return;
        }
        let proofs: Vec<Proof> = self
            .claimed
            .drain(..)
            .map(|c| Proof { job_id: c.job_id, attempt_id: c.attempt_id, token_hash: c.lease_token.hash() })
            .collect();
        self.writer.send(move |tx| tx.unclaim(&proofs));
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn enqueue(&self, jobs: Vec<NewJob>) -> StoreResult<Vec<Enqueued>> {
        self.writer()?.call(Lane::Other { jobs: jobs.len() }, move |tx| tx.enqueue(&jobs)).await
    }

    async fn claim(&self, ask: Ask) -> StoreResult<Vec<Claimed>> {
        let writer = self.writer()?;
        let back = writer.clone();
        let mut delivery = writer
            .call_if_wanted(move |tx| Ok(Delivery { claimed: tx.claim(&ask)?, writer: back.clone() }))
            .await?;
        Ok(std::mem::take(&mut delivery.claimed))
    }

    async fn heartbeat(&self, beats: Vec<Beat>) -> StoreResult<Vec<BeatAnswer>> {
        self.report(move |tx| tx.heartbeat(&beats)).await
    }

    async fn progress(&self, items: Vec<(Beat, Progress)>) -> StoreResult<Vec<bool>> {
        self.report(move |tx| tx.progress(&items)).await
    }

    async fn progress_of(&self, jobs: Vec<JobId>) -> StoreResult<Vec<Option<Progress>>> {
        self.read(move |db| jobs.iter().map(|job_id| read::progress(db, *job_id)).collect()).await
    }

    async fn complete(&self, items: Vec<Completion>) -> StoreResult<Vec<Answer>> {
        self.report(move |tx| tx.complete(&items)).await
    }

    async fn fail(&self, items: Vec<Failure>) -> StoreResult<Vec<Answer>> {
        self.report(move |tx| tx.fail(&items)).await
    }

    async fn release(&self, items: Vec<Proof>) -> StoreResult<Vec<Answer>> {
        self.report(move |tx| tx.release(&items)).await
    }

    async fn cancel(&self, job_id: JobId, force: bool) -> StoreResult<CancelAnswer> {
        self.write(move |tx| tx.cancel(job_id, force)).await
    }

    async fn retry(&self, job_id: JobId) -> StoreResult<RetryAnswer> {
        self.write(move |tx| tx.retry(job_id)).await
    }

    async fn redrive(&self, filter: DeadFilter, limit: usize) -> StoreResult<Pass> {
        self.write(move |tx| tx.redrive(&filter, limit)).await
    }

    async fn purge(&self, filter: DeadFilter, limit: usize) -> StoreResult<Pass> {
        self.write(move |tx| tx.purge(&filter, limit)).await
    }

    async fn count_dead(&self, filter: DeadFilter) -> StoreResult<u64> {
        self.read(move |db| read::count_dead(db, &filter)).await
    }

    async fn dead_letters(
        &self,
        filter: DeadFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> StoreResult<Page<DeadLetter>> {
        self.read(move |db| read::dead_letters(db, &filter, after, limit)).await
    }

    async fn job(&self, job_id: JobId) -> StoreResult<Option<JobView>> {
        self.read(move |db| read::job(db, job_id)).await
    }

    async fn jobs(
        &self,
        filter: JobFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> StoreResult<Page<JobBrief>> {
        self.read(move |db| read::jobs(db, &filter, after, limit)).await
    }

    async fn streams(&self) -> StoreResult<Vec<StreamView>> {
        self.read(|db| read::streams(db, None)).await
    }

    async fn stream(&self, name: StreamName) -> StoreResult<Option<StreamView>> {
        self.read(move |db| Ok(read::streams(db, Some(&name))?.pop())).await
    }

    async fn set_paused(&self, name: StreamName, paused: bool) -> StoreResult<bool> {
        self.write(move |tx| tx.set_paused(&name, paused)).await
    }

    async fn claimable(&self, streams: Vec<StreamName>) -> StoreResult<Vec<StreamName>> {
        self.read(move |db| read::claimable(db, streams)).await
    }

    async fn reap(&self, limit: usize) -> StoreResult<Pass> {
        self.end_unreported(Which::Expired, limit, limit).await
    }

    async fn promote(&self, limit: usize) -> StoreResult<Pass> {
        self.write(move |tx| tx.promote(limit)).await
    }

    async fn fence(&self) -> StoreResult<usize> {
        self.write(|tx| {
            tx.raise_versions()?;
            crate::substrate::claims::fence(tx)
        })
        .await?;
        Ok(self.end_unreported(Which::All, usize::MAX, limits::REAP_BATCH).await?.moved)
    }

    async fn next_due(&self) -> StoreResult<Option<Timestamp>> {
        self.read(read::next_due).await
    }

    async fn retain(&self, age: Duration, limit: usize) -> StoreResult<Pass> {
        let cutoff = self.clock.now().before(age);
        let from = self.retire_from.clone();
        let (found, full) = self.read(move |db| read::retired(db, &mut lock(&from), cutoff, limit)).await?;
        if found.is_empty() {
            return Ok(Pass { moved: 0, full });
        }
        let moved = self.write(move |tx| tx.retire(&found, cutoff)).await?;
        Ok(Pass { moved, full })
    }

    async fn tidy(&self) -> StoreResult<()> {
        if self.wrote.swap(false, Ordering::Relaxed) {
            let writer = self.writer()?;
            self.wrote.store(false, Ordering::Relaxed);
            writer.call(Lane::Other { jobs: 0 }, |tx| tx.keep_clock()).await?;
        }
        Ok(())
    }

    async fn tokens(&self) -> StoreResult<Vec<TokenRow>> {
        self.read(read::tokens).await
    }

    async fn add_token(&self, token: TokenRow) -> StoreResult<bool> {
        self.write(move |tx| tx.add_token(&token)).await
    }

    async fn revoke_token(&self, token_id: String) -> StoreResult<bool> {
        self.write(move |tx| tx.revoke_token(&token_id)).await
    }

    async fn attend(&self, process: Process) -> StoreResult<()> {
        lock(&self.attendance).attend(process, self.clock.now());
        Ok(())
    }

    async fn leave(&self, process_id: Uuid) -> StoreResult<()> {
        lock(&self.attendance).leave(process_id);
        Ok(())
    }

    async fn processes(&self) -> StoreResult<Vec<LivingProcess>> {
        Ok(lock(&self.attendance).alive(self.clock.now()))
    }

    async fn transact(&self, mut work: Work) -> StoreResult<()> {
        self.write(move |tx| work(tx)).await
    }

    async fn consult(&self, mut work: Work) -> StoreResult<()> {
        let now = self.clock.now();
        self.read(move |db| work(&mut substrate::Snapshot { db, now })).await
    }

    async fn workorder_leases(&self, limit: usize) -> StoreResult<Vec<ClaimRecord>> {
        self.read(move |db| read::workorder_leases(db, limit)).await
    }

    async fn now(&self) -> StoreResult<Timestamp> {
        Ok(self.clock.now())
    }

    fn backend(&self) -> &'static str {
        "sqlite"
    }

    async fn close(&self) {
        // Readers first: the last to close folds the log back into the file, and they may not write.
        self.reading.close();
        lock(&self.readers).clear();
        drop(lock(&self.writer).take());
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            // The thread ends when the last caller's writer is gone; waiting for it must not block the others.
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }
}

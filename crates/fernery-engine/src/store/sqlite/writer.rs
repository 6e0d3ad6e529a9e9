//! The one writer: a thread that owns the writing connection and commits for many at once.
//!
//! Calls that arrive while a transaction is in flight share the next one, so the price of a durable commit is divided by
//! the load; an idle system adds no wait. A batch that fails or panics is rolled back and run again one call at a time, so
//! that a call fails alone.
//!
//! A job that comes while a claim waits for it is claimed in the transaction that brings it: the claim is woken before the
//! commit and has a moment to ask. One sync, not two, lies between a job and an idle worker.
//!
//! What a holder says about its job goes before everything else, and a transaction is short: however many jobs producers
//! send, a heartbeat waits for the transaction in flight and its own.

use super::tx::Tx;
use super::{SqliteStore, lock};
use crate::door::stop_watch;
use crate::error::{StoreError, StoreResult};
use crate::supervise::caught_now;
use rusqlite::Connection;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use tokio::sync::oneshot;
use tracing::{error, warn};

/// Calls in one transaction.
const BATCH_MAX: usize = 512;
/// Enqueued jobs per transaction; checked before each call, so the last call may exceed it.
const BATCH_JOBS_MAX: usize = 2_048;
/// How long a commit waits for the claims that its jobs have woken. Less than the commit that it saves.
const WOKEN_WITHIN: Duration = Duration::from_micros(300);
/// The maximum number of calls that wait for the writer; further calls are refused as busy.
const QUEUE_MAX: usize = 65_536;

/// Whose turn it is when more calls wait than one transaction takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// A holder speaks about its job, and would lose it by waiting.
    Report,
    /// A claim: it stands in line with the others.
    Claim,
    /// Everything else, as it came; it enqueues so many jobs.
    Other { jobs: usize },
}

/// A call on its way through the writer.
trait Call: Send {
    fn lane(&self) -> Lane;
    /// Does the work inside the transaction. May run again after a rollback.
    fn run(&mut self, tx: &mut Tx<'_>) -> StoreResult<()>;
    /// Tells the caller, once the transaction is durable or has failed.
    fn answer(self: Box<Self>, committed: StoreResult<()>);
}

struct Work<F, T> {
    lane: Lane,
    /// Not done at all once nobody waits for it.
    only_if_wanted: bool,
    work: F,
    done: Option<T>,
    /// The work is returned with its answer, so that the caller frees its memory and not the writer.
    reply: oneshot::Sender<(StoreResult<T>, F)>,
}

impl<F, T> Call for Work<F, T>
where
    F: FnMut(&mut Tx<'_>) -> StoreResult<T> + Send,
    T: Send,
{
    fn lane(&self) -> Lane {
        self.lane
    }

    fn run(&mut self, tx: &mut Tx<'_>) -> StoreResult<()> {
        if !(self.only_if_wanted && self.reply.is_closed()) {
            self.done = Some((self.work)(tx)?);
        }
        Ok(())
    }

    fn answer(self: Box<Self>, committed: StoreResult<()>) {
        let gone = || StoreError::Unavailable("the database writer has stopped".into());
        // A caller that has gone takes what it was given with it; a claim gives its jobs back when dropped.
        let Self { done, reply, work, .. } = *self;
        let _ = reply.send((committed.and_then(|()| done.ok_or_else(gone)), work));
    }
}

/// The way to the writer thread.
#[derive(Clone)]
pub(super) struct Writer {
    calls: Sender<Box<dyn Call>>,
    queued: Arc<AtomicUsize>,
}

impl Writer {
    /// A writer and the end that [`run`] reads.
    pub(super) fn new() -> (Self, CallQueue) {
        let (calls, queue) = channel();
        let queued = Arc::new(AtomicUsize::new(0));
        let queue = CallQueue {
            calls: queue,
            queued: queued.clone(),
            reports: VecDeque::new(),
            others: VecDeque::new(),
        };
        (Self { calls, queued }, queue)
    }

    /// Runs `work` in the next transaction and answers once that is durable.
    pub(super) async fn call<T, F>(&self, lane: Lane, work: F) -> StoreResult<T>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> StoreResult<T> + Send + 'static,
    {
        self.ask(lane, work, false).await
    }

    /// As [`Writer::call`], but not at all if the caller has gone when its turn comes.
    pub(super) async fn call_if_wanted<T, F>(&self, work: F) -> StoreResult<T>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> StoreResult<T> + Send + 'static,
    {
        self.ask(Lane::Claim, work, true).await
    }

    async fn ask<T, F>(&self, lane: Lane, work: F, only_if_wanted: bool) -> StoreResult<T>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> StoreResult<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        self.post(Work { lane, only_if_wanted, work, done: None, reply })?;
        let stopped = |_| StoreError::Unavailable("the database writer has stopped".into());
        answer.await.map_err(stopped).and_then(|(answer, _work)| answer)
    }

    /// Runs `work` in the next transaction; nobody waits for it.
    pub(super) fn send(&self, work: impl FnMut(&mut Tx<'_>) -> StoreResult<()> + Send + 'static) {
        let (reply, _) = oneshot::channel();
        let lane = Lane::Other { jobs: 0 };
        if let Err(error) = self.post(Work { lane, only_if_wanted: false, work, done: None, reply }) {
            error!(%error, "could not return a claimed job; it comes back when its lease expires");
        }
    }

    fn post(&self, work: impl Call + 'static) -> StoreResult<()> {
        if self.queued.fetch_add(1, Ordering::Relaxed) >= QUEUE_MAX {
            self.queued.fetch_sub(1, Ordering::Relaxed);
            return Err(StoreError::Busy(format!("{QUEUE_MAX} calls are waiting for the database")));
        }
        self.calls.send(Box::new(work)).map_err(|_| StoreError::Unavailable("the store is closed".into()))
    }
}

impl SqliteStore {
    pub(super) fn writer(&self) -> StoreResult<Writer> {
        self.wrote.store(true, Ordering::Relaxed);
        lock(&self.writer).clone().ok_or_else(|| StoreError::Unavailable("the store is closed".into()))
    }

    /// Runs `work` in the next transaction and answers once that is durable.
    pub(super) async fn write<T, F>(&self, work: F) -> StoreResult<T>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> StoreResult<T> + Send + 'static,
    {
        self.writer()?.call(Lane::Other { jobs: 0 }, work).await
    }

    /// As [`SqliteStore::write`], for what a holder says about its job.
    pub(super) async fn write_report<T, F>(&self, work: F) -> StoreResult<T>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> StoreResult<T> + Send + 'static,
    {
        self.writer()?.call(Lane::Report, work).await
    }
}

/// The writer's end of the queue.
pub(super) struct CallQueue {
    calls: Receiver<Box<dyn Call>>,
    queued: Arc<AtomicUsize>,
    reports: VecDeque<Box<dyn Call>>,
    others: VecDeque<Box<dyn Call>>,
}

impl CallQueue {
    fn batch(&mut self) -> Option<Vec<Box<dyn Call>>> {
        if self.reports.is_empty() && self.others.is_empty() {
            let first = self.calls.recv().ok()?;
            self.sort(first);
        }
        while let Ok(call) = self.calls.try_recv() {
            self.sort(call);
        }
        // One place is reserved for other calls, so that endless reports do not block them.
        let reports = self.reports.len().min(BATCH_MAX - 1);
        let mut batch: Vec<_> = self.reports.drain(..reports).collect();
        let mut jobs_before = 0;
        while batch.len() < BATCH_MAX
            && jobs_before < BATCH_JOBS_MAX
            && let Some(call) = self.others.pop_front()
        {
            if let Lane::Other { jobs } = call.lane() {
                jobs_before += jobs;
            }
            batch.push(call);
        }
        self.queued.fetch_sub(batch.len(), Ordering::Relaxed);
        Some(batch)
    }

    fn sort(&mut self, call: Box<dyn Call>) {
        match call.lane() {
            Lane::Report => self.reports.push_back(call),
            Lane::Claim | Lane::Other { .. } => self.others.push_back(call),
        }
    }

    /// The claims among what comes within a moment, up to so many; the rest waits its turn.
    fn claims(&mut self, up_to: usize) -> impl Iterator<Item = Box<dyn Call>> {
        let until = stop_watch() + WOKEN_WITHIN;
        let mut left = up_to;
        std::iter::from_fn(move || {
            while left > 0 {
                let call = self.calls.recv_timeout(until.saturating_duration_since(stop_watch())).ok()?;
                if call.lane() == Lane::Claim {
                    left -= 1;
                    self.queued.fetch_sub(1, Ordering::Relaxed);
                    return Some(call);
                }
                self.sort(call);
            }
            None
        })
    }
}

/// The thread: takes batches until the last [`Writer`] is gone.
pub(super) fn run(db: &Connection, mut tx: Tx<'_>, queue: &mut CallQueue) {
    while let Some(mut batch) = queue.batch() {
        match commit(db, &mut tx, &mut batch, Some(queue)) {
            Ok(()) => batch.into_iter().for_each(|call| call.answer(Ok(()))),
            Err(error) if batch.len() == 1 => {
                batch.into_iter().for_each(|call| call.answer(Err(error.clone())))
            }
            Err(error) => {
                // Each may succeed alone; then nobody else hears that the disk failed.
                warn!(%error, calls = batch.len(), "a transaction failed; retrying its calls one at a time");
                for call in batch {
                    let mut alone = vec![call];
                    let committed = commit(db, &mut tx, &mut alone, None);
                    alone.into_iter().for_each(|call| call.answer(committed.clone()));
                }
            }
        }
    }
}

fn commit(
    db: &Connection,
    tx: &mut Tx<'_>,
    batch: &mut Vec<Box<dyn Call>>,
    woken_come_to: Option<&mut CallQueue>,
) -> StoreResult<()> {
    tx.refuse_after_damage()?;
    let written = caught_now(|| write(db, tx, batch, woken_come_to)).unwrap_or_else(|panicked| {
        error!(%panicked, "a database call panicked; it was rolled back");
        Err(StoreError::Corrupt("the work panicked".into()))
    });
    match &written {
        Ok(()) => tx.committed(),
        Err(error) => {
            // A failed COMMIT may already have ended it.
            if !db.is_autocommit() {
                let _ = db.execute_batch("ROLLBACK");
            }
            tx.rolled_back(error);
        }
    }
    written
}

fn write(
    db: &Connection,
    tx: &mut Tx<'_>,
    batch: &mut Vec<Box<dyn Call>>,
    woken_come_to: Option<&mut CallQueue>,
) -> StoreResult<()> {
    tx.begin()?;
    for call in batch.iter_mut() {
        call.run(tx)?;
    }
    // A claim that is in the batch already stands in line still, and cannot come before it is answered.
    let here = batch.iter().filter(|call| call.lane() == Lane::Claim).count();
    let woken = tx.wake().min(BATCH_MAX).saturating_sub(here);
    for claim in woken_come_to.into_iter().flat_map(|queue| queue.claims(woken)) {
        // In the batch first: whatever becomes of it, it is answered.
        batch.push(claim);
        batch.last_mut().map_or(Ok(()), |claim| claim.run(tx))?;
    }
    tx.flush()?;
    db.prepare_cached("COMMIT")?.execute([])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::door::LeaseClock;
    use crate::engine::tests::Warnings;
    use crate::store::StoreSettings;

    fn post(writer: &Writer, lane: Lane) {
        let (reply, _) = oneshot::channel();
        writer
            .post(Work { lane, only_if_wanted: false, work: |_: &mut Tx<'_>| Ok(()), done: None, reply })
            .unwrap();
    }

    fn lanes(queue: &mut CallQueue) -> Vec<Lane> {
        queue.batch().unwrap().iter().map(|call| call.lane()).collect()
    }

    #[test]
    fn a_report_overtakes_the_jobs_of_producers_and_their_transactions_are_short() {
        let (writer, mut queue) = Writer::new();
        let (many, one) = (Lane::Other { jobs: 1_200 }, Lane::Other { jobs: 1 });
        for lane in [many, many, many, one, Lane::Report] {
            post(&writer, lane);
        }
        assert_eq!(lanes(&mut queue), [Lane::Report, many, many]);
        post(&writer, Lane::Report);
        assert_eq!(lanes(&mut queue), [Lane::Report, many, one]);
        assert_eq!(writer.queued.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn only_claims_join_a_transaction_that_is_about_to_commit_and_no_more_than_were_woken() {
        let (writer, mut queue) = Writer::new();
        let one = Lane::Other { jobs: 1 };
        for lane in [one, Lane::Claim, Lane::Report, Lane::Claim, Lane::Claim] {
            post(&writer, lane);
        }
        assert_eq!(queue.claims(2).count(), 2);
        assert_eq!(queue.claims(0).count(), 0);
        assert_eq!(lanes(&mut queue), [Lane::Report, one, Lane::Claim]);
        assert_eq!(writer.queued.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_full_disk_is_told_in_the_log_also_where_nobody_waits_for_the_answer() {
        let folder = tempfile::tempdir().unwrap();
        let db = super::super::open::writer(&folder.path().join("fernery.db")).unwrap();
        let clock = LeaseClock::system();
        let mut tx = Tx::new(&db, StoreSettings::default(), clock, Arc::default()).unwrap();
        let (writer, mut queue) = Writer::new();
        for _ in 0..3 {
            writer.send(|_| Err(StoreError::Full("no room".into())));
        }
        let warnings = Warnings::default();
        let _heard = tracing::subscriber::set_default(warnings.clone());
        for call in queue.batch().unwrap() {
            let failed = commit(&db, &mut tx, &mut vec![call], None);
            assert!(matches!(failed, Err(StoreError::Full(_))), "{failed:?}");
        }
        assert_eq!(warnings.0.load(Ordering::Relaxed), 1, "once, however often it fails");
    }

    #[test]
    fn reports_without_end_leave_a_place_for_the_others() {
        let (writer, mut queue) = Writer::new();
        post(&writer, Lane::Other { jobs: 1 });
        (0..2 * BATCH_MAX).for_each(|_| post(&writer, Lane::Report));
        assert_eq!(lanes(&mut queue).last(), Some(&Lane::Other { jobs: 1 }));
    }
}

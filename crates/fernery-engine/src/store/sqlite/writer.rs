//! The one writer: a thread that owns the writing connection and commits for many at once.
//!
//! Calls that arrive while a transaction is in flight share the next one, so the price of a durable commit is divided by
//! the load; an idle system adds no wait. A batch that fails is rolled back and run again one call at a time, so that a
//! call fails alone.

use super::write::Tx;
use crate::error::{StoreError, StoreResult};
use rusqlite::Connection;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;
use tracing::error;

/// Calls in one transaction.
const BATCH_MAX: usize = 512;
/// Calls that may wait for the writer before new ones are told to come back.
const QUEUE_MAX: usize = 65_536;

/// A call on its way through the writer.
trait Call: Send {
    /// Does the work inside the transaction. May run again after a rollback.
    fn run(&mut self, tx: &mut Tx<'_>) -> StoreResult<()>;
    /// Tells the caller, once the transaction is durable or has failed.
    fn answer(self: Box<Self>, committed: StoreResult<()>);
}

struct Work<F, T> {
    /// Not done at all once nobody waits for it.
    only_if_wanted: bool,
    work: F,
    done: Option<T>,
    reply: oneshot::Sender<StoreResult<T>>,
}

impl<F, T> Call for Work<F, T>
where
    F: FnMut(&mut Tx<'_>) -> StoreResult<T> + Send,
    T: Send,
{
    fn run(&mut self, tx: &mut Tx<'_>) -> StoreResult<()> {
        if !(self.only_if_wanted && self.reply.is_closed()) {
            self.done = Some((self.work)(tx)?);
        }
        Ok(())
    }

    fn answer(self: Box<Self>, committed: StoreResult<()>) {
        let gone = || StoreError::Unavailable("the writer has stopped".into());
        // A caller that has gone takes what it was given with it; a claim gives its jobs back when dropped.
        let Self { done, reply, .. } = *self;
        let _ = reply.send(committed.and_then(|()| done.ok_or_else(gone)));
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
    pub(super) fn new() -> (Self, Inbox) {
        let (calls, inbox) = channel();
        let queued = Arc::new(AtomicUsize::new(0));
        (Self { calls, queued: queued.clone() }, Inbox { calls: inbox, queued })
    }

    /// Runs `work` in the next transaction and answers once that is durable.
    pub(super) async fn call<T, F>(&self, work: F) -> StoreResult<T>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> StoreResult<T> + Send + 'static,
    {
        self.ask(work, false).await
    }

    /// As [`Writer::call`], but not at all if the caller has gone when its turn comes.
    pub(super) async fn call_if_wanted<T, F>(&self, work: F) -> StoreResult<T>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> StoreResult<T> + Send + 'static,
    {
        self.ask(work, true).await
    }

    async fn ask<T, F>(&self, work: F, only_if_wanted: bool) -> StoreResult<T>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> StoreResult<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        self.post(Work { only_if_wanted, work, done: None, reply })?;
        answer.await.unwrap_or_else(|_| Err(StoreError::Unavailable("the writer has stopped".into())))
    }

    /// Runs `work` in the next transaction; nobody waits for it.
    pub(super) fn send(&self, work: impl FnMut(&mut Tx<'_>) -> StoreResult<()> + Send + 'static) {
        let (reply, _) = oneshot::channel();
        if let Err(error) = self.post(Work { only_if_wanted: false, work, done: None, reply }) {
            error!(%error, "a claim could not be given back; its lease runs out instead");
        }
    }

    fn post(&self, work: impl Call + 'static) -> StoreResult<()> {
        if self.queued.fetch_add(1, Ordering::Relaxed) >= QUEUE_MAX {
            self.queued.fetch_sub(1, Ordering::Relaxed);
            return Err(StoreError::Busy(format!("{QUEUE_MAX} calls wait for the database")));
        }
        self.calls.send(Box::new(work)).map_err(|_| StoreError::Unavailable("the store is closed".into()))
    }
}

/// The writer's end of the queue.
pub(super) struct Inbox {
    calls: Receiver<Box<dyn Call>>,
    queued: Arc<AtomicUsize>,
}

impl Inbox {
    fn batch(&self) -> Option<Vec<Box<dyn Call>>> {
        let mut batch = vec![self.calls.recv().ok()?];
        while batch.len() < BATCH_MAX {
            match self.calls.try_recv() {
                Ok(call) => batch.push(call),
                Err(_) => break,
            }
        }
        self.queued.fetch_sub(batch.len(), Ordering::Relaxed);
        Some(batch)
    }
}

/// The thread: takes batches until the last [`Writer`] is gone.
pub(super) fn run(db: &Connection, mut tx: Tx<'_>, inbox: &Inbox) {
    while let Some(mut batch) = inbox.batch() {
        match commit(db, &mut tx, &mut batch) {
            Ok(()) => batch.into_iter().for_each(|call| call.answer(Ok(()))),
            Err(error) if batch.len() == 1 => {
                batch.into_iter().for_each(|call| call.answer(Err(error.clone())))
            }
            Err(_) => {
                for call in batch {
                    let mut alone = [call];
                    let committed = commit(db, &mut tx, &mut alone);
                    let [call] = alone;
                    call.answer(committed);
                }
            }
        }
    }
}

fn commit(db: &Connection, tx: &mut Tx<'_>, batch: &mut [Box<dyn Call>]) -> StoreResult<()> {
    tx.refuse_after_damage()?;
    let written = write(db, tx, batch);
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

fn write(db: &Connection, tx: &mut Tx<'_>, batch: &mut [Box<dyn Call>]) -> StoreResult<()> {
    tx.begin()?;
    for call in batch {
        call.run(tx)?;
    }
    tx.flush()?;
    db.prepare_cached("COMMIT")?.execute([])?;
    Ok(())
}

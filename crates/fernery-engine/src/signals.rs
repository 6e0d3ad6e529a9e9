//! What the stores say after a commit, so that nobody has to poll: jobs can be claimed, a job ended, something was
//! scheduled. All of it may be lost without harm.

use crate::error::StoreError;
use crate::parking::Parking;
use crate::pipeline::Stage;
use crate::store::UnwrittenStats;
use crate::supervise::{Loops, lock};
use fernery_core::{JobId, StreamName};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::{Notify, watch};

/// Shared by an engine and its store.
#[derive(Debug, Default)]
pub struct Signals {
    /// Claims that wait.
    pub parking: Parking,
    /// Readers that wait for the end of a job.
    pub endings: Arc<Endings>,
    /// Something was scheduled: the promoter looks when it is due.
    pub scheduled: Notify,
    /// A lease was made that runs out before all others: the reaper looks when.
    pub leased: Notify,
    /// Another program left jobs in `fernery.inbox`.
    pub intake: Notify,
    /// A stage of the pipeline has something to look at.
    pub stages: [Notify; Stage::ALL.len()],
    /// What happened in streams, and is not written yet.
    pub unwritten_stats: UnwrittenStats,
    /// The loops that keep it moving, and how they are doing.
    pub loops: Arc<Loops>,
    failure: watch::Sender<Option<StoreError>>,
}

impl Signals {
    /// Jobs of this stream can be claimed. Says how many claims it woke.
    pub fn claimable(&self, stream: &StreamName, jobs: usize) -> usize {
        self.parking.nudge(stream, jobs)
    }

    /// These stages have something to look at.
    pub fn nudge(&self, stages: impl IntoIterator<Item = Stage>) {
        stages.into_iter().for_each(|stage| self.stages[stage as usize].notify_one());
    }

    /// The store has failed for good.
    pub fn fail(&self, error: StoreError) {
        self.failure.send_replace(Some(error));
    }

    /// Waits until the store has failed for good.
    pub async fn failed(&self) -> StoreError {
        let mut failure = self.failure.subscribe();
        match failure.wait_for(Option::is_some).await.map(|error| error.clone()) {
            Ok(Some(error)) => error,
            // The sender lives as long as `self`.
            _ => std::future::pending().await,
        }
    }
}

/// Readers that wait for the end of a job.
#[derive(Debug, Default)]
pub struct Endings {
    waiting: Mutex<HashMap<JobId, watch::Sender<()>>>,
    count: AtomicUsize,
}

impl Endings {
    /// From now on, the end of this job is signalled. Read the job once more after this and before waiting.
    pub fn watch(self: &Arc<Self>, job_id: JobId) -> Ending {
        let mut waiting = lock(&self.waiting);
        let sender = waiting.entry(job_id).or_insert_with(|| watch::channel(()).0);
        let ending = Ending { endings: self.clone(), job_id, receiver: sender.subscribe() };
        self.count.store(waiting.len(), Ordering::Release);
        ending
    }

    /// A job has ended.
    pub fn ended(&self, job_id: JobId) {
        // Nearly always nobody waits, and this is on the path of every completion.
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let waiting = lock(&self.waiting);
        if let Some(sender) = waiting.get(&job_id) {
            sender.send_replace(());
        }
    }
}

/// One reader's wait.
#[derive(Debug)]
pub struct Ending {
    endings: Arc<Endings>,
    job_id: JobId,
    receiver: watch::Receiver<()>,
}

impl Ending {
    /// Waits for the signal.
    pub async fn signalled(&mut self) {
        // The sender lives in the map as long as this does.
        let _ = self.receiver.changed().await;
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        let mut waiting = lock(&self.endings.waiting);
        if waiting.get(&self.job_id).is_some_and(|sender| sender.receiver_count() <= 1) {
            waiting.remove(&self.job_id);
        }
        self.endings.count.store(waiting.len(), Ordering::Release);
    }
}

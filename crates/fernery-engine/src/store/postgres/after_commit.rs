//! What the store tells other claims and processes after a commit.

use super::Shared;
use crate::pipeline::Stage;
use crate::transport::{MessageId, Reason};
use fernery_core::job::settle::Next;
use fernery_core::job::stats::Happening;
use fernery_core::{JobId, StreamName, Timestamp};
use std::collections::{HashMap, HashSet};

#[derive(Debug, Default)]
pub(super) struct AfterCommit {
    pub(super) claimable: HashMap<StreamName, usize>,
    pub(super) ended: Vec<JobId>,
    pub(super) scheduled: bool,
    pub(super) stages: HashSet<Stage>,
    pub(super) happened: Vec<(StreamName, Timestamp, Happening)>,
    /// Messages of attempts that have ended or were undone.
    pub(super) messages: Vec<(StreamName, MessageId)>,
}

impl AfterCommit {
    /// A job of this stream waits, now or from `due_at` on.
    pub(super) fn waits(&mut self, stream: &StreamName, due_at: Option<Timestamp>) {
        if due_at.is_some() {
            self.scheduled = true;
            return;
        }
        match self.claimable.get_mut(stream) {
            Some(jobs) => *jobs += 1,
            None => drop(self.claimable.insert(stream.clone(), 1)),
        }
    }

    /// A job of this stream came in, and waits, now or from `due_at` on.
    pub(super) fn came(&mut self, stream: &StreamName, now: Timestamp, due_at: Option<Timestamp>) {
        self.waits(stream, due_at);
        self.happened.push((stream.clone(), now, Happening::Enqueued(1)));
    }

    /// An attempt of this job was settled.
    pub(super) fn settled(&mut self, job_id: JobId, stream: &StreamName, next: Next) {
        match next {
            Next::Queue { due_at } => self.waits(stream, due_at),
            Next::Finish(_) => self.ended.push(job_id),
        }
    }
}

impl Shared {
    /// Nudges whoever waits, here and in other processes.
    pub(super) fn announce(&self, after: AfterCommit) {
        for job_id in after.ended {
            self.signals.endings.ended(job_id);
        }
        if after.scheduled {
            self.signals.scheduled.notify_one();
        }
        self.signals.nudge(after.stages);
        self.signals.unwritten_stats.note(after.happened);
        match &self.messaging {
            Some(messaging) => {
                messaging.transport.finished(after.messages, Reason::Settled);
                // A woken claim looks for a message, so claims are woken only after the message was sent.
                if !after.claimable.is_empty() && !messaging.nudge() {
                    self.wake(after.claimable);
                }
            }
            None => self.wake(after.claimable),
        }
    }

    /// Wakes claims that wait for these streams, here and in other processes.
    pub(super) fn wake(&self, claimable: HashMap<StreamName, usize>) {
        for (stream, jobs) in &claimable {
            self.signals.claimable(stream, *jobs);
        }
        self.notifier.tell(claimable);
    }
}

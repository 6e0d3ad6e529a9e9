//! What is said to others once a transaction is durable.

use super::Shared;
use crate::substrate::Stage;
use crate::transport::{MessageId, Reason};
use fernery_core::settle::Next;
use fernery_core::{JobId, StreamName, Timestamp};
use std::collections::{HashMap, HashSet};

#[derive(Debug, Default)]
pub(super) struct After {
    pub(super) claimable: HashMap<StreamName, usize>,
    pub(super) ended: Vec<JobId>,
    pub(super) scheduled: bool,
    pub(super) stages: HashSet<Stage>,
    /// What led to attempts that have ended or were undone.
    pub(super) messages: Vec<(StreamName, MessageId)>,
}

impl After {
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
    pub(super) fn announce(&self, after: After) {
        for job_id in after.ended {
            self.signals.endings.ended(job_id);
        }
        if after.scheduled {
            self.signals.scheduled.notify_one();
        }
        self.signals.nudge(after.stages);
        match &self.post {
            Some(post) => {
                post.transport.finished(after.messages, Reason::Settled);
                // Whoever is woken looks for a message: once it is sent, they are.
                if !after.claimable.is_empty() && !post.nudge() {
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
        self.herald.tell(claimable);
    }
}

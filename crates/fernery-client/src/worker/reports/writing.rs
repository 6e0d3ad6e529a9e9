//! Writes to the spool, one at a time, and what the end of a write means for its reports. Disks are slow, so writes run on a
//! thread of their own.

use super::super::event::WorkerEvent;
use super::super::report::Report;
use super::super::spool::Spool;
use super::Reporter;
use fernery_core::AttemptId;
use std::collections::HashSet;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// How often a spool that cannot be written is tried again.
const SPOOL_AGAIN: Duration = Duration::from_millis(500);

pub(super) enum SpoolState {
    /// There is no spool: reports are in memory only.
    None,
    Idle(Box<Spool>),
    Writing(JoinHandle<Written>),
}

/// A write to the spool that has ended.
pub(super) struct Written {
    pub(super) spool: Box<Spool>,
    pub(super) reports: Vec<Report>,
    /// The reports are copies of queued ones that could not be written before.
    pub(super) again: bool,
    pub(super) outcome: std::io::Result<()>,
}

impl SpoolState {
    /// Waits for the end of the current write.
    pub(super) async fn written(&mut self) -> Written {
        match self {
            Self::Writing(task) => match task.await {
                Ok(written) => written,
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    // The runtime is shutting down, and this task with it.
                    Err(_) => std::future::pending().await,
                },
            },
            Self::None | Self::Idle(_) => std::future::pending().await,
        }
    }

    /// Whether there is a spool that no write is using.
    pub(super) fn is_idle(&self) -> bool {
        matches!(self, Self::Idle(_))
    }

    /// Begins a write, if none is in progress: forgets settled attempts and keeps reports. With `again` and no reports it still
    /// tests whether the spool is writable.
    pub(super) fn write(&mut self, settled: Vec<AttemptId>, reports: Vec<Report>, again: bool) {
        *self = match std::mem::replace(self, Self::None) {
            Self::Idle(mut spool) => Self::Writing(tokio::task::spawn_blocking(move || {
                spool.forget(&settled);
                let wanted = again || !reports.is_empty();
                let outcome = if wanted { spool.save(&reports) } else { Ok(()) };
                Written { spool, reports, again, outcome }
            })),
            other => other,
        };
    }
}

impl Reporter {
    /// Writes new reports and forgets settled ones, if no write is in progress.
    pub(super) fn start_writing(&mut self) {
        let something = !self.fresh.is_empty() || !self.settled.is_empty();
        if something && self.spool.is_idle() && !self.spool_fails {
            self.spool.write(std::mem::take(&mut self.settled), std::mem::take(&mut self.fresh), false);
        }
    }

    /// Tries a spool that could not be written again, with all reports that are missing in it.
    pub(super) fn try_spool_again(&mut self) {
        self.spool_again_at = None;
        if self.spool.is_idle() {
            let queued = self.lanes.iter().flat_map(|lane| &lane.queue);
            let lacking = queued.filter(|queued| !queued.safe && queued.report.is_final());
            let reports = lacking.map(|queued| queued.report.clone()).collect();
            self.spool.write(std::mem::take(&mut self.settled), reports, true);
        }
    }

    /// Handles the end of a write, and releases its reports to be sent.
    pub(super) fn written(&mut self, written: Written) {
        let Written { spool, reports, again, outcome } = written;
        self.spool = SpoolState::Idle(spool);
        let safe = outcome.is_ok();
        self.spool_fails = !safe;
        match outcome {
            Ok(()) if again => self.shared.tell(|| WorkerEvent::SpoolMended),
            Ok(()) => {}
            Err(error) => {
                self.spool_again_at = Some(Instant::now() + SPOOL_AGAIN);
                if !again {
                    self.shared.warn(WorkerEvent::SpoolFailed { why: error.to_string() });
                }
            }
        }
        if !again {
            // Reports that could not be written are still sent: the work is done.
            self.enqueue(reports, safe);
            let waiting = if safe { Vec::new() } else { std::mem::take(&mut self.fresh) };
            self.enqueue(waiting, false);
        } else if safe {
            let kept: HashSet<_> = reports.iter().map(|report| report.proof.attempt_id).collect();
            let queued = self.lanes.iter_mut().flat_map(|lane| &mut lane.queue);
            queued
                .filter(|queued| kept.contains(&queued.report.proof.attempt_id))
                .for_each(|queued| queued.safe = true);
        }
    }
}

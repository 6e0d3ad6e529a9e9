//! The spool between two writes, or in the middle of one. Disks are slow, so writes have a thread of their own.

use super::super::report::Report;
use super::super::spool::Spool;
use fernery_core::AttemptId;
use tokio::task::JoinHandle;

pub(super) enum SpoolState {
    /// Reports live in memory only.
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
    /// The write under way, when it has ended.
    pub(super) async fn written(&mut self) -> Written {
        match self {
            Self::Writing(task) => match task.await {
                Ok(written) => written,
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    // The runtime ends, and this task with it.
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

    /// Begins a write, if none is under way: forgets what is settled, keeps the reports. `again` with nothing to keep
    /// still finds out whether it could.
    pub(super) fn write(&mut self, settled: Vec<AttemptId>, reports: Vec<Report>, again: bool) {
        *self = match std::mem::replace(self, Self::None) {
            Self::Idle(mut spool) => Self::Writing(tokio::task::spawn_blocking(move || {
                spool.forget(&settled);
                let wanted = again || !reports.is_empty();
                let outcome = if wanted { spool.keep(&reports) } else { Ok(()) };
                Written { spool, reports, again, outcome }
            })),
            other => other,
        };
    }
}

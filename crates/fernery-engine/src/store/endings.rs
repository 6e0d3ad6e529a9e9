//! Shared by all stores: the error of an attempt that ended without a report, and a job's status by the rows that were
//! found.

use crate::error::{StoreError, StoreResult};
use fernery_core::{AttemptOutcome, Holding, JobId, JobStatus};
use serde_json::value::{RawValue, to_raw_value};

/// The code and the error object of an attempt that ended without a report of its holder; `None` where it had one.
pub fn unreported(outcome: AttemptOutcome, held: &Holding) -> Option<(&'static str, Box<RawValue>)> {
    let (code, message) = match outcome {
        AttemptOutcome::Succeeded | AttemptOutcome::Failed => return None,
        AttemptOutcome::Lost => {
            ("lease_expired", format!("the lease expired: no heartbeat after {}", held.heartbeat_at))
        }
        AttemptOutcome::TimedOut => {
            ("timed_out", "the attempt took longer than the job's timeout".to_string())
        }
        AttemptOutcome::Cancelled => ("cancelled", "an operator cancelled the job".to_string()),
        AttemptOutcome::Released => ("released", "the worker returned the job unfinished".to_string()),
    };
    let error = serde_json::json!({ "code": code, "message": message });
    to_raw_value(&error).ok().map(|raw| (code, raw))
}

/// What was found of a job, table by table.
#[derive(Clone, Copy, Debug)]
pub struct Traces {
    /// It has a lease.
    pub leased: bool,
    /// It is ready or scheduled.
    pub waiting: bool,
    /// Its row says that it ended, DEAD or CANCELLED.
    pub ended: Option<JobStatus>,
    /// How its last closed attempt ended.
    pub last_outcome: Option<AttemptOutcome>,
}

impl Traces {
    /// Where the job stands. Anything but exactly one place is damage (invariant 5).
    pub fn status(self, job_id: JobId) -> StoreResult<JobStatus> {
        match self {
            Self { leased: true, waiting: false, ended: None, .. } => Ok(JobStatus::Running),
            Self { leased: false, waiting: true, ended: None, .. } => Ok(JobStatus::Queued),
            Self { leased: false, waiting: false, ended: Some(status), .. } => Ok(status),
            Self {
                leased: false,
                waiting: false,
                ended: None,
                last_outcome: Some(AttemptOutcome::Succeeded),
            } => Ok(JobStatus::Succeeded),
            other => Err(StoreError::Corrupt(format!("job {job_id} is in no state or in two: {other:?}"))),
        }
    }
}

//! How an attempt ended, as it is written to the spool and to the wire.

use super::job::Job;
use crate::wire::{ErrorReport, ReleaseItem};
use fernery_core::{AttemptId, JobId, LeaseToken};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The end of one attempt, to be reported to the server.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) proof: Proof,
    pub(crate) end: End,
    /// The job, if this process claimed it; a report of an earlier process, read from the spool, has none.
    pub(crate) job: Option<Job>,
}

/// The fields by which the server identifies an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Proof {
    pub(crate) job_id: JobId,
    pub(crate) attempt_id: AttemptId,
    pub(crate) lease_token: LeaseToken,
}

/// How it ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum End {
    Completed(Box<RawValue>),
    Failed(ErrorReport),
    Released,
}

/// The kind of call that carries a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Complete,
    Fail,
    Release,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Complete, Self::Fail, Self::Release];
}

impl Report {
    pub(crate) fn of(job: &Job, end: End) -> Self {
        let proof = Proof { job_id: job.id(), attempt_id: job.attempt_id(), lease_token: job.lease_token() };
        Self { proof, end, job: Some(job.clone()) }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self.end {
            End::Completed(_) => Kind::Complete,
            End::Failed(_) => Kind::Fail,
            End::Released => Kind::Release,
        }
    }

    /// Whether the report must survive this process. A job that is not handed back becomes free when its lease expires.
    pub(crate) fn is_final(&self) -> bool {
        self.kind() != Kind::Release
    }

    /// Whether the server has refused the lease: then nothing more is reported under it.
    pub(crate) fn is_lost(&self) -> bool {
        self.job.as_ref().is_some_and(Job::is_lost)
    }

    /// Approximate bytes that it adds to a call.
    pub(crate) fn weight(&self) -> usize {
        200 + match &self.end {
            End::Completed(result) => result.get().len(),
            End::Failed(error) => error.message.len() + error.stack.as_ref().map_or(0, String::len),
            End::Released => 0,
        }
    }

    /// The same attempt as a failure, because the server does not accept its result.
    pub(crate) fn refused(self, why: String) -> Self {
        let error =
            ErrorReport { code: "result_refused".into(), message: why, stack: None, retryable: false };
        Self { end: End::Failed(error), ..self }
    }

    /// The item as the wire has it.
    pub(crate) fn item(&self) -> Item<'_> {
        let Proof { job_id, attempt_id, lease_token } = self.proof;
        match &self.end {
            End::Completed(result) => Item::Complete(CompleteRef { job_id, attempt_id, lease_token, result }),
            End::Failed(error) => Item::Fail(FailRef { job_id, attempt_id, lease_token, error }),
            End::Released => Item::Release(ReleaseItem { job_id, attempt_id, lease_token }),
        }
    }
}

/// An item of a report call, borrowed: results may be large.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Item<'a> {
    Complete(CompleteRef<'a>),
    Fail(FailRef<'a>),
    Release(ReleaseItem),
}

/// [`CompleteItem`](crate::wire::CompleteItem), borrowed.
#[derive(Serialize)]
pub(crate) struct CompleteRef<'a> {
    job_id: JobId,
    attempt_id: AttemptId,
    lease_token: LeaseToken,
    result: &'a RawValue,
}

/// [`FailItem`](crate::wire::FailItem), borrowed.
#[derive(Serialize)]
pub(crate) struct FailRef<'a> {
    job_id: JobId,
    attempt_id: AttemptId,
    lease_token: LeaseToken,
    error: &'a ErrorReport,
}

#[cfg(test)]
mod tests {
    use super::super::job::tests::job;
    use super::*;
    use crate::wire::{CompleteItem, FailItem};

    #[test]
    fn items_are_written_as_the_wire_has_them() {
        let result: Box<RawValue> = serde_json::from_str(r#"{"n":1.50e400}"#).unwrap();
        let report = Report::of(&job(1), End::Completed(result));
        let written = serde_json::to_string(&report.item()).unwrap();
        let read: CompleteItem = serde_json::from_str(&written).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), written);

        let report = report.refused("too deep".into());
        assert_eq!(report.kind(), Kind::Fail);
        let written = serde_json::to_string(&report.item()).unwrap();
        let read: FailItem = serde_json::from_str(&written).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), written);
        assert!(!read.error.retryable);
    }
}

//! One act on all jobs that match: what can be done to jobs that stand so, which jobs are meant, and where its walk over them is.

use crate::names::StreamName;
use crate::{JobId, JobStatus, Timestamp, words};
use serde::{Deserialize, Serialize};

words!(
    /// What is done to every job that is meant.
    BulkVerb {
        /// A queued job ends; a running one is asked to end.
        Cancel = "cancel",
        /// A DEAD or CANCELLED job starts over.
        Retry = "retry",
        /// A DEAD job is deleted with its history.
        Purge = "purge",
    }
);

words!(
    /// Where a bulk act stands.
    BulkState {
        /// Its walk goes on.
        Running = "RUNNING",
        /// It has reached every job that was meant.
        Done = "DONE",
        /// An operator stopped it. What was done stays done.
        Stopped = "STOPPED",
    }
);

words!(
    /// What a count of jobs says.
    Counted {
        /// So many.
        Exact = "EXACT",
        /// So many, or more: the count stopped there.
        AtLeast = "AT_LEAST",
        /// So many, or fewer: some that are not meant may be among them.
        AtMost = "AT_MOST",
    }
);

impl BulkVerb {
    /// The statuses of jobs that this can be done to.
    pub const fn takes(self) -> &'static [JobStatus] {
        match self {
            Self::Cancel => &[JobStatus::Queued, JobStatus::Running],
            Self::Retry => &[JobStatus::Dead, JobStatus::Cancelled],
            Self::Purge => &[JobStatus::Dead],
        }
    }

    /// Why it cannot be done to jobs of this status.
    pub fn unfit_for(self, status: JobStatus) -> Option<String> {
        let takes = self.takes();
        let words: Vec<&str> = takes.iter().map(|status| status.as_str()).collect();
        (!takes.contains(&status))
            .then(|| format!("{self} is for jobs that are {}, not {status}", words.join(" or ")))
    }
}

/// Which jobs a bulk act means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkFilter {
    /// Those that stand so.
    pub status: JobStatus,
    /// Of this stream only.
    pub stream: Option<StreamName>,
    /// DEAD only: with this error code.
    pub code: Option<String>,
    /// QUEUED: only those that were enqueued before this instant; RUNNING: whose attempt began before it; DEAD and CANCELLED: that
    /// ended before it.
    pub before: Timestamp,
}

impl BulkFilter {
    /// Whether a job is meant: one that came, began to run, or ended, at this instant, and died with this code. A workorder's never is: it
    /// belongs to its ticket.
    pub fn means(&self, stream: &StreamName, at: Timestamp, code: Option<&str>) -> bool {
        !stream.is_workorders()
            && at < self.before
            && self.stream.as_ref().is_none_or(|wanted| wanted == stream)
            && self.code.as_deref().is_none_or(|wanted| code == Some(wanted))
    }

    /// Where a walk over these jobs begins.
    pub fn beginning(&self) -> Walk {
        match self.status {
            JobStatus::Queued => Walk::Scheduled { after: None },
            JobStatus::Dead => Walk::Dead { after: None },
            JobStatus::Cancelled => Walk::Cancelled { after: None },
            JobStatus::Running | JobStatus::Succeeded => Walk::Held { after: None },
        }
    }
}

/// Where a walk over jobs is, and over which of them it goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "over", rename_all = "snake_case")]
pub enum Walk {
    /// Over scheduled jobs, by their ids.
    Scheduled {
        /// The last one that was looked at.
        after: Option<JobId>,
    },
    /// Over claimable jobs, in line.
    Ready {
        /// The stream and the place of the last one that was looked at.
        after: Option<(StreamName, i64)>,
    },
    /// Over running jobs, by their ids.
    Held {
        /// The last one that was looked at.
        after: Option<JobId>,
    },
    /// Over dead letters, the oldest death first.
    Dead {
        /// The death that was looked at last.
        after: Option<(Timestamp, JobId)>,
    },
    /// Over cancelled jobs, by their ids.
    Cancelled {
        /// The last one that was looked at.
        after: Option<JobId>,
    },
}

impl Walk {
    /// What follows where this one has come to its end. A scheduled job whose time comes stands behind all that are ready, so
    /// that in this order it is not missed.
    pub fn next(&self) -> Option<Self> {
        matches!(self, Self::Scheduled { .. }).then_some(Self::Ready { after: None })
    }

    /// Whether another walk may find jobs that this one has missed. Those that wait move between tables; of those that began to
    /// run, or ended, before an instant there are only ever fewer.
    pub fn is_walked_again(&self) -> bool {
        matches!(self, Self::Scheduled { .. } | Self::Ready { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_act_has_its_statuses_and_no_job_that_succeeded_is_acted_on() {
        for verb in BulkVerb::ALL {
            let fit: Vec<_> = JobStatus::ALL.iter().filter(|of| verb.unfit_for(**of).is_none()).collect();
            assert_eq!(fit, verb.takes().iter().collect::<Vec<_>>(), "{verb}");
            assert!(verb.unfit_for(JobStatus::Succeeded).is_some());
        }
        let why = BulkVerb::Purge.unfit_for(JobStatus::Cancelled).unwrap();
        assert_eq!(why, "purge is for jobs that are DEAD, not CANCELLED");
    }

    #[test]
    fn a_job_is_meant_only_where_everything_that_is_given_holds() {
        let at = Timestamp::from_millis;
        let mail = StreamName::stored("mail");
        let filter = BulkFilter {
            status: JobStatus::Dead,
            stream: Some(mail.clone()),
            code: Some("E".into()),
            before: at(10),
        };
        assert!(filter.means(&mail, at(9), Some("E")));
        assert!(!filter.means(&mail, at(10), Some("E")), "it died at that instant, not before it");
        assert!(!filter.means(&mail, at(9), Some("F")) && !filter.means(&mail, at(9), None));
        assert!(!filter.means(&StreamName::stored("post"), at(9), Some("E")));
        let all = BulkFilter { stream: None, code: None, ..filter };
        assert!(all.means(&mail, at(9), None));
        assert!(!all.means(&StreamName::stored("diazotroph:x:y"), at(9), None), "it belongs to its ticket");
    }

    #[test]
    fn a_place_of_a_walk_is_kept_as_text_and_read_again() {
        let id = JobId::from_uuid(uuid::Uuid::from_u128(7));
        for walk in [
            Walk::Scheduled { after: None },
            Walk::Ready { after: Some((StreamName::stored("a:b"), -3)) },
            Walk::Held { after: Some(id) },
            Walk::Dead { after: Some((Timestamp::from_millis(1_800_000_000_123), id)) },
            Walk::Cancelled { after: Some(id) },
        ] {
            let text = serde_json::to_string(&walk).unwrap();
            assert_eq!(serde_json::from_str::<Walk>(&text).unwrap(), walk, "{text}");
        }
    }
}

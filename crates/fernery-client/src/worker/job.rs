//! A job as its handler sees it, and the signal by which it is told to stop.

use super::failure::Failure;
use crate::wire::LeasedJob;
use fernery_core::names::is_unprintable;
use fernery_core::{AttemptId, JobId, LeaseToken, Progress, StreamName, Timestamp, words};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Characters of a note that the server takes.
const NOTE_CHARS_MAX: usize = fernery_core::limits::PROGRESS_NOTE_CHARS_MAX;

words!(
    /// Why a running job is told to stop. Later reasons are more urgent than earlier ones.
    StopReason {
        /// Somebody cancelled the job. What the handler answers is still reported, and nothing forces it to end.
        CancelRequested = "cancel_requested",
        /// The worker shuts down and the time to finish is over. What is not finished after the grace is handed back.
        ShuttingDown = "shutting_down",
        /// No heartbeat went through for two thirds of the lease: another worker may get the job soon. An answer within the
        /// grace is still reported, for the server to judge.
        LeaseUnsure = "lease_unsure",
        /// The attempt has reached its time-out: the server ends it now by itself, and may give the job away. A result or a
        /// failure within the grace is still reported, for the server to judge; nothing is handed back.
        TimedOut = "timed_out",
        /// The server refused the lease: the job is somebody else's, or ended. The answer is dropped.
        LeaseLost = "lease_lost",
    }
);

/// A job under a lease. Cheap to clone; clones are the same job.
#[derive(Clone)]
pub struct Job {
    held: Arc<Held>,
}

struct Held {
    leased: LeasedJob,
    /// 0 if it is not to stop, otherwise the index of the reason plus one.
    stop: AtomicU8,
    stopped: Notify,
    progress: Mutex<SentProgress>,
}

/// The progress that the handler reported, and how much of it the server knows.
#[derive(Default)]
struct SentProgress {
    progress: Option<Progress>,
    changes: u64,
    acknowledged: u64,
}

impl Job {
    pub(crate) fn new(leased: LeasedJob) -> Self {
        let held =
            Held { leased, stop: AtomicU8::new(0), stopped: Notify::new(), progress: Mutex::default() };
        Self { held: Arc::new(held) }
    }

    /// The job.
    pub fn id(&self) -> JobId {
        self.held.leased.job_id
    }

    /// This attempt at it.
    pub fn attempt_id(&self) -> AttemptId {
        self.held.leased.attempt_id
    }

    /// Counts every claim of the job, from 1.
    pub fn attempt_no(&self) -> u32 {
        self.held.leased.attempt_no
    }

    /// How often it may fail.
    pub fn max_attempts(&self) -> u32 {
        self.held.leased.max_attempts
    }

    /// The stream that it was claimed from.
    pub fn stream(&self) -> &StreamName {
        &self.held.leased.stream
    }

    /// The id of its message: `<ms>-<n>`.
    pub fn message_id(&self) -> &str {
        &self.held.leased.message_id
    }

    /// When it was claimed, by the server's clock.
    pub(crate) fn claimed_at(&self) -> Timestamp {
        self.held.leased.server_time
    }

    /// How long the lease lasts without a heartbeat. The worker sends the heartbeats.
    pub fn lease_ttl(&self) -> Duration {
        Duration::from_secs(self.held.leased.lease_ttl_seconds.max(1))
    }

    /// How long after the claim the work may go on without a confirmed lease: two thirds of the lease, or until the attempt's
    /// time-out if that is sooner.
    pub fn trusted_for(&self) -> Duration {
        trusted_for(&self.held.leased)
    }

    /// How long after the claim the server ends the attempt, heartbeats or not; `None`: never.
    pub fn time_out(&self) -> Option<Duration> {
        self.held.leased.timeout_at.map(|at| at.since(self.claimed_at()))
    }

    /// The payload as the producer wrote it.
    pub fn raw_payload(&self) -> &RawValue {
        &self.held.leased.payload
    }

    /// The payload. If it is not a `T`, this is a permanent failure with the code `bad_payload`: a retry would not help.
    pub fn payload<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_str(self.raw_payload().get())
            .map_err(|error| Failure::new("bad_payload", error.to_string()).permanent())
    }

    /// Reports progress: `percent` up to 100 and a note of up to 200 characters, sent with the next heartbeat. The percentage
    /// never decreases: a smaller number is ignored.
    pub fn progress(&self, percent: u8, note: Option<&str>) {
        let line = |note: &str| {
            note.chars().map(|c| if is_unprintable(c) { ' ' } else { c }).take(NOTE_CHARS_MAX).collect()
        };
        let note = note.map(line);
        let mut told = self.told();
        let reached = told.progress.as_ref().map_or(0, |before| before.percent());
        let percent = percent.min(100).max(reached);
        told.progress = Progress::new(percent, note).ok().or(told.progress.take());
        told.changes += 1;
    }

    /// Why it is to stop; `None`: it is not to stop.
    pub fn stop_reason(&self) -> Option<StopReason> {
        let place = usize::from(self.held.stop.load(Ordering::Acquire)).checked_sub(1)?;
        StopReason::ALL.get(place).copied()
    }

    /// Waits until it is to stop, for any reason; returns at once if it already is.
    pub async fn cancelled(&self) -> StopReason {
        self.stopped_for(StopReason::CancelRequested).await
    }

    /// Waits until it is to stop for this reason or a more urgent one. A handler that winds down after a cancel can wait for
    /// `stopped_for(StopReason::LeaseUnsure)` to know when it has to be quick.
    pub async fn stopped_for(&self, at_least: StopReason) -> StopReason {
        loop {
            // Made before looking, so that no change falls between the two.
            let changed = self.held.stopped.notified();
            match self.stop_reason() {
                Some(reason) if reason >= at_least => return reason,
                _ => changed.await,
            }
        }
    }

    /// Tells it to stop; returns whether the reason is new.
    pub(crate) fn stop(&self, reason: StopReason) -> bool {
        let place = reason as u8 + 1;
        let news = self.held.stop.fetch_max(place, Ordering::AcqRel) < place;
        if news {
            self.held.stopped.notify_waiters();
        }
        news
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.stop_reason() == Some(StopReason::LeaseLost)
    }

    pub(crate) fn lease_token(&self) -> LeaseToken {
        self.held.leased.lease_token
    }

    pub(crate) fn heartbeat_interval(&self) -> Duration {
        let leased = &self.held.leased;
        match leased.heartbeat_interval_ms {
            0 => Duration::from_secs(leased.heartbeat_interval_seconds.max(1)),
            ms => Duration::from_millis(ms),
        }
    }

    /// Progress that the server does not know yet, and the number to acknowledge it with.
    pub(crate) fn untold_progress(&self) -> Option<(Progress, u64)> {
        let told = self.told();
        if told.acknowledged == told.changes {
            return None;
        }
        told.progress.clone().map(|progress| (progress, told.changes))
    }

    pub(crate) fn progress_told(&self, change: u64) {
        let mut told = self.told();
        told.acknowledged = told.acknowledged.max(change);
    }

    fn told(&self) -> std::sync::MutexGuard<'_, SentProgress> {
        self.held.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long after its claim a job may go on without news of its lease.
pub(crate) fn trusted_for(leased: &LeasedJob) -> Duration {
    let ttl = Duration::from_secs(leased.lease_ttl_seconds.max(1));
    (ttl * 2 / 3).min(leased.lease_expires_at.since(leased.server_time))
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("id", &self.id())
            .field("stream", self.stream())
            .field("attempt_no", &self.attempt_no())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A job with this number, under a lease of one minute.
    pub(crate) fn leased(n: u32) -> LeasedJob {
        let text = format!(
            r#"{{"job_id":"019a8c5e-7b1a-7cc3-98c4-{n:012x}","attempt_id":"019a8c5e-7b1a-7cc3-98c5-{n:012x}",
            "lease_token":"6f1c2b1e-0c37-4f0e-9f0e-{n:012x}","stream":"s","message_id":"1-2","payload":{{"n":{n}}},
            "lease_ttl_seconds":60,"heartbeat_interval_seconds":20,"heartbeat_interval_ms":20000,"attempt_no":1,
            "max_attempts":5,"server_time":"2026-11-15T09:30:00.000Z","lease_expires_at":"2026-11-15T09:31:00.000Z"}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    pub(crate) fn job(n: u32) -> Job {
        Job::new(leased(n))
    }

    #[test]
    fn a_more_urgent_stop_reason_replaces_a_less_urgent_one() {
        let job = job(1);
        assert_eq!(job.stop_reason(), None);
        assert!(job.stop(StopReason::ShuttingDown));
        assert!(!job.stop(StopReason::CancelRequested));
        assert_eq!(job.stop_reason(), Some(StopReason::ShuttingDown));
        assert!(job.stop(StopReason::LeaseLost));
        assert!(job.is_lost());
    }

    #[tokio::test]
    async fn waiting_for_an_urgent_stop_reason_ignores_lesser_ones() {
        let job = job(1);
        let waiting = tokio::spawn({
            let job = job.clone();
            async move { job.stopped_for(StopReason::LeaseUnsure).await }
        });
        tokio::task::yield_now().await;
        job.stop(StopReason::CancelRequested);
        assert_eq!(job.cancelled().await, StopReason::CancelRequested);
        assert!(!waiting.is_finished());
        job.stop(StopReason::LeaseLost);
        assert_eq!(waiting.await.unwrap(), StopReason::LeaseLost);
    }

    #[test]
    fn progress_never_goes_back_and_is_told_once() {
        let job = job(1);
        assert_eq!(job.untold_progress(), None);
        job.progress(40, Some("half of it"));
        job.progress(20, Some(&"ä".repeat(300)));
        let (progress, change) = job.untold_progress().unwrap();
        assert_eq!((progress.percent(), progress.note().unwrap().chars().count()), (40, 200));
        job.progress(255, None);
        job.progress_told(change);
        let (progress, change) = job.untold_progress().unwrap();
        assert_eq!((progress.percent(), progress.note()), (100, None));
        job.progress_told(change);
        assert_eq!(job.untold_progress(), None);
    }

    #[test]
    fn a_note_is_one_line_that_reads_as_it_is_written() {
        let job = job(1);
        job.progress(1, Some("a\nb\u{1b}c\u{202e}d\u{2028}e\u{2066}f\u{feff}g"));
        assert_eq!(job.untold_progress().unwrap().0.note(), Some("a b c d e f g"));
    }

    #[test]
    fn a_payload_of_the_wrong_type_is_a_permanent_failure() {
        let failure = job(1).payload::<Vec<u8>>().unwrap_err();
        let report = failure.report().unwrap();
        assert_eq!((&*report.code, report.retryable), ("bad_payload", false));
    }

    /// A command's guard takes this as the longest silence of its worker.
    #[test]
    fn a_claimed_job_is_trusted_for_two_thirds_of_its_lease_or_until_its_time_out() {
        let mut leased = leased(1);
        assert_eq!(trusted_for(&leased), Duration::from_secs(40));
        leased.lease_expires_at = leased.server_time.after(Duration::from_secs(7));
        assert_eq!(trusted_for(&leased), Duration::from_secs(7));
    }

    #[test]
    fn a_token_is_not_shown() {
        assert!(!format!("{:?}", job(1)).contains("6f1c2b1e"));
    }
}

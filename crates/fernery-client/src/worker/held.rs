//! The jobs that this worker holds, and what the server's answers about their leases mean.
//!
//! Nothing here waits or asks for the time: instants come in, decisions go out.

use super::job::{Job, StopReason};
use crate::wire::{HeartbeatItem, ItemAnswer, ItemOutcome};
use fernery_core::AttemptId;
use std::collections::HashMap;
use std::time::Duration;

/// The state of a held job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Its handler runs.
    Running,
    /// Its report waits to be sent.
    Finished,
    /// Its report has been on its way since then: a heartbeat may be refused just because the report was accepted.
    Sending(Duration),
}

#[derive(Debug)]
struct HeldJob {
    job: Job,
    /// When the last successful call was sent (time since boot): then the lease was certainly valid.
    good_at: Duration,
    /// Never earlier than the server's [`Job::claimed_at`], so that a time-out is never signalled too early.
    claimed_at: Duration,
    /// The attempt's time-out, if it comes before the trust ends; heartbeats do not move it.
    ends_at: Option<Duration>,
    phase: Phase,
}

/// All jobs between claim and settled report.
#[derive(Debug, Default)]
pub(crate) struct HeldJobs {
    jobs: HashMap<AttemptId, HeldJob>,
}

/// A call by this machine's clock. The server acted at some time between the two: a claim may have waited for its job.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Call {
    pub(crate) sent_at: Duration,
    pub(crate) answered_at: Duration,
}

/// One heartbeat to send.
#[derive(Debug)]
pub(crate) struct Beat {
    pub(crate) job: Job,
    /// The number of the progress that it carries.
    progress: Option<u64>,
}

/// What an answer to a heartbeat means.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Renewal {
    /// The lease is valid, and nothing else is new.
    Good,
    /// The lease is valid; the job is to be told that it was cancelled.
    Cancel,
    /// The lease is gone, and nothing may be reported any more.
    Lost,
    /// The answer does not matter: the job is settled, or its report has overtaken the heartbeat.
    Moot,
}

impl HeldJobs {
    /// Adds jobs whose leases this call gave or confirmed.
    pub(crate) fn hold(&mut self, jobs: &[Job], call: Call) {
        let held = |job: &Job| HeldJob {
            job: job.clone(),
            good_at: call.sent_at,
            claimed_at: call.answered_at,
            ends_at: end(job, call.answered_at, job.trusted_for()),
            phase: Phase::Running,
        };
        self.jobs.extend(jobs.iter().map(|job| (job.attempt_id(), held(job))));
    }

    /// How often to heartbeat; `None` with nothing held.
    pub(crate) fn interval(&self) -> Option<Duration> {
        self.jobs.values().map(|held| held.job.heartbeat_interval()).min()
    }

    /// A report of these waits to be sent.
    pub(crate) fn finished(&mut self, attempts: impl Iterator<Item = AttemptId>) {
        self.set(attempts, Phase::Finished);
    }

    /// A report of these is on its way.
    pub(crate) fn sending(&mut self, attempts: impl Iterator<Item = AttemptId>, now: Duration) {
        self.set(attempts, Phase::Sending(now));
    }

    fn set(&mut self, attempts: impl Iterator<Item = AttemptId>, phase: Phase) {
        for attempt in attempts {
            if let Some(held) = self.jobs.get_mut(&attempt) {
                held.phase = phase;
            }
        }
    }

    /// Removes a job; returns whether it was held.
    pub(crate) fn drop_job(&mut self, attempt: AttemptId) -> bool {
        self.jobs.remove(&attempt).is_some()
    }

    /// Every job whose handler runs.
    pub(crate) fn running(&self) -> impl Iterator<Item = &Job> {
        self.jobs.values().filter(|held| held.phase == Phase::Running).map(|held| &held.job)
    }

    /// The heartbeats to send now. A job whose report has been on its way for a whole interval is included: the report may never
    /// arrive.
    pub(crate) fn beats(&self, now: Duration) -> Vec<(Beat, HeartbeatItem)> {
        let alive = self.jobs.values().filter(|held| match held.phase {
            Phase::Running | Phase::Finished => true,
            Phase::Sending(since) => now.saturating_sub(since) >= held.job.heartbeat_interval(),
        });
        let beat = |held: &HeldJob| {
            let (progress, change) = held.job.untold_progress().unzip();
            let (job_id, lease_token) = (held.job.id(), held.job.lease_token());
            let item = HeartbeatItem { job_id, lease_token, progress };
            (Beat { job: held.job.clone(), progress: change }, item)
        };
        alive.map(beat).collect()
    }

    /// Handles the answer to a heartbeat that was sent at `sent_at`.
    pub(crate) fn answered(&mut self, beat: &Beat, sent_at: Duration, answer: &ItemAnswer) -> Renewal {
        let attempt = beat.job.attempt_id();
        let Some(held) = self.jobs.get_mut(&attempt) else { return Renewal::Moot };
        // A conflict also extends the lease; only its progress, which was older than the stored one, was not stored.
        if matches!(answer.outcome, ItemOutcome::Accepted | ItemOutcome::Conflict) {
            if sent_at >= held.good_at {
                held.good_at = sent_at;
                // Both instants are of the server's clock; ours only measures the time since the claim.
                if let Some(expires_at) = answer.lease_expires_at {
                    held.ends_at = Some(held.claimed_at + expires_at.since(held.job.claimed_at()));
                }
            }
            if let Some(change) = beat.progress {
                beat.job.progress_told(change);
            }
            let cancel = answer.cancel_requested == Some(true) && held.phase == Phase::Running;
            return if cancel && beat.job.stop(StopReason::CancelRequested) {
                Renewal::Cancel
            } else {
                Renewal::Good
            };
        }
        // Also while its report is on the way: if that call breaks, the report is not sent again.
        beat.job.stop(StopReason::LeaseLost);
        if matches!(held.phase, Phase::Sending(_)) {
            return Renewal::Moot;
        }
        self.jobs.remove(&attempt);
        Renewal::Lost
    }

    /// Stops running jobs that have reached their time-out, or whose lease has not been confirmed for two thirds of its time.
    /// Returns those that were not stopped before, and how long until the next one.
    pub(crate) fn check(&self, now: Duration) -> (Vec<(Job, StopReason)>, Option<Duration>) {
        let (mut told, mut next) = (Vec::new(), None::<Duration>);
        for held in self.jobs.values().filter(|held| held.phase == Phase::Running) {
            let unsure_at = held.good_at + trust(&held.job);
            let ends = [(Some(unsure_at), StopReason::LeaseUnsure), (held.ends_at, StopReason::TimedOut)];
            for (end_at, reason) in ends.into_iter().filter_map(|(at, reason)| Some((at?, reason))) {
                let left = end_at.saturating_sub(now);
                if !left.is_zero() {
                    next = Some(next.map_or(left, |next| next.min(left)));
                } else if held.job.stop(reason) {
                    told.push((held.job.clone(), reason));
                }
            }
        }
        (told, next)
    }
}

/// How long a lease is trusted without a confirmation.
fn trust(job: &Job) -> Duration {
    job.lease_ttl() * 2 / 3
}

/// The time-out of a job whose lease had `left` at `at`. `None` if the lease is longer than the trust in it: then it is a full
/// lease, or the next heartbeat comes before its end.
fn end(job: &Job, at: Duration, left: Duration) -> Option<Duration> {
    (left < trust(job)).then(|| at + left)
}

#[cfg(test)]
mod tests {
    use super::super::job::tests::job;
    use super::*;

    const START: Duration = Duration::from_secs(1_000);

    fn holding(jobs: &[Job]) -> HeldJobs {
        let mut held = HeldJobs::default();
        held.hold(jobs, Call { sent_at: START, answered_at: START });
        held
    }

    fn answer(outcome: ItemOutcome, cancel: bool) -> ItemAnswer {
        ItemAnswer {
            job_id: job(1).id(),
            attempt_id: None,
            outcome,
            ack: false,
            requeued: None,
            dlq: None,
            lease_expires_at: None,
            server_time: None,
            cancel_requested: Some(cancel),
            errors: Vec::new(),
        }
    }

    fn seconds(n: u64) -> Duration {
        START + Duration::from_secs(n)
    }

    #[test]
    fn a_lease_is_trusted_for_two_thirds_of_its_time() {
        let job = job(1);
        let held = holding(std::slice::from_ref(&job));
        assert_eq!(held.check(seconds(39)).1, Some(Duration::from_secs(1)));
        assert_eq!(job.stop_reason(), None);
        assert_eq!(held.check(seconds(40)).0.len(), 1);
        assert_eq!(job.stop_reason(), Some(StopReason::LeaseUnsure));
        assert!(held.check(seconds(41)).0.is_empty(), "it is told once");
    }

    /// A job whose attempt has `left` seconds, of a lease of one minute.
    fn job_with_seconds(left: u64) -> Job {
        let mut leased = super::super::job::tests::leased(1);
        leased.lease_expires_at = leased.server_time.after(Duration::from_secs(left));
        Job::new(leased)
    }

    #[test]
    fn a_time_out_ends_the_job_whatever_heartbeats_say() {
        let job = job_with_seconds(30);
        let mut held = holding(std::slice::from_ref(&job));
        let (beat, _) = held.beats(START).pop().unwrap();
        let told = ItemAnswer {
            lease_expires_at: Some(job.claimed_at().after(Duration::from_secs(30))),
            ..answer(ItemOutcome::Accepted, false)
        };
        assert_eq!(held.answered(&beat, seconds(10), &answer(ItemOutcome::Accepted, false)), Renewal::Good);
        assert_eq!(held.answered(&beat, seconds(20), &told), Renewal::Good);
        assert_eq!(held.check(seconds(29)).1, Some(Duration::from_secs(1)));
        assert_eq!(held.check(seconds(30)).0.len(), 1);
        assert_eq!(job.stop_reason(), Some(StopReason::TimedOut));
        assert!(held.check(seconds(100)).0.is_empty(), "it is told once");
    }

    #[test]
    fn the_time_that_a_claim_has_waited_is_not_taken_from_the_job() {
        let waited = Call { sent_at: START, answered_at: seconds(10) };
        let job = job_with_seconds(30);
        let mut held = HeldJobs::default();
        held.hold(std::slice::from_ref(&job), waited);
        assert!(held.check(seconds(39)).0.is_empty());
        let (beat, _) = held.beats(START).pop().unwrap();
        let told = ItemAnswer {
            lease_expires_at: Some(job.claimed_at().after(Duration::from_secs(30))),
            ..answer(ItemOutcome::Accepted, false)
        };
        held.answered(&beat, seconds(30), &told);
        assert!(held.check(seconds(39)).0.is_empty());
        held.check(seconds(40));
        assert_eq!(job.stop_reason(), Some(StopReason::TimedOut));

        // The lease itself may be as old as the question.
        let job = job_with_seconds(60);
        let mut held = HeldJobs::default();
        held.hold(std::slice::from_ref(&job), waited);
        held.check(seconds(40));
        assert_eq!(job.stop_reason(), Some(StopReason::LeaseUnsure));
    }

    #[test]
    fn a_heartbeat_tells_of_a_time_out_that_is_now_near() {
        let job = job_with_seconds(60);
        let mut held = holding(std::slice::from_ref(&job));
        let (beat, _) = held.beats(START).pop().unwrap();
        // By whatever clock: a server's that runs ahead of its database's ends no job.
        let near = ItemAnswer {
            lease_expires_at: Some(job.claimed_at().after(Duration::from_secs(23))),
            server_time: Some(job.claimed_at().after(Duration::from_secs(3_600))),
            ..answer(ItemOutcome::Conflict, false)
        };
        held.answered(&beat, seconds(20), &near);
        assert!(held.check(seconds(22)).0.is_empty());
        assert_eq!(held.check(seconds(23)).0.len(), 1);
        assert_eq!(job.stop_reason(), Some(StopReason::TimedOut));
    }

    #[test]
    fn trust_counts_from_before_a_good_heartbeat_was_sent() {
        let job = job(1);
        let mut held = holding(std::slice::from_ref(&job));
        let (beat, _) = held.beats(START).pop().unwrap();
        assert_eq!(held.answered(&beat, seconds(20), &answer(ItemOutcome::Accepted, false)), Renewal::Good);
        assert!(held.check(seconds(59)).0.is_empty());
        assert_eq!(held.check(seconds(60)).0.len(), 1);
    }

    #[test]
    fn an_answer_that_comes_late_does_not_turn_the_clock_back() {
        let job = job(1);
        let mut held = holding(std::slice::from_ref(&job));
        let (beat, _) = held.beats(START).pop().unwrap();
        for sent_at in [30, 10] {
            held.answered(&beat, seconds(sent_at), &answer(ItemOutcome::Accepted, false));
        }
        assert!(held.check(seconds(69)).0.is_empty());
    }

    #[test]
    fn a_refused_renewal_ends_the_job_here() {
        for refusal in [ItemOutcome::Stale, ItemOutcome::Unknown] {
            let job = job(1);
            let mut held = holding(std::slice::from_ref(&job));
            let (beat, _) = held.beats(START).pop().unwrap();
            assert_eq!(held.answered(&beat, seconds(20), &answer(refusal, false)), Renewal::Lost);
            assert!(job.is_lost() && held.jobs.is_empty());
            assert_eq!(held.answered(&beat, seconds(20), &answer(refusal, false)), Renewal::Moot);
        }
    }

    #[test]
    fn a_report_in_flight_gets_no_heartbeat_and_is_not_resent_after_a_refusal() {
        let job = job(1);
        let mut held = holding(std::slice::from_ref(&job));
        let (beat, _) = held.beats(START).pop().unwrap();
        held.sending([job.attempt_id()].into_iter(), START);
        assert!(held.beats(seconds(19)).is_empty());
        assert_eq!(held.beats(seconds(20)).len(), 1, "it seems stuck");
        assert!(held.check(seconds(1_000)).0.is_empty());
        assert_eq!(held.answered(&beat, seconds(20), &answer(ItemOutcome::Stale, false)), Renewal::Moot);
        assert!(job.is_lost() && held.drop_job(job.attempt_id()));
    }

    #[test]
    fn a_finished_job_keeps_its_lease_until_its_report_is_settled() {
        let job = job(1);
        let mut held = holding(std::slice::from_ref(&job));
        held.finished([job.attempt_id()].into_iter());
        assert_eq!(held.beats(START).len(), 1);
        assert_eq!(held.running().count(), 0);
        let (beat, _) = held.beats(START).pop().unwrap();
        assert_eq!(held.answered(&beat, seconds(1), &answer(ItemOutcome::Accepted, true)), Renewal::Good);
        assert_eq!(job.stop_reason(), None, "it is too late to cancel it");
    }

    #[test]
    fn a_cancel_is_told_once_and_the_lease_goes_on() {
        let job = job(1);
        let mut held = holding(std::slice::from_ref(&job));
        let (beat, _) = held.beats(START).pop().unwrap();
        let cancelled = answer(ItemOutcome::Accepted, true);
        assert_eq!(held.answered(&beat, seconds(20), &cancelled), Renewal::Cancel);
        assert_eq!(held.answered(&beat, seconds(40), &cancelled), Renewal::Good);
        assert_eq!(job.stop_reason(), Some(StopReason::CancelRequested));
        assert_eq!(held.beats(START).len(), 1);
    }

    #[test]
    fn progress_travels_with_a_beat_until_one_was_accepted() {
        let job = job(1);
        let mut held = holding(std::slice::from_ref(&job));
        job.progress(30, Some("thinking"));
        let (_, lost) = held.beats(START).pop().unwrap();
        let (beat, again) = held.beats(START).pop().unwrap();
        assert_eq!(lost.progress, again.progress);
        assert_eq!(again.progress.unwrap().percent(), 30);
        held.answered(&beat, seconds(20), &answer(ItemOutcome::Accepted, false));
        assert_eq!(held.beats(START).pop().unwrap().1.progress, None);
    }
}

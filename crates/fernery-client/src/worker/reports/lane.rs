//! The reports of one kind on their way into calls.

use super::super::held::HeldJobs;
use super::super::report::{Item, Kind, Report};
use super::super::shared::Shared;
use crate::client::ClientError;
use crate::wire::ItemAnswer;
use fernery_core::{WorkerId, limits};
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Approximate bytes of reports in one call; the server accepts four times as much.
const CALL_BYTES_MAX: usize = limits::BODY_BYTES_MAX / 4;

/// The reports of one kind.
pub(super) struct Lane {
    pub(super) kind: Kind,
    /// Ready to be sent.
    pub(super) queue: VecDeque<Queued>,
    pub(super) in_flight: usize,
}

pub(super) struct Queued {
    pub(super) report: Report,
    /// It is in the spool, or need not be.
    pub(super) safe: bool,
    /// The server refused a call with this report: send it alone next time.
    pub(super) alone: bool,
}

/// A call that has ended.
pub(super) struct Sent {
    pub(super) kind: Kind,
    pub(super) reports: Vec<Queued>,
    pub(super) answer: Result<Vec<ItemAnswer>, ClientError>,
}

impl Lane {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, queue: VecDeque::new(), in_flight: 0 }
    }

    /// The reports of the next call, and those that are not sent because their lease is lost. The table of held jobs stays
    /// locked from checking each lease to marking it as being sent: after a refused renewal no report leaves (invariant 11).
    pub(super) fn next_call(&mut self, held: &mut HeldJobs, now: Duration) -> (Vec<Queued>, Vec<Queued>) {
        let (mut reports, mut lost, mut bytes) = (Vec::<Queued>::new(), Vec::new(), 0);
        while let Some(next) = self.queue.pop_front() {
            if next.report.is_lost() {
                lost.push(next);
                continue;
            }
            let full = reports.len() >= limits::WORKER_BATCH_MAX || bytes >= CALL_BYTES_MAX;
            let apart = next.alone || reports.first().is_some_and(|first| first.alone);
            if full || (apart && !reports.is_empty()) {
                self.queue.push_front(next);
                break;
            }
            bytes += next.report.weight();
            reports.push(next);
        }
        held.sending(reports.iter().map(|queued| queued.report.proof.attempt_id), now);
        (reports, lost)
    }
}

/// Sends one call.
pub(super) async fn call(shared: Arc<Shared>, kind: Kind, reports: Vec<Queued>) -> Sent {
    #[derive(Serialize)]
    struct Batch<'a> {
        worker_id: &'a WorkerId,
        items: Vec<Item<'a>>,
    }
    let items = reports.iter().map(|queued| queued.report.item()).collect();
    let batch = Batch { worker_id: &shared.worker_id, items };
    let reply = match kind {
        Kind::Complete => shared.client.complete(&batch).await,
        Kind::Fail => shared.client.fail(&batch).await,
        Kind::Release => shared.client.release(&batch).await,
    };
    let jobs = reports.iter().map(|queued| queued.report.proof.job_id);
    let answer = reply.and_then(|reply| reply.items_for(jobs));
    Sent { kind, reports, answer }
}

/// Whether the server refused the content of the call, and not the caller or the time.
pub(super) fn is_about_the_reports(error: &ClientError) -> bool {
    match error {
        ClientError::Refused { problem, .. } => matches!(problem.status, 400 | 413 | 422),
        ClientError::BadRequest(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::job::StopReason;
    use super::super::super::job::tests::job;
    use super::super::super::report::End;
    use super::*;

    fn lane(results: &[&str]) -> Lane {
        let mut lane = Lane::new(Kind::Complete);
        for (n, result) in (1..).zip(results) {
            let end = End::Completed(serde_json::value::to_raw_value(result).unwrap());
            lane.queue.push_back(Queued { report: Report::of(&job(n), end), safe: true, alone: false });
        }
        lane
    }

    fn sizes(lane: &mut Lane) -> Vec<usize> {
        let mut sizes = Vec::new();
        loop {
            let (call, lost) = lane.next_call(&mut HeldJobs::default(), Duration::ZERO);
            assert!(lost.is_empty());
            match call.len() {
                0 => return sizes,
                n => sizes.push(n),
            }
        }
    }

    #[test]
    fn a_call_is_cut_by_count_and_by_bytes() {
        assert_eq!(sizes(&mut lane(&["x"; 2_500])), [1_000, 1_000, 500]);
        let large = "x".repeat(1 << 20);
        assert_eq!(sizes(&mut lane(&[&*large; 10])), [4, 4, 2]);
    }

    #[test]
    fn reports_of_a_refused_call_are_sent_alone() {
        let mut lane = lane(&["x"; 5]);
        lane.queue[1].alone = true;
        lane.queue[2].alone = true;
        assert_eq!(sizes(&mut lane), [1, 1, 1, 2]);
    }

    #[test]
    fn a_report_under_a_lost_lease_is_not_sent() {
        let mut lane = lane(&["x"; 3]);
        lane.queue[1].report.job.as_ref().unwrap().stop(StopReason::LeaseLost);
        let (call, lost) = lane.next_call(&mut HeldJobs::default(), Duration::ZERO);
        assert_eq!((call.len(), lost.len()), (2, 1));
        assert_eq!(lost[0].report.proof.job_id, job(2).id());
    }
}

//! Brings every report to the server: first into the spool, then into a call, until it is answered.
//!
//! One task owns the spool and all reports on their way. Reports that come in while a write or a call is under way share
//! the next one. A report leaves by an answer, by the loss of its lease, or by staying in the spool for the next process.

mod lane;
mod writing;

use super::event::WorkerEvent;
use super::report::{Kind, Report};
use super::shared::Shared;
use super::spool::Spool;
use crate::backoff::Backoff;
use crate::client::ClientError;
use crate::wire::{ItemAnswer, ItemOutcome};
use fernery_core::{AttemptId, limits};
use fernery_door as door;
use lane::{Lane, Queued, Sent, call, is_about_the_reports};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use writing::SpoolState;

/// Calls of one kind in flight at once.
const CALLS_MAX: usize = 4;

/// Whether jobs may be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    Open,
    /// Not now: reports do not go through, or those of an earlier run are still to be sent.
    Waiting,
    /// No: finished work could not be kept. Jobs that an open claim still returns are not started either.
    Closed,
}

pub(crate) struct Reporter {
    shared: Arc<Shared>,
    incoming: UnboundedReceiver<Report>,
    gate: watch::Sender<Gate>,
    /// The deadline once the worker ends; `None` while it runs.
    until: watch::Receiver<Option<Instant>>,
    /// With more reports of one kind than this, another call is opened.
    batch: usize,
    spool: SpoolState,
    /// The last write to the spool failed.
    spool_fails: bool,
    /// When the spool is tried again.
    spool_again_at: Option<Instant>,
    /// Reports to write to the spool before they are sent.
    fresh: Vec<Report>,
    /// Attempts that the spool may forget.
    settled: Vec<AttemptId>,
    lanes: [Lane; 3],
    calls: JoinSet<Sent>,
    /// Reports in flight that are not in the spool.
    unsafe_in_flight: HashMap<AttemptId, Report>,
    backoff: Backoff,
    calls_again_at: Option<Instant>,
    /// The server refuses this caller. The next claim shows whether that is final.
    unwelcome: bool,
    /// Reports that are not settled.
    unsettled: usize,
    /// How many of them an earlier run left.
    leftovers: usize,
}

impl Reporter {
    pub(crate) fn new(
        shared: Arc<Shared>,
        incoming: UnboundedReceiver<Report>,
        gate: watch::Sender<Gate>,
        until: watch::Receiver<Option<Instant>>,
        batch: usize,
        spool: Option<(Spool, Vec<Report>)>,
    ) -> Self {
        let (spool, leftovers) = match spool {
            Some((spool, leftovers)) => (SpoolState::Idle(Box::new(spool)), leftovers),
            None => (SpoolState::None, Vec::new()),
        };
        let mut reporter = Self {
            shared,
            incoming,
            gate,
            until,
            batch,
            spool,
            spool_fails: false,
            spool_again_at: None,
            fresh: Vec::new(),
            settled: Vec::new(),
            lanes: Kind::ALL.map(Lane::new),
            calls: JoinSet::new(),
            unsafe_in_flight: HashMap::new(),
            backoff: Backoff::default(),
            calls_again_at: None,
            unwelcome: false,
            unsettled: leftovers.len(),
            leftovers: leftovers.len(),
        };
        reporter.enqueue(leftovers, true);
        reporter.move_gate();
        reporter
    }

    /// Runs until no report can come in and none is left, or until the deadline.
    pub(crate) async fn run(mut self) {
        let (mut closed, mut arrived) = (false, Vec::new());
        loop {
            self.start_writing();
            self.start_calls();
            self.move_gate();
            let until = *self.until.borrow_and_update();
            // Once a deadline is set, all handlers have ended, except one that could not be stopped and keeps the channel open.
            if (closed || until.is_some()) && self.incoming.is_empty() && self.is_done() {
                break;
            }
            tokio::select! {
                count = self.incoming.recv_many(&mut arrived, limits::WORKER_BATCH_MAX), if !closed => {
                    closed = count == 0;
                    // Handlers that end together are reported together.
                    tokio::task::yield_now().await;
                    while let Ok(report) = self.incoming.try_recv() {
                        arrived.push(report);
                    }
                    self.take(std::mem::take(&mut arrived));
                }
                written = self.spool.written() => self.written(written),
                Some(Ok(sent)) = self.calls.join_next() => self.sent(sent),
                () = at(self.calls_again_at) => self.calls_again_at = None,
                () = at(self.spool_again_at) => self.try_spool_again(),
                () = at(until) => break,
                _ = self.until.changed(), if until.is_none() => {}
            }
        }
        self.keep_the_rest().await;
    }

    /// The deadline has passed: unsettled reports stay in the spool, if there is one, for the next process.
    async fn keep_the_rest(mut self) {
        // Later reports are refused.
        self.incoming.close();
        let mut arrived = Vec::new();
        while let Ok(report) = self.incoming.try_recv() {
            arrived.push(report);
        }
        self.take(arrived);
        while let Some(Ok(sent)) = self.calls.try_join_next() {
            self.sent(sent);
        }
        // Calls in flight may arrive or not; the next process sends their reports again.
        self.calls.shutdown().await;
        if let SpoolState::Writing(_) = self.spool {
            let written = self.spool.written().await;
            self.written(written);
        }
        let queued = self.lanes.iter().flat_map(|lane| &lane.queue);
        let queued = queued.filter(|queued| !queued.safe).map(|queued| queued.report.clone());
        let lacking =
            queued.chain(std::mem::take(&mut self.fresh)).chain(self.unsafe_in_flight.into_values());
        let lacking: Vec<Report> = lacking.filter(|report| report.is_final() && !report.is_lost()).collect();
        let mut unkept = lacking.len();
        if self.spool.is_idle() && !(lacking.is_empty() && self.settled.is_empty()) {
            self.spool.write(self.settled, lacking, unkept > 0);
            match self.spool.written().await.outcome {
                Ok(()) => unkept = 0,
                Err(error) => self.shared.warn(WorkerEvent::SpoolFailed { why: error.to_string() }),
            }
        }
        self.shared.tally.unreported.add(self.unsettled);
        self.shared.tally.unkept.add(unkept);
    }

    /// Takes reports from handlers: first into the spool, if there is one and it can be written.
    fn take(&mut self, reports: Vec<Report>) {
        self.unsettled += reports.len();
        self.shared.held().finished(reports.iter().map(|report| report.proof.attempt_id));
        match self.spool {
            SpoolState::None => self.enqueue(reports, true),
            _ if self.spool_fails => self.enqueue(reports, false),
            _ => {
                let (fresh, ready): (Vec<_>, Vec<_>) = reports.into_iter().partition(Report::is_final);
                self.fresh.extend(fresh);
                self.enqueue(ready, true);
            }
        }
    }

    fn enqueue(&mut self, reports: Vec<Report>, safe: bool) {
        for report in reports {
            self.lane(report.kind()).queue.push_back(Queued { report, safe, alone: false });
        }
    }

    fn lane(&mut self, kind: Kind) -> &mut Lane {
        &mut self.lanes[kind as usize]
    }

    fn start_calls(&mut self) {
        if self.calls_again_at.is_some() {
            return;
        }
        for place in 0..self.lanes.len() {
            loop {
                let lane = &self.lanes[place];
                let calls_max = if self.backoff.is_failing() { 1 } else { CALLS_MAX };
                let open = match lane.in_flight {
                    0 => !lane.queue.is_empty(),
                    n => n < calls_max && lane.queue.len() >= self.batch,
                };
                if !open || !self.start_call(place) {
                    break;
                }
            }
        }
    }

    /// Opens one call with the waiting reports of a lane; returns whether it did.
    fn start_call(&mut self, place: usize) -> bool {
        let lane = &mut self.lanes[place];
        let (reports, lost) = lane.next_call(&mut self.shared.held(), door::since_boot());
        let open = !reports.is_empty();
        if open {
            lane.in_flight += 1;
            let lacking = reports.iter().filter(|queued| !queued.safe).map(|queued| &queued.report);
            self.unsafe_in_flight.extend(lacking.map(|report| (report.proof.attempt_id, report.clone())));
            self.calls.spawn(call(self.shared.clone(), lane.kind, reports));
        }
        self.lose(&lost);
        open
    }

    /// Drops reports whose lease the server has refused.
    fn lose(&mut self, reports: &[Queued]) {
        for queued in reports {
            // The refusal was announced when it was received, unless the report was being sent at that time.
            if let Some(job) = &queued.report.job
                && self.shared.held().drop_job(job.attempt_id())
            {
                self.shared.tally.lost.add(1);
                self.shared.warn(WorkerEvent::LeaseLost { job: job.clone() });
            }
        }
        self.forget(reports);
    }

    fn sent(&mut self, sent: Sent) {
        let Sent { kind, reports, answer } = sent;
        self.lane(kind).in_flight -= 1;
        for queued in &reports {
            self.unsafe_in_flight.remove(&queued.report.proof.attempt_id);
        }
        match answer {
            Ok(answers) => {
                if self.backoff.is_failing() {
                    self.backoff.reset();
                    self.unwelcome = false;
                    self.calls_again_at = None;
                    self.shared.tell(|| WorkerEvent::Reconnected { call: "report" });
                }
                let (reports, answers) = self.without_unfit(kind, reports, answers);
                self.settle(kind, &reports, answers);
            }
            Err(error) if is_about_the_reports(&error) => self.refused(reports, error),
            Err(error) => {
                let after = self.backoff.next(error.retry_after());
                self.unwelcome = !error.is_transient();
                self.calls_again_at = Some(Instant::now() + after);
                self.shared.warn(WorkerEvent::Reconnecting { call: "report", error, after });
                self.requeue(reports);
            }
        }
    }

    fn requeue(&mut self, reports: Vec<Queued>) {
        self.shared.held().finished(reports.iter().map(|queued| queued.report.proof.attempt_id));
        for queued in reports.into_iter().rev() {
            self.lane(queued.report.kind()).queue.push_front(queued);
        }
    }

    /// Turns results that the server's membrane refused into failures that say why; the other reports are answered.
    fn without_unfit(
        &mut self,
        kind: Kind,
        reports: Vec<Queued>,
        answers: Vec<ItemAnswer>,
    ) -> (Vec<Queued>, Vec<ItemAnswer>) {
        let unfit = |answer: &ItemAnswer| kind == Kind::Complete && answer.outcome == ItemOutcome::Unfit;
        if !answers.iter().any(unfit) {
            return (reports, answers);
        }
        let (unfit, fit): (Vec<_>, Vec<_>) =
            reports.into_iter().zip(answers).partition(|(_, answer)| unfit(answer));
        let failed = |(queued, answer): (Queued, ItemAnswer)| {
            let wrong: Vec<_> =
                answer.errors.iter().map(|e| format!("{}: {}", e.pointer, e.detail)).collect();
            let why = format!("the result is not an output bundle: {}", wrong.join("; "));
            Queued { report: queued.report.refused(why), ..queued }
        };
        self.requeue(unfit.into_iter().map(failed).collect());
        fit.into_iter().unzip()
    }

    fn settle(&mut self, kind: Kind, reports: &[Queued], answers: Vec<ItemAnswer>) {
        let taken = |a: &&ItemAnswer| matches!(a.outcome, ItemOutcome::Accepted | ItemOutcome::Duplicate);
        let accepted = answers.iter().filter(taken).count();
        let tally = &self.shared.tally;
        match kind {
            Kind::Complete => tally.succeeded.add(accepted),
            Kind::Fail => tally.failed.add(accepted),
            Kind::Release => tally.released.add(accepted),
        }
        tally.lost.add(answers.len() - accepted);
        self.forget(reports);
        for answer in answers {
            self.shared.tell(|| WorkerEvent::Reported { answer });
        }
    }

    /// Forgets reports that are settled.
    fn forget(&mut self, reports: &[Queued]) {
        if reports.is_empty() {
            return;
        }
        let mut held = self.shared.held();
        for queued in reports {
            held.drop_job(queued.report.proof.attempt_id);
        }
        drop(held);
        self.unsettled -= reports.len();
        if self.unsettled == 0 {
            // No report is left to probe the server, so let the next claim do it.
            self.backoff.reset();
            self.calls_again_at = None;
        }
        self.leftovers -= reports.iter().filter(|queued| queued.report.job.is_none()).count();
        if !matches!(self.spool, SpoolState::None) {
            self.settled.extend(reports.iter().map(|queued| queued.report.proof.attempt_id));
        }
    }

    /// The server refused a call because of its content. One bad report must not hold up the others, so each is sent alone. A
    /// result that is refused alone becomes a failure that says why.
    fn refused(&mut self, reports: Vec<Queued>, error: ClientError) {
        let [one] = &reports[..] else {
            let alone = |queued: Queued| Queued { alone: true, ..queued };
            return self.requeue(reports.into_iter().map(alone).collect());
        };
        if one.report.kind() == Kind::Complete {
            let failed =
                |queued: Queued| Queued { report: queued.report.refused(error.to_string()), ..queued };
            return self.requeue(reports.into_iter().map(failed).collect());
        }
        let job_id = one.report.proof.job_id;
        self.shared.warn(WorkerEvent::ReportRefused { job_id, error });
        self.shared.tally.lost.add(1);
        self.forget(&reports);
    }

    fn move_gate(&self) {
        let gate = if self.spool_fails {
            Gate::Closed
        } else if !self.unwelcome && (self.backoff.is_failing() || self.leftovers > 0) {
            Gate::Waiting
        } else {
            Gate::Open
        };
        self.gate.send_if_modified(|was| std::mem::replace(was, gate) != gate);
    }

    fn is_done(&self) -> bool {
        let written = !matches!(self.spool, SpoolState::Writing(_)) && self.settled.is_empty();
        self.unsettled == 0 && (written || self.spool_fails)
    }
}

/// Waits until this instant; forever without one.
async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

//! One run of a worker: from the first claim to the last report.
//!
//! This task alone decides about claims and starts handlers, so the number of free places needs no lock. Leases are kept
//! by `beats`, reports sent by `reports`.

use super::claims::{self, Claimed, Jobs};
use super::event::{Summary, WorkerError, WorkerEvent};
use super::job::{Job, StopReason};
use super::report::{End, Report};
use super::reports::{Gate, Reporter};
use super::run::{self, Handler};
use super::shared::Shared;
use super::spool::Spool;
use super::{Worker, beats, checked, worker_id};
use crate::backoff::{Backoff, later};
use crate::client::ClientError;
use fernery_core::{StreamName, limits};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// Claims in flight at once if there is a backlog: the server serves many claims in one commit. With 4 claims of 100 jobs
/// the loop reached 0.6 to 0.8 of what 16 bare connections did on SQLite.
const CLAIMS_MAX: usize = 16;
/// After a claim that returned nothing faster than this, the loop pauses: a server that shuts down answers at once.
const EMPTY_PAUSE: Duration = Duration::from_millis(100);
/// How long the next claim is delayed if few places are free: handlers often end together.
const LINGER: Duration = Duration::from_millis(1);
/// How long an open claim may still answer after the shutdown begins. Then the connection is closed, and the server keeps the
/// jobs that it would have given.
const FAREWELL: Duration = Duration::from_secs(1);
/// How long after the grace a dropped handler may take to let go.
const LET_GO: Duration = Duration::from_secs(1);

pub(super) struct Shift {
    shared: Arc<Shared>,
    streams: Arc<[StreamName]>,
    handlers: HashMap<StreamName, Handler>,
    concurrency: usize,
    batch: usize,
    claim_wait: Duration,
    drain: Duration,
    settle: Duration,
    reports: UnboundedSender<Report>,
    /// Whether reports go through, so that jobs may be claimed.
    gate: watch::Receiver<Gate>,
    settle_until: watch::Sender<Option<Instant>>,
    /// The reporter and the keeper of the leases; they end with this run, however it ends.
    reporter: JoinSet<()>,
    keeper: JoinSet<()>,
    claims: JoinSet<Claimed>,
    /// Whether claims that have no answer yet are to end.
    hang_up: watch::Sender<bool>,
    /// How many claims may be in flight: it grows while they return jobs, and falls to one waiting claim when there are none.
    claims_max: usize,
    /// Places that claims in flight hold.
    reserved: usize,
    running: JoinSet<()>,
    backoff: Backoff,
    /// No claim before this instant.
    claim_at: Option<Instant>,
}

impl Shift {
    /// Checks the set-up, opens the spool and starts what accompanies the loop.
    pub(super) fn begin(worker: Worker) -> Result<Self, WorkerError> {
        let setup = |why: String| WorkerError::Setup(why);
        let batch = worker.batch.unwrap_or(100);
        if !(1..=limits::WORKER_BATCH_MAX).contains(&batch) {
            return Err(setup(format!("a claim asks for 1 to {} jobs", limits::WORKER_BATCH_MAX)));
        }
        if worker.concurrency == 0 {
            return Err(setup("a worker runs at least one handler at a time".into()));
        }
        let handlers = checked(worker.handlers)?;
        let shared = Shared::new(worker.client, worker_id(worker.id)?, worker.observer, worker.grace);
        let shared = Arc::new(shared);
        let spool = match worker.spool {
            None => None,
            Some(path) => {
                let opened = Spool::open(&path).map_err(|why| WorkerError::Spool { path, why })?;
                if let Some((entries, path)) = opened.damaged {
                    shared.warn(WorkerEvent::SpoolDamaged { entries, path });
                }
                if !opened.leftovers.is_empty() {
                    let reports = opened.leftovers.len();
                    shared.tell(|| WorkerEvent::LeftoversFound { reports });
                }
                Some((opened.spool, opened.leftovers))
            }
        };
        let (reports, incoming) = mpsc::unbounded_channel();
        let (gate_mover, gate) = watch::channel(Gate::Open);
        let (settle_until, until) = watch::channel(None);
        let reporter = Reporter::new(shared.clone(), incoming, gate_mover, until, batch, spool);
        let (mut reporter_task, mut keeper) = (JoinSet::new(), JoinSet::new());
        reporter_task.spawn(reporter.run());
        keeper.spawn(beats::keep_leases(shared.clone()));
        Ok(Self {
            streams: handlers.iter().map(|(stream, _)| stream.clone()).collect(),
            handlers: handlers.into_iter().collect(),
            concurrency: worker.concurrency,
            batch,
            claim_wait: worker.claim_wait.min(limits::CLAIM_WAIT_MAX),
            drain: worker.drain,
            settle: worker.settle,
            shared,
            reports,
            gate,
            settle_until,
            reporter: reporter_task,
            keeper,
            claims: JoinSet::new(),
            hang_up: watch::channel(false).0,
            claims_max: 1,
            reserved: 0,
            running: JoinSet::new(),
            backoff: Backoff::default(),
            claim_at: None,
        })
    }

    pub(super) async fn run(mut self, shutdown: impl Future) -> Result<Summary, WorkerError> {
        tokio::pin!(shutdown);
        let refused = self.work(shutdown).await;
        let running = self.running.len();
        self.shared.tell(|| WorkerEvent::Draining { running });
        self.finish_handlers().await;
        let summary = self.finish_reports().await;
        match refused {
            None => Ok(summary),
            Some(error) => Err(WorkerError::Refused { error, summary: Box::new(summary) }),
        }
    }

    /// Claims and starts jobs until the shutdown, or until the server refuses the claim.
    async fn work(&mut self, mut shutdown: std::pin::Pin<&mut impl Future>) -> Option<ClientError> {
        loop {
            self.open_claims();
            tokio::select! {
                biased;
                _ = &mut shutdown => return None,
                Some(Ok(claimed)) = self.claims.join_next() => {
                    if let Err(error) = self.claimed(claimed) {
                        return Some(error);
                    }
                }
                Some(_) = self.running.join_next() => self.reap(),
                () = at(self.claim_at) => self.claim_at = None,
                // Closed only if the reporter has panicked; that is passed on when it is joined.
                changed = self.gate.changed() => if changed.is_err() { return None },
            }
        }
    }

    fn free(&self) -> usize {
        self.concurrency.saturating_sub(self.running.len() + self.reserved)
    }

    /// Opens claims for the free places: always one, more only for full batches.
    fn open_claims(&mut self) {
        if *self.gate.borrow_and_update() != Gate::Open {
            return;
        }
        let claims_max = if self.backoff.is_failing() { 1 } else { self.claims_max };
        loop {
            let (free, in_flight) = (self.free(), self.claims.len());
            let asked = free.min(self.batch);
            let open = match in_flight {
                0 => asked > 0,
                n => n < claims_max && asked == self.batch,
            };
            if !open {
                return;
            }
            if let Some(claim_at) = self.claim_at
                && claim_at > Instant::now()
            {
                return;
            }
            self.reserved += asked;
            let (shared, streams) = (self.shared.clone(), self.streams.clone());
            let hung_up = self.hang_up.subscribe();
            self.claims.spawn(claims::claim(shared, streams, asked, self.claim_wait, hung_up));
        }
    }

    /// Counts the handlers that have ended. Where few places are free, the next claim waits a moment for more.
    fn reap(&mut self) {
        while self.running.try_join_next().is_some() {}
        let wanted = self.batch.min(self.concurrency);
        if self.claims.is_empty() && self.claim_at.is_none() && self.free() * 2 < wanted {
            self.claim_at = Some(Instant::now() + LINGER);
        }
    }

    fn claimed(&mut self, claimed: Claimed) -> Result<(), ClientError> {
        self.reserved -= claimed.asked;
        match claimed.outcome {
            Ok(jobs) => {
                if self.backoff.is_failing() {
                    self.backoff.reset();
                    self.shared.tell(|| WorkerEvent::Reconnected { call: "claim" });
                }
                self.claims_max = if jobs.is_empty() { 1 } else { CLAIMS_MAX.min(self.claims_max * 2) };
                if jobs.is_empty() && claimed.took < EMPTY_PAUSE && self.claim_at.is_none() {
                    self.claim_at = Some(Instant::now() + EMPTY_PAUSE);
                }
                if *self.gate.borrow() == Gate::Closed {
                    self.hand_back_all(jobs);
                } else {
                    self.start(jobs);
                }
                Ok(())
            }
            Err(error) if claims::is_final(&error) => Err(error),
            Err(error) => {
                let after = self.backoff.next(error.retry_after());
                self.claim_at = Some(Instant::now() + after);
                self.shared.warn(WorkerEvent::Reconnecting { call: "claim", error, after });
                Ok(())
            }
        }
    }

    fn start(&mut self, claimed: Jobs) {
        let Jobs { jobs, call, unsure } = claimed;
        self.shared.tally.claimed.add(jobs.len() + unsure.len());
        self.hand_back(unsure);
        if jobs.is_empty() {
            return;
        }
        self.shared.held().hold(&jobs, call);
        // One of them may have the nearest time-out of all.
        self.shared.held_changed.notify_waiters();
        for job in jobs {
            let Some(handler) = self.handlers.get(job.stream()).cloned() else {
                // A stream that was not asked for: another worker may handle it.
                self.hand_back(vec![job]);
                continue;
            };
            self.shared.tell(|| WorkerEvent::Claimed { job: job.clone() });
            self.running.spawn(run::run(self.shared.clone(), handler, job, self.reports.clone()));
        }
    }

    /// Hands back jobs that were claimed and are not started.
    fn hand_back(&self, jobs: Vec<Job>) {
        for job in jobs {
            let _ = self.reports.send(Report::of(&job, End::Released));
        }
    }

    /// Hands back everything that a claim returned.
    fn hand_back_all(&self, claimed: Jobs) {
        self.shared.tally.claimed.add(claimed.jobs.len() + claimed.unsure.len());
        self.hand_back(claimed.jobs);
        self.hand_back(claimed.unsure);
    }

    /// Lets handlers finish within the drain time, then tells them to stop, then drops them. Jobs that an open claim still
    /// returns are handed back.
    async fn finish_handlers(&mut self) {
        let within = later;
        let (drained_at, farewell_at) = (within(self.drain), within(FAREWELL));
        let gone_at = within(self.drain.saturating_add(self.shared.grace).saturating_add(LET_GO));
        let (mut told, mut hung_up) = (false, false);
        loop {
            let (claiming, running) = (!self.claims.is_empty(), !self.running.is_empty());
            tokio::select! {
                Some(claimed) = self.claims.join_next() => {
                    if let Ok(Claimed { outcome: Ok(jobs), .. }) = claimed {
                        self.hand_back_all(jobs);
                    }
                }
                Some(_) = self.running.join_next() => {}
                () = sleep_until(farewell_at), if claiming && !hung_up => {
                    hung_up = true;
                    self.hang_up.send_replace(true);
                }
                () = sleep_until(drained_at), if running && !told => {
                    told = true;
                    self.tell_to_stop();
                }
                () = sleep_until(gone_at), if running && told => {
                    self.shared.tally.abandoned.add(self.running.len());
                    self.running.detach_all();
                }
                else => return,
            }
        }
    }

    fn tell_to_stop(&self) {
        let running: Vec<Job> = self.shared.held().running().cloned().collect();
        for job in running {
            if job.stop(StopReason::ShuttingDown) {
                self.shared.tell(|| WorkerEvent::Stopping { job, reason: StopReason::ShuttingDown });
            }
        }
    }

    /// Sends the last reports, as far as time allows.
    async fn finish_reports(self) -> Summary {
        let Self { shared, reports, settle, settle_until, mut reporter, keeper, .. } = self;
        drop(reports);
        settle_until.send_replace(Some(later(settle)));
        if let Some(Err(error)) = reporter.join_next().await
            && let Ok(panic) = error.try_into_panic()
        {
            std::panic::resume_unwind(panic);
        }
        // Leases are kept until the last report is settled.
        drop(keeper);
        shared.tally.summary()
    }
}

async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

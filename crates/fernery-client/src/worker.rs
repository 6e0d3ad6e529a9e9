//! The worker loop: claims jobs, runs a handler for each, renews their leases, and reports every end; the server counts
//! each end exactly once.
//!
//! The server is authoritative; see the page of `fernery_core::job::lease`. What this side promises:
//!
//! | rule | |
//! |---|---|
//! | no hoarding | a claim asks for no more jobs than handlers are free; a claim that waits holds their places |
//! | leases are kept | one array call each interval renews all leases, also of jobs whose report is still on its way |
//! | a refused renewal ends the job | the handler is told [`StopReason::LeaseLost`], its answer is dropped, nothing is written under that lease any more |
//! | silence ends the trust | no good heartbeat for two thirds of the lease, counted from before the last good call was sent and through a machine's sleep: [`StopReason::LeaseUnsure`]; an answer within the grace is still reported, for the server to judge |
//! | a time-out is the end | the attempt's time-out, counted from the answer to the claim: [`StopReason::TimedOut`], whatever heartbeats say; it is not handed back, so that the attempt counts |
//! | a cancel is a wish | [`StopReason::CancelRequested`]; the handler's answer is reported whatever it is |
//! | finished work survives | with a spool, a report is on disk before it is first sent and leaves it only when the server has answered; leftovers are sent before anything is claimed |
//! | a broken spool stops the intake | reports are still sent from memory; nothing is claimed until it can be written again |
//! | a panic is a failure | code `panicked`; the worker goes on |
//! | patience without end | transport errors, 5xx and 429 are tried again with back-off and jitter, `Retry-After` respected; a refused claim (401, 403 and the like) ends the run |
//! | an orderly end | claims stop at once; what runs may finish within the drain time; then it is told [`StopReason::ShuttingDown`], and what does not end within the grace is handed back; reports are brought to the server or stay in the spool |
//!
//! A handler is dropped where it waits. One that blocks its thread cannot be stopped by anybody; give such work to
//! `tokio::task::spawn_blocking` or to a process, and watch [`Job::cancelled`].

mod beats;
mod claims;
mod event;
mod failure;
mod held;
mod job;
mod report;
mod reports;
mod run;
mod shared;
mod shift;
mod spool;

pub use event::{JobEnding, Summary, WorkerError, WorkerEvent};
pub use failure::Failure;
pub use job::{Job, StopReason};
pub use spool::{Gathered, gather_reports};

use crate::client::Client;
use fernery_core::{StreamName, WorkerId, limits};
use run::{Answer, Handler};
use serde::Serialize;
use shared::Observer;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The settings of a worker. [`Worker::run_until`] starts it.
#[must_use = "a worker works only while it runs"]
pub struct Worker {
    client: Client,
    id: Option<String>,
    concurrency: usize,
    batch: Option<usize>,
    spool: Option<PathBuf>,
    drain: Duration,
    grace: Duration,
    settle: Duration,
    claim_wait: Duration,
    handlers: Vec<(String, Handler)>,
    observer: Option<Observer>,
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let streams: Vec<_> = self.handlers.iter().map(|(stream, _)| stream).collect();
        f.debug_struct("Worker").field("id", &self.id).field("streams", &streams).finish_non_exhaustive()
    }
}

impl Worker {
    /// A worker of one job at a time, without a spool.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            id: None,
            concurrency: 1,
            batch: None,
            spool: None,
            drain: Duration::from_secs(30),
            grace: Duration::from_secs(5),
            settle: Duration::from_secs(10),
            claim_wait: Duration::from_secs(10),
            handlers: Vec::new(),
            observer: None,
        }
    }

    /// Its name, 1 to 200 characters; by default host and process id. It is recorded with each attempt.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// How many handlers run at once.
    pub fn concurrency(mut self, handlers: usize) -> Self {
        self.concurrency = handlers;
        self
    }

    /// How many jobs one claim asks for at most: 1 to 1000, by default 100. If more handlers are free and jobs wait, several
    /// claims are in flight.
    pub fn batch(mut self, jobs: usize) -> Self {
        self.batch = Some(jobs);
        self
    }

    /// The directory that keeps reports until the server has answered them. Every running worker needs its own, for one server.
    /// Without a spool, reports are in memory only.
    pub fn spool(mut self, directory: impl Into<PathBuf>) -> Self {
        self.spool = Some(directory.into());
        self
    }

    /// How long running handlers may go on after the shutdown begins; by default 30 seconds.
    pub fn drain(mut self, time: Duration) -> Self {
        self.drain = time;
        self
    }

    /// How long a handler that was told to stop may go on before it is dropped; by default 5 seconds.
    pub fn grace(mut self, time: Duration) -> Self {
        self.grace = time;
        self
    }

    /// How long the last reports are tried after all handlers have ended; by default 10 seconds.
    pub fn settle(mut self, time: Duration) -> Self {
        self.settle = time;
        self
    }

    /// How long a claim waits at the server for a job, up to 30 seconds; by default 10 seconds.
    pub fn claim_wait(mut self, time: Duration) -> Self {
        self.claim_wait = time;
        self
    }

    /// Sets the handler for the jobs of a stream. Streams that are named earlier are claimed first.
    ///
    /// The handler returns any result that serializes to JSON, or a [`Failure`]; `?` turns every error into one.
    pub fn handle<F, Fut, R>(mut self, stream: impl Into<String>, handler: F) -> Self
    where
        F: Fn(Job) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Failure>> + Send + 'static,
        R: Serialize,
    {
        let handler: Handler = Arc::new(move |job| {
            let work = handler(job);
            Box::pin(async move { written(work.await) })
        });
        self.handlers.push((stream.into(), handler));
        self
    }

    /// Calls `observer` for every event. It must not block: move slow work elsewhere.
    pub fn on_event(mut self, observer: impl Fn(WorkerEvent) + Send + Sync + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Works until `shutdown` is ready, then drains.
    pub async fn run_until(self, shutdown: impl Future) -> Result<Summary, WorkerError> {
        shift::Shift::begin(self)?.run(shutdown).await
    }

    /// Works until the server refuses it.
    pub async fn run(self) -> Result<Summary, WorkerError> {
        self.run_until(std::future::pending::<()>()).await
    }
}

/// A handler's answer as it is reported.
fn written<R: Serialize>(answer: Result<R, Failure>) -> Answer {
    let result = serde_json::value::to_raw_value(&answer?)
        .map_err(|error| Failure::new("bad_result", error.to_string()).permanent())?;
    if result.get().len() > limits::PAYLOAD_BYTES_MAX {
        let message = format!(
            "the result has {} bytes; the limit is {}",
            result.get().len(),
            limits::PAYLOAD_BYTES_MAX
        );
        return Err(Failure::new("result_too_large", message).permanent());
    }
    Ok(result)
}

/// The streams and handlers, checked.
fn checked(handlers: Vec<(String, Handler)>) -> Result<Vec<(StreamName, Handler)>, WorkerError> {
    let setup = |why: String| Err(WorkerError::Setup(why));
    if !(1..=limits::CLAIM_STREAMS_MAX).contains(&handlers.len()) {
        return setup(format!("a worker handles 1 to {} streams", limits::CLAIM_STREAMS_MAX));
    }
    let mut checked: Vec<(StreamName, Handler)> = Vec::with_capacity(handlers.len());
    for (name, handler) in handlers {
        match StreamName::new(&name) {
            Err(bad) => return setup(format!("{name:?}: {bad}")),
            Ok(stream) if checked.iter().any(|(known, _)| *known == stream) => {
                return setup(format!("there are two handlers for stream {stream}"));
            }
            Ok(stream) => checked.push((stream, handler)),
        }
    }
    Ok(checked)
}

fn worker_id(id: Option<String>) -> Result<WorkerId, WorkerError> {
    let id = id.unwrap_or_else(|| {
        let host = rustix::system::uname();
        format!("{}-{}", host.nodename().to_string_lossy(), std::process::id())
    });
    WorkerId::new(&id).map_err(|bad| WorkerError::Setup(bad.to_string()))
}

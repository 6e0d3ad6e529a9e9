//! The Rust client against a real server: a `fernery up`, a proxy before it, and a worker in the middle of the test.

use super::proxy::Proxy;
use crate::campaign::Server;
use fernery_client::wire::JobDetail;
use fernery_client::{Client, Job, JobId, StopReason, Summary, Worker, WorkerError, WorkerEvent};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Nothing in these tests takes longer unless it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const CLAIM: &str = "/v1/worker/claim";
pub(crate) const HEARTBEAT: &str = "/v1/worker/heartbeat";
pub(crate) const COMPLETE: &str = "/v1/worker/complete";
pub(crate) const FAIL: &str = "/v1/worker/fail";
pub(crate) const RELEASE: &str = "/v1/worker/release";

/// A server, a proxy before it, and clients of both.
pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) proxy: Proxy,
    /// An operator who talks to the server itself.
    pub(crate) operator: Client,
}

impl World {
    pub(crate) async fn start(arguments: &[&str]) -> Self {
        let server = Server::start(None, arguments).await;
        let proxy = Proxy::before(&server.target).await;
        let url = format!("http://{}", server.target.address());
        let operator = Client::new(&url, Some(&server.target.operator), None).expect("a client");
        Self { server, proxy, operator }
    }

    /// A producer that talks through the proxy.
    pub(crate) fn producer(&self) -> Client {
        Client::new(&self.proxy.url(), Some(&self.server.target.operator), None).expect("a client")
    }

    /// A worker that talks through the proxy.
    pub(crate) fn worker(&self) -> Worker {
        Worker::new(self.worker_client()).id("w").grace(Duration::from_millis(300)).settle(PATIENCE)
    }

    /// Its client.
    pub(crate) fn worker_client(&self) -> Client {
        Client::new(&self.proxy.url(), Some(&self.server.target.worker), None).expect("a client")
    }

    /// The job as it is stored.
    pub(crate) async fn job(&self, id: JobId) -> JobDetail {
        self.operator.job(id, Duration::ZERO).await.expect("an answer").read().expect("a job")
    }

    /// The job once it has ended.
    pub(crate) async fn ended(&self, id: JobId) -> JobDetail {
        let job = self.operator.job(id, PATIENCE).await.expect("an answer").read().expect("a job");
        assert!(job.status.is_final(), "{job:?}");
        job
    }
}

/// A worker at work.
pub(crate) struct Working {
    stop: Option<oneshot::Sender<()>>,
    pub(crate) task: JoinHandle<Result<Summary, WorkerError>>,
    events: mpsc::UnboundedReceiver<WorkerEvent>,
}

impl Working {
    pub(crate) fn begin(worker: Worker) -> Self {
        let (tell, events) = mpsc::unbounded_channel();
        let (stop, stopped) = oneshot::channel();
        let worker = worker.on_event(move |event| {
            let _ = tell.send(event);
        });
        Self { stop: Some(stop), task: tokio::spawn(worker.run_until(stopped)), events }
    }

    /// The next event for which `pick` has an answer; others before it are dropped.
    pub(crate) async fn event<T>(&mut self, pick: impl Fn(WorkerEvent) -> Option<T>) -> T {
        timeout(PATIENCE, async {
            loop {
                let event = self.events.recv().await.expect("the worker runs");
                if let Some(picked) = pick(event) {
                    return picked;
                }
            }
        })
        .await
        .expect("an event in time")
    }

    pub(crate) async fn claimed(&mut self) -> Job {
        self.event(|event| match event {
            WorkerEvent::Claimed { job } => Some(job),
            _ => None,
        })
        .await
    }

    pub(crate) async fn stopping(&mut self) -> (Job, StopReason) {
        self.event(|event| match event {
            WorkerEvent::Stopping { job, reason } => Some((job, reason)),
            _ => None,
        })
        .await
    }

    /// Begins the shutdown.
    pub(crate) fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }

    /// How it ended.
    pub(crate) async fn result(self) -> Result<Summary, WorkerError> {
        timeout(PATIENCE, self.task).await.expect("it ends in time").expect("no panic")
    }

    /// Shuts it down in order.
    pub(crate) async fn end(mut self) -> Summary {
        self.stop();
        self.result().await.expect("an orderly end")
    }
}

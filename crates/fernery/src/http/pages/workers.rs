//! `GET /workers`: who holds jobs now, who asks for some, and the processes that serve this database.

use super::frame::Frame;
use super::show::{Id, Line, When};
use super::visit::{Shown, Visit, link};
use crate::when;
use askama::Template;
use fernery_client::wire::{HeldJob, HeldJobPage, PollerInfo, PollerList, ProcessInfo, ProcessList};
use fernery_core::{Timestamp, limits};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Jobs of a worker that are shown.
const JOBS_MAX: usize = 5;
/// Streams of an idle worker that are shown.
const STREAMS_MAX: usize = 8;

struct Held {
    id: String,
    shown: Id,
    stream: Line,
    attempt_no: u32,
    started: When,
    cancel_requested: bool,
}

struct Worker {
    name: Line,
    jobs: usize,
    streams: Vec<(Line, String)>,
    heartbeat: When,
    expires: When,
    held: Vec<Held>,
    more: usize,
}

/// A worker that holds no job, as far as this page shows, and asks for some.
struct Idle {
    name: Line,
    streams: Vec<(Line, String)>,
    more: usize,
    waiting: bool,
    heard: When,
}

struct Server {
    name: Line,
    shown: Id,
    version: Line,
    url: Line,
    transport: Line,
    lease: String,
    started: When,
    seen: When,
}

#[derive(Template)]
#[template(path = "workers.html")]
struct Workers {
    frame: Frame,
    workers: Vec<Worker>,
    held: usize,
    more: bool,
    idle: Vec<Idle>,
    servers: Vec<Server>,
}

pub(super) async fn show(visit: Visit) -> Shown {
    let limit = limits::PAGE_ROWS_MAX.to_string();
    let page: HeldJobPage = visit.get("/v1/leases", &[("limit", limit.as_str())]).await?;
    let processes: ProcessList = visit.get("/v1/processes", &[]).await?;
    let asking: PollerList = visit.get("/v1/pollers", &[]).await?;
    let busy: BTreeSet<&str> = page.held.iter().map(|job| job.worker_id.as_str()).collect();
    let is_idle = |poller: &PollerInfo| !busy.contains(poller.worker_id.as_str());
    let idle = asking.pollers.into_iter().filter(is_idle).map(idle).collect();
    let (held, more) = (page.held.len(), page.next_cursor.is_some());
    let page = Workers {
        frame: visit.frame("Workers"),
        workers: by_worker(page.held),
        held,
        more,
        idle,
        servers: processes.processes.into_iter().map(server).collect(),
    };
    visit.show(&page)
}

/// The jobs of each worker; the one that was silent for longest first.
fn by_worker(held: Vec<HeldJob>) -> Vec<Worker> {
    let mut of: BTreeMap<String, Vec<HeldJob>> = BTreeMap::new();
    for job in held {
        of.entry(job.worker_id.clone()).or_default().push(job);
    }
    let mut workers: Vec<(Timestamp, Worker)> = of.into_iter().filter_map(worker).collect();
    workers.sort_by_key(|(heard, _)| *heard);
    workers.into_iter().map(|(_, worker)| worker).collect()
}

fn worker((name, jobs): (String, Vec<HeldJob>)) -> Option<(Timestamp, Worker)> {
    let heard = jobs.iter().map(|job| job.heartbeat_at).max()?;
    let expires = jobs.iter().map(|job| job.lease_expires_at).min()?;
    let streams: BTreeSet<&str> = jobs.iter().map(|job| job.stream.as_str()).collect();
    let worker = Worker {
        name: Line(name),
        jobs: jobs.len(),
        streams: streams
            .into_iter()
            .map(|name| (Line::of(name), link("/jobs", &[("stream", name)])))
            .collect(),
        heartbeat: When(heard),
        expires: When(expires),
        more: jobs.len().saturating_sub(JOBS_MAX),
        held: jobs.iter().take(JOBS_MAX).map(held_job).collect(),
    };
    Some((heard, worker))
}

fn idle(poller: PollerInfo) -> Idle {
    let streams = poller.streams.iter().take(STREAMS_MAX);
    Idle {
        name: Line(poller.worker_id),
        more: poller.streams.len().saturating_sub(STREAMS_MAX),
        streams: streams.map(|name| (Line::of(name), link("/jobs", &[("stream", name.as_str())]))).collect(),
        waiting: poller.waiting,
        heard: When(poller.heard_at),
    }
}

fn held_job(job: &HeldJob) -> Held {
    Held {
        id: job.job_id.to_string(),
        shown: Id::of(job.job_id),
        stream: Line::of(&job.stream),
        attempt_no: job.attempt_no,
        started: When(job.started_at),
        cancel_requested: job.cancel_requested,
    }
}

fn server(process: ProcessInfo) -> Server {
    Server {
        name: Line::of(format_args!("{} · {}", process.host, process.pid)),
        shown: Id::of(process.process_id),
        version: Line(process.version),
        url: Line(process.url),
        transport: Line(process.transport),
        lease: when::span(Duration::from_millis(process.lease_ttl_ms)),
        started: When(process.started_at),
        seen: When(process.seen_at),
    }
}

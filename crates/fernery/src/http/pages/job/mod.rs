//! `GET /job/{id}`: why it stands where it stands, and every attempt at it.

pub(super) mod acts;
pub(super) mod again;
mod document;
pub(super) mod download;
mod flow;

use super::frame::Frame;
use super::jobs::act_on;
use super::show::{Id, Line, Prose, Ways, When};
use super::trouble::Said;
use super::visit::{Shown, Visit, api, link};
use crate::when;
use askama::Template;
use document::Document;
use fernery_client::wire::{AttemptDetail, ExplainResponse, JobDetail};
use fernery_core::{JobStatus, Progress};
use fernery_engine::door;
use flow::Flow;
use serde_json::value::RawValue;
use std::time::Duration;

/// Attempts that are shown: the newest.
const ATTEMPTS_MAX: usize = 50;

struct Attempt {
    no: u32,
    worker: Line,
    outcome: &'static str,
    started: When,
    took: String,
    heartbeat: Option<When>,
    expires: Option<When>,
    progress: Option<Progress>,
    note: Option<Line>,
    error: Option<Failed>,
}

/// Why an attempt did not succeed.
struct Failed {
    code: Line,
    message: Prose,
    whole: Document,
}

#[derive(Template)]
#[template(path = "job/job.html")]
struct JobShown {
    frame: Frame,
    id: String,
    shown: Id,
    sentence: Line,
    status: JobStatus,
    flow: Flow,
    redacted: bool,
    stream: Line,
    of_stream: String,
    of_workorder: bool,
    created: When,
    starts: Option<When>,
    ended: Option<When>,
    ended_at: String,
    unique_key: Option<Line>,
    timeout: Option<String>,
    max_attempts: u32,
    cancel_requested: bool,
    attempts: Vec<Attempt>,
    earlier: usize,
    payload: Document,
    result: Option<Document>,
    act: &'static str,
    said: Said,
}

pub(super) async fn show(visit: Visit) -> Shown {
    page(&visit, 200, Said::default()).await
}

async fn page(visit: &Visit, status: u16, said: Said) -> Shown {
    let path = api("/v1/jobs/", &visit.param, "");
    let job: JobDetail = visit.get(&path, &[]).await?;
    let explained: ExplainResponse = visit.get(&format!("{path}/explain"), &[]).await?;
    let now = door::wall_clock();
    let earlier = job.attempts.len().saturating_sub(ATTEMPTS_MAX);
    let attempts = job.attempts.iter().skip(earlier).rev().map(attempt).collect();
    let shown = JobShown {
        frame: visit.frame(format!("Job {}", job.job_id)),
        id: job.job_id.to_string(),
        shown: Id::of(job.job_id),
        sentence: Line(explained.sentence),
        status: job.status,
        flow: Flow::of(&job, now),
        redacted: job.redacted,
        of_stream: link("/jobs", &[("stream", job.stream.as_str())]),
        of_workorder: job.stream.is_workorders(),
        stream: Line::of(&job.stream),
        created: When(job.created_at),
        starts: (job.status == JobStatus::Queued && job.run_at > now).then_some(When(job.run_at)),
        ended: job.finished_at.map(When),
        ended_at: job.finished_at.map_or(String::new(), |at| at.to_string()),
        unique_key: job.unique_key.map(Line),
        timeout: job.timeout_seconds.map(|seconds| when::span(Duration::from_secs(seconds))),
        max_attempts: job.max_attempts,
        cancel_requested: job.cancel_requested,
        attempts,
        earlier,
        payload: Document::of(job.payload.get()),
        result: job.result.as_deref().map(|result| Document::of(result.get())),
        act: act_on(job.status),
        said,
    };
    visit.show_as(status, &shown)
}

fn attempt(attempt: &AttemptDetail) -> Attempt {
    let until = attempt.finished_at.unwrap_or_else(door::wall_clock);
    Attempt {
        no: attempt.attempt_no,
        worker: Line::of(&attempt.worker_id),
        outcome: attempt.outcome.map_or("RUNNING", |outcome| outcome.as_str()),
        started: When(attempt.started_at),
        took: took(until.since(attempt.started_at)),
        heartbeat: attempt.heartbeat_at.map(When),
        expires: attempt.lease_expires_at.map(When),
        note: attempt.progress.as_ref().and_then(|progress| progress.note()).map(Line::of),
        progress: attempt.progress.clone(),
        error: attempt.error.as_deref().map(failed),
    }
}

/// How long it took; nobody wants the milliseconds of minutes.
fn took(time: Duration) -> String {
    when::span(if time < Duration::from_secs(10) { time } else { Duration::from_secs(time.as_secs()) })
}

fn failed(error: &RawValue) -> Failed {
    let read: serde_json::Value = serde_json::from_str(error.get()).unwrap_or_default();
    Failed {
        code: Line::of(read["code"].as_str().unwrap_or_default()),
        message: Prose::of(read["message"].as_str().unwrap_or_default()),
        whole: Document::of(error.get()),
    }
}

impl JobShown {
    /// An act from a terminal and by HTTP.
    fn ways(&self, act: &str) -> Ways {
        let id = &self.id;
        if act == "force" {
            let body = serde_json::json!({ "force": true }).to_string();
            let path = api("/v1/jobs/", id, "/cancel");
            return Ways::new(format!("fernery job cancel --force {id}"), "POST", &path, Some(&body));
        }
        Ways::new(format!("fernery job {act} {id}"), "POST", &api("/v1/jobs/", id, &format!("/{act}")), None)
    }
}

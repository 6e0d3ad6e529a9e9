//! `fernery job enqueue`: one job from flags, or many from JSON Lines.

use super::lines;
use crate::cli::failure::{Failure, Outcome};
use crate::cli::screen::Screen;
use crate::cli::{input, job};
use crate::config::duration::millis;
use clap::Args;
use fernery_client::Client;
use fernery_client::wire::{EnqueueRequest, Priority};
use fernery_core::{JobId, JobStatus, StreamName, Timestamp, limits, names};
use serde_json::value::RawValue;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(super) const EXAMPLES: &str = "\
The payload is a JSON object; the worker gets it byte by byte. Without --payload and --payload-file it is read from \
stdin if that is a pipe or a file, and is {} otherwise.

Examples:
  fernery job enqueue --stream build --payload '{\"ref\":\"main\"}'
  fernery job enqueue --priority high --payload-file job.json --wait 30s
  echo '{\"to\":\"ada\"}' | fernery job enqueue --stream mail --delay 5m
  fernery job enqueue --stream build --jsonl jobs.jsonl

A line of jobs.jsonl: {\"payload\":{…},\"unique_key\":…}";

/// Enqueue one job, or many from a JSON Lines file.
#[derive(Debug, Args)]
pub(in crate::cli) struct Enqueue {
    /// The stream
    #[arg(long, value_name = "NAME", required_unless_present_any = ["priority", "jsonl"], conflicts_with = "priority")]
    stream: Option<StreamName>,
    /// Instead of a stream: emergency, high, normal or low
    #[arg(long, value_parser = priority)]
    priority: Option<Priority>,
    /// Payload for the worker: a JSON object
    #[arg(long, value_name = "JSON", conflicts_with_all = ["payload_file", "jsonl"])]
    payload: Option<String>,
    /// File with the payload; - is stdin
    #[arg(long, value_name = "FILE", conflicts_with = "jsonl")]
    payload_file: Option<PathBuf>,
    /// File with one job per line, each an object as in `POST /v1/jobs`; - is stdin
    #[arg(long, value_name = "FILE", conflicts_with_all = ["delay", "run_at", "unique_key", "id", "wait"])]
    jsonl: Option<PathBuf>,
    /// Start after this delay at the earliest, as in 5m
    #[arg(long, value_name = "DURATION", value_parser = input::duration, conflicts_with = "run_at")]
    delay: Option<Duration>,
    /// Start at this time at the earliest, as in 2026-11-15T09:30:00Z
    #[arg(long, value_name = "INSTANT", value_parser = input::instant)]
    run_at: Option<Timestamp>,
    /// Only one unfinished job may have this key; a second call returns the first job
    #[arg(long, value_name = "KEY", value_parser = unique_key)]
    unique_key: Option<String>,
    /// How often the job may fail
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=u64::from(limits::MAX_ATTEMPTS_MAX)))]
    max_attempts: Option<u64>,
    /// How long one attempt may take, as in 30s
    #[arg(long, value_name = "DURATION", value_parser = whole_seconds)]
    timeout: Option<u64>,
    /// The job's id; a second call with the same job returns the first one
    #[arg(long, value_name = "UUID")]
    id: Option<JobId>,
    /// Wait up to this long for the job to end; exit code 1 unless it succeeded
    #[arg(long, value_name = "DURATION", value_parser = input::duration)]
    wait: Option<Duration>,
}

/// What lines of a bulk file need not repeat.
#[derive(Clone, Debug)]
pub(super) struct LineDefaults {
    pub(super) stream: Option<StreamName>,
    pub(super) priority: Option<Priority>,
    pub(super) max_attempts: Option<u64>,
    pub(super) timeout_seconds: Option<u64>,
}

fn priority(text: &str) -> Result<Priority, String> {
    serde_json::from_value(text.into()).map_err(|_| "expected emergency, high, normal or low".into())
}

fn unique_key(text: &str) -> Result<String, String> {
    names::check_unique_key(text).map(|()| text.to_string()).map_err(|e| e.to_string())
}

fn whole_seconds(text: &str) -> Result<u64, String> {
    let duration = input::duration(text)?;
    match duration.subsec_millis() {
        0 if duration <= limits::TIMEOUT_MAX => Ok(duration.as_secs()),
        0 => Err("an attempt may take at most 7d".into()),
        _ => Err("a timeout has whole seconds".into()),
    }
}

/// Checks a payload without changing a byte of it.
pub(super) fn payload(text: &str) -> Result<Box<RawValue>, String> {
    let text = text.trim();
    if text.len() > limits::PAYLOAD_BYTES_MAX {
        return Err(format!("the payload is larger than {} bytes", limits::PAYLOAD_BYTES_MAX));
    }
    let value: Box<RawValue> =
        serde_json::from_str(text).map_err(|e| format!("the payload is not JSON: {e}"))?;
    if value.get().starts_with('{') { Ok(value) } else { Err("the payload is not a JSON object".into()) }
}

impl Enqueue {
    fn request(&self) -> Outcome<EnqueueRequest> {
        let text = match (&self.payload, &self.payload_file) {
            (Some(text), _) => text.clone(),
            (None, Some(path)) => input::read_text(path, limits::PAYLOAD_BYTES_MAX)?,
            (None, None) if stdin_was_given() => input::read_text(Path::new("-"), limits::PAYLOAD_BYTES_MAX)?,
            (None, None) => String::new(),
        };
        let text = if text.trim().is_empty() && self.payload.is_none() { "{}" } else { &text };
        Ok(EnqueueRequest {
            stream: self.stream.clone(),
            priority: self.priority,
            payload: payload(text).map_err(Failure::usage)?,
            job_id: self.id,
            max_attempts: self.max_attempts,
            delay_ms: self.delay.map(millis),
            run_at: self.run_at,
            unique_key: self.unique_key.clone(),
            timeout_seconds: self.timeout,
        })
    }
}

/// Whether stdin is a pipe or a file, and not a terminal, /dev/null or a socket that nobody closes.
fn stdin_was_given() -> bool {
    if std::io::stdin().is_terminal() {
        return false;
    }
    let kind =
        rustix::fs::fstat(std::io::stdin()).map(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode));
    matches!(kind, Ok(rustix::fs::FileType::Fifo | rustix::fs::FileType::RegularFile))
}

pub(super) async fn run(enqueue: Enqueue, client: &Client, screen: Screen) -> Outcome {
    if let Some(path) = &enqueue.jsonl {
        let defaults = LineDefaults {
            stream: enqueue.stream.clone(),
            priority: enqueue.priority,
            max_attempts: enqueue.max_attempts,
            timeout_seconds: enqueue.timeout,
        };
        return lines::run(path, &defaults, client, screen).await;
    }
    let reply = client.post_job(&enqueue.request()?).await?;
    let job = reply.read()?;
    let Some(wait) = enqueue.wait else {
        if screen.json {
            return screen.json_body(&reply.body);
        }
        if job.duplicate {
            crate::cli::screen::remark("it already existed");
        }
        return screen.line(&job.job_id.to_string());
    };
    let reply = job::wait_for_end(client, job.job_id, wait).await?;
    let status = reply.read()?.status;
    job::show(screen, &reply)?;
    match status {
        JobStatus::Succeeded => Ok(()),
        _ if status.is_final() => Err(Failure::told()),
        _ if screen.json => Err(Failure::told()),
        _ => Err(Failure::failed("still_waiting", format!("{} has not ended: it is {status}", job.job_id))
            .hint(format_args!("`fernery job explain {}` explains why", job.job_id))),
    }
}

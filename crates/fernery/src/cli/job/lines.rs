//! JSON Lines to arrays: a thousand jobs per call; errors name the line number.

use super::enqueue::LineDefaults;
use crate::cli::failure::{Failure, Outcome};
use crate::cli::input;
use crate::cli::screen::{Screen, counted};
use fernery_client::wire::{EnqueueOutcome, EnqueueRequest};
use fernery_client::{Client, ClientError};
use fernery_core::limits;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Jobs of one call.
const BATCH_JOBS: usize = 1_000;
/// Bytes of one call, with room for the rest of the request.
const BATCH_BYTES: usize = limits::BODY_BYTES_MAX / 2;
/// Bytes of one line: a payload and the fields around it.
const LINE_BYTES_MAX: usize = limits::PAYLOAD_BYTES_MAX + 64 * 1024;

#[derive(Default)]
struct Tally {
    created: u64,
    there_before: u64,
    conflicts: Vec<u64>,
    conflict_count: u64,
}

/// Line numbers of conflicts that are named.
const CONFLICTS_NAMED: usize = 20;

pub(super) async fn run(path: &Path, defaults: &LineDefaults, client: &Client, screen: Screen) -> Outcome {
    let (reader, bytes) = input::open(path)?;
    let progress = bar(bytes);
    let mut lines = Lines { reader: BufReader::with_capacity(1 << 20, reader), number: 0, read: 0 };
    let mut tally = Tally::default();
    let result = send_all(&mut lines, defaults, client, &progress, &mut tally).await;
    progress.finish_and_clear();
    let stored = tally.created + tally.there_before;
    result.map_err(|failure| failure.hint(format_args!("stored before it: {}", counted(stored, "job"))))?;
    if screen.json {
        let answer = json!({
            "created": tally.created, "there_before": tally.there_before,
            "conflicts": tally.conflict_count, "conflict_lines": tally.conflicts,
        });
        screen.line(&answer.to_string())?;
    } else {
        screen.line(&format!("{} created, {} already existed", tally.created, tally.there_before))?;
    }
    match tally.conflict_count {
        0 => Ok(()),
        _ if screen.json => Err(Failure::told_conflict()),
        n => {
            let named: Vec<_> = tally.conflicts.iter().map(u64::to_string).collect();
            let more = if n as usize > named.len() { " and more" } else { "" };
            Err(Failure::conflict(format!(
                "{} not stored, because another job has the id or key: {}{more}",
                counted(n, "line"),
                named.join(", ")
            )))
        }
    }
}

async fn send_all(
    lines: &mut Lines<impl Read>,
    defaults: &LineDefaults,
    client: &Client,
    progress: &ProgressBar,
    tally: &mut Tally,
) -> Outcome {
    loop {
        let batch = lines.batch(defaults)?;
        let (Some(first), Some(last)) = (batch.first(), batch.last()) else { return Ok(()) };
        let lines_of_call = format!("lines {} to {}", first.0, last.0);
        let jobs: Vec<_> = batch.iter().map(|(_, job)| job).collect();
        let sent = client.post_jobs(&jobs).await.and_then(|reply| reply.read());
        let answer = sent.map_err(|error| {
            let place = line_refused(&error, &batch).unwrap_or(lines_of_call.clone());
            Failure::from(error).context(place)
        })?;
        if answer.jobs.len() != batch.len() {
            let why = format!("{} answers to {} jobs", answer.jobs.len(), batch.len());
            return Err(Failure::failed("unexpected_answer", why).context(lines_of_call));
        }
        for ((line, _), item) in batch.iter().zip(&answer.jobs) {
            match item.outcome {
                EnqueueOutcome::Created => tally.created += 1,
                EnqueueOutcome::Exists | EnqueueOutcome::Duplicate => tally.there_before += 1,
                EnqueueOutcome::Conflict => {
                    tally.conflict_count += 1;
                    if tally.conflicts.len() < CONFLICTS_NAMED {
                        tally.conflicts.push(*line);
                    }
                }
            }
        }
        progress.set_position(lines.read);
        progress.set_message(counted(tally.created + tally.there_before, "job"));
    }
}

/// The line of the job that the server refused.
fn line_refused(error: &ClientError, batch: &[(u64, EnqueueRequest)]) -> Option<String> {
    let ClientError::Refused { problem, .. } = error else { return None };
    let index: usize = problem.errors.first()?.pointer.split('/').nth(1)?.parse().ok()?;
    batch.get(index).map(|(line, _)| format!("line {line}"))
}

/// A progress bar if the end is known, else a count; nothing without a terminal.
fn bar(bytes: Option<u64>) -> ProgressBar {
    let (bar, template) = match bytes {
        Some(bytes) => (ProgressBar::new(bytes), "{bar:40} {percent:>3}% {msg} {eta}"),
        None => (ProgressBar::new_spinner(), "{spinner} {msg}"),
    };
    bar.with_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()))
}

struct Lines<R> {
    reader: BufReader<R>,
    number: u64,
    read: u64,
}

impl<R: Read> Lines<R> {
    /// The next jobs with their line numbers; none at the end.
    fn batch(&mut self, defaults: &LineDefaults) -> Outcome<Vec<(u64, EnqueueRequest)>> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        while batch.len() < BATCH_JOBS && bytes < BATCH_BYTES {
            let Some(line) = self.next_line()? else { break };
            if line.trim().is_empty() {
                continue;
            }
            bytes += line.len();
            let job = read_job(&line, defaults)
                .map_err(|why| Failure::usage(format!("line {}: {why}", self.number)))?;
            batch.push((self.number, job));
        }
        Ok(batch)
    }

    fn next_line(&mut self) -> Outcome<Option<String>> {
        let mut bytes = Vec::new();
        self.number += 1;
        let refused = |number: u64, why: &str| Failure::usage(format!("line {number}: {why}"));
        let read = (&mut self.reader)
            .take(LINE_BYTES_MAX as u64 + 1)
            .read_until(b'\n', &mut bytes)
            .map_err(|e| refused(self.number, &e.to_string()))?;
        if read == 0 {
            return Ok(None);
        }
        if read > LINE_BYTES_MAX {
            return Err(refused(self.number, "longer than a payload may be"));
        }
        self.read += read as u64;
        let bytes =
            if self.number == 1 { bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes) } else { &bytes };
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Some(text.to_string())),
            Err(_) => Err(refused(self.number, "not UTF-8")),
        }
    }
}

fn read_job(line: &str, defaults: &LineDefaults) -> Result<EnqueueRequest, String> {
    let mut job: EnqueueRequest = serde_json::from_str(line).map_err(|e| e.to_string())?;
    super::enqueue::payload(job.payload.get())?;
    if job.stream.is_none() && job.priority.is_none() {
        job.stream = defaults.stream.clone();
        job.priority = defaults.priority;
        if job.stream.is_none() && job.priority.is_none() {
            return Err("has neither stream nor priority; --stream sets one for all lines".into());
        }
    }
    job.max_attempts = job.max_attempts.or(defaults.max_attempts);
    job.timeout_seconds = job.timeout_seconds.or(defaults.timeout_seconds);
    Ok(job)
}

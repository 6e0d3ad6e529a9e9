//! `fernery job`: the life of one job, and lists of many.

mod bulk;
pub(super) mod dlq;
mod enqueue;
mod lines;
pub(super) mod stream;

use super::failure::Outcome;
use super::ids::{self, NamedJob};
use super::input;
use super::pages::{self, Listing, Paging};
use super::screen::{Cell, Screen, counted, remark};
use clap::Subcommand;
use enqueue::Enqueue;
use fernery_client::client::{Query, Reply};
use fernery_client::wire::{CancelOutcome, ErrorReport, ExplainResponse, JobDetail, JobPage, JobSummary};
use fernery_client::{Client, ClientError};
use fernery_core::{JobId, JobStatus, StreamName};
use std::time::Duration;

#[derive(Debug, Subcommand)]
pub(super) enum Job {
    /// Enqueue one job, or many from a JSON Lines file
    #[command(after_help = enqueue::EXAMPLES)]
    Enqueue(Box<Enqueue>),
    /// List jobs, newest first; QUEUED jobs in the order in which they will be claimed
    #[command(after_help = "\
Jobs by which Fernery itself works (streams diazotroph:… and notice:…) are listed with --all or --stream.

Examples:
  fernery job list
  fernery job list --status QUEUED --stream build
  fernery job list --status DEAD --all --json")]
    List {
        /// Only with this status: QUEUED, RUNNING, SUCCEEDED, DEAD or CANCELLED
        #[arg(long, value_parser = status)]
        status: Option<JobStatus>,
        /// Only from this stream
        #[arg(long, value_name = "NAME")]
        stream: Option<StreamName>,
        #[command(flatten)]
        paging: Paging,
    },
    /// Show one job with its attempts
    #[command(after_help = "\
Examples:
  fernery job show 019a8c5e-07398f              as lists show it
  fernery job show 019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f --wait 30s")]
    Show {
        /// The job's id
        id: NamedJob,
        /// First wait up to this long for the job to end
        #[arg(long, value_name = "DURATION", value_parser = input::duration)]
        wait: Option<Duration>,
    },
    /// Explain why a job is not running, or what its state is
    #[command(after_help = "\
Example:
  fernery job explain 019a8c5e-07398f")]
    Explain {
        /// The job's id
        id: NamedJob,
    },
    /// Cancel a job: a queued one ends at once, a running one is told with its next heartbeat
    #[command(after_help = "\
Examples:
  fernery job cancel 019a8c5e-07398f
  fernery job cancel --force 019a8c5e-07398f")]
    Cancel {
        /// The job's id
        id: NamedJob,
        /// End it now, even if a worker holds it; the worker's report will be refused
        #[arg(long)]
        force: bool,
    },
    /// Cancel, retry or purge all jobs that match: counted first, stoppable
    #[command(subcommand)]
    #[command(after_help = "\
Examples:
  fernery job bulk cancel --status QUEUED --stream mail
  fernery job bulk list")]
    Bulk(bulk::Bulk),
    /// Start a DEAD or CANCELLED job over, with counters at zero
    #[command(after_help = "\
Example:
  fernery job retry 019a8c5e-07398f")]
    Retry {
        /// The job's id
        id: NamedJob,
    },
}

/// Lower case is accepted too.
fn status(text: &str) -> Result<JobStatus, String> {
    text.to_ascii_uppercase().parse()
}

pub(super) async fn run(job: Job, client: &Client, screen: Screen) -> Outcome {
    match job {
        Job::Enqueue(enqueue) => enqueue::run(*enqueue, client, screen).await,
        Job::List { status, stream, paging } => {
            let fetch = async |limit, cursor: Option<String>| {
                let query = Query::new().with("status", status).with("stream", stream.as_ref());
                client.jobs(&query.with("limit", Some(limit)).with("cursor", cursor)).await
            };
            if screen.json || paging.all || stream.is_some() {
                return pages::list(screen, &JOBS, &paging, fetch).await;
            }
            match pages::list_most(screen, &OTHER_JOBS, &paging, fetch).await? {
                0 => {}
                n => remark(&format!(
                    "not listed: {} of Fernery itself; --all lists them too",
                    counted(n, "job")
                )),
            }
            Ok(())
        }
        Job::Show { id, wait } => {
            let id = ids::job(client, &id).await?;
            show(screen, &wait_for_end(client, id, wait.unwrap_or_default()).await?)
        }
        Job::Explain { id } => {
            let id = ids::job(client, &id).await?;
            let reply = client.explain(id).await?;
            if screen.json {
                screen.json_body(&reply.body)
            } else {
                explain(client, screen, &reply.read()?).await
            }
        }
        Job::Cancel { id, force } => {
            let id = ids::job(client, &id).await?;
            let reply = client.cancel(id, force).await?;
            match reply.read()?.outcome {
                _ if screen.json => screen.json_body(&reply.body),
                CancelOutcome::Cancelled => screen.say(&format!("{id} is cancelled")),
                CancelOutcome::Requested => screen.say(&format!(
                    "{id} is running; its worker is told with the next heartbeat (--force ends it now)"
                )),
            }
        }
        Job::Bulk(of) => bulk::run(of, client, screen).await,
        Job::Retry { id } => {
            let id = ids::job(client, &id).await?;
            let reply = client.retry(id).await?;
            if screen.json {
                screen.json_body(&reply.body)
            } else {
                screen.say(&format!("{id} is queued again"))
            }
        }
    }
}

/// A job, after waiting for its end in steps that the server allows.
pub(super) async fn wait_for_end(
    client: &Client,
    id: JobId,
    wait: Duration,
) -> Result<Reply<JobDetail>, ClientError> {
    let deadline = tokio::time::Instant::now() + wait;
    loop {
        let left = deadline.saturating_duration_since(tokio::time::Instant::now());
        let reply = client.job(id, left.min(fernery_core::limits::JOB_WAIT_MAX)).await?;
        if left.is_zero() || reply.read()?.status.is_final() {
            return Ok(reply);
        }
        // A draining server answers at once; without a pause this would flood it.
        tokio::time::sleep(left.min(Duration::from_millis(50))).await;
    }
}

const JOBS: Listing<JobPage> = Listing {
    key: "jobs",
    heads: &["JOB", "STREAM…", "STATUS", "STARTS", "ENDED"],
    rows: |page| page.jobs.into_iter().map(row).collect(),
};

/// Jobs that were enqueued from outside: not those by which Fernery carries out tickets and tells its notices.
const OTHER_JOBS: Listing<JobPage> = Listing {
    rows: |page| {
        let outside = |job: &JobSummary| !job.stream.is_workorders() && !job.stream.is_notices();
        page.jobs.into_iter().filter(outside).map(row).collect()
    },
    ..JOBS
};

fn row(job: JobSummary) -> Vec<Cell> {
    vec![
        job.job_id.into(),
        job.stream.into(),
        Cell::state(job.status.as_str()),
        job.run_at.into(),
        Cell::maybe(job.finished_at),
    ]
}

/// One job for people or programs.
pub(super) fn show(screen: Screen, reply: &Reply<JobDetail>) -> Outcome {
    if screen.json {
        return screen.json_body(&reply.body);
    }
    let job = reply.read()?;
    let mut facts = vec![
        ("job", Cell::from(job.job_id)),
        ("stream", job.stream.into()),
        ("status", Cell::state(job.status.as_str())),
        ("created", job.created_at.into()),
        ("run at", job.run_at.into()),
        ("finished", Cell::maybe(job.finished_at)),
        ("attempts", attempts(job.attempts.len(), job.max_attempts).into()),
    ];
    facts.extend(job.unique_key.map(|key| ("unique key", key.into())));
    facts.extend(job.timeout_seconds.map(|s| ("timeout", format!("{s}s").into())));
    facts.extend(job.cancel_requested.then(|| ("cancel", "requested".into())));
    facts.push(("payload", job.payload.get().into()));
    facts.extend(job.result.map(|result| ("result", result.get().into())));
    facts.extend(job.error.map(|error| ("error", error.get().into())));
    screen.facts(&facts)?;
    if job.attempts.is_empty() {
        return Ok(());
    }
    screen.line("")?;
    let rows: Vec<_> = job
        .attempts
        .into_iter()
        .map(|a| {
            vec![
                a.attempt_no.into(),
                a.worker_id.into(),
                a.started_at.into(),
                Cell::maybe(a.finished_at),
                Cell::state(a.outcome.map_or("RUNNING", fernery_core::AttemptOutcome::as_str)),
            ]
        })
        .collect();
    screen.table(&["NO", "WORKER…", "STARTED", "FINISHED", "OUTCOME"], rows)
}

fn attempts(so_far: usize, max: u32) -> String {
    let may_fail = counted(max, "time");
    let anew = match so_far > max as usize {
        true => " (lost and released attempts, and those before a redrive or retry, do not count)",
        false => "",
    };
    format!("{so_far} so far; it may fail {may_fail}{anew}")
}

async fn explain(client: &Client, screen: Screen, answer: &ExplainResponse) -> Outcome {
    let id = answer.job_id;
    let mut facts = vec![
        ("job", id.into()),
        ("stream", (&answer.stream).into()),
        ("status", Cell::state(answer.status.as_str())),
        ("why", (&answer.sentence).into()),
    ];
    if answer.status == JobStatus::Dead {
        let job = client.job(id, Duration::ZERO).await?.read()?;
        facts.extend(job.error.map(|error| ("error", last_error(error.get()).into())));
        facts.push(("next", format!("fernery dlq redrive {id}").into()));
    }
    screen.facts(&facts)
}

/// Code and message of a report; any other error as it is.
fn last_error(json: &str) -> String {
    match serde_json::from_str::<ErrorReport>(json) {
        Ok(error) => format!("{}: {}", error.code, error.message),
        Err(_) => json.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_before_a_redrive_do_not_count_against_the_maximum() {
        assert_eq!(attempts(1, 3), "1 so far; it may fail 3 times");
        assert_eq!(
            attempts(2, 1),
            "2 so far; it may fail 1 time (lost and released attempts, and those before a redrive or retry, do not count)"
        );
    }
}

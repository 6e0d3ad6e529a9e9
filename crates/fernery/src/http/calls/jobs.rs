//! Enqueue, read, list, explain, cancel, retry.

use super::named::{missing, unknown};
use super::{opened, redacted, workorder_jobs};
use crate::http::problem::{Code, Refusal, Refused};
use crate::http::wire::answer::{Call, Replied, Reply};
use crate::http::wire::aside::{SMALL_BYTES, aside};
use crate::http::wire::body::Weight;
use crate::http::wire::{cursor, json};
use bytes::Bytes;
use fernery_client::wire::{
    AttemptDetail, CancelOutcome, CancelRequest, CancelResponse, EnqueueManyResponse, EnqueueOutcome,
    EnqueueRequest, EnqueuedItem, EnqueuedJob, ExplainResponse, FieldProblem, HeldJob, HeldJobPage,
    JobDetail, JobPage, JobSummary, RetryResponse,
};
use fernery_core::{AttemptOutcome, JobId, JobStatus, StreamName, limits};
use fernery_engine::Explanation;
use fernery_engine::store::{
    AttemptView, CancelAnswer, Enqueued, JobBrief, JobFilter, JobView, NewJob, RetryAnswer, Start, Unfit,
};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// An answer about up to so many jobs is written on the thread that serves the connection.
const SMALL_JOBS: usize = 32;

/// `POST /v1/jobs`
///
/// An array may have ten thousand jobs. Reading it and writing its answer takes long, so other threads do it: otherwise a
/// heartbeat would wait behind every array that came before it.
pub async fn enqueue(mut call: Call) -> Replied {
    let (server, owner) = (call.server.clone(), call.caller.only_own().map(str::to_string));
    let busy = || Refusal::new(Code::Busy, Code::Busy.title());
    // Refuse before any work is done: the store already has more than it can take soon.
    if server.enqueuing.load(Ordering::Relaxed) >= server.settings.enqueuing_max {
        return Err(busy());
    }
    let body = std::mem::take(&mut call.body);
    let (jobs, many) = if body.len() <= SMALL_BYTES {
        read_jobs(&body, owner.as_deref())?
    } else {
        let unread_max = server.settings.unread_max;
        let _unread = Weight::take(&server, |server| &server.unread, 1, unread_max).ok_or_else(busy)?;
        let _turn = server.readers.acquire().await.map_err(|_| busy())?;
        let owner = owner.clone();
        aside(move || read_jobs(&body, owner.as_deref())).await?
    };
    let named: Vec<Option<JobId>> = jobs.iter().map(|job| job.job_id).collect();
    let _writing = call.writing()?;
    opened::open(&call, &jobs, many).await?;
    let enqueuing_max = server.settings.enqueuing_max;
    let enqueuing = Weight::take(&server, |server| &server.enqueuing, jobs.len(), enqueuing_max);
    let _enqueuing = enqueuing.ok_or_else(busy)?;
    let answers = server.engine().store().enqueue(jobs).await?;
    if answers.len() <= SMALL_JOBS {
        return enqueued(named, answers, many, owner.as_deref());
    }
    aside(move || enqueued(named, answers, many, owner.as_deref())).await
}

/// The jobs of a body, and whether the body is an array.
fn read_jobs(body: &Bytes, owner: Option<&str>) -> Result<(Vec<NewJob>, bool), Refused> {
    let text = json::text(body)?;
    let many = text.trim_start().starts_with('[');
    let requests: Vec<EnqueueRequest> =
        if many { json::typed(text)? } else { vec![json::typed::<EnqueueRequest>(text)?] };
    if !(1..=limits::ENQUEUE_BATCH_MAX).contains(&requests.len()) {
        let detail = format!("send 1 to {} jobs", limits::ENQUEUE_BATCH_MAX);
        return Err(Refusal::field(Code::Invalid, "", detail));
    }
    let at = |n: usize| if many { format!("/{n}") } else { String::new() };
    let owned = || owner.map(str::to_string);
    let jobs: Result<_, _> =
        requests.into_iter().enumerate().map(|(n, r)| checked(r, &at(n), owned())).collect();
    Ok((jobs?, many))
}

fn enqueued(named: Vec<Option<JobId>>, answers: Vec<Enqueued>, many: bool, owner: Option<&str>) -> Replied {
    let mut items = named.into_iter().zip(answers).map(|(job_id, answer)| item(job_id, answer, owner));
    if many {
        let jobs: Vec<EnqueuedItem> = items.collect();
        let conflict = jobs.iter().any(|item| item.outcome == EnqueueOutcome::Conflict);
        return Reply::json(if conflict { 207 } else { 201 }, &EnqueueManyResponse { jobs });
    }
    let one = items.next().and_then(|item| Some((item.outcome, whole(item)?)));
    match one {
        Some((EnqueueOutcome::Created, job)) => Reply::json(201, &job),
        Some((_, job)) => Reply::json(200, &job),
        None => Err(Refusal::new(Code::Conflict, "the job_id or unique_key belongs to another job")),
    }
}

fn checked(request: EnqueueRequest, at: &str, producer: Option<String>) -> Result<NewJob, Refused> {
    let mut errors = Vec::new();
    let mut wrong = |field: &str, detail: String| {
        errors.push(FieldProblem { pointer: format!("{at}/{field}"), detail });
    };
    let stream = match (&request.stream, request.priority) {
        (Some(stream), None) => Some(stream.clone()),
        (None, Some(priority)) => Some(StreamName::stored(priority.stream())),
        (Some(_), Some(_)) => {
            wrong("stream", "give stream or priority, not both".to_string());
            wrong("priority", "give stream or priority, not both".to_string());
            None
        }
        (None, None) => {
            wrong("stream", "give stream or priority".to_string());
            None
        }
    };
    let start = match (request.delay_ms, request.run_at) {
        (None, None) | (Some(0), None) => Start::Now,
        (Some(delay), None) => Start::After(Duration::from_millis(delay)),
        (None, Some(at)) => Start::At(at),
        (Some(_), Some(_)) => {
            wrong("delay_ms", "give delay_ms or run_at, not both".to_string());
            wrong("run_at", "give delay_ms or run_at, not both".to_string());
            Start::Now
        }
    };
    let job = NewJob {
        job_id: request.job_id,
        // A job without a stream is refused below, together with its other mistakes.
        stream: stream.unwrap_or_else(|| StreamName::stored("")),
        payload: request.payload,
        max_attempts: request
            .max_attempts
            .map_or(limits::MAX_ATTEMPTS_DEFAULT, |n| u32::try_from(n).unwrap_or(u32::MAX)),
        start,
        unique_key: request.unique_key,
        timeout: request.timeout_seconds.map(Duration::from_secs),
        producer,
    };
    // These refusals have codes of their own. Wrong fields are reported first.
    let mut refused = None;
    for unfit in job.unfit() {
        let detail = unfit.to_string();
        match unfit {
            Unfit::ReservedStream(_) => refused = Some((Code::ReservedStream, "stream", detail)),
            Unfit::TooLarge => refused = refused.or(Some((Code::TooLarge, "payload", detail))),
            Unfit::NoObject | Unfit::Payload(_) => wrong("payload", detail),
            Unfit::MaxAttempts => wrong("max_attempts", detail),
            Unfit::TooFarAhead if request.run_at.is_some() => wrong("run_at", detail),
            Unfit::TooFarAhead => wrong("delay_ms", detail),
            Unfit::UniqueKey(_) => wrong("unique_key", detail),
            Unfit::Timeout => wrong("timeout_seconds", detail),
        }
    }
    match refused {
        _ if !errors.is_empty() => Err(Refusal::fields(errors)),
        Some((code, field, detail)) => Err(Refusal::field(code, format!("{at}/{field}"), detail)),
        None => Ok(job),
    }
}

/// One answer. A producer learns nothing about a job that is not its own.
fn item(asked: Option<JobId>, answer: Enqueued, owner: Option<&str>) -> EnqueuedItem {
    let (outcome, brief) = match answer {
        Enqueued::Created(brief) => (EnqueueOutcome::Created, Some(brief)),
        Enqueued::Exists(brief) => (EnqueueOutcome::Exists, Some(brief)),
        Enqueued::DuplicateKey(brief) => (EnqueueOutcome::Duplicate, Some(brief)),
        Enqueued::Conflict(_) => (EnqueueOutcome::Conflict, None),
    };
    match brief.filter(|brief| visible(brief, owner)) {
        Some(brief) => EnqueuedItem {
            outcome,
            job_id: Some(brief.job_id),
            stream: Some(brief.stream),
            status: Some(brief.status),
            max_attempts: Some(brief.max_attempts),
            created_at: Some(brief.created_at),
            run_at: Some(brief.run_at),
            duplicate: outcome != EnqueueOutcome::Created,
        },
        None => EnqueuedItem {
            outcome: EnqueueOutcome::Conflict,
            job_id: asked,
            stream: None,
            status: None,
            max_attempts: None,
            created_at: None,
            run_at: None,
            duplicate: false,
        },
    }
}

fn whole(item: EnqueuedItem) -> Option<EnqueuedJob> {
    Some(EnqueuedJob {
        job_id: item.job_id?,
        stream: item.stream?,
        status: item.status?,
        max_attempts: item.max_attempts?,
        created_at: item.created_at?,
        run_at: item.run_at?,
        duplicate: item.duplicate,
    })
}

fn visible(brief: &JobBrief, owner: Option<&str>) -> bool {
    owner.is_none_or(|owner| brief.producer.as_deref() == Some(owner))
}

fn job_id(call: &Call) -> Result<JobId, Refused> {
    call.param.parse().map_err(|bad: fernery_core::BadName| Refusal::new(Code::BadId, bad.to_string()))
}

/// `GET /v1/jobs/{id}`
pub async fn read(call: Call) -> Replied {
    let job_id = job_id(&call)?;
    let wait_max = limits::JOB_WAIT_MAX.as_millis() as u64;
    let wait = Duration::from_millis(call.query.number("wait_ms", 0..=wait_max)?.unwrap_or(0));
    let _waiting = if wait.is_zero() { None } else { Some(call.waiting()?) };
    // Look before waiting: a producer must not learn when somebody else's job ends.
    let owner = call.caller.only_own();
    let seen = call.server.engine().job(job_id, Duration::ZERO).await?;
    let seen = seen.filter(|view| visible(&view.brief, owner)).ok_or_else(unknown(&call, "job"))?;
    let view = if wait.is_zero() || seen.brief.status.is_final() {
        seen
    } else {
        drop(seen);
        call.server.engine().job(job_id, wait).await?.ok_or_else(unknown(&call, "job"))?
    };
    let mut job = detail(view);
    redacted::job(&call, &mut job).await?;
    Reply::json(200, &job)
}

fn detail(view: JobView) -> JobDetail {
    let JobView { brief, payload, unique_key, timeout, cancel_requested, attempts } = view;
    let succeeded = |attempt: &&AttemptView| attempt.outcome == Some(AttemptOutcome::Succeeded);
    let result = match brief.status {
        JobStatus::Succeeded => attempts.iter().rev().find(succeeded).and_then(|a| a.result.clone()),
        _ => None,
    };
    // A job that succeeded has no error, even if earlier attempts failed; those attempts show their own errors.
    let error = attempts
        .iter()
        .rev()
        .find_map(|attempt| attempt.error.clone())
        .filter(|_| brief.status != JobStatus::Succeeded);
    JobDetail {
        job_id: brief.job_id,
        stream: brief.stream,
        status: brief.status,
        payload,
        result,
        error,
        attempts: attempts.into_iter().map(attempt).collect(),
        max_attempts: brief.max_attempts,
        run_at: brief.run_at,
        created_at: brief.created_at,
        finished_at: brief.finished_at,
        unique_key,
        timeout_seconds: timeout.map(|timeout| timeout.as_secs()),
        cancel_requested,
        redacted: false,
    }
}

fn attempt(view: AttemptView) -> AttemptDetail {
    AttemptDetail {
        attempt_id: view.attempt_id,
        attempt_no: view.attempt_no,
        worker_id: view.worker_id,
        started_at: view.started_at,
        finished_at: view.finished_at,
        outcome: view.outcome,
        error: view.error,
        heartbeat_at: view.heartbeat_at,
        lease_expires_at: view.expires_at,
        progress: view.progress,
    }
}

/// `GET /v1/jobs`
pub async fn list(call: Call) -> Replied {
    let filter = JobFilter {
        status: call.query.parsed("status")?,
        stream: call.query.parsed("stream")?,
        producer: call.caller.only_own().map(str::to_string),
    };
    let bound_to = format!("jobs {filter:?}");
    let after = call.query.text("cursor").map(|text| cursor::read(text, &bound_to)).transpose()?;
    let page = call.server.engine().store().jobs(filter, after, call.page_rows()?).await?;
    let jobs = page.rows.into_iter().map(|brief| JobSummary {
        job_id: brief.job_id,
        stream: brief.stream,
        status: brief.status,
        max_attempts: brief.max_attempts,
        created_at: brief.created_at,
        run_at: brief.run_at,
        finished_at: brief.finished_at,
    });
    let next_cursor = page.next.map(|next| cursor::write(&next, &bound_to));
    Reply::json(200, &JobPage { jobs: jobs.collect(), next_cursor })
}

/// `GET /v1/leases`
pub async fn held(call: Call) -> Replied {
    const LIST: &str = "leases";
    let after = call.query.text("cursor").map(|text| cursor::read::<JobId>(text, LIST)).transpose()?;
    let rows = call.page_rows()?;
    let mut leases = call.server.engine().store().leases(after, rows + 1).await?;
    let more = leases.len() > rows;
    leases.truncate(rows);
    let next_cursor = leases.last().filter(|_| more).map(|last| cursor::write(&last.job_id, LIST));
    let held = leases.into_iter().map(|lease| HeldJob {
        job_id: lease.job_id,
        stream: lease.stream,
        worker_id: lease.worker_id,
        attempt_no: lease.attempt_no,
        started_at: lease.started_at,
        heartbeat_at: lease.heartbeat_at,
        lease_expires_at: lease.expires_at,
        cancel_requested: lease.cancel_requested,
    });
    Reply::json(200, &HeldJobPage { held: held.collect(), next_cursor })
}

/// `GET /v1/jobs/{id}/explain`
pub async fn explain(call: Call) -> Replied {
    let job_id = job_id(&call)?;
    let explained = call.server.engine().explain(job_id).await?;
    let explained = explained.filter(|(view, _)| visible(&view.brief, call.caller.only_own()));
    let Some((view, explanation)) = explained else { return Err(missing("job", &job_id)) };
    let mut response = ExplainResponse {
        job_id,
        status: view.brief.status,
        code: explanation.code().to_string(),
        sentence: explanation.sentence(&view.brief.stream),
        stream: view.brief.stream,
        worker_id: None,
        until: None,
        cancel_requested: None,
        last_polled_at: None,
        ready: None,
    };
    match explanation {
        Explanation::Ended(_) | Explanation::StreamPaused => {}
        Explanation::Held { worker_id, until, cancel_requested, .. } => {
            response.worker_id = Some(worker_id);
            response.until = Some(until);
            response.cancel_requested = Some(cancel_requested);
        }
        Explanation::Scheduled { until } => response.until = Some(until),
        Explanation::NoWorker { last_polled_at } => response.last_polled_at = last_polled_at,
        Explanation::Waiting { ready } => response.ready = Some(ready),
    }
    Reply::json(200, &response)
}

/// `POST /v1/jobs/{id}/cancel`
pub async fn cancel(call: Call) -> Replied {
    let job_id = job_id(&call)?;
    let request: CancelRequest =
        if call.body.is_empty() { CancelRequest::default() } else { json::read(&call.body)? };
    workorder_jobs::refuse(&call, &[job_id], "fernery ticket cancel {}").await?;
    let _writing = call.writing()?;
    let (outcome, status) = match call.server.engine().store().cancel(job_id, request.force).await? {
        CancelAnswer::Cancelled | CancelAnswer::Ended(JobStatus::Cancelled) => {
            (CancelOutcome::Cancelled, JobStatus::Cancelled)
        }
        CancelAnswer::Requested => (CancelOutcome::Requested, JobStatus::Running),
        CancelAnswer::Ended(status) => {
            return Err(Refusal::new(Code::Conflict, format!("the job has already ended: {status}")));
        }
        CancelAnswer::Unknown => return Err(missing("job", &job_id)),
    };
    Reply::json(200, &CancelResponse { job_id, outcome, status })
}

/// `POST /v1/jobs/{id}/retry`
pub async fn retry(call: Call) -> Replied {
    let job_id = job_id(&call)?;
    call.no_fields()?;
    workorder_jobs::refuse(&call, &[job_id], "fernery ticket unblock {} --all").await?;
    let _writing = call.writing()?;
    let conflict = |detail: String| Err(Refusal::new(Code::Conflict, detail));
    match call.server.engine().store().retry(job_id).await? {
        RetryAnswer::Requeued => Reply::json(200, &RetryResponse { job_id, status: JobStatus::Queued }),
        RetryAnswer::NotEnded(status) => {
            conflict(format!("only DEAD and CANCELLED jobs can be retried; this one is {status}"))
        }
        RetryAnswer::KeyTaken => conflict("its unique_key belongs to another unfinished job".to_string()),
        RetryAnswer::Unknown => Err(missing("job", &job_id)),
    }
}

//! The whole of a store as text, through its public reads alone: two dumps are equal if nobody can tell the stores apart.
//!
//! Every job with its attempts, every list under every filter, the dead letters, the streams and their counts. What a reader
//! cannot see (tallies, the freeing of keys) shows in what happens next.

use fernery_core::{AttemptId, JobId, JobStatus, Timestamp};
use fernery_engine::store::{
    AttemptView, Cursor, DeadFilter, DeadLetter, JobBrief, JobFilter, JobView, Page, Store, StreamView,
};
use std::fmt::Write;
use std::future::Future;

/// How ids and instants are written: as they are, or as names that are the same on every backend.
pub(crate) trait Naming: Sync {
    fn job(&self, job_id: JobId) -> String;
    fn attempt(&self, attempt_id: AttemptId) -> String;
    fn instant(&self, at: Timestamp) -> String;
}

/// As they are.
pub(crate) struct Verbatim;

impl Naming for Verbatim {
    fn job(&self, job_id: JobId) -> String {
        job_id.to_string()
    }

    fn attempt(&self, attempt_id: AttemptId) -> String {
        attempt_id.to_string()
    }

    fn instant(&self, at: Timestamp) -> String {
        at.to_string()
    }
}

/// Small, so that every list of more than a few rows is read across pages.
const PAGE_ROWS: usize = 5;

/// The whole of a store, ids and instants as they are.
pub(crate) async fn dump(store: &dyn Store) -> String {
    dump_named(store, &Verbatim).await
}

/// The whole of a store.
pub(crate) async fn dump_named(store: &dyn Store, naming: &dyn Naming) -> String {
    let mut text = String::new();
    let mut streams = store.streams(None, usize::MAX).await.expect("streams");
    streams.sort_by(|a, b| a.name.cmp(&b.name));
    for stream in &streams {
        let alone = store.stream(stream.name.clone()).await.expect("stream");
        assert_eq!(alone.as_ref(), Some(stream), "a stream reads alone as in the list");
        line(&mut text, &stream_text(stream, naming));
    }
    let names = streams.iter().map(|stream| stream.name.clone()).collect();
    let mut claimable = store.claimable(names).await.expect("claimable");
    claimable.sort();
    line(&mut text, &format!("claimable {claimable:?}"));
    let next_due = store.next_due().await.expect("next due");
    line(&mut text, &format!("next due {}", optional(next_due, naming)));

    for brief in all_jobs(store, JobFilter::default()).await {
        let view = store.job(brief.job_id).await.expect("job").expect("a listed job can be read");
        assert_eq!(view.brief, brief, "a job reads alone as in the list");
        text.push_str(&view_text(&view, naming));
    }
    let statuses = [None].into_iter().chain(JobStatus::ALL.iter().copied().map(Some));
    let stream_filters = || [None].into_iter().chain(streams.iter().map(|s| Some(s.name.clone())));
    for status in statuses {
        for stream in stream_filters() {
            let filter = JobFilter { status, stream, producer: None };
            let rows = all_jobs(store, filter.clone()).await;
            let ids: Vec<_> = rows.iter().map(|brief| naming.job(brief.job_id)).collect();
            line(&mut text, &format!("list {:?} {:?} {}", filter.status, filter.stream, ids.join(" ")));
        }
    }
    let all = DeadFilter::default();
    let dead = all_dead(store, all.clone()).await;
    assert_eq!(store.count_dead(all).await.expect("count"), dead.len() as u64, "the count is of the list");
    for letter in dead {
        line(&mut text, &letter_text(&letter, naming));
    }
    text
}

/// Every page of a list of jobs.
pub(crate) async fn all_jobs(store: &dyn Store, filter: JobFilter) -> Vec<JobBrief> {
    all_pages(|after| store.jobs(filter.clone(), after, PAGE_ROWS)).await
}

/// Every page of the dead letters.
pub(crate) async fn all_dead(store: &dyn Store, filter: DeadFilter) -> Vec<DeadLetter> {
    all_pages(|after| store.dead_letters(filter.clone(), after, PAGE_ROWS)).await
}

async fn all_pages<T, F>(mut page: impl FnMut(Option<Cursor>) -> F) -> Vec<T>
where
    F: Future<Output = Result<Page<T>, fernery_engine::StoreError>>,
{
    let mut rows = Vec::new();
    let mut after = None;
    loop {
        let page = page(after.clone()).await.expect("a page");
        assert!(page.rows.len() <= PAGE_ROWS, "a page holds no more than asked for");
        rows.extend(page.rows);
        match page.next {
            None => return rows,
            next if next == after => panic!("a page leads on, not in a circle: {next:?}"),
            next => after = next,
        }
    }
}

fn stream_text(stream: &StreamView, naming: &dyn Naming) -> String {
    let StreamView { name, counts, oldest_ready_at, paused, redact } = stream;
    let oldest = optional(*oldest_ready_at, naming);
    format!("stream {name} {counts:?} oldest {oldest} paused {paused} redact {redact}")
}

fn letter_text(letter: &DeadLetter, naming: &dyn Naming) -> String {
    let DeadLetter { job_id, stream, buried_at, reason, code, error } = letter;
    let error = error.as_deref().unwrap_or("-");
    format!("dead {} {stream} {} {reason} {code} {error}", naming.job(*job_id), naming.instant(*buried_at))
}

pub(crate) fn brief_text(brief: &JobBrief, naming: &dyn Naming) -> String {
    let JobBrief { job_id, stream, status, max_attempts, created_at, run_at, finished_at, producer } = brief;
    format!(
        "job {} {stream} {status} of {max_attempts} created {} run {} finished {} producer {producer:?}",
        naming.job(*job_id),
        naming.instant(*created_at),
        naming.instant(*run_at),
        optional(*finished_at, naming)
    )
}

fn view_text(view: &JobView, naming: &dyn Naming) -> String {
    let JobView { brief, payload, unique_key, timeout, cancel_requested, attempts } = view;
    let mut text = brief_text(brief, naming);
    line(
        &mut text,
        &format!(" {payload} key {unique_key:?} timeout {timeout:?} cancel_requested {cancel_requested}"),
    );
    for attempt in attempts {
        line(&mut text, &attempt_text(attempt, naming));
    }
    text
}

fn attempt_text(attempt: &AttemptView, naming: &dyn Naming) -> String {
    let AttemptView {
        attempt_id,
        attempt_no,
        worker_id,
        started_at,
        finished_at,
        outcome,
        error,
        result,
        heartbeat_at,
        expires_at,
        progress,
        claim_version,
    } = attempt;
    format!(
        "  attempt {attempt_no} {} by {worker_id} v{claim_version} started {} finished {} {outcome:?} \
         error {error:?} result {result:?} heard {} expires {} progress {progress:?}",
        naming.attempt(*attempt_id),
        naming.instant(*started_at),
        optional(*finished_at, naming),
        optional(*heartbeat_at, naming),
        optional(*expires_at, naming)
    )
}

fn optional(at: Option<Timestamp>, naming: &dyn Naming) -> String {
    at.map_or("-".to_string(), |at| naming.instant(at))
}

fn line(text: &mut String, rest: &str) {
    writeln!(text, "{rest}").expect("a String takes all");
}

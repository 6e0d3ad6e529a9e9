//! `GET /jobs`: jobs by status and stream. The filters are in the address, so that it can be kept and sent.

use super::bulk;
use super::frame::Frame;
use super::job::acts::{Ended, cancel, retry};
use super::reply::PageReply;
use super::show::{Id, Line, Ways, When};
use super::trouble::Said;
use super::visit::{Shown, Visit, link};
use crate::bulk_words;
use crate::http::problem::{Code, Refused};
use askama::Template;
use fernery_client::wire::{BulkRequest, JobPage, JobSummary};
use fernery_core::job::bulk::BulkVerb;
use fernery_core::{BadName, JobStatus, StreamName, Timestamp, limits};
use fernery_engine::door;

struct Row {
    shown: Id,
    id: String,
    /// What its box and its button send.
    value: String,
    stream: Line,
    of_stream: String,
    status: JobStatus,
    created: When,
    /// When it ended, or when it may start if that is still to come.
    ended: Option<When>,
    starts: Option<When>,
    /// What can be done to it.
    act: &'static str,
}

#[derive(Template)]
#[template(path = "jobs.html")]
struct Jobs {
    frame: Frame,
    rows: Vec<Row>,
    statuses: Vec<&'static str>,
    status: String,
    stream: String,
    cursor: String,
    /// Where the acts of this page go. An answer that stays on the screen is brought up to date by its address: it names the filter.
    here: String,
    first: String,
    next: Option<String>,
    said: Said,
    /// What an act on several jobs was refused for, job by job.
    refused: Vec<(Id, Line)>,
    done: usize,
    /// What can be done to those that are ticked.
    ways: [(&'static str, &'static str, Ways); 2],
    /// Whether every box of the page is ticked as it comes.
    ticked: bool,
    tick: String,
    /// What can be done to all that match: the word and where it is asked.
    all: Vec<(&'static str, String)>,
    /// How many those are, once the page is ticked.
    matching: Option<String>,
}

pub(super) async fn show(visit: Visit) -> Shown {
    page(&visit, Filter::of(&visit.query), 200, Vec::new(), 0).await
}

/// Which jobs are shown.
struct Filter {
    status: String,
    stream: String,
    cursor: String,
    /// `all`: the page comes with every box ticked.
    tick: String,
}

impl Filter {
    fn of(fields: &super::fields::Fields) -> Self {
        let filled = |name: &str| fields.filled(name).unwrap_or_default().to_string();
        Self {
            status: filled("status"),
            stream: filled("stream"),
            cursor: filled("cursor"),
            tick: filled("tick"),
        }
    }

    fn link(&self, cursor: &str) -> String {
        self.ticked(cursor, "")
    }

    fn ticked(&self, cursor: &str, tick: &str) -> String {
        let fields =
            [("status", self.status.as_str()), ("stream", &self.stream), ("cursor", cursor), ("tick", tick)];
        link("/jobs", &fields)
    }

    /// What can be done to all jobs of this list, where it has one status.
    fn acts(&self) -> Vec<BulkRequest> {
        let (Ok(status), Ok(stream)) = (self.status.parse::<JobStatus>(), self.stream()) else {
            return Vec::new();
        };
        let verbs = BulkVerb::ALL.iter().filter(|verb| verb.unfit_for(status).is_none());
        let asked = |verb: &BulkVerb| BulkRequest {
            verb: *verb,
            status,
            stream: stream.clone(),
            code: None,
            before: None,
            act_id: None,
            dry_run: false,
        };
        verbs.map(asked).collect()
    }

    fn stream(&self) -> Result<Option<StreamName>, BadName> {
        Some(&self.stream).filter(|name| !name.is_empty()).map(|name| name.parse()).transpose()
    }
}

async fn page(visit: &Visit, filter: Filter, status: u16, refused: Vec<(Id, Line)>, done: usize) -> Shown {
    let limit = limits::PAGE_ROWS_DEFAULT.to_string();
    let filters = [
        ("status", filter.status.as_str()),
        ("stream", filter.stream.as_str()),
        ("cursor", filter.cursor.as_str()),
        ("limit", limit.as_str()),
    ];
    let asked: Vec<_> = filters.into_iter().filter(|(_, value)| !value.is_empty()).collect();
    // A filter that means nothing is shown with what is wrong with it.
    let (status, found, said) = match visit.get::<JobPage>("/v1/jobs", &asked).await {
        Ok(found) => (status, found, Said::default()),
        Err(refusal) if refusal.code.status() < 500 && refusal.code != Code::Forbidden => {
            let found = JobPage { jobs: Vec::new(), next_cursor: None };
            (refusal.code.status(), found, Said::of(&refusal))
        }
        Err(refusal) => return Err(refusal),
    };
    let now = door::wall_clock();
    let acts = if visit.is_operator() && said.detail.is_none() { filter.acts() } else { Vec::new() };
    let ticked = filter.tick == "all";
    let matching = match acts.first().filter(|_| ticked) {
        Some(first) => {
            let count = bulk::counted(visit, first).await?;
            Some(bulk_words::jobs(count.matching, count.counted))
        }
        None => None,
    };
    let asks = |asked: &BulkRequest| {
        let fields = [("verb", asked.verb.as_str()), ("status", &filter.status), ("stream", &filter.stream)];
        (word_of(asked.verb), link("/bulk-ask", &fields))
    };
    let jobs = Jobs {
        all: acts.iter().map(asks).collect(),
        matching,
        ticked,
        tick: filter.ticked(&filter.cursor, "all"),
        frame: visit.frame("Jobs"),
        next: found.next_cursor.map(|cursor| filter.link(&cursor)),
        rows: found.jobs.into_iter().map(|job| row(job, now)).collect(),
        statuses: JobStatus::ALL.iter().map(|status| status.as_str()).collect(),
        here: filter.link(&filter.cursor),
        first: filter.link(""),
        status: filter.status,
        stream: filter.stream,
        cursor: filter.cursor,
        said,
        refused,
        done,
        ways: [("cancel", "Cancel"), ("retry", "Retry")].map(|(act, word)| {
            let path = format!("/v1/jobs/ID/{act}");
            (act, word, Ways::new(format!("fernery job {act} ID"), "POST", &path, None))
        }),
    };
    visit.show_as(status, &jobs)
}

fn word_of(verb: BulkVerb) -> &'static str {
    match verb {
        BulkVerb::Cancel => "Cancel",
        BulkVerb::Retry => "Retry",
        BulkVerb::Purge => "Purge",
    }
}

fn row(job: JobSummary, now: Timestamp) -> Row {
    let waits = job.status == JobStatus::Queued && job.run_at > now;
    Row {
        shown: Id::of(job.job_id),
        id: job.job_id.to_string(),
        value: Ended { job_id: job.job_id.to_string(), at: job.finished_at }.to_string(),
        of_stream: link("/jobs", &[("stream", job.stream.as_str())]),
        stream: Line::of(&job.stream),
        status: job.status,
        created: When(job.created_at),
        ended: job.finished_at.map(When),
        starts: waits.then_some(When(job.run_at)),
        act: act_on(job.status),
    }
}

/// What can be done to a job of this status.
pub(super) fn act_on(status: JobStatus) -> &'static str {
    match status {
        JobStatus::Queued | JobStatus::Running => "cancel",
        JobStatus::Dead | JobStatus::Cancelled => "retry",
        JobStatus::Succeeded => "",
    }
}

/// `POST /jobs`: cancels or retries the jobs that are ticked, or the one whose button was pressed. Each is one call of the API;
/// what was refused is said job by job, and the rest is done.
pub(super) async fn act(visit: Visit) -> Shown {
    let filter = Filter::of(&visit.query);
    let one = [("cancel", "cancel_one"), ("retry", "retry_one")]
        .into_iter()
        .find_map(|(act, field)| visit.form.filled(field).map(|job| (act, vec![job])));
    let (act, jobs) = match one {
        Some(one) => one,
        None => (visit.form.text("act"), visit.form.all("job").collect()),
    };
    if !matches!(act, "cancel" | "retry") {
        // Enter on a box presses the first button of the form. That one does nothing: a row's button would cancel its job.
        let detail = Line::of("Nothing was done. Press Cancel or Retry.");
        return page(&visit, filter, 422, vec![(Id::of(""), detail)], 0).await;
    }
    if jobs.is_empty() || jobs.len() > limits::PAGE_ROWS_MAX as usize {
        let detail = Line::of("Tick the jobs that are meant, at most 500.");
        return page(&visit, filter, 422, vec![(Id::of(""), detail)], 0).await;
    }
    let mut refused: Vec<(Id, Line)> = Vec::new();
    let mut done = 0;
    let mut status = 200;
    for job in jobs {
        let ended: Ended = job.parse()?;
        let result: Result<(), Refused> = match act {
            "cancel" => cancel(&visit, &ended.job_id, false).await,
            _ => retry(&visit, &ended).await,
        };
        match result {
            Ok(()) => done += 1,
            Err(refusal) if refusal.code.status() < 500 => {
                status = refusal.code.status();
                refused.push((Id::of(&ended.job_id), Line::of(&refusal.detail)));
            }
            Err(refusal) => return Err(refusal),
        }
    }
    if refused.is_empty() {
        return Ok(PageReply::see_other(filter.link(&filter.cursor)));
    }
    page(&visit, filter, status, refused, done).await
}

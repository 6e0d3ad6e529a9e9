//! The ways that a job can go, drawn as SVG, with the way that this one took; and the same in words.
//!
//! What is said comes from the attempts alone. They do not tell how often a job was started over: a job that has failed as often as
//! it may and still goes on was, and nothing more is known.

use askama::filters::HtmlSafe;
use fernery_client::wire::JobDetail;
use fernery_core::{AttemptOutcome, JobStatus, Timestamp};
use std::fmt::{self, Display, Formatter};

/// Where what came of an attempt leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leads {
    Nowhere,
    /// To the line, at once.
    ToReady,
    /// To the line, if an operator starts it over.
    Over,
    /// To its time, which is later.
    ToScheduled,
}

/// What an attempt can come to.
struct Branch {
    name: &'static str,
    count: usize,
    /// Whether any attempt went this way.
    taken: bool,
    /// Whether any went on from here.
    on: bool,
    here: bool,
    leads: Leads,
}

pub(super) struct Flow {
    id: String,
    scheduled: bool,
    ready: bool,
    running: bool,
    /// Whether it waited for its time, for an attempt after a failure or for its first.
    waited: bool,
    claims: usize,
    branches: [Branch; 7],
}

impl Flow {
    pub(super) fn of(job: &JobDetail, now: Timestamp) -> Self {
        let closed = |is: AttemptOutcome| job.attempts.iter().filter(|it| it.outcome == Some(is)).count();
        let last = job.attempts.last().and_then(|attempt| attempt.outcome);
        let ended = job.status.is_final();
        // Nothing follows the last attempt of a job that has ended.
        let went_on = |is: AttemptOutcome| closed(is) > usize::from(ended && last == Some(is));
        let spent = closed(AttemptOutcome::Failed) + closed(AttemptOutcome::TimedOut);
        let most = usize::try_from(job.max_attempts).unwrap_or(usize::MAX);
        let over = spent > most || (spent == most && !ended);
        let of = |name, is, leads| Branch {
            name,
            count: closed(is),
            taken: closed(is) > 0,
            on: leads != Leads::Nowhere && went_on(is),
            here: false,
            leads,
        };
        let end = |name, status: JobStatus, leads, on| Branch {
            name,
            count: 0,
            taken: job.status == status,
            on,
            here: job.status == status,
            leads,
        };
        let branches = [
            end("succeeded", JobStatus::Succeeded, Leads::Nowhere, false),
            of("lost", AttemptOutcome::Lost, Leads::ToReady),
            of("given back", AttemptOutcome::Released, Leads::ToReady),
            end("dead", JobStatus::Dead, Leads::Over, over),
            Branch {
                count: closed(AttemptOutcome::Cancelled),
                taken: job.status == JobStatus::Cancelled || closed(AttemptOutcome::Cancelled) > 0,
                ..end("cancelled", JobStatus::Cancelled, Leads::Over, went_on(AttemptOutcome::Cancelled))
            },
            of("failed", AttemptOutcome::Failed, Leads::ToScheduled),
            of("timed out", AttemptOutcome::TimedOut, Leads::ToScheduled),
        ];
        let later = job.status == JobStatus::Queued && job.run_at > now;
        let retried = branches.iter().any(|branch| branch.leads == Leads::ToScheduled && branch.on);
        Self {
            id: job.job_id.to_string(),
            scheduled: later,
            ready: job.status == JobStatus::Queued && !later,
            running: job.status == JobStatus::Running,
            waited: later || retried || job.run_at > job.created_at,
            claims: job.attempts.len(),
            branches,
        }
    }

    /// What the picture shows, line by line.
    pub(super) fn words(&self) -> Vec<String> {
        let mut said = vec![match self.claims {
            0 => "No worker has claimed it.".to_string(),
            1 => "A worker claimed it once.".to_string(),
            n => format!("Workers claimed it {n} times."),
        }];
        let times = |n: usize| if n == 1 { "once".to_string() } else { format!("{n} times") };
        for branch in self.branches.iter().filter(|branch| branch.count > 0) {
            let (what, why) = match branch.name {
                "lost" => ("Lost", ": its worker was not heard any more"),
                "given back" => ("Given back", " by its worker, unfinished"),
                "timed out" => ("Out of time", ""),
                "cancelled" => ("Cancelled", " while it ran"),
                _ => ("Failed", ""),
            };
            let then = match (branch.on, branch.leads) {
                (true, Leads::ToReady) => "; it waited in line again at once",
                (true, Leads::Over) => "; it was started over",
                (true, Leads::ToScheduled) => "; it was tried again later",
                _ => "",
            };
            said.push(format!("{what} {}{why}{then}.", times(branch.count)));
        }
        if self.branches.iter().any(|branch| branch.name == "dead" && branch.on) {
            said.push("It had failed as often as it may, and was started over.".to_string());
        }
        said.push(format!("Now it is {}.", self.now()));
        said
    }

    /// Where it stands.
    fn now(&self) -> &'static str {
        let there = self.branches.iter().find(|branch| branch.here).map(|branch| branch.name);
        match (self.scheduled, self.ready) {
            (true, _) => "scheduled for later",
            (_, true) => "ready for a worker",
            _ => there.unwrap_or("running"),
        }
    }
}

/// How far down the first branch is, and how far each is below the one before.
const FIRST: usize = 72;
const STEP: usize = 32;

/// A box around its name.
fn node(
    f: &mut Formatter<'_>,
    at: (usize, usize, usize),
    name: &str,
    count: usize,
    class: &str,
) -> fmt::Result {
    let (x, y, width) = at;
    let times = if count > 0 { format!(" × {count}") } else { String::new() };
    write!(
        f,
        "<g class=\"{class}\"><rect x=\"{x}\" y=\"{}\" width=\"{width}\" height=\"26\" rx=\"6\"/>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{name}{times}</text></g>",
        y - 13,
        x + width / 2,
        y + 4
    )
}

/// A line that ends in an arrow: `left`, `right` or `up`.
fn arrow(f: &mut Formatter<'_>, path: &str, end: (usize, usize), to: &str, taken: bool) -> fmt::Result {
    let ((x, y), class) = (end, class_of(taken));
    let head = match to {
        "left" => format!("M{x} {y}l6 -4v8z"),
        "right" => format!("M{x} {y}l-6 -4v8z"),
        _ => format!("M{x} {y}l-4 6h8z"),
    };
    write!(f, "<path class=\"way{class}\" d=\"{path}\"/><path class=\"head{class}\" d=\"{head}\"/>")
}

fn class_of(taken: bool) -> &'static str {
    if taken { " taken" } else { "" }
}

fn node_class(taken: bool, here: bool) -> &'static str {
    match (taken, here) {
        (_, true) => "node taken here",
        (true, _) => "node taken",
        _ => "node",
    }
}

impl HtmlSafe for Flow {}

/// Everything in it is a number, an id or a word of ours. What was taken is drawn last, over what was not.
impl Display for Flow {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let id = &self.id;
        write!(
            f,
            "<svg class=\"flow\" viewBox=\"0 0 360 282\" role=\"img\" aria-labelledby=\"flow-title-{id} flow-desc-{id}\">\
             <title id=\"flow-title-{id}\">Where a job can stand. This one is {}</title><desc id=\"flow-desc-{id}\">{}</desc>",
            self.now(),
            self.words().join(" ")
        )?;
        let mut rows: Vec<(usize, &Branch)> =
            self.branches.iter().enumerate().map(|(n, branch)| (FIRST + n * STEP, branch)).collect();
        rows.sort_by_key(|(_, branch)| branch.taken);
        arrow(f, "M94 20H132", (134, 20), "right", self.waited && (self.claims > 0 || self.ready))?;
        arrow(f, "M214 20H260", (262, 20), "right", self.claims > 0)?;
        for (y, branch) in &rows {
            arrow(f, &format!("M338 33V{y}H324"), (322, *y), "left", branch.taken && self.claims > 0)?;
        }
        rows.sort_by_key(|(_, branch)| branch.on);
        for (y, branch) in &rows {
            // Each kind has a line of its own up, so that none crosses another.
            let x = match branch.leads {
                Leads::Nowhere => continue,
                Leads::ToReady => 200,
                Leads::Over => 152,
                Leads::ToScheduled => 49,
            };
            arrow(f, &format!("M222 {y}H{x}V35"), (x, 33), "up", branch.on)?;
        }
        for (x, y, text) in
            [(196, 124, "at once"), (148, 188, "started over"), (56, 226, "tried again later")]
        {
            let anchor = if x == 56 { "start" } else { "end" };
            write!(f, "<text class=\"along\" x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{text}</text>")?;
        }
        node(f, (4, 20, 90), "scheduled", 0, node_class(self.waited, self.scheduled))?;
        node(f, (134, 20, 80), "ready", 0, node_class(true, self.ready))?;
        node(f, (262, 20, 94), "running", self.claims, node_class(self.claims > 0, self.running))?;
        for (y, branch) in &rows {
            node(f, (222, *y, 100), branch.name, branch.count, node_class(branch.taken, branch.here))?;
        }
        f.write_str("</svg>")
    }
}

//! The output of a running worker: live lines on a terminal, one line per event elsewhere, objects for programs.

use crate::cli::screen::{Screen, counted, json_inert, plain, remark};
use crate::command_worker::handler::Remark;
use crate::config::duration;
use fernery_client::worker::{Gathered, Job, JobEnding, Summary, WorkerError, WorkerEvent};
use fernery_core::AttemptId;
use fernery_engine::door;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::time::Duration;

/// Running jobs that have a line of their own; the others are counted.
const LINES_MAX: usize = 20;
const REDRAW_EVERY: Duration = Duration::from_millis(200);

/// Lines queued for a slow reader; further ones are dropped.
const WAITING_MAX: usize = 10_000;
/// How long the last lines may take to be read.
const FAREWELL: Duration = Duration::from_secs(1);

/// Takes a worker's events. A thread of its own shows them: a stopped terminal or a pipe that nobody reads must not
/// hold up heartbeats.
pub(super) struct Show {
    sender: Mutex<Option<SyncSender<News>>>,
    shown: Mutex<Receiver<()>>,
}

/// What there is to show.
enum News {
    Line(Line),
    Event(WorkerEvent),
    End(Summary),
}

/// The one who shows it.
struct Shower {
    screen: Screen,
    live: Option<Live>,
}

/// The lines of a terminal.
struct Live {
    lines: MultiProgress,
    counts: ProgressBar,
    state: State,
}

#[derive(Default)]
struct State {
    bars: HashMap<AttemptId, ProgressBar>,
    running: u64,
    succeeded: u64,
    failed: u64,
    other: u64,
    trouble: Option<String>,
}

/// One event as a line and as JSON. A line that is not news is shown only without a live display.
struct Line {
    object: Value,
    text: String,
    news: bool,
}

impl Show {
    pub(super) fn new(screen: Screen) -> Self {
        let (sender, told) = sync_channel(WAITING_MAX);
        let (over, shown) = channel();
        std::thread::spawn(move || {
            let live = (!screen.json && std::io::stderr().is_terminal()).then(Live::new);
            let mut shower = Shower { screen, live };
            while let Ok(told) = told.recv() {
                shower.show(told);
            }
            drop(over);
        });
        Self { sender: Mutex::new(Some(sender)), shown: Mutex::new(shown) }
    }

    fn tell(&self, told: News) {
        if let Some(sender) = &*self.sender.lock().expect("not poisoned") {
            // Nobody has read ten thousand lines.
            let _ = sender.try_send(told);
        }
    }

    /// Tells where it works.
    pub(super) fn start(&self, text: String, object: Value) {
        self.tell(News::Line(Line { object, text, news: true }));
    }

    pub(super) fn event(&self, event: WorkerEvent) {
        self.tell(News::Event(event));
    }

    pub(super) fn remark(&self, job: &Job, remark: Remark) {
        let (id, stream) = (job.id(), job.stream());
        self.tell(News::Line(match remark {
            Remark::Leftovers(count) => Line {
                object: json!({"event": "leftovers_ended", "job_id": id, "stream": stream, "processes": count}),
                text: format!("ended     {id} {stream}: processes that had outlived the command: {count}"),
                news: true,
            },
            Remark::Immortal(pids) => Line {
                text: format!("warning   {id} {stream}: SIGKILL does not end its processes {pids:?}"),
                object: json!({"event": "not_ended", "job_id": id, "stream": stream, "pids": pids}),
                news: true,
            },
        }));
    }

    /// Tells of reports that another worker has left.
    pub(super) fn gathered(&self, spool: &Path, gathered: &Result<Gathered, WorkerError>) {
        let path = spool.display().to_string();
        let line = |object: Value, text: String| self.tell(News::Line(Line { object, text, news: true }));
        match gathered {
            Ok(Gathered { reports, damaged, .. }) => {
                line(
                    json!({"event": "spool_gathered", "reports": reports, "path": path}),
                    format!(
                        "spool     also sending {} that another worker left in {path}",
                        counted(reports, "report")
                    ),
                );
                if let Some((entries, path)) = damaged {
                    self.event(WorkerEvent::SpoolDamaged { entries: *entries, path: path.clone() });
                }
            }
            Err(error) => line(
                json!({"event": "spool_left", "why": error.to_string(), "path": path}),
                format!("warning   cannot send the reports that another worker left in {path}: {error}"),
            ),
        }
    }

    /// Tells of trouble that concerns no job.
    pub(super) fn trouble(&self, why: &str) {
        let (object, text) = (json!({"event": "waiting", "why": why}), format!("waiting   {why}"));
        self.tell(News::Line(Line { object, text, news: true }));
    }

    /// Says what was done, and leaves the terminal as it was.
    pub(super) fn end(&self, summary: Summary) {
        self.tell(News::End(summary));
    }

    /// Waits until everything is shown, but not for ever.
    pub(super) fn close(&self) {
        drop(self.sender.lock().expect("not poisoned").take());
        let _ = self.shown.lock().expect("not poisoned").recv_timeout(FAREWELL);
    }
}

impl Shower {
    fn show(&mut self, told: News) {
        match told {
            News::Line(line) => self.line(line),
            News::Event(event) => {
                if let Some(live) = &mut self.live {
                    live.follow(&event);
                }
                if let Some(line) = describe(&event) {
                    self.line(line);
                }
            }
            News::End(summary) => {
                if let Some(live) = self.live.take() {
                    live.counts.finish_and_clear();
                    let _ = live.lines.clear();
                }
                self.line(ended(&summary));
            }
        }
    }

    fn line(&self, line: Line) {
        if self.screen.json {
            let mut object = line.object;
            object["at"] = door::wall_clock().to_string().into();
            // The reader of the events may be gone; the work goes on.
            let _ = writeln!(std::io::stdout(), "{}", json_inert(&object.to_string()));
        } else if let Some(live) = &self.live {
            if line.news {
                let _ = live.lines.println(plain(&line.text));
            }
        } else {
            remark(&line.text.replace('\n', " "));
        }
    }
}

impl Live {
    fn new() -> Self {
        let lines = MultiProgress::new();
        let counts = lines.add(ProgressBar::new_spinner());
        counts.set_style(ProgressStyle::with_template("{msg}").expect("a template"));
        let live = Self { lines, counts, state: State::default() };
        live.count();
        live
    }

    fn follow(&mut self, event: &WorkerEvent) {
        let state = &mut self.state;
        match event {
            WorkerEvent::Claimed { job } => {
                state.running += 1;
                if state.bars.len() < LINES_MAX {
                    let bar = self.lines.insert_before(&self.counts, ProgressBar::new_spinner());
                    let style =
                        ProgressStyle::with_template("{spinner} {msg} {elapsed}").expect("a template");
                    bar.set_style(style);
                    let again = match job.attempt_no() {
                        1 => String::new(),
                        n => format!(" (attempt {n})"),
                    };
                    bar.set_message(plain(&format!("{} {}{again}", job.id(), job.stream())));
                    bar.enable_steady_tick(REDRAW_EVERY);
                    state.bars.insert(job.attempt_id(), bar);
                }
            }
            WorkerEvent::Stopping { job, reason } => {
                if let Some(bar) = state.bars.get(&job.attempt_id()) {
                    bar.set_message(plain(&format!("{} {}: stopping, {reason}", job.id(), job.stream())));
                }
            }
            WorkerEvent::Finished { job, ending, .. } => {
                state.running = state.running.saturating_sub(1);
                match ending {
                    JobEnding::Succeeded => state.succeeded += 1,
                    JobEnding::Failed { .. } => state.failed += 1,
                    _ => state.other += 1,
                }
                if let Some(bar) = state.bars.remove(&job.attempt_id()) {
                    bar.finish_and_clear();
                    self.lines.remove(&bar);
                }
            }
            WorkerEvent::Reconnecting { error, .. } => state.trouble = Some(error.to_string()),
            WorkerEvent::Reconnected { .. } => state.trouble = None,
            WorkerEvent::Draining { .. } => state.trouble = Some("draining".into()),
            _ => {}
        }
        self.count();
    }

    fn count(&self) {
        let State { running, succeeded, failed, other, trouble, .. } = &self.state;
        let mut line = format!("{running} running, {succeeded} succeeded, {failed} failed");
        if *other > 0 {
            line.push_str(&format!(", {other} returned or lost"));
        }
        if let Some(trouble) = trouble {
            line.push_str(&format!("; {trouble}"));
        }
        self.counts.set_message(plain(&line));
        self.counts.tick();
    }
}

fn ended(summary: &Summary) -> Line {
    let object = json!({
        "event": "ended", "claimed": summary.claimed, "succeeded": summary.succeeded, "failed": summary.failed,
        "released": summary.released, "lost": summary.lost, "unreported": summary.unreported,
        "unkept": summary.unkept, "abandoned": summary.abandoned,
    });
    Line { object, text: format!("ended: {summary}"), news: true }
}

/// Every attempt has a number, but lost and released ones, and those before a redrive, do not count against the maximum.
fn attempt(number: u32, max: u32) -> String {
    if number <= max { format!("attempt {number} of {max}") } else { format!("attempt {number}") }
}

fn describe(event: &WorkerEvent) -> Option<Line> {
    let of = |name: &str, job: &Job| {
        json!({"event": name, "job_id": job.id(), "attempt_id": job.attempt_id(), "stream": job.stream(),
               "attempt_no": job.attempt_no()})
    };
    let named = |job: &Job| format!("{} {}", job.id(), job.stream());
    let line = |object: Value, text: String, news: bool| Some(Line { object, text, news });
    match event {
        WorkerEvent::Claimed { job } => {
            let text = format!("claimed   {} {}", named(job), attempt(job.attempt_no(), job.max_attempts()));
            line(of("claimed", job), text, false)
        }
        WorkerEvent::Stopping { job, reason } => {
            let mut object = of("stopping", job);
            object["reason"] = reason.as_str().into();
            line(object, format!("stopping  {}: {reason}", named(job)), true)
        }
        WorkerEvent::Finished { job, ending, took } => finished(job, ending, *took, of("finished", job)),
        WorkerEvent::LeaseLost { job } => line(
            of("lease_lost", job),
            format!("lost      {}: the lease was lost; nothing is reported", named(job)),
            true,
        ),
        WorkerEvent::ReportRefused { job_id, error } => line(
            json!({"event": "report_refused", "job_id": job_id, "error": error.to_string()}),
            format!("refused   {job_id}: {error}"),
            true,
        ),
        WorkerEvent::Reconnecting { call, error, after } => {
            let after_ms = after.as_millis() as u64;
            line(
                json!({"event": "reconnecting", "call": call, "error": error.to_string(), "after_ms": after_ms}),
                format!("waiting   {call}: {error}; retrying in {}", span(*after)),
                false,
            )
        }
        WorkerEvent::Reconnected { call } => line(
            json!({"event": "reconnected", "call": call}),
            format!("again     {call}: the server answers again"),
            false,
        ),
        WorkerEvent::LeftoversFound { reports } => line(
            json!({"event": "spool_found", "reports": reports}),
            format!("spool     sending {} of an earlier run first", counted(reports, "report")),
            true,
        ),
        WorkerEvent::SpoolDamaged { entries, path } => line(
            json!({"event": "spool_damaged", "entries": entries, "path": path.display().to_string()}),
            format!(
                "warning   unreadable in the spool, and kept in {}: {}",
                path.display(),
                counted(entries, "entry")
            ),
            true,
        ),
        WorkerEvent::SpoolFailed { why } => line(
            json!({"event": "spool_failed", "why": why}),
            format!("warning   cannot write to the spool ({why}); claiming no jobs until it works again"),
            true,
        ),
        WorkerEvent::SpoolMended => {
            line(json!({"event": "spool_mended"}), "spool     it is writable again".into(), true)
        }
        WorkerEvent::Draining { running } => line(
            json!({"event": "draining", "running": running}),
            format!(
                "draining: no new jobs; {} may finish; a second signal ends them",
                counted(running, "running job")
            ),
            true,
        ),
        _ => None,
    }
}

fn finished(job: &Job, ending: &JobEnding, took: Duration, mut object: Value) -> Option<Line> {
    let (word, more) = match ending {
        JobEnding::Succeeded => ("succeeded", String::new()),
        JobEnding::Failed { code, message } => {
            object["code"] = code.as_str().into();
            object["message"] = message.as_str().into();
            ("failed", format!(" {code}: {message}"))
        }
        JobEnding::Released => ("released", String::new()),
        _ => ("dropped", String::new()),
    };
    object["ending"] = word.into();
    object["took_ms"] = (took.as_millis() as u64).into();
    let text = format!("{word:<9} {} {} in {}{more}", job.id(), job.stream(), span(took));
    Some(Line { object, text, news: !matches!(ending, JobEnding::Succeeded) })
}

/// A duration for people, rounded.
fn span(duration: Duration) -> String {
    match duration.as_millis() {
        0..10_000 => format!("{:.3}s", duration.as_secs_f64()),
        _ => duration::show(Duration::from_secs(duration.as_secs())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_event_has_every_number_that_people_are_told() {
        let mut summary = Summary::default();
        (summary.unreported, summary.unkept, summary.abandoned) = (3, 2, 1);
        let line = ended(&summary);
        assert_eq!((&line.object["unkept"], &line.object["abandoned"]), (&json!(2), &json!(1)));
        assert_eq!(
            line.text,
            "ended: 0 claimed, 0 succeeded, 0 failed, 0 released, 3 not reported, 2 not kept either, 1 abandoned"
        );
    }
}

//! Runs under way: who works since when, what is used of each limit, and which gate judges.

use super::super::show::{Id, Line, When};
use fernery_client::wire::{ObjectiveView, WorkView};
use serde_json::Value;
use std::time::Duration;

/// A part of a limit that is used.
pub(super) struct Bar {
    pub(super) name: &'static str,
    /// Of a hundred.
    pub(super) percent: u64,
    pub(super) words: String,
}

/// A run under way.
pub(super) struct RunInProgress {
    pub(super) id: String,
    pub(super) shown: Id,
    pub(super) title: Line,
    /// What happens now, and since when.
    pub(super) doing: Line,
    pub(super) since: Option<When>,
    pub(super) last_line: Option<Line>,
    pub(super) bars: Vec<Bar>,
    pub(super) waiting: Option<Line>,
}

pub(super) fn under_way(view: ObjectiveView) -> RunInProgress {
    let work = view.work.as_ref();
    let progress = view.progress.as_ref();
    RunInProgress {
        id: view.objective.objective_id.to_string(),
        shown: Id::of(&view.objective.objective_id),
        title: Line::of(&view.objective.title),
        doing: Line(work.map_or_else(String::new, doing)),
        since: work.and_then(|work| work.started_at).map(When),
        last_line: progress.and_then(|progress| progress.note()).map(Line::of),
        bars: work
            .map(|work| bars(work, progress.map(|progress| progress.percent()), &view.spent))
            .unwrap_or_default(),
        waiting: view.waiting.map(|waiting| Line(waiting.why)),
    }
}

/// What happens now. An executor that has not said a line yet works all the same.
fn doing(work: &WorkView) -> String {
    match (work.judging, &work.gate, &work.worker_id) {
        (true, Some(gate), _) => format!("its gates judge it: {gate}"),
        (true, None, _) => "its gates judge it".to_string(),
        (false, _, Some(worker)) => format!("{worker} works on it"),
        (false, _, None) => "nobody has begun yet".to_string(),
    }
}

fn bars(work: &WorkView, percent: Option<u8>, spent: &Value) -> Vec<Bar> {
    let bar = |name, used: u64, limit: u64, words: String| Bar {
        name,
        percent: used.saturating_mul(100).checked_div(limit).unwrap_or(100).min(100),
        words,
    };
    let mut bars = Vec::new();
    if let Some(percent) = percent.filter(|_| work.own_progress && !work.judging) {
        let words = format!("{percent} % done, says its executor");
        bars.push(Bar { name: "work", percent: percent.into(), words });
    }
    if !work.judging && work.worker_id.is_some() {
        let words = format!("{} of {}", clock(work.used_ms), clock(work.budget_ms));
        bars.push(bar("time of this run", work.used_ms, work.budget_ms, words));
    }
    let limit = |name: &str| work.envelope[name].as_u64();
    let used = |name: &str| spent[name].as_u64().unwrap_or(0);
    if let Some(limit) = limit("attempts") {
        let used = used("attempts");
        bars.push(bar("attempts", used, limit, format!("{used} of {limit}")));
    }
    // A limit on tokens or cost counts runs that have ended: an executor reports them with its output.
    if let Some(limit) = limit("tokens") {
        let used = used("tokens");
        bars.push(bar("tokens of earlier runs", used, limit, format!("{used} of {limit}")));
    }
    if let Some(limit) = limit("cost_usd_micros") {
        let used = used("cost_usd_micros");
        bars.push(bar(
            "cost of earlier runs",
            used,
            limit,
            format!("{} of {} USD", dollars(used), dollars(limit)),
        ));
    }
    if let Some(limit) = limit("wall_time_ms") {
        let used = used("wall_ms");
        bars.push(bar("time of earlier runs", used, limit, format!("{} of {}", clock(used), clock(limit))));
    }
    bars
}

fn dollars(micros: u64) -> String {
    format!("{}.{:02}", micros / 1_000_000, micros % 1_000_000 / 10_000)
}

/// A time that runs, as a clock shows it.
fn clock(ms: u64) -> String {
    let secs = Duration::from_millis(ms).as_secs();
    match secs / 3600 {
        0 => format!("{}:{:02} min", secs / 60, secs % 60),
        hours => format!("{hours}:{:02} h", secs / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn work() -> WorkView {
        WorkView {
            work_order_id: fernery_core::artifact::WorkorderId::stored("w"),
            budget_ms: 1_800_000,
            used_ms: 450_000,
            worker_id: Some("here".into()),
            started_at: None,
            judging: false,
            gate: None,
            own_progress: false,
            envelope: json!({ "attempts": 3, "cost_usd_micros": 2_500_000 }),
        }
    }

    fn told(work: &WorkView, percent: Option<u8>) -> Vec<(&'static str, u64, String)> {
        let spent = json!({ "attempts": 1, "cost_usd_micros": 500_000 });
        bars(work, percent, &spent).into_iter().map(|bar| (bar.name, bar.percent, bar.words)).collect()
    }

    #[test]
    fn each_limit_has_its_bar_and_what_an_executor_says_is_no_budget() {
        let here = told(&work(), Some(25));
        assert_eq!(
            here,
            [
                ("time of this run", 25, "7:30 min of 30:00 min".into()),
                ("attempts", 33, "1 of 3".into()),
                ("cost of earlier runs", 20, "0.50 of 2.50 USD".into()),
            ]
        );
        let remote = told(&WorkView { own_progress: true, ..work() }, Some(80));
        assert_eq!(remote[0], ("work", 80, "80 % done, says its executor".into()));
        assert_eq!(remote[1..], here[..]);
        let judged = told(&WorkView { judging: true, ..work() }, Some(80));
        assert_eq!(judged[..], here[1..], "its time has ended");
        let none = WorkView { budget_ms: 0, envelope: json!({}), ..work() };
        assert_eq!(told(&none, None)[0].1, 100, "a limit of nothing is used up");
    }

    #[test]
    fn something_is_said_before_the_first_line() {
        assert_eq!(doing(&work()), "here works on it");
        assert_eq!(doing(&WorkView { worker_id: None, ..work() }), "nobody has begun yet");
        let judging = WorkView { judging: true, gate: Some("tests".into()), ..work() };
        assert_eq!(doing(&judging), "its gates judge it: tests");
    }
}

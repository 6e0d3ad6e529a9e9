//! Small charts, drawn here as SVG, each with its figures in words for whoever does not see it.

use askama::filters::HtmlSafe;
use fernery_client::wire::{DeathStats, StatsPoint, StreamStats};
use fernery_core::Timestamp;
use fernery_core::job::stats::StatsRange;
use std::fmt::{self, Display, Formatter};

/// The height of a chart in units of its own; it is as wide as it has points.
const HEIGHT: u64 = 24;

/// Steps from left to right, one for each point; a point without a value is a gap.
struct Steps {
    class: &'static str,
    values: Vec<Option<u64>>,
}

/// A chart with what it says in words.
pub(super) struct Sparkline {
    lines: Vec<Steps>,
    says: String,
}

impl Sparkline {
    /// Jobs that succeeded, point by point.
    pub(super) fn throughput(stats: &StreamStats) -> Self {
        let values = values(stats, |point| Some(point.completed));
        let most = values.iter().flatten().max().copied().unwrap_or(0);
        let (range, span) = words(stats.range);
        let completed = stats.total.completed;
        let jobs = if completed == 1 { "job" } else { "jobs" };
        let says = format!("{completed} {jobs} succeeded in the last {range}, at most {most} {span}");
        let values = values.into_iter().map(|value| Some(value.unwrap_or(0))).collect();
        Self { lines: vec![Steps { class: "done", values }], says }
    }

    /// Jobs that died, point by point, of those that were looked at.
    pub(super) fn deaths(stats: &DeathStats) -> Self {
        let found = stats.points.iter().map(|point| (point.at, Some(point.dead)));
        let values = spread(stats.range, stats.since, stats.point_ms, found);
        let most = values.iter().flatten().max().copied().unwrap_or(0);
        let (range, span) = words(stats.range);
        let says = match stats.total {
            0 => format!("None of them died in the last {range}"),
            total => format!("{total} of them died in the last {range}, at most {most} {span}"),
        };
        let values = values.into_iter().map(|value| Some(value.unwrap_or(0))).collect();
        Self { lines: vec![Steps { class: "slow", values }], says }
    }

    /// How long jobs waited, point by point: the slow ones above the usual ones.
    pub(super) fn waits(stats: &StreamStats) -> Self {
        let of = |class, read: fn(&StatsPoint) -> Option<u64>| Steps { class, values: values(stats, read) };
        let range = words(stats.range).0;
        let says = match (stats.total.wait_p50_ms, stats.total.wait_p95_ms) {
            (Some(p50), Some(p95)) => format!(
                "Of the jobs claimed in the last {range}, half waited at most {}, and 95 % at most {}",
                took(p50),
                took(p95)
            ),
            _ => format!("No job was claimed in the last {range}"),
        };
        Self { lines: vec![of("slow", |p| p.wait_p95_ms), of("usual", |p| p.wait_p50_ms)], says }
    }
}

/// The range in words, and one of its points.
fn words(range: StatsRange) -> (&'static str, &'static str) {
    match range {
        StatsRange::Hour => ("hour", "in a minute"),
        StatsRange::Day => ("24 hours", "in 15 minutes"),
        StatsRange::Week => ("7 days", "in 2 hours"),
    }
}

/// One value for each point of the range, also for those in which nothing happened.
fn values(stats: &StreamStats, read: impl Fn(&StatsPoint) -> Option<u64>) -> Vec<Option<u64>> {
    let found = stats.points.iter().map(|point| (point.at, read(point)));
    spread(stats.range, stats.total.at, stats.point_ms, found)
}

/// Values at their places in a range.
fn spread(
    range: StatsRange,
    since: Timestamp,
    point_ms: u64,
    found: impl Iterator<Item = (Timestamp, Option<u64>)>,
) -> Vec<Option<u64>> {
    let count = usize::try_from(range.points()).unwrap_or_default();
    let width = u128::from(point_ms.max(1));
    let mut values = vec![None; count];
    for (at, found) in found.filter(|(at, _)| *at >= since) {
        let place = usize::try_from(at.since(since).as_millis() / width).unwrap_or(usize::MAX);
        if let Some(value) = values.get_mut(place) {
            *value = found;
        }
    }
    values
}

/// A duration in two or three digits.
pub(super) fn took(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..10_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        10_000..120_000 => format!("{} s", ms / 1_000),
        120_000..7_200_000 => format!("{} min", ms / 60_000),
        _ => format!("{} h", ms / 3_600_000),
    }
}

impl HtmlSafe for Sparkline {}

/// Everything in it is a number or a word of ours.
impl Display for Sparkline {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let width = self.lines.first().map_or(0, |line| line.values.len());
        let most =
            self.lines.iter().flat_map(|line| &line.values).flatten().max().copied().unwrap_or(0).max(1);
        write!(
            f,
            "<svg class=\"spark\" viewBox=\"0 0 {width} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">",
            self.says
        )?;
        for line in &self.lines {
            write!(f, "<path class=\"{}\" d=\"", line.class)?;
            let mut drawn = false;
            for (x, value) in line.values.iter().enumerate() {
                if let Some(value) = value {
                    // Half a unit of room, so that a line at either edge is drawn whole.
                    let share = u128::from(*value) * u128::from((HEIGHT - 1) * 10) / u128::from(most);
                    let y = u128::from(HEIGHT * 10 - 5) - share;
                    match drawn {
                        true => write!(f, "V{}.{}h1", y / 10, y % 10)?,
                        false => write!(f, "M{x} {}.{}h1", y / 10, y % 10)?,
                    }
                }
                drawn = value.is_some();
            }
            f.write_str("\"/>")?;
        }
        f.write_str("</svg>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fernery_client::wire::DeathPoint;

    fn point(at: i64, completed: u64, wait: Option<u64>) -> StatsPoint {
        let at = Timestamp::from_millis(at);
        let (wait_p50_ms, wait_p95_ms) = (wait.map(|ms| ms / 2), wait);
        let (run_p50_ms, run_p95_ms) = (None, None);
        StatsPoint {
            at,
            enqueued: 0,
            completed,
            failed: 0,
            dead: 0,
            wait_p50_ms,
            wait_p95_ms,
            run_p50_ms,
            run_p95_ms,
        }
    }

    fn hour(points: Vec<StatsPoint>) -> StreamStats {
        let wait = points.iter().filter_map(|point| point.wait_p95_ms).max();
        let total =
            point(0, points.iter().fold(0, |sum: u64, point| sum.saturating_add(point.completed)), wait);
        StreamStats { range: StatsRange::Hour, point_ms: 60_000, total, points }
    }

    #[test]
    fn a_chart_has_a_step_for_each_point_and_says_its_figures() {
        let stats = hour(vec![point(0, 10, Some(1_500)), point(2 * 60_000, 20, None)]);
        let done = Sparkline::throughput(&stats).to_string();
        assert!(
            done.contains("viewBox=\"0 0 60 24\"") && done.contains("d=\"M0 12.0h1V23.5h1V0.5h1V23.5h1"),
            "{done}"
        );
        assert!(done.contains("30 jobs succeeded in the last hour, at most 20 in a minute"), "{done}");
        let waits = Sparkline::waits(&stats).to_string();
        assert!(waits.contains("half waited at most 750 ms, and 95 % at most 1.5 s"), "{waits}");
        assert!(
            waits.contains("class=\"slow\" d=\"M0 0.5h1\"") && waits.contains("d=\"M0 12.0h1\""),
            "a gap is no line: {waits}"
        );
    }

    #[test]
    fn a_chart_of_nothing_is_a_line_at_the_bottom() {
        let done = Sparkline::throughput(&hour(Vec::new())).to_string();
        assert!(done.contains("d=\"M0 23.5h1V23.5h1"), "{done}");
        assert!(Sparkline::waits(&hour(Vec::new())).to_string().contains("No job was claimed"));
    }

    #[test]
    fn deaths_are_drawn_at_their_times_and_counted_in_words() {
        let minute = |n: i64| Timestamp::from_millis(n * 60_000);
        let points = vec![DeathPoint { at: minute(1), dead: 3 }, DeathPoint { at: minute(59), dead: 1 }];
        let of = |total, points| {
            let (range, since) = (StatsRange::Hour, minute(0));
            Sparkline::deaths(&DeathStats { range, point_ms: 60_000, since, total, points }).to_string()
        };
        let drawn = of(4, points);
        assert!(drawn.contains("4 of them died in the last hour, at most 3 in a minute"), "{drawn}");
        assert!(drawn.contains("d=\"M0 23.5h1V0.5h1V23.5h1") && drawn.contains("V15.9h1\"/>"), "{drawn}");
        assert!(of(0, Vec::new()).contains("None of them died in the last hour"));
    }

    #[test]
    fn values_of_any_size_stay_within_the_chart() {
        let done =
            Sparkline::throughput(&hour(vec![point(0, u64::MAX, Some(u64::MAX)), point(-60_000, 1, None)]));
        assert!(done.to_string().contains("M0 0.5h1V23.5"), "{done}");
    }
}

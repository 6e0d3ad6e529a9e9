//! What happened in a stream within a span of time: counts, and how long jobs waited and ran. Everything here adds up, so the
//! counts of a day are the sum of those of its minutes, whoever adds them and in whatever order.

use super::AttemptOutcome;
use crate::calendar::Timestamp;
use crate::calendar::duration::millis;
use crate::words;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

words!(
    /// How far back statistics reach.
    StatsRange {
        /// An hour, minute by minute.
        Hour = "1h",
        /// A day, by quarters of an hour.
        Day = "24h",
        /// A week, two hours at a time.
        Week = "7d",
    }
);

const MINUTE_MS: i64 = 60_000;

impl StatsRange {
    /// Minutes of one point.
    pub const fn minutes(self) -> i64 {
        match self {
            Self::Hour => 1,
            Self::Day => 15,
            Self::Week => 120,
        }
    }

    /// How many points it has.
    pub const fn points(self) -> i64 {
        match self {
            Self::Hour => 60,
            Self::Day => 96,
            Self::Week => 84,
        }
    }

    /// The beginning of the point that an instant belongs to.
    pub const fn point_of(self, at: Timestamp) -> Timestamp {
        let width = self.minutes() * MINUTE_MS;
        Timestamp::from_millis(at.as_millis().div_euclid(width) * width)
    }

    /// The beginning of the oldest point, if it is `now`: the point of this moment is the last.
    pub const fn since(self, now: Timestamp) -> Timestamp {
        let width = self.minutes() * MINUTE_MS;
        Timestamp::from_millis(self.point_of(now).as_millis() - (self.points() - 1) * width)
    }
}

/// Durations by size. Up to 7 ms they are kept exactly; above, in four steps for each doubling. So a quantile is never below the
/// true one, and at most a quarter above it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram(BTreeMap<u8, u64>);

/// The step of what takes a year and longer.
const LAST_STEP: u8 = 139;

fn step_of(took: Duration) -> u8 {
    let ms = millis(took);
    if ms < 8 {
        return ms as u8;
    }
    let doublings = ms.ilog2();
    let quarter = (ms >> (doublings - 2)) & 3;
    u8::try_from(8 + (u64::from(doublings) - 3) * 4 + quarter).unwrap_or(LAST_STEP).min(LAST_STEP)
}

/// The longest duration of a step.
fn longest_of(step: u8) -> Duration {
    let step = u64::from(step.min(LAST_STEP));
    if step < 8 {
        return Duration::from_millis(step);
    }
    let (doublings, quarter) = ((step - 8) / 4 + 3, (step - 8) % 4);
    Duration::from_millis(((4 + quarter + 1) << (doublings - 2)) - 1)
}

impl Histogram {
    /// One more that took so long.
    pub fn note(&mut self, took: Duration) {
        *self.0.entry(step_of(took)).or_default() += 1;
    }

    /// Adds those of another.
    pub fn add(&mut self, other: &Self) {
        for (step, count) in &other.0 {
            let kept = self.0.entry(*step).or_default();
            *kept = kept.saturating_add(*count);
        }
    }

    /// How long the quickest `percent` of them took at most; `None` if there are none.
    pub fn quantile(&self, percent: u64) -> Option<Duration> {
        let all = self.0.values().fold(0u64, |sum, count| sum.saturating_add(*count));
        let wanted = all.saturating_mul(percent).div_ceil(100).max(1);
        let mut passed = 0;
        let step = self.0.iter().find(|(_, count)| {
            passed = u64::saturating_add(passed, **count);
            passed >= wanted
        });
        step.map(|(step, _)| longest_of(*step))
    }
}

/// As it is stored: `step:count`, by size.
impl fmt::Display for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (step, count)) in self.0.iter().enumerate() {
            write!(f, "{}{step}:{count}", if n > 0 { " " } else { "" })?;
        }
        Ok(())
    }
}

impl FromStr for Histogram {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut steps = BTreeMap::new();
        for part in text.split(' ').filter(|part| !part.is_empty()) {
            let step = part
                .split_once(':')
                .and_then(|(step, count)| Some((step.parse().ok()?, count.parse().ok()?)));
            let (step, count) = step.ok_or_else(|| format!("expected step:count, found {part:?}"))?;
            steps.insert(step, count);
        }
        Ok(Self(steps))
    }
}

/// What happened in one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatsCounts {
    /// Jobs that came in.
    pub enqueued: u64,
    /// Jobs that succeeded.
    pub completed: u64,
    /// Attempts that failed, were lost or took too long.
    pub failed: u64,
    /// Jobs that were given up.
    pub dead: u64,
    /// How long jobs were claimable before they were claimed.
    pub waits: Histogram,
    /// How long attempts took that succeeded or failed.
    pub runs: Histogram,
}

impl StatsCounts {
    /// Adds those of another span.
    pub fn add(&mut self, other: &Self) {
        self.enqueued = self.enqueued.saturating_add(other.enqueued);
        self.completed = self.completed.saturating_add(other.completed);
        self.failed = self.failed.saturating_add(other.failed);
        self.dead = self.dead.saturating_add(other.dead);
        self.waits.add(&other.waits);
        self.runs.add(&other.runs);
    }

    /// Adds what happened to a job.
    pub fn note(&mut self, happening: Happening) {
        match happening {
            Happening::Enqueued(jobs) => self.enqueued += jobs,
            Happening::Claimed { waited } => self.waits.note(waited),
            Happening::Ended { outcome, took, buried } => {
                match outcome {
                    AttemptOutcome::Succeeded => self.completed += 1,
                    AttemptOutcome::Failed | AttemptOutcome::Lost | AttemptOutcome::TimedOut => {
                        self.failed += 1
                    }
                    AttemptOutcome::Cancelled | AttemptOutcome::Released => {}
                }
                self.dead += u64::from(buried);
                // When the holder of a lost lease stopped is not known, and a job that was handed back did not run.
                if matches!(
                    outcome,
                    AttemptOutcome::Succeeded | AttemptOutcome::Failed | AttemptOutcome::TimedOut
                ) {
                    self.runs.note(took);
                }
            }
        }
    }
}

/// What can happen to jobs of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// So many came in.
    Enqueued(u64),
    Claimed {
        /// How long it was claimable before.
        waited: Duration,
    },
    Ended {
        outcome: AttemptOutcome,
        /// How long it was held.
        took: Duration,
        /// Its job was given up.
        buried: bool,
    },
}

impl Happening {
    /// Somebody did the work of a job that waited.
    pub const HANDED_IN: Self =
        Self::Ended { outcome: AttemptOutcome::Succeeded, took: Duration::ZERO, buried: false };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_step_holds_its_duration_and_is_at_most_a_quarter_too_long() {
        let mut before = 0;
        for took in (0..5_000).chain((5_000..100_000_000).step_by(9_973)) {
            let (step, longest) = (step_of(ms(took)), longest_of(step_of(ms(took))));
            assert!(step >= before && longest >= ms(took), "{took} ms is in step {step}, up to {longest:?}");
            assert!(longest.as_millis() as u64 <= took + took / 4, "{took} ms is told as {longest:?}");
            before = step;
        }
        assert_eq!(step_of(Duration::MAX), LAST_STEP);
        assert!(longest_of(u8::MAX) > Duration::from_secs(365 * 86_400));
    }

    #[test]
    fn histograms_add_up_exactly_and_survive_the_database() {
        let (mut all, mut parts) = (Histogram::default(), [Histogram::default(), Histogram::default()]);
        for n in 0..1_000u64 {
            all.note(ms(n * n));
            parts[(n % 2) as usize].note(ms(n * n));
        }
        let [mut one, other] = parts;
        one.add(&other);
        assert_eq!(one, all);
        assert_eq!(all.to_string().parse(), Ok(all.clone()));
        assert_eq!("".parse(), Ok(Histogram::default()));
        assert!("3:x".parse::<Histogram>().is_err());
    }

    #[test]
    fn quantiles_are_those_of_what_was_noted() {
        let mut took = Histogram::default();
        assert_eq!(took.quantile(50), None);
        (1..=100).for_each(|n| took.note(ms(if n <= 95 { 5 } else { 6 })));
        assert_eq!(
            (took.quantile(50), took.quantile(95), took.quantile(96)),
            (Some(ms(5)), Some(ms(5)), Some(ms(6)))
        );
        assert_eq!(took.quantile(100), Some(ms(6)));
    }

    #[test]
    fn a_range_ends_with_the_point_of_this_moment() {
        let now = Timestamp::from_millis(1_800_000_123_456);
        for range in StatsRange::ALL {
            let (first, last) = (range.since(now), range.point_of(now));
            assert!(last <= now && now.since(last) < Duration::from_secs(range.minutes() as u64 * 60));
            assert_eq!(last.since(first).as_secs() as i64, range.minutes() * 60 * (range.points() - 1));
            assert_eq!(range.point_of(first), first);
        }
    }
}

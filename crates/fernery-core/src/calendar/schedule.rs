//! When something is done without being asked for: a line of cron on somebody's calendar.
//!
//! A time that the clock skips in spring is met at the moment of the change; one that it shows twice in autumn is met the
//! first time only. Times that become one that way are one.

use super::Zone;
use super::cron::Cron;
use crate::Timestamp;
use crate::words;
use serde::{Deserialize, Serialize};
use std::time::Duration;

words!(
    /// What becomes of a time that passed while nobody looked.
    Missed {
        /// It is left out.
        Skip = "skip",
        /// It is made up for once, however many passed.
        Once = "once",
    }
);

/// How late a time may still count as met where missed ones are left out.
pub const GRACE: Duration = Duration::from_secs(5 * 60);

/// Times in a row that a clock can show a second time: a whole day of minutes, as when a zone changes sides of the date line.
const DOUBLED_MAX: usize = 2 * 24 * 60;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Form", into = "Form")]
pub struct Schedule {
    /// Minute, hour, day of month, month, day of week.
    pub cron: String,
    pub zone: Zone,
    /// What becomes of missed times.
    pub missed: Missed,
    times: Cron,
}

/// A schedule as it is written down.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    cron: String,
    #[serde(default)]
    zone: Zone,
    #[serde(default = "once")]
    missed: Missed,
}

const fn once() -> Missed {
    Missed::Once
}

impl TryFrom<Form> for Schedule {
    type Error = String;

    fn try_from(form: Form) -> Result<Self, String> {
        Self::parse(&form.cron, form.zone, form.missed)
    }
}

impl From<Schedule> for Form {
    fn from(schedule: Schedule) -> Self {
        Self { cron: schedule.cron, zone: schedule.zone, missed: schedule.missed }
    }
}

impl Schedule {
    /// Reads a schedule, or says what is wrong with it.
    pub fn parse(cron: &str, zone: Zone, missed: Missed) -> Result<Self, String> {
        let times = Cron::parse(cron)?;
        Ok(Self { cron: cron.to_string(), zone, missed, times })
    }

    /// The first time after this instant.
    pub fn next_after(&self, at: Timestamp) -> Option<Timestamp> {
        let mut civil = self.zone.civil(at)?;
        for _ in 0..DOUBLED_MAX {
            civil = self.times.next(civil)?;
            let instant = self.zone.instant(civil)?;
            if instant > at {
                return Some(instant);
            }
        }
        None
    }

    /// The time to act on now: the newest in `(since, now]`; where missed ones are left out only if it is not older than
    /// [`GRACE`].
    pub fn due(&self, since: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let since = match self.missed {
            Missed::Skip => since.max(now.before(GRACE + Duration::from_millis(1))),
            Missed::Once => since,
        };
        let next_by_now = |at: i64| self.next_after(Timestamp::from_millis(at)).filter(|next| *next <= now);
        let mut newest = next_by_now(since.as_millis())?;
        // After every instant before the newest time there is one by now; after the others there is none.
        let (mut before, mut after) = (newest.as_millis() - 1, now.as_millis());
        while before + 1 < after {
            let middle = before + (after - before) / 2;
            match next_by_now(middle) {
                Some(later) => (before, newest) = (middle.max(later.as_millis() - 1), later),
                None => after = middle,
            }
        }
        Some(newest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn schedule(cron: &str, zone: &str, missed: Missed) -> Schedule {
        Schedule::parse(cron, zone.parse().unwrap(), missed).unwrap()
    }

    fn following(schedule: &Schedule, from: &str, n: usize) -> Vec<String> {
        let next = |at: &Timestamp| schedule.next_after(*at);
        std::iter::successors(next(&at(from)), next)
            .take(n)
            .map(|t| t.to_string()[..16].to_string())
            .collect()
    }

    #[test]
    fn times_are_those_of_the_zone() {
        let berlin = schedule("0 8 * * mon-fri", "Europe/Berlin", Missed::Once);
        assert_eq!(following(&berlin, "2026-11-13T07:00:00Z", 2), ["2026-11-16T07:00", "2026-11-17T07:00"]);
        let kathmandu = schedule("0 8 * * *", "Asia/Kathmandu", Missed::Once);
        assert_eq!(following(&kathmandu, "2026-11-13T07:00:00Z", 1), ["2026-11-14T02:15"]);
    }

    #[test]
    fn a_skipped_time_is_met_once_at_the_change_and_a_doubled_one_once() {
        let daily = schedule("30 2 * * *", "Europe/Berlin", Missed::Once);
        assert_eq!(
            following(&daily, "2026-03-27T12:00:00Z", 3),
            ["2026-03-28T01:30", "2026-03-29T01:00", "2026-03-30T00:30"]
        );
        assert_eq!(following(&daily, "2026-10-24T12:00:00Z", 2), ["2026-10-25T00:30", "2026-10-26T01:30"]);
        let often = schedule("*/20 * * * *", "Europe/Berlin", Missed::Once);
        assert_eq!(
            following(&often, "2026-03-29T00:30:00Z", 3),
            ["2026-03-29T00:40", "2026-03-29T01:00", "2026-03-29T01:20"]
        );
        // The second showing of 2:00 to 3:00 has no times of its own.
        assert_eq!(following(&often, "2026-10-25T00:30:00Z", 2), ["2026-10-25T00:40", "2026-10-25T02:00"]);
    }

    #[test]
    fn of_many_missed_times_the_newest_is_due_and_only_a_fresh_one_where_missed_ones_are_left_out() {
        let (once, skip) =
            (schedule("0 8 * * *", "UTC", Missed::Once), schedule("0 8 * * *", "UTC", Missed::Skip));
        let newest = Some(at("2026-11-16T08:00:00Z"));
        for (since, now, made_up, met) in [
            ("2026-01-01T00:00:00Z", "2026-11-17T07:59:59Z", newest, None),
            ("2026-11-15T08:00:00Z", "2026-11-16T08:00:00Z", newest, newest),
            ("2026-11-15T08:00:00Z", "2026-11-16T08:05:00Z", newest, newest),
            ("2026-11-15T08:00:00Z", "2026-11-16T08:05:00.001Z", newest, None),
            ("2026-11-16T08:00:00Z", "2026-11-16T08:05:00Z", None, None),
            ("2026-11-16T09:00:00Z", "2026-11-16T08:00:00Z", None, None),
        ] {
            assert_eq!(once.due(at(since), at(now)), made_up, "{since} {now}");
            assert_eq!(skip.due(at(since), at(now)), met, "{since} {now}");
        }
        let minutely = schedule("* * * 1 *", "America/New_York", Missed::Once);
        assert_eq!(
            minutely.due(at("1970-01-01T00:00:00Z"), at("2026-12-01T00:00:00Z")),
            Some(at("2026-02-01T04:59:00Z"))
        );
    }

    #[test]
    fn a_schedule_is_checked_when_it_is_read() {
        let read = |text: &str| serde_json::from_str::<Schedule>(text).map_err(|error| error.to_string());
        let short = read(r#"{"cron":"0 8 * * *"}"#).unwrap();
        assert_eq!(short, schedule("0 8 * * *", "UTC", Missed::Once));
        assert_eq!(read(&serde_json::to_string(&short).unwrap()).unwrap(), short);
        assert!(read(r#"{"cron":"0 8 * *"}"#).unwrap_err().contains("4 fields"));
        assert!(read(r#"{"cron":"0 8 * * *","zone":"Mars/Base"}"#).unwrap_err().contains("Mars/Base"));
        assert!(read(r#"{"cron":"0 8 * * *","missed":"twice"}"#).is_err());
    }
}

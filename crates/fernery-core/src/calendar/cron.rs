//! A line of cron: minute, hour, day of month, month, day of week; with names, ranges, steps and lists.
//!
//! As in every cron, a day counts if it meets both its fields, and where neither of them starts with `*` if it meets one.

use jiff::civil::{Date, DateTime};

/// The times that a line of cron names, on a calendar without a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cron {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    either_day: bool,
}

struct Field {
    name: &'static str,
    min: u8,
    max: u8,
    names: &'static [&'static str],
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 8] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat", "sun"];

const FIELDS: [Field; 5] = [
    Field { name: "the minute", min: 0, max: 59, names: &[] },
    Field { name: "the hour", min: 0, max: 23, names: &[] },
    Field { name: "the day of the month", min: 1, max: 31, names: &[] },
    Field { name: "the month", min: 1, max: 12, names: &MONTHS },
    Field { name: "the day of the week", min: 0, max: 7, names: &WEEKDAYS },
];

const EXAMPLE: &str = "a schedule has minute, hour, day of month, month and day of week, \
                       like `0 8 * * mon-fri` for 8:00 on working days";

/// How far ahead the next time is looked for: the longest way from one 29 February to the next is eight years.
const DAYS_AHEAD: usize = 9 * 366;

impl Cron {
    /// Reads a line of cron, or says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let quoted: String = text.chars().take(100).collect();
        let refused = |why: String| format!("{quoted:?}: {why}; {EXAMPLE}");
        let parts: Vec<_> = text.split_ascii_whitespace().collect();
        if parts.len() != FIELDS.len() {
            return Err(refused(format!("{} fields instead of 5", parts.len())));
        }
        let mut sets = [0; 5];
        for ((set, field), part) in sets.iter_mut().zip(&FIELDS).zip(&parts) {
            *set = field.parse(part).map_err(|why| refused(format!("{} {why}", field.name)))?;
        }
        let [minutes, hours, days, months, weekdays] = sets;
        // 7 is Sunday too.
        let weekdays = (weekdays | weekdays >> 7) & 0x7f;
        let either_day = !parts[2].starts_with('*') && !parts[4].starts_with('*');
        let cron = Self { minutes, hours, days, months, weekdays, either_day };
        // From the start of a span of eight years without a leap day, so that what is there at all is found.
        match cron.next(Date::constant(2096, 3, 1).at(0, 0, 0, 0)) {
            Some(_) => Ok(cron),
            None => Err(refused("no such day exists".to_string())),
        }
    }

    /// The first time after this one.
    pub fn next(&self, after: DateTime) -> Option<DateTime> {
        let (hour, minute) = (after.hour(), after.minute() + 1);
        if self.has_day(after.date())
            && let Some(found) = self.from(after.date(), hour, minute)
        {
            return Some(found);
        }
        let mut date = after.date();
        for _ in 0..DAYS_AHEAD {
            date = date.tomorrow().ok()?;
            if self.has_day(date) {
                return self.from(date, 0, 0);
            }
        }
        None
    }

    /// The first time of this day that is not before the given one; the minute may be 60.
    fn from(&self, date: Date, hour: i8, minute: i8) -> Option<DateTime> {
        (hour..24).filter(|hour| has(self.hours, *hour)).find_map(|h| {
            let first = if h == hour { minute } else { 0 };
            let minute = (first..60).find(|minute| has(self.minutes, *minute))?;
            Some(date.at(h, minute, 0, 0))
        })
    }

    fn has_day(&self, date: Date) -> bool {
        let day = has(self.days, date.day());
        let weekday = has(self.weekdays, date.weekday().to_sunday_zero_offset());
        has(self.months, date.month()) && if self.either_day { day || weekday } else { day && weekday }
    }
}

fn has(set: u64, value: i8) -> bool {
    set >> value & 1 == 1
}

impl Field {
    fn parse(&self, text: &str) -> Result<u64, String> {
        text.split(',').try_fold(0, |set, item| Ok(set | self.item(item)?))
    }

    fn item(&self, item: &str) -> Result<u64, String> {
        let (base, step) = match item.split_once('/') {
            Some((base, step)) => {
                let number = step.parse().ok().filter(|n| (1..=self.max).contains(n) && is_number(step));
                (
                    base,
                    number.ok_or_else(|| {
                        format!("has the step {step:?}, which is not a number from 1 to {}", self.max)
                    })?,
                )
            }
            None => (item, 1),
        };
        let (first, last) = match base.split_once('-') {
            _ if base == "*" => (self.min, self.max),
            Some((first, last)) => {
                let (first, mut last) = (self.value(first)?, self.value(last)?);
                // The week of `sat-sun` ends with Sunday.
                if last == 0 && first > 0 && self.max == 7 {
                    last = 7;
                }
                if first > last {
                    return Err(format!("has the range {base:?}, which goes backwards"));
                }
                (first, last)
            }
            None => (self.value(base)?, if item.contains('/') { self.max } else { self.value(base)? }),
        };
        Ok((first..=last).step_by(step.into()).fold(0, |set, value| set | 1 << value))
    }

    fn value(&self, text: &str) -> Result<u8, String> {
        if let Some(at) = self.names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
            return Ok(at as u8 + self.min);
        }
        let known = text.parse().ok().filter(|n| (self.min..=self.max).contains(n) && is_number(text));
        known.ok_or_else(|| {
            let names = match self.names {
                [] => String::new(),
                names => format!(" or one of {}", names[..names.len().min(12)].join(" ")),
            };
            let text: String = text.chars().take(20).collect();
            format!("is {text:?} and not a number from {} to {}{names}", self.min, self.max)
        })
    }
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_time_is_the_first_that_all_fields_name() {
        for (cron, after, next) in [
            ("* * * * *", "2026-11-16T23:59:30", "2026-11-17T00:00:00"),
            ("0 8 * * mon-fri", "2026-11-13T08:00:00", "2026-11-16T08:00:00"),
            ("0 8 * * MON-FRI", "2026-11-13T07:59:59", "2026-11-13T08:00:00"),
            ("*/20 9-17/4 * * *", "2026-11-16T09:41:00", "2026-11-16T13:00:00"),
            ("5,35 0 1 jan *", "2026-11-16T00:00:00", "2027-01-01T00:05:00"),
            ("50/5 * * * *", "2026-11-16T10:55:00", "2026-11-16T11:50:00"),
            ("0 0 29 2 *", "2096-03-01T00:00:00", "2104-02-29T00:00:00"),
            ("0 12 13 * 5", "2026-11-10T00:00:00", "2026-11-13T12:00:00"),
            ("0 12 1 * 5", "2026-11-13T12:00:00", "2026-11-20T12:00:00"),
            ("0 12 */2 * 0,6", "2026-11-16T00:00:00", "2026-11-21T12:00:00"),
            ("0 9 * * sat-sun", "2026-11-21T09:00:00", "2026-11-22T09:00:00"),
            ("0 9 * * 7", "2026-11-21T09:00:00", "2026-11-22T09:00:00"),
        ] {
            let found = Cron::parse(cron).unwrap().next(after.parse().unwrap());
            assert_eq!(found, Some(next.parse().unwrap()), "{cron}");
        }
    }

    #[test]
    fn a_wrong_line_is_told_with_its_field_and_a_right_one() {
        for (bad, why) in [
            ("", "0 fields"),
            ("@daily", "1 fields"),
            ("0 0 8 * * *", "6 fields"),
            ("60 * * * *", "the minute is \"60\""),
            ("* 24 * * *", "the hour is \"24\""),
            ("* * 0 * *", "the day of the month is \"0\""),
            ("* * L * *", "the day of the month is \"L\""),
            ("* * * foo *", "one of jan feb"),
            ("* * * * 8", "the day of the week is \"8\""),
            ("* * * * 5#3", "the day of the week"),
            ("*/0 * * * *", "the step \"0\""),
            ("*/+5 * * * *", "the step \"+5\""),
            ("30-10 * * * *", "goes backwards"),
            ("1,,2 * * * *", "the minute is \"\""),
            ("1- * * * *", "the minute is \"\""),
            ("*-5 * * * *", "the minute is \"*\""),
            ("0 0 31 2,4 *", "no such day exists"),
        ] {
            let message = Cron::parse(bad).unwrap_err();
            assert!(message.contains(why) && message.contains("`0 8 * * mon-fri`"), "{bad}: {message}");
        }
    }

    /// Another reader of cron, which is a dependency of the tests only, names the same times.
    #[test]
    fn a_thousand_lines_mean_what_they_mean_to_another_reader() {
        let mut seed = 11_u64;
        let mut upto = |n: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % n
        };
        let mut compared = 0;
        for _ in 0..1_500 {
            let mut parts = Vec::new();
            for field in &FIELDS {
                let (min, max) = (u64::from(field.min), u64::from(field.max));
                let mut value = || min + upto(max - min + 1);
                let (a, b) = (value(), value());
                let (first, last) = (a.min(b), a.max(b));
                let step = 1 + value() % max;
                let part = match upto(8) {
                    0..=2 => "*".to_string(),
                    3 => format!("*/{step}"),
                    4 => format!("{first}-{last}"),
                    5 => format!("{first}-{last}/{step}"),
                    6 => format!("{a},{b}"),
                    _ => format!("{a}"),
                };
                parts.push(part);
            }
            let text = parts.join(" ");
            let other = cronexpr::parse_crontab(&format!("{text} UTC")).unwrap();
            let mut at: DateTime = "2026-11-16T09:30:00".parse().unwrap();
            let Ok(cron) = Cron::parse(&text) else { continue };
            for _ in 0..4 {
                let utc = at.to_zoned(jiff::tz::TimeZone::UTC).unwrap().timestamp();
                let Ok(expected) = other.find_next(cronexpr::MakeTimestamp::from(utc)) else { break };
                at = cron.next(at).unwrap();
                assert_eq!(at, expected.datetime(), "{text}");
                compared += 1;
            }
        }
        assert!(compared > 3_000, "{compared}");
    }
}

//! Lines that come again: `every monday water the plants`.
//!
//! The line itself is the first of them. A phrase is read where a line begins or ends with it, and only there; a line that is
//! nothing but the phrase is none.

use super::{dates, marks};
use crate::Timestamp;
use crate::artifact::{AzollaId, CaptureId};
use crate::calendar::{Missed, Schedule, Zone};
use serde::{Deserialize, Serialize};

/// A line that comes again, as it is stored and exported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recurrence {
    /// The capture that it was read from.
    pub recurrence_id: CaptureId,
    /// In whose inbox.
    pub azolla_id: AzollaId,
    /// How often, as it was said.
    pub every: String,
    /// What is captured each time.
    pub text: String,
    pub schedule: Schedule,
    /// When it comes again.
    pub next_at: Timestamp,
    /// When it was captured.
    pub created_at: Timestamp,
    /// Since when it comes no more.
    pub stopped_at: Option<Timestamp>,
    /// It was imported: nothing is captured until an operator releases it.
    pub held: bool,
}

/// How often something comes again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Every {
    /// As it was said.
    pub said: String,
    /// Minute, hour, day of month, month, day of week.
    pub cron: String,
    /// Whether a time of day was said; otherwise it is about whole days.
    pub timed: bool,
}

/// Reads the phrase that these words, in lower case, begin with; and how many of them it takes.
pub fn phrase(words: &[&str]) -> Option<(usize, Every)> {
    let (["every"], rest) = words.split_at_checked(1)? else { return None };
    let (days, taken) = days(rest)?;
    let after = &rest[taken..];
    let time = [3, 2, 1].into_iter().find_map(|n| Some((n, dates::clock(after.get(..n)?)?)));
    let (more, minute, hour) = time.map_or((0, 0, 0), |(n, time)| (n, time.minute(), time.hour()));
    let all = 1 + taken + more;
    let said = words[..all].join(" ");
    Some((all, Every { said, cron: format!("{minute} {hour} {days}"), timed: time.is_some() }))
}

/// The last three fields of a line of cron, and how many words say them.
fn days(words: &[&str]) -> Option<(String, usize)> {
    let day_of_month = |word: &str| {
        let plain =
            ["st", "nd", "rd", "th", "."].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word);
        plain.parse::<u8>().ok().filter(|day| (1..=31).contains(day))
    };
    match *words {
        ["day", ..] => Some(("* * *".into(), 1)),
        ["weekday" | "workday", ..] => Some(("* * mon-fri".into(), 1)),
        ["working", "day", ..] => Some(("* * mon-fri".into(), 2)),
        ["week", "on", day, ..] if dates::weekday(day).is_some() => Some((weekdays(&[day])?, 3)),
        ["week", ..] => Some(("* * mon".into(), 1)),
        ["month", "on", "the", day, ..] => Some((format!("{} * *", day_of_month(day)?), 4)),
        ["month", "on", day, ..] => Some((format!("{} * *", day_of_month(day)?), 3)),
        ["month", ..] => Some(("1 * *".into(), 1)),
        ["year", "on", day, month, ..] => {
            let (day, month) = match (day_of_month(day), dates::month(month)) {
                (Some(day), Some(month)) => (day, month),
                _ => (day_of_month(month)?, dates::month(day)?),
            };
            Some((format!("{day} {month} *"), 4))
        }
        _ => {
            let mut named = Vec::new();
            let mut taken = 0;
            while let Some(day) = words.get(taken).filter(|word| dates::weekday(word).is_some()) {
                named.push(*day);
                taken += 1;
                let joined = words.get(taken) == Some(&"and")
                    && words.get(taken + 1).is_some_and(|next| dates::weekday(next).is_some());
                taken += usize::from(joined);
            }
            Some((weekdays(&named)?, taken))
        }
    }
}

fn weekdays(named: &[&str]) -> Option<String> {
    let days: Vec<String> = named
        .iter()
        .filter_map(|day| Some(dates::weekday(day)?.to_sunday_zero_offset().to_string()))
        .collect();
    (!days.is_empty()).then(|| format!("* * {}", days.join(",")))
}

impl Every {
    /// The times, on this calendar; `None`: there is no such day.
    pub fn schedule(&self, zone: &Zone) -> Option<Schedule> {
        Schedule::parse(&self.cron, zone.clone(), Missed::Once).ok()
    }

    /// The first time for a line of `at`. A whole day may be today.
    pub fn first(&self, at: Timestamp, zone: &Zone) -> Option<Timestamp> {
        let schedule = self.schedule(zone)?;
        if self.timed {
            return schedule.next_after(at);
        }
        let midnight = zone.instant(zone.civil(at)?.date().at(0, 0, 0, 0))?;
        schedule.next_after(Timestamp::from_millis(midnight.as_millis() - 1))
    }

    /// When that which comes at this time is due: then, or by the end of that day.
    pub fn due(&self, at: Timestamp, zone: &Zone) -> Option<Timestamp> {
        if self.timed { Some(at) } else { zone.instant(zone.civil(at)?.date().at(23, 59, 59, 0)) }
    }
}

/// A line that comes again, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recurring {
    pub every: Every,
    /// What is captured each time, without its date.
    pub text: String,
    /// The times that it comes at.
    pub schedule: Schedule,
    /// The first time after the one that the line itself is.
    pub next_at: Timestamp,
}

/// What comes again of a captured text; `None`: nothing.
pub fn of(text: &str, captured_at: Timestamp, zone: &Zone) -> Option<Recurring> {
    let marks = marks::read_line(text, captured_at, zone);
    let (every, text) = marks.every?;
    let schedule = every.schedule(zone)?;
    let next_at = schedule.next_after(every.first(captured_at, zone)?)?;
    Some(Recurring { every, text, schedule, next_at })
}

/// What is captured at this time: the text, with the day or the time at which it is due.
pub fn captured(text: &str, timed: bool, at: Timestamp, zone: &Zone) -> String {
    let civil = zone.civil(at);
    let due = civil.map(|civil| match timed {
        true => format!(" due:{}T{:02}:{:02}", civil.date(), civil.hour(), civil.minute()),
        false => format!(" due:{}", civil.date()),
    });
    format!("{text}{}", due.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Monday.
    const NOW: &str = "2026-11-16T10:30:00Z";

    fn read(text: &str) -> Option<(String, String, String)> {
        let found = of(text, NOW.parse().unwrap(), &Zone::UTC)?;
        Some((found.every.cron, found.text, found.next_at.to_string()[..16].to_string()))
    }

    #[test]
    fn a_line_that_begins_or_ends_with_every_comes_again() {
        for (text, cron, rest, next) in [
            ("every monday water the plants", "0 0 * * 1", "water the plants", "2026-11-23T00:00"),
            ("water the plants every monday", "0 0 * * 1", "water the plants", "2026-11-23T00:00"),
            ("(A) every day stretch +health", "0 0 * * *", "(A) stretch +health", "2026-11-17T00:00"),
            ("Every Tuesday and friday swim", "0 0 * * 2,5", "swim", "2026-11-20T00:00"),
            ("every weekday at 9 stand up", "0 9 * * mon-fri", "stand up", "2026-11-18T09:00"),
            ("every month on the 1st pay the rent", "0 0 1 * *", "pay the rent", "2027-01-01T00:00"),
            ("every week on friday write the report", "0 0 * * 5", "write the report", "2026-11-27T00:00"),
            ("every year on 12 may call mother", "0 0 12 5 *", "call mother", "2028-05-12T00:00"),
            ("pay the rent every month +home", "0 0 1 * *", "pay the rent +home", "2027-01-01T00:00"),
        ] {
            assert_eq!(read(text), Some((cron.into(), rest.into(), next.into())), "{text}");
        }
        for text in [
            "every monday",
            "every time it rains close the roof",
            "look at every day of the log",
            "every month on the 32nd pay",
            "every 30 february",
            "say \"every monday\"",
            "everyday life",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn the_line_itself_is_the_first_and_is_due_then() {
        let zone = Zone::UTC;
        let due =
            |text: &str| marks::read_line(text, NOW.parse().unwrap(), &zone).due_at.map(|at| at.to_string());
        assert_eq!(due("every monday water the plants").as_deref(), Some("2026-11-16T23:59:59.000Z"));
        assert_eq!(due("every friday at 17:00 sweep").as_deref(), Some("2026-11-20T17:00:00.000Z"));
        let at = "2026-11-23T00:00:00Z".parse().unwrap();
        assert_eq!(captured("water the plants", false, at, &zone), "water the plants due:2026-11-23");
        let again = marks::read_line(&captured("sweep", true, at, &zone), at, &zone);
        assert_eq!((again.title.as_str(), again.due_at), ("sweep", Some(at)));
    }
}

//! Until when a person does not want to see something, as they say it.

use super::dates;
use crate::Timestamp;
use crate::calendar::{Zone, duration};

/// Furthest that something can be put off: what is later is given up rather than snoozed.
const DAYS_MAX: u64 = 3_660;

/// Reads an instant, a date, a time or words like `tomorrow`, `friday 17:00`, `in 3 days`, `2h`, counted from `now`. A day begins
/// at midnight.
pub fn until(text: &str, now: Timestamp, zone: &Zone) -> Result<Timestamp, String> {
    let text = text.trim();
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower.split_whitespace().collect();
    let today = zone.civil(now).map(|civil| civil.date());
    let in_words = || {
        let today = today?;
        let when = dates::phrase(&words, today).or_else(|| match words[..] {
            [word] => dates::value(word, today),
            _ => None,
        });
        match when {
            Some(when) => zone.instant(when.date.to_datetime(when.time.unwrap_or_default())),
            None => zone.instant(today.to_datetime(dates::clock(&words)?)),
        }
    };
    let length = || duration::parse(&lower).ok().map(|length| now.after(length));
    let found = text.parse().ok().or_else(length).or_else(in_words).ok_or_else(|| {
        format!("{text:?} is no time; say tomorrow, friday 17:00, in 2 weeks, 2h, or a date like 2026-12-01")
    })?;
    if found <= now {
        return Err(format!("{text:?} is not ahead: it was {found}"));
    }
    if found.since(now).as_secs() > DAYS_MAX * 24 * 3600 {
        return Err(format!("{text:?} is more than ten years ahead"));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_say_until_when() {
        // A Monday.
        let now: Timestamp = "2026-11-16T10:30:00Z".parse().unwrap();
        let read = |text: &str, zone: &str| until(text, now, &zone.parse().unwrap()).map(|at| at.to_string());
        for (text, expected) in [
            ("tomorrow", "2026-11-17T00:00:00.000Z"),
            ("Next Monday", "2026-11-23T00:00:00.000Z"),
            ("friday 17:00", "2026-11-20T17:00:00.000Z"),
            ("in 3 days", "2026-11-19T00:00:00.000Z"),
            ("2026-12-01", "2026-12-01T00:00:00.000Z"),
            ("2026-12-01T08:00:00Z", "2026-12-01T08:00:00.000Z"),
            ("2h", "2026-11-16T12:30:00.000Z"),
            ("17:00", "2026-11-16T17:00:00.000Z"),
            ("5 pm", "2026-11-16T17:00:00.000Z"),
        ] {
            assert_eq!(read(text, "UTC").as_deref(), Ok(expected), "{text}");
        }
        assert_eq!(read("tomorrow", "Europe/Vienna").as_deref(), Ok("2026-11-16T23:00:00.000Z"));
        for text in ["", "soon", "2026-11-16", "today", "9:00", "2020-01-01", "2037-01-01", "in 99999 days"] {
            assert!(read(text, "UTC").is_err(), "{text}");
        }
    }
}

//! Days and times as people write them, counted from the day on which they were written.
//!
//! A day without a time ends with its last second. The week begins on Monday: `next week` is its Monday, `eow` its Sunday. A
//! weekday is the coming one, never today; `next monday` is the one of next week. A date without a year is the coming one.

use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::{Span, ToSpan as _};

/// A day, and maybe a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When {
    pub date: Date,
    /// The time, if it was said.
    pub time: Option<Time>,
}

impl When {
    /// The last second that is meant.
    pub fn civil(self) -> DateTime {
        self.date.to_datetime(self.time.unwrap_or(Time::constant(23, 59, 59, 0)))
    }
}

/// Words of the longest phrase: `by the 12th of may 2027 at 5 pm` has no longer form that is known here.
pub const PHRASE_WORDS_MAX: usize = 7;

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// Words that introduce a date and belong to it.
pub fn introduces(word: &str) -> bool {
    matches!(word, "on" | "by" | "until" | "due" | "before" | "this")
}

/// Reads words in lower case as a date, with or without a time; all of them, or nothing.
pub fn phrase(words: &[&str], today: Date) -> Option<When> {
    let words = match words {
        [first, rest @ ..] if introduces(first) => rest,
        _ => words,
    };
    let whole = |first: &[&str], second: &[&str]| Some((date(first, today)?, clock(second)?));
    if let Some(date) = date(words, today) {
        return Some(When { date, time: None });
    }
    (1..words.len()).find_map(|at| {
        let (first, second) = words.split_at(at);
        let (date, time) = whole(first, second).or_else(|| whole(second, first))?;
        Some(When { date, time: Some(time) })
    })
}

/// Reads the value of `due:`.
pub fn value(text: &str, today: Date) -> Option<When> {
    if let Ok(civil) = text.to_uppercase().parse::<DateTime>()
        && text.len() > 10
        && !text.ends_with(['z', 'Z'])
    {
        return Some(When { date: civil.date(), time: Some(civil.time()) });
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    if let (Ok(n), "d" | "w" | "m") = (number.parse(), unit) {
        return Some(When { date: ahead(n, unit, today)?, time: None });
    }
    Some(When { date: date(&[text], today)?, time: None })
}

fn date(words: &[&str], today: Date) -> Option<Date> {
    match *words {
        ["today" | "tonight" | "eod"] => Some(today),
        ["tomorrow" | "tmrw"] => today.tomorrow().ok(),
        ["eow"] => plus(today, i32::from(Weekday::Sunday.since(today.weekday())).days()),
        ["next", "week"] => plus(today, i32::from(8 - today.weekday().to_monday_one_offset()).days()),
        ["next", "month"] => plus(today.first_of_month(), 1.month()),
        ["next", day] => {
            let monday = plus(today, i32::from(8 - today.weekday().to_monday_one_offset()).days())?;
            plus(monday, i32::from(weekday(day)?.to_monday_zero_offset()).days())
        }
        ["in", n, unit] => ahead(if matches!(n, "a" | "one") { 1 } else { number(n)? }, unit, today),
        [word] => iso(word).or_else(|| today.nth_weekday(1, weekday(word)?).ok()),
        [a, b] => day_of_year(a, b, None, today).or_else(|| day_of_year(b, a, None, today)),
        [a, b, year] => {
            let year = (year.len() == 4).then(|| number(year)).flatten()?;
            day_of_year(a, b, Some(year), today).or_else(|| day_of_year(b, a, Some(year), today))
        }
        _ => None,
    }
}

fn plus(date: Date, span: Span) -> Option<Date> {
    date.checked_add(span).ok()
}

fn ahead(n: i32, unit: &str, today: Date) -> Option<Date> {
    // Ten years: what is longer is no appointment.
    let span = match unit {
        "d" | "day" | "days" if n <= 3660 => n.days(),
        "w" | "week" | "weeks" if n <= 520 => n.weeks(),
        "m" | "month" | "months" if n <= 120 => n.months(),
        _ => return None,
    };
    plus(today, span)
}

fn number(text: &str) -> Option<i32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// `2026-05-30`, and nothing shorter or longer.
pub fn iso(text: &str) -> Option<Date> {
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let is_form =
        text.len() == 10 && text.split('-').map(str::len).eq([4, 2, 2]) && text.split('-').all(digits);
    text.parse().ok().filter(|_| is_form)
}

/// `12 may`, in the year that is said or the coming one.
fn day_of_year(day: &str, month: &str, year: Option<i32>, today: Date) -> Option<Date> {
    let month = month.strip_suffix('.').unwrap_or(month);
    let month = named(month, &MONTHS)? as i8 + 1;
    let plain = ["st", "nd", "rd", "th", "."].iter().find_map(|end| day.strip_suffix(end)).unwrap_or(day);
    let day = i8::try_from(number(plain)?).ok()?;
    let in_year = |year: i16| Date::new(year, month, day).ok();
    match year {
        Some(year) => in_year(i16::try_from(year).ok()?),
        // Until the next leap year, for 29 February.
        None => (0..8).filter_map(|n| in_year(today.year() + n)).find(|date| *date >= today),
    }
}

/// A month by its name, in full or short: 1 to 12.
pub(super) fn month(word: &str) -> Option<usize> {
    named(word.strip_suffix('.').unwrap_or(word), &MONTHS).map(|place| place + 1)
}

/// The place of a name, in full or as it is shortened.
fn named(word: &str, names: &[&str]) -> Option<usize> {
    let short = |name: &str| match name {
        "september" => matches!(word, "sep" | "sept"),
        "tuesday" => matches!(word, "tue" | "tues"),
        "thursday" => matches!(word, "thu" | "thur" | "thurs"),
        name => word.len() == 3 && name.starts_with(word),
    };
    names.iter().position(|name| *name == word || short(name))
}

/// A weekday by its name, in full or short.
pub(super) fn weekday(word: &str) -> Option<Weekday> {
    Weekday::from_monday_zero_offset(named(word, &WEEKDAYS)? as i8).ok()
}

/// Whether this is the whole name of a weekday: short ones are other words too.
pub fn is_whole_weekday(word: &str) -> bool {
    WEEKDAYS.contains(&word)
}

/// `17:00`, `5pm`, `5 pm`, `at 5`, `noon`. A bare hour after `at` is one of a day's work: 1 to 7 are in the afternoon.
pub fn clock(words: &[&str]) -> Option<Time> {
    let (words, after_at) = match words {
        ["at", rest @ ..] => (rest, true),
        _ => (words, false),
    };
    let text = match *words {
        ["noon"] => return Time::new(12, 0, 0, 0).ok(),
        ["midnight"] => return Time::new(23, 59, 59, 0).ok(),
        [text] => text.to_string(),
        [text, half @ ("am" | "pm")] => format!("{text}{half}"),
        _ => return None,
    };
    let (text, half) = match text.strip_suffix("pm") {
        Some(text) => (text, Some(12)),
        None => text.strip_suffix("am").map_or((&text[..], None), |text| (text, Some(0))),
    };
    let (hour, minute) = match text.split_once(':') {
        Some((hour, minute)) => (number(hour)?, Some(number(minute).filter(|_| minute.len() == 2)?)),
        None => (number(text)?, None),
    };
    let hour = match (half, minute) {
        (Some(half), _) => (1..=12).contains(&hour).then_some(hour % 12 + half)?,
        (None, Some(_)) => hour,
        (None, None) if after_at => hour + if (1..=7).contains(&hour) { 12 } else { 0 },
        (None, None) => return None,
    };
    Time::new(i8::try_from(hour).ok()?, i8::try_from(minute.unwrap_or(0)).ok()?, 0, 0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Monday.
    const TODAY: Date = Date::constant(2026, 11, 16);

    fn read(text: &str) -> Option<String> {
        let words: Vec<_> = text.split(' ').collect();
        Some(phrase(&words, TODAY)?.civil().to_string().replace("T23:59:59", ""))
    }

    #[test]
    fn phrases_are_dates() {
        for (text, expected) in [
            ("today", "2026-11-16"),
            ("tonight", "2026-11-16"),
            ("eod", "2026-11-16"),
            ("tomorrow", "2026-11-17"),
            ("monday", "2026-11-23"),
            ("fri", "2026-11-20"),
            ("this friday", "2026-11-20"),
            ("thurs", "2026-11-19"),
            ("sun", "2026-11-22"),
            ("eow", "2026-11-22"),
            ("next week", "2026-11-23"),
            ("next monday", "2026-11-23"),
            ("next sun", "2026-11-29"),
            ("next month", "2026-12-01"),
            ("in 3 days", "2026-11-19"),
            ("in 2 weeks", "2026-11-30"),
            ("in a month", "2026-12-16"),
            ("2026-05-30", "2026-05-30"),
            ("on 12 may", "2027-05-12"),
            ("may 12", "2027-05-12"),
            ("nov 16", "2026-11-16"),
            ("3rd dec. 2028", "2028-12-03"),
            ("29 feb", "2028-02-29"),
            ("by tomorrow 17:00", "2026-11-17T17:00:00"),
            ("tomorrow 5pm", "2026-11-17T17:00:00"),
            ("5pm tomorrow", "2026-11-17T17:00:00"),
            ("fri at 5", "2026-11-20T17:00:00"),
            ("fri at 9", "2026-11-20T09:00:00"),
            ("may 12 at 5:30 pm", "2027-05-12T17:30:00"),
            ("today 12am", "2026-11-16T00:00:00"),
            ("today noon", "2026-11-16T12:00:00"),
        ] {
            assert_eq!(read(text).as_deref(), Some(expected), "{text}");
        }
        for (text, expected) in [
            ("2026-12-01t17:30", "2026-12-01T17:30:00"),
            ("3d", "2026-11-19T23:59:59"),
            ("fri", "2026-11-20T23:59:59"),
        ] {
            assert_eq!(
                value(text, TODAY).map(|when| when.civil().to_string()).as_deref(),
                Some(expected),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "may",
            "may i",
            "12",
            "5pm",
            "at 5",
            "in days",
            "in 3",
            "in 99999 days",
            "in -3 days",
            "next",
            "next next",
            "31 feb",
            "2026-13-01",
            "2026-5-3",
            "20260530",
            "0 may",
            "fri 25:00",
            "fri 13pm",
            "fri 5",
            "fri 5:5",
            "fri fri",
            "on",
            "by",
            "tomorrow tomorrow",
            "12 may 27",
            "in 3 days time",
            "١٢ may",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        for text in ["", "x", "99999999999d", "5", "2026-12-01T17:30Z"] {
            assert_eq!(value(text, TODAY), None, "{text}");
        }
    }
}

//! Instants and durations as people say them.

use fernery_core::Timestamp;
use fernery_core::calendar::duration::millis;
use std::time::Duration;

/// Milliseconds in each unit, largest first.
const UNITS: [(&str, u64); 5] =
    [("d", 24 * 3_600_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000), ("ms", 1)];

/// The distance of an instant from now, in one unit: `3 min ago`, `in 2 h`.
pub(crate) fn relative(at: Timestamp, now: Timestamp) -> String {
    let (distance, ahead) = if at > now { (at.since(now), true) } else { (now.since(at), false) };
    match (one_unit(distance), ahead) {
        (None, _) => "now".to_string(),
        (Some(distance), true) => format!("in {distance}"),
        (Some(distance), false) => format!("{distance} ago"),
    }
}

/// An instant to the minute: `2026-11-20 17:00 UTC`.
pub(crate) fn minute(at: Timestamp) -> String {
    let text = at.to_string();
    match (text.get(..10), text.get(11..16)) {
        (Some(day), Some(time)) => format!("{day} {time} UTC"),
        _ => text,
    }
}

/// When something is due, as people say it: `due in 3 days`, `overdue by 2 hours`.
pub(crate) fn due(at: Timestamp, now: Timestamp) -> String {
    let (left, late) = if at > now { (at.since(now), false) } else { (now.since(at), true) };
    let (unit, unit_ms) = match millis(left) {
        ms if ms >= UNITS[0].1 => ("day", UNITS[0].1),
        ms if ms >= UNITS[1].1 => ("hour", UNITS[1].1),
        _ => ("minute", UNITS[2].1),
    };
    let n = millis(left) / unit_ms;
    let s = if n == 1 { "" } else { "s" };
    match (n, late) {
        (0, _) => "due now".to_string(),
        (n, false) => format!("due in {n} {unit}{s}"),
        (n, true) => format!("overdue by {n} {unit}{s}"),
    }
}

/// A duration in its largest unit, rounded down; none below a second.
fn one_unit(duration: Duration) -> Option<String> {
    let ms = millis(duration);
    let (unit, unit_ms) = UNITS[..4].iter().find(|(_, unit_ms)| ms >= *unit_ms)?;
    Some(format!("{} {unit}", ms / unit_ms))
}

/// A duration, exactly: `30 min`, `1 h 30 min`, `1 s 500 ms`.
pub(crate) fn span(duration: Duration) -> String {
    let mut left = millis(duration);
    let mut parts = Vec::new();
    for (unit, unit_ms) in UNITS {
        if left >= unit_ms {
            parts.push(format!("{} {unit}", left / unit_ms));
        }
        left %= unit_ms;
    }
    if parts.is_empty() { "0 s".to_string() } else { parts.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_told_by_its_distance() {
        let now = Timestamp::from_millis(1_800_000_000_000);
        for (ms, said) in [
            (0, "now"),
            (-999, "now"),
            (-3_000, "3 s ago"),
            (-59_999, "59 s ago"),
            (-180_000, "3 min ago"),
            (7_200_000, "in 2 h"),
            (-86_400_000 * 400, "400 d ago"),
        ] {
            assert_eq!(relative(Timestamp::from_millis(now.as_millis() + ms), now), said);
        }
    }

    #[test]
    fn what_is_due_is_told_in_words() {
        let now = Timestamp::from_millis(1_800_000_000_000);
        for (ms, said) in [
            (86_400_000 * 3 + 5_000, "due in 3 days"),
            (86_400_000, "due in 1 day"),
            (7_200_000, "due in 2 hours"),
            (61_000, "due in 1 minute"),
            (3_000, "due now"),
            (-86_400_000 * 2, "overdue by 2 days"),
        ] {
            assert_eq!(due(Timestamp::from_millis(now.as_millis() + ms), now), said);
        }
        assert_eq!(minute(now), "2027-01-15 08:00 UTC");
    }

    #[test]
    fn a_duration_is_told_exactly() {
        for (ms, said) in
            [(1_800_000, "30 min"), (5_400_000, "1 h 30 min"), (1_500, "1 s 500 ms"), (0, "0 s")]
        {
            assert_eq!(span(Duration::from_millis(ms)), said);
        }
    }
}

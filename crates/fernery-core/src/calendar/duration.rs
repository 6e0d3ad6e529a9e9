//! Durations as people write them: a whole number and its unit.

use std::time::Duration;

/// Milliseconds in each unit, largest first.
const UNITS: [(&str, u64); 5] =
    [("d", 24 * 3_600_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Whole milliseconds, as the wire has them.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Whole milliseconds, as databases have them.
pub fn millis_i64(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Reads `500ms`, `60s`, `5m`, `2h` or `7d`. A bare number is refused: it leaves open which unit was meant.
pub fn parse(text: &str) -> Result<Duration, String> {
    let refused = |why: &str| {
        Err(format!("{text:?} {why}; a duration is a whole number and its unit: 500ms, 60s, 5m, 2h or 7d"))
    };
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    if number.is_empty() {
        return refused("does not start with a number");
    }
    if unit.is_empty() {
        return refused("has no unit");
    }
    let Some((_, unit_ms)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return refused("has an unknown unit");
    };
    match number.parse::<u64>().ok().and_then(|n| n.checked_mul(*unit_ms)) {
        Some(0) => refused("is zero"),
        Some(ms) if i64::try_from(ms).is_ok() => Ok(Duration::from_millis(ms)),
        _ => refused("is too long"),
    }
}

/// Writes a duration in the largest unit that keeps it whole.
pub fn show(duration: Duration) -> String {
    let ms = millis(duration);
    let (unit, unit_ms) = UNITS.iter().find(|(_, unit_ms)| ms.is_multiple_of(*unit_ms)).unwrap_or(&("ms", 1));
    // Sixty seconds are what people call the default lease; only whole hours and more change its unit.
    if *unit == "m" && ms < 3_600_000 && ms / 60_000 == 1 {
        return format!("{}s", ms / 1_000);
    }
    format!("{}{unit}", ms / unit_ms)
}

/// Writes a duration for people only, in up to two units: `7d 1h`. The rest is left out.
pub fn in_words(duration: Duration) -> String {
    let mut ms = millis(duration);
    let mut parts = Vec::new();
    let first = UNITS.iter().position(|(_, unit_ms)| ms >= *unit_ms).unwrap_or(UNITS.len());
    for (unit, unit_ms) in UNITS[first..].iter().take(2) {
        if ms >= *unit_ms {
            parts.push(format!("{}{unit}", ms / unit_ms));
        }
        ms %= unit_ms;
    }
    if parts.is_empty() { "0s".to_string() } else { parts.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_read_two_units() {
        for (ms, words) in [
            (169 * 3_600_000, "7d 1h"),
            (7 * 24 * 3_600_000, "7d"),
            (3_660_000, "1h 1m"),
            (90_000, "1m 30s"),
            (24 * 3_600_000 + 60_000, "1d"),
            (0, "0s"),
        ] {
            assert_eq!(in_words(Duration::from_millis(ms)), words);
        }
    }

    #[test]
    fn what_is_shown_reads_back() {
        for text in ["500ms", "60s", "5m", "2h", "7d", "90s", "1ms"] {
            assert_eq!(parse(&show(parse(text).unwrap())).unwrap(), parse(text).unwrap(), "{text}");
            assert_eq!(show(parse(text).unwrap()), text);
        }
    }

    #[test]
    fn a_wrong_form_is_refused_with_the_right_ones() {
        for bad in
            ["", "60", "60 s", "60 minutes", "-5s", "0", "0s", "1.5h", "s", "5w", "99999999999999999d", "٦s"]
        {
            let why = parse(bad).unwrap_err();
            assert!(why.contains("500ms, 60s, 5m, 2h or 7d"), "{bad}: {why}");
        }
    }
}

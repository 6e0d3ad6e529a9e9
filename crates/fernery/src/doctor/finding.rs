//! What one check found, how bad it is, and what to do about it.

use serde::Serialize;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    Ok,
    /// It works, but will cause trouble one day.
    Warning,
    /// It does not work, or breaks a promise.
    Problem,
}

impl Level {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// What one check found. A warning or problem always has a remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) check: &'static str,
    pub(crate) level: Level,
    pub(crate) found: String,
    pub(crate) remedy: Option<String>,
}

impl Finding {
    pub(crate) fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, level: Level::Ok, found: found.into(), remedy: None }
    }

    pub(crate) fn warning(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, level: Level::Warning, found: found.into(), remedy: Some(remedy.into()) }
    }

    pub(crate) fn problem(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, level: Level::Problem, found: found.into(), remedy: Some(remedy.into()) }
    }

    /// A finding of this level; the remedy is dropped if the level is ok.
    pub(crate) fn at(
        level: Level,
        check: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        match level {
            Level::Ok => Self::ok(check, found),
            Level::Warning => Self::warning(check, found, remedy),
            Level::Problem => Self::problem(check, found, remedy),
        }
    }
}

/// A size as people read it.
pub(crate) fn bytes(n: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.iter().find(|(size, _)| n >= *size) {
        Some((size, unit)) => format!("{:.1} {unit}", n as f64 / *size as f64),
        None => format!("{n} bytes"),
    }
}

/// A span of time as people read it: two units at most.
pub(crate) fn span(span: Duration) -> String {
    let (ms, s) = (span.as_millis(), span.as_secs());
    match s {
        0 if ms == 0 => format!("{} µs", span.as_micros()),
        0 if ms < 10 => format!("{}.{} ms", ms, span.as_micros() % 1_000 / 100),
        0 => format!("{ms} ms"),
        1..60 => format!("{}.{} s", s, (ms % 1_000) / 100),
        60..3_600 => format!("{} min {} s", s / 60, s % 60),
        3_600..86_400 => format!("{} h {} min", s / 3_600, s % 3_600 / 60),
        _ => format!("{} d {} h", s / 86_400, s % 86_400 / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_spans_read_well() {
        for (n, shown) in [(0, "0 bytes"), (1_023, "1023 bytes"), (1_536, "1.5 KiB"), (5 << 40, "5.0 TiB")] {
            assert_eq!(bytes(n), shown);
        }
        for (ms, shown) in [
            (0, "0 µs"),
            (3, "3.0 ms"),
            (250, "250 ms"),
            (1_250, "1.2 s"),
            (61_000, "1 min 1 s"),
            (3_660_000, "1 h 1 min"),
            (90_000_000, "1 d 1 h"),
        ] {
            assert_eq!(span(Duration::from_millis(ms)), shown);
        }
    }
}

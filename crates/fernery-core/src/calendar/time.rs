//! Instants, as milliseconds since 1970 in UTC; RFC 3339 on the wire.

use super::duration::millis_i64;
use crate::parsed::parsed;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// An instant with millisecond resolution.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

/// 1970-01-01 to 9999-01-01 in milliseconds: what both databases and RFC 3339 can hold.
const MAX_MS: i64 = 253_370_764_800_000;

impl Timestamp {
    /// The instant this many milliseconds after the start of 1970.
    pub const fn from_millis(ms: i64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the start of 1970.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// The instant `by` later; saturates.
    pub fn after(self, by: Duration) -> Self {
        Self(self.0.saturating_add(millis_i64(by)).min(MAX_MS))
    }

    /// The instant `by` earlier; saturates.
    pub fn before(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(millis_i64(by)))
    }

    /// How long after `earlier` this is; zero if it is not after.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(t) => write!(f, "{t:.3}"),
            Err(_) => write!(f, "{}ms", self.0),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Timestamp {
    type Err = String;

    /// Reads RFC 3339 with its zone; years 1970 to 9998.
    fn from_str(text: &str) -> Result<Self, String> {
        const FORM: &str = "expected an instant like 2026-11-15T09:30:00Z, with its zone, from 1970 to 9998";
        let instant: jiff::Timestamp = text.parse().map_err(|_| FORM.to_string())?;
        let ms = instant.as_millisecond();
        if (0..MAX_MS).contains(&ms) { Ok(Self(ms)) } else { Err(FORM.to_string()) }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_survives_its_wire_form() {
        let t = Timestamp::from_millis(1_794_735_000_123);
        assert_eq!(t.to_string().parse::<Timestamp>(), Ok(t));
        assert!(t.to_string().ends_with(".123Z"), "{t}");
    }

    #[test]
    fn an_instant_without_zone_or_out_of_range_is_refused() {
        for bad in ["2026-11-15T09:30:00", "9999-12-31T00:00:00Z", "-000001-01-01T00:00:00Z", "tomorrow", ""]
        {
            assert!(bad.parse::<Timestamp>().is_err(), "{bad}");
        }
    }
}

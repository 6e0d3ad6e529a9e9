//! How far an attempt is, as its holder says.

use crate::limits;
use crate::names::is_unprintable;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// How far an attempt is. Within one attempt it never goes back: the stores refuse a percentage below the one they have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Progress {
    percent: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

impl Progress {
    /// 0 to 100 percent, and what is being done.
    pub fn new(percent: u8, note: Option<String>) -> Result<Self, String> {
        if percent > 100 {
            return Err(format!("{percent} is not a percentage: 0 to 100"));
        }
        match &note {
            Some(note) if note.chars().count() > limits::PROGRESS_NOTE_CHARS_MAX => {
                Err(format!("a note has at most {} characters", limits::PROGRESS_NOTE_CHARS_MAX))
            }
            Some(note) if note.chars().any(is_unprintable) => {
                Err("a note is one line of printable characters".to_string())
            }
            _ => Ok(Self { percent, note }),
        }
    }

    /// 0 to 100.
    pub fn percent(&self) -> u8 {
        self.percent
    }

    /// What is being done, for people.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }
}

/// Each field by itself, so that a refusal can name it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with percent and note")]
struct Wire {
    percent: Percent,
    #[serde(default)]
    note: Option<Note>,
}

struct Percent(u8);

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(PercentVisitor)
    }
}

/// Reads a percentage, and says what one is where it is none.
struct PercentVisitor;

impl Visitor<'_> for PercentVisitor {
    type Value = Percent;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number from 0 to 100")
    }

    fn visit_u64<E: de::Error>(self, percent: u64) -> Result<Percent, E> {
        match u8::try_from(percent) {
            Ok(percent @ 0..=100) => Ok(Percent(percent)),
            _ => Err(E::invalid_value(de::Unexpected::Unsigned(percent), &self)),
        }
    }
}

struct Note(String);

impl<'de> Deserialize<'de> for Note {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let note = String::deserialize(deserializer)?;
        let checked = Progress::new(0, Some(note)).map_err(de::Error::custom)?;
        Ok(Self(checked.note.unwrap_or_default()))
    }
}

impl<'de> Deserialize<'de> for Progress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = Wire::deserialize(deserializer)?;
        Ok(Self { percent: wire.percent.0, note: wire.note.map(|note| note.0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_ends_at_a_hundred_and_a_note_is_one_short_line() {
        for good in [r#"{"percent":0}"#, r#"{"percent":100,"note":"ä"}"#] {
            let read: Progress = serde_json::from_str(good).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), good);
        }
        let long = format!(r#"{{"percent":1,"note":"{}"}}"#, "x".repeat(limits::PROGRESS_NOTE_CHARS_MAX + 1));
        for bad in [
            r#"{"percent":101}"#,
            r#"{"percent":-1}"#,
            r#"{"percent":1.5}"#,
            r#"{"percent":"1"}"#,
            "{}",
            r#"{"percent":1,"note":"a\nb"}"#,
            r#"{"percent":1,"note":"a\u202eb"}"#,
            r#"{"percent":1,"note":"a\u2028b"}"#,
            r#"{"percent":1,"note":7}"#,
            r#"{"percent":1,"more":1}"#,
            r#"{"percent":256}"#,
            "7",
            "null",
            &long,
        ] {
            let refusal = serde_json::from_str::<Progress>(bad).expect_err(bad).to_string();
            for word in ["Wire", "struct", "u8", "u64"] {
                assert!(!refusal.contains(word), "{bad}: {refusal}");
            }
        }
    }
}

//! How far an attempt is, as its holder says.

use crate::limits;
use serde::{Deserialize, Deserializer, Serialize};

/// How far an attempt is. Within one attempt it never goes back.
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
            Some(note) if note.chars().any(char::is_control) => {
                Err("a note has no control characters".to_string())
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

    /// Whether it may follow what was said before.
    pub fn may_follow(&self, before: Option<&Self>) -> bool {
        before.is_none_or(|before| before.percent <= self.percent)
    }
}

/// Each field by itself, so that a refusal can name it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    percent: Percent,
    #[serde(default)]
    note: Option<Note>,
}

struct Percent(u8);

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let percent = u8::deserialize(deserializer)?;
        Progress::new(percent, None).map_err(serde::de::Error::custom)?;
        Ok(Self(percent))
    }
}

struct Note(String);

impl<'de> Deserialize<'de> for Note {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let note = String::deserialize(deserializer)?;
        let checked = Progress::new(0, Some(note)).map_err(serde::de::Error::custom)?;
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
            r#"{"percent":1,"more":1}"#,
            &long,
        ] {
            assert!(serde_json::from_str::<Progress>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn progress_stays_or_grows() {
        let at = |percent| Progress::new(percent, None).unwrap();
        assert!(at(5).may_follow(None) && at(5).may_follow(Some(&at(5))) && at(6).may_follow(Some(&at(5))));
        assert!(!at(4).may_follow(Some(&at(5))));
    }
}

//! Ids and names: typed, checked once at the door, cheap to clone.

use crate::limits;
use crate::parsed::parsed;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use uuid::Uuid;

/// Why a name or id was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadName(pub String);

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadName {}

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// Wraps a UUID that was made or stored by the engine.
            pub const fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }

            pub const fn uuid(self) -> Uuid {
                self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = BadName;

            fn from_str(text: &str) -> Result<Self, BadName> {
                // Only the hyphenated form: other spellings of one id would be other strings to every reader.
                if text.len() == 36
                    && let Ok(uuid) = Uuid::try_parse(text)
                {
                    return Ok(Self(uuid));
                }
                Err(BadName(concat!($what, " is a UUID like 019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f").to_string()))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.0.hyphenated().encode_lower(&mut Uuid::encode_buffer()))
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                parsed(deserializer)
            }
        }
    };
}

uuid_id!(
    /// A job. UUID v7 when the engine makes it, so that ids sort by age.
    JobId,
    "job_id"
);
uuid_id!(
    /// One claim of a job, from lease to end.
    AttemptId,
    "attempt_id"
);

/// A character that is never part of a name or a note: what breaks a line, hides or reorders the text around it.
pub fn is_unprintable(c: char) -> bool {
    let of_layout = matches!(c,
        '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}');
    c.is_control() || of_layout
}

/// Makes one emoji of two.
const JOINER: char = '\u{200d}';

/// A picture, or what selects its form or colour.
fn is_emoji(c: char) -> bool {
    matches!(c as u32, 0x1f000..=0x1faff | 0x2600..=0x27bf | 0x2b00..=0x2bff | 0x2190..=0x21ff | 0xfe0f)
}

/// The unprintable characters of a text, each with its place. A joiner between two emoji is part of a picture and none of
/// them; anywhere else it would hide.
pub fn unprintable_in(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut before = None;
    text.char_indices().filter(move |(at, c)| {
        let after = || text[at + c.len_utf8()..].chars().next();
        let joins = *c == JOINER && before.is_some_and(is_emoji) && after().is_some_and(is_emoji);
        before = Some(*c);
        is_unprintable(*c) && !joins
    })
}

/// Text that can be shown as it is: lines and tabs stay, every other unprintable character is replaced.
pub fn showable(text: &str) -> String {
    let shown = |c| if matches!(c, '\n' | '\t') || !is_unprintable(c) { c } else { '\u{fffd}' };
    text.chars().map(shown).collect()
}

macro_rules! text_name {
    ($(#[$doc:meta])* $name:ident, $check:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks a name that comes from outside.
            pub fn new(text: &str) -> Result<Self, BadName> {
                $check(text)?;
                Ok(Self(text.into()))
            }

            /// Takes a name that was checked before it was stored.
            pub fn stored(text: &str) -> Self {
                Self(text.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = BadName;

            fn from_str(text: &str) -> Result<Self, BadName> {
                Self::new(text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                parsed(deserializer)
            }
        }
    };
}

pub(crate) use text_name;

text_name!(
    /// The name of a stream of jobs: letters, digits and `_ - . : /`.
    StreamName,
    check_stream
);
text_name!(
    /// What a worker calls itself. Recorded with each attempt; it guards nothing.
    WorkerId,
    check_worker
);

fn check_stream(text: &str) -> Result<(), BadName> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/');
    if (1..=limits::STREAM_NAME_CHARS_MAX).contains(&text.len()) && text.chars().all(allowed) {
        Ok(())
    } else {
        Err(BadName(format!(
            "a stream name has 1 to {} characters of A-Z a-z 0-9 _ - . : /",
            limits::STREAM_NAME_CHARS_MAX
        )))
    }
}

fn check_worker(text: &str) -> Result<(), BadName> {
    let chars = text.chars().count();
    if (1..=limits::WORKER_ID_CHARS_MAX).contains(&chars) && !text.chars().any(is_unprintable) {
        Ok(())
    } else {
        Err(BadName(format!("worker_id has 1 to {} printable characters", limits::WORKER_ID_CHARS_MAX)))
    }
}

/// Streams of the pipeline: only its scheduler enqueues there.
pub const RESERVED_STREAM_PREFIX: &str = "diazotroph:";

/// Streams of notices to the outside: only the control plane enqueues and claims there.
pub const NOTICE_STREAM_PREFIX: &str = "notice:";

/// The stream in Redis that tells of jobs that were buried. Nobody enqueues to it or claims from it.
pub const DEAD_LETTER_STREAM: &str = "jobs:dlq";

impl StreamName {
    /// Whether jobs of this stream are workorders.
    pub fn is_workorders(&self) -> bool {
        self.0.starts_with(RESERVED_STREAM_PREFIX)
    }

    /// Whether its jobs are notices to the outside.
    pub fn is_notices(&self) -> bool {
        self.0.starts_with(NOTICE_STREAM_PREFIX)
    }

    /// Whether nobody but the control plane itself may enqueue here.
    pub fn is_reserved(&self) -> bool {
        self.0.starts_with(RESERVED_STREAM_PREFIX) || self.is_notices() || &*self.0 == DEAD_LETTER_STREAM
    }
}

/// The name among `known` that a person most likely meant.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Comparing takes as long as both are, multiplied; and what is so long is no misspelling.
    if name.len() > limits::STREAM_NAME_CHARS_MAX {
        return None;
    }
    known
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(score, _)| *score > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// Checks a producer's unique key.
pub fn check_unique_key(text: &str) -> Result<(), BadName> {
    if (1..=limits::UNIQUE_KEY_BYTES_MAX).contains(&text.len()) && !text.chars().any(is_unprintable) {
        Ok(())
    } else {
        Err(BadName(format!("unique_key has 1 to {} bytes of printable text", limits::UNIQUE_KEY_BYTES_MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_joiner_is_printable_between_two_emoji_only() {
        let places = |text: &str| unprintable_in(text).map(|(at, _)| at).collect::<Vec<_>>();
        for whole in ["👩‍💻 the deploy", "🏳️‍🌈", "👩🏽‍🚀", "plain"] {
            assert!(places(whole).is_empty(), "{whole}");
        }
        assert_eq!(places("a\u{200d}b"), [1]);
        assert_eq!(places("👩\u{200d}"), [4]);
        assert_eq!(places("👩\u{200d}\u{200d}👩"), [4, 7]);
        assert_eq!(places("👩\u{202e}👩"), [4]);
    }

    #[test]
    fn a_misspelling_is_recognised_and_another_word_is_not() {
        let known = || ["concurrency", "review_limit"].into_iter();
        assert_eq!(nearest("conurrency", known()), Some("concurrency"));
        for other in ["", "zzz", &"concurrency".repeat(1_000_000)] {
            assert_eq!(nearest(other, known()), None);
        }
    }

    #[test]
    fn stream_names_are_plain_ascii_of_bounded_length() {
        for good in ["a", "jobs:stream:high", "build/linux-x86_64.v2", &"s".repeat(200)] {
            assert!(StreamName::new(good).is_ok(), "{good}");
        }
        for bad in ["", " a", "a b", "ä", "a\0", "a\n", &"s".repeat(201)] {
            assert!(StreamName::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn worker_ids_are_printable_and_counted_in_characters() {
        assert!(WorkerId::new(&"ä".repeat(200)).is_ok());
        for bad in ["", "a\0", "a\u{202e}b", "a\u{61c}b", "a\u{fff9}b", &"ä".repeat(201)] {
            assert!(WorkerId::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn only_the_hyphenated_form_is_an_id() {
        assert!("019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f".parse::<JobId>().is_ok());
        for bad in ["", "019a8c5e7b1a7cc398c4dc0c0c07398f", "{019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f}", "../x"]
        {
            assert!(bad.parse::<JobId>().is_err(), "{bad:?}");
        }
    }
}

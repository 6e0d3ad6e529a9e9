//! The rules of the task-management azolla: what a captured line becomes, what a person should look at now, and when
//! something is overdue.
//!
//! Nothing here starts work. Triage makes candidates, a manifest names what waits, a deadline writes a pause; a person
//! decides about each (invariant 15). A program or a model may replace the built-in triage and manifest: the same gates
//! judge its answers.
//!
//! * [`marks`], [`dates`]: what a captured line says beside its words
//! * [`triage`]: captures to candidates, and the gate over that
//! * [`likeness`]: candidates that say nearly the same
//! * [`deadline`]: when an objective is overdue
//! * [`destination`]: the azolla that a candidate is promoted to
//! * [`recurring`]: lines that come again; [`snooze`]: until when something is put off
//! * [`question`]: what a workorder asks, however it is answered
//! * [`filter`], [`foreign`]: what one azolla asks another, and how its answer is read
//! * [`facts`], [`score`]: what needs a person, over all azollas, the most pressing first
//! * [`manifest`]: the facts as one to five lines, and the gate over those

#[cfg(test)]
mod chaos;
pub mod dates;
pub mod deadline;
pub mod destination;
pub mod facts;
pub mod filter;
pub mod foreign;
pub mod label;
pub mod likeness;
pub mod manifest;
pub mod marks;
pub mod question;
pub mod recurring;
pub mod score;
pub mod snooze;
pub mod triage;
mod wording;

pub use question::{Question, StandIn};

use crate::Timestamp;
use crate::artifact::{CaptureId, Metadata};
use crate::names::unprintable_in;
use crate::pipeline::draft::Draft;
use crate::words;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// Bytes as text for people: valid UTF-8 stays as it is, except control characters other than `\n` and `\t`. These, and bytes
/// that are not UTF-8, become `\xNN`.
pub fn shown(raw: &[u8]) -> String {
    let mut text = String::with_capacity(raw.len());
    let escape = |bytes: &[u8], text: &mut String| {
        for byte in bytes {
            let _ = write!(text, "\\x{byte:02X}");
        }
    };
    for chunk in raw.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() && !matches!(c, '\n' | '\t') {
                escape(c.encode_utf8(&mut [0; 4]).as_bytes(), &mut text);
            } else {
                text.push(c);
            }
        }
        escape(chunk.invalid(), &mut text);
    }
    text
}

/// A capture as triage sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Captured {
    pub capture_id: CaptureId,
    /// What was captured, as [`shown`] writes it.
    pub text: String,
    pub source_label: String,
    pub created_at: Timestamp,
}

words!(
    /// The status of a candidate.
    CandidateStatus {
        /// It waits for a person.
        Waiting = "WAITING",
        /// It became an objective.
        Promoted = "PROMOTED",
        /// An operator discarded it.
        Discarded = "DISCARDED",
        /// It was merged into another candidate.
        Merged = "MERGED",
    }
);

/// What might become an objective, if a person wants it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// The captures that it was made of.
    pub capture_ids: Vec<CaptureId>,
    /// What is wanted, in a line.
    pub title: String,
    /// How to tell that it is done.
    pub acceptance_criteria: String,
    /// 0 to 4; 0 is the most.
    pub importance: u8,
    /// 0 to 4; 0 is now.
    pub urgency: u8,
    /// What else was said: `due_at`, `projects`, `contexts`, …
    #[serde(default)]
    pub metadata: Metadata,
}

impl Candidate {
    pub fn draft(&self) -> Draft {
        Draft {
            title: self.title.clone(),
            acceptance_criteria: self.acceptance_criteria.clone(),
            importance: self.importance,
            urgency: self.urgency,
            metadata: self.metadata.clone(),
        }
    }
}

/// A capture without a candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Left {
    pub capture_id: CaptureId,
    pub why: String,
}

/// What triage made of a batch of captures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Triage {
    /// What a person may want.
    pub candidates: Vec<Candidate>,
    /// Captures without a candidate, and why.
    #[serde(default)]
    pub left: Vec<Left>,
    /// Open questions in the captures, one per line; they go into the notes of the bundle.
    #[serde(default)]
    pub ambiguities: Vec<String>,
}

/// One line that can be shown as it is: unprintable characters and double spaces are gone, and it has at most
/// `chars_max` characters, cut at a word where there is one.
pub(crate) fn one_line(text: &str, chars_max: usize) -> String {
    let unprintable: Vec<usize> = unprintable_in(text).map(|(at, _)| at).collect();
    let kept = |(at, c): (usize, char)| match c {
        c if c.is_whitespace() => Some(' '),
        c => unprintable.binary_search(&at).is_err().then_some(c),
    };
    let spaced: String = text.char_indices().filter_map(kept).collect();
    let line = spaced.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    if line.chars().count() <= chars_max {
        return line;
    }
    let kept: String = line.chars().take(chars_max.saturating_sub(1)).collect();
    // A word that is longer than half of the line is cut through.
    let cut = kept.rfind(' ').filter(|at| *at > kept.len() / 2).unwrap_or(kept.len());
    format!("{}…", kept[..cut].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_stands_escaped_and_all_else_as_it_is() {
        for (raw, expected) in [
            (&b""[..], ""),
            (b"a\n\tb", "a\n\tb"),
            (b"a\0b\x1b[2J\r", "a\\x00b\\x1B[2J\\x0D"),
            (b"\xff\xfeok", "\\xFF\\xFEok"),
            (b"cut \xe2\x82", "cut \\xE2\\x82"),
            ("ä 😀 \u{85}\u{202e}".as_bytes(), "ä 😀 \\xC2\\x85\u{202e}"),
        ] {
            assert_eq!(shown(raw), expected);
        }
    }

    #[test]
    fn a_line_is_cut_at_a_word() {
        assert_eq!(one_line(" a\u{200b}\n b\t c ", 9), "a b c");
        assert_eq!(one_line("one two three four", 12), "one two…");
        assert_eq!(one_line(&"x".repeat(30), 10), format!("{}…", "x".repeat(9)));
        assert_eq!(one_line("😀😀😀😀", 3), "😀😀…");
    }
}

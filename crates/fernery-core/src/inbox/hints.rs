//! What a captured line says beside its words.

use super::{Zone, one_line};
use crate::Timestamp;

/// Characters of a title that was made from a capture.
const TITLE_CHARS: usize = 120;

/// What a captured line says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hints {
    /// The first line, without what is certainly a hint.
    pub title: String,
    /// How important, if it says so.
    pub importance: Option<u8>,
    /// How urgent, if it says so or has a date.
    pub urgency: Option<u8>,
    /// Until when.
    pub due_at: Option<Timestamp>,
    /// `+these`.
    pub projects: Vec<String>,
    /// `@these`.
    pub contexts: Vec<String>,
    /// `#these`.
    pub labels: Vec<String>,
    /// Whether it has the mark of something done.
    pub done: bool,
    /// When it was done, as written.
    pub done_on: Option<String>,
    /// When it was written down, as written.
    pub written_on: Option<String>,
}

/// Reads a captured line.
pub fn hints(text: &str, captured_at: Timestamp, zone: &Zone) -> Hints {
    let _ = (captured_at, zone);
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("");
    let title = one_line(line, TITLE_CHARS);
    Hints { title: if title.is_empty() { "(empty capture)".into() } else { title }, ..Hints::default() }
}

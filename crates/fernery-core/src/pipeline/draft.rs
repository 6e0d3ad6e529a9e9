//! What an operator writes down: the part of an objective that approval covers, and how much it matters.

use super::{Violation, is_showable};
use crate::artifact::Metadata;
use crate::limits;
use crate::names::is_unprintable;
use serde::{Deserialize, Serialize};

/// An objective as its author writes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    /// What is wanted, in a line.
    pub title: String,
    /// How to tell that it is done.
    #[serde(default)]
    pub acceptance_criteria: String,
    /// 0 to 4; 0 is the most.
    #[serde(default = "middle")]
    pub importance: u8,
    /// 0 to 4; 0 is now.
    #[serde(default = "middle")]
    pub urgency: u8,
    /// Whatever else an executor or a gate should know.
    #[serde(default)]
    pub metadata: Metadata,
}

const fn middle() -> u8 {
    2
}

impl Draft {
    /// Everything that keeps it from being stored.
    pub fn violations(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        let title = self.title.trim();
        if title.is_empty()
            || title.chars().count() > limits::TITLE_CHARS_MAX
            || title.chars().any(is_unprintable)
        {
            let expected =
                format!("a title is one line of 1 to {} printable characters", limits::TITLE_CHARS_MAX);
            found.push(Violation::new("/title", expected));
        }
        if self.acceptance_criteria.len() > limits::CRITERIA_BYTES_MAX
            || !is_showable(&self.acceptance_criteria)
        {
            let expected = format!(
                "acceptance criteria are at most {} bytes of text without control characters",
                limits::CRITERIA_BYTES_MAX
            );
            found.push(Violation::new("/acceptance_criteria", expected));
        }
        for (path, value) in [("/importance", self.importance), ("/urgency", self.urgency)] {
            if value > 4 {
                found.push(Violation::new(path, "a number from 0 (most) to 4 (least)"));
            }
        }
        let bytes = serde_json::to_string(&self.metadata).map_or(usize::MAX, |text| text.len());
        if bytes > limits::METADATA_BYTES_MAX {
            found.push(Violation::new(
                "/metadata",
                format!("metadata is an object of at most {} bytes as JSON", limits::METADATA_BYTES_MAX),
            ));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft() -> Draft {
        Draft {
            title: "Fix it".into(),
            acceptance_criteria: "It\n\tworks".into(),
            importance: 2,
            urgency: 4,
            metadata: Metadata::new(),
        }
    }

    #[test]
    fn every_part_of_a_draft_is_checked_at_once() {
        assert_eq!(draft().violations(), []);
        let bad = Draft {
            title: "two\nlines".into(),
            acceptance_criteria: "\u{1b}[2J".into(),
            importance: 5,
            urgency: 9,
            metadata: [("x".to_string(), "y".repeat(limits::METADATA_BYTES_MAX).into())].into(),
        };
        let paths: Vec<_> = bad.violations().into_iter().map(|v| v.path).collect();
        assert_eq!(paths, ["/title", "/acceptance_criteria", "/importance", "/urgency", "/metadata"]);
        for title in ["", "   ", "a\u{202e}b", &"x".repeat(limits::TITLE_CHARS_MAX + 1)] {
            assert_eq!(Draft { title: title.into(), ..draft() }.violations().len(), 1, "{title:?}");
        }
    }
}

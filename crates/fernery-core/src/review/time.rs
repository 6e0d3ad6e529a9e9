//! How long a person needs for what waits for them. An estimate, by one rule, which is told wherever the number stands.

use crate::patch::{self, Body};
use std::time::Duration;

/// Opening a run, its criteria and what its gates found.
const RUN: Duration = Duration::from_secs(120);
/// Each file of it.
const FILE: Duration = Duration::from_secs(30);
/// Lines that are read in a minute; those that go count as those that come.
const LINES_A_MINUTE: u64 = 10;
/// Nobody reads one run for longer: a lock file of ten thousand lines is not read line by line.
const RUN_MAX: Duration = Duration::from_secs(3600);
/// A run of which nobody kept how large it is.
const RUN_UNKNOWN: Duration = Duration::from_secs(300);
/// Reading what an approval covers.
const APPROVAL: Duration = Duration::from_secs(120);
/// Deciding about a candidate.
const CANDIDATE: Duration = Duration::from_secs(30);

/// How large the output of a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    pub files: u64,
    pub insertions: u64,
    pub deletions: u64,
}

impl Size {
    /// Of a patch; what is none is a text whose lines are all read.
    pub fn of(content: &str) -> Self {
        let Ok(patch) = patch::read(content) else {
            return Self { insertions: content.lines().count() as u64, ..Self::default() };
        };
        let mut size = Self { files: patch.files.len() as u64, ..Self::default() };
        for file in &patch.files {
            if let Body::Text { insertions, deletions, .. } = file.body {
                size.insertions += insertions;
                size.deletions += deletions;
            }
        }
        size
    }

    fn lines(&self) -> u64 {
        self.insertions.saturating_add(self.deletions)
    }
}

/// What waits for a person to look at it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Runs that passed and that nobody has confirmed; `None`: nobody kept how large it is.
    pub runs: Vec<Option<Size>>,
    /// Tickets that nobody has approved.
    pub approvals: u64,
    /// Candidates of the inbox.
    pub candidates: u64,
}

impl Waits {
    /// Whole minutes, rounded up.
    pub fn minutes(&self) -> u64 {
        let times = |of: Duration, n: u64| of.as_secs().saturating_mul(n);
        let run = |size: &Option<Size>| match size {
            None => RUN_UNKNOWN.as_secs(),
            Some(size) => {
                let lines = size.lines().saturating_mul(60) / LINES_A_MINUTE;
                let all = RUN.as_secs().saturating_add(times(FILE, size.files)).saturating_add(lines);
                all.min(RUN_MAX.as_secs())
            }
        };
        let runs: u64 = self.runs.iter().map(run).sum();
        let decisions = times(APPROVAL, self.approvals).saturating_add(times(CANDIDATE, self.candidates));
        runs.saturating_add(decisions).div_ceil(60)
    }

    pub fn files(&self) -> u64 {
        self.runs.iter().flatten().map(|size| size.files).sum()
    }

    pub fn lines(&self) -> u64 {
        self.runs.iter().flatten().map(Size::lines).sum()
    }
}

/// The rule in words.
pub fn rule() -> String {
    let minutes = |of: Duration| match of.as_secs() {
        30 => "half a minute".to_string(),
        60 => "a minute".to_string(),
        3600 => "an hour".to_string(),
        secs => format!("{} minutes", secs / 60),
    };
    format!(
        "An estimate. A run that waits to be confirmed: {}, {} for each file, and a minute for every {LINES_A_MINUTE} lines that come or \
         go; at most {}, and {} where nobody kept how large it is. A ticket that waits for approval: {}. A candidate: {}.",
        minutes(RUN),
        minutes(FILE),
        minutes(RUN_MAX),
        minutes(RUN_UNKNOWN),
        minutes(APPROVAL),
        minutes(CANDIDATE),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(files: u64, insertions: u64, deletions: u64) -> Waits {
        Waits { runs: vec![Some(Size { files, insertions, deletions })], ..Waits::default() }
    }

    #[test]
    fn minutes_follow_the_rule_that_is_told() {
        assert_eq!(Waits::default().minutes(), 0);
        assert_eq!(run(2, 15, 5).minutes(), 2 + 1 + 2);
        assert_eq!(run(1, 0, 1).minutes(), 3, "rounded up");
        assert_eq!(run(1, 100_000, u64::MAX).minutes(), 60, "nobody reads for longer");
        assert_eq!(Waits { runs: vec![None], approvals: 2, candidates: 3 }.minutes(), 5 + 4 + 2);
        let words = rule();
        for said in
            ["2 minutes, half a minute for each file", "every 10 lines", "at most an hour", "5 minutes where"]
        {
            assert!(words.contains(said), "{said}: {words}");
        }
    }

    #[test]
    fn a_text_that_is_no_patch_is_read_line_by_line() {
        let patch = "diff --git a/a b/a\nindex 1111111111111111111111111111111111111111..2222222222222222222222222222222222222222 100644\n\
                     --- a/a\n+++ b/a\n@@ -1,2 +1,3 @@\n a\n-b\n+c\n+d\n";
        assert_eq!(Size::of(patch), Size { files: 1, insertions: 2, deletions: 1 });
        assert_eq!(Size::of("one\ntwo\n"), Size { files: 0, insertions: 2, deletions: 0 });
        assert_eq!(Size::of(""), Size::default());
    }
}

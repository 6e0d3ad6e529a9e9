//! Review of a run's patch: where a comment stands, which content of a file was viewed, and the note that is made of comments.
//!
//! A place is read from the patch itself, so a comment is never about a line that the patch does not show. Whoever viewed a file
//! viewed exactly the part of the patch that changes it: the digest of that part tells whether a later attempt changes it otherwise.

mod note;
pub mod time;

pub use note::{ReviewNote, note_of};

use crate::artifact::{CommentId, RunId};
use crate::canonical::{self, Digest};
use crate::patch::rows::{Hunk, plain_hunks};
use crate::patch::{self, Patch};
use crate::pipeline::Violation;
use crate::{Timestamp, limits, words};
use serde_json::json;
use std::collections::BTreeMap;

words!(
    /// Which of the two files of a difference a line belongs to.
    Side {
        /// The file before the patch.
        Old = "old",
        /// The file after the patch.
        New = "new",
    }
);

/// Lines of one side of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub path: String,
    pub first_line: u64,
    pub last_line: u64,
    pub side: Side,
}

/// A place that a patch shows. Only [`PatchIndex::placed`] makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed(Place);

impl Placed {
    pub fn place(&self) -> &Place {
        &self.0
    }
}

/// What a reviewer says about a place of a run's patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    pub comment_id: CommentId,
    pub run_id: RunId,
    pub place: Place,
    pub text: String,
    pub author: String,
    pub created_at: Timestamp,
    /// When its text was last changed.
    pub updated_at: Timestamp,
}

/// The digest of comments: another one as soon as one comes, goes or changes.
pub fn digest_of(comments: &[Comment]) -> Digest {
    let each = |comment: &Comment| {
        let Place { path, first_line, last_line, side } = &comment.place;
        json!([comment.comment_id, path, side, first_line, last_line, comment.text, comment.author])
    };
    canonical::digest_of(&comments.iter().map(each).collect::<Vec<_>>())
}

/// What is wrong with the text of a comment.
pub fn text_violation(text: &str) -> Option<Violation> {
    let most = limits::COMMENT_BYTES_MAX;
    let message = if text.trim().is_empty() {
        "a comment needs a text".to_string()
    } else if text.len() > most || text.contains('\0') {
        format!("a comment has at most {most} bytes and no NUL")
    } else {
        return None;
    };
    Some(Violation { path: "/text".into(), message })
}

/// A patch by the paths of its files.
#[derive(Debug)]
pub struct PatchIndex<'p> {
    text: &'p str,
    patch: Patch,
    hunks: Vec<Vec<Hunk<'p>>>,
    /// A file that becomes a symbolic link stands in a patch twice.
    of_path: BTreeMap<String, Vec<usize>>,
}

impl<'p> PatchIndex<'p> {
    /// Reads a patch; `Err` says why it is none.
    pub fn of(text: &'p str) -> Result<Self, String> {
        if !text.starts_with("diff --git ") {
            return Err("the output of this run is no patch, so it has no lines to comment on".into());
        }
        let patch =
            patch::read(text).map_err(|flaw| format!("the patch of this run cannot be read: {flaw}"))?;
        let hunks = plain_hunks(text, &patch);
        let mut of_path: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (nth, file) in patch.files.iter().enumerate() {
            of_path.entry(file.path.clone()).or_default().push(nth);
        }
        Ok(Self { text, patch, hunks, of_path })
    }

    /// The files that it changes, by name.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.of_path.keys().map(String::as_str)
    }

    /// The digest of the part of the patch that changes each file.
    pub fn contents(&self) -> BTreeMap<&str, Digest> {
        let mut starts = vec![0];
        starts.extend(self.text.match_indices('\n').map(|(end, _)| end + 1));
        let start = |line: usize| starts.get(line - 1).copied().unwrap_or(self.text.len());
        let part = |nth: &usize| {
            let end = self.patch.files.get(nth + 1).map_or(self.text.len(), |next| start(next.line));
            &self.text[start(self.patch.files[*nth].line)..end]
        };
        let digest =
            |files: &Vec<usize>| Digest::of_bytes(files.iter().map(part).collect::<String>().as_bytes());
        self.of_path.iter().map(|(path, files)| (path.as_str(), digest(files))).collect()
    }

    /// The digest of the part of the patch that changes a file.
    pub fn content(&self, path: &str) -> Result<Digest, Violation> {
        self.contents().get(path).copied().ok_or_else(|| self.no_file(path))
    }

    /// The lines of each hunk of a file on one side, first and last.
    pub fn ranges(&self, path: &str, side: Side) -> Vec<(u64, u64)> {
        let last = |(first, texts): (u64, Vec<&str>)| (first, first + texts.len() as u64 - 1);
        self.shown(path, side).into_iter().map(last).collect()
    }

    /// The place, if the patch shows all of its lines.
    pub fn placed(&self, place: Place) -> Result<Placed, Violation> {
        let Place { path, first_line: first, last_line: last, side } = &place;
        let wrong = |field: &str, message: String| Err(Violation { path: field.into(), message });
        if !self.of_path.contains_key(path) {
            return Err(self.no_file(path));
        }
        if last < first {
            return wrong("/last_line", format!("the last line, {last}, is before the first, {first}"));
        }
        if last - first >= limits::COMMENT_LINES_MAX {
            return wrong(
                "/last_line",
                format!("a comment is about at most {} lines", limits::COMMENT_LINES_MAX),
            );
        }
        let ranges = self.ranges(path, *side);
        if ranges.iter().any(|(from, to)| from <= first && last <= to) {
            return Ok(Placed(place));
        }
        let shown: Vec<String> = ranges.iter().take(10).map(|(from, to)| format!("{from} to {to}")).collect();
        let more = if ranges.len() > 10 { ", …" } else { "" };
        let side = side.words();
        match shown.as_slice() {
            [] => wrong("/first_line", format!("the patch shows no lines of {path} {side}")),
            shown => {
                let shown = shown.join(", ");
                wrong(
                    "/first_line",
                    format!(
                        "a comment is about lines that stand together in the patch; of {path} {side} it shows {shown}{more}"
                    ),
                )
            }
        }
    }

    /// The lines of one side of a file that the patch shows: for each hunk the first number and the texts, which follow each other.
    fn shown(&self, path: &str, side: Side) -> Vec<(u64, Vec<&'p str>)> {
        let hunks = self.of_path.get(path).into_iter().flatten().flat_map(|nth| &self.hunks[*nth]);
        let texts = |hunk: &Hunk<'p>| {
            let mut rows = hunk.rows.iter().filter(|row| number(row, side).is_some()).peekable();
            let first = number(rows.peek()?, side)?;
            Some((first, rows.map(|row| row.whole()).collect()))
        };
        hunks.filter_map(texts).collect()
    }

    fn no_file(&self, path: &str) -> Violation {
        Violation { path: "/file".into(), message: format!("the patch does not change `{path}`") }
    }
}

impl Side {
    /// Of which file, in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Old => "before the patch",
            Self::New => "after the patch",
        }
    }
}

fn number(row: &patch::rows::Row<'_>, side: Side) -> Option<u64> {
    match side {
        Side::Old => row.old,
        Side::New => row.new,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const PATCH: &str = "\
diff --git a/a.sh b/a.sh
index ce013625030ba8dba906f756967f9e9ca394464a..cc628ccd10742baea8241c5924df992b5c019f71 100644
--- a/a.sh
+++ b/a.sh
@@ -1,3 +1,4 @@ main() {
 #!/bin/sh
-echo old
+echo new
+echo more
 # end
@@ -20,2 +21,2 @@
-x
+y
 z
diff --git a/mode.sh b/mode.sh
old mode 100644
new mode 100755
";

    pub(super) fn at(path: &str, side: Side, first_line: u64, last_line: u64) -> Place {
        Place { path: path.into(), side, first_line, last_line }
    }

    #[test]
    fn a_comment_is_about_lines_that_the_patch_shows_together() {
        let index = PatchIndex::of(PATCH).unwrap();
        for good in [at("a.sh", Side::New, 1, 4), at("a.sh", Side::Old, 2, 2), at("a.sh", Side::New, 22, 22)]
        {
            assert_eq!(index.placed(good.clone()).map(|placed| placed.0), Ok(good));
        }
        let said = |place| index.placed(place).unwrap_err().message;
        assert_eq!(
            said(at("a.sh", Side::New, 4, 21)),
            "a comment is about lines that stand together in the patch; of a.sh after the patch it shows 1 to 4, 21 to 22"
        );
        assert_eq!(said(at("a.sh", Side::New, 3, 2)), "the last line, 2, is before the first, 3");
        assert_eq!(said(at("a.sh", Side::New, 1, u64::MAX)), "a comment is about at most 1000 lines");
        assert_eq!(said(at("b.sh", Side::New, 1, 1)), "the patch does not change `b.sh`");
        assert_eq!(
            said(at("mode.sh", Side::Old, 1, 1)),
            "the patch shows no lines of mode.sh before the patch"
        );
        assert!(said(at("a.sh", Side::New, 0, 1)).contains("1 to 4"));
        assert!(PatchIndex::of("a text").unwrap_err().contains("no patch"));
        assert!(PatchIndex::of("diff --git a b").unwrap_err().contains("line 1"));
    }

    #[test]
    fn the_content_of_a_file_is_its_part_of_the_patch_and_nothing_of_the_others() {
        let digest = |text: &str, path: &str| PatchIndex::of(text).unwrap().content(path).unwrap();
        let other = PATCH.replace("+y", "+changed");
        assert_ne!(digest(PATCH, "a.sh"), digest(&other, "a.sh"));
        assert_eq!(digest(PATCH, "mode.sh"), digest(&other, "mode.sh"));
        // The object ids are what the executor wrote: the same ids with other lines are another content.
        let whole = PATCH.find("diff --git a/mode").unwrap();
        assert_eq!(digest(PATCH, "a.sh"), Digest::of_bytes(&PATCH.as_bytes()[..whole]));
        assert!(PatchIndex::of(PATCH).unwrap().content("none").is_err());
    }

    #[test]
    fn the_text_of_a_comment_is_bounded() {
        let said = |text: &str| text_violation(text).map(|violation| violation.message);
        assert_eq!(said("why?"), None);
        assert_eq!(said(&"x".repeat(limits::COMMENT_BYTES_MAX)), None);
        assert_eq!(said(" \n"), Some("a comment needs a text".into()));
        for bad in ["x".repeat(limits::COMMENT_BYTES_MAX + 1), "a\0".into()] {
            assert_eq!(said(&bad), Some("a comment has at most 4096 bytes and no NUL".into()));
        }
    }
}

//! What reviewers left on a patch, as its rows show it: comments below the lines that they are about, and which files were viewed.

use super::super::show::{Line, Prose, When};
use fernery_client::wire::{CommentView, ReviewView};
use fernery_core::review::{PatchIndex, Side};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

/// What there is on each file of a run's patch.
#[derive(Default)]
pub(super) struct Marks {
    of_path: HashMap<String, FileMarks>,
    /// On the others.
    rest: Option<FileMarks>,
}

#[derive(Default)]
pub(super) struct FileMarks {
    pub(super) viewed: bool,
    /// The lines after the patch that can be commented on, where these are not all that are shown.
    pub(super) lines: Option<String>,
    /// By the last line that they are about.
    comments: BTreeMap<(Side, u64), Vec<CommentView>>,
    /// Where a comment is edited: what stands before its id.
    edit: String,
}

impl Marks {
    /// On the patch of a run.
    pub(super) fn of_run(review: &ReviewView, edit: &str) -> Self {
        let file = || FileMarks { edit: edit.replace('&', "&amp;"), ..FileMarks::default() };
        let paths = review.comments.comments.iter().map(|comment| &comment.file).chain(&review.viewed);
        let of_path = paths.map(|path| (path.clone(), file())).collect();
        Self { of_path, rest: Some(file()) }.filled(review, |_| true)
    }

    /// On what changed since another attempt: the lines after the patch are those of the run's own patch, the others are not.
    pub(super) fn since(review: &ReviewView, patch: &str, edit: &str) -> Self {
        let Ok(index) = PatchIndex::of(patch) else { return Self::default() };
        let file = |path: &str| {
            let ranges = index.ranges(path, Side::New);
            let ranges: Vec<String> = ranges.iter().map(|(from, to)| format!("{from}-{to}")).collect();
            let lines = Some(ranges.join(" "));
            (path.to_string(), FileMarks { lines, edit: edit.replace('&', "&amp;"), ..FileMarks::default() })
        };
        Self { of_path: index.paths().map(file).collect(), rest: None }
            .filled(review, |comment| comment.side == Side::New)
    }

    fn filled(mut self, review: &ReviewView, stands: impl Fn(&CommentView) -> bool) -> Self {
        for path in &review.viewed {
            if let Some(file) = self.of_path.get_mut(path) {
                file.viewed = true;
            }
        }
        for comment in review.comments.comments.iter().filter(|comment| stands(comment)) {
            if let Some(file) = self.of_path.get_mut(&comment.file) {
                let at = (comment.side, comment.last_line);
                file.comments.entry(at).or_default().push(comment.clone());
            }
        }
        self
    }

    pub(super) fn of(&self, path: &str) -> Option<&FileMarks> {
        self.of_path.get(path).or(self.rest.as_ref())
    }
}

impl FileMarks {
    pub(super) fn count(&self) -> usize {
        self.comments.values().map(Vec::len).sum()
    }

    /// Writes the comments that end at a row with these numbers.
    pub(super) fn write(&self, html: &mut String, (old, new): (Option<u64>, Option<u64>), columns: u8) {
        for at in [(Side::Old, old), (Side::New, new)] {
            let (side, Some(line)) = at else { continue };
            for comment in self.comments.get(&(side, line)).into_iter().flatten() {
                self.write_one(html, comment, columns);
            }
        }
    }

    fn write_one(&self, html: &mut String, comment: &CommentView, columns: u8) {
        let id = comment.comment_id.as_str();
        let (who, when) = (Line::of(&comment.author), When(comment.created_at));
        let _ =
            write!(html, "<tr class=c id=\"comment-{id}\"><td colspan={columns}><p class=dim>{who} {when}, ");
        let _ = write!(html, "{}", lines(comment));
        if comment.updated_at != comment.created_at {
            html.push_str(", edited");
        }
        if comment.own && !self.edit.is_empty() {
            let _ = write!(html, " <a href=\"{}{id}#edit-comment\">Edit</a>", self.edit);
        }
        let _ = writeln!(html, "</p>{}", Prose::of(&comment.text));
    }
}

/// Which lines a comment is about.
pub(super) fn lines(comment: &CommentView) -> String {
    let before = if comment.side == Side::Old { " before the patch" } else { "" };
    match (comment.first_line, comment.last_line) {
        (first, last) if first == last => format!("line {first}{before}"),
        (first, last) => format!("lines {first} to {last}{before}"),
    }
}

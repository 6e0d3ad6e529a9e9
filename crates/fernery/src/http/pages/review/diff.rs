//! A patch as HTML: files in the order in which to read them, rows with the words that changed. All of it is bounded: long lines
//! end in a mark, and what does not fit stands behind a link.
//!
//! Comments stand below the last line that they are about. The rows themselves are written by [`rows`](super::rows).

use super::super::show::Line;
use super::marks::{FileMarks, Marks};
use super::rows::{head, sides, unified};
use fernery_core::blueprint::Gate;
use fernery_core::patch::risk::{Risk, in_reading_order};
use fernery_core::patch::rows::{Hunk, beside, hunks};
use fernery_core::patch::{self, Body, FileChange, Flaw, Mode};

/// Files on one page.
pub(super) const FILES_MAX: usize = 500;
/// Rows of one file, if others stand on the same page.
const FILE_ROWS_MAX: usize = 3_000;
/// Rows on one page.
const ROWS_MAX: usize = 25_000;
/// HTML of all rows of one page: a row of control characters is long.
const HTML_BYTES_MAX: usize = 8 << 20;

/// How rows stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    /// What goes above what comes.
    Unified,
    /// What goes left of what comes.
    Beside,
}

/// Which part of a patch a page shows: files from this place of the reading order on, or one file from this row on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Window {
    Files(usize),
    File(usize, usize),
}

/// A file of a patch.
pub(super) struct FileShown {
    /// Its place in the reading order.
    pub(super) place: usize,
    pub(super) path: Line,
    /// Why it comes early; may be empty.
    pub(super) risk: &'static str,
    /// What becomes of it as a whole; may be empty.
    pub(super) change: String,
    pub(super) insertions: u64,
    pub(super) deletions: u64,
    /// Whether this reviewer has viewed it; `None`: the patch of the run does not change it.
    pub(super) viewed: Option<bool>,
    /// How many comments there are on it.
    pub(super) comments: usize,
    /// The lines that can be commented on, where these are not all.
    pub(super) lines: Option<String>,
    /// It is deleted: its lines are those before the patch.
    pub(super) gone: bool,
    /// Its rows as HTML; empty if they stand elsewhere or there are none.
    pub(super) rows: String,
    /// The first row that is not here.
    pub(super) rest: Option<usize>,
    /// How many rows are not here.
    pub(super) left: usize,
}

/// A patch, or a part of it.
pub(super) struct DiffShown {
    pub(super) files: Vec<FileShown>,
    pub(super) files_in_all: usize,
    pub(super) insertions: u64,
    pub(super) deletions: u64,
    /// The place of the first file that is not here.
    pub(super) more: Option<usize>,
}

/// Reads a patch and writes the part that is wanted.
pub(super) fn shown(
    text: &str,
    view: View,
    window: Window,
    (marks, gates): (&Marks, &[Gate]),
) -> Result<DiffShown, Flaw> {
    let patch = patch::read(text)?;
    let of_files = hunks(text, &patch);
    let order = in_reading_order(&patch, &gates.iter().filter_map(Gate::relied).collect::<Vec<_>>());
    let (from, until) = match window {
        Window::Files(from) => (from, from.saturating_add(FILES_MAX)),
        Window::File(place, _) => (place, place.saturating_add(1)),
    };
    let mut room = Room { rows: ROWS_MAX, bytes: HTML_BYTES_MAX };
    let mut files = Vec::new();
    for (place, (nth, risk)) in order.iter().enumerate().take(until).skip(from) {
        let first = if let Window::File(_, row) = window { row } else { 0 };
        let most = if let Window::File(..) = window { ROWS_MAX } else { FILE_ROWS_MAX };
        let change = &patch.files[*nth];
        let of_file = marks.of(&change.path);
        let written = write_rows(&of_files[*nth], (view, of_file), first, most, &mut room);
        let shown = FileShown {
            viewed: of_file.map(|marks| marks.viewed),
            comments: of_file.map_or(0, FileMarks::count),
            lines: of_file.and_then(|marks| marks.lines.clone()),
            ..file(place, change, *risk, written)
        };
        files.push(shown);
    }
    let (insertions, deletions) = patch.files.iter().map(counts).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    let is_more = matches!(window, Window::Files(_)) && until < order.len();
    Ok(DiffShown { files, files_in_all: order.len(), insertions, deletions, more: is_more.then_some(until) })
}

fn counts(file: &FileChange) -> (u64, u64) {
    match &file.body {
        Body::Text { insertions, deletions, .. } => (*insertions, *deletions),
        Body::Same | Body::Binary { .. } => (0, 0),
    }
}

fn file(place: usize, file: &FileChange, risk: Risk, written: Written) -> FileShown {
    let mode = |mode: Option<Mode>| match mode {
        Some(Mode::Executable) => "executable",
        Some(Mode::Symlink) => "symbolic link",
        Some(Mode::File) | None => "plain file",
    };
    let mut change = match (file.before, file.after) {
        (None, Some(Mode::File)) => "new".to_string(),
        (None, after) => format!("new {}", mode(after)),
        (_, None) => "deleted".to_string(),
        (before, after) if before != after => format!("from {} to {}", mode(before), mode(after)),
        _ => String::new(),
    };
    match &file.body {
        Body::Binary { bytes } => change.push_str(&format!(" binary, {bytes} bytes")),
        Body::Same if change == "new" => change.push_str(", empty"),
        Body::Same | Body::Text { .. } => {}
    }
    let (insertions, deletions) = counts(file);
    FileShown {
        place,
        path: Line::of(&file.path),
        risk: risk.words(),
        change: change.trim_start().to_string(),
        insertions,
        deletions,
        viewed: None,
        comments: 0,
        lines: None,
        gone: file.after.is_none(),
        rows: written.html,
        rest: written.rest,
        left: written.left,
    }
}

/// What still fits on a page.
struct Room {
    rows: usize,
    bytes: usize,
}

struct Written {
    html: String,
    rest: Option<usize>,
    left: usize,
}

/// The rows of a file from `first` on, at most `most` of them.
fn write_rows(
    hunks: &[Hunk<'_>],
    (view, marks): (View, Option<&FileMarks>),
    first: usize,
    most: usize,
    room: &mut Room,
) -> Written {
    let marks = marks.filter(|marks| marks.count() > 0);
    let in_all: usize = hunks.iter().map(|hunk| height(hunk, view)).sum();
    let most = most.min(room.rows);
    let (mut html, mut at, mut done) = (String::new(), 0, 0);
    'hunks: for hunk in hunks {
        let rows = height(hunk, view);
        if at + rows <= first {
            at += rows;
            continue;
        }
        if done >= most || html.len() >= room.bytes {
            break;
        }
        head(&mut html, hunk, view);
        match view {
            View::Unified => {
                for row in &hunk.rows {
                    if at >= first {
                        if done >= most || html.len() >= room.bytes {
                            break 'hunks;
                        }
                        unified(&mut html, row);
                        if let Some(marks) = marks {
                            marks.write(&mut html, (row.old, row.new), 3);
                        }
                        done += 1;
                    }
                    at += 1;
                }
            }
            View::Beside => {
                for (old, new) in beside(&hunk.rows) {
                    if at >= first {
                        if done >= most || html.len() >= room.bytes {
                            break 'hunks;
                        }
                        sides(&mut html, old, new);
                        if let Some(marks) = marks {
                            let lines = (old.and_then(|row| row.old), new.and_then(|row| row.new));
                            marks.write(&mut html, lines, 4);
                        }
                        done += 1;
                    }
                    at += 1;
                }
            }
        }
    }
    room.rows -= done;
    room.bytes = room.bytes.saturating_sub(html.len());
    let end = first.min(in_all) + done;
    Written { html, rest: (end < in_all).then_some(end), left: in_all - end }
}

fn height(hunk: &Hunk<'_>, view: View) -> usize {
    match view {
        View::Unified => hunk.rows.len(),
        View::Beside => beside(&hunk.rows).len(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::ROW_CHARS_MAX;
    use super::*;

    fn patch_of(path: &str, lines: &[String]) -> String {
        let mut text = format!(
            "diff --git a/{path} b/{path}\nnew file mode 100644\nindex {}..{}\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{} @@\n",
            "0".repeat(40),
            "1".repeat(40),
            lines.len()
        );
        lines.iter().for_each(|line| text.push_str(&format!("+{line}\n")));
        text
    }

    fn all(text: &str, view: View, window: Window) -> Result<DiffShown, Flaw> {
        shown(text, view, window, (&Marks::default(), &[]))
    }

    fn numbered(count: usize) -> Vec<String> {
        (1..=count).map(|n| format!("line {n}")).collect()
    }

    fn rows(html: &str) -> usize {
        html.matches("<tr class=a>").count()
    }

    #[test]
    fn a_long_file_is_shown_in_parts_without_a_gap() {
        let text = patch_of("a", &numbered(ROWS_MAX + 10));
        let first = all(&text, View::Unified, Window::Files(0)).unwrap().files.remove(0);
        assert_eq!((rows(&first.rows), first.rest), (FILE_ROWS_MAX, Some(FILE_ROWS_MAX)));
        assert_eq!(first.left, ROWS_MAX + 10 - FILE_ROWS_MAX);
        let alone = all(&text, View::Unified, Window::File(0, FILE_ROWS_MAX)).unwrap().files.remove(0);
        assert!(alone.rows.contains(&format!("<td>{}<td>line", FILE_ROWS_MAX + 1)));
        assert!(!alone.rows.contains(&format!(">line {FILE_ROWS_MAX}\n")));
        let last = all(&text, View::Unified, Window::File(0, ROWS_MAX)).unwrap().files.remove(0);
        assert_eq!((rows(&last.rows), last.rest, last.left), (10, None, 0));
        let beyond = all(&text, View::Beside, Window::File(0, usize::MAX)).unwrap().files.remove(0);
        assert_eq!((beyond.rest, beyond.left), (None, 0));
    }

    #[test]
    fn many_files_come_page_by_page_and_share_the_rows() {
        let text: String = (0..FILES_MAX + 1).map(|n| patch_of(&format!("f{n:04}"), &numbered(60))).collect();
        let page = all(&text, View::Unified, Window::Files(0)).unwrap();
        assert_eq!(
            (page.files.len(), page.files_in_all, page.more),
            (FILES_MAX, FILES_MAX + 1, Some(FILES_MAX))
        );
        assert_eq!(page.files.iter().map(|file| rows(&file.rows)).sum::<usize>(), ROWS_MAX);
        let last = page.files.last().unwrap();
        assert_eq!((last.rows.as_str(), last.rest, last.left), ("", Some(0), 60), "behind a link");
        let rest = all(&text, View::Unified, Window::Files(FILES_MAX)).unwrap();
        assert_eq!((rest.files.len(), rest.more), (1, None));
        assert_eq!(all(&text, View::Unified, Window::Files(9_999)).unwrap().files.len(), 0);
    }

    #[test]
    fn what_others_wrote_does_nothing_and_is_bounded() {
        let hostile = "<script>alert(1)</script>\u{1b}[31m\u{202e}".to_string();
        let long = "x".repeat((1 << 20) - 2);
        let text = patch_of("a", &[hostile, long]);
        for view in [View::Unified, View::Beside] {
            let html = all(&text, view, Window::Files(0)).unwrap().files.remove(0).rows;
            assert!(!html.contains("<script") && html.contains("&lt;script&gt;"), "{html}");
            assert!(html.contains("U+001B") && html.contains("U+202E"), "{html}");
            assert!(html.len() < 5_000 && html.contains("more bytes in this line"), "{}", html.len());
        }
        let odd = patch_of("a", &vec!["\u{1}".repeat(ROW_CHARS_MAX); 1_000]);
        let file = all(&odd, View::Unified, Window::Files(0)).unwrap().files.remove(0);
        assert!(file.rows.len() < HTML_BYTES_MAX + (1 << 20), "{}", file.rows.len());
        assert!(file.rest.is_some());
    }
}

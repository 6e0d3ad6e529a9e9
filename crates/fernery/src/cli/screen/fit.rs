//! Fits a table into a terminal. Only columns that are marked for it are cut: people paste what is in the others.

use super::Cell;
use fernery_core::Timestamp;
use std::time::Duration;
use unicode_width::UnicodeWidthStr;

/// Spaces between two columns.
pub(super) const GAP: usize = 2;
/// Spaces before the rest of a row that needs another line.
const INDENT: usize = 4;
/// A column is not cut below this.
const CUT_MIN: usize = 12;
/// The last column is wrapped to this at the narrowest.
const LAST_MIN: usize = 24;

/// One column of a table.
#[derive(Clone, Debug)]
pub(in crate::cli) struct Column {
    pub(super) head: &'static str,
    pub(super) width: usize,
    cut: bool,
}

impl Column {
    /// A head that ends in `…` marks a column that may be cut.
    pub(super) fn new(head: &'static str) -> Self {
        let name = head.strip_suffix('…').unwrap_or(head);
        Self { head: name, width: name.width(), cut: name != head }
    }
}

/// An instant as a short distance from now, for a table that is too wide. Everything else stays.
pub(super) fn short_instant(cell: Cell, now: Timestamp) -> Cell {
    match cell.0.parse::<Timestamp>() {
        Ok(at) if at > now => Cell(format!("in {}", one_unit(at.since(now))), cell.1),
        Ok(at) => Cell(format!("{} ago", one_unit(now.since(at))), cell.1),
        Err(_) => cell,
    }
}

fn one_unit(age: Duration) -> String {
    match age.as_secs() {
        s @ 0..60 => format!("{s}s"),
        s @ 60..3_600 => format!("{}m", s / 60),
        s @ 3_600..86_400 => format!("{}h", s / 3_600),
        s => format!("{}d", s / 86_400),
    }
}

/// What the columns need if the last one is wrapped.
fn needed(columns: &[Column]) -> usize {
    let Some((last, others)) = columns.split_last() else { return 0 };
    others.iter().map(|column| column.width + GAP).sum::<usize>() + last.width.min(LAST_MIN)
}

/// Makes the widest of the columns that may be cut narrower, until the table fits or none is left.
pub(super) fn narrow(columns: &mut [Column], total: usize) {
    while let Some(over) = needed(columns).checked_sub(total).filter(|over| *over > 0) {
        let may_be_cut = columns.iter_mut().filter(|column| column.cut && column.width > CUT_MIN);
        let Some(widest) = may_be_cut.max_by_key(|column| column.width) else { return };
        widest.width = widest.width.saturating_sub(over).max(CUT_MIN);
    }
}

/// Pieces of a row: how many spaces stand before each, and whether it begins a new line.
pub(super) struct Piece {
    pub(super) new_line: bool,
    pub(super) spaces: usize,
    pub(super) cell: Cell,
}

/// Lays out one row. A cell that does not fit behind the others goes to the next line; the last one is wrapped.
pub(super) fn pieces(row: &[Cell], columns: &[Column], total: usize) -> Vec<Piece> {
    let mut out: Vec<Piece> = Vec::new();
    // Where the line ends so far, and where the next column begins.
    let (mut end, mut start) = (0, 0);
    let mut new_line = false;
    for (i, (cell, column)) in row.iter().zip(columns).enumerate() {
        let last = i + 1 == columns.len();
        let wanted = if last { column.width.min(LAST_MIN) } else { column.width };
        if i > 0 && start + wanted > total {
            (end, start, new_line) = (0, INDENT, true);
        }
        let room = if last { total.saturating_sub(start).max(LAST_MIN) } else { column.width };
        let lines = if last { wrapped(&cell.0, room) } else { vec![cut(&cell.0, column)] };
        for text in lines.into_iter().filter(|text| !text.is_empty()) {
            let spaces = if new_line { start } else { start.saturating_sub(end) };
            end = start + text.width();
            out.push(Piece { new_line, spaces, cell: Cell(text, cell.1) });
            // Only the last column has more lines.
            new_line = last;
        }
        start += column.width + GAP;
    }
    out
}

fn cut(text: &str, column: &Column) -> String {
    if text.width() <= column.width {
        return text.to_string();
    }
    let (shown, _) = text.split_at(fitting(text, column.width - 1));
    format!("{shown}…")
}

/// The text in lines of at most `room` columns, broken at spaces where there are some.
fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = text;
    while rest.width() > room {
        let (line, _) = rest.split_at(fitting(rest, room));
        // A space right behind the line is a good place as well.
        let at = match rest[line.len()..].starts_with(' ') {
            true => line.len(),
            false => line.rfind(' ').filter(|at| *at > 0).unwrap_or(line.len()),
        };
        lines.push(rest[..at].trim_end().to_string());
        rest = rest[at..].trim_start();
    }
    lines.push(rest.to_string());
    lines
}

/// How many bytes of a text fit into this many columns; at least one character.
fn fitting(text: &str, columns: usize) -> usize {
    for (at, c) in text.char_indices() {
        // The text up to here and not the sum of its characters: a variation selector makes an emoji wider.
        if at > 0 && text[..at + c.len_utf8()].width() > columns {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::screen::{Paint, Screen};

    fn shown(heads: &[&'static str], rows: &[&[&str]], width: usize) -> Vec<String> {
        let screen = Screen { json: false, colour: false, width: Some(width) };
        let rows: Vec<Vec<Cell>> = rows
            .iter()
            .map(|row| row.iter().map(|text| Cell((*text).to_string(), Paint::Plain)).collect())
            .collect();
        let now = "2026-11-18T07:00:00.000Z".parse().unwrap();
        let text = screen.rows_as_text(heads, rows, &mut Vec::new(), now).join("\n");
        text.lines().map(str::to_string).collect()
    }

    const JOB: &str = "01a1ed72-b2c9-7036-be9e-5d82eb479aa7";

    #[test]
    fn a_table_of_jobs_fits_80_columns_and_its_ids_are_whole() {
        let heads = ["JOB", "STREAM…", "STATUS", "RUN AT", "ENDED"];
        let row: &[&str] = &[
            JOB,
            "diazotroph:PATCH_DIAZOTROPH:web",
            "SUCCEEDED",
            "2026-11-18T08:30:00.000Z",
            "2026-11-18T06:59:58.000Z",
        ];
        let lines = shown(&heads, &[row], 80);
        assert_eq!(
            lines[0],
            "JOB                                   STREAM           STATUS     RUN AT  ENDED"
        );
        assert_eq!(lines[1], format!("{JOB}  diazotroph:PAT…  SUCCEEDED  in 1h   2s ago"));
        assert_eq!(shown(&heads, &[row], 200)[1], row.join("  "), "where there is room nothing is shortened");
    }

    #[test]
    fn emoji_that_are_wider_than_their_characters_stay_in_their_column() {
        let title = "⚠️⚠️⚠️⚠️⚠️⚠️⚠️⚠️⚠️⚠️⚠️⚠️⚠️⚠️⚠️⚠️⚠️⚠️⚠️⚠️ fix the footer before the release";
        let lines = shown(&["ID", "TITLE…", "STATUS"], &[&["web-1", title, "NEW"]], 40);
        assert!(lines.iter().all(|line| line.width() <= 40), "{lines:?}");
        assert!(lines[1].contains("⚠️…") && lines[1].ends_with("NEW"), "{lines:?}");
    }

    #[test]
    fn the_last_column_is_wrapped_below_itself() {
        let lines = shown(&["LEVEL", "FOUND"], &[&["ok", "one two three four five six seven eight"]], 34);
        assert_eq!(lines, ["LEVEL  FOUND", "ok     one two three four five six", "       seven eight"]);
        let wide = "日本語の題名をここに書く、少し長い題名です";
        let lines = shown(&["LEVEL", "FOUND"], &[&["ok", wide]], 34);
        assert!(lines.iter().all(|line| line.width() <= 34), "{lines:?}");
        assert_eq!(lines[1..].iter().map(|line| line[7..].trim()).collect::<String>(), wide);
    }

    #[test]
    fn a_row_that_cannot_fit_goes_on_in_the_next_line() {
        let lines = shown(&["JOB", "WORD", "NEXT"], &[&[JOB, JOB, "go on"]], 80);
        assert_eq!(lines[2], format!("{JOB}  {JOB}"));
        assert_eq!((lines[1].as_str(), lines[3].as_str()), ("    NEXT", "    go on"));
    }
}

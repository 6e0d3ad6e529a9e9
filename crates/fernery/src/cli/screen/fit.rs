//! Fits a table into a terminal. Only columns that are marked for it are cut: people paste what is in the others.

use super::{Cell, prose};
use unicode_width::UnicodeWidthStr;

/// Spaces between two columns.
pub(super) const GAP: usize = 2;
/// Spaces before the rest of a row that needs another line.
const INDENT: usize = 4;
/// A column is not cut below this while another one can be cut instead.
const CUT_MIN: usize = 12;
/// A column is never cut below this.
const CUT_LEAST: usize = 4;
/// In a narrower window a second line tells more than columns of four letters.
const ONE_LINE_FROM: usize = 80;
/// The last column is wrapped to this at the narrowest.
const LAST_MIN: usize = 24;

/// One column of a table.
#[derive(Clone, Debug)]
pub(in crate::cli) struct Column {
    pub(super) head: &'static str,
    pub(super) width: usize,
    cut: bool,
    /// Whole where there is room, else on a line of its own: people paste it.
    whole: bool,
}

impl Column {
    /// A head that ends in `…` marks a column that may be cut; the last one may end in `↵`: it holds sentences with commands, and
    /// goes to a line of its own before anything is cut for it.
    pub(super) fn new(head: &'static str) -> Self {
        let name = head.strip_suffix(['…', '↵']).unwrap_or(head);
        Self { head: name, width: name.width(), cut: head.ends_with('…'), whole: head.ends_with('↵') }
    }
}

/// What the columns need if the last one is cut, wrapped, or on a line of its own.
fn needed(columns: &[Column], total: usize) -> usize {
    let Some((last, others)) = columns.split_last() else { return 0 };
    let before = others.iter().map(|column| column.width + GAP).sum::<usize>();
    match before + wanted(last, true) {
        all if last.whole && all > total => before.saturating_sub(GAP),
        all => all,
    }
}

/// The narrowest that a column may be.
fn wanted(column: &Column, last: bool) -> usize {
    if last && !column.cut && !column.whole { column.width.min(LAST_MIN) } else { column.width }
}

/// Makes the widest of the columns that may be cut narrower, until the table fits or none is left.
pub(super) fn narrow(columns: &mut [Column], total: usize) {
    let leasts: &[usize] = if total < ONE_LINE_FROM { &[CUT_MIN] } else { &[CUT_MIN, CUT_LEAST] };
    for least in leasts.iter().copied() {
        while let Some(over) = needed(columns, total).checked_sub(total).filter(|over| *over > 0) {
            let may_be_cut =
                |column: &&mut Column| column.cut && column.width > least.max(column.head.width());
            let mut by_width: Vec<&mut Column> = columns.iter_mut().filter(may_be_cut).collect();
            by_width.sort_by_key(|column| std::cmp::Reverse(column.width));
            let Some(next) = by_width.get(1).map(|second| second.width).or(by_width.first().map(|_| 0))
            else {
                break;
            };
            // Only down to the second widest: then both share the loss.
            let widest = &mut by_width[0];
            let least = least.max(widest.head.width());
            let fair = next.min(widest.width - 1);
            widest.width = widest.width.saturating_sub(over).max(fair).max(least);
        }
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
        let wraps = last && !column.cut;
        if i > 0 && start + wanted(column, last) > total {
            (end, start, new_line) = (0, INDENT, true);
        }
        let rest = total.saturating_sub(start);
        let room = match last {
            true if wraps => rest.max(LAST_MIN),
            // On a line of its own it has all the room.
            true if new_line => rest.max(column.width),
            _ => column.width,
        };
        let lines = match (column.whole, wraps) {
            (true, _) => prose::wrapped(&cell.0, room),
            (false, true) => wrapped(&cell.0, room),
            (false, false) => vec![cut(&cell.0, room)],
        };
        for text in lines.into_iter().filter(|text| !text.is_empty()) {
            let spaces = if new_line { start } else { start.saturating_sub(end) };
            end = start + text.width();
            out.push(Piece { new_line, spaces, cell: Cell(text, cell.1) });
            // Only the last column has more lines.
            new_line = wraps;
        }
        start += column.width + GAP;
    }
    out
}

fn cut(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_string();
    }
    let (shown, _) = text.split_at(fitting(text, room - 1));
    // A joiner that lost what it joins would be invisible.
    format!("{}…", shown.trim_end_matches('\u{200d}'))
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
pub(super) fn fitting(text: &str, columns: usize) -> usize {
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

    fn shown(heads: &[&'static str], rows: &[&[&str]], screen: Screen) -> Vec<String> {
        let rows: Vec<Vec<Cell>> = rows
            .iter()
            .map(|row| row.iter().map(|text| Cell((*text).to_string(), Paint::Plain)).collect())
            .collect();
        let now = "2026-11-18T07:00:00.000Z".parse().unwrap();
        let text = screen.rows_as_text(heads, rows, &mut Vec::new(), now).join("\n");
        text.lines().map(str::to_string).collect()
    }

    fn wide(width: usize) -> Screen {
        Screen { width: Some(width), ..Screen::plain_text() }
    }

    const JOB: &str = "01a1ed72-b2c9-7036-be9e-5d82eb479aa7";

    #[test]
    fn a_table_of_jobs_fits_80_columns_and_whoever_pipes_it_gets_all_of_it() {
        let heads = ["JOB", "STREAM…", "STATUS", "RUN AT", "ENDED"];
        let row: &[&str] = &[
            JOB,
            "diazotroph:PATCH_DIAZOTROPH:web-site-of-the-office",
            "SUCCEEDED",
            "2026-11-18T08:30:00.000Z",
            "2026-11-18T06:59:58.000Z",
        ];
        let lines = shown(&heads, &[row], wide(80));
        assert_eq!(
            lines[0],
            "JOB              STREAM                               STATUS     RUN AT  ENDED"
        );
        let stream = "diazotroph:PATCH_DIAZOTROPH:web-si…";
        assert_eq!(lines[1], format!("01a1ed72-479aa7  {stream}  SUCCEEDED  in 1 h  2 s ago"));
        assert_eq!(shown(&heads, &[row], Screen::plain_text())[1], row.join("  "));
        let utc = shown(&heads, &[row], Screen { utc: true, ..wide(120) });
        assert!(utc[1].ends_with(&row[3..].join("  ")), "{utc:?}");
    }

    #[test]
    fn the_widest_columns_share_what_is_missing() {
        let long = "x".repeat(60);
        let lines = shown(&["ID", "TITLE…", "NOW…"], &[&["web-1", &long, &long]], wide(80));
        assert_eq!(lines.len(), 2, "{lines:?}");
        let cut: Vec<usize> = lines[1].split("  ").map(UnicodeWidthStr::width).collect();
        assert_eq!(cut, [5, 35, 36], "{lines:?}");
    }

    #[test]
    fn emoji_that_are_wider_than_their_characters_stay_in_their_column() {
        let title = "⚠️⚠️⚠️⚠️⚠️⚠️⚠️⚠️⚠️⚠️⚠️⚠️⚠️⚠️⚠️⚠️⚠️⚠️⚠️⚠️ fix the footer before the release";
        let lines = shown(&["ID", "TITLE…", "STATUS"], &[&["web-1", title, "NEW"]], wide(40));
        assert!(lines.iter().all(|line| line.width() <= 40), "{lines:?}");
        assert!(lines[1].contains("⚠️…") && lines[1].ends_with("NEW"), "{lines:?}");
    }

    #[test]
    fn the_last_column_is_wrapped_below_itself() {
        let lines =
            shown(&["LEVEL", "FOUND"], &[&["ok", "one two three four five six seven eight"]], wide(34));
        assert_eq!(lines, ["LEVEL  FOUND", "ok     one two three four five six", "       seven eight"]);
        let text = "日本語の題名をここに書く、少し長い題名です";
        let lines = shown(&["LEVEL", "FOUND"], &[&["ok", text]], wide(34));
        assert!(lines.iter().all(|line| line.width() <= 34), "{lines:?}");
        assert_eq!(lines[1..].iter().map(|line| line[7..].trim()).collect::<String>(), text);
    }

    #[test]
    fn a_command_is_neither_cut_nor_broken_and_nothing_is_cut_for_it() {
        let heads = ["TICKET", "WHAT HAPPENED…", "NEXT↵"];
        let command = "fernery ticket reopen web-1 --note 'conflicts: README.md'";
        let (happened, next) = ("did not merge with main", format!("Let it be worked on again: {command}"));
        let lines = shown(&heads, &[&["web-1", happened, &next]], wide(80));
        assert_eq!(lines[2..4], ["web-1   did not merge with main", "    Let it be worked on again:"]);
        assert_eq!((lines[0].as_str(), lines[4].trim()), ("TICKET  WHAT HAPPENED", command));
        assert!(lines.iter().all(|line| line.width() <= 80), "{lines:?}");
        let lines = shown(&heads, &[&["web-1", happened, "go on"]], wide(80));
        assert_eq!(lines[1], format!("web-1   {happened}  go on"), "where there is room, in the same line");
    }

    #[test]
    fn a_row_that_cannot_fit_goes_on_in_the_next_line() {
        let long = "x".repeat(40);
        let lines = shown(&["ONE", "WORD", "NEXT"], &[&[&long, &long, "go on"]], wide(80));
        assert_eq!(lines[2], format!("{long}"));
        assert_eq!(
            (lines[1].as_str(), lines[3].trim()),
            ("    WORD                                      NEXT", format!("{long}  go on").as_str())
        );
    }
}

//! Output on stdout: tables for people, JSON for programs, without control characters for the terminal.

mod fit;

use super::failure::{Failure, Outcome};
use fernery_core::Timestamp;
use fernery_core::names::is_unprintable;
use fernery_engine::door;
use serde_json::value::RawValue;
use std::io::{self, IsTerminal, Write};
use unicode_width::UnicodeWidthStr;

pub(super) use fit::Column;

/// Where a command's answer goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Screen {
    /// For programs.
    pub(super) json: bool,
    colour: bool,
    /// Columns of the terminal; none if stdout is no terminal.
    width: Option<usize>,
}

/// Foreign text with control characters made visible.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push('\n'),
            '\t' => out.push(' '),
            c if is_unprintable(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// Equivalent JSON without control characters: they occur only in strings, where an escape means the same.
pub(super) fn json_inert(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\n' | '\r' | '\t' => out.push(' '),
            c if is_unprintable(c) => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out
}

/// How a cell is painted on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paint {
    /// As it is.
    Plain,
    /// Less important.
    Dim,
    /// Went well.
    Good,
    /// Went wrong.
    Bad,
    /// Under way.
    Busy,
}

/// One cell of a table.
#[derive(Clone, Debug)]
pub(super) struct Cell(String, Paint);

impl<T: std::fmt::Display> From<T> for Cell {
    fn from(value: T) -> Self {
        Self(plain(&value.to_string()).replace('\n', " "), Paint::Plain)
    }
}

impl Cell {
    /// A value, or a dash where there is none.
    pub(super) fn maybe(value: Option<impl std::fmt::Display>) -> Self {
        value.map_or_else(|| Self("-".into(), Paint::Dim), Self::from)
    }

    /// A state or outcome, painted by what it means.
    pub(super) fn state(word: &str) -> Self {
        let paint = match word {
            "SUCCEEDED" | "ok" | "DONE" | "PASS" | "RUN_COMPLETE" => Paint::Good,
            "DEAD" | "FAILED" | "LOST" | "TIMED_OUT" | "problem" => Paint::Bad,
            "BLOCKED" | "FAIL" | "GATE_FAILED" | "BUDGET_EXHAUSTED" => Paint::Bad,
            "RUNNING" | "warning" | "IN_PROGRESS" => Paint::Busy,
            "CANCELLED" | "RELEASED" | "NEW" => Paint::Dim,
            _ => Paint::Plain,
        };
        Self(plain(word), paint)
    }

    /// Columns that it takes on a terminal: Chinese characters and most emoji take two.
    fn width(&self) -> usize {
        self.0.width()
    }
}

impl Screen {
    /// What stdout is fit for.
    pub(super) fn new(json: bool) -> Self {
        let terminal = !json && io::stdout().is_terminal();
        let colour = terminal && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        let size = terminal.then(|| rustix::termios::tcgetwinsize(io::stdout()).ok()).flatten();
        let width = size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0);
        Self { json, colour, width }
    }

    /// One line, already fit for a terminal.
    pub(super) fn line(&self, text: &str) -> Outcome {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.write_all(b"\n")?;
        Ok(out.flush()?)
    }

    /// A server's answer as it came, once it is known to be JSON.
    pub(super) fn json_body(&self, body: &[u8]) -> Outcome {
        let valid: Result<&RawValue, _> = serde_json::from_slice(body);
        match valid {
            Ok(value) => self.line(&json_inert(value.get())),
            Err(error) => {
                Err(Failure::failed("unexpected_answer", format!("the server's answer is not JSON: {error}")))
            }
        }
    }

    /// A table. Columns are as wide as their widest cell. On a terminal that is too narrow instants are shortened,
    /// columns whose head ends in `…` are cut, and the last column is wrapped.
    pub(super) fn table(&self, heads: &[&'static str], rows: Vec<Vec<Cell>>) -> Outcome {
        self.more_rows(heads, rows, &mut Vec::new())
    }

    /// The next rows of a table; its heads stand over the first ones. `columns` starts empty, and columns only grow.
    pub(super) fn more_rows(
        &self,
        heads: &[&'static str],
        rows: Vec<Vec<Cell>>,
        columns: &mut Vec<Column>,
    ) -> Outcome {
        self.rows_as_text(heads, rows, columns, door::wall_clock()).iter().try_for_each(|row| self.line(row))
    }

    fn rows_as_text(
        &self,
        heads: &[&'static str],
        mut rows: Vec<Vec<Cell>>,
        columns: &mut Vec<Column>,
        now: Timestamp,
    ) -> Vec<String> {
        let first = columns.is_empty();
        if first {
            columns.extend(heads.iter().map(|head| Column::new(head)));
        }
        let mut widened = widened(columns, &rows);
        if let Some(width) = self.width
            && widened.iter().map(|column| column.width + fit::GAP).sum::<usize>() > width + fit::GAP
        {
            let short = |cell| fit::short_instant(cell, now);
            rows = rows.into_iter().map(|row| row.into_iter().map(short).collect()).collect();
            widened = self::widened(columns, &rows);
            fit::narrow(&mut widened, width);
        }
        *columns = widened;
        let heads = columns.iter().map(|column| Cell(column.head.to_string(), Paint::Dim)).collect();
        let heads = first.then_some(heads);
        heads.iter().chain(&rows).map(|row| self.laid_out(row, columns)).collect()
    }

    fn laid_out(&self, row: &[Cell], columns: &[Column]) -> String {
        let mut text = String::new();
        for piece in fit::pieces(row, columns, self.width.unwrap_or(usize::MAX)) {
            if piece.new_line {
                text.push('\n');
            }
            text.extend(std::iter::repeat_n(' ', piece.spaces));
            text.push_str(&self.painted(&piece.cell.0, piece.cell.1));
        }
        text
    }

    /// Names and values below each other.
    pub(super) fn facts(&self, facts: &[(&str, Cell)]) -> Outcome {
        let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, cell) in facts {
            let name = self.painted(&format!("{name:width$}"), Paint::Dim);
            self.line(&format!("{name}  {}", self.painted(&cell.0, cell.1)))?;
        }
        Ok(())
    }

    /// Painted where there is colour. The text is already fit for a terminal.
    pub(super) fn painted(&self, text: &str, paint: Paint) -> String {
        let code = match paint {
            Paint::Plain => return text.to_string(),
            _ if !self.colour => return text.to_string(),
            Paint::Dim => 2,
            Paint::Good => 32,
            Paint::Bad => 31,
            Paint::Busy => 36,
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

/// The columns, as wide as their widest cell.
fn widened(columns: &[Column], rows: &[Vec<Cell>]) -> Vec<Column> {
    let mut columns = columns.to_vec();
    for row in rows {
        for (column, cell) in columns.iter_mut().zip(row) {
            column.width = column.width.max(cell.width());
        }
    }
    columns
}

/// A number of things: `1 dead job`, `2 dead jobs`.
pub(super) fn counted(n: impl std::fmt::Display, thing: &str) -> String {
    let n = n.to_string();
    match (n.as_str(), thing.strip_suffix('y')) {
        ("1", _) => format!("1 {thing}"),
        (_, Some(stem)) => format!("{n} {stem}ies"),
        (_, None) => format!("{n} {thing}s"),
    }
}

/// A remark beside the answer: it goes to stderr, so that stdout has only the answer.
pub(super) fn remark(text: &str) {
    let _ = writeln!(io::stderr(), "{}", plain(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_elsewhere_moves_the_terminal() {
        let nasty = "a\u{1b}[2Jb\u{9b}31mc\u{202e}d\re\u{7}";
        let shown = plain(nasty);
        assert!(!shown.chars().any(is_unprintable), "{shown:?}");
        let json = serde_json::to_string(nasty).unwrap();
        let inert = json_inert(&json);
        assert!(!inert.chars().any(is_unprintable), "{inert:?}");
        assert_eq!(serde_json::from_str::<String>(&inert).unwrap(), nasty);
    }

    #[test]
    fn one_thing_is_not_plural() {
        for (n, thing, said) in [
            (0, "dead job", "0 dead jobs"),
            (1, "dead job", "1 dead job"),
            (1, "entry", "1 entry"),
            (2, "entry", "2 entries"),
        ] {
            assert_eq!(counted(n, thing), said);
        }
    }

    #[test]
    fn columns_begin_below_each_other_whatever_is_in_them() {
        let screen = Screen { json: false, colour: false, width: None };
        let rows = [("plain", "a"), ("日本語", "b"), ("😀 ok", "c"), ("e\u{301}", "d")];
        let rows: Vec<Vec<Cell>> = rows.iter().map(|(one, two)| vec![(*one).into(), (*two).into()]).collect();
        let lines = screen.rows_as_text(&["ONE", "TWO"], rows, &mut Vec::new(), door::wall_clock());
        for line in &lines[1..] {
            assert_eq!(line.width(), 6 + 2 + 1, "{line}");
        }
    }
}

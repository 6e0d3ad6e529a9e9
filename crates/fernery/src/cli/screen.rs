//! Output on stdout: tables for people, JSON for programs, without control characters for the terminal.

use super::failure::{Failure, Outcome};
use fernery_core::names::is_unprintable;
use serde_json::value::RawValue;
use std::io::{self, IsTerminal, Write};
use unicode_width::UnicodeWidthStr;

/// Where a command's answer goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Screen {
    /// For programs.
    pub(super) json: bool,
    colour: bool,
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
        let colour =
            !json && io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        Self { json, colour }
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

    /// A table. Columns are as wide as their widest cell; the last one is not padded.
    pub(super) fn table(&self, heads: &[&str], rows: &[Vec<Cell>]) -> Outcome {
        let mut widths = Vec::new();
        self.more_rows(heads, rows, &mut widths)
    }

    /// The next rows of a table; its heads stand over the first ones. `widths` starts empty and only grows.
    pub(super) fn more_rows(&self, heads: &[&str], rows: &[Vec<Cell>], widths: &mut Vec<usize>) -> Outcome {
        let first = widths.is_empty();
        if first {
            widths.extend(heads.iter().map(|h| h.len()));
        }
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
        if first {
            let heads: Vec<_> = heads.iter().map(|h| Cell((*h).to_string(), Paint::Dim)).collect();
            self.row(&heads, widths)?;
        }
        rows.iter().try_for_each(|row| self.row(row, widths))
    }

    fn row(&self, row: &[Cell], widths: &[usize]) -> Outcome {
        self.line(&self.laid_out(row, widths))
    }

    fn laid_out(&self, row: &[Cell], widths: &[usize]) -> String {
        let mut line = String::new();
        for (i, (cell, width)) in row.iter().zip(widths).enumerate() {
            line.push_str(&self.painted(&cell.0, cell.1));
            if i + 1 < row.len() {
                line.extend(std::iter::repeat_n(' ', width - cell.width() + 2));
            }
        }
        line.trim_end().to_string()
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
    fn columns_begin_below_each_other_whatever_is_in_them() {
        let screen = Screen { json: false, colour: false };
        let rows = [("plain", "a"), ("日本語", "b"), ("😀 ok", "c"), ("e\u{301}", "d")];
        let rows: Vec<Vec<Cell>> = rows.iter().map(|(one, two)| vec![(*one).into(), (*two).into()]).collect();
        let width = rows.iter().map(|row| row[0].width()).max().unwrap();
        assert_eq!(width, 6);
        for row in &rows {
            let line = screen.laid_out(row, &[width, 1]);
            assert_eq!(line.width(), width + 2 + 1, "{line}");
        }
    }
}

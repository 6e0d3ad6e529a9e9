//! Output on stdout: tables for people, JSON for programs, without control characters for the terminal.

mod fit;
pub(super) mod ids;
mod prose;
pub(super) use crate::when;

use super::failure::{Failure, Outcome};
use fernery_core::Timestamp;
use fernery_core::names::{is_unprintable, unprintable_in};
use fernery_engine::door;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use unicode_width::UnicodeWidthStr;

pub(super) use fit::Column;
pub(super) use prose::wrapped;

/// Where a command's answer goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Screen {
    /// For programs.
    pub(super) json: bool,
    colour: bool,
    /// Columns of the terminal; none if stdout is no terminal.
    width: Option<usize>,
    /// Whole instants instead of their distance from now.
    utc: bool,
}

/// Foreign text with control characters made visible.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut shown = 0;
    for (at, c) in unprintable_in(text) {
        out.push_str(&text[shown..at]);
        shown = at + c.len_utf8();
        match c {
            '\n' => out.push('\n'),
            '\t' => out.push(' '),
            c => out.extend(c.escape_unicode()),
        }
    }
    out + &text[shown..]
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
    /// An id.
    Id,
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
    /// An id that may be a person's own choice: at a terminal it is shortened if it is long.
    pub(super) fn id(id: impl std::fmt::Display) -> Self {
        Self(plain(&id.to_string()), Paint::Id)
    }

    fn is_id(&self) -> bool {
        self.1 == Paint::Id || ids::is_made(&self.0)
    }

    /// A value, or a dash where there is none.
    pub(super) fn maybe(value: Option<impl std::fmt::Display>) -> Self {
        value.map_or_else(|| Self("-".into(), Paint::Dim), Self::from)
    }

    /// A state or outcome, painted by what it means.
    pub(super) fn state(word: &str) -> Self {
        let paint = match word {
            "SUCCEEDED" | "ok" | "DONE" | "PASS" => Paint::Good,
            "DEAD" | "FAILED" | "LOST" | "TIMED_OUT" | "problem" => Paint::Bad,
            "BLOCKED" | "FAIL" => Paint::Bad,
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
    pub(super) fn new(json: bool, utc: bool) -> Self {
        let width = columns(&io::stdout()).filter(|_| !json);
        let colour = width.is_some() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        Self { json, colour, width, utc }
    }

    #[cfg(test)]
    pub(super) fn plain_text() -> Self {
        Self { json: false, colour: false, width: None, utc: false }
    }

    /// Whether stdout is a terminal that wants colours.
    pub(super) fn has_colour(self) -> bool {
        self.colour
    }

    /// Columns of the terminal; none if stdout is no terminal.
    pub(super) fn width(self) -> Option<usize> {
        self.width
    }

    /// Sentences, already fit for a terminal. At a terminal they are wrapped and ids in them are shortened; a pipe gets
    /// one line for each line.
    pub(super) fn say(&self, text: &str) -> Outcome {
        self.say_painted(text, Paint::Plain)
    }

    /// The same in a colour.
    pub(super) fn say_painted(&self, text: &str, paint: Paint) -> Outcome {
        let lines = told_at(text, self.width);
        lines.iter().try_for_each(|line| self.line(&self.painted(line, paint)))
    }

    /// A text behind a beginning, both already fit for a terminal; at a terminal its further lines stand below its first.
    pub(super) fn hanging(&self, begin: &str, text: &str, paint: Paint) -> Outcome {
        let Some(width) = self.width else {
            return self.line(format!("{begin}{text}").trim_end());
        };
        let margin = begin.width();
        let lines = prose::wrapped(&ids::shortened_in(text), width.saturating_sub(margin));
        for (n, line) in lines.iter().enumerate() {
            let begin = if n == 0 { begin.to_string() } else { " ".repeat(margin) };
            self.line(format!("{begin}{}", self.painted(line, paint)).trim_end())?;
        }
        Ok(())
    }

    /// An instant: at a terminal its distance from now, unless whole ones are wanted.
    pub(super) fn at(&self, at: Timestamp) -> String {
        if self.utc || self.width.is_none() {
            return at.to_string();
        }
        when::relative(at, door::wall_clock())
    }

    /// An id: at a terminal its short form.
    pub(super) fn id(&self, id: impl std::fmt::Display) -> String {
        let id = id.to_string();
        if self.width.is_none() { id } else { ids::short(&id) }
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

    /// A table. Columns are as wide as their widest cell. On a terminal ids are shortened and instants are told by their
    /// distance from now; if it is too narrow, columns whose head ends in `…` are cut, and any other last column is wrapped (`↵`:
    /// in a line of its own).
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
        if self.width.is_some() {
            rows = self.for_people(rows, now);
        }
        *columns = widened(columns, &rows);
        if let Some(width) = self.width {
            fit::narrow(columns, width);
        }
        let heads = columns.iter().map(|column| Cell(column.head.to_string(), Paint::Dim)).collect();
        let heads = first.then_some(heads);
        heads.iter().chain(&rows).map(|row| self.laid_out(row, columns)).collect()
    }

    /// Ids and instants in their short forms; no two ids of a column look alike.
    fn for_people(&self, rows: Vec<Vec<Cell>>, now: Timestamp) -> Vec<Vec<Cell>> {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut short: Vec<HashMap<String, String>> = Vec::new();
        for column in 0..columns {
            let cells = rows.iter().filter_map(|row| row.get(column));
            let ids = cells.filter(|cell| cell.is_id()).map(|cell| cell.0.as_str());
            short.push(ids::apart(ids).into_iter().map(|(id, short)| (id.to_string(), short)).collect());
        }
        let for_people = |(column, Cell(text, paint)): (usize, Cell)| match short[column].get(&text) {
            Some(short) => Cell(short.clone(), paint),
            None => Cell(self.instant(text, now), paint),
        };
        rows.into_iter().map(|row| row.into_iter().enumerate().map(for_people).collect()).collect()
    }

    /// An instant as its distance from now; ids in any other text are shortened.
    fn instant(&self, text: String, now: Timestamp) -> String {
        match text.parse::<Timestamp>() {
            Ok(_) if self.utc => text,
            Ok(at) => when::relative(at, now),
            Err(_) => ids::shortened_in(&text),
        }
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

    /// Names and values below each other; at a terminal, long values are wrapped below themselves.
    pub(super) fn facts(&self, facts: &[(&str, Cell)]) -> Outcome {
        let names = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, cell) in facts {
            let name = self.painted(&format!("{name:names$}"), Paint::Dim);
            let mut lines = vec![cell.0.clone()];
            if let Some(width) = self.width {
                let text = if cell.0.parse::<Timestamp>().is_ok() {
                    self.instant(cell.0.clone(), door::wall_clock())
                } else {
                    cell.0.clone()
                };
                lines = prose::wrapped(&text, width.saturating_sub(names + fit::GAP));
            }
            for (n, line) in lines.iter().enumerate() {
                let name = if n == 0 { name.clone() } else { " ".repeat(names) };
                self.line(format!("{name}  {}", self.painted(line, cell.1)).trim_end())?;
            }
        }
        Ok(())
    }

    /// Painted where there is colour. The text is already fit for a terminal.
    pub(super) fn painted(&self, text: &str, paint: Paint) -> String {
        let code = match paint {
            Paint::Plain | Paint::Id => return text.to_string(),
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
    for line in told_at(&plain(text), columns(&io::stderr())) {
        let _ = writeln!(io::stderr(), "{line}");
    }
}

/// A question for stderr, in lines that fit its terminal; the answer is typed behind the last one.
pub(super) fn asked(question: &str) -> String {
    match columns(&io::stderr()) {
        // The answer needs a place of its own.
        Some(width) => prose::wrapped(question.trim_end(), width.saturating_sub(4)).join("\n") + " ",
        None => question.to_string(),
    }
}

/// The lines of a text at a terminal of this width; elsewhere the text as it is.
fn told_at(text: &str, width: Option<usize>) -> Vec<String> {
    match width {
        Some(width) => prose::wrapped(&ids::shortened_in(text), width),
        None => vec![text.to_string()],
    }
}

/// Columns of a terminal; none if it is none.
fn columns(of: &(impl IsTerminal + AsFd)) -> Option<usize> {
    let told = || rustix::termios::tcgetwinsize(of).ok().map(|size| usize::from(size.ws_col));
    of.is_terminal().then(|| told().filter(|columns| *columns > 0).unwrap_or(prose::WIDTH_DEFAULT))
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
    fn joiners_between_emoji_survive_and_all_others_are_shown() {
        for kept in ["👩‍💻 the deploy", "🏳️‍🌈", "👩🏽‍🚀"] {
            assert_eq!(plain(kept), kept);
        }
        for (text, shown) in [
            ("a\u{200d}b", "a\\u{200d}b"),
            ("👩\u{200d}", "👩\\u{200d}"),
            ("👩\u{200d}\u{200d}👩", "👩\\u{200d}\\u{200d}👩"),
        ] {
            assert_eq!(plain(text), shown);
        }
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
        let screen = Screen::plain_text();
        let rows = [("plain", "a"), ("日本語", "b"), ("😀 ok", "c"), ("e\u{301}", "d")];
        let rows: Vec<Vec<Cell>> = rows.iter().map(|(one, two)| vec![(*one).into(), (*two).into()]).collect();
        let lines = screen.rows_as_text(&["ONE", "TWO"], rows, &mut Vec::new(), door::wall_clock());
        for line in &lines[1..] {
            assert_eq!(line.width(), 6 + 2 + 1, "{line}");
        }
    }
}

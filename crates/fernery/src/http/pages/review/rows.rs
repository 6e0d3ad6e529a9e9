//! Rows of a patch as HTML. They are written here and not by a template, since there are thousands of them. What others wrote goes
//! through the same function as everywhere.

use super::super::show::{clipped, inert};
use super::diff::View;
use fernery_core::patch::rows::{Fate, Hunk, Row, telling};
use std::fmt::Write;

/// Characters of one line.
pub(super) const ROW_CHARS_MAX: usize = 1_000;

/// The row above a hunk: where it is.
pub(super) fn head(html: &mut String, hunk: &Hunk<'_>, view: View) {
    let columns = if view == View::Unified { 3 } else { 4 };
    let line = hunk.rows.iter().find_map(|row| row.new.or(row.old)).unwrap_or(0);
    let _ = write!(html, "<tr class=h><td colspan={columns}>line {line} <bdi>");
    others(html, clipped(hunk.place, ROW_CHARS_MAX).0);
    html.push_str("</bdi>\n");
}

pub(super) fn unified(html: &mut String, row: &Row<'_>) {
    html.push_str(match row.fate {
        Fate::Stays => "<tr><td>",
        Fate::Goes => "<tr class=d><td>",
        Fate::Comes => "<tr class=a><td>",
    });
    number(html, row.old);
    html.push_str("<td>");
    number(html, row.new);
    html.push_str("<td>");
    text(html, row);
    html.push('\n');
}

/// The rows of two texts that tell their difference, with so many around each.
pub(in super::super) fn difference(rows: &[Row<'_>], around: usize) -> String {
    let mut html = String::new();
    let mut next = 0;
    for at in telling(rows, around) {
        if at > next {
            html.push_str("<tr class=h><td colspan=3>…\n");
        }
        unified(&mut html, &rows[at]);
        next = at + 1;
    }
    html
}

pub(super) fn sides(html: &mut String, old: Option<&Row<'_>>, new: Option<&Row<'_>>) {
    html.push_str("<tr>");
    for (row, line) in [(old, old.and_then(|row| row.old)), (new, new.and_then(|row| row.new))] {
        html.push_str("<td>");
        number(html, line);
        html.push_str(match row.map(|row| row.fate) {
            Some(Fate::Goes) => "<td class=d>",
            Some(Fate::Comes) => "<td class=a>",
            Some(Fate::Stays) => "<td>",
            None => "<td class=x>",
        });
        if let Some(row) = row {
            text(html, row);
        }
    }
    html.push('\n');
}

fn number(html: &mut String, line: Option<u64>) {
    if let Some(line) = line {
        let _ = write!(html, "{line}");
    }
}

/// What others wrote; writing to a string does not fail.
fn others(html: &mut String, text: &str) {
    let _ = inert(html, text, '\t');
}

fn text(html: &mut String, row: &Row<'_>) {
    let mut room = ROW_CHARS_MAX;
    let mut hidden = 0;
    for part in &row.parts {
        let (seen, chars) = clipped(part.text, room);
        room -= chars;
        hidden += part.text.len() - seen.len();
        let tag = match row.fate {
            Fate::Goes => "del>",
            Fate::Comes | Fate::Stays => "ins>",
        };
        if part.differs && !seen.is_empty() {
            html.push('<');
            html.push_str(tag);
        }
        others(html, seen);
        if part.differs && !seen.is_empty() {
            html.push_str("</");
            html.push_str(tag);
        }
    }
    if hidden > 0 {
        let _ = write!(html, " <span class=more>… {hidden} more bytes in this line</span>");
    }
    if row.unended {
        html.push_str(" <span class=more>no line end</span>");
    }
}

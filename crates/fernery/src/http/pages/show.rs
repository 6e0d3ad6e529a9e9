//! How pages show what others wrote: inert, whole in meaning, bounded in size.
//!
//! A template escapes every text by itself. These types do more: characters that hide, reorder or break the text around them are
//! shown by their number, direction is isolated, and long texts end in a mark. They write HTML of their own, so what they write
//! of others is escaped here, in one function.

use crate::when;
use askama::Template;
use askama::filters::HtmlSafe;
use fernery_core::Timestamp;
use fernery_core::id_part;
use fernery_core::names::unprintable_in;
use fernery_engine::door;
use std::fmt::{self, Display, Formatter, Write};

/// Characters of a text in one line; the rest is on the page of what it belongs to.
const LINE_CHARS_MAX: usize = 400;
/// Lines of a text, and characters of each of them.
const PROSE_LINES_MAX: usize = 2_000;
const PROSE_LINE_CHARS_MAX: usize = 4_000;
/// Bytes of HTML that a text in one line, and one with its lines, may become: a character that would not be seen takes [`ODD_BYTES`].
const LINE_HTML_MAX: usize = 4_000;
const PROSE_HTML_MAX: usize = 300_000;

/// A text by others, in one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line(pub(super) String);

/// A text by others, with its lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Prose(pub(super) String);

impl Line {
    pub(super) fn of(text: impl Display) -> Self {
        Self(text.to_string())
    }
}

impl Prose {
    pub(super) fn of(text: impl Display) -> Self {
        Self(text.to_string())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.trim().is_empty()
    }
}

/// A text by others with its lines and without an end before its own: for what a person approves, where nothing may be left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Whole(pub(super) String);

impl Whole {
    pub(super) fn of(text: impl Display) -> Self {
        Self(text.to_string())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.trim().is_empty()
    }
}

impl HtmlSafe for Line {}
impl HtmlSafe for Prose {}
impl HtmlSafe for Whole {}

impl Display for Whole {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("<div class=\"prose\" dir=\"auto\">")?;
        for (n, line) in self.0.split('\n').enumerate() {
            if n > 0 {
                f.write_str("\n")?;
            }
            inert(f, line, '\t')?;
        }
        f.write_str("</div>")
    }
}

impl Display for Line {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("<bdi>")?;
        let (first, _) = first_chars(&self.0, LINE_CHARS_MAX);
        let (shown, _) = first_html(first, LINE_HTML_MAX);
        inert(f, shown, ' ')?;
        if shown.len() < self.0.len() {
            f.write_str(" …")?;
        }
        f.write_str("</bdi>")
    }
}

impl Display for Prose {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("<div class=\"prose\" dir=\"auto\">")?;
        let text = self.0.trim_end();
        let mut room = PROSE_HTML_MAX;
        for (n, line) in text.split('\n').enumerate() {
            if n == PROSE_LINES_MAX || room == 0 {
                let more = text.split('\n').count() - n;
                write!(f, "\n<span class=\"more\">… {more} more lines</span>")?;
                break;
            }
            if n > 0 {
                f.write_str("\n")?;
            }
            let (first, _) = first_chars(line, PROSE_LINE_CHARS_MAX);
            let (shown, left) = first_html(first, room);
            inert(f, shown, '\t')?;
            if shown.len() < line.len() {
                let rest = line.len() - shown.len();
                write!(f, " <span class=\"more\">… {rest} more bytes in this line</span>")?;
            }
            // What did not fit has used up the room.
            room = if shown.len() < first.len() { 0 } else { left };
        }
        f.write_str("</div>")
    }
}

/// The beginning of a text that takes at most so many bytes of HTML, and how many are left.
fn first_html(text: &str, most: usize) -> (&str, usize) {
    let mut left = most;
    let mut odd = unprintable_in(text).peekable();
    for (at, c) in text.char_indices() {
        let is_odd = odd.next_if(|(place, _)| *place == at).is_some();
        let bytes = match c {
            '\t' | '\n' | '\r' => 1,
            _ if is_odd => ODD_BYTES,
            '&' | '<' | '>' | '"' | '\'' => 6,
            c => c.len_utf8(),
        };
        if bytes > left {
            return (&text[..at], left);
        }
        left -= bytes;
    }
    (text, left)
}

/// The beginning of a text with at most so many characters, and how many it has.
pub(super) fn clipped(text: &str, most: usize) -> (&str, usize) {
    match text.char_indices().enumerate().nth(most) {
        Some((chars, (end, _))) => (&text[..end], chars),
        // A line of code is short: it is counted once.
        None => (text, text.chars().count()),
    }
}

/// The beginning of a text, and whether there is more.
fn first_chars(text: &str, most: usize) -> (&str, bool) {
    match text.char_indices().nth(most) {
        Some((end, _)) => (&text[..end], true),
        None => (text, false),
    }
}

/// The most bytes that [`inert`] writes for a character that would not be seen.
const ODD_BYTES: usize = 80;

/// Text as HTML that shows it and does nothing else. A tab becomes `tab`.
pub(super) fn inert(f: &mut impl Write, text: &str, tab: char) -> fmt::Result {
    let mut shown = 0;
    for (at, c) in unprintable_in(text) {
        escaped(f, &text[shown..at])?;
        shown = at + c.len_utf8();
        match c {
            '\t' => write!(f, "{tab}")?,
            '\n' | '\r' => f.write_str(" ")?,
            c => write!(
                f,
                "<span class=\"odd\" title=\"a character that would not be seen\">U+{:04X}</span>",
                c as u32
            )?,
        }
    }
    escaped(f, &text[shown..])
}

fn escaped(f: &mut impl Write, text: &str) -> fmt::Result {
    let mut rest = text;
    while let Some(at) = rest.find(['&', '<', '>', '"', '\'']) {
        f.write_str(&rest[..at])?;
        f.write_str(match rest.as_bytes()[at] {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            _ => "&#39;",
        })?;
        rest = &rest[at + 1..];
    }
    f.write_str(rest)
}

/// An instant by its distance from now; the whole one on hover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct When(pub(super) Timestamp);

impl HtmlSafe for When {}

impl Display for When {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let said = when::relative(self.0, door::wall_clock());
        write!(f, "<time datetime=\"{0}\" title=\"{0}\">{said}</time>", self.0)
    }
}

/// The short form of an id; the whole one on hover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Id(pub(super) String);

impl Id {
    pub(super) fn of(id: impl Display) -> Self {
        Self(id.to_string())
    }
}

impl HtmlSafe for Id {}

impl Display for Id {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("<code class=\"id\" title=\"")?;
        escaped(f, &self.0)?;
        f.write_str("\">")?;
        inert(f, &id_part::short(&self.0), ' ')?;
        f.write_str("</code>")
    }
}

/// A text that is copied from here, in one line: what would not be seen is shown by its number.
#[derive(Clone, Debug)]
struct Plain<'a>(&'a str);

impl HtmlSafe for Plain<'_> {}

impl Display for Plain<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        inert(f, self.0, ' ')
    }
}

/// A word of a command line, as a shell takes it.
pub(super) fn shell(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The same act from a terminal and by HTTP, to be opened below a button.
#[derive(Clone, Debug, Template)]
#[template(path = "ways.html")]
pub(super) struct Ways {
    command: Option<String>,
    curl: Option<String>,
}

impl HtmlSafe for Ways {}

impl Ways {
    /// A command, and the call of the API that it makes.
    pub(super) fn new(command: impl Into<String>, method: &str, path: &str, body: Option<&str>) -> Self {
        let body = body
            .map_or(String::new(), |body| format!(" -H 'Content-Type: application/json' -d {}", shell(body)));
        let method = if method == "GET" { String::new() } else { format!(" -X {method}") };
        let curl =
            format!("curl{method} -H \"Authorization: Bearer $FERNERY_TOKEN\"{body} \"$FERNERY_URL{path}\"");
        Self { command: Some(command.into()), curl: Some(curl) }
    }

    /// A call of the API that no command makes.
    pub(super) fn call(method: &str, path: &str, body: Option<&str>) -> Self {
        Self { command: None, ..Self::new("", method, path, body) }
    }

    /// A command that is no single call of the API of this server.
    pub(super) fn command(command: impl Into<String>) -> Self {
        Self { command: Some(command.into()), curl: None }
    }

    fn lines(&self) -> impl Iterator<Item = Plain<'_>> {
        self.command.iter().chain(&self.curl).map(|line| Plain(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_does_nothing() {
        let hostile = "<script>alert(1)</script>\u{1b}[31m\u{202e}'\"&";
        let shown = Line::of(hostile).to_string();
        assert_eq!(
            shown,
            "<bdi>&lt;script&gt;alert(1)&lt;/script&gt;<span class=\"odd\" title=\"a character that would not be seen\">\
             U+001B</span>[31m<span class=\"odd\" title=\"a character that would not be seen\">U+202E</span>&#39;&quot;&amp;</bdi>"
        );
        assert!(!Prose::of(hostile).to_string().contains("<script"));
        assert!(!Whole::of(hostile).to_string().contains("<script"));
        assert!(!Id::of("a\"><script>").to_string().contains("<script"));
        let ways = Ways::new(format!("fernery dlq redrive --code {}", shell(hostile)), "POST", "/", None)
            .to_string();
        assert!(!ways.contains("<script") && !ways.contains('\u{202e}') && ways.contains("U+202E"), "{ways}");
    }

    #[test]
    fn a_long_text_ends_in_a_mark() {
        let line = Line::of("ü".repeat(1 << 20)).to_string();
        assert!(line.len() < 1_000 && line.ends_with(" …</bdi>"), "{} bytes", line.len());
        let prose = Prose::of("x".repeat(1 << 20)).to_string();
        assert!(prose.len() < 5_000 && prose.contains("more bytes in this line"));
        let prose = Prose::of("x\n".repeat(100_000)).to_string();
        assert!(prose.len() < 10_000 && prose.contains("… 98000 more lines"), "{}", prose.len());
        let whole = Whole::of("x".repeat(1 << 20) + "\n\u{202e}end ").to_string();
        assert!(whole.len() > 1 << 20 && whole.ends_with("U+202E</span>end </div>"), "nothing is left out");
    }

    #[test]
    fn hostile_text_does_not_blow_a_page_up() {
        // Each of these characters is shown by its number, in some seventy bytes; a quote takes five or six.
        for hostile in ["\u{202e}", "\u{1b}", "\u{e0001}", "\"", "&"] {
            let text = format!("{}\n", hostile.repeat(4_000)).repeat(2_000);
            let prose = Prose::of(&text).to_string();
            assert!(prose.len() < PROSE_HTML_MAX + 1_000, "{hostile:?}: {} bytes", prose.len());
            assert!(prose.contains("more lines</span></div>"), "it says that there is more");
            let line = Line::of(&text).to_string();
            assert!(line.len() < LINE_HTML_MAX + 100 && line.ends_with(" …</bdi>"), "{} bytes", line.len());
        }
        let emoji = "👩‍👩‍👧 'quoted' <b>".repeat(20);
        assert!(Line::of(&emoji).to_string().ends_with("&lt;b&gt;</bdi>"), "an honest text is whole");
        assert_eq!(first_html("a<\u{202e}b", 7 + ODD_BYTES), ("a<\u{202e}", 0));
    }

    #[test]
    fn an_act_is_shown_as_a_command_and_as_a_call() {
        let ways = Ways::new(
            "fernery ticket block T-1",
            "POST",
            "/v1/objectives/T-1/block",
            Some(r#"{"a":"it's"}"#),
        );
        let html = ways.to_string();
        assert!(html.contains("fernery ticket block T-1"), "{html}");
        let curl = ways.curl.unwrap();
        assert!(curl.contains(r#"-X POST"#) && curl.contains(r#"it'\''s"#), "{curl}");
    }
}

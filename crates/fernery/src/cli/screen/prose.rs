//! Sentences in lines that a terminal does not have to break. A command in them stays in one piece where there is room.

use super::fit::fitting;
use unicode_width::UnicodeWidthStr;

/// Where the width is not known.
pub(super) const WIDTH_DEFAULT: usize = 80;
/// Narrower than this nothing is wrapped.
const WIDTH_MIN: usize = 20;

/// The lines of a text of at most `width` columns. Lines after the first of a paragraph are indented as it is.
pub(in crate::cli) fn wrapped(text: &str, width: usize) -> Vec<String> {
    text.split('\n').flat_map(|line| paragraph(line, width)).collect()
}

fn paragraph(line: &str, width: usize) -> Vec<String> {
    if line.width() <= width || width < WIDTH_MIN {
        return vec![line.to_string()];
    }
    let indent = line.len() - line.trim_start_matches(' ').len();
    let (indent, body) = line.split_at(indent.min(width / 2));
    let room = width - indent.len();
    let mut lines = Vec::new();
    let mut current = String::new();
    for piece in pieces(body, room) {
        let joined = current.width() + usize::from(!current.is_empty()) + piece.width();
        if joined > room && !current.trim().is_empty() {
            lines.push(std::mem::take(&mut current));
        } else if !current.is_empty() {
            current.push(' ');
        }
        current.push_str(&piece);
        while current.width() > room {
            let rest = current.split_off(fitting(&current, room));
            lines.push(std::mem::replace(&mut current, rest));
        }
    }
    lines.push(current);
    lines.into_iter().map(|line| format!("{indent}{}", line.trim_end())).collect()
}

/// Words; a command (from `fernery` on, or between backticks) is one piece if it fits into a line.
fn pieces(body: &str, room: usize) -> Vec<String> {
    // Several spaces stay several: they align what follows.
    let words: Vec<&str> = body.split(' ').collect();
    let mut pieces = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let length =
            command(&words[at..]).filter(|n| words[at..at + n].join(" ").width() <= room).unwrap_or(1);
        pieces.push(words[at..at + length].join(" "));
        at += length;
    }
    pieces
}

/// How many words a command that begins here has.
fn command(words: &[&str]) -> Option<usize> {
    let ends = match words[0] {
        "fernery" => words.iter().position(|word| word.ends_with([';', ',', ')'])).map(|at| at + 1),
        first if first.trim_start_matches('(').starts_with('`') && first.matches('`').count() == 1 => {
            Some(words.iter().skip(1).position(|word| word.contains('`'))? + 2)
        }
        _ => return None,
    };
    Some(ends.unwrap_or(words.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_broken_at_words_and_keep_their_indent() {
        let text = "  one two three four five six seven eight";
        assert_eq!(wrapped(text, 24), ["  one two three four", "  five six seven eight"]);
        assert_eq!(wrapped("short\nlines", 80), ["short", "lines"]);
        let long = format!("see {}", "x".repeat(50));
        assert!(wrapped(&long, 30).iter().all(|line| line.width() <= 30), "{long}");
        assert_eq!(wrapped("日本語の 題名を ここに 書く 題名", 20), ["日本語の 題名を", "ここに 書く 題名"]);
    }

    #[test]
    fn a_command_stays_in_one_line() {
        let text = "it is NEW; to let it run: fernery ticket approve WEB-17";
        assert_eq!(wrapped(text, 40), ["it is NEW; to let it run:", "fernery ticket approve WEB-17"]);
        let text = "it goes on after `fernery up` or `fernery ticket unblock` and more";
        assert_eq!(
            wrapped(text, 40),
            ["it goes on after `fernery up` or", "`fernery ticket unblock` and more"]
        );
        let text = "not `closed and then some more words that go on";
        assert!(wrapped(text, 30).iter().all(|line| line.width() <= 30));
    }
}

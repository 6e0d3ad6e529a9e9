//! A JSON document as a page shows it: line by line, every number with all its digits.

use super::super::show::Prose;

/// Characters and lines that are laid out; of a longer document the beginning.
const CHARS_MAX: usize = 100_000;
const LINES_MAX: usize = 1_000;
/// Deeper members are not moved further in.
const DEPTH_MAX: usize = 20;

pub(super) struct Document {
    /// Bytes of it as it is kept.
    pub(super) bytes: usize,
    pub(super) text: Prose,
    /// Only the beginning is laid out.
    pub(super) cut: bool,
}

impl Document {
    pub(super) fn of(json: &str) -> Self {
        let (text, cut) = laid_out(json);
        Self { bytes: json.len(), text: Prose(text), cut }
    }
}

/// A document with a line for each member, and whether its end is left out. Only the space between its parts changes: a number is not read, so it keeps its digits.
fn laid_out(json: &str) -> (String, bool) {
    let mut out = String::new();
    let (mut depth, mut lines, mut in_string, mut escaped) = (0_usize, 1, false, false);
    let mut characters = json.chars().take(CHARS_MAX).peekable();
    while let Some(c) = characters.next() {
        if in_string {
            out.push(c);
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        let new_line = match c {
            ' ' | '\t' | '\n' | '\r' => continue,
            '{' | '[' => {
                out.push(c);
                while characters.next_if(|c| c.is_ascii_whitespace()).is_some() {}
                match characters.next_if(|c| matches!(c, '}' | ']')) {
                    Some(end) => {
                        out.push(end);
                        continue;
                    }
                    None => depth += 1,
                }
                true
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                true
            }
            c => {
                out.push(c);
                in_string = c == '"';
                if c == ':' {
                    out.push(' ');
                }
                c == ','
            }
        };
        if new_line {
            lines += 1;
            if lines > LINES_MAX {
                out.push_str("\n…");
                return (out, true);
            }
            out.push('\n');
            out.extend(std::iter::repeat_n("  ", depth.min(DEPTH_MAX)));
        }
        if matches!(c, '}' | ']') {
            out.push(c);
        }
    }
    let cut = json.chars().nth(CHARS_MAX).is_some();
    if cut {
        out.push_str("\n…");
    }
    (out, cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_keeps_its_numbers_and_its_strings() {
        let json = r#"{"n":12345678901234567890.10, "s":"a\"{,}: [", "e":{ },"l":[1,[]],"x":"\\"}"#;
        let (text, cut) = laid_out(json);
        assert!(!cut);
        assert_eq!(
            text,
            "{\n  \"n\": 12345678901234567890.10,\n  \"s\": \"a\\\"{,}: [\",\n  \"e\": {},\n  \"l\": [\n    1,\n    \
             []\n  ],\n  \"x\": \"\\\\\"\n}"
        );
    }

    #[test]
    fn a_huge_document_costs_little() {
        let deep = "[".repeat(1 << 20);
        assert!(laid_out(&deep).0.len() < LINES_MAX * (2 * DEPTH_MAX + 4));
        let long = format!("[\"{}\"]", "x".repeat(1 << 20));
        assert!(laid_out(&long).0.len() < CHARS_MAX + 100);
        assert!(laid_out(&deep).1 && laid_out(&long).1, "and says that it is cut");
    }
}

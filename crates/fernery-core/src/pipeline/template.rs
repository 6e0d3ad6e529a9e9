//! The template of a blueprint's own prompt: text with names in braces. `{{` and `}}` are literal braces.
//!
//! Names are filled in from left to right, and inserted text is not scanned again: no text of a ticket can be taken for
//! a name. Each name may appear once, which bounds the length of the prompt. A name that becomes a fenced block has its
//! own line, and the template may contain no fence: it could close such a block.

use std::collections::BTreeSet;

pub const NAMES: [&str; 11] = [
    "ticket",
    "title",
    "acceptance_criteria",
    "note",
    "failure",
    "objective_id",
    "attempt",
    "branch_name",
    "repo_ref",
    "base_branch",
    "commit_sha",
];

/// Names that become whole blocks.
const BLOCKS: [&str; 4] = ["ticket", "acceptance_criteria", "note", "failure"];
/// What opens or ends a fenced block.
const FENCES: [&str; 2] = ["```", "~~~"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    Name(&'a str),
    /// A brace that stands alone.
    Stray(&'a str),
}

fn pieces(template: &str) -> Vec<Piece<'_>> {
    let (mut found, mut rest) = (Vec::new(), template);
    while let Some(at) = rest.find(['{', '}']) {
        let (text, braced) = rest.split_at(at);
        found.push(Piece::Text(text));
        let is_name = |name: &str| name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
        let end =
            braced.find('}').filter(|end| *end > 1 && braced.starts_with('{') && is_name(&braced[1..*end]));
        let length = match end {
            _ if braced.starts_with("{{") || braced.starts_with("}}") => {
                found.push(Piece::Text(&braced[..1]));
                2
            }
            Some(end) => {
                found.push(Piece::Name(&braced[1..end]));
                end + 1
            }
            None => {
                found.push(Piece::Stray(&braced[..1]));
                1
            }
        };
        rest = &braced[length..];
    }
    found.push(Piece::Text(rest));
    found
}

/// Everything that is wrong with a template.
pub fn faults(template: &str) -> Vec<String> {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    for piece in pieces(template) {
        match piece {
            Piece::Text(_) => {}
            Piece::Name(name) if !NAMES.contains(&name) => {
                found.push(format!("unknown name `{{{name}}}`; known: {{{}}}", NAMES.join("} {")));
            }
            Piece::Name(name) if !seen.insert(name) => {
                found.push(format!("`{{{name}}}` may stand only once"))
            }
            Piece::Name(_) => {}
            Piece::Stray(brace) => {
                found.push(format!("`{brace}` stands alone: write `{brace}{brace}` for a brace"));
            }
        }
    }
    for line in template.lines() {
        let blocks = BLOCKS.iter().filter(|name| pieces(line).contains(&Piece::Name(name)));
        let crowded = blocks.filter(|name| line.trim_end() != format!("{{{name}}}"));
        found.extend(
            crowded
                .map(|name| format!("`{{{name}}}` becomes a whole block: it must stand alone on its line")),
        );
    }
    // Some names may be replaced by nothing.
    let bare = fill(template, |_| String::new());
    for fence in FENCES.into_iter().filter(|fence| bare.contains(fence)) {
        found.push(format!("`{fence}` would open or end a block: Fernery fences the ticket's text itself"));
    }
    let says_it = seen.contains("ticket") || seen.contains("title") && seen.contains("acceptance_criteria");
    if !says_it {
        found.push("does not say what is wanted: use {ticket}, or {title} and {acceptance_criteria}".into());
    }
    found
}

/// The template with each name filled in.
pub fn fill(template: &str, value: impl Fn(&str) -> String) -> String {
    let of = |piece| match piece {
        Piece::Name(name) => value(name),
        Piece::Text(text) | Piece::Stray(text) => text.to_string(),
    };
    pieces(template).into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_filled_in_once_and_braces_are_doubled() {
        let value = |name: &str| format!("<{name} {{note}}>");
        assert_eq!(fill("a {title} b", value), "a <title {note}> b", "what was filled in stays as it is");
        assert_eq!(fill("{{title}} {{}} }}{{", value), "{title} {} }{");
        assert_eq!(fill("{{{title}}}", value), "{<title {note}>}");
        assert_eq!(fill("ä{title}ö", value), "ä<title {note}>ö");
        assert_eq!(fill("", value), "");
    }

    #[test]
    fn everything_that_is_wrong_is_told() {
        assert_eq!(faults("{ticket}"), Vec::<String>::new());
        assert_eq!(
            faults("{title} {{x}}\n{acceptance_criteria} \n{note}\r\n{failure}"),
            Vec::<String>::new()
        );
        for (template, said) in [
            (
                "{ticket} {tilte}",
                "unknown name `{tilte}`; known: {ticket} {title} {acceptance_criteria} {note}",
            ),
            ("{ticket}{ticket}", "`{ticket}` may stand only once"),
            ("{ticket} {", "`{` stands alone: write `{{`"),
            ("{ticket} }", "`}` stands alone: write `}}`"),
            ("{ticket} {}", "`{` stands alone"),
            ("{ticket} { title }", "`{` stands alone"),
            ("{ticket} {not a name}", "`{` stands alone"),
            (
                "Done when: {acceptance_criteria} Never push.",
                "`{acceptance_criteria}` becomes a whole block: it must stand alone",
            ),
            ("    {ticket}", "`{ticket}` becomes a whole block"),
            ("{ticket}{note}", "`{note}` becomes a whole block"),
            ("- {{x}} {failure}", "`{failure}` becomes a whole block"),
            ("```\n{ticket}", "```` would open"),
            ("{ticket}\n ~~~sh", "`~~~` would open"),
            ("{ticket}\n~{branch_name}~~", "`~~~` would open"),
            ("{title}", "does not say what is wanted"),
            ("", "does not say what is wanted"),
        ] {
            assert!(
                faults(template).iter().any(|fault| fault.contains(said)),
                "{template}: {:?}",
                faults(template)
            );
        }
    }
}

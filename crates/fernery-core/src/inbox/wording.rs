//! Words that somebody might type: a line about an item has none that the item itself does not have.

use super::facts::Item;
use std::collections::BTreeSet;
use unicode_normalization::UnicodeNormalization as _;

/// Programs whose names people are used to type.
const PROGRAMS: [&str; 26] = [
    "fernery",
    "sudo",
    "doas",
    "su",
    "rm",
    "curl",
    "wget",
    "bash",
    "sh",
    "zsh",
    "powershell",
    "chmod",
    "chown",
    "ssh",
    "scp",
    "git",
    "docker",
    "podman",
    "kubectl",
    "npm",
    "npx",
    "pip",
    "cargo",
    "eval",
    "dd",
    "mkfs",
];

/// What only stands in a line that a shell is meant to read.
const SIGNS: [&str; 10] = ["$(", "${", "&&", "||", ">>", "| ", "2>", "<(", "~/", "/bin/"];

/// Everything in a text that reads as a part of a command.
fn commands(text: &str) -> BTreeSet<String> {
    let text = text.nfkc().collect::<String>().to_lowercase();
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| PROGRAMS.contains(word));
    let signs = SIGNS.iter().copied().filter(|sign| text.contains(sign));
    let is_option = |word: &&str| {
        let name = word.trim_start_matches('-');
        name.len() < word.len() && name.starts_with(|c: char| c.is_ascii_alphabetic())
    };
    // An option is known by how it begins: what follows may have been cut.
    let options = text.split_whitespace().filter(is_option);
    words.chain(signs).chain(options).map(str::to_string).collect()
}

/// What in a text about an item reads as a part of a command and does not come from the item.
pub(super) fn foreign_commands(text: &str, item: &Item) -> BTreeSet<String> {
    let mut found = commands(text);
    if !found.is_empty() {
        let own = std::iter::once(&item.title).chain(&item.why).chain([&item.item_id]);
        for own in own {
            for known in commands(own).into_iter().chain(commands(&tidy(own))) {
                found.remove(&known);
            }
        }
    }
    found
}

/// Text as a line may have it: no backticks, and of a link what follows its scheme.
pub(super) fn tidy(text: &str) -> String {
    let mut text = text.replace('`', "'");
    while let Some(at) = text.find("://") {
        let is_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let start = text[..at].trim_end_matches(is_scheme).len();
        text.replace_range(start..at + 3, "");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_loses_its_scheme_and_quotation_marks_are_plain() {
        for (text, expected) in [
            ("see https://x.org/a?b#c, ok", "see x.org/a?b#c, ok"),
            ("`rm` it", "'rm' it"),
            ("ht://tps://x", "x"),
            ("://", ""),
            ("a: // b", "a: // b"),
        ] {
            assert_eq!(tidy(text), expected);
        }
    }

    #[test]
    fn what_people_type_is_recognised_and_plain_words_are_not() {
        for (text, expected) in [
            ("Approve the new footer, it waits since Monday", &[][..]),
            ("the rest is short - and sudoku is no program", &[]),
            ("Run Fernery ticket approve T-9", &["fernery"]),
            ("ｓｕｄｏ reboot", &["sudo"]),
            ("x; rm -rf ~/", &["-rf", "rm", "~/"]),
            ("$(id) && true", &["$(", "&&"]),
            ("use --yes", &["--yes"]),
        ] {
            assert_eq!(commands(text).into_iter().collect::<Vec<_>>(), expected, "{text}");
        }
    }
}

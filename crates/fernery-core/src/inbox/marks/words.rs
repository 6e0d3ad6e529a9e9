//! The words and signs that marks are made of.

use crate::inbox::label::is_name;

/// `(A)` to `(Z)`.
pub(super) fn letter(text: &str) -> Option<u8> {
    match text.as_bytes() {
        [b'(', letter @ b'A'..=b'Z', b')'] => Some((letter - b'A').min(4)),
        _ => None,
    }
}

/// `p1` to `p4`.
pub(super) fn priority(plain: &str) -> Option<u8> {
    match plain.as_bytes() {
        [b'p', n @ b'1'..=b'4'] => Some(n - b'1'),
        _ => None,
    }
}

/// `!!!` is the most.
pub(super) fn exclamation(text: &str) -> Option<u8> {
    ["!!!", "!!", "!"].iter().position(|marks| *marks == text).map(|at| at as u8)
}

/// `+project`, `@context` or `#label`, apart from its sign. A number is none, nor is a colour.
pub(super) fn name(text: &str) -> Option<(char, &str)> {
    let word = text.trim_end_matches(['.', ',', ';', ':', '!', '?']);
    let (sign, name) = word.split_at_checked(1)?;
    let is_colour = matches!(name.len(), 3 | 6 | 8) && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_one = match sign {
        "+" | "@" => is_name(name),
        "#" => is_name(name) && !is_colour,
        _ => false,
    };
    is_one.then(|| sign.chars().next().map(|sign| (sign, name))).flatten()
}

/// A word that what follows belongs to: without that the sentence would break off.
pub(super) fn leans(word: &str) -> bool {
    const ARTICLES: &[&str] = &["the", "a", "an", "my", "our", "your", "his", "her", "no", "every", "each"];
    const PREPOSITIONS: &[&str] = &[
        "for", "of", "to", "till", "than", "with", "about", "between", "through", "in", "at", "as", "from",
        "since", "via", "per", "into", "onto", "vs", "versus", "last", "past",
    ];
    const BETWEEN: &[&str] =
        &["and", "or", "if", "not", "is", "are", "was", "be", "been", "-", "+", "&", "/", "="];
    [ARTICLES, PREPOSITIONS, BETWEEN].iter().any(|words| words.contains(&word))
}

/// A word after which a date is none that something is due at.
pub(super) fn tells_of_the_past(word: &str) -> bool {
    matches!(word, "last" | "past" | "every" | "each" | "since" | "from" | "not" | "no")
}

//! Whether two titles say nearly the same. Nothing is merged because of it: a person is told.

use std::collections::BTreeSet;

/// Words that tell nothing about what is meant.
const SMALL: &[&str] =
    &["a", "an", "the", "to", "of", "for", "and", "in", "on", "at", "my", "our", "some", "please"];

/// The words that a title is about, each once.
fn words(title: &str) -> BTreeSet<String> {
    let lower = title.to_lowercase();
    let all = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let plain = |word: &str| word.strip_suffix('s').filter(|word| word.len() > 2).unwrap_or(word).to_string();
    all.filter(|word| !SMALL.contains(word)).map(plain).collect()
}

/// Whether they share most of their words: at least three of four over both, or all words of the shorter one if it has two or more.
pub fn alike(one: &str, other: &str) -> bool {
    let (one, other) = (words(one), words(other));
    let shared = one.intersection(&other).count();
    let (all, fewer) = (one.union(&other).count(), one.len().min(other.len()));
    shared > 0 && (shared * 4 >= all * 3 || (fewer >= 2 && shared == fewer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_that_say_nearly_the_same_are_alike() {
        for (one, other, expected) in [
            ("buy milk", "Buy milk!", true),
            ("buy milk", "buy some oat milk", true),
            ("renew the passport", "renew my passports", true),
            ("buy milk", "buy bread", false),
            ("call mother", "call the plumber", false),
            ("milk", "milk", true),
            ("milk", "buy milk", false),
            ("", "", false),
            ("fix the footer on phones", "fix the header on phones", false),
        ] {
            assert_eq!((alike(one, other), alike(other, one)), (expected, expected), "{one} / {other}");
        }
    }
}

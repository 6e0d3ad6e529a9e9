//! Labels: `+home` in a captured line or in a title, `--label home` of a command. One rule for all of them. Case is kept and does
//! not matter: `Home` and `home` are one label, which is shown as it was first written.

use std::str::FromStr;

/// Characters of a label.
const CHARS_MAX: usize = 64;

/// A label, without the sign that it may be written with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label(String);

impl Label {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn into_string(self) -> String {
        self.0
    }
}

impl FromStr for Label {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = text.strip_prefix(['+', '#']).unwrap_or(text);
        match is_name(name) {
            true => Ok(Self(name.to_string())),
            false => Err(format!(
                "a label is one word of at most {CHARS_MAX} letters, digits, and - _ . / and begins with a letter, like home or \
                 web/footer"
            )),
        }
    }
}

/// What a label, a project or a context may be called.
pub(super) fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    name.chars().count() <= CHARS_MAX && name.starts_with(char::is_alphabetic) && name.chars().all(allowed)
}

/// Whether two labels are one.
pub fn is_same(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_one_word_with_or_without_its_sign() {
        for (text, label) in [
            ("home", "home"),
            ("+home", "home"),
            ("#Home", "Home"),
            ("web/footer", "web/footer"),
            ("Küche", "Küche"),
        ] {
            assert_eq!(text.parse::<Label>().map(Label::into_string), Ok(label.to_string()), "{text}");
        }
        let most = "ü".repeat(CHARS_MAX);
        assert!(most.parse::<Label>().is_ok());
        for text in
            ["", "+", "++home", "two words", "7up", "-x", "a,b", "a+b", "\u{1b}[31m", &format!("{most}x")]
        {
            let why = text.parse::<Label>().unwrap_err();
            assert!(why.contains("one word") && why.contains("begins with a letter"), "{text:?}: {why}");
        }
    }
}

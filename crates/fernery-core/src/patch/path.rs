//! Paths: as a patch spells them, and which of them may be written to at all.

use crate::names::is_unprintable;
use unicode_normalization::UnicodeNormalization;

const PATH_BYTES_MAX: usize = 4_096;
const NAME_BYTES_MAX: usize = 255;
const PARTS_MAX: usize = 100;

/// The path of `a/PATH b/PATH`. Both are the same, for nothing is renamed.
pub(super) fn of_header(names: &str) -> Result<String, String> {
    let (old, new) = if names.starts_with('"') {
        let (old, rest) = unquoted(names)?;
        let rest = rest.strip_prefix(' ').ok_or("has two names")?;
        let (new, rest) = unquoted(rest)?;
        if !rest.is_empty() {
            return Err("has two names and nothing else".into());
        }
        (old, new)
    } else {
        let names = plainly_written(names)?;
        // Spaces are not quoted, so the middle is where both halves are as long.
        let half =
            names.len().checked_sub(1).filter(|n| n % 2 == 0).ok_or("has two names that are the same")? / 2;
        match (names.get(..half), names.get(half..half + 1), names.get(half + 1..)) {
            (Some(old), Some(" "), Some(new)) => (old.to_string(), new.to_string()),
            _ => return Err("has two names that are the same".into()),
        }
    };
    match (old.strip_prefix("a/"), new.strip_prefix("b/")) {
        (Some(old), Some(new)) if old == new => Ok(new.to_string()),
        _ => Err("names one file, as a/… and as b/…".into()),
    }
}

/// The path that follows `---` or `+++`; `None` for /dev/null.
pub(super) fn of_side(text: &str, prefix: &str) -> Result<Option<String>, String> {
    if text == "/dev/null" {
        return Ok(None);
    }
    let (path, rest) = if text.starts_with('"') {
        unquoted(text)?
    } else {
        let (path, rest) = text.split_at(text.find('\t').unwrap_or(text.len()));
        (plainly_written(path)?.to_string(), rest)
    };
    // A name with a space in it ends in a tab here, so that tools that look for a date find none.
    let ends = if path.contains(' ') { "\t" } else { "" };
    match path.strip_prefix(prefix) {
        Some(path) if rest == ends => Ok(Some(path.to_string())),
        _ => Err(format!("names its file as {prefix}… and nothing else")),
    }
}

/// A name that git writes without quotes. Within one that has them git looks for another name.
fn plainly_written(name: &str) -> Result<&str, String> {
    let odd = |b: u8| matches!(b, b'"' | b'\\') || b.is_ascii_control();
    if name.bytes().any(odd) { Err("a name that git would put in quotes".into()) } else { Ok(name) }
}

/// A name in quotes as git writes one, and what follows it.
fn unquoted(text: &str) -> Result<(String, &str), String> {
    let bad = || "a name in quotes that git would not write".to_string();
    let mut bytes = Vec::new();
    let mut rest = text.strip_prefix('"').ok_or_else(bad)?.as_bytes();
    loop {
        match rest {
            [b'"', after @ ..] => {
                let after = &text[text.len() - after.len()..];
                let name = String::from_utf8(bytes).map_err(|_| "a name that is not UTF-8")?;
                let needless = name.is_ascii() && plainly_written(&name).is_ok();
                return if needless { Err(bad()) } else { Ok((name, after)) };
            }
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..] => {
                bytes.push(((a - b'0') << 6) | ((b - b'0') << 3) | (c - b'0'));
                rest = after;
            }
            [b'\\', escaped, after @ ..] => {
                bytes.push(match escaped {
                    b'a' => 7,
                    b'b' => 8,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'v' => 11,
                    b'f' => 12,
                    b'r' => b'\r',
                    b'"' | b'\\' => *escaped,
                    _ => return Err(bad()),
                });
                rest = after;
            }
            [byte, after @ ..] => {
                bytes.push(*byte);
                rest = after;
            }
            [] => return Err(bad()),
        }
    }
}

/// Whether anything may be written there, whoever asks.
pub(super) fn check(path: &str) -> Result<(), String> {
    if path.is_empty() || path.len() > PATH_BYTES_MAX {
        return Err(format!("a path has 1 to {PATH_BYTES_MAX} bytes"));
    }
    if path.starts_with('/') {
        return Err("an absolute path".into());
    }
    if path.chars().any(is_unprintable) {
        return Err("has characters that cannot be seen".into());
    }
    if path.contains('\\') {
        return Err("has a backslash, which parts folders elsewhere".into());
    }
    if path.split('/').count() > PARTS_MAX {
        return Err(format!("a path has at most {PARTS_MAX} parts"));
    }
    path.split('/').try_for_each(check_name)
}

fn check_name(name: &str) -> Result<(), String> {
    match name {
        "" => return Err("has an empty part".into()),
        "." | ".." => return Err(format!("`{name}` leads elsewhere")),
        _ => {}
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(format!("a part has at most {NAME_BYTES_MAX} bytes"));
    }
    if name.starts_with('-') {
        return Err("a part begins with a dash, which programs take for an option".into());
    }
    if name.ends_with(['.', ' ']) || name.contains(':') || is_short_name(name) {
        return Err("another system takes it for another name".into());
    }
    match folded(name).as_str() {
        ".git" => Err("is git's own".into()),
        ".gitmodules" => Err("links other repositories".into()),
        _ => Ok(()),
    }
}

/// Whether it may be the short name that another system gives: `git~1`.
fn is_short_name(name: &str) -> bool {
    let number = name.rsplit_once('~').map(|(_, number)| number);
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// One spelling for all that some file system takes for the same name.
pub(super) fn folded(path: &str) -> String {
    path.nfkc().flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfc().collect()
}

/// A text of a patch in a message: short, and nothing that a terminal would obey.
pub(super) fn shown(text: &str) -> String {
    let visible = |c| if is_unprintable(c) { '\u{fffd}' } else { c };
    text.chars().take(120).map(visible).collect()
}

//! Parts of ids that people type in place of whole ones, and what they mean.
//!
//! Ids that Fernery makes begin with their time, so ids made together begin alike and differ at their end. Their short form has
//! both: `019a8c5e-07398f` means `019a8c5e-…07398f`. Its beginning makes the search for it a short range of an index (a
//! minute of ids), its end makes it unique there. A beginning alone is understood as well. Of an id that a person chose only
//! `beginning…end` is understood: `WEB-1` must never mean `WEB-17`.

use crate::limits;

/// Characters of a whole id, as Fernery makes them.
pub const MADE_CHARS: usize = 36;
/// Characters at the beginning of a short form.
pub const HEAD_CHARS: usize = 8;
/// Fewest characters at the end of a short form.
pub const TAIL_CHARS_MIN: usize = 4;
/// Most characters at the end of a short form: the last group.
pub const TAIL_CHARS_MAX: usize = 12;
/// Fewest characters before and after the `…` of a chosen id.
const AROUND_CHARS_MIN: usize = 2;

/// Characters at the end of the usual short form.
pub const TAIL_CHARS: usize = 6;

/// The short form of an id that Fernery made; any other id as it is.
pub fn short(id: &str) -> String {
    if is_made(id) {
        format!("{}-{}", &id[..HEAD_CHARS], &id[MADE_CHARS - TAIL_CHARS..])
    } else {
        id.to_string()
    }
}

/// One meaning of a part: what an id begins and ends with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdPart {
    head: String,
    tail: String,
    /// Only of ids that Fernery made.
    made: bool,
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c))
}

/// Whether this is a whole id as Fernery makes them.
pub fn is_made(text: &str) -> bool {
    text.len() == MADE_CHARS && begins_made(text)
}

/// Whether an id that Fernery makes may begin like this.
fn begins_made(text: &str) -> bool {
    text.len() <= MADE_CHARS
        && text.bytes().enumerate().all(|(at, c)| match at {
            8 | 13 | 18 | 23 => c == b'-',
            _ => c.is_ascii_digit() || (b'a'..=b'f').contains(&c),
        })
}

impl IdPart {
    /// What a text may mean besides itself; nothing if it is whole or cannot be a part.
    pub fn meanings(text: &str) -> Vec<Self> {
        let mut found = Vec::new();
        if let Some((head, tail)) = text.split_once('…') {
            let is_name = |part: &str| {
                part.len() >= AROUND_CHARS_MIN
                    && part.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_'))
            };
            if is_name(head) && is_name(tail) {
                found.push(Self { head: head.into(), tail: tail.into(), made: false });
            }
            return found;
        }
        if text.len() >= MADE_CHARS || text.len() < HEAD_CHARS || !text.is_ascii() {
            return found;
        }
        if begins_made(text) {
            found.push(Self { head: text.into(), tail: String::new(), made: true });
        }
        if let Some((head, tail)) =
            text.split_at(HEAD_CHARS).1.strip_prefix('-').map(|tail| (&text[..=HEAD_CHARS], tail))
            && is_hex(&head[..HEAD_CHARS])
            && (TAIL_CHARS_MIN..=TAIL_CHARS_MAX).contains(&tail.len())
            && is_hex(tail)
        {
            found.push(Self { head: head.into(), tail: tail.into(), made: true });
        }
        found
    }

    /// What such an id begins with.
    pub fn head(&self) -> &str {
        &self.head
    }

    /// What such an id ends with; it may be empty.
    pub fn tail(&self) -> &str {
        &self.tail
    }

    /// How many ids that begin so are looked at.
    pub fn looked_at_max(&self) -> i64 {
        if self.made { limits::MADE_IDS_LOOKED_AT_MAX } else { limits::IDS_LOOKED_AT_MAX }
    }

    /// Whether this id is meant.
    pub fn means(&self, id: &str) -> bool {
        id.len() >= self.head.len() + self.tail.len()
            && id.starts_with(&self.head)
            && id.ends_with(&self.tail)
            && (!self.made || is_made(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MADE: &str = "019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f";

    fn means(part: &str, id: &str) -> bool {
        IdPart::meanings(part).iter().any(|meaning| meaning.means(id))
    }

    #[test]
    fn an_id_that_was_made_is_named_by_its_beginning_or_by_both_ends() {
        assert_eq!((short(MADE).as_str(), short("WEB-17").as_str()), ("019a8c5e-07398f", "WEB-17"));
        for part in
            ["019a8c5e-07398f", "019a8c5e-398f", "019a8c5e-dc0c0c07398f", "019a8c5e", "019a8c5e-7b1a-7"]
        {
            assert!(means(part, MADE), "{part}");
        }
        for part in ["019a8c5e-07398e", "019a8c5e-98f", "019a8c5", "07398f", "0c07398f", "", "-", MADE] {
            assert!(!means(part, MADE), "{part}");
        }
    }

    #[test]
    fn an_id_that_a_person_chose_is_never_guessed() {
        assert!(!means("WEB-1", "WEB-17") && !means("deadbeef", "deadbeef-and-more"));
        assert!(!means("deadbeef-1234", "deadbeef-x-1234"));
        assert!(means("the-footer…on-phones", "the-footer-overlaps-on-phones"));
        assert!(!means("the-footer…on-phones", "the-footer-overlaps-on-phone"));
        assert!(!means("abcd…bcde", "abcde"), "the ends must not overlap");
        for no in ["…", "a…", "…b", "a b…c d", "ab…cd…ef"] {
            assert!(IdPart::meanings(no).is_empty(), "{no}");
        }
    }
}

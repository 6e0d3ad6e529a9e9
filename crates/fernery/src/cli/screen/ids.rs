//! Short forms of ids, for people. The rule is in `id_part.rs` of the core; `cli/ids.rs` finds the whole id again.

use fernery_core::id_part::{HEAD_CHARS, TAIL_CHARS, TAIL_CHARS_MAX};
use std::collections::HashMap;

pub(super) use fernery_core::id_part::is_made;

/// Characters at the end of a short form; more where two ids of a table would look alike.
const TAILS: [usize; 3] = [TAIL_CHARS, 9, TAIL_CHARS_MAX];
/// Longest id of a person's own choice that is shown whole.
const CHOSEN_CHARS_MAX: usize = 20;

/// The short form of an id.
pub(in crate::cli) fn short(id: &str) -> String {
    with_tail(id, TAIL_CHARS)
}

fn with_tail(id: &str, tail: usize) -> String {
    if is_made(id) {
        return format!("{}-{}", &id[..HEAD_CHARS], &id[id.len() - tail..]);
    }
    if id.len() <= CHOSEN_CHARS_MAX || !id.is_ascii() {
        return id.to_string();
    }
    let head = CHOSEN_CHARS_MAX / 2;
    // As many at the end as there is room for, or more where it would look like another.
    let tail = (CHOSEN_CHARS_MAX - head - 1).max(tail);
    format!("{}…{}", &id[..head], &id[id.len() - tail..])
}

/// The short forms of ids that stand in one table: no two are alike.
pub(super) fn apart<'a>(ids: impl Iterator<Item = &'a str>) -> HashMap<&'a str, String> {
    let mut left: Vec<&str> = ids.collect();
    left.sort_unstable();
    left.dedup();
    let mut found = HashMap::new();
    for tail in TAILS {
        let mut uses: HashMap<String, Vec<&str>> = HashMap::new();
        for id in left.drain(..) {
            uses.entry(with_tail(id, tail)).or_default().push(id);
        }
        for (short, ids) in uses {
            match ids[..] {
                [only] => drop(found.insert(only, short)),
                _ => left.extend(ids),
            }
        }
    }
    found.extend(left.into_iter().map(|id| (id, id.to_string())));
    found
}

/// The same text with every whole id in it shortened.
pub(in crate::cli) fn shortened_in(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut word = String::new();
    let part_of_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    for c in text.chars().map(Some).chain([None]) {
        match c {
            Some(c) if part_of_word(c) => word.push(c),
            other => {
                out.push_str(&if is_made(&word) { short(&word) } else { std::mem::take(&mut word) });
                word.clear();
                out.extend(other);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: &str = "019a8c5e-7b1a-7cc3-98c4-dc0c0c07398f";

    #[test]
    fn an_id_is_shortened_to_its_beginning_and_its_end() {
        assert_eq!(short(JOB), "019a8c5e-07398f");
        assert_eq!(short("WEB-17"), "WEB-17");
        assert_eq!(short("the-footer-overlaps-on-phones"), "the-footer…on-phones");
        assert_eq!(short("the-footer…on-phones").chars().count(), 20);
    }

    #[test]
    fn ids_of_one_table_never_look_alike() {
        let alike = ["019a8c5e-7b1a-7cc3-98c4-dc0c0a07398f", "019a8c5e-7b1a-7cc3-98c4-dc0c0b07398f"];
        let found = apart([JOB, "WEB-17"].into_iter().chain(alike));
        assert_eq!(found[JOB], "019a8c5e-c0c07398f");
        assert_eq!(found[alike[1]], "019a8c5e-c0b07398f");
        assert_eq!(found["WEB-17"], "WEB-17");
        let same_end = ["aaaaaaaaaaaaaaa-1-bbbbbbbbbbbb", "aaaaaaaaaaaaaaa-2-bbbbbbbbbbbb"];
        assert_eq!(apart(same_end.into_iter())[same_end[0]], same_end[0], "whole where no part is enough");
    }

    #[test]
    fn ids_inside_a_text_are_shortened_too() {
        let text = format!("Confirm it: fernery ticket confirm {JOB}; not `{JOB}0`");
        assert_eq!(
            shortened_in(&text),
            format!("Confirm it: fernery ticket confirm {}; not `{JOB}0`", short(JOB))
        );
        assert_eq!(shortened_in(JOB), short(JOB));
    }
}

//! The note for the next attempt, made of comments: where each stands, the lines that it is about, and what it says. This is the
//! one place that words it.

use super::{Comment, PatchIndex, Place, Side};
use crate::limits;
use crate::names::unprintable_in;
use std::collections::HashMap;

/// What a patch shows of one side of a file.
type Shown<'p> = Vec<(u64, Vec<&'p str>)>;

/// Lines of the patch that are quoted for one comment.
const QUOTED_LINES_MAX: usize = 5;
/// Characters of each of them.
const QUOTED_CHARS_MAX: usize = 200;
/// Room that is kept for the sentence about what did not fit.
const CUT_BYTES: usize = 200;

const HEAD: &str = "Comments on the last patch:\n";

/// What the next attempt is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReviewNote {
    pub text: String,
    /// Comments that did not fit; the text says so too.
    pub left_out: usize,
}

/// The note that these comments make, in the order of files and lines; empty without comments.
pub fn note_of(comments: &[Comment], patch: &PatchIndex<'_>) -> ReviewNote {
    if comments.is_empty() {
        return ReviewNote::default();
    }
    let mut ordered: Vec<&Comment> = comments.iter().collect();
    ordered.sort_by_key(|comment| (&comment.place, comment.created_at, &comment.comment_id));
    let mut text = HEAD.to_string();
    let mut shown: HashMap<(&str, Side), Shown<'_>> = HashMap::new();
    for (told, comment) in ordered.iter().enumerate() {
        let Place { path, side, .. } = &comment.place;
        let of_file = shown.entry((path, *side)).or_insert_with(|| patch.shown(path, *side));
        let next = entry(comment, of_file);
        if text.len() + next.len() > limits::CRITERIA_BYTES_MAX - CUT_BYTES {
            let left_out = ordered.len() - told;
            text.push_str(&match left_out {
                1 => "\nOne more comment did not fit into this note.\n".to_string(),
                more => format!("\n{more} more comments did not fit into this note.\n"),
            });
            return ReviewNote { text, left_out };
        }
        text.push_str(&next);
    }
    ReviewNote { text, left_out: 0 }
}

/// The lines of a place; empty where the patch does not show it.
fn quoted<'s, 'p>(place: &Place, shown: &'s Shown<'p>) -> &'s [&'p str] {
    let of_hunk = |(first, texts): &'s (u64, Vec<&'p str>)| {
        let from = usize::try_from(place.first_line.checked_sub(*first)?).ok()?;
        let to = usize::try_from(place.last_line.checked_sub(*first)?).ok()?;
        texts.get(from..=to)
    };
    shown.iter().find_map(of_hunk).unwrap_or_default()
}

fn entry(comment: &Comment, shown: &Shown<'_>) -> String {
    let Place { path, first_line: first, last_line: last, side } = &comment.place;
    let lines = if first == last { format!("line {first}") } else { format!("lines {first} to {last}") };
    let before = if *side == Side::Old { " of the file before the patch" } else { "" };
    let mut text = format!("\n{path}, {lines}{before}:\n");
    let quoted = quoted(&comment.place, shown);
    for line in quoted.iter().take(QUOTED_LINES_MAX) {
        text.push_str("> ");
        let shown: String = line.chars().take(QUOTED_CHARS_MAX).collect();
        text.push_str(&visible(&shown));
        text.push_str(if line.chars().nth(QUOTED_CHARS_MAX).is_some() { " …\n" } else { "\n" });
    }
    if quoted.len() > QUOTED_LINES_MAX {
        text.push_str("> …\n");
    }
    text.push_str(&visible(comment.text.trim()));
    text.push('\n');
    text
}

/// A text in which characters that would not be seen stand by their numbers: a person reads the note before it is sent.
fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut from = 0;
    for (at, c) in unprintable_in(text).filter(|(_, c)| !matches!(c, '\n' | '\t')) {
        shown.push_str(&text[from..at]);
        shown.push_str(&format!("U+{:04X}", c as u32));
        from = at + c.len_utf8();
    }
    shown.push_str(&text[from..]);
    shown
}

#[cfg(test)]
mod tests {
    use super::super::tests::{PATCH, at};
    use super::*;
    use crate::Timestamp;
    use crate::artifact::{CommentId, RunId};

    fn comment(id: usize, place: Place, text: &str) -> Comment {
        Comment {
            comment_id: CommentId::stored(&format!("c{id}")),
            run_id: RunId::stored("r"),
            place,
            text: text.into(),
            author: "a".into(),
            created_at: Timestamp::from_millis(id as i64),
            updated_at: Timestamp::from_millis(id as i64),
        }
    }

    #[test]
    fn a_note_says_where_each_comment_stands_and_quotes_its_lines() {
        let index = PatchIndex::of(PATCH).unwrap();
        let comments = [
            comment(3, at("a.sh", Side::New, 21, 22), "Not y.\n"),
            comment(2, at("a.sh", Side::Old, 2, 2), "Keep this."),
            comment(1, at("a.sh", Side::New, 2, 3), "One line\nis enough."),
        ];
        assert_eq!(
            note_of(&comments, &index).text,
            "Comments on the last patch:\n\
             \na.sh, line 2 of the file before the patch:\n> echo old\nKeep this.\n\
             \na.sh, lines 2 to 3:\n> echo new\n> echo more\nOne line\nis enough.\n\
             \na.sh, lines 21 to 22:\n> y\n> z\nNot y.\n"
        );
        assert_eq!(note_of(&[], &index), ReviewNote::default());
    }

    #[test]
    fn a_note_has_room_for_the_sentence_that_says_what_did_not_fit() {
        let index = PatchIndex::of(PATCH).unwrap();
        let long = "x".repeat(limits::COMMENT_BYTES_MAX);
        let many: Vec<Comment> = (0..40).map(|n| comment(n, at("a.sh", Side::New, 1, 1), &long)).collect();
        let note = note_of(&many, &index);
        assert!(note.text.len() <= limits::CRITERIA_BYTES_MAX, "{}", note.text.len());
        assert_eq!(note.left_out, 40 - note.text.matches(&long).count());
        assert!(note.left_out > 20);
        assert!(
            note.text.ends_with(&format!("\n{} more comments did not fit into this note.\n", note.left_out))
        );
        let fits = note_of(&many[..15], &index);
        assert_eq!((fits.left_out, fits.text.matches(&long).count()), (0, 15));
    }

    #[test]
    fn what_would_not_be_seen_is_seen_in_a_note() {
        let patch = PATCH.replace("+echo new", "+echo \u{202e}new");
        let index = PatchIndex::of(&patch).unwrap();
        let note = note_of(&[comment(1, at("a.sh", Side::New, 2, 2), "a\u{1b}[31m\tb\nc")], &index).text;
        assert!(note.contains("> echo U+202Enew\naU+001B[31m\tb\nc\n"), "{note}");
    }

    #[test]
    fn long_quotes_are_cut_with_a_mark() {
        let patch = PATCH.replace("+echo new", &format!("+{}", "ü".repeat(300)));
        let index = PatchIndex::of(&patch).unwrap();
        let note = note_of(&[comment(1, at("a.sh", Side::New, 2, 2), "Too long.")], &index).text;
        assert!(note.contains(&format!("> {} …\nToo long.", "ü".repeat(200))), "{note}");
    }
}

//! A patch as rows to look at: the line numbers of both sides, and which words of a changed line differ.

use super::{Body, Patch, text};
use similar::{ChangeTag, TextDiff};

/// Changed lines that are compared word by word are at most this long; longer ones are marked whole.
const COMPARED_BYTES_MAX: usize = 400;
/// Pairs of lines of one patch that are compared word by word.
const COMPARED_PAIRS_MAX: usize = 4_000;
/// Lines that have less in common are two different lines, not a changed one.
const ALIKE_MIN: f32 = 0.4;

/// Lines that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk<'p> {
    /// What git says the hunk is in, such as a function; may be empty.
    pub place: &'p str,
    pub rows: Vec<Row<'p>>,
}

/// What becomes of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Stays,
    Goes,
    Comes,
}

/// One line of a hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row<'p> {
    pub fate: Fate,
    /// Its number in the old file, if it is there.
    pub old: Option<u64>,
    /// Its number in the new file, if it is there.
    pub new: Option<u64>,
    /// Its text, in order.
    pub parts: Vec<Part<'p>>,
    /// The file ends here without a line's end.
    pub unended: bool,
}

/// A piece of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'p> {
    pub text: &'p str,
    /// It is what differs from the line on the other side.
    pub differs: bool,
}

impl<'p> Row<'p> {
    /// Its text, before words are marked.
    pub fn whole(&self) -> &'p str {
        self.parts.first().map_or("", |part| part.text)
    }
}

/// The hunks of each file of a patch that was read from this text, in the order of its files, with the words that differ.
pub fn hunks<'p>(text: &'p str, patch: &Patch) -> Vec<Vec<Hunk<'p>>> {
    let mut of_files = plain_hunks(text, patch);
    let mut pairs_left = COMPARED_PAIRS_MAX;
    for hunk in of_files.iter_mut().flatten() {
        mark_words(&mut hunk.rows, &mut pairs_left);
    }
    of_files
}

/// The same without the words that differ: each row has one part.
pub fn plain_hunks<'p>(text: &'p str, patch: &Patch) -> Vec<Vec<Hunk<'p>>> {
    let mut lines = text.split_terminator('\n').enumerate().map(|(n, line)| (n + 1, line)).peekable();
    let mut of_files = Vec::with_capacity(patch.files.len());
    for (nth, file) in patch.files.iter().enumerate() {
        let end = patch.files.get(nth + 1).map_or(usize::MAX, |next| next.line);
        let mut found = Vec::new();
        while let Some((_, line)) = lines.next_if(|(number, _)| *number < end) {
            if let (Body::Text { .. }, Some(((old, old_lines), (new, new_lines)))) =
                (&file.body, text::ranges(line))
            {
                let place = line.split_once(" @@").map_or("", |(_, place)| place.trim_start());
                let start = (old + u64::from(old_lines == 0), new + u64::from(new_lines == 0));
                let rows = rows(&mut lines, start, (old_lines, new_lines));
                found.push(Hunk { place, rows });
            }
        }
        of_files.push(found);
    }
    of_files
}

/// The lines of two texts as the rows of one hunk, with the words that differ.
pub fn between<'p>(before: &'p str, after: &'p str) -> Vec<Row<'p>> {
    let lines = |text: &'p str| -> Vec<&'p str> {
        if text.is_empty() { Vec::new() } else { text.split('\n').collect() }
    };
    let (old, new) = (lines(before), lines(after));
    let number = |at: Option<usize>| at.and_then(|at| u64::try_from(at + 1).ok());
    let row = |change: similar::Change<&str>| {
        let (fate, text) = match (change.tag(), change.old_index(), change.new_index()) {
            (ChangeTag::Insert, _, Some(at)) => (Fate::Comes, new[at]),
            (ChangeTag::Delete, Some(at), _) => (Fate::Goes, old[at]),
            (_, Some(at), _) => (Fate::Stays, old[at]),
            (_, None, _) => return None,
        };
        let parts = vec![Part { text, differs: false }];
        let (old, new) = (number(change.old_index()), number(change.new_index()));
        Some(Row { fate, old, new, parts, unended: false })
    };
    let mut rows: Vec<Row<'p>> =
        TextDiff::from_slices(&old, &new).iter_all_changes().filter_map(row).collect();
    let mut pairs_left = COMPARED_PAIRS_MAX;
    mark_words(&mut rows, &mut pairs_left);
    rows
}

/// The places of rows that tell a difference: those that change, and so many around each.
pub fn telling(rows: &[Row<'_>], around: usize) -> Vec<usize> {
    let changes = |from: usize, until: usize| rows[from..until].iter().any(|row| row.fate != Fate::Stays);
    (0..rows.len())
        .filter(|at| changes(at.saturating_sub(around), (at + around + 1).min(rows.len())))
        .collect()
}

fn rows<'p>(
    lines: &mut std::iter::Peekable<impl Iterator<Item = (usize, &'p str)>>,
    (mut old, mut new): (u64, u64),
    (mut old_left, mut new_left): (u64, u64),
) -> Vec<Row<'p>> {
    let mut rows: Vec<Row<'p>> = Vec::new();
    while old_left + new_left > 0 {
        let Some((_, line)) = lines.next() else { break };
        let (fate, of_old, of_new) = match line.as_bytes().first() {
            Some(b'-') => (Fate::Goes, 1, 0),
            Some(b'+') => (Fate::Comes, 0, 1),
            _ => (Fate::Stays, 1, 1),
        };
        rows.push(Row {
            fate,
            old: (of_old == 1).then_some(old),
            new: (of_new == 1).then_some(new),
            parts: vec![Part { text: line.get(1..).unwrap_or_default(), differs: false }],
            unended: lines.next_if(|(_, next)| *next == text::NO_NEWLINE).is_some(),
        });
        (old, new) = (old + of_old, new + of_new);
        (old_left, new_left) = (old_left.saturating_sub(of_old), new_left.saturating_sub(of_new));
    }
    rows
}

/// Where as many lines come as go, each is compared with its counterpart.
fn mark_words(rows: &mut [Row<'_>], pairs_left: &mut usize) {
    let mut from = 0;
    while from < rows.len() {
        let gone = rows[from..].iter().take_while(|row| row.fate == Fate::Goes).count();
        let come = rows[from + gone..].iter().take_while(|row| row.fate == Fate::Comes).count();
        if gone == come {
            let (before, after) = rows[from..from + gone + come].split_at_mut(gone);
            for (old, new) in before.iter_mut().zip(after).take(*pairs_left) {
                compare(old, new);
            }
            *pairs_left = pairs_left.saturating_sub(gone);
        }
        from += (gone + come).max(1);
    }
}

fn compare(old: &mut Row<'_>, new: &mut Row<'_>) {
    let (before, after) = (old.whole(), new.whole());
    if before.len().max(after.len()) > COMPARED_BYTES_MAX {
        return;
    }
    let words = TextDiff::from_words(before, after);
    if words.ratio() < ALIKE_MIN {
        return;
    }
    let (mut at_old, mut at_new) = (0, 0);
    let (mut old_parts, mut new_parts) = (Vec::new(), Vec::new());
    for change in words.iter_all_changes() {
        let bytes = change.value().len();
        let differs = change.tag() != ChangeTag::Equal;
        if change.tag() != ChangeTag::Insert {
            push(&mut old_parts, Part { text: &before[at_old..at_old + bytes], differs }, before);
            at_old += bytes;
        }
        if change.tag() != ChangeTag::Delete {
            push(&mut new_parts, Part { text: &after[at_new..at_new + bytes], differs }, after);
            at_new += bytes;
        }
    }
    (old.parts, new.parts) = (old_parts, new_parts);
}

/// Adds a part, or makes the last one longer, of which it is the continuation.
fn push<'p>(parts: &mut Vec<Part<'p>>, part: Part<'p>, line: &'p str) {
    let so_far: usize = parts.iter().map(|part| part.text.len()).sum();
    match parts.last_mut() {
        Some(last) if last.differs == part.differs => {
            last.text = &line[so_far - last.text.len()..so_far + part.text.len()];
        }
        _ => parts.push(part),
    }
}

/// One row of the view in which both sides stand beside each other.
pub type Beside<'h, 'p> = (Option<&'h Row<'p>>, Option<&'h Row<'p>>);

/// The rows of a hunk for a view in which both sides stand beside each other.
pub fn beside<'h, 'p>(rows: &'h [Row<'p>]) -> Vec<Beside<'h, 'p>> {
    let mut pairs = Vec::with_capacity(rows.len());
    let mut rest = rows;
    while let [first, others @ ..] = rest {
        if first.fate == Fate::Stays {
            pairs.push((Some(first), Some(first)));
            rest = others;
            continue;
        }
        let gone = rest.iter().take_while(|row| row.fate == Fate::Goes).count();
        let come = rest[gone..].iter().take_while(|row| row.fate == Fate::Comes).count();
        let (before, after) = rest[..gone + come].split_at(gone);
        pairs.extend((0..gone.max(come)).map(|nth| (before.get(nth), after.get(nth))));
        rest = &rest[gone + come..];
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "\
diff --git a/greet.sh b/greet.sh
index 1111111111111111111111111111111111111111..2222222222222222222222222222222222222222 100755
--- a/greet.sh
+++ b/greet.sh
@@ -1,3 +1,3 @@
 #!/bin/sh
-echo \"Hello, $1!\"
+echo \"Hello, ${1:-world}!\"
 # end
@@ -10,2 +10,3 @@ main() {
 a
-b
+b
+c
\\ No newline at end of file
diff --git a/new.txt b/new.txt
new file mode 100644
index 0000000000000000000000000000000000000000..3333333333333333333333333333333333333333
--- /dev/null
+++ b/new.txt
@@ -0,0 +1 @@
+diff --git a/x b/x
";

    fn shown(rows: &[Row<'_>]) -> Vec<String> {
        let number = |of: Option<u64>| of.map_or("-".to_string(), |n| n.to_string());
        let part = |part: &Part<'_>| match part.differs {
            true => format!("[{}]", part.text),
            false => part.text.to_string(),
        };
        let text = |row: &Row<'_>| row.parts.iter().map(part).collect::<String>();
        let end = |row: &Row<'_>| if row.unended { " (unended)" } else { "" };
        rows.iter()
            .map(|row| format!("{}/{} {}{}", number(row.old), number(row.new), text(row), end(row)))
            .collect()
    }

    #[test]
    fn every_line_has_its_numbers_and_changed_words_are_marked() {
        let patch = super::super::read(PATCH).unwrap();
        let files = hunks(PATCH, &patch);
        assert_eq!(files.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(
            shown(&files[0][0].rows),
            ["1/1 #!/bin/sh", "2/- echo \"Hello, [$1!\"]", "-/2 echo \"Hello, [${1:-world}!\"]", "3/3 # end"]
        );
        assert_eq!(files[0][1].place, "main() {");
        assert_eq!(shown(&files[0][1].rows), ["10/10 a", "11/- b", "-/11 b", "-/12 c (unended)"]);
        assert_eq!(shown(&files[1][0].rows), ["-/1 diff --git a/x b/x"], "content is no header");
    }

    #[test]
    fn beside_each_other_what_goes_stands_left_of_what_comes() {
        let patch = super::super::read(PATCH).unwrap();
        let files = hunks(PATCH, &patch);
        let sides = |pairs: Vec<Beside<'_, '_>>| -> Vec<(Option<u64>, Option<u64>)> {
            pairs.iter().map(|(old, new)| (old.and_then(|r| r.old), new.and_then(|r| r.new))).collect()
        };
        assert_eq!(
            sides(beside(&files[0][1].rows)),
            [(Some(10), Some(10)), (Some(11), Some(11)), (None, Some(12))]
        );
    }

    #[test]
    fn lines_that_have_little_in_common_or_are_long_are_not_compared() {
        let long = "x ".repeat(COMPARED_BYTES_MAX);
        for (old, new) in [("apples and pears", "(fn main)"), (long.as_str(), "x x")] {
            let text = format!(
                "diff --git a/f b/f\nindex {0}..{1} 100644\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-{old}\n+{new}\n",
                "1".repeat(40),
                "2".repeat(40)
            );
            let patch = super::super::read(&text).unwrap();
            let rows = &hunks(&text, &patch)[0][0].rows;
            assert!(rows.iter().all(|row| row.parts.len() == 1 && !row.parts[0].differs), "{rows:?}");
        }
    }
}

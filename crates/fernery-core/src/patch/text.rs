//! Content that changes line by line.

use super::lines::{Flaw, Lines};
use super::{Body, Head, Mode, path};

pub(super) const NO_NEWLINE: &str = "\\ No newline at end of file";

/// From `---` to the last line of the last hunk.
pub(super) fn read(
    lines: &mut Lines<'_>,
    path: &str,
    head: &Head,
    after: Option<Mode>,
) -> Result<Body, Flaw> {
    if head.ids.is_none() {
        return Err(Flaw::new(lines.number(), "content without object ids: git diff --full-index"));
    }
    side(lines, "--- ", "a/", path, head.is_new)?;
    side(lines, "+++ ", "b/", path, head.is_deleted)?;
    let mut hunks = Hunks { is_link: after == Some(Mode::Symlink), ..Hunks::default() };
    while lines.peek().is_some_and(|line| line.starts_with("@@ ")) {
        hunks.read(lines)?;
    }
    if hunks.insertions + hunks.deletions == 0 {
        return Err(Flaw::new(lines.number(), "nothing changes"));
    }
    if hunks.is_link && (hunks.insertions != 1 || !hunks.new_ended) {
        return Err(Flaw::new(lines.number(), "a symbolic link says in one line where it leads"));
    }
    Ok(Body::Text { insertions: hunks.insertions, deletions: hunks.deletions, link: hunks.link })
}

fn side(lines: &mut Lines<'_>, word: &str, prefix: &str, path: &str, is_none: bool) -> Result<(), Flaw> {
    let number = lines.number();
    let text = lines.next().and_then(|line| line.strip_prefix(word));
    let text = text.ok_or_else(|| Flaw::new(number, format!("`{word}` is missing")))?;
    let named = path::of_side(text, prefix).map_err(|why| Flaw::new(number, why))?;
    match named {
        None if is_none => Ok(()),
        Some(named) if !is_none && named == path => Ok(()),
        _ => Err(Flaw::new(number, "names another file than `diff --git`")),
    }
}

#[derive(Default)]
struct Hunks {
    insertions: u64,
    deletions: u64,
    /// The first line of the old file that no hunk has come to.
    reached: u64,
    /// The last line has come, and has no end.
    old_ended: bool,
    new_ended: bool,
    is_link: bool,
    link: String,
}

impl Hunks {
    fn read(&mut self, lines: &mut Lines<'_>) -> Result<(), Flaw> {
        let number = lines.number();
        let header = lines.next().unwrap_or_default();
        let Some(((old, old_lines), (new, new_lines))) = ranges(header) else {
            return Err(Flaw::new(number, "a hunk begins with `@@ -line,lines +line,lines @@`"));
        };
        // A range of no lines stands behind the line that it names.
        let (old, new) = (old + u64::from(old_lines == 0), new + u64::from(new_lines == 0));
        if old < self.reached.max(1) || new + self.deletions != old + self.insertions {
            return Err(Flaw::new(number, "the hunk is not where the hunks before it lead"));
        }
        self.reached = old + old_lines;
        let (mut old_left, mut new_left) = (old_lines, new_lines);
        let mut changes = false;
        while old_left + new_left > 0 {
            let number = lines.number();
            let line = lines.next().ok_or_else(|| Flaw::new(number, "the hunk is cut off"))?;
            let (of_old, of_new) = match line.as_bytes().first() {
                Some(b' ') => (1, 1),
                Some(b'-') => (1, 0),
                Some(b'+') => (0, 1),
                _ => return Err(Flaw::new(number, "a line of a hunk begins with a space, - or +")),
            };
            if of_old > old_left || of_new > new_left {
                return Err(Flaw::new(number, "the hunk has other lines than it says"));
            }
            if of_old == 1 && self.old_ended || of_new == 1 && self.new_ended {
                return Err(Flaw::new(number, "a line behind the last one"));
            }
            (old_left, new_left) = (old_left - of_old, new_left - of_new);
            changes |= of_old != of_new;
            self.insertions += u64::from(of_new > of_old);
            self.deletions += u64::from(of_old > of_new);
            if self.is_link && of_new == 1 {
                self.link = line[1..].to_string();
            }
            if lines.peek() == Some(NO_NEWLINE) {
                lines.next();
                self.old_ended |= of_old == 1;
                self.new_ended |= of_new == 1;
            }
        }
        if changes { Ok(()) } else { Err(Flaw::new(number, "the hunk changes nothing")) }
    }
}

pub(super) type Range = (u64, u64);

pub(super) fn ranges(header: &str) -> Option<(Range, Range)> {
    let (ranges, _) = header.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    Some((range(old)?, range(new)?))
}

fn range(text: &str) -> Option<Range> {
    let number = |text: &str| {
        let plain = (1..=9).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        if plain { text.parse().ok() } else { None }
    };
    match text.split_once(',') {
        Some((start, lines)) => Some((number(start)?, number(lines)?)),
        None => Some((number(text)?, 1)),
    }
}

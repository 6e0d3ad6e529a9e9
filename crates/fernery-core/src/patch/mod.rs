//! A patch, read strictly: what `git diff --binary --full-index --no-renames` writes, and nothing else.
//!
//! git itself is lenient: it skips what it does not understand, guesses names and fuzzes. What decides must not be readable
//! in two ways, so whatever is not written as git writes it is refused, with its line. Whether a patch applies to a tree is
//! for git to say; what it may touch is for [`policy`] to say.

mod binary;
pub mod command_words;
mod lines;
mod path;
pub mod policy;
pub mod protects;
pub mod risk;
pub mod rows;
#[cfg(test)]
mod tests;
mod text;

pub use lines::Flaw;

use lines::Lines;
use std::collections::BTreeMap;

/// The changes of a patch, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// One for each file.
    pub files: Vec<FileChange>,
}

/// What a patch does to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Its path from the root of the repository, safe to write to.
    pub path: String,
    /// What it was; `None`: it is new.
    pub before: Option<Mode>,
    /// What it will be; `None`: it is deleted.
    pub after: Option<Mode>,
    /// How its content changes.
    pub body: Body,
    /// The objects that it was and will be, as the patch says; `None` where only the mode changes.
    pub ids: Option<(String, String)>,
    /// One spelling for all that some file system takes for its path.
    folded: String,
    /// The line of the patch where it begins.
    pub line: usize,
}

/// What kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A plain file.
    File,
    /// One that can be executed.
    Executable,
    /// A symbolic link; its content is where it leads.
    Symlink,
}

/// How content changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Not at all: only the mode, or an empty file.
    Same,
    /// Line by line.
    Text {
        insertions: u64,
        deletions: u64,
        /// What the lines that come say, of a symbolic link; empty otherwise.
        link: String,
    },
    /// As a whole.
    Binary {
        /// Bytes of the new content.
        bytes: u64,
    },
}

/// Reads a patch whole, or says what is wrong first.
pub fn read(patch: &str) -> Result<Patch, Flaw> {
    let mut lines = Lines::new(patch)?;
    let mut files = Vec::new();
    let mut unpacked = 0;
    while lines.peek().is_some() {
        files.push(file(&mut lines, &mut unpacked)?);
    }
    apart(&files)?;
    Ok(Patch { files })
}

/// No two changes meet in one place, whatever the file system takes for the same name; and nothing is written behind
/// something that is no folder.
fn apart(files: &[FileChange]) -> Result<(), Flaw> {
    let mut places: BTreeMap<&str, &FileChange> = BTreeMap::new();
    for file in files {
        if let Some(other) = places.insert(&file.folded, file)
            && !turns_into(other, file)
        {
            let why = format!("`{}` and `{}` are the same file to some file systems", other.path, file.path);
            return Err(Flaw::new(file.line, why));
        }
    }
    for (place, file) in &places {
        for (end, _) in place.match_indices('/') {
            // A file that makes room for a folder goes, and the other way round.
            let makes_room =
                |gone: &FileChange, new: &FileChange| gone.after.is_none() && new.before.is_none();
            if let Some(above) = places.get(&place[..end])
                && !(makes_room(above, file) || makes_room(file, above))
            {
                let why = format!("`{}` lies behind `{}`, which is no folder", file.path, above.path);
                return Err(Flaw::new(file.line, why));
            }
        }
    }
    Ok(())
}

/// A file becomes a symbolic link, or the other way round: git writes what goes, and at once what comes.
fn turns_into(old: &FileChange, new: &FileChange) -> bool {
    let is_link = |mode: Option<Mode>| mode == Some(Mode::Symlink);
    old.path == new.path
        && old.after.is_none()
        && new.before.is_none()
        && is_link(old.before) != is_link(new.after)
}

/// What stands between a file's first line and its content.
#[derive(Default)]
struct Head {
    old_mode: Option<Mode>,
    new_mode: Option<Mode>,
    is_new: bool,
    is_deleted: bool,
    /// By `old mode` and `new mode`, as if it changed.
    modes_are_said: bool,
    ids: Option<(String, String)>,
}

fn file(lines: &mut Lines<'_>, unpacked: &mut u64) -> Result<FileChange, Flaw> {
    let line = lines.number();
    let names = lines.next().and_then(|line| line.strip_prefix("diff --git "));
    let names = names.ok_or_else(|| Flaw::new(line, "a file begins with `diff --git`"))?;
    let path = path::of_header(names).map_err(|why| Flaw::new(line, why))?;
    path::check(&path).map_err(|why| Flaw::new(line, format!("`{}`: {why}", path::shown(&path))))?;
    let head = head(lines, line)?;
    let (before, after) = modes(&head, line)?;
    let body = match lines.peek() {
        Some(next) if next.starts_with("--- ") => text::read(lines, &path, &head, after)?,
        Some("GIT binary patch") => binary::read(lines, &head, unpacked)?,
        _ => same(&head, line)?,
    };
    if after == Some(Mode::Symlink) && !matches!(&body, Body::Text { .. }) {
        return Err(Flaw::new(line, "a symbolic link says in one line where it leads"));
    }
    let folded = path::folded(&path);
    Ok(FileChange { path, before, after, body, ids: head.ids, folded, line })
}

fn head(lines: &mut Lines<'_>, begins: usize) -> Result<Head, Flaw> {
    let mut head = Head::default();
    loop {
        let number = lines.number();
        let Some(line) = lines.peek() else { break };
        let mode = |text: &str| mode(text).map_err(|why| Flaw::new(number, why));
        let is_said = head.old_mode.is_some() || head.new_mode.is_some();
        if is_said
            && ["old mode ", "new file mode ", "deleted file mode "].iter().any(|w| line.starts_with(w))
        {
            return Err(Flaw::new(number, "the mode is said twice"));
        }
        if let Some(text) = line.strip_prefix("old mode ") {
            head.old_mode = Some(mode(text)?);
            head.modes_are_said = true;
            lines.next();
            let next = lines.next().and_then(|line| line.strip_prefix("new mode "));
            head.new_mode = Some(mode(next.ok_or_else(|| Flaw::new(number + 1, "`new mode` is missing"))?)?);
        } else if let Some(text) = line.strip_prefix("new file mode ") {
            head.new_mode = Some(mode(text)?);
            head.is_new = true;
            lines.next();
        } else if let Some(text) = line.strip_prefix("deleted file mode ") {
            head.old_mode = Some(mode(text)?);
            head.is_deleted = true;
            lines.next();
        } else if let Some(text) = line.strip_prefix("index ") {
            let (ids, kept) = text.split_once(' ').map_or((text, None), |(ids, mode)| (ids, Some(mode)));
            head.ids = Some(object_ids(ids).map_err(|why| Flaw::new(number, why))?);
            if let Some(kept) = kept {
                if is_said {
                    return Err(Flaw::new(number, "the mode is said twice"));
                }
                head.old_mode = Some(mode(kept)?);
                head.new_mode = head.old_mode;
            }
            lines.next();
            break;
        } else if ["similarity ", "dissimilarity ", "rename ", "copy "].iter().any(|w| line.starts_with(w)) {
            let why = "renames and copies are written as what goes and what comes: git diff --no-renames";
            return Err(Flaw::new(number, why));
        } else {
            break;
        }
        if number > begins + 4 {
            return Err(Flaw::new(number, "too much is said about one file"));
        }
    }
    Ok(head)
}

fn mode(text: &str) -> Result<Mode, String> {
    match text {
        "100644" => Ok(Mode::File),
        "100755" => Ok(Mode::Executable),
        "120000" => Ok(Mode::Symlink),
        "160000" => Err("a link to another repository cannot be part of a patch".into()),
        other => Err(format!("no file has the mode `{}`", path::shown(other))),
    }
}

/// Two full ids of SHA-1: what is abbreviated may mean another object elsewhere, and what is longer git ignores, mode and all.
fn object_ids(text: &str) -> Result<(String, String), String> {
    let is_id = |id: &str| id.len() == 40 && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    match text.split_once("..") {
        Some((old, new)) if is_id(old) && is_id(new) => Ok((old.into(), new.into())),
        _ => Err("has two full object ids: git diff --full-index".into()),
    }
}

fn is_nothing(id: &str) -> bool {
    id.bytes().all(|b| b == b'0')
}

/// What the file was and will be. The ids say the same as the words, or one of them lies.
fn modes(head: &Head, line: usize) -> Result<(Option<Mode>, Option<Mode>), Flaw> {
    let flaw = |why: &str| Err(Flaw::new(line, why));
    if head.is_new && head.is_deleted {
        return flaw("a file is new or deleted, not both");
    }
    if let Some((old, new)) = &head.ids
        && (is_nothing(old) != head.is_new || is_nothing(new) != head.is_deleted)
    {
        return flaw("its object ids say otherwise than its first lines");
    }
    match (head.old_mode, head.new_mode) {
        (None, None) => flaw("its mode is missing"),
        (old, new) if head.is_new && old.is_some() || head.is_deleted && new.is_some() => {
            flaw("its mode is said twice")
        }
        (Some(old), Some(new)) if (old == Mode::Symlink) != (new == Mode::Symlink) => {
            flaw("a file becomes a symbolic link, or the other way round: git writes that as two changes")
        }
        (Some(old), Some(new)) if old == new && head.modes_are_said => flaw("its mode does not change"),
        modes => Ok(modes),
    }
}

/// The id of an empty file.
const EMPTY: &str = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";

/// A change without content: of the mode alone, or of an empty file.
fn same(head: &Head, line: usize) -> Result<Body, Flaw> {
    let fits = match &head.ids {
        None => head.old_mode.is_some() && head.new_mode.is_some(),
        Some((_, new)) if head.is_new => new == EMPTY,
        Some((old, _)) if head.is_deleted => old == EMPTY,
        Some(_) => false,
    };
    if fits { Ok(Body::Same) } else { Err(Flaw::new(line, "its content is missing")) }
}

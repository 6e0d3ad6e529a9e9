//! Git directories that are written by hand: three entries and the object folders that they borrow from. No template,
//! hook or foreign configuration gets in, and objects are shared, not copied.

use super::repository::Repository;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Files are taken byte by byte: no conversion of line endings, no keywords, no filters.
const ATTRIBUTES: &str = "* -text -ident -filter -working-tree-encoding !eol\n";

/// A new git directory.
pub(super) struct Ground<'a> {
    /// Where it will be.
    pub dir: &'a Path,
    /// The repository whose objects it borrows.
    pub repository: &'a Repository,
    /// Further object folders that it borrows from.
    pub more_objects: &'a [PathBuf],
    /// Its branch and the commit of that; `None`: it is bare and has no branch.
    pub branch: Option<(&'a str, &'a str)>,
}

impl Ground<'_> {
    pub(super) fn make(&self) -> io::Result<()> {
        let dir = self.dir;
        for folder in ["objects/info", "objects/pack", "refs/heads", "info"] {
            fs::create_dir_all(dir.join(folder))?;
        }
        let mut alternates = fs::File::create(dir.join("objects/info/alternates"))?;
        for objects in self.repository.objects.iter().chain(self.more_objects) {
            alternates.write_all(OsStr::as_bytes(objects.as_os_str()))?;
            alternates.write_all(b"\n")?;
        }
        fs::write(dir.join("info/attributes"), ATTRIBUTES)?;
        if let Some(shallow) = &self.repository.shallow {
            fs::write(dir.join("shallow"), shallow)?;
        }
        let bare = self.branch.is_none();
        let mut config =
            format!("[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = {bare}\n");
        if let Some((branch, commit)) = self.branch {
            // For agents that commit by themselves; their commits are not used as such.
            config.push_str("[user]\n\tname = agent\n\temail = agent@localhost\n[gc]\n\tauto = 0\n");
            let file = dir.join("refs/heads").join(branch);
            if let Some(folder) = file.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::write(file, format!("{commit}\n"))?;
        }
        fs::write(dir.join("config"), config)?;
        let head = self.branch.map_or("main", |(branch, _)| branch);
        fs::write(dir.join("HEAD"), format!("ref: refs/heads/{head}\n"))
    }
}

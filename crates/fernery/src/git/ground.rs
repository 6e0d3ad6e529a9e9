//! Git directories of our own making, written by hand: three entries and what they borrow from. No template, no hook, no
//! configuration of anybody's gets in, and objects are shared, not copied.

use super::repository::Repository;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Files are taken as the bytes that they are: no line endings, no keywords, no filters.
const ATTRIBUTES: &str = "* -text -ident -filter -working-tree-encoding !eol\n";

/// A new git directory.
pub(crate) struct Ground<'a> {
    /// Where it will be.
    pub(crate) dir: &'a Path,
    /// Whose objects it borrows.
    pub(crate) repository: &'a Repository,
    /// More folders of objects that it borrows.
    pub(crate) more_objects: &'a [PathBuf],
    /// The branch that it is on, and where that points; `None`: it is on none, and bare.
    pub(crate) branch: Option<(&'a str, &'a str)>,
}

impl Ground<'_> {
    /// Makes it.
    pub(crate) fn make(&self) -> io::Result<()> {
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
            // For agents that commit by themselves; what they commit is not taken as such.
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

//! What an earlier version, or a program of another user, left in the operator's repository with an owner or modes that git
//! would not have given it there: others cannot read those objects.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Entries that are looked at; a repository with more is not looked at further.
const ENTRIES_MAX: usize = 200_000;

/// What is wrong in a repository, with the first such entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftModes {
    pub first: PathBuf,
    pub count: usize,
    /// The command that mends it.
    pub remedy: String,
}

/// Looks through the objects, branches and logs of a git directory; `None`: all is as it should be.
pub fn look(dir: &Path) -> Option<LeftModes> {
    let model = fs::metadata(dir.join("objects")).ok()?;
    let (mut first, mut count, mut owners, mut left) = (None, 0, false, ENTRIES_MAX);
    for part in ["objects", "refs", "logs"] {
        walk(&dir.join(part), &mut left, &mut |path, meta| {
            let other = meta.uid() != model.uid();
            if other || lacks(&model, meta) {
                owners |= other;
                count += 1;
                first.get_or_insert_with(|| path.to_owned());
            }
        });
    }
    let first = first?;
    let shown = dir.display();
    let others = match model.mode() & 0o055 {
        0o055 => "go+rX",
        0o050 => "g+rX",
        _ => "u+rX",
    };
    let parts: Vec<String> = ["objects", "refs", "logs"]
        .iter()
        .filter(|part| dir.join(part).exists())
        .map(|part| format!("'{shown}/{part}'"))
        .collect();
    let parts = parts.join(" ");
    let chown = format!("chown -R --reference='{shown}/objects' {parts}");
    let chmod = format!("chmod -R {others} {parts}");
    let remedy = if owners { format!("{chown} && {chmod}") } else { chmod };
    Some(LeftModes { first, count, remedy })
}

/// Whether others may read less than of the folder of all objects.
fn lacks(model: &Metadata, meta: &Metadata) -> bool {
    let wanted = model.mode() & if meta.is_dir() { 0o055 } else { 0o044 };
    wanted & !meta.mode() != 0
}

fn walk(folder: &Path, left: &mut usize, seen: &mut impl FnMut(&Path, &Metadata)) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if *left == 0 {
            return;
        }
        *left -= 1;
        let Ok(meta) = entry.metadata() else { continue };
        if meta.is_symlink() {
            continue;
        }
        seen(&entry.path(), &meta);
        if meta.is_dir() {
            walk(&entry.path(), left, seen);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
    }

    #[test]
    fn objects_that_others_cannot_read_are_named_with_the_command_that_mends_them() {
        let dir = tempfile::tempdir().expect("a folder");
        let (objects, some) = (dir.path().join("objects"), dir.path().join("objects/ab"));
        let object = some.join("cdef");
        fs::create_dir_all(&some).expect("a folder");
        fs::write(&object, "x").expect("written");
        set(&objects, 0o755);
        set(&some, 0o755);
        set(&object, 0o444);
        assert_eq!(look(dir.path()), None);
        set(&object, 0o400);
        set(&some, 0o700);
        let left = look(dir.path()).expect("something is wrong");
        assert_eq!((left.first, left.count), (some.clone(), 2));
        assert!(left.remedy.starts_with("chmod -R go+rX '"), "{}", left.remedy);
        let done = std::process::Command::new("sh").args(["-c", &left.remedy]).status().expect("a shell");
        assert!(done.success());
        assert_eq!(look(dir.path()), None, "the command mends it");
        // Where nobody else may read the repository, nothing is missing.
        set(&objects, 0o700);
        set(&object, 0o400);
        assert_eq!(look(dir.path()), None);
    }
}

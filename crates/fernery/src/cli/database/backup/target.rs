//! The target of a copy: a name that is free or may be replaced, and the file that grows beside it.

use super::no_space;
use crate::cli::failure::{Failure, Outcome};
use fernery_engine::store::sqlite::health;
use rustix::fs::{FlockOperation, OFlags, flock};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Files that SQLite keeps beside a database and reads with it.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Where the copy goes.
pub(super) struct Target {
    /// Absolute.
    pub(super) path: PathBuf,
    pub(super) folder: PathBuf,
}

impl Target {
    pub(super) fn check(file: &Path, source: &Path, force: bool) -> Outcome<Self> {
        let shown = file.display();
        let written = file.as_os_str().as_bytes();
        if written == b"-" {
            return Err(Failure::usage("a backup cannot go to stdout, because it is verified in place")
                .hint("name a file, or ./- if that is its name"));
        }
        if written.ends_with(b"/") || written.ends_with(b"/.") {
            return Err(Failure::usage(format!("{shown} is a folder")).hint("name the file for the copy"));
        }
        let path = std::path::absolute(file).map_err(|e| Failure::usage(format!("{shown}: {e}")))?;
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Failure::usage(format!("{shown} does not name a file")));
        };
        if path.to_str().is_none() {
            return Err(Failure::usage(format!(
                "{shown}: SQLite accepts only file names in UTF-8; choose another"
            )));
        }
        let folder = match fs::canonicalize(folder) {
            Ok(folder) if folder.is_dir() => folder,
            Ok(folder) => return Err(Failure::usage(format!("{} is not a folder", folder.display()))),
            Err(error) => {
                return Err(Failure::usage(format!("cannot use the folder {}: {error}", folder.display()))
                    .hint("create it, or name a file elsewhere"));
            }
        };
        let path = folder.join(name);
        let target = Self { folder, path };
        match fs::symlink_metadata(&target.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(Failure::usage(format!("cannot look at {shown}: {error}"))),
            Ok(meta) if !meta.is_file() => {
                return Err(Failure::usage(format!("{shown} exists and is not a regular file")));
            }
            Ok(_) if !force => {
                return Err(Failure::conflict(format!("{shown} already exists; --force replaces it")));
            }
            Ok(_) => {}
        }
        target.is_not(source)?;
        target.is_unused()?;
        Ok(target)
    }

    /// A log of an earlier file under this name would be read as a part of the copy: what was verified would read as
    /// something else. Whoever serves the file goes on with the old one, and its log with the new one.
    fn is_unused(&self) -> Outcome {
        let shown = self.path.display();
        for end in BESIDE {
            let beside = with(&self.path, end);
            match fs::symlink_metadata(&beside) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                _ => {
                    return Err(Failure::conflict(format!(
                        "{} exists: a program has {shown} open or was killed, and SQLite would mix its \
                        content into the copy",
                        beside.display()
                    ))
                    .hint("move it away, or name another file"));
                }
            }
        }
        match health::served_by(&self.path) {
            Ok(None) => Ok(()),
            Ok(Some(pid)) => {
                Err(Failure::conflict(format!("process {pid} serves {shown}; name another file")))
            }
            Err(error) => {
                Err(Failure::usage(format!("cannot tell whether a server runs on {shown}: {error}")))
            }
        }
    }

    /// Neither the copy nor its first name may be the database or a file that SQLite or the server keeps beside it.
    fn is_not(&self, source: &Path) -> Outcome {
        let Ok(source) = fs::canonicalize(source) else { return Ok(()) };
        let inode = |path: &Path| fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()));
        for path in [&self.path, &self.unfinished()] {
            let beside = BESIDE.iter().chain(&["", ".lock"]).any(|end| *path == with(&source, end));
            if beside || inode(path).is_some_and(|there| Some(there) == inode(&source)) {
                return Err(Failure::usage(format!(
                    "{} belongs to the database itself; name another file",
                    path.display()
                )));
            }
        }
        Ok(())
    }

    /// A name that nobody else gives a file, for whatever bears it is written over.
    fn unfinished(&self) -> PathBuf {
        let mut name = OsString::from(".");
        name.push(self.path.file_name().unwrap_or_default());
        name.push(".fernery-backup");
        self.folder.join(name)
    }
}

fn with(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// A copy under its temporary name; deleted on drop unless it was finished.
pub(super) struct Unfinished {
    pub(super) path: PathBuf,
    /// Locked, so that two backups to one file do not write into each other. Open until SQLite has closed it: closing any
    /// handle of a file gives up the locks that SQLite holds on it.
    file: File,
    finished: bool,
}

impl Unfinished {
    pub(super) fn begin(target: &Target) -> Outcome<Self> {
        let path = target.unfinished();
        let refused = |error: io::Error| match error.kind() {
            ErrorKind::StorageFull => no_space(target, None),
            _ => Failure::usage(format!("cannot write {}: {error}", path.display()))
                .hint("make the folder writable, or name a file elsewhere"),
        };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits() as i32)
            .open(&path)
            .map_err(refused)?;
        let busy = || Failure::conflict(format!("another backup to {} is running", target.path.display()));
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| busy())?;
        // The previous holder of the lock may have renamed or removed the file.
        let (mine, named) =
            (file.metadata().map_err(refused)?, fs::symlink_metadata(&path).map_err(refused)?);
        if mine.ino() != named.ino() || mine.dev() != named.dev() || !mine.is_file() {
            return Err(busy());
        }
        let unfinished = Self { path, file, finished: false };
        // The rest of a killed backup is useless.
        unfinished.file.set_len(0).map_err(|error| failed(&unfinished.path, &error))?;
        unfinished
            .file
            .set_permissions(Permissions::from_mode(0o600))
            .map_err(|error| failed(&unfinished.path, &error))?;
        unfinished.remove_beside();
        Ok(unfinished)
    }

    fn remove_beside(&self) {
        for end in BESIDE {
            let _ = fs::remove_file(with(&self.path, end));
        }
    }

    /// Gives the copy its name, durably; its size.
    pub(super) fn finish(mut self, target: &Target) -> Outcome<u64> {
        let bytes = self
            .file
            .sync_all()
            .and_then(|()| self.file.metadata())
            .map_err(|e| failed(&self.path, &e))?
            .len();
        self.remove_beside();
        // Another process may have opened a file of this name meanwhile.
        target.is_unused()?;
        fs::rename(&self.path, &target.path).map_err(|e| failed(&target.path, &e))?;
        self.finished = true;
        File::open(&target.folder).and_then(|folder| folder.sync_all()).map_err(|error| {
            Failure::failed("backup", format!("cannot sync {}: {error}", target.folder.display()))
                .hint(format_args!("{} is complete, but a power failure may lose it", target.path.display()))
        })?;
        Ok(bytes)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.finished {
            let _ = fs::remove_file(&self.path);
            self.remove_beside();
        }
    }
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::failed("backup", format!("cannot write {}: {error}", path.display()))
        .hint("no partial file is left; check the kernel log (`dmesg`), or name a file on another disk")
}

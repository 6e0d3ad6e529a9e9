//! One server per database file, by whatever name it is opened.
//!
//! The lock is `flock` on the database file itself, so links to it and a deleted lock file change nothing. SQLite's own locks
//! are of another kind (`fcntl`), and neither sees the other on a local disk. But closing any descriptor of a file drops the
//! process's `fcntl` locks on it: so this one is opened before SQLite opens the file and closed after it has closed it.
//!
//! The file `….lock` beside it tells people who holds it, and is locked too: earlier versions know no other lock.

use super::open;
use crate::error::{StoreError, StoreResult};
use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Held for as long as the database is open. Released by the kernel when the process ends, however.
pub(super) struct Lock {
    _named: File,
    _database: File,
}

/// Locks the database for this process, or says who has it.
pub(super) fn lock(database: &Path) -> StoreResult<Lock> {
    let path = lock_file(database);
    let refuse = |why: String| StoreError::Refused(why);
    let mut named = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(|e| refuse(format!("cannot open {}: {e}", path.display())))?;
    // First the one whose descriptor may be closed again: a second try in one process ends here.
    if flock(&named, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Err(in_use(database));
    }
    let locked = open::file(database)?;
    if flock(&locked, FlockOperation::NonBlockingLockExclusive).is_err() {
        // Never closed: the holder may be this process, which would lose SQLite's locks.
        std::mem::forget(locked);
        return Err(in_use(database));
    }
    if let Ok(meta) = locked.metadata()
        && meta.nlink() > 1
    {
        let path = database.display();
        tracing::warn!(
            %path,
            names = meta.nlink(),
            "the database file has several hard links; always open it by the same name"
        );
    }
    let write = |file: &mut File| {
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        writeln!(file, "{}", std::process::id())
    };
    write(&mut named).map_err(|e| refuse(format!("cannot write {}: {e}", path.display())))?;
    open::give_to_owner(database, &path);
    Ok(Lock { _named: named, _database: locked })
}

fn in_use(database: &Path) -> StoreError {
    let who = match served_by(database) {
        Ok(Some(pid)) => format!("process {pid}"),
        // Held in another pid namespace, or the table of locks cannot be read.
        _ => "another process".to_string(),
    };
    StoreError::Refused(format!("{} is in use by {who}; only one server may open it", database.display()))
}

/// Beside the file that a symbolic link leads to.
fn lock_file(database: &Path) -> PathBuf {
    open::beside(&std::fs::canonicalize(database).unwrap_or_else(|_| database.to_owned()), ".lock")
}

/// The process that serves the file, as the kernel's table of locks has it. Trying the lock itself could make a server
/// that starts at that moment believe that another one runs. Where it cannot be looked up, nobody can say that there is none.
pub(super) fn served_by(database: &Path) -> io::Result<Option<u32>> {
    let named = lock_file(database);
    let written = std::fs::read_to_string(&named).ok().and_then(|text| text.trim().parse().ok());
    let mut found = Vec::new();
    for path in [database, &named] {
        match std::fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            meta => found.push(meta?),
        }
    }
    if found.is_empty() {
        return Ok(None);
    }
    let table = std::fs::read_to_string("/proc/locks")?;
    Ok(found.iter().find_map(|meta| holder(&table, meta.dev(), meta.ino(), written)))
}

/// The holder of the exclusive lock on a file. Some file systems give another device there than `stat` does; then the
/// process id in the file tells.
fn holder(table: &str, device: u64, inode: u64, written: Option<u32>) -> Option<u32> {
    let device = format!("{:02x}:{:02x}", rustix::fs::major(device), rustix::fs::minor(device));
    table.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        if words.next()? != "FLOCK" || words.nth(1)? != "WRITE" {
            return None;
        }
        let pid: u32 = words.next()?.parse().ok()?;
        let (on_device, on_inode) = words.next()?.rsplit_once(':')?;
        let same_inode = on_inode.parse() == Ok(inode);
        (same_inode && (on_device == device || written == Some(pid))).then_some(pid)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
1: FLOCK  ADVISORY  WRITE 17382 fe:00:11427846 0 EOF
2: FLOCK  ADVISORY  READ 15298 fe:00:10133507 0 EOF
3: POSIX  ADVISORY  WRITE 15 fe:00:42 1073741826 1073742335
3: -> FLOCK  ADVISORY  WRITE 99 fe:00:11427846 0 EOF
4: FLOCK  ADVISORY  WRITE 77 00:2b:42 0 EOF";

    #[test]
    fn the_holder_is_read_from_the_kernels_table() {
        let disk = rustix::fs::makedev(0xfe, 0);
        for (device, inode, written, pid) in [
            (disk, 11_427_846, None, Some(17_382)),
            (disk, 10_133_507, None, None),
            (disk, 42, None, None),
            (disk, 42, Some(77), Some(77)),
            (rustix::fs::makedev(0, 0x2b), 42, None, Some(77)),
            (disk, 1, Some(77), None),
        ] {
            assert_eq!(holder(TABLE, device, inode, written), pid, "{inode} {written:?}");
        }
    }
}

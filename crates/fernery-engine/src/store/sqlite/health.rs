//! A look at a database file from outside: what it is, how large, how it is kept, and who serves it.
//!
//! It opens the file read-only and takes no lock that a server wants, so it can be asked while one runs. It decides
//! nothing: numbers go out, `fernery doctor` judges them.

use super::open;
use crate::error::{StoreError, StoreResult};
use fernery_core::Timestamp;
use rusqlite::Connection;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What a file says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHealth {
    /// The version of its schema; 0 is a file in which nothing was made yet.
    pub schema_version: usize,
    /// How it keeps its journal.
    pub journal_mode: String,
    /// Bytes of the file.
    pub bytes: u64,
    /// Bytes in it that hold nothing.
    pub free_bytes: u64,
    /// Bytes of the write-ahead log beside it.
    pub wal_bytes: u64,
    /// The newest instant in it; `None` where its schema is another version's.
    pub newest_at: Option<Timestamp>,
}

/// What a server sets on every connection that writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerHabits {
    /// SQLite's number for `synchronous`; 2 is FULL.
    pub synchronous: i64,
    /// Bytes to which the write-ahead log is cut back.
    pub wal_limit_bytes: u64,
}

/// The version of the schema that this program makes.
pub fn schema_version_known() -> usize {
    open::MIGRATIONS.len()
}

/// The version of SQLite inside this program.
pub fn sqlite_version() -> &'static str {
    rusqlite::version()
}

/// The write-ahead log of a database.
pub fn wal_path(database: &Path) -> PathBuf {
    open::beside(database, "-wal")
}

/// Why a server would not open a file there: SQLite does not work over a network.
pub fn refused_folder(database: &Path) -> StoreResult<()> {
    open::refuse_network_file(database)
}

/// Reads what the file says of itself. It must be there; it is never made.
pub fn look(database: &Path) -> StoreResult<FileHealth> {
    let db = open::reader(database)?;
    let (application, schema_version, journal_mode, page, pages, free) =
        db.query_row(include_str!("sql/health_file.sql"), [], |row| {
            let page: u64 = row.get(3)?;
            Ok((
                row.get::<_, i32>(0)?,
                row.get::<_, usize>(1)?,
                row.get::<_, String>(2)?,
                page,
                row.get::<_, u64>(4)?,
                row.get::<_, u64>(5)?,
            ))
        })?;
    if application != open::APPLICATION_ID && (pages > 0 || schema_version > 0) {
        return Err(StoreError::Refused("it is not a database of Fernery's".into()));
    }
    let newest_at = if schema_version == schema_version_known() {
        let newest = db.query_row(include_str!("sql/newest_instant.sql"), [], |row| row.get(0))?;
        Some(Timestamp::from_millis(newest))
    } else {
        None
    };
    let wal_bytes = std::fs::metadata(wal_path(database)).map_or(0, |meta| meta.len());
    Ok(FileHealth {
        schema_version,
        journal_mode,
        bytes: page * pages,
        free_bytes: page * free,
        wal_bytes,
        newest_at,
    })
}

/// What a server sets, asked back from a connection that was set up in the same way.
pub fn server_habits() -> StoreResult<ServerHabits> {
    let db = Connection::open_in_memory()?;
    db.execute_batch(open::SESSION)?;
    Ok(db.query_row(include_str!("sql/health_session.sql"), [], |row| {
        Ok(ServerHabits { synchronous: row.get(0)?, wal_limit_bytes: row.get(1)? })
    })?)
}

/// The process that serves the file, as the kernel's table of locks has it. Trying the lock itself could make a server
/// that starts at that moment believe that another one runs. Where it cannot be looked up, nobody can say that there is none.
pub fn served_by(database: &Path) -> io::Result<Option<u32>> {
    let lock = open::beside(database, ".lock");
    let meta = match std::fs::metadata(&lock) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        meta => meta?,
    };
    let written = std::fs::read_to_string(&lock).ok().and_then(|text| text.trim().parse().ok());
    let table = std::fs::read_to_string("/proc/locks")?;
    Ok(holder(&table, meta.dev(), meta.ino(), written))
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

    #[test]
    fn a_server_syncs_every_commit() {
        let habits = server_habits().expect("asked");
        assert_eq!(habits, ServerHabits { synchronous: 2, wal_limit_bytes: 64 << 20 });
    }
}

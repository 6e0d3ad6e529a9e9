//! Inspects a database file: its version, size and settings, and the process that serves it.
//!
//! It opens the file read-only and takes no lock that a server needs, so it works while one runs. It judges nothing:
//! `fernery doctor` judges the numbers.

use super::{clock, lock, open};
use crate::clock_step::{Doubt, Reading};
use crate::door::{self, Boot};
use crate::error::{StoreError, StoreResult};
use fernery_core::Timestamp;
use rusqlite::Connection;
use std::io;
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
    /// Why the clock of this machine cannot be believed, going by what is in the file.
    pub clock_doubt: Option<Doubt>,
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
    let file_time = clock::file_time(database);
    let db = open::reader(database)?;
    let (application, schema_version, journal_mode, page, pages, free) =
        db.query_row(include_str!("sql/health_file.sql"), [], |row| {
            let page: u64 = row.get("page_size")?;
            Ok((
                row.get::<_, i32>("application_id")?,
                row.get::<_, usize>("user_version")?,
                row.get::<_, String>("journal_mode")?,
                page,
                row.get::<_, u64>("page_count")?,
                row.get::<_, u64>("freelist_count")?,
            ))
        })?;
    if application != open::APPLICATION_ID && (pages > 0 || schema_version > 0) {
        return Err(StoreError::Refused("it is not a Fernery database".into()));
    }
    let kept = (schema_version == schema_version_known()).then(|| clock::kept(&db)).transpose()?;
    let now = Reading { at: door::wall_clock(), boot: Boot::system() };
    let wal_bytes = std::fs::metadata(wal_path(database)).map_or(0, |meta| meta.len());
    Ok(FileHealth {
        schema_version,
        journal_mode,
        bytes: page * pages,
        free_bytes: page * free,
        wal_bytes,
        newest_at: kept.map(|kept| kept.newest.at),
        clock_doubt: kept.and_then(|kept| clock::doubted(&kept, now, file_time)),
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

/// The process that serves the file.
pub fn served_by(database: &Path) -> io::Result<Option<u32>> {
    lock::served_by(database)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_syncs_every_commit() {
        let habits = server_habits().expect("asked");
        assert_eq!(habits, ServerHabits { synchronous: 2, wal_limit_bytes: 64 << 20 });
    }
}

//! Opening a database file: whether it is ours, and which version.

use super::upgrade;
use crate::error::{StoreError, StoreResult};
use rusqlite::{Connection, ErrorCode, OpenFlags, ffi};
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// "FERN": tells our files from other programs'.
pub(super) const APPLICATION_ID: i32 = 0x4645_524e;

/// Every change of the schema, oldest first. Landed ones are never edited.
pub(super) const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_engine.sql"),
    include_str!("migrations/0002_progress.sql"),
    include_str!("migrations/0003_pipeline.sql"),
    include_str!("migrations/0004_steadiness.sql"),
    include_str!("migrations/0005_captures.sql"),
    include_str!("migrations/0006_orientation.sql"),
    include_str!("migrations/0007_imported.sql"),
    include_str!("migrations/0008_streams.sql"),
    include_str!("migrations/0009_landings.sql"),
    include_str!("migrations/0010_people.sql"),
    include_str!("migrations/0011_dead_letters.sql"),
    include_str!("migrations/0012_sign_ins.sql"),
    include_str!("migrations/0013_outcomes.sql"),
    include_str!("migrations/0014_stream_stats.sql"),
    include_str!("migrations/0015_review.sql"),
    include_str!("migrations/0016_bulk.sql"),
    include_str!("migrations/0017_stream_settings.sql"),
    include_str!("migrations/0018_patch_sizes.sql"),
];

/// How the writing connection is set up.
pub(super) const SESSION: &str = include_str!("sql/session.sql");

/// Two connections that checkpoint at once could damage the file in older versions.
const SQLITE_MIN: i32 = 3_051_003;

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let text = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full(text),
            // The index of the write-ahead log could not grow: this too means a full disk.
            Some(ErrorCode::SystemIoFailure) if extended(&error) == Some(ffi::SQLITE_IOERR_SHMSIZE) => {
                Self::Full(text)
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy(text),
            Some(ErrorCode::SystemIoFailure | ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Broken(text)
            }
            Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                Self::Unavailable(text)
            }
            Some(ErrorCode::TooBig) => Self::Refused(text),
            _ => Self::Corrupt(text),
        }
    }
}

fn extended(error: &rusqlite::Error) -> Option<i32> {
    match error {
        rusqlite::Error::SqliteFailure(failure, _) => Some(failure.extended_code),
        _ => None,
    }
}

/// Files that root creates beside a database must belong to the database's owner, or the owner's server could not open
/// them later. SQLite does the same with its own files. If the change of ownership fails, that server will say which
/// file it cannot open.
pub(super) fn give_to_owner(database: &Path, made: &Path) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let given = std::fs::metadata(database)
        .and_then(|owned| std::os::unix::fs::lchown(made, Some(owned.uid()), Some(owned.gid())));
    if let Err(error) = given
        && error.kind() != ErrorKind::NotFound
    {
        tracing::debug!(
            %error, path = %made.display(),
            "could not hand the file to the database's owner; it stays owned by root"
        );
    }
}

pub(super) fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

pub(super) fn folder_of(database: &Path) -> &Path {
    database.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// SQLite's locks and its shared memory do not work over a network.
pub(super) fn refuse_network_file(database: &Path) -> StoreResult<()> {
    const NETWORK: &[(u64, &str)] = &[
        (0x6969, "NFS"),
        (0x517b, "SMB"),
        (0xff53_4d42, "CIFS"),
        (0xfe53_4d42, "SMB2"),
        (0x0102_1997, "9P"),
    ];
    let folder = folder_of(database);
    let stat = rustix::fs::statfs(folder)
        .map_err(|e| StoreError::Refused(format!("cannot use folder {}: {e}", folder.display())))?;
    let kind = (stat.f_type as u64) & 0xffff_ffff;
    match NETWORK.iter().find(|(magic, _)| *magic == kind) {
        Some((_, name)) => Err(StoreError::Refused(format!(
            "{} is on {name}: SQLite needs a local disk; use PostgreSQL for shared storage",
            folder.display()
        ))),
        None => Ok(()),
    }
}

/// Makes the file if it is not there.
pub(super) fn file(database: &Path) -> StoreResult<File> {
    // Payloads are nobody else's business; SQLite gives its other files the mode of this one.
    // And where SQLite would silently open a file for reading only, the first job would find out.
    let opened = OpenOptions::new().append(true).create(true).mode(0o600).open(database);
    opened.map_err(|e| StoreError::Refused(format!("cannot open {} for writing: {e}", database.display())))
}

/// The writing connection, migrated to this version.
pub(super) fn writer(database: &Path) -> StoreResult<Connection> {
    if rusqlite::version_number() < SQLITE_MIN {
        return Err(StoreError::Refused(format!("SQLite {} is too old", rusqlite::version())));
    }
    let unusable = |e: &dyn std::fmt::Display| {
        StoreError::Refused(format!("cannot open {} for writing: {e}", database.display()))
    };
    let db = Connection::open(database).map_err(|e| unusable(&e))?;
    let foreign = |_| StoreError::Refused(format!("{} is not a Fernery database", database.display()));
    let application: i32 = db.query_row("PRAGMA application_id", [], |row| row.get(0)).map_err(foreign)?;
    let version: usize = db.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let tables: i64 = db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application != APPLICATION_ID && (tables > 0 || version > 0) {
        return Err(foreign(rusqlite::Error::InvalidQuery));
    }
    if version > MIGRATIONS.len() {
        return Err(StoreError::Refused(format!(
            "{} has schema version {version}, this program supports up to {}: use the newer program",
            database.display(),
            MIGRATIONS.len()
        )));
    }
    // Read to its end: the mode is answered first and written after, and whoever stops at the answer never hears that it
    // could not be written.
    let mut set_mode = db.prepare("PRAGMA journal_mode = WAL")?;
    let mode: Vec<String> = set_mode.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    drop(set_mode);
    if mode != ["wal"] {
        return Err(unusable(&format!(
            "SQLite does not switch to WAL; the journal mode stays {}",
            mode.concat()
        )));
    }
    db.execute_batch(SESSION)?;
    upgrade::migrate(&db, database, version)?;
    // SQLite passes over a failed sync of the folder, and without its name there the log would not outlive a power cut.
    sync_folder(database).map_err(|e| unusable(&e))?;
    // More than there are statements, so that none is parsed again and again.
    db.set_prepared_statement_cache_capacity(512);
    Ok(db)
}

/// Makes the names in the folder durable.
pub(super) fn sync_folder(database: &Path) -> std::io::Result<()> {
    File::open(folder_of(database)).and_then(|folder| folder.sync_all())
}

/// A connection that only reads.
pub(super) fn reader(database: &Path) -> StoreResult<Connection> {
    let db = Connection::open_with_flags(
        database,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    db.execute_batch("PRAGMA busy_timeout = 5000; PRAGMA trusted_schema = OFF; PRAGMA mmap_size = 0;")?;
    db.set_prepared_statement_cache_capacity(64);
    Ok(db)
}

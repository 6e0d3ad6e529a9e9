//! Brings a file of an earlier version to this one. A copy of it as it was is made first.
//!
//! The copy is written under another name, checked, synced and then renamed: a file with the final name is whole. Its name
//! has the version of its schema. One that is there already is replaced: it may be of an earlier state of the database.
//! All steps of the schema are one transaction, so a kill leaves the old version or the new one.

use super::{backup, open};
use crate::door::failpoint;
use crate::error::{StoreError, StoreResult};
use rusqlite::Connection;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

pub(super) fn migrate(db: &Connection, database: &Path, from: usize) -> StoreResult<()> {
    if from == open::MIGRATIONS.len() {
        return Ok(());
    }
    if from > 0 {
        copy(db, database, from)?;
    }
    failpoint("migrate-begin");
    let migrated = steps(db, from);
    if migrated.is_err() && !db.is_autocommit() {
        let _ = db.execute_batch("ROLLBACK");
    }
    failpoint("migrate-committed");
    migrated
}

fn steps(db: &Connection, from: usize) -> StoreResult<()> {
    db.execute_batch("BEGIN IMMEDIATE")?;
    for (index, sql) in open::MIGRATIONS.iter().enumerate().skip(from) {
        db.execute_batch(sql)?;
        failpoint("migrate-step");
        db.pragma_update(None, "user_version", index + 1)?;
        failpoint("migrate-marked");
    }
    db.pragma_update(None, "application_id", open::APPLICATION_ID)?;
    db.execute_batch("COMMIT")?;
    Ok(())
}

fn copy(db: &Connection, database: &Path, from: usize) -> StoreResult<()> {
    let whole = open::beside(database, &format!(".schema-v{from}"));
    let partial = open::beside(database, &format!(".schema-v{from}.partial"));
    let cannot = |why: &dyn std::fmt::Display| {
        StoreError::Refused(format!(
            "cannot copy {} to {} before the upgrade: {why}; the database was not changed",
            database.display(),
            whole.display()
        ))
    };
    // What a killed process left.
    match std::fs::remove_file(&partial) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(cannot(&error)),
        _ => {}
    }
    // SQLite takes an empty file, and would make one that others can read.
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial);
    let made = made.map_err(|e| cannot(&e))?;
    failpoint("upgrade-copy-begin");
    let copied = (|| {
        db.execute("VACUUM INTO ?1", [partial.to_string_lossy()])?;
        failpoint("upgrade-copy-written");
        let found = backup::checked(&partial)?;
        if found != from {
            return Err(StoreError::Corrupt(format!("the copy has schema version {found}, not {from}")));
        }
        Ok(())
    })();
    if let Err(error) = copied {
        let _ = std::fs::remove_file(&partial);
        return Err(cannot(&error));
    }
    keep(&made, &partial, &whole).map_err(|e| cannot(&e))?;
    failpoint("upgrade-copy-kept");
    open::give_to_owner(database, &whole);
    tracing::info!(copy = %whole.display(), "copied the database before the upgrade");
    Ok(())
}

fn keep(made: &File, partial: &Path, whole: &Path) -> io::Result<()> {
    made.sync_all()?;
    failpoint("upgrade-copy-synced");
    std::fs::rename(partial, whole)?;
    open::sync_folder(whole)
}

//! A copy of a database file that a server may be writing to.
//!
//! `VACUUM INTO` reads one snapshot through a read-only connection: the copy is consistent, compact, and the server
//! does not wait for it. SQLite does not let a vacuum run inside a transaction, so the snapshot that is copied cannot
//! be counted itself. What is compared instead: if nobody wrote meanwhile, the copy has exactly as many rows in
//! every table as the database; else every job and every closed attempt that was there before and still is afterwards is in
//! the copy.

use super::open;
use crate::error::{StoreError, StoreResult};
use crate::supervise::lock;
use rusqlite::{Connection, InterruptHandle, Row, params};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Ends a copy that is under way. Clones end the same copy.
#[derive(Clone, Default)]
pub struct Stop(Arc<Mutex<Asked>>);

#[derive(Default)]
struct Asked {
    stop: bool,
    working: Option<InterruptHandle>,
}

impl Stop {
    /// Ends the copy as soon as SQLite notices.
    pub fn ask(&self) {
        let mut asked = lock(&self.0);
        asked.stop = true;
        if let Some(working) = &asked.working {
            working.interrupt();
        }
    }

    /// From now on it is this connection that must be interrupted.
    fn reaches(&self, db: &Connection) -> StoreResult<()> {
        let mut asked = lock(&self.0);
        asked.working = Some(db.get_interrupt_handle());
        if asked.stop { Err(stopped()) } else { Ok(()) }
    }

    fn was_asked(&self) -> bool {
        lock(&self.0).stop
    }
}

fn stopped() -> StoreError {
    StoreError::Refused("it was stopped".into())
}

/// Rows of every table that holds what somebody asked for or did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Jobs in every state.
    pub jobs: u64,
    /// Claimable.
    pub ready: u64,
    /// Waiting for their time.
    pub scheduled: u64,
    /// Running.
    pub leases: u64,
    /// Closed attempts.
    pub attempts: u64,
    /// Given up.
    pub dead_letters: u64,
    /// Keys of unfinished jobs.
    pub unique_keys: u64,
    /// Streams.
    pub streams: u64,
    /// Tokens.
    pub tokens: u64,
}

/// How a copy was compared with its database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// Nobody wrote meanwhile: every table has as many rows in both.
    Exactly,
    /// Others wrote meanwhile: whatever was there before and still is afterwards is in the copy.
    Kept,
}

/// A copy that was verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The version of its schema.
    pub schema_version: usize,
    /// What is in it.
    pub counts: Counts,
    /// How it was compared.
    pub compared: Compared,
}

/// Copies the database into a file that is empty or not there, and verifies the copy. `into` is absolute, so that SQLite
/// takes it for nothing but a path; it may be left half-written if this fails.
pub fn copy(database: &Path, into: &Path, stop: &Stop) -> StoreResult<Copied> {
    copy_or_stopped(database, into, stop).map_err(|error| if stop.was_asked() { stopped() } else { error })
}

fn copy_or_stopped(database: &Path, into: &Path, stop: &Stop) -> StoreResult<Copied> {
    let Some(into_text) = into.to_str().filter(|_| into.is_absolute()) else {
        return Err(StoreError::Refused(format!("{} is not an absolute path in UTF-8", into.display())));
    };
    let now = open::reader(database)?;
    stop.reaches(&now)?;
    let schema_version = ours(&now)?;
    let writes_before = writes_seen(&now)?;
    let before = open::reader(database)?;
    stop.reaches(&before)?;
    let before = before.unchecked_transaction()?;
    let counted = counts(&before)?;

    let source = open::reader(database)?;
    stop.reaches(&source)?;
    source.execute(include_str!("sql/backup_into.sql"), [into_text])?;
    drop(source);

    let copy = open::reader(into)?;
    stop.reaches(&copy)?;
    if ours(&copy)? != schema_version {
        return Err(damaged("the copy has another version than the database"));
    }
    whole(&copy)?;
    let copied = counts(&copy)?;
    drop(copy);
    let compared = if writes_seen(&now)? == writes_before {
        if copied != counted {
            return Err(damaged("the copy and the database have different numbers of rows"));
        }
        Compared::Exactly
    } else {
        stop.reaches(&before)?;
        before.execute(include_str!("sql/backup_attach.sql"), [into_text])?;
        nothing_lost(&before, &now)?;
        Compared::Kept
    };
    Ok(Copied { schema_version, counts: copied, compared })
}

fn damaged(why: &str) -> StoreError {
    StoreError::Corrupt(why.into())
}

/// Whether a copy is a whole database; the version of its schema.
pub(super) fn checked(copy: &Path) -> StoreResult<usize> {
    let copy = open::reader(copy)?;
    let version = ours(&copy)?;
    whole(&copy)?;
    Ok(version)
}

/// The version of the schema, if it is one that this program knows.
fn ours(db: &Connection) -> StoreResult<usize> {
    let (application, version): (i32, usize) =
        db.query_row(include_str!("sql/health_file.sql"), [], |row| {
            Ok((row.get("application_id")?, row.get("user_version")?))
        })?;
    if application != open::APPLICATION_ID {
        return Err(StoreError::Refused("it is not a Fernery database".into()));
    }
    if version == 0 || version > open::MIGRATIONS.len() {
        return Err(StoreError::Refused(format!(
            "it has schema version {version}, this program supports up to {}: use the program that made it",
            open::MIGRATIONS.len()
        )));
    }
    Ok(version)
}

/// Changes whenever another connection has committed.
fn writes_seen(db: &Connection) -> StoreResult<i64> {
    Ok(db.pragma_query_value(None, "data_version", |row| row.get(0))?)
}

fn counts(db: &Connection) -> StoreResult<Counts> {
    Ok(db.query_row(include_str!("sql/backup_counts.sql"), [], |row| {
        Ok(Counts {
            jobs: row.get("jobs")?,
            ready: row.get("ready")?,
            scheduled: row.get("scheduled")?,
            leases: row.get("leases")?,
            attempts: row.get("attempts")?,
            dead_letters: row.get("dead_letters")?,
            unique_keys: row.get("unique_keys")?,
            streams: row.get("streams")?,
            tokens: row.get("tokens")?,
        })
    })?)
}

/// Every page and every index of it.
fn whole(db: &Connection) -> StoreResult<()> {
    let verdict: String = db.pragma_query_value(None, "integrity_check", |row| row.get(0))?;
    if verdict == "ok" { Ok(()) } else { Err(damaged(&format!("the copy is damaged: {verdict}"))) }
}

/// What `before` has and its copy has not must be gone from the database too: retention or a purge took it.
fn nothing_lost(before: &Connection, now: &Connection) -> StoreResult<()> {
    let lost = |what: &str| Err(damaged(&format!("the copy lacks {what} that the database has")));
    let mut missing = before.prepare(include_str!("sql/backup_jobs_missing.sql"))?;
    let mut kept = now.prepare(include_str!("sql/backup_job_kept.sql"))?;
    let mut rows = missing.query([])?;
    while let Some(row) = rows.next()? {
        let (job_id, created_at): (Vec<u8>, i64) = (row.get(0)?, row.get(1)?);
        if kept.query_row(params![job_id, created_at], flag)? {
            return lost("a job");
        }
    }
    let mut missing = before.prepare(include_str!("sql/backup_attempts_missing.sql"))?;
    let mut kept = now.prepare(include_str!("sql/backup_attempt_kept.sql"))?;
    let mut rows = missing.query([])?;
    while let Some(row) = rows.next()? {
        let (job_id, number, attempt_id): (Vec<u8>, i64, Vec<u8>) =
            (row.get("job_id")?, row.get("attempt_no")?, row.get("attempt_id")?);
        if kept.query_row(params![job_id, number, attempt_id], flag)? {
            return lost("a closed attempt");
        }
    }
    Ok(())
}

fn flag(row: &Row<'_>) -> rusqlite::Result<bool> {
    row.get(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILL: &str = "
        INSERT INTO jobs (job_id, stream, payload, max_attempts, created_at, run_at, seq, claim_version)
        VALUES (x'01', 's', '{}', 1, 5, 5, 1, 1), (x'02', 's', '{}', 1, 6, 6, 2, 1);
        INSERT INTO attempts (job_id, attempt_no, attempt_id, token_hash, worker_id, started_at, finished_at, outcome,
                              status, claim_version)
        VALUES (x'01', 1, x'aa', x'', 'w', 5, 6, 'SUCCEEDED', 'SUCCEEDED', 1);";

    /// A database, a copy of it that was changed since, and what the comparison says after the database was changed too.
    fn compared(copy_change: &str, database_change: &str) -> StoreResult<()> {
        let folder = tempfile::tempdir().expect("a folder");
        let (database, into) = (folder.path().join("a.db"), folder.path().join("b.db"));
        let live = open::writer(&database).expect("made");
        live.execute_batch(FILL).expect("filled");
        let copied = copy(&database, &into, &Stop::default()).expect("copied");
        assert_eq!((copied.counts.jobs, copied.counts.attempts), (2, 1));
        assert_eq!(copied.compared, Compared::Exactly);
        let before = open::reader(&database).expect("opened");
        let before = before.unchecked_transaction().expect("begun");
        counts(&before).expect("counted");
        Connection::open(&into).expect("opened").execute_batch(copy_change).expect("changed");
        live.execute_batch(database_change).expect("changed");
        before.execute(include_str!("sql/backup_attach.sql"), [into.to_str()]).expect("attached");
        nothing_lost(&before, &open::reader(&database).expect("opened"))
    }

    #[test]
    fn a_copy_that_lacks_what_the_database_has_is_no_copy() {
        let whole = compared("SELECT 1", "SELECT 1");
        assert_eq!(whole, Ok(()));
        for gone in ["DELETE FROM jobs WHERE job_id = x'02'", "DELETE FROM attempts"] {
            assert!(matches!(compared(gone, "SELECT 1"), Err(StoreError::Corrupt(_))), "{gone}");
            // Retention took it from both.
            assert_eq!(compared(gone, gone), Ok(()), "{gone}");
        }
        // Purged, and enqueued again under the same id after the copy was made.
        let again = "DELETE FROM jobs WHERE job_id = x'02';
            INSERT INTO jobs (job_id, stream, payload, max_attempts, created_at, run_at, seq, claim_version)
            VALUES (x'02', 's', '{}', 1, 9, 9, 2, 1)";
        assert_eq!(compared("DELETE FROM jobs WHERE job_id = x'02'", again), Ok(()));
    }

    #[test]
    fn a_copy_that_was_stopped_before_it_began_does_not_begin() {
        let folder = tempfile::tempdir().expect("a folder");
        let (database, into) = (folder.path().join("a.db"), folder.path().join("b.db"));
        drop(open::writer(&database).expect("made"));
        let stop = Stop::default();
        stop.ask();
        assert_eq!(copy(&database, &into, &stop), Err(stopped()));
        assert!(!into.exists());
        assert!(copy(&database, Path::new("relative.db"), &Stop::default()).is_err());
    }
}

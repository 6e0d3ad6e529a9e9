//! What must hold of the database file itself, read beside the program.

use fernery_engine::door;
use fernery_engine::store::sqlite::SqliteStore;
use fernery_engine::store::{Reap, Store, StoreSettings};
use rusqlite::Connection;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The kept counts of all streams, less what a recount finds; a sound file has no such row.
const MISCOUNTED: &str = "
    SELECT name FROM streams s WHERE
        ready     <> (SELECT count(*) FROM ready r WHERE r.stream = s.name)
     OR scheduled <> (SELECT count(*) FROM scheduled w WHERE w.stream = s.name)
     OR running   <> (SELECT count(*) FROM leases l WHERE l.stream = s.name)
     OR dead      <> (SELECT count(*) FROM dead_letters d WHERE d.stream = s.name)
     OR cancelled <> (SELECT count(*) FROM jobs j WHERE j.stream = s.name AND j.ended = 'CANCELLED')
     OR succeeded <> (SELECT count(*) FROM jobs j JOIN attempts a USING (job_id)
                      WHERE j.stream = s.name AND a.outcome = 'SUCCEEDED')";

/// Jobs that are in no place or in more than one.
const MISPLACED: &str = "
    SELECT hex(job_id) FROM jobs j WHERE 1 <>
        (SELECT count(*) FROM ready r WHERE r.job_id = j.job_id)
      + (SELECT count(*) FROM scheduled w WHERE w.job_id = j.job_id)
      + (SELECT count(*) FROM leases l WHERE l.resource_id = j.job_id)
      + (SELECT count(*) FROM attempts a WHERE a.job_id = j.job_id AND a.outcome = 'SUCCEEDED')
      + (j.ended IS NOT NULL)";

fn texts(db: &Connection, sql: &str) -> Vec<String> {
    let mut statement = db.prepare(sql).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

/// What serves has a write-ahead log: its file says so in the version for reading and that for writing.
pub(crate) fn assert_logged(data: &Path) {
    let header = std::fs::read(data.join("fernery.db")).unwrap();
    assert_eq!(header[18..20], [2, 2], "served from a file without a write-ahead log");
}

/// Checks a copy, so that the server finds the files as the crash left them.
pub(crate) fn assert_sound_after_crash(data: &Path) {
    let copy = tempfile::tempdir().unwrap();
    for name in ["fernery.db", "fernery.db-wal", "fernery.db-journal"] {
        let original = data.join(name);
        if original.exists() {
            std::fs::copy(original, copy.path().join(name)).unwrap();
        }
    }
    let db = Connection::open(copy.path().join("fernery.db")).unwrap();
    assert_eq!(texts(&db, "PRAGMA integrity_check"), ["ok"]);
}

/// Checks a file whose server has ended in order; then lets time pass until every lease has run out.
pub(crate) fn assert_at_rest(data: &Path) {
    assert_sound(&data.join("fernery.db"));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(reap_all(&data.join("fernery.db")));
    assert_sound(&data.join("fernery.db"));
    let db = Connection::open(data.join("fernery.db")).unwrap();
    assert!(texts(&db, "SELECT hex(resource_id) FROM leases").is_empty(), "a lease that nothing ends");
}

fn assert_sound(database: &Path) {
    let db = Connection::open(database).unwrap();
    assert_eq!(texts(&db, "PRAGMA integrity_check"), ["ok"]);
    assert!(texts(&db, MISCOUNTED).is_empty(), "counts differ from a recount: {:?}", texts(&db, MISCOUNTED));
    assert!(texts(&db, MISPLACED).is_empty(), "jobs are lost or doubled: {:?}", texts(&db, MISPLACED));
}

async fn reap_all(database: &Path) {
    let clock = door::LeaseClock::manual(door::wall_clock());
    let store = SqliteStore::open(database, StoreSettings::default(), clock.clone(), Arc::default()).unwrap();
    clock.advance(Duration::from_secs(3_600));
    let reaped = store.reap(100).await.unwrap();
    assert!(reaped.moved >= 1 && !reaped.full, "the script leaves one lease to run out: {reaped:?}");
    store.close().await;
}

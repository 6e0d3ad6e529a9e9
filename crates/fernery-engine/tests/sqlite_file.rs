//! Promises about the database file itself: whose it is, which version, and what survives closing.

use fernery_core::{StreamName, WorkerId};
use fernery_engine::store::sqlite::SqliteStore;
use fernery_engine::store::{Ask, NewJob, Store, StoreSettings};
use fernery_engine::{Database, Engine, EngineSettings, StoreError, door};
use serde_json::value::RawValue;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

fn open(path: &Path) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(path, StoreSettings::default(), door::LeaseClock::system(), Arc::default())
}

fn job(stream: &str) -> NewJob {
    let payload = RawValue::from_string(r#"{"n":1.10}"#.into()).expect("valid JSON");
    NewJob::new(StreamName::stored(stream), payload)
}

fn ask(stream: &str) -> Ask {
    Ask { worker_id: WorkerId::stored("w"), streams: [StreamName::stored(stream)].into(), max: 1 }
}

#[tokio::test]
async fn a_second_server_on_the_same_file_is_told_the_holders_process_id() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("fernery.db");
    let first = open(&path).expect("the first opens");
    match open(&path).err() {
        Some(StoreError::Refused(why)) => {
            assert!(why.contains(&format!("process {}", std::process::id())), "{why}");
        }
        other => panic!("{other:?}"),
    }
    first.close().await;
    open(&path).expect("free again once closed");
}

#[tokio::test]
async fn a_database_from_the_future_or_of_another_program_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("fernery.db");
    open(&path).expect("opens").close().await;
    let db = rusqlite::Connection::open(&path).expect("opens");
    db.execute_batch("PRAGMA user_version = 999").expect("written");
    drop(db);
    assert!(matches!(open(&path), Err(StoreError::Refused(why)) if why.contains("999")));

    let other = folder.path().join("other.db");
    let db = rusqlite::Connection::open(&other).expect("opens");
    db.execute_batch("CREATE TABLE t (x)").expect("written");
    drop(db);
    assert!(
        matches!(open(&other), Err(StoreError::Refused(why)) if why.contains("not a database of Fernery's"))
    );

    let text = folder.path().join("text.db");
    std::fs::write(&text, "not a database, and long enough to be read as one ".repeat(100)).expect("written");
    assert!(matches!(open(&text), Err(StoreError::Refused(_))));
    assert!(matches!(open(&folder.path().join("missing/fernery.db")), Err(StoreError::Refused(_))));
}

#[tokio::test]
async fn what_was_answered_is_there_after_a_crash() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("fernery.db");
    let store = open(&path).expect("opens");
    store.enqueue(vec![job("a"), job("a")]).await.expect("stored");
    let held = store.claim(ask("a")).await.expect("claimed");
    assert_eq!(held[0].payload.get(), r#"{"n":1.10}"#, "numbers survive as written");
    // The files as a crash would leave them.
    let copy = folder.path().join("copy.db");
    for suffix in ["", "-wal"] {
        let from = folder.path().join(format!("fernery.db{suffix}"));
        std::fs::copy(from, folder.path().join(format!("copy.db{suffix}"))).expect("copied");
    }
    let again = open(&copy).expect("recovers");
    let view = again.job(held[0].job_id).await.expect("read").expect("there");
    assert_eq!(view.attempts[0].attempt_id, held[0].attempt_id);
    let counts = again.stream(StreamName::stored("a")).await.expect("read").expect("there").counts;
    assert_eq!((counts.ready, counts.running), (1, 1));
}

#[tokio::test]
async fn an_engine_in_two_lines_wakes_a_waiting_claim() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = Database::Sqlite(folder.path().join("fernery.db"));
    let engine = Engine::open(&database, EngineSettings::default()).await.expect("opens");
    let waiting = tokio::spawn({
        let engine = engine.clone();
        async move { engine.claim(ask("a"), Duration::from_secs(20)).await }
    });
    while engine.waiting_claims() == 0 {
        tokio::task::yield_now().await;
    }
    engine.store().enqueue(vec![job("a")]).await.expect("stored");
    let claimed = waiting.await.expect("ran").expect("claimed");
    assert_eq!(claimed.len(), 1);
    engine.close().await;
}

#[tokio::test]
async fn a_waiting_claim_gets_no_job_whose_transaction_failed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("fernery.db");
    let engine =
        Engine::open(&Database::Sqlite(path.clone()), EngineSettings::default()).await.expect("opens");
    // Fails at the commit: the claim that the job has woken is in the transaction by then.
    let db = rusqlite::Connection::open(&path).expect("opens");
    db.execute_batch(
        "CREATE TABLE none (id INTEGER PRIMARY KEY);
         CREATE TABLE doomed (id INTEGER REFERENCES none (id) DEFERRABLE INITIALLY DEFERRED);
         CREATE TRIGGER doom AFTER INSERT ON jobs BEGIN INSERT INTO doomed VALUES (1); END;",
    )
    .expect("written");
    let waiting = tokio::spawn({
        let engine = engine.clone();
        async move { engine.claim(ask("a"), Duration::from_secs(20)).await }
    });
    while engine.waiting_claims() == 0 {
        tokio::task::yield_now().await;
    }
    for _ in 0..20 {
        engine.store().enqueue(vec![job("a")]).await.expect_err("the commit fails");
    }
    db.execute_batch("DROP TRIGGER doom").expect("mended");
    let stored = engine.store().enqueue(vec![job("a")]).await.expect("stored");
    let claimed = waiting.await.expect("ran").expect("claimed");
    let [fernery_engine::Enqueued::Created(stored)] = &stored[..] else { panic!("{stored:?}") };
    assert_eq!(claimed.iter().map(|c| c.job_id).collect::<Vec<_>>(), [stored.job_id]);
    let counts = engine.store().stream(StreamName::stored("a")).await.expect("read").expect("there").counts;
    assert_eq!((counts.ready, counts.running), (0, 1));
    engine.close().await;
}

#[tokio::test]
async fn a_pause_that_could_not_be_written_pauses_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("fernery.db");
    let store = open(&path).expect("opens");
    store.enqueue(vec![job("a")]).await.expect("stored");
    // Fails at the commit, when everything has been written.
    let db = rusqlite::Connection::open(&path).expect("opens");
    db.execute_batch(
        "CREATE TABLE none (id INTEGER PRIMARY KEY);
         CREATE TABLE doomed (id INTEGER REFERENCES none (id) DEFERRABLE INITIALLY DEFERRED);
         CREATE TRIGGER doom AFTER UPDATE OF paused ON streams BEGIN INSERT INTO doomed VALUES (1); END;",
    )
    .expect("written");
    drop(db);
    store.set_paused(StreamName::stored("a"), true).await.expect_err("the commit fails");
    assert!(!store.stream(StreamName::stored("a")).await.expect("read").expect("there").paused);
    assert_eq!(store.claim(ask("a")).await.expect("claimed").len(), 1, "what is not paused can be claimed");
}

#[tokio::test]
async fn a_damaged_lease_does_not_keep_the_reaper_from_the_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("fernery.db");
    let settings = StoreSettings { lease_ttl: Duration::ZERO, ..StoreSettings::default() };
    let store =
        SqliteStore::open(&path, settings, door::LeaseClock::system(), Arc::default()).expect("opens");
    store.enqueue(vec![job("a"), job("a"), job("a")]).await.expect("stored");
    for _ in 0..3 {
        store.claim(ask("a")).await.expect("claimed");
    }
    let db = rusqlite::Connection::open(&path).expect("opens");
    db.execute(
        "UPDATE leases SET token_hash = x'00' WHERE resource_id = (SELECT min(resource_id) FROM leases)",
        [],
    )
    .expect("damaged");
    assert_eq!(store.reap(100).await.expect("reaped").moved, 2);
    let counts = store.stream(StreamName::stored("a")).await.expect("read").expect("there").counts;
    assert_eq!((counts.ready, counts.running), (2, 1), "the damaged one is left for a person to look at");
}

/// One that cannot be settled spoils its transaction; one that cannot be read takes the place of another.
#[tokio::test]
async fn leases_that_can_never_be_settled_keep_the_reaper_and_a_fence_from_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("fernery.db");
    let settings = StoreSettings { lease_ttl: Duration::ZERO, ..StoreSettings::default() };
    let store =
        SqliteStore::open(&path, settings, door::LeaseClock::system(), Arc::default()).expect("opens");
    store.enqueue(vec![job("a"); 260]).await.expect("stored");
    assert_eq!(store.claim(Ask { max: 260, ..ask("a") }).await.expect("claimed").len(), 260);
    let db = rusqlite::Connection::open(&path).expect("opens");
    for damage in [
        // The attempt that is open is closed as well.
        "INSERT INTO attempts (job_id, attempt_no, attempt_id, token_hash, worker_id, started_at, finished_at, outcome,
                               status, claim_version)
         SELECT resource_id, attempt_no, attempt_id, token_hash, owner_id, started_at, 1, 'LOST', 'QUEUED', 1
         FROM (SELECT * FROM leases ORDER BY resource_id LIMIT 30)",
        "UPDATE leases SET token_hash = x'00' WHERE resource_id IN
            (SELECT resource_id FROM leases ORDER BY resource_id LIMIT 210 OFFSET 30)",
    ] {
        db.execute(damage, []).expect("damaged");
    }
    let pass = store.reap(15).await.expect("reaped");
    assert_eq!((pass.moved, pass.full), (15, true));
    assert_eq!(store.fence().await.expect("fenced"), 5);
    assert_eq!(store.reap(100).await.expect("reaped").moved, 0, "and the damaged ones are left alone");
    let counts = store.stream(StreamName::stored("a")).await.expect("read").expect("there").counts;
    assert_eq!((counts.ready, counts.running), (20, 240));
}

#[tokio::test]
async fn a_file_of_an_earlier_version_is_copied_before_it_is_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("fernery.db");
    let db = rusqlite::Connection::open(&path).expect("opens");
    db.execute_batch(include_str!("../src/store/sqlite/migrations/0001_engine.sql")).expect("made");
    db.execute_batch("PRAGMA application_id = 0x4645524e; PRAGMA user_version = 1").expect("marked");
    drop(db);
    let store = open(&path).expect("migrates");
    store.enqueue(vec![job("a")]).await.expect("stored");
    store.close().await;
    let copies: Vec<_> = std::fs::read_dir(folder.path())
        .expect("listed")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .filter(|name| name.contains("before-v"))
        .collect();
    let [copy] = &copies[..] else { panic!("{copies:?}") };
    let db = rusqlite::Connection::open(folder.path().join(copy)).expect("opens");
    assert_eq!(db.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0)).expect("read"), 1);
}

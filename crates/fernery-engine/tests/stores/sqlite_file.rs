//! Promises about the database file itself: whose it is, which version, and what survives closing.

use fernery_core::{StreamName, WorkerId};
use fernery_engine::store::sqlite::SqliteStore;
use fernery_engine::store::{
    Ask, Claim, Clock, Enqueue, Maintain, NewJob, Read, Reap, Store, StoreSettings, Streams,
};
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

/// By whatever name: the lock is the file's.
#[tokio::test]
async fn a_second_server_is_refused_by_links_and_without_the_lock_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let elsewhere = tempfile::tempdir_in(folder.path()).expect("a folder");
    let path = folder.path().join("fernery.db");
    let (soft, hard) = (elsewhere.path().join("soft.db"), elsewhere.path().join("hard.db"));
    let first = open(&path).expect("the first opens");
    first.enqueue(vec![job("a")]).await.expect("stored");
    std::os::unix::fs::symlink(&path, &soft).expect("linked");
    std::fs::hard_link(&path, &hard).expect("linked");
    let refused = |path: &Path, what: &str| match open(path).err() {
        Some(StoreError::Refused(why)) => {
            assert!(why.contains(&format!("process {}", std::process::id())), "{what}: {why}");
        }
        other => panic!("{what}: {other:?}"),
    };
    refused(&soft, "a symbolic link");
    refused(&hard, "a hard link");
    std::fs::remove_file(folder.path().join("fernery.db.lock")).expect("removed");
    refused(&path, "the lock file was deleted");
    assert_eq!(
        fernery_engine::store::sqlite::health::served_by(&hard).expect("looked up"),
        Some(std::process::id())
    );
    // What was refused has taken nothing from the first: SQLite's own locks are still there.
    let other = rusqlite::Connection::open(&path).expect("opens");
    other.execute_batch("PRAGMA busy_timeout = 0").expect("set");
    other.pragma_update(None, "locking_mode", "EXCLUSIVE").expect("set");
    assert!(other.execute_batch("BEGIN EXCLUSIVE; DELETE FROM jobs; COMMIT").is_err());
    drop(other);
    first.enqueue(vec![job("a")]).await.expect("stored");
    first.close().await;
    open(&soft).expect("free again once closed").close().await;
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
    assert!(matches!(open(&other), Err(StoreError::Refused(why)) if why.contains("not a Fernery database")));

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
        async move { engine.claim(ask("a"), Duration::from_secs(60)).await }
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
        async move { engine.claim(ask("a"), Duration::from_secs(60)).await }
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
async fn a_corrupt_lease_does_not_block_the_reaper() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("fernery.db");
    let settings = StoreSettings { lease_ttl: Duration::ZERO, ..StoreSettings::default() };
    let store =
        SqliteStore::open(&path, settings, door::LeaseClock::system(), Arc::default()).expect("opens");
    store.enqueue(vec![job("a"), job("a"), job("a")]).await.expect("stored");
    assert_eq!(store.claim(Ask { max: 3, ..ask("a") }).await.expect("claimed").len(), 3);
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
async fn unsettleable_leases_block_neither_the_reaper_nor_the_fence() {
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
    assert_eq!(store.claim(Ask { max: 260, ..ask("a") }).await.expect("claimed").len(), 20);
    assert_eq!(store.claim(ask("a")).await.expect("claimed").len(), 1, "nor are claims kept from the others");
}

fn at(hours: i64) -> door::LeaseClock {
    door::LeaseClock::manual(fernery_core::Timestamp::from_millis(1_800_000_000_000 + hours * 3_600_000))
}

fn open_at(path: &Path, clock: &door::LeaseClock) -> SqliteStore {
    SqliteStore::open(path, StoreSettings::default(), clock.clone(), Arc::default()).expect("opens")
}

#[tokio::test]
async fn the_clock_never_goes_back_over_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("fernery.db");
    let store = open_at(&path, &at(1));
    store.enqueue(vec![job("a")]).await.expect("stored");
    store.claim(ask("a")).await.expect("claimed");
    let before = store.now().await.expect("now");
    store.close().await;
    // It was set back by an hour while nobody served.
    let clock = at(0);
    let store = open_at(&path, &clock);
    assert_eq!(store.now().await.expect("now"), before);
    assert_eq!(store.reap(10).await.expect("reaped").moved, 0, "that ends no lease");
    clock.advance(StoreSettings::default().lease_ttl);
    assert_eq!(store.reap(10).await.expect("reaped").moved, 1, "nor prolongs one");
}

/// Where it is put right again, nothing is left of it.
#[tokio::test]
async fn a_clock_that_was_far_ahead_leaves_no_instants_of_the_future() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("fernery.db");
    open_at(&path, &at(0)).close().await;
    let year = 365 * 24;
    // Twice: what the first one wrote is no proof for the second.
    for _ in 0..2 {
        let store = open_at(&path, &at(year));
        let doubt = store.clock_doubt().await.expect("judged").expect("it is in doubt");
        assert_eq!(doubt.clock_at, at(year).now());
        store.enqueue(vec![job("a")]).await.expect("it serves all the same");
        store.claim(ask("a")).await.expect("claimed");
        store.tidy().await.expect("kept");
        assert!(store.now().await.expect("now") <= at(1).now());
        store.close().await;
    }
    let store = open_at(&path, &at(2));
    assert_eq!(store.clock_doubt().await, Ok(None));
    assert_eq!(store.now().await.expect("now"), at(2).now());
    store.close().await;
}

const FIRST: &str = include_str!("../../src/store/sqlite/migrations/0001_engine.sql");

fn first_version(path: &Path) {
    let db = rusqlite::Connection::open(path).expect("opens");
    db.execute_batch(FIRST).expect("made");
    db.execute_batch("PRAGMA application_id = 0x4645524e; PRAGMA user_version = 1").expect("marked");
}

#[tokio::test]
async fn a_file_of_an_earlier_version_is_copied_before_it_is_changed() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("fernery.db");
    let copy = folder.path().join("fernery.db.schema-v1");
    first_version(&path);
    // What a killed process may have left: half a copy, and one of another state of the database.
    std::fs::write(folder.path().join("fernery.db.schema-v1.partial"), "half a co").expect("written");
    std::fs::write(&copy, "a copy of long ago").expect("written");
    let store = open(&path).expect("migrates");
    store.enqueue(vec![job("a")]).await.expect("stored");
    store.close().await;
    let names = std::fs::read_dir(folder.path()).expect("listed");
    let names = names.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"));
    let mut names: Vec<_> = names.filter(|name| name.contains("schema")).collect();
    names.sort();
    assert_eq!(names, ["fernery.db.schema-v1"]);
    assert_eq!(std::fs::metadata(&copy).expect("there").permissions().mode() & 0o777, 0o600);
    let db = rusqlite::Connection::open(&copy).expect("opens");
    assert_eq!(db.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0)).expect("read"), 1);
    assert_eq!(
        db.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0)).expect("read"),
        "ok"
    );
    assert_eq!(db.query_row("SELECT count(*) FROM jobs", [], |row| row.get::<_, i64>(0)).expect("read"), 0);
}

#[tokio::test]
async fn an_upgrade_counts_as_a_use_of_every_stream() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("fernery.db");
    first_version(&path);
    let before = fernery_engine::door::wall_clock().as_millis();
    let db = rusqlite::Connection::open(&path).expect("opens");
    db.execute_batch("INSERT INTO streams (name) VALUES ('a')").expect("a stream");
    open(&path).expect("migrates").close().await;
    let used_at: i64 = db.query_row("SELECT used_at FROM streams", [], |row| row.get(0)).expect("read");
    assert!(used_at >= before - 1_000, "{used_at}, and it was {before}");
}

#[tokio::test]
async fn without_a_copy_nothing_is_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("fernery.db");
    first_version(&path);
    std::fs::create_dir_all(folder.path().join("fernery.db.schema-v1/in the way")).expect("made");
    match open(&path).err() {
        Some(StoreError::Refused(why)) => {
            assert!(why.contains("schema-v1") && why.contains("not changed"), "{why}")
        }
        other => panic!("{other:?}"),
    }
    let db = rusqlite::Connection::open(&path).expect("opens");
    assert_eq!(db.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0)).expect("read"), 1);
}

/// What an azolla is asked for most is read in the order of an index up to the limit.
#[tokio::test]
async fn the_weightiest_objectives_are_read_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("fernery.db");
    open(&path).expect("opens").close().await;
    let db = rusqlite::Connection::open(&path).expect("opens");
    for (sql, indexes) in [
        (include_str!("../../src/pipeline/sql/objectives_open.sql"), &["objectives_open "][..]),
        (
            include_str!("../../src/pipeline/sql/objectives_weighed.sql"),
            &["objectives_open ", "objectives_cancelled ", "objectives_done "],
        ),
    ] {
        let mut planned = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("prepared");
        let (mut rows, mut plan) = (planned.raw_query(), Vec::new());
        while let Some(row) = rows.next().expect("a row") {
            plan.push(row.get::<_, String>(3).expect("a line"));
        }
        let plan = plan.join("\n");
        let used: Vec<&str> = plan.matches("USING INDEX objectives_").collect();
        assert_eq!(used.len(), indexes.len(), "{plan}");
        assert!(indexes.iter().all(|index| plan.contains(&format!("USING INDEX {index}"))), "{plan}");
        // What both come to is put in order, each at most the limit; what they are read from is in order.
        let sorted = |two: &[&str]| two[0].contains("USING INDEX") && two[1].contains("TEMP B-TREE");
        assert!(!plan.lines().collect::<Vec<_>>().windows(2).any(sorted), "{plan}");
    }
}

/// The lines of a plan, of a database of ours.
fn plan_of(db: &rusqlite::Connection, sql: &str) -> Vec<String> {
    let mut planned = db.prepare(&format!("EXPLAIN QUERY PLAN {}", sql.replace('$', "?"))).expect("prepared");
    let (mut rows, mut plan) = (planned.raw_query(), Vec::new());
    while let Some(row) = rows.next().expect("a row") {
        plan.push(row.get::<_, String>(3).expect("a line"));
    }
    plan
}

/// A range of an index is read in its order, so that the limit on it ends the look; what has passed is not in the range.
#[tokio::test]
async fn parts_of_ids_and_snoozes_are_read_in_ranges_of_an_index() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("fernery.db");
    open(&path).expect("opens").close().await;
    let db = rusqlite::Connection::open(&path).expect("opens");
    for (sql, table, range) in [
        (
            include_str!("../../src/pipeline/sql/ids_of_objectives.sql"),
            "objectives",
            "(objective_id>? AND objective_id<?)",
        ),
        (
            include_str!("../../src/pipeline/sql/ids_of_candidates.sql"),
            "candidates",
            "(candidate_id>? AND candidate_id<?)",
        ),
        (
            include_str!("../../src/pipeline/sql/ids_of_captures.sql"),
            "captures",
            "(capture_id>? AND capture_id<?)",
        ),
        (
            include_str!("../../src/pipeline/sql/ids_of_workorders.sql"),
            "workorders",
            "(work_order_id>? AND work_order_id<?)",
        ),
        (include_str!("../../src/pipeline/sql/ids_of_runs.sql"), "runs", "(run_id>? AND run_id<?)"),
        (include_str!("../../src/store/sqlite/sql/job_ids_between.sql"), "jobs", "(job_id>? AND job_id<?)"),
        (include_str!("../../src/pipeline/sql/candidates_count.sql"), "s", "(kind=? AND until>?)"),
        (include_str!("../../src/pipeline/sql/snoozes_passed_delete.sql"), "snoozes", "(kind=? AND until<?)"),
        (
            include_str!("../../src/pipeline/sql/recurrences_due.sql"),
            "recurrences",
            "(azolla_id=? AND next_at<?)",
        ),
        (
            include_str!("../../src/pipeline/sql/landings_branch_after.sql"),
            "landings",
            "(azolla_id=? AND (repo_ref,base_branch)>(?,?))",
        ),
        (include_str!("../../src/pipeline/sql/answer_last.sql"), "decisions", "(objective_id=?)"),
        (
            include_str!("../../src/store/sqlite/sql/dead_letters_page_of_stream.sql"),
            "dead_letters",
            "(stream=? AND (buried_at,job_id)<(?,?))",
        ),
        (
            include_str!("../../src/store/sqlite/sql/dead_letters_page_of_code.sql"),
            "dead_letters",
            "(code=? AND (buried_at,job_id)<(?,?))",
        ),
        (
            include_str!("../../src/store/sqlite/sql/dead_letters_page_of_both.sql"),
            "dead_letters",
            "(stream=? AND code=? AND (buried_at,job_id)<(?,?))",
        ),
        (include_str!("../../src/pipeline/sql/comments_of_run.sql"), "comments", "(run_id=?)"),
        (include_str!("../../src/pipeline/sql/comments_count.sql"), "comments", "(run_id=?)"),
        (
            include_str!("../../src/pipeline/sql/viewed_of.sql"),
            "viewed_files",
            "(objective_id=? AND reviewer=?)",
        ),
    ] {
        let plan = plan_of(&db, sql);
        let whole = plan.join("\n");
        assert!(
            plan.iter().any(|step| step.starts_with(&format!("SEARCH {table} ")) && step.ends_with(range)),
            "{whole}"
        );
        assert!(!plan.iter().any(|step| step == &format!("SCAN {table}")), "{whole}");
    }
}

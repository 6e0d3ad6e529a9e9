//! What an operator meets over the years: upgrades that are killed or go on under load, servers of two versions, and a clock
//! that jumped.

use crate::fresh_database::{FreshDatabase, empty_database, fresh_database};
use crate::program::patience::until;
use crate::program::{Server, fernery, run_in};
use rusqlite::Connection;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

macro_rules! migrations {
    ($backend:literal: $($name:literal),+) => {
        [$(include_str!(concat!("../../../fernery-engine/src/store/", $backend, "/migrations/", $name))),+]
    };
}

/// The schema of the first release with jobs alone.
const SQLITE_V1: [&str; 1] = migrations!("sqlite": "0001_engine.sql");
/// The schema before there was a pipeline.
const POSTGRES_V5: [&str; 5] = migrations!(
    "postgres": "0001_jobs.sql", "0002_progress.sql", "0003_inbox.sql", "0004_transport.sql", "0005_processes.sql"
);
const MIGRATE_BEGIN: &str = include_str!("../../../fernery-engine/src/store/postgres/sql/migrate_begin.sql");

/// A file as an old program left it, with one job that waits.
fn old_file(path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let db = Connection::open(path).unwrap();
    SQLITE_V1.iter().for_each(|step| db.execute_batch(step).unwrap());
    db.execute_batch(
        "PRAGMA application_id = 0x4645524e; PRAGMA user_version = 1;
         INSERT INTO jobs (job_id, stream, payload, max_attempts, created_at, run_at, seq, claim_version)
         VALUES (x'00000000000070008000000000000001', 'old', '{}', 5, 1700000000000, 1700000000000, 1, 0);
         INSERT INTO ready (stream, seq, job_id, ready_at, claim_version, attempt_no, failed, lost, released)
         VALUES ('old', 1, x'00000000000070008000000000000001', 1700000000000, 0, 0, 0, 0, 0);
         INSERT INTO streams (name, ready) VALUES ('old', 1);
         UPDATE marks SET value = 2 WHERE name = 'seq';",
    )
    .unwrap();
}

pub(crate) fn file_version(path: &Path) -> usize {
    let db = Connection::open(path).unwrap();
    assert_eq!(db.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0)).unwrap(), "ok");
    db.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

/// A database as an old program left it, with one job that waits.
async fn old_database() -> FreshDatabase {
    let database = empty_database().await;
    let client = database.client().await;
    client.batch_execute(MIGRATE_BEGIN).await.unwrap();
    for (step, version) in POSTGRES_V5.iter().zip(1..) {
        client.batch_execute(step).await.unwrap();
        let mark = format!("INSERT INTO fernery.schema_version VALUES ({version}, clock_timestamp())");
        client.batch_execute(&mark).await.unwrap();
    }
    client.batch_execute("COMMIT; SELECT fernery.enqueue('old', '{}')").await.unwrap();
    database
}

pub(crate) async fn database_version(database: &FreshDatabase) -> i32 {
    let client = database.client().await;
    client.query_one("SELECT max(version) FROM fernery.schema_version", &[]).await.unwrap().get(0)
}

/// Starts a server that is killed at this place.
fn killed_at(place: &str, dir: &Path, database: &str) {
    let mut command = fernery();
    command.current_dir(dir).env("FERNERY_FAILPOINT", place);
    let ended = command.args(["up", "--listen", "127.0.0.1:0", "--database", database]).output().unwrap();
    assert_eq!(ended.status.signal(), Some(9), "{place}: {ended:?}");
}

/// The old job is there, once, and can be done.
fn does_the_old_job(server: &Server) {
    let claimed = loop {
        if let Some(claimed) = server.claim("old") {
            break claimed;
        }
    };
    let report = json!({
        "worker_id": "w1", "job_id": claimed["job_id"], "attempt_id": claimed["attempt_id"],
        "lease_token": claimed["lease_token"], "result": {},
    });
    let (status, answer) = server.post("worker.token", "/internal/worker/complete", &report);
    assert_eq!(status, 200, "{answer}");
    assert_eq!(server.claim("old"), None);
}

#[test]
fn an_upgrade_of_a_file_may_be_killed_at_every_step() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("kept/fernery.db");
    let copy = dir.path().join("kept/fernery.db.schema-v1");
    old_file(&path);
    let database = format!("sqlite:{}", path.display());
    for place in ["upgrade-copy-begin", "upgrade-copy-written", "upgrade-copy-synced"] {
        killed_at(place, dir.path(), &database);
        assert_eq!((file_version(&path), copy.exists()), (1, false), "{place}");
    }
    let steps = (1..=12).flat_map(|n| [format!("migrate-step@{n}"), format!("migrate-marked@{n}")]);
    for place in ["upgrade-copy-kept".to_string(), "migrate-begin".to_string()].into_iter().chain(steps) {
        killed_at(&place, dir.path(), &database);
        assert_eq!((file_version(&path), file_version(&copy)), (1, 1), "{place}");
    }
    killed_at("migrate-committed", dir.path(), &database);
    assert_eq!((file_version(&path), file_version(&copy)), (18, 1));
    does_the_old_job(&Server::start(&["--database", &database]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_of_a_database_may_be_killed_at_every_step() {
    let (dir, database) = (tempfile::tempdir().unwrap(), old_database().await);
    let steps = (1..=12).flat_map(|n| [format!("migrate-step@{n}"), format!("migrate-marked@{n}")]);
    for place in ["migrate-begin".to_string()].into_iter().chain(steps) {
        killed_at(&place, dir.path(), &database.url());
        assert_eq!(database_version(&database).await, 5, "{place}");
    }
    killed_at("migrate-committed", dir.path(), &database.url());
    assert_eq!(database_version(&database).await, 22);
    does_the_old_job(&Server::start(&["--database", &database.url()]));
}

/// Other programs go on to insert jobs while two new servers start at once and one of them migrates.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_under_load_loses_and_doubles_nothing() {
    let database = old_database().await;
    let stop = Arc::new(AtomicBool::new(false));
    let mut producers = Vec::new();
    for n in 0..2 {
        let (client, stop) = (database.client().await, stop.clone());
        producers.push(tokio::spawn(async move {
            let mut ids = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                // Some are taken back: those were never jobs.
                let end = if ids.len() % 7 == n { "ROLLBACK" } else { "COMMIT" };
                client.batch_execute("BEGIN").await.unwrap();
                let row = client.query_one("SELECT fernery.enqueue('load', '{}')::text", &[]).await.unwrap();
                client.batch_execute(end).await.unwrap();
                ids.push((row.get::<_, String>(0), end == "COMMIT"));
            }
            ids
        }));
    }
    let url = database.url();
    let start = || Server::start(&["--database", &url]);
    let (one, two) = std::thread::scope(|scope| {
        let one = scope.spawn(start);
        (scope.spawn(start).join().unwrap(), one.join().unwrap())
    });
    stop.store(true, Ordering::Relaxed);
    let mut wanted = HashSet::new();
    for producer in producers {
        wanted.extend(producer.await.unwrap().into_iter().filter(|(_, kept)| *kept).map(|(id, _)| id));
    }
    assert!(wanted.len() > 20, "there was some load: {}", wanted.len());
    let mut claimed = Vec::new();
    while claimed.len() < wanted.len() {
        for server in [&one, &two] {
            claimed.extend(server.claim("load").map(|job| job["job_id"].as_str().unwrap().to_string()));
        }
    }
    assert_eq!(claimed.iter().cloned().collect::<HashSet<_>>(), wanted);
    assert_eq!((one.claim("load"), two.claim("load")), (None, None));
    does_the_old_job(&one);
}

/// As this program is to the next one: what runs goes on, what starts says why it does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beside_a_newer_version_a_server_goes_on_and_a_start_is_refused() {
    let database = fresh_database().await;
    let url = database.url();
    let server = Server::start(&["--database", &url]);
    let newer = "INSERT INTO fernery.schema_version VALUES (23, clock_timestamp());
                 ALTER TABLE fernery.jobs ADD COLUMN of_the_future text;
                 CREATE TABLE fernery.of_the_future (x integer);";
    database.client().await.batch_execute(newer).await.unwrap();
    let job = json!({"stream": "old", "payload": {}});
    assert_eq!(server.post("operator.token", "/v1/jobs", &job).0, 201);
    does_the_old_job(&server);
    assert_eq!(server.read("/readyz").0, 200);
    let dir = tempfile::tempdir().unwrap();
    let refused = run_in(dir.path(), ["up", "--listen", "127.0.0.1:0", "--database", &url]).exits(1);
    assert!(
        refused.stderr.contains("schema version 23, this program supports versions up to 22"),
        "{refused:?}"
    );
}

/// What `/readyz` and `doctor` say about the clock.
fn told(server: &Server, flags: &[&str]) -> (Value, bool) {
    let (status, ready) = server.read("/readyz");
    assert_eq!(status, 200, "{ready}");
    let doctor = server.run(["doctor"].iter().chain(flags)).stdout;
    let clock = ready["findings"][0].clone();
    if !clock.is_null() {
        assert_eq!((&ready["status"], &clock["check"]), (&json!("degraded"), &json!("clock")));
        assert!(clock["remedy"].as_str().unwrap().contains("fernery clock confirm"), "{clock}");
        assert!(doctor.contains("fernery clock confirm"), "{doctor}");
        assert!(doctor.contains("dated in the past"), "what waiting costs: {doctor}");
    }
    (clock, doctor.contains("clock_step"))
}

/// As if the machine had been booted since, with a clock that is 400 days ahead, and the server started again.
const BACK: &str = "UPDATE marks SET value = value - 400 * 86400000 WHERE name = 'clock';
                    UPDATE marks SET value = 1 WHERE name IN ('clock_boot', 'clock_doubt');";

#[test]
fn a_clock_in_doubt_is_told_and_confirmed_on_a_file() {
    let server = Server::start(&[]);
    let path = server.data().join("fernery.db");
    assert_eq!(told(&server, &[]), (Value::Null, false));
    server.signal(Signal::TERM);
    let (_, dir) = server.ended();
    Connection::open(&path).unwrap().execute_batch(BACK).unwrap();
    let server = Server::start_in(dir, &[]);
    let (clock, step) = told(&server, &[]);
    assert!(!clock.is_null() && step, "{clock}");
    let job = json!({"stream": "s", "payload": {}, "timeout_seconds": 20});
    assert_eq!(server.post("operator.token", "/v1/jobs", &job).0, 201);
    let held = server.claim("s").expect("a job");
    let beat = json!({"job_id": held["job_id"], "worker_id": "w1", "lease_token": held["lease_token"]});
    let (status, beat) = server.post("worker.token", "/internal/worker/heartbeat", &beat);
    assert_eq!(status, 200, "{beat}");
    assert!(beat["server_time"].as_str() < beat["lease_expires_at"].as_str(), "time is left: {beat}");
    let busy = server.run(["clock", "confirm"]).exits(1);
    assert!(busy.stderr.contains(&format!("in use by process {}", server.pid())), "{busy:?}");
    server.signal(Signal::TERM);
    let (_, dir) = server.ended();
    let confirmed = run_in(dir.path(), ["clock", "confirm", "--json"]).exits(0).json();
    assert_eq!(confirmed["was_in_doubt"], true);
    assert_eq!(told(&Server::start_in(dir, &[]), &[]), (Value::Null, false));
}

#[test]
fn a_clock_in_doubt_empties_no_trash() {
    let server = Server::start(&[]);
    let data = server.data();
    server.signal(Signal::TERM);
    let (_, dir) = server.ended();
    Connection::open(data.join("fernery.db")).unwrap().execute_batch(BACK).unwrap();
    let folder = data.join("trash/run");
    std::fs::create_dir_all(&folder).unwrap();
    // Handed in 300 days before this clock: past its grace period if the clock is right, not if it is 400 days ahead.
    let then = fernery_engine::door::wall_clock().before(Duration::from_secs(300 * 24 * 3600));
    let note = json!({"name": "run", "work_order_id": "w", "attempt_id": "a", "captured": true,
        "why": "handed in", "discarded_at": then});
    std::fs::write(folder.join("trash.json"), note.to_string()).unwrap();
    let server = Server::start_in(dir, &[]);
    assert!(!told(&server, &[]).0.is_null());
    // The worker `cleanup` empties the trash from its second pass on.
    until(|| {
        let workers = server.read("/v1/azollas/mec").1["workers"].clone();
        let cleanup = workers.as_array()?.iter().find(|worker| worker["worker"] == "cleanup")?;
        cleanup["passes"].as_u64().filter(|passes| *passes >= 2)
    });
    assert!(folder.exists(), "it was deleted by a clock in doubt");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_in_doubt_is_told_and_confirmed_on_a_database() {
    let database = fresh_database().await;
    let url = database.url();
    let first = Server::start(&["--database", &url]);
    first.signal(Signal::TERM);
    let (_, dir) = first.ended();
    let back = "UPDATE fernery.clock SET newest_at = clock_timestamp() - interval '400 days', boot = 1";
    database.client().await.batch_execute(back).await.unwrap();
    let server = Server::start_in(dir, &["--database", &url]);
    let flags = ["--database", url.as_str()];
    let (clock, step) = told(&server, &flags);
    assert!(!clock.is_null() && step, "{clock}");
    let confirmed = server.run(["clock", "confirm"].iter().chain(&flags)).exits(0).stdout;
    assert!(confirmed.contains("retention resumes"), "{confirmed}");
    // The answer of a second ago may be given again.
    while server.read("/readyz").1["status"] != "ok" {
        std::thread::yield_now();
    }
    assert_eq!(told(&server, &flags), (Value::Null, false));
}

//! `fernery backup`: the copy is whole, under load too, and a backup that fails leaves nothing.

use crate::campaign;
use crate::cluster;
use crate::program::{Answer, Server, fernery, run_in};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// Names in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The name under which a copy to `copy.db` grows.
const UNFINISHED: &str = ".copy.db.fernery-backup";

/// A folder in which a server has run and ended, with this many jobs of this many bytes.
fn stopped(jobs: usize, bytes: usize) -> TempDir {
    let server = Server::start(&[]);
    server.signal(Signal::TERM);
    let (status, dir) = server.ended();
    assert!(status.success());
    let mut db = rusqlite::Connection::open(dir.path().join(".fernery/fernery.db")).unwrap();
    let tx = db.transaction().unwrap();
    let payload = json!({"x": "x".repeat(bytes)}).to_string();
    for n in 0..jobs {
        let sql = "INSERT INTO jobs (job_id, stream, payload, max_attempts, created_at, run_at, seq, ended, ended_at,
                   claim_version) VALUES (?1, 's', ?2, 1, 1, 1, ?3, 'CANCELLED', 1, 1)";
        tx.execute(sql, rusqlite::params![(n as u128).to_be_bytes(), payload, n]).unwrap();
    }
    tx.commit().unwrap();
    drop(db);
    dir
}

#[test]
fn a_stopped_database_is_copied_exactly_and_the_copy_is_one() {
    let dir = stopped(3, 100);
    let answer = run_in(dir.path(), ["backup", "copy.db", "--json"]).exits(0).json();
    assert_eq!(answer["rows"]["jobs"], 3, "{answer}");
    assert_eq!(answer["rows"]["tokens"], 2, "{answer}");
    assert_eq!(answer["compared"], "exactly", "{answer}");
    let copy = dir.path().join("copy.db");
    let meta = fs::metadata(&copy).unwrap();
    assert_eq!(meta.mode() & 0o777, 0o600);
    assert_eq!(answer["bytes"], meta.len(), "{answer}");
    assert_eq!(names(dir.path()), [".fernery", "copy.db"]);
    let seen = run_in(dir.path(), ["doctor", "--json", "--database", "sqlite:copy.db"]).json();
    let schema = seen.as_array().unwrap().iter().find(|finding| finding["check"] == "schema");
    assert_eq!(schema.unwrap()["level"], "ok", "{seen}");

    let people = run_in(dir.path(), ["backup", "other.db"]).exits(0);
    assert!(people.stdout.contains("verified  integrity, schema version"), "{people:?}");
    // The tokens of the data directory are in it, so a server takes it as its own.
    let server = Server::start_in(dir, &["--database", "sqlite:copy.db"]);
    let listed = server.run(["job", "list", "--json", "--all"]).exits(0);
    assert_eq!(listed.stdout.matches("CANCELLED").count(), 3, "{listed:?}");
}

#[test]
fn an_existing_file_is_replaced_only_with_force() {
    let dir = stopped(1, 100);
    let copy = dir.path().join("copy.db");
    fs::write(&copy, "precious").unwrap();
    fs::set_permissions(&copy, PermissionsExt::from_mode(0o644)).unwrap();
    let answer = run_in(dir.path(), ["backup", "copy.db"]).exits(4);
    assert!(answer.stderr.contains("--force"), "{answer:?}");
    assert_eq!(fs::read_to_string(&copy).unwrap(), "precious");
    // What a backup that was killed has left is taken over; a file of somebody else's is not.
    fs::write(dir.path().join(UNFINISHED), "half a copy").unwrap();
    fs::write(dir.path().join("copy.db.tmp"), "precious too").unwrap();
    run_in(dir.path(), ["backup", "copy.db", "--force"]).exits(0);
    assert_eq!(fs::metadata(&copy).unwrap().mode() & 0o777, 0o600);
    assert!(fs::read(&copy).unwrap().starts_with(b"SQLite format 3\0"));
    assert_eq!(fs::read_to_string(dir.path().join("copy.db.tmp")).unwrap(), "precious too");
    assert_eq!(names(dir.path()), [".fernery", "copy.db", "copy.db.tmp"]);

    // What another backup is writing is not.
    let busy = fs::File::create(dir.path().join(UNFINISHED)).unwrap();
    rustix::fs::flock(&busy, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let answer = run_in(dir.path(), ["backup", "copy.db", "--force"]).exits(4);
    assert!(answer.stderr.contains("another backup"), "{answer:?}");
    assert_eq!(names(dir.path()), [UNFINISHED, ".fernery", "copy.db", "copy.db.tmp"]);
}

/// SQLite would read a log that lies beside the copy as a part of it.
/// Whether every thread of a process has stopped; a signal reaches them one after the other.
fn stands_still(pid: impl std::fmt::Display) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    threads.flatten().all(|thread| {
        let status = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        status.contains("\nState:\tT")
    })
}

#[test]
fn a_backup_refuses_a_target_with_a_stale_log_or_a_running_server() {
    let dir = stopped(1, 100);
    for beside in ["copy.db-wal", "copy.db-shm", "copy.db-journal"] {
        fs::write(dir.path().join(beside), "of an earlier file").unwrap();
        for args in [&["backup", "copy.db"][..], &["backup", "copy.db", "--force"]] {
            let answer = run_in(dir.path(), args).exits(4);
            assert!(
                answer.stderr.contains(beside) && answer.stderr.contains("mix its content into"),
                "{answer:?}"
            );
        }
        assert_eq!(names(dir.path()), [".fernery", beside]);
        fs::remove_file(dir.path().join(beside)).unwrap();
    }
    let elsewhere = Server::start(&[]);
    let served = elsewhere.data().join("fernery.db");
    // It stands still, or a reader of its own makes them anew.
    elsewhere.signal(rustix::process::Signal::STOP);
    while !stands_still(elsewhere.pid()) {
        std::thread::yield_now();
    }
    for end in ["-wal", "-shm"] {
        fs::remove_file(elsewhere.data().join(format!("fernery.db{end}"))).unwrap();
    }
    let args = ["backup".as_ref(), "--force".as_ref(), served.as_os_str()];
    let answer = run_in(dir.path(), args).exits(4);
    elsewhere.signal(rustix::process::Signal::CONT);
    assert!(answer.stderr.contains(&format!("process {} serves", elsewhere.pid())), "{answer:?}");
}

#[test]
fn a_backup_refuses_unusable_targets() {
    let dir = stopped(1, 100);
    fs::create_dir(dir.path().join("folder")).unwrap();
    symlink(".fernery", dir.path().join("way")).unwrap();
    symlink("folder", dir.path().join(".folder.db.fernery-backup")).unwrap();
    for (args, exit, said) in [
        (&["backup"][..], 2, "<FILE>"),
        (&["backup", "no/such/copy.db"], 2, "create it, or name a file elsewhere"),
        (&["backup", "folder"], 2, "not a regular file"),
        (&["backup", "folder.db"], 2, "cannot write"),
        (&["backup", "--force", ".fernery/fernery.db"], 2, "belongs to the database"),
        (&["backup", "--force", "way/fernery.db"], 2, "belongs to the database"),
        (&["backup", "--force", "way/fernery.db-wal"], 2, "belongs to the database"),
        (&["backup", "--force", "way/fernery.db.lock"], 2, "belongs to the database"),
        (&["backup", "copy.db", "--data", "elsewhere"], 3, "no database at elsewhere"),
        (&["backup", "copy.db", "--database", "sqlite:folder"], 2, "is not a file"),
        (&["backup", "copy.db", "--lease-ttl", "5s"], 2, "unexpected argument"),
        (&["backup", "new/"], 2, "is a folder"),
        (&["backup", "folder/."], 2, "is a folder"),
        (&["backup", "-"], 2, "cannot go to stdout"),
    ] {
        let answer = run_in(dir.path(), args).exits(exit);
        assert!(answer.stderr.contains(said), "{args:?}: {answer:?}");
        assert_eq!(run_in(dir.path(), args.iter().chain(&["--json"])).exits(exit).json()["exit_code"], exit);
    }
    assert_eq!(names(dir.path()), [".fernery", ".folder.db.fernery-backup", "folder", "way"]);
    run_in(dir.path(), ["backup", "copy.db"]).exits(0);
}

#[test]
fn a_damaged_or_foreign_database_is_not_copied() {
    let dir = stopped(200, 2_000);
    let database = dir.path().join(".fernery/fernery.db");
    let mut bytes = fs::read(&database).unwrap();
    let half = bytes.len() / 2;
    bytes[half..half + 64 * 1024].fill(0);
    fs::write(&database, bytes).unwrap();
    let answer = run_in(dir.path(), ["backup", "copy.db"]).exits(1);
    assert!(
        answer.stderr.contains("could not copy") && answer.stderr.contains("last good backup"),
        "{answer:?}"
    );
    let other = dir.path().join("other.db");
    rusqlite::Connection::open(&other).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    let answer = run_in(dir.path(), ["backup", "copy.db", "--database", "sqlite:other.db"]).exits(1);
    assert!(answer.stderr.contains("not a Fernery database"), "{answer:?}");
    assert_eq!(names(dir.path()), [".fernery", "other.db"]);
}

/// Runs a backup onto a file system of this test's own, made with these options; what is on it afterwards follows on stdout.
fn onto_tmpfs(dir: &Path, options: &str) -> Answer {
    let mount = dir.join("disk");
    fs::create_dir_all(&mount).unwrap();
    let script = "mount -t tmpfs -o \"$1\" tmpfs disk || exit 90
                  \"$2\" backup disk/copy.db; code=$?; ls -A disk; exit $code";
    let mut command = Command::new("unshare");
    command.current_dir(dir).args([
        "--mount",
        "--user",
        "--map-root-user",
        "sh",
        "-c",
        script,
        "sh",
        options,
    ]);
    command.arg(fernery().get_program());
    let answer: Answer = command.output().expect("unshare runs; it is in Debian's package util-linux").into();
    assert_ne!(answer.code, Some(90), "a mount namespace of a test's own is needed: {answer:?}");
    answer
}

#[test]
fn a_full_or_read_only_disk_is_reported_and_left_clean() {
    let dir = stopped(200, 10_000);
    let full = onto_tmpfs(dir.path(), "size=1m").exits(1);
    assert!(full.stderr.contains("no space left in"), "{full:?}");
    assert!(full.stderr.contains("name a file on another disk"), "{full:?}");
    assert_eq!(full.stdout, "", "nothing is left");
    let closed = onto_tmpfs(dir.path(), "ro").exits(2);
    assert!(closed.stderr.contains("Read-only file system"), "{closed:?}");
    let roomy = onto_tmpfs(dir.path(), "size=64m").exits(0);
    assert!(roomy.stdout.ends_with("copy.db\n"), "{roomy:?}");
}

#[test]
fn an_interrupted_backup_leaves_nothing() {
    let dir = stopped(100, 1_000_000);
    for ending in [Signal::TERM, Signal::INT] {
        let mut command = fernery();
        command.current_dir(dir.path()).args(["backup", "copy.db"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_raw(child.id() as i32).unwrap();
        while !dir.path().join(UNFINISHED).exists() {
            assert!(!dir.path().join("copy.db").exists(), "it was done before it could be told");
            std::thread::yield_now();
        }
        kill_process(pid, ending).unwrap();
        let answer = Answer::from(child.wait_with_output().unwrap()).exits(1);
        assert!(answer.stderr.contains("it was stopped"), "{answer:?}");
        assert_eq!(names(dir.path()), [".fernery"]);
    }
}

/// Producers and workers that go on until they are told to stop; the ids whose enqueue was acknowledged.
struct Load {
    acknowledged: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicBool>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Load {
    fn start(target: &campaign::Target) -> Self {
        let mut load = Self { acknowledged: Arc::default(), stop: Arc::default(), tasks: Vec::new() };
        for _ in 0..3 {
            let (target, ids, stop) = (target.clone(), load.acknowledged.clone(), load.stop.clone());
            load.tasks.push(tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let job = json!({"stream": "s", "payload": {"x": "x".repeat(2_000)}});
                    let jobs = Value::Array(vec![job; 20]);
                    let (status, answer) =
                        target.call(&target.operator, "POST", "/v1/jobs", &jobs).await.unwrap();
                    assert!((200..300).contains(&status), "{answer}");
                    let stored = answer["jobs"].as_array().unwrap().iter();
                    ids.lock().unwrap().extend(stored.map(|job| job["job_id"].as_str().unwrap().to_string()));
                }
            }));
        }
        for n in 0..3 {
            let (target, stop) = (target.clone(), load.stop.clone());
            load.tasks.push(tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let ask = json!({"worker_id": format!("w{n}"), "streams": ["s"], "max_wait_ms": 100});
                    let (_, claimed) =
                        target.call(&target.worker, "POST", "/internal/worker/claim", &ask).await.unwrap();
                    if claimed["claimed"] == true {
                        let done = json!({"worker_id": format!("w{n}"), "job_id": claimed["job_id"],
                            "attempt_id": claimed["attempt_id"], "lease_token": claimed["lease_token"],
                            "result": {"ok": true}});
                        target
                            .call(&target.worker, "POST", "/internal/worker/complete", &done)
                            .await
                            .unwrap();
                    }
                }
            }));
        }
        load
    }

    fn acknowledged(&self) -> Vec<String> {
        self.acknowledged.lock().unwrap().clone()
    }

    async fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.expect("the load ran without a failure");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_under_load_has_everything_that_was_acknowledged_before_it_began() {
    let dir = tempfile::tempdir().unwrap();
    let database = format!("sqlite:{}", dir.path().join("live.db").display());
    let server = campaign::Server::start(Some(&database), &[]).await;
    let load = Load::start(&server.target);
    let mut acknowledged = Vec::new();
    for round in 1..=3 {
        while load.acknowledged().len() < acknowledged.len() + 200 {
            tokio::task::yield_now().await;
        }
        acknowledged = load.acknowledged();
        let (folder, database) = (dir.path().to_owned(), database.clone());
        let backup = move || {
            run_in(&folder, ["backup", "copy.db", "--force", "--json", "--database", &database])
                .exits(0)
                .json()
        };
        let answer = tokio::task::spawn_blocking(backup).await.unwrap();
        println!("round {round}: {} acknowledged before, {answer}", acknowledged.len());
        assert_eq!(answer["compared"], "kept", "others wrote meanwhile: {answer}");
        assert!(answer["rows"]["jobs"].as_u64().unwrap() >= acknowledged.len() as u64, "{answer}");
    }
    load.end().await;
    drop(server);

    let copy = format!("sqlite:{}", dir.path().join("copy.db").display());
    let restored = campaign::Server::start(Some(&copy), &[]).await;
    let target = &restored.target;
    for id in &acknowledged {
        let path = format!("/v1/jobs/{id}");
        let (status, job) = target.insist(&target.operator, "GET", &path, &Value::Null).await;
        assert_eq!(status, 200, "{id} was acknowledged before the copy began: {job}");
    }
    // And it is a database to go on with.
    let ask = json!({"worker_id": "w", "streams": ["s"], "max_wait_ms": 1000});
    let (_, claimed) = target.insist(&target.worker, "POST", "/internal/worker/claim", &ask).await;
    assert_eq!(claimed["claimed"], true, "{claimed}");
}

/// The lines that it tells are run as they stand.
#[tokio::test]
async fn on_postgres_backup_prints_commands_that_work() {
    let cluster = cluster::Cluster::start().await;
    let server = Server::start(&["--database", &cluster.url()]);
    server.run(["job", "enqueue", "--stream", "s", "--payload", "{}"]).exits(0);
    server.signal(Signal::TERM);
    let (_, dir) = server.ended();
    let secret = cluster.url().replace("fernery@", "fernery:s3cret@");
    let answer = run_in(dir.path(), ["backup", "it's a copy", "--database", &secret]).exits(2);
    assert!(!answer.stderr.contains("s3cret"), "{answer:?}");
    assert!(
        answer.stderr.contains("--schema=fernery") && answer.stderr.contains("`fernery fence`"),
        "{answer:?}"
    );
    assert_eq!(names(dir.path()), [".fernery"]);

    let path = format!("{}:{}", std::env::var("FERNERY_TEST_PGBIN").unwrap(), std::env::var("PATH").unwrap());
    let run = |tool: &str| {
        let line = answer.stderr.lines().find(|line| line.trim().starts_with(tool)).expect("a line to paste");
        let mut shell = Command::new("sh");
        shell.current_dir(dir.path()).env("PATH", &path).args(["-c", line]);
        Answer::from(shell.output().expect("a shell")).exits(0);
    };
    run("pg_dump");
    assert!(fs::read(dir.path().join("it's a copy")).unwrap().starts_with(b"PGDMP"));
    run("pg_restore");
    fs::remove_file(dir.path().join("it's a copy")).unwrap();
    run("pg_basebackup");
    assert!(dir.path().join("it's a copy/PG_VERSION").exists());
    let url = cluster.url();
    let server = Server::start_in(dir, &["--database", &url]);
    assert!(server.run(["job", "list", "--json"]).exits(0).stdout.contains("QUEUED"));
}

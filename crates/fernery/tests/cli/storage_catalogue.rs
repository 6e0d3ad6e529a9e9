//! What becomes of a server whose disk is full, whose database breaks, or whose database it cannot have. Numbers are those
//! of the catalogue of bad input.

use crate::program::{Answer, Server, fernery, run_in, started_by, with_mounts};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Nothing here takes longer unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);
const UP: [&str; 3] = ["up", "--listen", "127.0.0.1:0"];

/// Takes all space that is left on the disk of `folder`.
fn fill(folder: &Path) {
    let mut file = File::create(folder.join("fill")).unwrap();
    for piece in [vec![0; 1 << 16], vec![0; 1]] {
        let full = loop {
            if let Err(error) = file.write_all(&piece) {
                break error;
            }
        };
        assert_eq!(full.kind(), ErrorKind::StorageFull, "{full}");
    }
}

/// Enqueues until the server refuses; the refusal.
fn enqueue_until_refused(server: &Server, acknowledged: &mut BTreeSet<String>) -> (u16, Value) {
    loop {
        let job = json!({"stream": "s", "payload": {"x": "x".repeat(1000)}});
        match server.post("operator.token", "/v1/jobs", &job) {
            (201, job) => acknowledged.insert(job["job_id"].as_str().unwrap().to_string()),
            refused => return refused,
        };
    }
}

fn all_jobs(server: &Server) -> BTreeSet<String> {
    let (mut found, mut cursor) = (BTreeSet::new(), String::new());
    loop {
        let (status, page) = server.read(&format!("/v1/jobs?limit=500{cursor}"));
        assert_eq!(status, 200, "{page}");
        let ids = page["jobs"].as_array().unwrap().iter().map(|job| job["job_id"].as_str().unwrap());
        found.extend(ids.map(str::to_string));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}

/// H65: what cannot be stored is refused, what is stored can be read, and space heals it without a restart.
#[test]
fn a_full_disk_refuses_writes_keeps_reads_and_heals() {
    let server = Server::start_on_disk(8);
    let mut acknowledged = BTreeSet::new();
    for stream in ["held", "s"] {
        let (status, job) =
            server.post("operator.token", "/v1/jobs", &json!({"stream": stream, "payload": {}}));
        assert_eq!(status, 201, "{job}");
        acknowledged.insert(job["job_id"].as_str().unwrap().to_string());
    }
    let held = server.claim("held").unwrap();
    fill(&server.data());

    let (status, problem) = enqueue_until_refused(&server, &mut acknowledged);
    assert_eq!((status, &problem["code"]), (507, &json!("no_space")), "{problem}");
    let report = json!({
        "worker_id": "w", "job_id": held["job_id"], "attempt_id": held["attempt_id"],
        "lease_token": held["lease_token"], "result": 1, "error": {"code": "E", "message": "m"},
        "streams": ["s"], "max_wait_ms": 0,
    });
    for verb in ["heartbeat", "complete", "fail", "claim"] {
        let (status, problem) = server.post("worker.token", &format!("/internal/worker/{verb}"), &report);
        assert_eq!((status, &problem["code"]), (507, &json!("no_space")), "{verb}: {problem}");
        assert_eq!((&problem["ok"], &problem["ack"]), (&json!(false), &json!(false)), "{verb}");
    }
    let (status, unready) = server.read("/readyz");
    assert_eq!(
        (status, &unready["code"]),
        (507, &json!("no_space")),
        "a disk without space is told: {unready}"
    );
    assert_eq!(all_jobs(&server), acknowledged);

    // What a crash would leave behind right now holds everything that was acknowledged.
    let crashed = tempfile::tempdir().unwrap();
    std::fs::DirBuilder::new().mode(0o700).create(crashed.path().join(".fernery")).unwrap();
    server.signal(Signal::STOP);
    for name in ["fernery.db", "fernery.db-wal"] {
        std::fs::copy(server.data().join(name), crashed.path().join(".fernery").join(name)).unwrap();
    }
    server.signal(Signal::CONT);
    assert_eq!(all_jobs(&Server::start_in(crashed, &[])), acknowledged);

    std::fs::remove_file(server.data().join("fill")).unwrap();
    let (status, answer) = server.post("worker.token", "/internal/worker/complete", &report);
    assert_eq!((status, &answer["ack"]), (200, &json!(true)), "{answer}");
    let (status, job) = server.post("operator.token", "/v1/jobs", &json!({"stream": "s", "payload": {}}));
    assert_eq!(status, 201, "{job}");
    acknowledged.insert(job["job_id"].as_str().unwrap().to_string());
    assert_eq!(all_jobs(&server), acknowledged);
    until(|| server.read("/readyz").0 == 200);
    server.signal(Signal::TERM);
    let (_, log) = server.ended_with_log();
    let told = log.matches("the disk is full; a transaction was rolled back").count();
    assert!((1..=5).contains(&told), "once a minute, not for each call: {log}");
}

/// Asks until it is so.
fn until(mut so: impl FnMut() -> bool) {
    let since = fernery_engine::door::stop_watch();
    while !so() {
        assert!(since.elapsed() < PATIENCE, "it never was so");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

/// Somebody else holds the write lock of the database: the writer waits as it does for a disk that hangs.
#[test]
fn a_writer_that_hangs_is_told_and_keeps_nobody_from_reading() {
    let server = Server::start(&[]);
    assert_eq!(server.read("/readyz").0, 200);
    let other = rusqlite::Connection::open(server.data().join("fernery.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    std::thread::scope(|scope| {
        let ready = scope.spawn(|| {
            // For a second the last answer counts.
            until(|| server.read("/readyz").0 == 503);
            server.read("/readyz").1
        });
        let reads = (0..).take_while(|_| {
            let (status, answer) = server.read("/v1/streams");
            assert_eq!(status, 200, "{answer}");
            !ready.is_finished()
        });
        assert!(reads.count() > 2, "reads go on meanwhile, and tokens are read anew every second");
        let unready = ready.join().unwrap();
        assert!(unready["detail"].as_str().unwrap().contains("durable within 3 s"), "{unready}");
        other.execute_batch("COMMIT").unwrap();
    });
    until(|| server.read("/readyz").0 == 200);
}

#[test]
fn a_loop_that_panics_is_started_again_and_told() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_told(dir, &["--lease-ttl", "1s"], ("FERNERY_FAILPOINT", "panic:reaper"));
    let job = json!({"stream": "s", "payload": {}, "max_attempts": 1});
    assert_eq!(server.post("operator.token", "/v1/jobs", &job).0, 201);
    let held = server.claim("s").unwrap();
    // The worker is never heard of again and nobody else claims: only the reaper, started again, ends the job.
    let path = format!("/v1/jobs/{}", held["job_id"].as_str().unwrap());
    until(|| server.read(&path).1["status"] == "DEAD");
    let (status, ready) = server.read("/readyz");
    assert_eq!(
        (status, &ready["status"], &ready["findings"][0]["check"]),
        (200, &json!("degraded"), &json!("loop"))
    );
    let said = ready["findings"][0]["detail"].as_str().unwrap();
    assert!(said.contains("reaper") && !said.contains("FERNERY_FAILPOINT"), "{said}");
    let metrics = server.get("/metrics");
    assert!(metrics.contains("fernery_loop_panics_total{loop=\"reaper\"} 1"), "{metrics}");
    for name in [
        "accept",
        "backstop",
        "cleanup",
        "executor",
        "gate",
        "inbox",
        "presence",
        "promoter",
        "readiness",
        "runner",
        "retention",
        "scheduler",
        "sealer",
        "spool",
        "sqlite_writer",
        "tidy",
    ] {
        assert!(
            metrics.contains(&format!("fernery_loop_panics_total{{loop=\"{name}\"}} 0")),
            "{name} is not supervised: {metrics}"
        );
    }
    server.signal(Signal::TERM);
    let (ended, log) = server.ended_with_log();
    assert!(ended.success());
    assert!(log.contains("a background loop panicked; restarting it"), "{log}");
}

/// Writes nonsense over everything that SQLite reads, without changing the length of any file.
fn ruin(database: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let path = format!("{}{suffix}", database.display());
        let length = std::fs::metadata(&path).unwrap().len();
        let mut file = OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all(&vec![0xa5; usize::try_from(length).unwrap()]).unwrap();
    }
}

/// A server that can store nothing any more ends, so that whoever watches it starts it anew.
#[test]
fn a_database_that_breaks_ends_the_server() {
    let server = Server::start(&[]);
    server.run(["job", "enqueue", "--stream", "s"]).exits(0);
    let operator = std::fs::read_to_string(server.data().join("operator.token")).unwrap();
    ruin(&server.data().join("fernery.db"));

    let mut stream = TcpStream::connect(server.url.strip_prefix("http://").unwrap()).unwrap();
    write!(
        stream,
        "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: 27\r\n\r\n{{\"stream\":\"s\",\"payload\":{{}}}}",
        operator.trim()
    )
    .unwrap();
    let mut answer = String::new();
    // The server may be gone before its answer.
    let _ = stream.read_to_string(&mut answer);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 503"), "{answer}");

    let url_file = server.data().join("url");
    let (status, log) = server.ended_with_log();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.lines().last().unwrap().contains("restart the server to recover"), "{log}");
    assert!(!url_file.exists(), "a server that has ended is not announced");
}

/// K14: a place where no database can be is refused with its path and the reason, before anything is served.
#[test]
fn a_place_where_no_database_can_be_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let up = |command: &mut Command, database: &str| -> Answer {
        command.current_dir(dir.path()).args(UP).args(["--database", database]).output().unwrap().into()
    };
    std::fs::create_dir_all(dir.path().join("closed")).unwrap();
    std::fs::write(dir.path().join("file"), "not a database").unwrap();
    let server = Server::start(&[]);
    server.signal(Signal::TERM);
    let (_, made) = server.ended();
    std::fs::copy(made.path().join(".fernery/fernery.db"), dir.path().join("written.db")).unwrap();

    let read_only = |path: &str| format!("mount --bind {path} {path} && mount -o remount,bind,ro {path}");
    for (mut command, database, said) in [
        (fernery(), "sqlite:closed", "Is a directory"),
        (fernery(), "sqlite:missing/x.db", "No such file"),
        (fernery(), "sqlite:file/x.db", "Not a directory"),
        (fernery(), "sqlite:file", "not a Fernery database"),
        (with_mounts(&read_only("closed")), "sqlite:closed/x.db", "Read-only file system"),
        (with_mounts(&read_only("written.db")), "sqlite:written.db", "Read-only file system"),
    ] {
        let answer = up(&mut command, database).exits(1);
        assert_eq!(answer.stdout, "", "{database}: {answer:?}");
        let error = answer.stderr.lines().last().unwrap();
        assert!(error.contains(database) && error.contains(said), "{database}: {answer:?}");
    }
    let closed = read_only("closed");
    let answer: Answer = with_mounts(&closed)
        .current_dir(dir.path())
        .args(UP)
        .args(["--data", "closed/data"])
        .output()
        .unwrap()
        .into();
    let answer = answer.exits(2);
    assert!(answer.stderr.contains("closed/data") && answer.stderr.contains("Read-only"), "{answer:?}");
}

/// K14: SQLite's locks do not work over a network. The kernel's answer is changed on its way, since no test can count on
/// a file server.
#[test]
fn a_database_on_a_network_file_system_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (magic, name) in
        [("6969", "NFS"), ("7b51", "SMB"), ("424d53ff", "CIFS"), ("424d53fe", "SMB2"), ("97190201", "9P")]
    {
        // The first eight bytes of the answer are the type, lowest byte first.
        let inject = format!("inject=statfs:poke_exit=@arg2={magic:0<16}");
        let program = fernery();
        let mut command = Command::new("strace");
        command.args(["-f", "-o", "/dev/null", "-e", &inject]).arg(program.get_program());
        let ran = command.current_dir(dir.path()).args(UP).output();
        let answer: Answer = ran.expect("strace; install it with `apt-get install strace`").into();
        let answer = answer.exits(1);
        assert!(answer.stderr.contains(&format!("is on {name}")), "{name}: {answer:?}");
        assert!(answer.stderr.contains("PostgreSQL"), "{name}: {answer:?}");
    }
}

/// SQLite is quiet about both of these: it answers that it has a write-ahead log before that is written, and it does not
/// mind a folder that cannot be synced, from which a power cut would then take the names of the files.
#[test]
fn a_server_does_not_start_if_the_disk_fails_while_the_database_is_created() {
    for (path, inject, said) in [
        (".fernery/fernery.db", "inject=pwrite64:error=ENOSPC:when=1", "disk is full"),
        (".fernery", "inject=fsync:error=EIO", "Input/output error"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let mut command = started_by("strace");
        command
            .args(["-f", "-o", "/dev/null", "-e", inject, "-P"])
            .arg(dir.path().join(path))
            .arg(fernery().get_program());
        let ran = command.current_dir(dir.path()).args(UP).output();
        let answer: Answer = ran.expect("strace; install it with `apt-get install strace`").into();
        let answer = answer.exits(1);
        assert_eq!(answer.stdout, "", "{answer:?}");
        assert!(answer.stderr.contains("error: cannot open") && answer.stderr.contains(said), "{answer:?}");
    }
}

/// K12: an older program leaves a newer database alone.
#[test]
fn a_database_of_a_newer_version_is_refused_and_left_alone() {
    let server = Server::start(&[]);
    server.signal(Signal::TERM);
    let (_, dir) = server.ended();
    let database = dir.path().join(".fernery/fernery.db");
    rusqlite::Connection::open(&database).unwrap().execute_batch("PRAGMA user_version = 999").unwrap();
    let before = std::fs::read(&database).unwrap();
    let answer = run_in(dir.path(), UP).exits(1);
    assert!(answer.stderr.contains("999") && answer.stderr.contains("newer"), "{answer:?}");
    assert_eq!(std::fs::read(&database).unwrap(), before);
}

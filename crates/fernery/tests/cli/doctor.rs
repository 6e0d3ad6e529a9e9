//! `fernery doctor` on SQLite: healthy ones are found healthy, and each thing that can be broken is found broken.

use crate::program::{Answer, Server, fernery, run_in};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// On the disk that holds the build, for the system's folder of temporary files may live in memory, which is a problem.
fn folder() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder")
}

fn findings(answer: &Answer) -> Vec<Value> {
    let Value::Array(findings) = answer.json() else { panic!("no array: {answer:?}") };
    for finding in &findings {
        let fields: Vec<_> = finding.as_object().expect("an object").keys().collect();
        assert_eq!(fields, ["check", "found", "level", "remedy"], "{finding}");
        let level = finding["level"].as_str().expect("a level");
        assert!(["ok", "warning", "problem"].contains(&level), "{finding}");
        assert_eq!(finding["remedy"].is_null(), level == "ok", "what is not ok has a remedy: {finding}");
    }
    findings
}

/// The one finding of this check.
#[track_caller]
fn finding<'a>(findings: &'a [Value], check: &str) -> &'a Value {
    let mut of_check = findings.iter().filter(|f| f["check"] == check);
    let found = of_check.next().unwrap_or_else(|| panic!("no {check} in {findings:#?}"));
    assert!(of_check.next().is_none(), "more than one {check} in {findings:#?}");
    found
}

#[track_caller]
fn expect(findings: &[Value], check: &str, level: &str, says: &str) {
    let finding = finding(findings, check);
    assert_eq!(finding["level"], level, "{finding}");
    assert!(finding["found"].as_str().unwrap().contains(says), "{says:?} is not in {finding}");
}

/// Name and bytes of every file but those that SQLite keeps beside a database that is open, and those that are being written.
fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    fs::read_dir(dir)
        .expect("a directory")
        .map(|entry| entry.expect("an entry"))
        .map(|entry| (entry.file_name().into_string().expect("a name"), entry.path()))
        .filter(|(name, _)| !name.ends_with("-wal") && !name.ends_with("-shm") && !name.starts_with(".tmp"))
        .map(|(name, path)| (name, fs::read(path).expect("a file")))
        .collect()
}

const OF_A_HEALTHY_FILE: &[&str] = &[
    "database",
    "schema",
    "durability",
    "clock",
    "wal_size",
    "free_pages",
    "database_file",
    "server",
    "lease_settings",
    "data",
    "data_directory",
    "fernery_version",
    "sqlite_version",
];

#[test]
fn a_healthy_database_is_found_healthy_with_and_without_its_server_and_left_as_it_was() {
    let server = Server::start_in(folder(), &[]);
    let data = server.data();
    server.run(["job", "enqueue", "--stream", "s", "--payload", "{}"]).exits(0);
    // The server itself writes the head of the journal whenever it has sealed something.
    let unsealed = || {
        let mut all = contents(&data);
        all.remove("journal.head");
        all
    };
    let before = unsealed();
    let seen = findings(&server.run(["doctor", "--json"]).exits(0));
    for check in OF_A_HEALTHY_FILE {
        expect(&seen, check, "ok", "");
    }
    expect(&seen, "server", "ok", &server.url);
    expect(&seen, "durability", "ok", "synchronous=FULL");
    expect(&seen, "durability", "ok", "journal_mode=wal");
    expect(
        &seen,
        "file_limit",
        finding(&seen, "file_limit")["level"].as_str().unwrap(),
        &server.pid().to_string(),
    );
    assert_eq!(seen.iter().filter(|f| f["check"] == "token_file" && f["level"] == "ok").count(), 2);
    for measured in ["disk_space", "sync_time", "file_system"] {
        finding(&seen, measured);
    }
    assert_eq!(unsealed(), before, "a look changes nothing");
    // The server still is one.
    server.run(["job", "enqueue", "--stream", "s", "--payload", "{}"]).exits(0);
    server.signal(rustix::process::Signal::TERM);
    let (status, dir) = server.ended();
    assert!(status.success());

    let data = dir.path().join(".fernery");
    let before = contents(&data);
    let seen = findings(&run_in(dir.path(), ["doctor", "--json"]).exits(0));
    for check in OF_A_HEALTHY_FILE {
        expect(&seen, check, "ok", "");
    }
    expect(&seen, "server", "ok", "no server is running here");
    assert_eq!(contents(&data), before, "a look changes nothing");
    // And a server starts on what the look has left.
    drop(Server::start_in(dir, &[]));
}

#[test]
fn people_get_a_table_with_remedies_and_a_lease_that_hurts_is_told() {
    let dir = folder();
    let answer = run_in(dir.path(), ["doctor", "--lease-ttl", "2s"]).exits(0);
    assert!(answer.stdout.starts_with("LEVEL"), "{answer:?}");
    let mut lines = answer.stdout.lines();
    let lease = lines.find(|line| line.contains("lease_settings")).expect("a line about leases");
    assert!(lease.starts_with("warning") && lease.contains("leases of 2s"), "{lease}");
    let remedy = lines.next().expect("a remedy").trim();
    assert!(remedy.starts_with("→ set lease_ttl to 5s or more"), "{remedy}");
    assert!(answer.stdout.trim_end().lines().last().unwrap().starts_with("no problems, "), "{answer:?}");
}

#[test]
fn doctor_creates_no_database() {
    let dir = folder();
    let seen = findings(&run_in(dir.path(), ["doctor", "--json"]).exits(0));
    expect(&seen, "database", "warning", "no database at");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing was made");

    // Tokens without a database: there was one.
    let data = dir.path().join(".fernery");
    fs::create_dir(&data).unwrap();
    fs::set_permissions(&data, PermissionsExt::from_mode(0o700)).unwrap();
    fs::write(data.join("operator.token"), "x").unwrap();
    fs::set_permissions(data.join("operator.token"), PermissionsExt::from_mode(0o600)).unwrap();
    let seen = findings(&run_in(dir.path(), ["doctor", "--json"]).exits(1));
    expect(&seen, "database", "problem", "but a server has used");
    assert_eq!(contents(&data).keys().collect::<Vec<_>>(), ["operator.token"]);
}

#[test]
fn every_repository_is_looked_at() {
    let dir = folder();
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=o", "-c", "user.email=o@localhost"]).args(args);
        assert!(git.current_dir(dir.path()).status().expect("git is installed").success(), "{args:?}");
    };
    git(&["init", "--quiet", "--initial-branch", "main", "app"]);
    git(&["-C", "app", "commit", "--quiet", "--allow-empty", "--message", "first"]);
    fs::create_dir(dir.path().join("plain")).unwrap();
    let repos = ["app=app#main", "branchless=app#trunk", "none=nowhere#main", "plain=plain#main"];
    let flags = repos.iter().flat_map(|repo| ["--repos", repo]);
    let answer = run_in(dir.path(), ["doctor", "--json"].into_iter().chain(flags)).exits(1);
    let seen = findings(&answer);
    let of = |name: &str| {
        let found = |finding: &&Value| finding["found"].as_str().unwrap().starts_with(&format!("{name}: "));
        let of_check = seen.iter().filter(|finding| finding["check"] == "repository");
        of_check.clone().find(found).unwrap_or_else(|| panic!("no {name} in {seen:#?}")).clone()
    };
    for (name, level, says) in [
        ("app", "ok", "branch main at "),
        ("branchless", "problem", "has no branch trunk"),
        ("none", "problem", "there is no repository at"),
        ("plain", "problem", "is not a git repository"),
    ] {
        let found = of(name);
        assert_eq!(found["level"], level, "{found}");
        assert!(found["found"].as_str().unwrap().contains(says), "{found}");
    }
    assert!(of("none")["remedy"].as_str().unwrap().contains("[repos.none]"));
}

#[test]
fn a_wrong_configuration_is_refused_in_the_words_of_up() {
    let dir = folder();
    fs::write(dir.path().join("bad.toml"), "leese_ttl = \"5s\"\n").unwrap();
    for args in [
        &["--lease-ttl", "5"][..],
        &["--lease-ttl", "10s", "--heartbeat-interval", "6s"],
        &["--reap-interval", "61s"],
        &["--database", "mysql://u:s3cret@h/x"],
        &["--config", "bad.toml"],
        &["--config", "missing.toml"],
    ] {
        let up = run_in(dir.path(), ["up"].iter().chain(args)).exits(2);
        let doctor = run_in(dir.path(), ["doctor"].iter().chain(args)).exits(2);
        assert_eq!(doctor.stderr, up.stderr, "{args:?}");
        assert_eq!(doctor.stdout, "", "{args:?}");
    }
}

#[test]
fn a_token_and_a_directory_that_others_can_read_are_told() {
    let server = Server::start_in(folder(), &[]);
    let data = server.data();
    let mode =
        |name: &str, mode| fs::set_permissions(data.join(name), PermissionsExt::from_mode(mode)).unwrap();
    mode("worker.token", 0o644);
    let seen = findings(&server.run(["doctor", "--json"]).exits(1));
    let bad: Vec<_> = seen.iter().filter(|f| f["level"] == "problem").collect();
    assert_eq!(bad.len(), 1, "{bad:#?}");
    assert_eq!(bad[0]["check"], "token_file");
    assert!(bad[0]["found"].as_str().unwrap().contains("worker.token has mode 0644"), "{}", bad[0]);
    assert!(bad[0]["remedy"].as_str().unwrap().contains("chmod 600"), "{}", bad[0]);

    mode("worker.token", 0o600);
    mode("", 0o755);
    mode("fernery.db", 0o640);
    let seen = findings(&server.run(["doctor", "--json"]).exits(0));
    expect(&seen, "data_directory", "warning", "0755");
    expect(&seen, "database_file", "warning", "0640");
}

#[test]
fn databases_of_other_versions_and_other_files_are_reported() {
    let server = Server::start_in(folder(), &[]);
    server.signal(rustix::process::Signal::TERM);
    let (_, dir) = server.ended();
    let with = |path: &Path, sql: &str| {
        rusqlite::Connection::open(path).unwrap().execute_batch(sql).expect("written");
    };
    let ours = dir.path().join(".fernery/fernery.db");
    let doctor = |database: &Path| {
        let database = format!("sqlite:{}", database.display());
        findings(&run_in(dir.path(), ["doctor", "--json", "--database", &database]).exits(1))
    };

    with(&ours, "PRAGMA user_version = 999");
    let seen = doctor(&ours);
    expect(&seen, "schema", "problem", "999");
    expect(&seen, "database", "ok", "");

    let other = dir.path().join("other.db");
    with(&other, "CREATE TABLE t (x)");
    expect(&doctor(&other), "database", "problem", "not a Fernery database");
    let text = dir.path().join("text.db");
    fs::write(&text, "no database, and long enough to be read as one ".repeat(100)).unwrap();
    expect(&doctor(&text), "database", "problem", "not a database");
    let seen = doctor(&text);
    let remedy = finding(&seen, "database")["remedy"].as_str().unwrap();
    assert!(remedy.contains("last backup") && remedy.contains("fernery fence"), "{remedy}");
    expect(&doctor(dir.path()), "database", "problem", "is not a file");
}

#[test]
fn a_clock_that_was_set_back_is_told() {
    let server = Server::start_in(folder(), &[]);
    server.signal(rustix::process::Signal::TERM);
    let (_, dir) = server.ended();
    let db = rusqlite::Connection::open(dir.path().join(".fernery/fernery.db")).unwrap();
    // The year 2200.
    db.execute_batch("UPDATE marks SET value = 7258118400000 WHERE name = 'clock'").unwrap();
    drop(db);
    let seen = findings(&run_in(dir.path(), ["doctor", "--json"]).exits(1));
    expect(&seen, "clock", "problem", "behind the newest timestamp");
}

#[test]
fn a_server_that_was_killed_and_one_that_hangs_are_told_apart() {
    let server = Server::start_in(folder(), &[]);
    server.run(["job", "enqueue", "--stream", "s", "--payload", "{}"]).exits(0);
    server.signal(rustix::process::Signal::STOP);
    let seen = findings(&server.run(["doctor", "--json"]).exits(1));
    expect(&seen, "server", "problem", &format!("process {} serves the database", server.pid()));
    // What it wrote before can be read all the same.
    expect(&seen, "schema", "ok", "");

    server.signal(rustix::process::Signal::KILL);
    let (_, dir) = server.ended();
    let before = contents(&dir.path().join(".fernery"));
    let seen = findings(&run_in(dir.path(), ["doctor", "--json"]).exits(0));
    expect(&seen, "server", "warning", "does not answer");
    expect(&seen, "database", "ok", "");
    assert_eq!(contents(&dir.path().join(".fernery")), before, "its log was not written back by a look");
}

#[test]
fn an_unanswered_url_is_reported_beside_the_healthy_local_server() {
    let server = Server::start_in(folder(), &[]);
    let seen = findings(&server.run(["doctor", "--json", "--url", "http://127.0.0.1:9"]).exits(1));
    expect(&seen, "named_server", "problem", "no server answers at the URL you named");
    expect(&seen, "server", "ok", &server.url);
    let seen = findings(&server.run(["doctor", "--json", "--url", &server.url]).exits(0));
    expect(&seen, "server", "ok", &server.url);
    assert!(!seen.iter().any(|finding| finding["check"] == "named_server"), "it was asked once: {seen:#?}");
}

#[test]
fn a_server_on_another_file_is_told() {
    let server = Server::start_in(folder(), &[]);
    let copy = server.dir.path().join("copy.db");
    server.run(["backup", copy.to_str().unwrap()]).exits(0);
    let database = format!("sqlite:{}", copy.display());
    let seen = findings(&server.run(["doctor", "--json", "--database", &database]).exits(0));
    expect(&seen, "server", "warning", "serves another database than these settings name");
}

/// "No server runs here" is said by who could look, and by nobody else.
#[test]
fn a_server_that_cannot_be_looked_for_is_not_known() {
    let dir = folder();
    // A folder in the place of a file cannot be read by root either.
    fs::create_dir_all(dir.path().join(".fernery/url")).unwrap();
    fs::set_permissions(dir.path().join(".fernery"), PermissionsExt::from_mode(0o700)).unwrap();
    let seen = findings(&run_in(dir.path(), ["doctor", "--json"]).exits(0));
    expect(&seen, "server", "warning", "unknown: ");
}

/// A reader that never ends keeps the log from being cut back.
#[test]
fn a_write_ahead_log_that_grows_without_end_is_told() {
    let server = Server::start_in(folder(), &[]);
    server.run(["job", "enqueue", "--stream", "s", "--payload", "{}"]).exits(0);
    let reader = rusqlite::Connection::open_with_flags(
        server.data().join("fernery.db"),
        rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY,
    )
    .unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM jobs").unwrap();
    expect(&findings(&server.run(["doctor", "--json"]).exits(0)), "wal_size", "ok", "");
    let jobs: Vec<_> =
        (0..12).map(|_| json!({"stream": "s", "payload": {"x": "x".repeat((1 << 20) - 100)}})).collect();
    for _ in 0..6 {
        let (status, answer) = server.post("operator.token", "/v1/jobs", &Value::Array(jobs.clone()));
        assert!(status == 200 || status == 201, "{status} {answer}");
    }
    let seen = findings(&server.run(["doctor", "--json"]).exits(0));
    expect(&seen, "wal_size", "warning", "its limit is 64.0 MiB");
}

/// A file system of 2 MiB in memory, filled up, seen by this test's command alone.
#[test]
fn a_full_disk_is_told() {
    let dir = folder();
    let program = fernery().get_program().to_owned();
    let script = "mount -t tmpfs -o size=2m,mode=700 tmpfs \"$1\" || exit 90
                  mkdir -m 700 \"$1/data\" && cat /dev/zero >\"$1/fill\" 2>/dev/null
                  exec \"$2\" doctor --json --data \"$1/data\"";
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--user", "--map-root-user", "sh", "-c", script, "sh"])
        .arg(dir.path())
        .arg(program);
    let answer: Answer = command.output().expect("unshare runs; it is in Debian's package util-linux").into();
    assert_ne!(answer.code, Some(90), "a mount namespace of a test's own is needed: {answer:?}");
    let seen = findings(&answer.exits(1));
    expect(&seen, "disk_space", "problem", "0 bytes free");
    expect(&seen, "sync_time", "problem", "No space left");
    expect(&seen, "file_system", "problem", "is in memory");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "the disk outside was not touched");
}

#[test]
fn doctor_probes_the_sandbox_and_names_uncontained_programs() {
    let dir = folder();
    let seen = findings(&run_in(dir.path(), ["doctor", "--json"]).exits(0));
    expect(&seen, "sandbox", "ok", "bubblewrap");
    let blueprint = "extends = \"mec\"\nazolla_id = \"free\"\ndiazotroph_type = \"FREE_DIAZOTROPH\"\n[executors.FREE_DIAZOTROPH]\nkind = \"command\"\n\
                     argv = [\"true\"]\nsandbox = \"none\"\n";
    fs::write(dir.path().join("free.toml"), blueprint).unwrap();
    let seen = findings(&run_in(dir.path(), ["doctor", "--json", "--azolla", "free.toml"]).exits(0));
    expect(&seen, "containment", "warning", "azolla free");
    let agent = "extends = \"mec\"\nazolla_id = \"agent\"\n[executors.PATCH_DIAZOTROPH]\nkind = \"agent\"\nprofile = \"mock\"\n\
                 sandbox = \"none\"\n";
    fs::write(dir.path().join("agent.toml"), agent).unwrap();
    let seen = findings(&run_in(dir.path(), ["doctor", "--json", "--azolla", "agent.toml"]).exits(0));
    expect(&seen, "containment", "warning", "azolla agent");
    let seen = findings(&run_in(dir.path(), ["doctor", "--json", "--azolla", "nothere.toml"]).exits(1));
    expect(&seen, "azollas", "problem", "nothere.toml");
}

//! `fernery fence`: after a restore, nobody from before can write.

use crate::program;
use crate::program::{Server, run_in};
use fernery_client::Client;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

fn post(url: &str, token: &str, path: &str, body: &Value) -> Result<Value, u16> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::new(url, Some(token.trim()), None).unwrap();
        match client.post::<Value>(path, body, Duration::from_secs(5)).await {
            Ok(reply) => Ok(reply.read().unwrap()),
            Err(fernery_client::ClientError::Refused { problem, .. }) => Err(problem.status),
            Err(other) => panic!("{other}"),
        }
    })
}

#[test]
fn a_worker_from_before_the_restore_is_refused_and_its_job_is_claimed_anew() {
    let server = Server::start(&[]);
    let token = fs::read_to_string(server.data().join("worker.token")).unwrap();
    server.run(["job", "enqueue", "--stream", "s", "--payload", "{}"]).exits(0);
    let ask = json!({ "worker_id": "w", "streams": ["s"], "max_wait_ms": 0 });
    let held = post(&server.url, &token, "/internal/worker/claim", &ask).unwrap();
    let busy = server.run(["fence"]).exits(1);
    assert!(busy.stderr.contains("in use by process"), "{busy:?}");

    server.signal(Signal::TERM);
    let (_, dir) = server.ended();
    let fenced = run_in(dir.path(), ["fence", "--json"]).exits(0).json();
    assert_eq!(fenced["leases_freed"], 1);
    assert!(run_in(dir.path(), ["fence"]).exits(0).stdout.contains("0 leases revoked"));

    let data = dir.path().join(".fernery");
    let server = Server::start(&["--data", data.to_str().unwrap()]);
    let mut late = held.clone();
    late["worker_id"] = json!("w");
    late["result"] = json!({});
    assert_eq!(post(&server.url, &token, "/internal/worker/complete", &late), Err(409));
    let again = post(&server.url, &token, "/internal/worker/claim", &ask).unwrap();
    assert_eq!((&again["job_id"], &again["attempt_no"]), (&held["job_id"], &json!(2)));
}

#[test]
fn fence_creates_no_database() {
    let dir = tempfile::tempdir().unwrap();
    let refused = run_in(dir.path(), ["fence"]).exits(3);
    assert!(refused.stderr.contains("nothing to fence"), "{refused:?}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_restore_that_left_an_empty_file_or_none_that_can_be_read_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let fence = |database: &str| run_in(dir.path(), ["fence", "--database", database]);
    fs::write(dir.path().join("empty.db"), "").unwrap();
    let refused = fence("sqlite:empty.db").exits(1);
    assert!(refused.stderr.contains("was the restore complete?"), "{refused:?}");
    assert_eq!(fs::read(dir.path().join("empty.db")).unwrap(), b"", "and nothing is made in it");

    // A link in a circle cannot be followed by root either.
    std::os::unix::fs::symlink("circle", dir.path().join("circle")).unwrap();
    let refused = fence("sqlite:circle/fernery.db").exits(2);
    assert!(refused.stderr.contains("cannot read") && !refused.stderr.contains("nothing"), "{refused:?}");
    assert!(fence("sqlite:.").exits(2).stderr.contains("is not a file"));
}

#[test]
fn its_help_names_what_it_uses() {
    let dir = tempfile::tempdir().unwrap();
    for command in ["fence", "backup"] {
        let help = run_in(dir.path(), [command, "--help"]).exits(0).stdout;
        assert!(help.contains("--database"), "{help}");
        assert!(!help.contains("--lease-ttl") && !help.contains("--tls-cert"), "{help}");
    }
}

/// Run as root, it leaves nothing that the server's user cannot open. As another user everything is that user's anyway.
#[test]
fn files_beside_the_database_belong_to_its_owner() {
    let server = Server::start(&[]);
    server.signal(Signal::TERM);
    let (_, dir) = server.ended();
    let file = |name: &str| dir.path().join(".fernery").join(name);
    fs::remove_file(file("fernery.db.lock")).unwrap();
    // As after an upgrade: opening it makes a copy of what was before.
    let db = rusqlite::Connection::open(file("fernery.db")).unwrap();
    let of_the_pipeline = "azollas blueprints objectives blockers decisions events snapshots workorders bundles runs pauses \
                           claims journal unsealed seals captures candidates candidate_captures manifests queries notices fires \
                           deadlines past_attempts landings dependencies hosts snoozes recurrences sign_ins \
                           stream_stats comments viewed_files looks bulk_acts";
    for table in of_the_pipeline.split_whitespace() {
        db.execute_batch(&format!("DROP TABLE {table}")).unwrap();
    }
    for (table, column) in
        [("tokens", "azolla_id"), ("streams", "opened_by"), ("streams", "used_at"), ("streams", "redact")]
    {
        db.execute_batch(&format!("ALTER TABLE {table} DROP COLUMN {column}")).unwrap();
    }
    db.execute_batch("DROP INDEX dead_letters_by_death; DROP INDEX dead_letters_of_stream; DROP INDEX dead_letters_of_code;
         DROP INDEX dead_letters_of_both; DROP INDEX jobs_cancelled; DROP INDEX streams_paused; DROP INDEX tokens_newest;
         DROP INDEX tokens_revoked; PRAGMA user_version = 2").unwrap();
    drop(db);
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(file("fernery.db"), Some(12_345), Some(12_346)).unwrap();
    }
    run_in(dir.path(), ["fence"]).exits(0);
    let owner = |name: &str| fs::metadata(file(name)).map(|meta| (meta.uid(), meta.gid())).unwrap();
    for made in ["fernery.db.lock", "fernery.db.schema-v2"] {
        assert_eq!(owner(made), owner("fernery.db"), "{made}");
    }
}

#[test]
fn a_database_of_somebody_else_is_left_alone() {
    let server = std::env::var("FERNERY_TEST_POSTGRES")
        .expect("run ./test, or scripts/with-services cargo nextest run");
    let name = format!("fence_{:032x}", u128::from_ne_bytes(fernery_engine::door::random_bytes()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (admin, connection) =
        runtime.block_on(tokio_postgres::connect(&server, tokio_postgres::NoTls)).unwrap();
    runtime.spawn(connection);
    runtime.block_on(admin.batch_execute(&format!("CREATE DATABASE {name}"))).unwrap();
    let url = format!("{}/{name}", server.rsplit_once('/').unwrap().0);
    let dir = tempfile::tempdir().unwrap();
    let refused: program::Answer = program::fernery()
        .current_dir(dir.path())
        .env("FERNERY_DATABASE", &url)
        .arg("fence")
        .output()
        .unwrap()
        .into();
    assert!(refused.exits(1).stderr.contains("nothing to fence"));
    runtime.block_on(admin.batch_execute(&format!("DROP DATABASE {name}"))).unwrap();
}

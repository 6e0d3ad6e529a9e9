//! `fernery doctor` on PostgreSQL, each test with a server of its own whose settings it may spoil.

use crate::cluster::Cluster;
use crate::program::{Server, run_in};
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

async fn client(cluster: &Cluster) -> Client {
    let (client, connection) = tokio_postgres::connect(&cluster.url(), NoTls).await.expect("it answers");
    tokio::spawn(connection);
    client
}

/// Starts a server with these lines in its configuration.
async fn cluster_with(lines: &[&str]) -> Cluster {
    let mut cluster = Cluster::start().await;
    if !lines.is_empty() {
        cluster.kill();
        lines.iter().for_each(|line| cluster.configure(line));
        cluster.run().await;
    }
    cluster
}

/// Brings the schema into the database, and leaves no server behind.
fn made(url: &str) -> TempDir {
    let server = Server::start(&["--database", url]);
    server.signal(rustix::process::Signal::TERM);
    let (status, dir) = server.ended();
    assert!(status.success());
    dir
}

fn doctor(dir: &Path, url: &str, flags: &[&str], exit: i32) -> Vec<Value> {
    let answer = run_in(dir, ["doctor", "--json", "--database", url].iter().chain(flags)).exits(exit);
    let Value::Array(findings) = answer.json() else { panic!("no array: {answer:?}") };
    findings
}

#[track_caller]
fn expect(findings: &[Value], check: &str, level: &str, says: &str) {
    let of_check: Vec<_> = findings.iter().filter(|f| f["check"] == check).collect();
    assert!(!of_check.is_empty(), "no {check} in {findings:#?}");
    assert!(
        of_check.iter().any(|f| f["level"] == level && f["found"].as_str().unwrap().contains(says)),
        "no {check} is {level} and says {says:?}: {of_check:#?}"
    );
}

const OF_A_HEALTHY_DATABASE: &[&str] = &[
    "database",
    "postgres_version",
    "schema",
    "durability",
    "clock",
    "connections",
    "oldest_transaction",
    "idle_in_transaction",
    "prepared_transactions",
    "replication_slots",
    "dead_rows",
    "lease_settings",
    "server",
];

#[tokio::test]
async fn doctor_tells_a_healthy_database_from_a_damaged_one() {
    let mut cluster = cluster_with(&["max_connections = 20"]).await;
    let url = cluster.url();
    let nothing = tempfile::tempdir().unwrap();
    let seen = doctor(nothing.path(), &url, &[], 0);
    expect(&seen, "schema", "warning", "no schema");
    let db = client(&cluster).await;
    let schema = "SELECT to_regnamespace('fernery') IS NULL";
    assert!(db.query_one(schema, &[]).await.unwrap().get::<_, bool>(0), "a look makes no schema");

    let server = Server::start(&["--database", &url]);
    let seen = doctor(server.dir.path(), &url, &[], 0);
    for check in OF_A_HEALTHY_DATABASE {
        expect(&seen, check, "ok", "");
    }
    expect(&seen, "server", "ok", &server.url);
    expect(&seen, "durability", "ok", "fsync=on");
    assert_eq!(seen.iter().filter(|f| f["check"] == "dead_rows").count(), 3, "{seen:#?}");
    // A server on PostgreSQL, and a command that means SQLite.
    let other = server.run(["doctor", "--json"]);
    let Value::Array(other) = other.json() else { panic!("{other:?}") };
    expect(&other, "server", "warning", "uses postgres");
    server.signal(rustix::process::Signal::TERM);
    let (_, dir) = server.ended();
    expect(&doctor(dir.path(), &url, &[], 0), "server", "ok", "no server is running here");

    // fsync off; then a standby that commits wait for and that is not there.
    for (line, check) in
        [("fsync = off", "lose jobs"), ("synchronous_standby_names = 'away'", "commits hang")]
    {
        let (name, _) = line.split_once(" = ").unwrap();
        db.batch_execute(&format!("ALTER SYSTEM SET {line}")).await.unwrap();
        reloaded(&cluster).await;
        expect(&doctor(dir.path(), &url, &[], 1), "durability", "problem", check);
        db.batch_execute(&format!("ALTER SYSTEM RESET {name}")).await.unwrap();
        reloaded(&cluster).await;
    }
    // Fernery turns synchronous_commit on for itself, so the truth is that nothing is lost.
    let lazy = format!("{url}&options=-c%20synchronous_commit%3Doff");
    expect(&doctor(dir.path(), &lazy, &[], 0), "durability", "ok", "synchronous_commit=on");

    // Nearly all of the 17 connections that are not kept back.
    let mut held = Vec::new();
    for _ in 0..13 {
        held.push(client(&cluster).await);
    }
    expect(&doctor(dir.path(), &url, &[], 1), "connections", "problem", "15 of 17");
    drop(held);

    cluster.kill();
    let secret = url.replace("fernery@", "fernery:s3cret@");
    let answer = run_in(dir.path(), ["doctor", "--database", &secret]).exits(1);
    assert!(answer.stdout.contains("cannot be reached"), "{answer:?}");
    assert!(answer.stdout.contains("start PostgreSQL"), "{answer:?}");
    assert!(!answer.stdout.contains("s3cret"), "{answer:?}");
    // What does not hang on the database is told all the same.
    assert!(answer.stdout.contains("file_limit"), "{answer:?}");
}

/// The server reads its files again, and every session started after this has what they say.
async fn reloaded(cluster: &Cluster) {
    let db = client(cluster).await;
    let before = "SELECT pg_conf_load_time()::text";
    let old: String = db.query_one(before, &[]).await.unwrap().get(0);
    db.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    for _ in 0..3_000 {
        let new: String = client(cluster).await.query_one(before, &[]).await.unwrap().get(0);
        if new != old {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("the configuration was not read again");
}

#[tokio::test]
async fn load_on_a_database_is_reported() {
    let cluster = cluster_with(&["max_prepared_transactions = 2", "autovacuum = off"]).await;
    let url = cluster.url();
    let dir = made(&url);
    let db = client(&cluster).await;

    // A transaction that holds back vacuum, idle, and one that was prepared; both older than a lease of one second.
    let open = client(&cluster).await;
    open.batch_execute("BEGIN; SELECT txid_current()").await.unwrap();
    let left = client(&cluster).await;
    left.batch_execute("BEGIN; SELECT txid_current(); PREPARE TRANSACTION 'left'").await.unwrap();
    db.batch_execute("SELECT pg_sleep(1.2)").await.unwrap();
    let short = ["--lease-ttl", "1s"];
    let seen = doctor(dir.path(), &url, &short, 0);
    expect(&seen, "oldest_transaction", "warning", "began 1.");
    expect(&seen, "idle_in_transaction", "warning", "1 session is idle");
    expect(&seen, "prepared_transactions", "warning", "1 transaction is prepared");
    // Against a lease of a minute they are young.
    let seen = doctor(dir.path(), &url, &[], 0);
    expect(&seen, "oldest_transaction", "ok", "began");
    expect(&seen, "prepared_transactions", "ok", "1 transaction");
    open.batch_execute("ROLLBACK").await.unwrap();
    db.batch_execute("ROLLBACK PREPARED 'left'").await.unwrap();
    let seen = doctor(dir.path(), &url, &short, 0);
    expect(&seen, "oldest_transaction", "ok", "no other");
    expect(&seen, "prepared_transactions", "ok", "none");

    // Rows that were ready once.
    let churn = "INSERT INTO fernery.ready SELECT 's', n, gen_random_uuid(), now(), 0, 0, 0, 0, 0
                 FROM generate_series(1, 25000) n; DELETE FROM fernery.ready";
    let busy = client(&cluster).await;
    busy.batch_execute(churn).await.unwrap();
    drop(busy);
    let dead = "SELECT n_dead_tup FROM pg_stat_all_tables WHERE relid = 'fernery.ready'::regclass";
    // What a session did is counted once it has ended.
    while db.query_one(dead, &[]).await.unwrap().get::<_, i64>(0) < 25_000 {
        tokio::task::yield_now().await;
    }
    expect(
        &doctor(dir.path(), &url, &[], 0),
        "dead_rows",
        "warning",
        "fernery.ready: about 25000 dead tuples",
    );

    db.batch_execute("SELECT pg_create_physical_replication_slot('unread')").await.unwrap();
    expect(&doctor(dir.path(), &url, &[], 0), "replication_slots", "warning", "1 replication slot");

    db.batch_execute("CREATE ROLE plain LOGIN; GRANT USAGE ON SCHEMA fernery TO plain").await.unwrap();
    let as_plain = url.replace("fernery@", "plain@");
    let seen = doctor(dir.path(), &as_plain, &[], 1);
    expect(&seen, "oldest_transaction", "warning", "cannot see other users' sessions");
    expect(&seen, "schema", "problem", "permission denied");

    let ahead = "CREATE OR REPLACE FUNCTION fernery.fernery_now() RETURNS timestamptz LANGUAGE sql VOLATILE
                 AS $$ SELECT clock_timestamp() + interval '2 hours' $$";
    db.batch_execute(ahead).await.unwrap();
    expect(&doctor(dir.path(), &url, &[], 1), "clock", "problem", "2 h 0 min ahead of");
    db.batch_execute("INSERT INTO fernery.schema_version VALUES (999, now())").await.unwrap();
    expect(&doctor(dir.path(), &url, &[], 1), "schema", "problem", "999");
}

//! `fernery doctor` on a Redis server of the test's own, whose settings it may spoil. The database is on a server of its own too:
//! the shared one does without `fsync`, and the doctor says so.

use crate::cluster::Cluster;
use crate::own_redis::OwnRedis;
use crate::program::run_in;
use serde_json::Value;
use tokio_postgres::NoTls;

/// Level and words of each check about Redis.
fn doctor(database: &str, redis: &str, exit: i32) -> Vec<(String, String, String)> {
    doctor_hosting("", database, redis, exit)
}

fn doctor_hosting(azolla: &str, database: &str, redis: &str, exit: i32) -> Vec<(String, String, String)> {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join("out.toml"), azolla).expect("a file");
    let mut flags = vec!["doctor", "--json", "--database", database, "--redis", redis];
    if !azolla.is_empty() {
        flags.extend(["--azolla", "out.toml"]);
    }
    let answer = run_in(dir.path(), flags).exits(exit);
    assert!(!answer.stdout.contains("s3cret"), "{answer:?}");
    let Value::Array(findings) = answer.json() else { panic!("no array: {answer:?}") };
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_string();
    findings
        .iter()
        .map(|f| (text(f, "check"), text(f, "level"), text(f, "found")))
        .filter(|(check, ..)| check.starts_with("redis") || check == "open_server")
        .collect()
}

/// A PostgreSQL server that lets in who has its password, and its URL with that.
async fn closed_cluster() -> (Cluster, String) {
    let cluster = Cluster::start().await;
    cluster.put("pg_hba.conf", "host all all 127.0.0.1/32 scram-sha-256\n");
    let (client, connection) = tokio_postgres::connect(&cluster.url(), NoTls).await.expect("it answers");
    tokio::spawn(connection);
    let close = "ALTER ROLE fernery PASSWORD 's3cret'; SELECT pg_reload_conf()";
    client.batch_execute(close).await.expect("closed");
    // The server reads its files when it comes to it.
    while tokio_postgres::connect(&cluster.url(), NoTls).await.is_ok() {
        tokio::task::yield_now().await;
    }
    let url = cluster.url().replace("fernery@", "fernery:s3cret@");
    (cluster, url)
}

#[track_caller]
fn expect(seen: &[(String, String, String)], check: &str, level: &str, says: &str) {
    assert!(
        seen.iter().any(|(c, l, found)| c == check && l == level && found.contains(says)),
        "no {check} is {level} and says {says:?}: {seen:#?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_is_found_healthy_spoilt_or_away() {
    let database = Cluster::start().await;
    let mut redis = OwnRedis::start().await;
    let seen = doctor(&database.url(), &redis.url(), 0);
    expect(&seen, "redis", "ok", "answers");
    expect(&seen, "redis_version", "ok", "");
    expect(&seen, "redis_eviction", "ok", "maxmemory-policy noeviction, maxmemory no limit");
    expect(&seen, "redis_persistence", "ok", "a restart loses all messages");

    let _: String = redis.ask(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]).await;
    let _: String = redis.ask(&["CONFIG", "SET", "maxmemory", "100mb"]).await;
    let seen = doctor(&database.url(), &redis.url(), 0);
    expect(
        &seen,
        "redis_eviction",
        "warning",
        "maxmemory-policy allkeys-lru, maxmemory 100.0 MiB: when full, it may evict",
    );

    let _: String = redis.ask(&["REPLICAOF", "127.0.0.1", "1"]).await;
    expect(&doctor(&database.url(), &redis.url(), 1), "redis", "problem", "accepts no messages");
    let _: String = redis.ask(&["REPLICAOF", "NO", "ONE"]).await;

    let _: String = redis.ask(&["CONFIG", "SET", "requirepass", "another"]).await;
    let wrong = redis.url().replace("redis://", "redis://:s3cret@");
    expect(&doctor(&database.url(), &wrong, 1), "redis", "problem", "cannot be reached");

    redis.kill().await;
    expect(&doctor(&database.url(), &redis.url(), 1), "redis", "problem", "cannot be reached");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_without_a_password_is_a_problem_beside_a_program_with_network() {
    let (_cluster, database) = closed_cluster().await;
    let mut redis = OwnRedis::start().await;
    let azolla = "extends = \"mec\"\nazolla_id = \"out\"\ndiazotroph_type = \"OUT_DIAZOTROPH\"\n[executors.OUT_DIAZOTROPH]\nkind = \"command\"\n\
                  argv = [\"true\"]\nnetwork = true\n";
    let alone = azolla.replace("network = true\n", "");
    let open = |seen: &[(String, String, String)]| seen.iter().any(|(check, ..)| check == "open_server");
    assert!(!open(&doctor_hosting(&alone, &database, &redis.url(), 0)));
    let seen = doctor_hosting(azolla, &database, &redis.url(), 1);
    expect(&seen, "open_server", "problem", "redis://");
    let _: String = redis.ask(&["CONFIG", "SET", "requirepass", "s3cret"]).await;
    let closed = redis.url().replace("redis://", "redis://:s3cret@");
    assert!(!open(&doctor_hosting(azolla, &database, &closed, 0)));
    redis.kill().await;
}

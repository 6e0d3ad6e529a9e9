//! The commands of `operate.md`, on SQLite and on PostgreSQL, and the log lines that it explains.

use super::fresh_database::fresh_database;
use super::pages::checkout;
use super::shell::Shell;
use std::path::Path;

const GUIDE: &str = "operate.md";

#[test]
fn a_server_is_operated_as_the_guide_says() {
    let mut shell = Shell::open(&[]);
    let mut seen = 0;
    shell.run_guide(GUIDE, "operate:", |name, said, _| {
        let expected: &[&str] = match name {
            "config" => &["lease_ttl", "60s"],
            "tokens" => &["gpu-box", "build:*", "producer"],
            "restore" => &["0 leases freed"],
            "doctor" => &["ok"],
            "health" => &["fernery_store_up 1", "fernery_claims_waiting 0"],
            "pause" => &["paused"],
            "dlq" => &["0"],
            _ => &[],
        };
        seen += expected.len();
        for text in expected {
            assert!(said.contains(text), "{name}: no {text} in: {said}");
        }
    });
    assert_eq!(seen, 11, "no block was renamed away from what is expected of it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_database_is_backed_up_and_restored_as_the_guide_says() {
    let database = fresh_database().await;
    let client = database.client().await;
    let url = database.url();
    tokio::task::spawn_blocking(move || {
        let mut shell = Shell::open(&[("FERNERY_DATABASE", &url)]);
        shell.run_guide(GUIDE, "operate-postgres:", |name, said, dir| match name {
            "start" => {
                let made =
                    super::program::run_in(dir, ["job", "enqueue", "--stream", "s", "--payload", "{}"]);
                made.exits(0);
            }
            "backup" => {
                let purged = super::program::run_in(dir, ["job", "list", "--json"]).exits(0);
                let job_id = purged.json()["jobs"][0]["job_id"].as_str().unwrap().to_string();
                super::program::run_in(dir, ["job", "cancel", &job_id]).exits(0);
            }
            "restore" => {
                assert!(said.contains("0 leases freed"), "{said}");
                let jobs = super::program::run_in(dir, ["job", "list", "--json"]).exits(0).json();
                assert_eq!(jobs["jobs"][0]["status"], "QUEUED", "as it was when it was backed up: {jobs}");
            }
            other => panic!("nothing is expected of {other}"),
        });
    })
    .await
    .unwrap();
    let rows = client.query("SELECT FROM fernery.jobs", &[]).await.unwrap();
    assert_eq!(rows.len(), 1);
}

/// Whether some source file has this text.
fn in_source(folder: &Path, text: &str) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return path.file_name().is_some_and(|name| name != "tests") && in_source(&path, text);
        }
        path.extension().is_some_and(|e| e == "rs")
            && std::fs::read_to_string(&path).unwrap().contains(&format!("\"{text}\""))
    })
}

#[test]
fn every_log_line_of_the_guide_is_one_that_the_program_writes() {
    let page = std::fs::read_to_string(checkout().join("docs/guides").join(GUIDE)).unwrap();
    let (_, table) = page.split_once("| line | means | do |").unwrap();
    let lines: Vec<_> = table
        .lines()
        .skip(2)
        .map_while(|row| row.strip_prefix("| `")?.split_once('`'))
        .map(|(l, _)| l)
        .collect();
    assert!(lines.len() > 10, "{lines:?}");
    for line in lines {
        assert!(in_source(&checkout().join("crates"), line), "nobody logs `{line}`");
    }
}

#[test]
fn every_metric_of_the_guide_is_one_that_is_measured() {
    let server = super::program::Server::start(&[]);
    let body = serde_json::json!({"stream": "s", "payload": {}});
    assert_eq!(server.post("operator.token", "/v1/jobs", &body).0, 201);
    let metrics = server.get("/metrics");
    let page = std::fs::read_to_string(checkout().join("docs/guides").join(GUIDE)).unwrap();
    let (_, table) = page.split_once("| watch | and act when |").unwrap();
    let rows: Vec<_> = table.lines().skip(2).map_while(|row| row.strip_prefix("| `")).collect();
    assert!(rows.len() > 5, "{rows:?}");
    for row in rows {
        let name = row.split(['`', '{']).next().unwrap();
        assert!(metrics.lines().any(|line| line.starts_with(name)), "no {name} in {metrics}");
    }
}

//! The commands of `operate.md`, on SQLite and on PostgreSQL, and the log lines that it explains.

use super::fresh_database::empty_database;
use super::pages::{blocks, checkout};
use super::shell::Shell;
use std::path::Path;

const GUIDE: &str = "operate.md";

#[test]
fn a_server_is_operated_as_the_guide_says() {
    let mut shell = Shell::open(&[]);
    shell.judge("operate:doctor");
    let mut seen = 0;
    shell.run_guide(GUIDE, "operate:", |name, said, dir| {
        let expected: &[&str] = match name {
            "config" => &["lease_ttl", "60s"],
            "tokens" => &["gpu-box", "build:*", "producer"],
            "restore" => &["0 leases revoked"],
            "doctor" => &["ok"],
            "health" => &["fernery_store_up 1", "fernery_claims_waiting 0"],
            "processes" => &["http://127.0.0.1", "60s"],
            "pause" => &["paused"],
            "dlq" => &["0"],
            _ => &[],
        };
        seen += expected.len();
        for text in expected {
            assert!(said.contains(text), "{name}: no {text} in: {said}");
        }
        if name == "doctor" {
            assert_healthy_but_for_the_machine(said, dir);
        }
    });
    assert_eq!(seen, 13, "no block was renamed away from what is expected of it");
}

/// A disk that is full, slow or in memory is the tester's; everything else is as the guide has left it. The exit code says
/// what was found.
#[track_caller]
fn assert_healthy_but_for_the_machine(said: &str, dir: &Path) {
    const OF_THE_MACHINE: [&str; 4] = ["disk_space", "file_limit", "file_system", "sync_time"];
    let findings = super::program::run_in(dir, ["doctor", "--json"]).json();
    let problems: Vec<_> =
        findings.as_array().unwrap().iter().filter(|finding| finding["level"] == "problem").collect();
    for problem in &problems {
        let of_the_machine = OF_THE_MACHINE.iter().any(|check| problem["check"] == *check);
        assert!(of_the_machine, "{problem}");
    }
    let code = format!("exit code {}", u8::from(!problems.is_empty()));
    assert!(said.lines().any(|line| line == code), "{code} is not in: {said}");
}

/// They are for an installed package: here the same words run on a configuration of the package's making.
#[test]
fn the_commands_for_the_package_are_ones_that_the_program_takes() {
    let server = super::program::Server::start(&[]);
    let config = server.dir.path().join("package.toml");
    std::fs::write(&config, format!("data = {:?}\n", server.data())).unwrap();
    let mut ran = Vec::new();
    for block in blocks(GUIDE).iter().filter(|block| block.name.starts_with("package:")) {
        for line in block.text.replace("\\\n", " ").lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            let program = words.iter().rposition(|word| *word == "fernery").expect("it runs fernery");
            let [flag, path, rest @ ..] = &words[program + 1..] else { panic!("{line}") };
            assert_eq!((*flag, *path), ("--config", "/etc/fernery/fernery.toml"), "{line}");
            let answer = server.run([&["--config", config.to_str().unwrap()], rest].concat());
            // What the doctor finds may be the machine's; that it looked is what counts.
            assert!(answer.code == Some(0) || rest == ["doctor"], "{line}: {answer:?}");
            assert!(answer.stdout.starts_with("LEVEL") || rest != ["doctor"], "{line}: {answer:?}");
            ran.push(rest.join(" "));
        }
    }
    assert_eq!(ran, ["doctor", "job list", "doctor"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_database_is_backed_up_and_restored_as_the_guide_says() {
    let database = empty_database().await;
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
                assert!(said.contains("0 leases revoked"), "{said}");
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
